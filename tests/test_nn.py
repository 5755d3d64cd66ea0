"""Modules: torch's repr, state_dict keys, numbers and gradients; state_dict errors; hooks; init; clipping."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import zoo
from zoo import nn
from zoo.nn.state import StateDictError

# name, arguments of the constructor, shapes of the inputs
LAYERS = [
    ("Linear", (5, 3), {}, [(4, 5)]),
    ("Linear", (5, 3), {"bias": False}, [(2, 4, 5)]),
    ("Bilinear", (3, 4, 5), {}, [(2, 3), (2, 4)]),
    ("Identity", (), {}, [(3,)]),
    ("Flatten", (), {}, [(2, 3, 4)]),
    ("Flatten", (0, 1), {}, [(2, 3, 4)]),
    ("Unflatten", (1, (2, 3)), {}, [(4, 6)]),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, [(2, 4, 9)]),
    ("Conv1d", (4, 6, 3), {"padding": 2, "padding_mode": "circular"}, [(2, 4, 9)]),
    ("Conv2d", (3, 6, 3), {}, [(2, 3, 7, 8)]),
    ("Conv2d", (4, 6, (3, 2)), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}, [(2, 4, 9, 7)]),
    ("Conv2d", (4, 4, 3), {"padding": "same", "groups": 4, "bias": False}, [(2, 4, 5, 6)]),
    ("Conv2d", (2, 3, 3), {"padding": 1, "padding_mode": "reflect"}, [(2, 2, 5, 6)]),
    ("Conv3d", (2, 3, 2), {"padding": 1}, [(1, 2, 3, 4, 3)]),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1}, [(2, 4, 5)]),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}, [(2, 4, 5, 6)]),
    ("ConvTranspose3d", (2, 3, 2), {"stride": 2}, [(1, 2, 3, 2, 3)]),
    ("BatchNorm1d", (3,), {}, [(4, 3)]),
    ("BatchNorm1d", (3,), {"momentum": None}, [(4, 3, 5)]),
    ("BatchNorm2d", (3,), {"affine": False}, [(4, 3, 5, 6)]),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, [(4, 3, 5, 6)]),
    ("BatchNorm3d", (3,), {}, [(2, 3, 2, 3, 4)]),
    ("LayerNorm", (6,), {}, [(4, 5, 6)]),
    ("LayerNorm", ((5, 6),), {"bias": False}, [(4, 5, 6)]),
    ("RMSNorm", (6,), {}, [(4, 5, 6)]),
    ("GroupNorm", (2, 6), {}, [(3, 6, 4, 5)]),
    ("InstanceNorm1d", (3,), {"affine": True}, [(2, 3, 6)]),
    ("InstanceNorm2d", (3,), {"track_running_stats": True}, [(2, 3, 6, 5)]),
    ("InstanceNorm3d", (3,), {}, [(3, 2, 6, 5)]),
    ("LocalResponseNorm", (2,), {}, [(2, 4, 3)]),
    ("MaxPool1d", (3,), {"stride": 2}, [(2, 3, 9)]),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1}, [(2, 3, 8, 9)]),
    ("MaxPool3d", (2,), {}, [(2, 3, 4, 5, 4)]),
    ("AvgPool1d", (3,), {}, [(2, 3, 9)]),
    ("AvgPool2d", (2,), {"padding": 1, "count_include_pad": False}, [(2, 3, 8, 9)]),
    ("AvgPool3d", (2,), {}, [(2, 3, 4, 5, 4)]),
    ("AdaptiveAvgPool1d", (3,), {}, [(2, 3, 8)]),
    ("AdaptiveAvgPool2d", ((3, 2),), {}, [(2, 3, 8, 7)]),
    ("AdaptiveAvgPool3d", (2,), {}, [(2, 3, 4, 5, 4)]),
    ("AdaptiveMaxPool1d", (3,), {}, [(2, 3, 8)]),
    ("AdaptiveMaxPool2d", (2,), {}, [(2, 3, 8, 7)]),
    ("AdaptiveMaxPool3d", (2,), {}, [(2, 3, 4, 5, 4)]),
    ("LPPool1d", (2, 3), {}, [(2, 3, 9)]),
    ("LPPool2d", (2, 3), {"stride": 2}, [(2, 3, 9, 7)]),
    ("LPPool3d", (3, (1, 2, 2)), {}, [(2, 3, 2, 5, 4)]),
    *(
        (f"{kind}Pad{d}d", (1, 2.0) if kind == "Constant" else (1,), {}, [(1, 2, 3, 4, 5)[: 2 + d]])
        for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")
        for d in (1, 2, 3)
    ),
    ("ReflectionPad2d", ((1, 2, 0, 1),), {}, [(1, 2, 3, 4)]),
    ("Upsample", (), {"scale_factor": 2}, [(1, 2, 3, 4)]),
    ("UpsamplingNearest2d", (5,), {}, [(1, 2, 3, 4)]),
    ("UpsamplingBilinear2d", (), {"scale_factor": (2, 3)}, [(1, 2, 3, 4)]),
    ("PixelShuffle", (2,), {}, [(2, 8, 3, 4)]),
    ("PixelUnshuffle", (2,), {}, [(2, 3, 4, 6)]),
    ("ChannelShuffle", (2,), {}, [(2, 6, 3, 4)]),
    ("Unfold", (2,), {"padding": 1}, [(2, 3, 4, 5)]),
    ("Fold", ((4, 5), 2), {"stride": (2, 1)}, [(2, 12, 8)]),
    ("CosineSimilarity", (), {}, [(4, 5), (4, 5)]),
    ("PairwiseDistance", (), {"p": 1.0}, [(4, 5), (4, 5)]),
    *((f"{name}Dropout", (0.0,), {}, [(3, 4, 5, 6, 2)]) for name in ("", "Alpha", "FeatureAlpha")),
    ("Dropout3d", (0.0,), {}, [(3, 4, 5, 6, 2)]),
    ("Dropout1d", (0.0,), {}, [(3, 4, 5)]),
    ("Dropout2d", (0.0,), {}, [(3, 4, 5, 6)]),
    *(
        (name, (), {}, [(4, 5)])
        for name in """ReLU ReLU6 SELU SiLU Mish Hardswish Hardsigmoid Sigmoid Tanh LogSigmoid Softsign Tanhshrink GELU
        LeakyReLU PReLU ELU CELU Hardtanh Softplus Hardshrink Softshrink""".split()
    ),
    ("ReLU", (), {"inplace": True}, [(4, 5)]),
    ("GELU", (), {"approximate": "tanh"}, [(4, 5)]),
    ("PReLU", (3,), {}, [(4, 3, 2)]),
    ("LeakyReLU", (0.2, True), {}, [(4, 5)]),
    ("Threshold", (0.1, 20), {}, [(4, 5)]),
    ("GLU", (), {}, [(4, 6)]),
    *((name, (1,), {}, [(4, 5)]) for name in ("Softmax", "LogSoftmax", "Softmin")),
    ("Softmax2d", (), {}, [(2, 3, 4, 5)]),
]
# name, options, the inputs: x (6, 4) and 1 (6,) any numbers, p probabilities, c classes, s signs, v positive
LOSSES = [
    ("MSELoss", {}, "xx"),
    ("MSELoss", {"reduction": "sum"}, "xx"),
    ("MSELoss", {"size_average": False}, "xx"),
    ("L1Loss", {"reduction": "none"}, "xx"),
    ("SmoothL1Loss", {"beta": 0.5}, "xx"),
    ("HuberLoss", {"delta": 0.5}, "xx"),
    ("BCELoss", {}, "pp"),
    ("BCEWithLogitsLoss", {}, "xp"),
    ("KLDivLoss", {"reduction": "batchmean"}, "xp"),
    ("CrossEntropyLoss", {}, "xc"),
    ("CrossEntropyLoss", {"label_smoothing": 0.1, "ignore_index": 2}, "xc"),
    ("NLLLoss", {"reduction": "sum"}, "xc"),
    ("CosineEmbeddingLoss", {"margin": 0.2}, "xxs"),
    ("MarginRankingLoss", {"margin": 0.2}, "11s"),
    ("HingeEmbeddingLoss", {}, "1s"),
    ("TripletMarginLoss", {"swap": True}, "xxx"),
    ("MultiMarginLoss", {"p": 2}, "xc"),
    ("MultiLabelSoftMarginLoss", {}, "xp"),
    ("SoftMarginLoss", {}, "1s"),
    ("PoissonNLLLoss", {"full": True}, "xv"),
    ("GaussianNLLLoss", {"full": True}, "xxv"),
]


def convert(torch_tensor):
    return zoo.tensor(torch_tensor.detach().numpy().copy())


def close(ours, theirs, tolerance=1e-9):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


def pair(torch, name, args, options):
    """The same module in both libraries, with torch's weights, in float64."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **options)
    for p in theirs.parameters():
        p.data.normal_()
    ours = getattr(nn, name)(*args, **options).double()
    theirs = theirs.double()
    print(ours.load_state_dict({k: convert(v) for k, v in theirs.state_dict().items()}))
    return ours, theirs


