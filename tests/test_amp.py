"""Mixed precision beside torch's: which dtype comes out of what, and the loss scale over a run with overflows."""
import numpy as np
import pytest

import zoo
from zoo import nn
from zoo.nn import functional as F  # noqa: N812

DTYPES = ["matmul", "linear", "conv2d", "bmm", "einsum", "softmax", "log_softmax", "exp", "sum", "mean", "mse",
          "cross_entropy", "layer_norm", "batch_norm", "relu", "add", "cat", "pow", "square", "sqrt", "norm", "max"]


def results(lib, fn, dtype) -> dict:
    """The dtype that each operation gives inside autocast, as a word."""
    x, w, image, kernel = lib.ones(2, 3), lib.ones(3, 3), lib.ones(1, 2, 5, 5), lib.ones(2, 2, 3, 3)
    low = lib.ones(2, 3, dtype=dtype)
    with lib.autocast("cpu", dtype):
        out = {
            "matmul": x @ w, "linear": fn.linear(x, w), "conv2d": fn.conv2d(image, kernel),
            "bmm": lib.bmm(w[None], w[None]), "einsum": lib.einsum("ij,jk->ik", x, w), "relu": fn.relu(low),
            "add": low + x, "cat": lib.cat([low, x]), "mean": low.mean(), "sqrt": low.sqrt(), "max": low.max(),
            "batch_norm": fn.batch_norm(lib.ones(2, 3, dtype=dtype), lib.zeros(3), lib.ones(3)),
            "softmax": fn.softmax(low, 1), "log_softmax": fn.log_softmax(low, 1), "exp": low.exp(), "sum": low.sum(),
            "mse": fn.mse_loss(low, x), "cross_entropy": fn.cross_entropy(low, lib.zeros(2, dtype=lib.int64)),
            "layer_norm": fn.layer_norm(low, (3,)), "pow": low**3, "square": low * low, "norm": low.norm(),
        }
    return {name: str(y.dtype).removeprefix("torch.") for name, y in out.items()}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_dtypes(dtype):
    mine = results(zoo, F, getattr(zoo, dtype))
    assert set(mine) == set(DTYPES)
    lower = {"matmul", "linear", "conv2d", "bmm", "einsum", "relu", "mean", "sqrt", "max", "batch_norm", "square"}
    assert mine == {name: dtype if name in lower else "float32" for name in DTYPES}


def test_matrix_products_are_as_torchs():
    torch = pytest.importorskip("torch")
    theirs = results(torch, torch.nn.functional, torch.bfloat16)
    mine = results(zoo, F, zoo.bfloat16)
    for name in ("matmul", "linear", "conv2d", "bmm", "einsum", "relu", "add", "cat", "mean", "sqrt", "square"):
        assert mine[name] == theirs[name], name


def test_scope():
    x, w = zoo.ones(2, 2), zoo.ones(2, 2)
    assert (x @ w).dtype == zoo.float32
    with zoo.autocast("cpu"):
        assert zoo.is_autocast_enabled("cpu") and not zoo.is_autocast_enabled("cuda")
        with zoo.autocast("cpu", enabled=False):
            assert (x @ w).dtype == zoo.float32 and not zoo.is_autocast_enabled("cpu")
        with zoo.autocast("cuda", zoo.float16):
            assert (x @ w).dtype == zoo.bfloat16
        assert (x.double() @ w.double()).dtype == zoo.float64
        assert (x.int() @ w.int()).dtype == zoo.int32
    assert (x @ w).dtype == zoo.float32 and not zoo.is_autocast_enabled("cpu")

    @zoo.autocast("cpu", zoo.float16)
    def product(a, b):
        return a @ b
    assert product(x, w).dtype == zoo.float16
    with pytest.raises(ValueError, match="wants float16 or bfloat16, got float64"):
        zoo.autocast("cpu", zoo.float64)
    with pytest.raises(RuntimeError):
        zoo.autocast("tpu")


