"""What people write with PyTorch, with `torch` replaced by `zoo` in the import statements: it runs and learns."""
import pytest

import zoo as torch
import zoo.nn as nn
import zoo.nn.functional as F
import zoo.optim as optim
from zoo.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset, default_collate, random_split


def test_parts_and_batches_of_a_dataset():
    full = TensorDataset(torch.arange(10))
    train, rest = random_split(full, [7, 3], generator=torch.Generator().manual_seed(42))
    assert isinstance(train, Subset) and (len(train), len(rest)) == (7, 3)
    assert sorted(x.item() for part in (train, rest) for (x,) in part) == list(range(10)) != [x for (x,) in train]
    again = random_split(full, [7, 3], generator=torch.Generator().manual_seed(42))
    assert again[0].indices == train.indices
    assert [len(part) for part in random_split(full, [0.55, 0.45])] == [6, 4]
    with pytest.raises(ValueError, match="sum to 10"):
        random_split(full, [5, 4])

    both = rest + train
    assert isinstance(both, ConcatDataset) and len(both) == 10 and both[-1] == train[6] and both[3] == train[0]
    for wrong in (10, -11):
        with pytest.raises(IndexError, match="ConcatDataset.*-10, 9"):
            both[wrong]
    with pytest.raises(ValueError, match="at least one"):
        ConcatDataset([])

    def numbers(**options):
        return [x.tolist() for (x,) in DataLoader(full, **options)]
    assert numbers(batch_size=3, sampler=[3, 1, 2, 9], pin_memory=True) == [[3, 1, 2], [9]]
    assert numbers(batch_size=3, sampler=[3, 1, 2, 9], drop_last=True) == [[3, 1, 2]]
    assert len(DataLoader(full, 3, sampler=[3, 1, 2, 9])) == 2
    assert numbers(batch_sampler=[[1, 2], [3]]) == [[1, 2], [3]] and len(DataLoader(full, batch_sampler=[[1]])) == 1
    with pytest.raises(ValueError, match="shuffle or a sampler"):
        DataLoader(full, shuffle=True, sampler=[1])
    with pytest.raises(ValueError, match="batch_sampler without"):
        DataLoader(full, batch_size=2, batch_sampler=[[1]])
    assert default_collate([{"a": 1.5, "b": "x"}] * 2)["b"] == ["x", "x"]
    assert issubclass(Subset, Dataset)


def test_old_names_and_limits():
    x = torch.FloatTensor([[1, 2]])
    assert x.dtype == torch.float32 and x.type() == "zoo.FloatTensor" and isinstance(x, torch.FloatTensor)
    assert torch.LongTensor(2, 3).shape == (2, 3) and torch.LongTensor(2, 3).dtype == torch.int64
    assert torch.LongTensor().shape == (0,) == torch.Tensor().shape and not isinstance(x, torch.LongTensor)
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor(4).shape == (4,)
    assert torch.Tensor([2, 3]).tolist() == [2, 3] and torch.Tensor([2, 3]).dtype == torch.float32
    assert torch.BoolTensor([0, 2]).tolist() == [False, True] and isinstance(x.shape, torch.Size)
    assert x.type(torch.int64).type() == x.type("torch.LongTensor").type() == x.type(torch.LongTensor).type()
    assert x.is_cpu and x.get_device() == -1 and x.ndimension() == 2 and x.is_signed() and not x.byte().is_signed()
    assert torch.are_deterministic_algorithms_enabled() and torch.use_deterministic_algorithms(True) is None
    v = torch.autograd.Variable(x, requires_grad=True)
    assert v.requires_grad and not x.requires_grad and v.data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="type: wants a dtype"):
        x.type("torch.QuarterTensor")
    with pytest.raises(TypeError, match="Tensor: wants values or"):
        torch.Tensor([1], [2])

    assert torch.finfo(torch.float32).eps == 2**-23 and torch.finfo().max == (2 - 2**-23) * 2.0**127
    assert torch.finfo(torch.bfloat16).eps == 2**-7 and torch.finfo(torch.float16).tiny == 2**-14
    assert type(torch.finfo(torch.float64).min) is float and torch.finfo(torch.float64).bits == 64
    assert (torch.iinfo(torch.int64).min, torch.iinfo(torch.uint8).max) == (-(2**63), 255)
    assert repr(torch.iinfo(torch.int32)) == "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"
    for limits, wrong in ((torch.finfo, torch.int64), (torch.iinfo, torch.float32), (torch.iinfo, torch.bool)):
        with pytest.raises(TypeError, match=limits.__name__):
            limits(wrong)


def test_a_group_added_later_keeps_its_learning_rate():
    first, second = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
    optimizer = torch.optim.SGD([first], lr=1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    optimizer.add_param_group({"params": [second], "lr": 0.3})
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.5, 0.3]


def test_gradient_penalty():
    x, w = torch.rand(2, 3).requires_grad_(True), torch.nn.Parameter(torch.tensor([1.0, 2.0, 2.0]))
    y = (x * w).sum(1)
    (g,) = torch.autograd.grad(outputs=y, inputs=x, grad_outputs=torch.ones_like(y), create_graph=True,
                               retain_graph=True, only_inputs=True)
    ((g.norm(2, dim=1) - 1) ** 2).mean().backward()
    assert torch.allclose(w.grad, 2 * (3 - 1) * w.detach() / 3)