@pytest.mark.torch
@pytest.mark.parametrize("name, args, options, shapes", LAYERS, ids=[f"{n}-{k}" for k, (n, *_) in enumerate(LAYERS)])
def test_layers_are_torchs(name, args, options, shapes, rng):
    """repr, keys, output and all gradients in training, the buffers afterwards, and the output in eval mode."""
    torch = pytest.importorskip("torch")
    ours, theirs = pair(torch, name, args, options)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    arrays = [rng.normal(size=s) for s in shapes]
    xs, ts = [zoo.tensor(a).requires_grad_() for a in arrays], [torch.tensor(a, requires_grad=True) for a in arrays]
    outs = [f(*(v.clone() for v in values)) for f, values in ((ours, xs), (theirs, ts))]
    close(*outs)
    dy = rng.normal(size=outs[1].shape)
    outs[0].backward(zoo.tensor(dy))
    outs[1].backward(torch.tensor(dy))
    for x, t in zip((*xs, *ours.parameters()), (*ts, *theirs.parameters()), strict=True):
        close(x.grad, t.grad, 1e-8)
    for (key, b), (other, c) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        assert key == other
        close(b, c)
    close(ours.eval()(*(x.detach().clone() for x in xs)), theirs.eval()(*(t.detach().clone() for t in ts)))