def test_a_weight_is_cast_once_and_its_gradient_is_float32():
    w, x = zoo.nn.Parameter(zoo.rand(3, 3)), zoo.rand(2, 3)
    with zoo.autocast("cpu"):
        a, b = F.linear(x, w), F.linear(x, w)
        casts = {e for y in (a, b) for e in y.grad_fn.edges if e.name == "cast"}
        assert len(casts) == 1
        with zoo.no_grad():
            w.add_(1)                                                # a new value is cast anew
            assert not (F.linear(x, w) == b).any()
        y = F.linear(x, w)
    y.float().sum().backward()
    assert w.grad.dtype == zoo.float32 and w.grad.shape == (3, 3)


def scaled_run(lib, optim, amp, dtype, scaler=None) -> list:
    """A regression whose loss scale overflows at times: (scale, weight) after each step."""
    w = lib.ones(4, dtype=dtype)
    w.requires_grad_()
    optimizer = optim.SGD([w], lr=0.1)
    scaler = scaler or amp.GradScaler("cpu", init_scale=2.0**100, growth_interval=2)
    seen = []
    for k in range(12):
        optimizer.zero_grad()
        loss = ((w - k) ** 2).sum() * (2.0**30 if k % 5 == 2 else 1.0)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), w.tolist()))
    return seen


@pytest.mark.filterwarnings("ignore:.*GradScaler.*:UserWarning")
def test_grad_scaler_is_torchs():
    torch = pytest.importorskip("torch")
    mine = scaled_run(zoo, zoo.optim, zoo.amp, zoo.float32)
    theirs = scaled_run(torch, torch.optim, torch.amp, torch.float32)
    assert [s for s, _ in mine] == [s for s, _ in theirs]
    np.testing.assert_allclose([w for _, w in mine], [w for _, w in theirs], rtol=1e-6)
    assert len({s for s, _ in mine}) > 2


def test_grad_scaler_state_and_errors():
    one = zoo.amp.GradScaler(init_scale=8.0, growth_interval=2)
    w = zoo.ones(1, requires_grad=True)
    optimizer = zoo.optim.SGD([w], lr=0.1)
    one.scale(w.sum()).backward()
    one.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        one.step(optimizer)
    one.update()
    two = zoo.amp.GradScaler()
    two.load_state_dict(one.state_dict())
    assert two.state_dict() == one.state_dict() and two.get_scale() == 8.0
    with pytest.raises(RuntimeError, match="No inf checks"):
        two.update()
    one.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        one.unscale_(optimizer)
    off = zoo.amp.GradScaler(enabled=False)
    assert off.scale(w) is w and off.get_scale() == 1.0 and off.state_dict() == {}
    with pytest.raises(ValueError, match="growth_factor"):
        zoo.amp.GradScaler(growth_factor=1.0)
    w.grad = zoo.full((1,), float("inf"))
    before = w.tolist()
    two.step(optimizer)
    two.update()
    assert w.tolist() == before and two.get_scale() == 4.0


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_training_in_mixed_precision_learns(dtype):
    """The digits' first 256 images: the loss falls as in float32, and the weights stay float32."""
    from zoo.data import digits
    images, labels = (t[:256] for t in digits(train=True).tensors)
    losses = {}
    for name in ("float32", dtype):
        zoo.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
                              nn.Linear(512, 10))
        optimizer, scaler = zoo.optim.SGD(model.parameters(), lr=0.1), zoo.amp.GradScaler(enabled=name == "float16")
        for _ in range(12):
            with zoo.autocast("cpu", getattr(zoo, dtype), enabled=name != "float32"):
                loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        assert all(p.dtype == zoo.float32 for p in model.parameters())
        losses[name] = loss.item()
    assert losses["float32"] < 0.6 and abs(losses[dtype] - losses["float32"]) < 0.05
