"""What notebooks do with tensors: indexing, dtypes, shapes, statistics, comparison, linear algebra."""
import numpy as np
import torch


def main(fill):
    x = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
    found = [x.size(), x.shape[0], x.numel(), x.dim(), x.shape.numel(), x.is_contiguous(), x.t().is_contiguous(),
             x.stride()]
    assert isinstance(x.shape, torch.Size) and isinstance(x.size(), tuple) and torch.Size([2, 3]) == x.shape
    assert x.type().endswith("FloatTensor") and torch.typename(x).endswith("FloatTensor") and x.device.type == "cpu"
    assert torch.is_tensor(x) and torch.is_floating_point(x) and x.long().dtype == torch.int64 == torch.long
    assert x.new_tensor([1, 2]).dtype == x.dtype and x.new_full((2,), 7).tolist() == [7, 7]
    assert x.new_empty(0).size(0) == 0
    a = torch.arange(12).reshape(3, 4)
    a[a % 2 == 0] = -1
    a[1, ::2] += 10
    a[..., -1].mul_(2)
    b = a.clone().float()
    b.fill_diagonal_(0)
    i, j = torch.tril_indices(3, 3)
    mesh = torch.meshgrid(torch.linspace(0, 1, 3), torch.linspace(-1, 1, 2), indexing="xy")
    hist = torch.histc(x, bins=4, min=-6, max=6)
    values, counts = torch.unique(torch.tensor([3, 1, 3, 2]), return_counts=True)
    old = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = torch.ones(2, requires_grad=True) * 2
    torch.set_grad_enabled(old)
    assert not y.requires_grad
    torch.testing.assert_close(x + 1e-7, x)
    try:
        torch.testing.assert_close(x + 1, x)
    except AssertionError as e:
        assert "not close" in str(e)
    else:
        raise AssertionError("assert_close took what is not close")
    with torch.inference_mode():
        m = torch.linalg.matrix_power(x @ x.T, 3)
    stats = [x.mean(), x.std(unbiased=False), x.var(0), x.median(), x.abs().max(), x.norm(), torch.linalg.norm(x),
             torch.linalg.norm(x, ord=1), torch.linalg.matrix_norm(x), torch.linalg.vector_norm(x, ord=3, dim=1),
             torch.cov(x), torch.corrcoef(x), torch.trapz(x), torch.trapezoid(x, dx=0.5), torch.diff(x),
             torch.cumsum(x, 1), torch.cummax(x, 1)[0], torch.logcumsumexp(x, 0), torch.quantile(x,
             torch.tensor([0.1, 0.5]), dim=1),
             torch.isposinf(x / 0), torch.isneginf(x / 0), torch.isreal(x), torch.vander(torch.tensor([1.0, 2, 3])),
             torch.logspace(0, 2, 3), torch.rot90(x), torch.roll(x, 1, 1), torch.cartesian_prod(i[:2], j[:2]),
             torch.combinations(torch.tensor([1, 2, 3])), torch.bincount(torch.tensor([0, 1, 1])), torch.real(x),
             torch.gcd(torch.tensor([12, 18]), torch.tensor(8)), torch.clip(x, -1, 1),
             torch.linalg.det(x @ x.T), torch.inverse(x @ x.T), torch.linalg.solve(x @ x.T, x),
             torch.linalg.multi_dot([x, x.T])]
    found += [s.numpy() for s in stats] + [a.numpy(), b.numpy(), mesh[0].numpy(), hist.numpy(), values.tolist(),
                                           counts.tolist(), m.numpy()]
    found.append([np.asarray(x).sum(), float(x.sum()), int(x[0, 0]), x[1].tolist(), [t.item() for t in x[0]], len(x)])
    found.append(f"{x.mean().item():.3f} {x[0, 0]:.2f}")
    return found