@pytest.mark.parametrize("of", ["output", "part", "gradient", "recorded gradient", "no grad"])
def test_view_after_a_convolution(of):
    """`x.view(n, -1)`: convolutions lie in memory as NHWC here, and that must not be the user's concern."""
    conv, x = torch.nn.Conv2d(3, 4, 3), torch.rand(2, 3, 6, 6, requires_grad=True)
    y = conv(x)
    if "gradient" in of:
        (y,) = torch.autograd.grad((y * y).sum(), x, create_graph=of != "gradient")
    elif of == "part":
        y = y[:, 1:]
    elif of == "no grad":
        y = y.detach()
    expected = y.detach().numpy().copy()
    flat = y.view(2, -1)
    assert flat.detach().numpy().tolist() == expected.reshape(2, -1).tolist() and flat.requires_grad == y.requires_grad
    assert y.view_as(flat).tolist() == flat.tolist()
    if flat.requires_grad:
        flat.sum().backward()
        conv.weight.grad.sum().item()
    if of != "part":                                            # memory is shared from here on
        with torch.no_grad():
            flat.detach()[0, 0] = 7
        assert y[0, 0, 0, 0].item() == 7
    with pytest.raises(RuntimeError, match="view"):
        y.view(7, -1)
    with pytest.raises(RuntimeError, match="view"):
        torch.ones(2, 3).t().view(6)


def test_switches():
    def backward_of_nan():
        torch.zeros(1, requires_grad=True).sqrt().mul(0).backward()
    with torch.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="sqrt.*test_scripts"):
        backward_of_nan()
    backward_of_nan()
    torch.autograd.set_detect_anomaly(True)
    with pytest.raises(RuntimeError, match="sqrt"):
        backward_of_nan()
    torch.autograd.set_detect_anomaly(False)
    backward_of_nan()
    torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = True
    assert torch.backends.cudnn.is_available() is False


def test_cuda_s_questions_have_answers_without_a_gpu():
    if not torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.manual_seed_all(1)
        assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == torch.cuda.memory_reserved() == 0
        assert torch.cuda.max_memory_reserved() == torch.cuda.device_count() == 0


class Net(nn.Module):
    """The CIFAR tutorial's: two convolutions, `x.view(-1, n)`, two linear layers."""

    def __init__(self):
        super(Net, self).__init__()  # noqa: UP008 (as people write it)
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 8, 3)
        self.pool, self.norm = nn.MaxPool2d(2, 2), nn.BatchNorm2d(4)
        self.fc1, self.fc2 = nn.Linear(8 * 2 * 2, 16), nn.Linear(16, 4)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        x = F.relu(self.norm(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = x.view(-1, 8 * 2 * 2)
        return F.log_softmax(self.fc2(self.drop(F.relu(self.fc1(x)))), dim=1)


def blobs(n):
    """Images whose class is the quarter that is bright."""
    x, y = torch.rand(n, 1, 8, 8), torch.randint(0, 4, (n,))
    for k in range(4):
        x[y == k, :, 4 * (k // 2):4 * (k // 2) + 4, 4 * (k % 2):4 * (k % 2) + 4] += 1.0
    return TensorDataset(x, y)


def train(model, device, loader, optimizer, scheduler):
    model.train()
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
    scheduler.step()


def test_train_save_and_resume(tmp_path):
    """A run of two epochs gives the same bits as one that was stopped after the first, saved and loaded."""
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = blobs(256)
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=0)

    def new():
        model = Net().to(device)
        decay = [p for p in model.parameters() if p.ndim > 1]
        rest = [p for p in model.parameters() if p.ndim <= 1]
        optimizer = optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0}], lr=1e-2)
        return model, optimizer, optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)

    model, optimizer, scheduler = first = new()
    train(model, device, loader, optimizer, scheduler)
    torch.save({"epoch": 1, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(), "rng": torch.get_rng_state()}, tmp_path / "checkpoint.pt")
    train(model, device, loader, optimizer, scheduler)

    checkpoint = torch.load(tmp_path / "checkpoint.pt", map_location=device)
    again = new()
    for part, name in zip(again, ("model", "optimizer", "scheduler"), strict=True):
        part.load_state_dict(checkpoint[name])
    torch.set_rng_state(checkpoint["rng"])
    train(again[0], device, loader, *again[1:])
    assert checkpoint["epoch"] == 1 and again[2].get_last_lr() == first[2].get_last_lr()
    for (name, a), b in zip(model.state_dict().items(), again[0].state_dict().values(), strict=True):
        assert torch.equal(a, b), name

    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in DataLoader(data, batch_size=100):
            pred = model(x.to(device)).argmax(dim=1, keepdim=True)
            correct += pred.eq(y.to(device).view_as(pred)).sum().item()
    assert correct > 240


def test_transfer():
    """Frozen layers stay, bit for bit; the replaced last one learns."""
    torch.manual_seed(0)
    model = Net()
    for p in model.parameters():
        p.requires_grad = False
    model.fc2 = nn.Linear(model.fc2.in_features, 4)
    assert [n for n, p in model.named_parameters() if p.requires_grad] == ["fc2.weight", "fc2.bias"]
    before = {n: p.clone() for n, p in model.named_parameters()}
    optimizer = optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1, momentum=0.9, nesterov=True)
    train(model, "cpu", DataLoader(blobs(64), batch_size=16), optimizer, optim.lr_scheduler.StepLR(optimizer, 1))
    same = {n: torch.equal(p, before[n]) for n, p in model.named_parameters()}
    assert not same.pop("fc2.weight") and not same.pop("fc2.bias") and all(same.values())


def test_equal_neighbours_of_a_list_are_printed_once():
    layers = nn.ModuleList([nn.Linear(2, 2), nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU()), nn.ReLU()])
    assert repr(layers) == """ModuleList(
  (0): Linear(in_features=2, out_features=2, bias=True)
  (1-2): 2 x Sequential(
    (0): ReLU()
  )
  (3): ReLU()
)""" and repr(nn.ModuleList()) == "ModuleList()"