@pytest.mark.torch
@pytest.mark.parametrize("name, options, kinds", LOSSES, ids=[f"{n}-{k}" for k, (n, *_) in enumerate(LOSSES)])
def test_losses_are_torchs(name, options, kinds, rng):
    torch = pytest.importorskip("torch")
    draw = {
        "x": lambda: rng.normal(size=(6, 4)),
        "1": lambda: rng.normal(size=6),
        "p": lambda: rng.uniform(0.1, 0.9, size=(6, 4)),
        "c": lambda: rng.integers(0, 4, 6),
        "s": lambda: rng.choice([-1, 1], 6),
        "v": lambda: rng.uniform(1, 3, size=(6, 4)),
    }
    arrays = [draw[kind]() for kind in kinds]
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch's, about size_average
        for lib in (zoo, torch):
            first, *rest = (lib.tensor(a) for a in arrays)
            first.requires_grad_()
            loss = getattr(lib.nn, name)(**options)(first, *rest)
            loss.sum().backward()
            results.append((loss, first.grad))
    for ours, theirs in zip(*results, strict=True):
        close(ours, theirs)


def test_unpooling(rng):
    x = zoo.tensor(rng.normal(size=(2, 3, 4, 6)))
    values, places = nn.MaxPool2d(2, return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(values, places)
    np.testing.assert_array_equal(back.numpy(), np.where(np.isin(x.numpy(), values.numpy()), x.numpy(), 0))


def test_in_place_functions():
    x = zoo.tensor([-1.0, 2.0])
    assert nn.functional.leaky_relu_(x, 0.5) is x and x.tolist() == [-0.5, 2.0]
    assert nn.functional.relu_(x) is x and x.tolist() == [0, 2]
    with pytest.raises(AttributeError, match="no function 'relo'"):
        nn.functional.relo(x)


def test_embedding(rng):
    layer = nn.Embedding(5, 3, padding_idx=-1)
    assert repr(layer) == "Embedding(5, 3, padding_idx=4)"
    index = zoo.tensor([[0, 4], [1, 0]])
    out = layer(index)
    np.testing.assert_array_equal(out.detach().numpy(), layer.weight.detach().numpy()[index.numpy()])
    out.sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy()[:, 0], [2, 1, 0, 0, 0])
    assert not layer.weight[4].any()
    frozen = nn.Embedding.from_pretrained(zoo.ones(2, 3))
    assert not frozen.weight.requires_grad and frozen.weight.shape == (2, 3)


