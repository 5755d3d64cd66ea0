"""Every model against torchvision's with the same weights: keys, logits, gradients, running statistics, initialisation.

The CIFAR ResNets, which torchvision does not have, are compared with a torch module of the same layout, below.
"""

import copy
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import zoo
from zoo import models
from zoo.models.registry import ENTRIES
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.init import skip_init

pytestmark = pytest.mark.torch

CIFAR = {f"resnet{6 * n + 2}": n for n in (1, 2, 3, 5, 7, 9, 18)}
NAMES = sorted(n for n, e in ENTRIES.items() if e.family in ("alexnet", "vgg", "resnet", "resnet_cifar"))
NATIVE = {"alexnet": (224, 224), "vgg": (224, 224), "resnet": (224, 224), "resnet_cifar": (32, 32)}
ODD = {"alexnet": (95, 71), "vgg": (65, 47), "resnet": (97, 65), "resnet_cifar": (33, 29)}
# Gradients in float64 are slow: all models at a small size, and one model of each kind of layer at the native one too.
SMALL = {"alexnet": (71, 63), "vgg": (33, 64), "resnet": (65, 65), "resnet_cifar": (17, 15)}
ALSO_NATIVE = ("alexnet", "resnet18", "resnext50_32x4d", *CIFAR)
# The largest of each family: the same code at more layers, minutes and gigabytes. `pytest -m long` runs them.
LONG = {"vgg11", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn", "resnet152", "resnext101_32x8d",
        "resnext101_64x4d", "wide_resnet101_2"}
LABEL = np.array([1, 7])
GRADIENT_FLOOR = 1e-4


def cifar_in_torch(resnet, blocks):
    """He et al., 2015, section 4.2, with the blocks of torchvision's module `resnet`."""
    import torch

    def stage(inplanes, planes, stride):
        downsample = None
        if stride != 1:
            downsample = torch.nn.Sequential(resnet.conv1x1(inplanes, planes, stride), torch.nn.BatchNorm2d(planes))
        rest = (resnet.BasicBlock(planes, planes) for _ in range(blocks - 1))
        return torch.nn.Sequential(resnet.BasicBlock(inplanes, planes, stride, downsample), *rest)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = torch.nn.Conv2d(3, 16, 3, padding=1, bias=False)
            self.bn1, self.relu = torch.nn.BatchNorm2d(16), torch.nn.ReLU()
            self.layer1, self.layer2, self.layer3 = stage(16, 16, 1), stage(16, 32, 2), stage(32, 64, 2)
            self.avgpool, self.fc = torch.nn.AdaptiveAvgPool2d(1), torch.nn.Linear(64, 10)
            for module in self.modules():
                if isinstance(module, torch.nn.Conv2d):
                    torch.nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

        def forward(self, x):
            x = self.layer3(self.layer2(self.layer1(self.relu(self.bn1(self.conv1(x))))))
            return self.fc(self.avgpool(x).flatten(1))

    return Net()


def torchs(torchvision, name, **options):
    """torchvision's model of this name with its own initialisation."""
    import torch

    torch.manual_seed(len(name))
    if name in CIFAR:
        return cifar_in_torch(torchvision.models.resnet, CIFAR[name])
    return torchvision.models.get_model(name, **options)


def without_dropout(model):
    """The two libraries draw different masks: both without."""
    for module in model.modules():
        if type(module).__name__ == "Dropout":
            module.p = 0.0
    return model


