# pyright: standard
"""What a user writes, for the type checker: basedpyright reports here an unknown name, a wrong argument or result.

Each assert_type says what an editor knows of the expression before it; tests/test_stubs.py runs the file too.
"""
from typing import assert_type

import zoo
import zoo.nn.functional as F
from zoo import Tensor, nn
from zoo.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.fc = nn.Linear(4, hidden)
        self.out = nn.Linear(hidden, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.dropout(self.fc(x).relu(), p=0.1, training=self.training))


def tensors() -> None:
    x = zoo.randn(3, 4, generator=zoo.Generator().manual_seed(0))
    assert_type(x.sum(dim=1, keepdim=True).relu().mul_(2), Tensor)
    assert_type(x @ x.T + 1 - 2 * x.mean(), Tensor)
    assert_type(zoo.where(x > 0, x, 0.0)[0, 1:], Tensor)
    assert_type(zoo.cat([x, x], dim=0).view(-1, 2).to("cpu").float(), Tensor)
    assert_type(x.max(dim=1).values, Tensor)
    assert_type(x.max(), Tensor)
    assert_type(x.split(2, dim=1), tuple[Tensor, ...])
    assert_type(x.requires_grad, bool)
    assert_type(x.is_cuda, bool)
    values, indices = x.topk(2)
    assert_type(values + indices, Tensor)
    kind: zoo.dtype = zoo.float32
    place: zoo.device = x.device
    assert zoo.linalg.norm(x).item() > 0 and isinstance(zoo.zeros(2, dtype=kind, device=place), Tensor)
    print(float(x[0, 0]), len(x), [row.tolist() for row in x], f"{x.mean().item():.2f}", x.detach().numpy().shape)


@zoo.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    return (model(x).argmax(dim=1) == y).float().mean().item()


def main() -> float:
    zoo.manual_seed(0)
    tensors()
    model = Net(8).to("cpu")
    data = TensorDataset(zoo.rand(12, 4), zoo.randint(0, 3, (12,)))
    optimizer = zoo.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    scheduler = zoo.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    for x, y in DataLoader(data, batch_size=4, shuffle=True):
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        assert_type(loss, Tensor)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    with zoo.no_grad():
        for p in model.parameters():
            p.add_(zoo.zeros_like(p))
    return accuracy(model, *data.tensors)


if __name__ == "__main__":
    print(main())