# -- Module


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.ReLU()])
        self.scale = nn.Parameter(zoo.ones(1))
        self.register_buffer("seen", zoo.zeros(()))
        self.register_buffer("scratch", zoo.zeros(2), persistent=False)
        self.shared = self.blocks[0]
        self.nothing = None

    def forward(self, x):
        return self.blocks[1](self.blocks[0](self.norm(self.first(x)))) * self.scale


NAMES = ["scale", "first.weight", "first.bias", "norm.weight", "norm.bias", "blocks.0.weight", "blocks.0.bias"]


def test_walking():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == NAMES
    assert [n for n, _ in net.named_buffers()] == [
        "seen",
        "scratch",
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    ]
    assert [n for n, _ in net.named_modules()] == ["", "first", "norm", "blocks", "blocks.0", "blocks.1"]
    assert [n for n, _ in net.named_children()] == ["first", "norm", "blocks", "shared"]
    assert "scratch" not in net.state_dict() and "shared.weight" in net.state_dict()
    assert net.get_submodule("blocks.1") is net.blocks[1] and net.get_parameter("first.bias") is net.first.bias
    assert net.get_buffer("norm.running_var") is net.norm.running_var
    with pytest.raises(AttributeError, match="no module 'block'"):
        net.get_submodule("block.1")


def test_attributes():
    net = Net()
    with pytest.raises(TypeError, match="scale.*Parameter or None, got Tensor"):
        net.scale = zoo.ones(1)
    with pytest.raises(TypeError, match="first.*Module or None, got int"):
        net.first = 3
    net.first = None
    assert net.first is None and "first.weight" not in net.state_dict()
    net.seen = nn.Parameter(zoo.ones(1))  # a buffer becomes a parameter
    assert "seen" in dict(net.named_parameters()) and "seen" not in dict(net.named_buffers())
    del net.scale
    assert not hasattr(net, "scale") and "scale" not in net._parameters
    net._parameters["scale"] = nn.Parameter(zoo.ones(2))  # torch users reach into the dicts
    assert net.scale.shape == (2,) and list(net._modules) == ["first", "norm", "blocks", "shared"]
    net.extra = nn.Buffer(zoo.ones(1))
    assert "extra" in net.state_dict()

    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="super"):
        Early()
    with pytest.raises(KeyError, match="already exists"):
        net.register_buffer("forward", None)
    with pytest.raises(KeyError, match='contain "."'):
        net.add_module("a.b", nn.ReLU())
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()()


def test_moving_and_modes():
    net = Net()
    parameter = net.first.weight
    net.double()
    assert net.first.weight is parameter and parameter.dtype == zoo.float64
    assert net.norm.num_batches_tracked.dtype == zoo.int64
    assert net.to(zoo.float16).norm.running_mean.dtype == zoo.float16
    assert not net.eval().norm.training and net.train().norm.training
    with pytest.raises(TypeError, match="Net.to.*floating.*int32"):
        net.to(zoo.int32)
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    calls = []
    net.apply(lambda m: calls.append(type(m).__name__))
    assert calls == ["Linear", "BatchNorm1d", "Linear", "ReLU", "ModuleList", "Linear", "Net"]


def test_copies_are_independent(rng):
    net = Net()
    other, again = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
    x = zoo.tensor(rng.normal(size=(5, 3)).astype(np.float32))
    for copied in (other, again):
        np.testing.assert_array_equal(net.eval()(x).detach().numpy(), copied.eval()(x).detach().numpy())
        assert copied.shared is copied.blocks[0]
        with zoo.no_grad():
            copied.scale.add_(1)
        assert net.scale.item() == 1 and isinstance(copied.scale, nn.Parameter)