@pytest.fixture(scope="module", params=[pytest.param(n, marks=[pytest.mark.long] * (n in LONG)) for n in NAMES])
def pair(request, torchvision):
    """torch's model and ours with the same weights; batch norms as a trained model has them, not all 0 and 1."""
    import torch

    theirs = without_dropout(torchs(torchvision, request.param))
    with torch.no_grad():
        for module in theirs.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                for tensor in (module.weight, module.running_var):
                    tensor.uniform_(0.5, 1.5)
                for tensor in (module.bias, module.running_mean):
                    tensor.normal_(0, 0.1)
    with skip_init():
        ours = without_dropout(models.create(request.param))
    ours.load_state_dict({k: zoo.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    return SimpleNamespace(name=request.param, family=ENTRIES[request.param].family, theirs=theirs, ours=ours)


def picture(rng, batch, size, dtype=np.float32):
    return rng.normal(size=(batch, 3, *size)).astype(dtype)


def test_state_dict_is_torchvisions(pair):
    """Keys in the same order, shapes, dtypes; and the modules have the same names."""
    theirs, ours = pair.theirs.state_dict(), pair.ours.state_dict()
    assert list(ours) == list(theirs)
    assert [v.shape for v in ours.values()] == [tuple(v.shape) for v in theirs.values()]
    assert [str(v.dtype) for v in ours.values()] == [str(v.dtype).removeprefix("torch.") for v in theirs.values()]
    assert [n for n, _ in pair.ours.named_modules()] == [n for n, _ in pair.theirs.named_modules()]


@pytest.mark.parametrize("sizes", [NATIVE, ODD], ids=["native", "odd"])
def test_logits_in_float32(pair, sizes, rng):
    import torch

    x = picture(rng, 1, sizes[pair.family])
    with torch.no_grad(), zoo.no_grad():
        wanted = pair.theirs.eval()(torch.from_numpy(x)).numpy()
        got = pair.ours.eval()(zoo.from_numpy(x)).numpy()
    assert largest(got - wanted) <= 1e-4 * largest(wanted)


def step(model, x, label, train):
    """Logits, gradients and buffers after one forward and backward pass of either library."""
    if isinstance(model, zoo.nn.Module):
        tensor, cross_entropy = zoo.from_numpy, F.cross_entropy
    else:
        import torch

        tensor, cross_entropy = torch.from_numpy, torch.nn.functional.cross_entropy
    x = tensor(x).requires_grad_()
    model.train(train).zero_grad()
    logits = model(x)
    cross_entropy(logits, tensor(label)).backward()
    gradients = {n: p.grad.numpy() for n, p in model.named_parameters()} | {"input": x.grad.numpy()}
    model.zero_grad()
    return {"logits": logits.detach().numpy()}, gradients, {n: b.numpy() for n, b in model.named_buffers()}


def largest(array):
    return float(abs(array).max(initial=0))


def assert_close(got, wanted, floor=0.0):
    """Each array within 1e-9 of its own largest value, or of `floor` if that is more."""
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        assert largest(got[name] - value) <= 1e-9 * max(largest(value), floor), name


def assert_same_step(pair, x, train):
    wanted, got = (step(m, x, LABEL, train) for m in (pair.theirs, pair.ours))
    assert_close(got[0], wanted[0])
    # A convolution's bias that batch norm takes away again has gradient 0: both libraries give its rounding.
    assert_close(got[1], wanted[1], floor=1e-5 * max(map(largest, wanted[1].values())))
    assert_close(got[2], wanted[2])


@pytest.mark.slow
def test_float64_within_1e_9(pair, rng):
    """Logits, all gradients and running statistics, evaluating and training."""
    sizes = [SMALL[pair.family], *([NATIVE[pair.family]] if pair.name in ALSO_NATIVE else [])]
    try:
        pair.theirs.double()
        pair.ours.double()
        for size, train in itertools.product(sizes, (False, True)):
            assert_same_step(pair, picture(rng, 2, size, np.float64), train)
    finally:
        pair.theirs.float()
        pair.ours.float()


def distance(got, wanted):
    """The largest relative error of any array."""
    return max(largest(got[n] - v) / largest(v) for n, v in wanted.items())


@pytest.mark.slow
def test_float32_gradients_are_as_good_as_torchs(pair):
    """At most 5 times as far from the float64 gradients as torch's own, and 1e-4 at most where torch is nearer.

    A relu or a max pool whose input is within float32's rounding of a tie takes the other branch than in float64, in
    torch as in zoo, each at its own pictures; a single one shows as 1e-3 to 1e-2. So up to 8 pictures are tried, and
    for either library the nearest counts: an error of the arithmetic would be there in all of them.
    """
    exact = copy.deepcopy(pair.theirs).double()
    far = near = np.inf
    for seed in range(8):
        x = picture(np.random.default_rng(seed), 1, SMALL[pair.family])
        wanted = step(exact, x.astype(np.float64), LABEL[:1], False)[1]
        far = min(far, distance(step(pair.theirs, x, LABEL[:1], False)[1], wanted))
        near = min(near, distance(step(pair.ours, x, LABEL[:1], False)[1], wanted))
        if near <= GRADIENT_FLOOR:
            break
    assert near <= max(5 * far, GRADIENT_FLOOR)


# -- initialisation, features, published counts


def spread(values):
    """Mean, standard deviation, and the median of the absolute values: that tells uniform from normal."""
    return np.array([values.mean(), values.std(), np.median(abs(values))])


@pytest.mark.parametrize("name", ["alexnet", "vgg11_bn", "resnet18", "resnext50_32x4d", "wide_resnet50_2", "resnet20"])
def test_initialisation_has_torchvisions_distribution(name, torchvision):
    """Constants are equal; of drawn weights mean, spread and kind agree within 5 errors of the two samples."""
    zoo.manual_seed(0)
    theirs, ours = torchs(torchvision, name).state_dict(), models.create(name).state_dict()
    for key, value in theirs.items():
        a, b = (x.ravel()[:1_000_000] for x in (ours[key].numpy(), value.numpy()))
        if (b == b[0]).all():
            assert (a == b).all(), key
        elif a.size > 100:
            # The error of each of the three is at most 1.3 std / sqrt(n) for both distributions; of two samples, 2.
            assert largest(spread(a) - spread(b)) <= 5 * 2 * b.std() / a.size**0.5, key
        else:
            assert abs(a).max() <= 5 * abs(b).max(), key


def test_zero_init_residual_and_dilation_as_torchvision(torchvision, rng):
    """The constructor's further arguments: which weights start at 0, and the numbers of a dilated network."""
    import torch

    options = {"zero_init_residual": True, "replace_stride_with_dilation": [False, True, True], "num_classes": 5}
    theirs, ours = torchs(torchvision, "resnet50", **options), models.resnet50(**options)
    zeros = [k for k, v in theirs.state_dict().items() if k.endswith("weight") and not v.any()]
    assert zeros == [k for k, v in ours.state_dict().items() if k.endswith("weight") and not v.any()] and zeros
    ours.load_state_dict({k: zoo.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    x = picture(rng, 1, (65, 49))
    with torch.no_grad(), zoo.no_grad():
        wanted, got = theirs.eval()(torch.from_numpy(x)).numpy(), ours.eval()(zoo.from_numpy(x))
        assert ours.forward_features(zoo.from_numpy(x)).shape == (1, 2048, 9, 7)
    assert largest(got.numpy() - wanted) <= 1e-4 * largest(wanted)
    assert ours.feature_info.reduction() == [2, 4, 8, 8, 8]


@pytest.mark.parametrize("name", ["resnet18", "resnext50_32x4d", "vgg11_bn"])
def test_features_are_timms(name, torchvision, rng):
    """The pyramid's maps, channels and reductions, with the same weights."""
    import torch

    timm = pytest.importorskip("timm")
    theirs, ours = timm.create_model(name, features_only=True).eval(), models.create(name, features_only=True).eval()
    state = {k.removeprefix("backbone.").replace("features.", "features_"): k for k in ours.state_dict()}
    theirs_state = theirs.state_dict()
    ours.load_state_dict({state[k]: zoo.from_numpy(v.numpy()) for k, v in theirs_state.items()})
    assert ours.feature_info.channels() == theirs.feature_info.channels()
    assert ours.feature_info.reduction() == theirs.feature_info.reduction()
    x = picture(rng, 1, (65, 97))
    with torch.no_grad(), zoo.no_grad():
        for a, b in zip(ours(zoo.from_numpy(x)), theirs(torch.from_numpy(x)), strict=True):
            assert largest(a.numpy() - b.numpy()) <= 1e-4 * largest(b.numpy())


@pytest.mark.parametrize("name", [n for n in NAMES if n not in CIFAR])
def test_summary_has_the_published_counts(name, torchvision):
    """Parameters exactly, multiply-adds to the last published digit (three behind the point, in 10^9)."""
    with skip_init():
        model = models.create(name)
    ours = models.summary(model, (1, 3, 224, 224))
    for weights in torchvision.models.get_model_weights(name):
        assert ours.parameters == weights.meta["num_params"]
        assert round(ours.mult_adds / 1e9, 3) == weights.meta["_ops"]