def test_load_state_dict_error_is_a_table():
    net = Net()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    state = net.state_dict()
    state["first.wieght"] = state.pop("first.weight")
    state["module.norm.bias"] = state.pop("norm.bias")
    state["scale"] = zoo.full((2,), 5.0)
    state["first.bias"] = zoo.full((4,), 7.0)
    with pytest.raises(StateDictError) as caught:
        net.load_state_dict(state)
    rows = str(caught.value).split("\n")
    assert "for Net: 2 missing, 2 unexpected, 1 mismatched" in rows[0]
    assert [row.split() for row in rows[1:]] == [
        "first.weight missing nearest in the state_dict: first.wieght".split(),
        "norm.bias missing nearest in the state_dict: module.norm.bias".split(),
        "first.wieght unexpected nearest in the module: first.weight".split(),
        "module.norm.bias unexpected nearest in the module: norm.bias".split(),
        "scale mismatched wants (1,), got (2,)".split(),
    ]
    for key, value in net.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[key].numpy())
    assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, ValueError)
    with pytest.raises(StateDictError, match="0 missing, 0 unexpected, 1 mismatched"):
        net.load_state_dict(state, strict=False)
    del state["scale"]
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["scale", "first.weight", "norm.bias"]
    assert result.unexpected_keys == ["first.wieght", "module.norm.bias"]
    assert net.first.bias[0].item() == 7
    assert str(net.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
    with pytest.raises(TypeError, match="dict of tensors, got list"):
        net.load_state_dict([])


def test_load_by_assignment():
    net = nn.Linear(2, 2)
    weight = zoo.ones(2, 2)
    net.load_state_dict({"weight": weight, "bias": zoo.zeros(2)}, assign=True)
    weight[0, 0] = 5
    assert net.weight[0, 0].item() == 5 and isinstance(net.weight, nn.Parameter) and net.weight.requires_grad


def test_zero_grad():
    layer = nn.Linear(2, 1)
    layer(zoo.ones(1, 2)).sum().backward()
    held = layer.weight.grad
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.numpy().tolist() == [[0, 0]] == held.numpy().tolist()
    layer.zero_grad()
    assert layer.weight.grad is None


# -- containers


def test_sequential():
    s = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    s.append(nn.Linear(3, 1)).insert(0, nn.Identity())
    assert [type(m).__name__ for m in s] == ["Identity", "Linear", "ReLU", "Linear"]
    assert list(s.state_dict()) == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert isinstance(s[1:3], nn.Sequential) and len(s[1:3]) == 2 and s[-1] is s[3]
    del s[0]
    assert list(s.state_dict())[0] == "0.weight" and len(s) == 3
    with pytest.raises(IndexError, match=r"Sequential.*\[-3, 2\], got 3"):
        s[3]
    named = nn.Sequential({"a": nn.Linear(2, 2), "b": nn.ReLU()})
    assert list(named.state_dict()) == ["a.weight", "a.bias"] and named.a is named[0]
    assert len(s + named) == 5


@pytest.mark.torch
def test_containers_print_as_torchs():
    torch = pytest.importorskip("torch")

    def build(n):
        return n.Sequential(
            n.ModuleList([n.Linear(1, 2), n.Sequential()]), n.ModuleDict({"a": n.ReLU(), "b": n.Conv2d(1, 2, 3)})
        )

    assert repr(build(nn)) == repr(build(torch.nn))


def test_lists_and_dicts():
    modules = nn.ModuleDict({"a": nn.Linear(1, 1)})
    modules["b"] = nn.ReLU()
    assert list(modules) == ["a", "b"] and "a" in modules and len(modules) == 2
    assert isinstance(modules.pop("b"), nn.ReLU) and list(modules.keys()) == ["a"]
    parameters = nn.ParameterList([zoo.ones(2), nn.Parameter(zoo.ones(3))])
    parameters.append(zoo.ones(1))
    assert [p.shape for p in parameters] == [(2,), (3,), (1,)] and len(list(parameters.parameters())) == 3
    table = nn.ParameterDict({"w": zoo.ones(2)})
    table["v"] = zoo.ones(1)
    assert list(table.state_dict()) == ["w", "v"] and isinstance(table["v"], nn.Parameter)
    with pytest.raises(IndexError, match="ParameterList"):
        parameters[3]


# -- hooks


def test_forward_hooks():
    layer, seen = nn.Linear(2, 2), []
    x = zoo.ones(1, 2)
    plain = layer(x)
    handles = [
        layer.register_forward_pre_hook(lambda m, args: seen.append("pre") or (args[0] * 2,)),
        layer.register_forward_hook(lambda m, args, out: seen.append("post") or out + 1),
        layer.register_forward_hook(lambda m, args, kwargs, out: seen.append("first"), prepend=True, with_kwargs=True),
    ]
    np.testing.assert_allclose(
        layer(x).detach().numpy(), ((plain - layer.bias) * 2 + layer.bias + 1).detach().numpy(), rtol=1e-6
    )
    assert seen == ["pre", "first", "post"]
    for handle in handles:
        handle.remove()
    np.testing.assert_array_equal(layer(x).detach().numpy(), plain.detach().numpy())


@pytest.mark.torch
@pytest.mark.parametrize("input_wants", [True, False])
@pytest.mark.filterwarnings("ignore:Full backward hook is firing")  # torch's, where no input wants a gradient
def test_backward_hooks_are_torchs(input_wants, rng):
    """The same gradients are seen, and a returned one takes the input's place."""
    torch = pytest.importorskip("torch")
    weight, a = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    results = []
    for lib in (zoo, torch):
        layer, seen = lib.nn.Linear(2, 3).double(), []
        with lib.no_grad():
            layer.weight.copy_(lib.tensor(weight))
        layer.register_full_backward_pre_hook(lambda m, dy: (dy[0] * 3,))

        def hook(module, dx, dy, seen=seen):
            seen.append([None if g is None else np.array(g.detach().numpy()) for g in (*dx, *dy)])
            return None if dx[0] is None else (dx[0] * 2,)

        layer.register_full_backward_hook(hook)
        x = lib.tensor(a)
        if input_wants:
            x.requires_grad_()
        layer(x).sum().backward()
        results.append((seen, x.grad, layer.weight.grad))
    (ours, dx, dw), (theirs, dx2, dw2) = results
    assert len(ours) == len(theirs) == 1
    for g, h in zip(ours[0], theirs[0], strict=True):
        assert (g is None) == (h is None)
        if g is not None:
            np.testing.assert_allclose(g, h)
    close(dw, dw2)
    if input_wants:
        close(dx, dx2)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: nn.Linear(3, 2)(zoo.ones(4, 5)), ValueError, r"linear.*\(4, 5\).*\(2, 3\)"),
        (lambda: nn.Conv2d(4, 6, 3, groups=3), ValueError, "Conv2d.*groups.*3"),
        (lambda: nn.Conv2d(4, 6, 3, stride=2, padding="same"), ValueError, "Conv2d.*stride 1"),
        (lambda: nn.Conv2d(4, 6, 3, padding_mode="mirror"), ValueError, "Conv2d.*'mirror'"),
        (lambda: nn.BatchNorm2d(3)(zoo.ones(2, 3)), ValueError, r"BatchNorm2d.*\(N, C, H, W\), got \(2, 3\)"),
        (lambda: nn.GroupNorm(4, 6), ValueError, "GroupNorm.*6, got 4"),
        (lambda: nn.Dropout(1.5), ValueError, "Dropout.*1.5"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), ValueError, "Embedding.*padding_idx.*3"),
        (lambda: nn.Embedding(3, 2)(zoo.tensor([3])), IndexError, "embedding"),
        (lambda: nn.Parameter(zoo.tensor([1])), TypeError, "floating"),
        (lambda: nn.Sequential(3), TypeError, "Module or None.*int"),
    ],
)
def test_wrong_arguments(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
