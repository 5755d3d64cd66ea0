"""The models by name, their classifier and first convolution, feature pyramids, summaries, building without values."""

import threading
import time

import numpy as np
import pytest

import zoo
from zoo import models
from zoo.models.base import adapt_in_chans
from zoo.models.registry import ENTRIES
from zoo.nn.init import skip_init
from zoo.ops.errors import ShapeError

FAMILIES = {
    "alexnet": ["alexnet"],
    "resnet": [f"resnet{n}" for n in (18, 34, 50, 101, 152)]
    + ["resnext50_32x4d", "resnext101_32x8d", "resnext101_64x4d", "wide_resnet50_2", "wide_resnet101_2"],
    "resnet_cifar": [f"resnet{n}" for n in (8, 14, 20, 32, 44, 56, 110)],
    "vgg": [f"vgg{n}{bn}" for n in (11, 13, 16, 19) for bn in ("", "_bn")],
}
IMAGE_MODELS = [(family, name) for family, found in FAMILIES.items() for name in found]
SMALLEST = {"alexnet": 63, "vgg": 32, "resnet": 33, "resnet_cifar": 8}  # sides at which every stage has a pixel


@pytest.fixture
def tiny():
    """A ResNet that builds and runs in no time."""
    return models.CifarResNet(1, num_classes=4, width=4)


# -- names


@pytest.mark.parametrize("family", FAMILIES)
def test_every_model_is_there(family):
    """On the list, in its family, and as a function of zoo.models, as torchvision has them."""
    assert sorted(FAMILIES[family]) == sorted(n for n, e in ENTRIES.items() if e.family == family)
    for name in FAMILIES[family]:
        assert getattr(models, name) is models.get_model_builder(name) and name in models.names()


def test_patterns():
    assert models.names("resnext*") == ["resnext101_32x8d", "resnext101_64x4d", "resnext50_32x4d"]
    assert models.list_models(include=["vgg1?", "alex*"], exclude=("vgg13", "*9")) == ["alexnet", "vgg11", "vgg16"]
    assert models.list_models(models.vgg) == sorted(FAMILIES["vgg"]) and models.names("no such*") == []


@pytest.mark.parametrize("bad, near", [("resnt50", "resnet50"), ("VGG16bn", "vgg16_bn"), ("alex", "alexnet")])
def test_a_bad_name_suggests_the_nearest(bad, near):
    with pytest.raises(ValueError, match=f"{bad}.*{near}"):
        models.create(bad)


def test_a_duplicate_name_raises():
    def resnet18(**options):
        raise AssertionError("never built")

    before = ENTRIES["resnet18"]
    with pytest.raises(ValueError, match="'resnet18', which zoo.models.resnet has"):
        models.register(resnet18)
    assert ENTRIES["resnet18"] is before


def test_builders_load_no_weights():
    assert models.resnet20(weights=None).num_classes == 10
    with pytest.raises(ValueError, match=r"'DEFAULT'.*use zoo\.hub\.load\(.resnet20.,"):
        models.resnet20(weights="DEFAULT")
    with pytest.raises(TypeError, match="no_such_option"):
        models.create("resnet20", no_such_option=1)


# -- every model's own words about itself


@pytest.mark.parametrize("family, name", IMAGE_MODELS)
def test_options_and_stages(family, name):
    """num_classes, in_chans, first_conv, classifier_name; feature_info is what the pyramid gives."""
    side = SMALLEST[family]
    with skip_init():
        model = models.create(name, num_classes=7, in_chans=2)
    first, last = model.get_submodule(model.first_conv), model.get_classifier()
    assert first.weight.shape[1] == 2 and model.state_dict()[f"{model.first_conv}.weight"].shape == first.weight.shape
    assert last is model.get_submodule(model.classifier_name) and last.weight.shape == (7, model.num_features)
    pyramid, x = models.FeaturePyramid(model).eval(), zoo.zeros(1, 2, side, side)
    with zoo.no_grad():
        maps, deepest = pyramid(x), model.forward_features(x)
    assert [y.shape[1] for y in maps] == model.feature_info.channels()
    for stage, y in zip(model.feature_info, maps, strict=True):
        assert abs(side / stage.reduction - y.shape[2]) < 2
        assert isinstance(model.get_submodule(stage.module), zoo.nn.Module)
    assert maps[-1].shape == deepest.shape


@pytest.mark.parametrize("name, side", [("resnet20", 16), ("resnet18", 33), ("alexnet", 63)])
def test_stages_are_the_outputs_of_their_modules(name, side):
    """What a forward hook on each named module sees (first, where it is called twice) is what the pyramid returns."""
    with skip_init():
        pyramid = models.create(name, features_only=True).eval()
    seen = {}
    for path in pyramid.feature_info.module_name():
        module = pyramid.backbone.get_submodule(path)
        module.register_forward_hook(lambda module, args, out, path=path: seen.setdefault(path, out))
    with zoo.no_grad():
        maps = pyramid(zoo.zeros(1, 3, side, side))
    assert len(maps) == len(seen)
    assert all(seen[path] is y for path, y in zip(pyramid.feature_info.module_name(), maps, strict=True))


def test_pyramids_of_some_stages():
    pyramid = models.create("resnet20", features_only=True, out_indices=(-3, 0)).eval()
    assert pyramid.feature_info.module_name() == ["relu", "layer1"]
    ran = []
    pyramid.backbone.layer2.register_forward_hook(lambda *_: ran.append(1))
    assert [y.shape for y in pyramid(zoo.ones(1, 3, 8, 8))] == [(1, 16, 8, 8)] * 2 and not ran
    assert not any("fc" in name for name, _ in pyramid.named_parameters())
    for bad in ((4,), (-5,), ()):
        with pytest.raises(ValueError, match="out_indices from -4 to 3"):
            models.resnet20(features_only=True, out_indices=bad)
    with pytest.raises(ValueError, match="features_only=True with out_indices"):
        models.resnet20(out_indices=(1,))
    with pytest.raises(TypeError, match="named stages, got Linear"):
        models.FeaturePyramid(zoo.nn.Linear(2, 2))


def test_reset_classifier(tiny):
    """Another number of classes, or none; dtype and mode are the model's; VGG's is drawn as VGG draws."""
    tiny.double().eval().reset_classifier(9)
    assert tiny.fc.weight.shape == (9, 16) and tiny.fc.weight.dtype == zoo.float64 and not tiny.fc.training
    assert tiny(zoo.ones(2, 3, 8, 8, dtype=zoo.float64)).shape == (2, 9) and tiny.num_classes == 9
    tiny.reset_classifier(0)
    assert tiny(zoo.ones(2, 3, 8, 8, dtype=zoo.float64)).shape == (2, 16)
    with pytest.raises(ValueError, match="reset_classifier: wants num_classes of at least 0, got -1"):
        tiny.reset_classifier(-1)
    with skip_init():
        vgg = models.vgg11()
    vgg.reset_classifier(500)
    assert vgg.classifier[6].weight.shape == (500, 4096) and abs(vgg.classifier[6].weight.std().item() - 0.01) < 1e-4
    assert not vgg.classifier[6].bias.any()


# -- the first convolution on other than three channels


@pytest.mark.parametrize("in_chans", [1, 2, 3, 4, 7])
def test_adapt_in_chans(in_chans, rng):
    """Equal channels give what they gave as RGB, where n is 1 or a multiple of 3; the definition otherwise."""
    weight = rng.normal(size=(5, 3, 2, 2)).astype(np.float32)
    got = adapt_in_chans(zoo.tensor(weight), in_chans).numpy()
    wanted = weight.sum(1, keepdims=True) if in_chans == 1 else weight[:, np.arange(in_chans) % 3] * (3 / in_chans)
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


def test_a_grey_picture_gives_the_logits_of_its_rgb(tiny, rng):
    grey = models.CifarResNet(1, num_classes=4, in_chans=1, width=4)
    state = dict(tiny.state_dict())
    state["conv1.weight"] = adapt_in_chans(state["conv1.weight"], 1)
    grey.load_state_dict(state)
    x = zoo.tensor(rng.normal(size=(2, 1, 8, 8)).astype(np.float32))
    wanted = tiny.eval()(x.expand(2, 3, 8, 8)).detach().numpy()
    np.testing.assert_allclose(grey.eval()(x).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_wrong_channels_are_named():
    with pytest.raises(ShapeError, match=r"adapt_in_chans: wants a weight \(out_channels, 3, KH, KW\), got \(4, 2, 3"):
        adapt_in_chans(zoo.ones(4, 2, 3, 3), 1)
    for name in ("resnet20", "resnet18", "alexnet", "vgg11"):
        with pytest.raises(ValueError, match="wants in_chans of at least 1, got 0"):
            models.create(name, in_chans=0)


# -- ResNet's further arguments


def test_resnet_arguments(tiny):
    with pytest.raises(ValueError, match="replace_stride_with_dilation of three items, got"):
        models.resnet18(replace_stride_with_dilation=[True])
    with pytest.raises(ValueError, match="BasicBlock: wants groups=1.*got groups=2"):
        models.resnet18(groups=2)
    with pytest.raises(ValueError, match="BasicBlock.*dilation=2"):
        models.resnet18(replace_stride_with_dilation=[False, False, True])
    grouped = models.resnet18(norm_layer=lambda channels: zoo.nn.GroupNorm(8, channels), zero_init_residual=True)
    assert isinstance(grouped.layer4[0].downsample[1], zoo.nn.GroupNorm) and not grouped.layer1[0].bn2.weight.any()
    assert grouped.layer1[0].bn1.weight.all()


def test_vgg_without_its_initialisation(monkeypatch):
    """init_weights=False keeps the layers' own: uniform weights of 1 / sqrt(fan_in), biases that are not 0.

    Only the last layer is looked at; 120 million numbers for the two before it would take seconds.
    """
    reset = zoo.nn.Linear.reset_parameters

    def reset_last(layer):
        if layer.out_features == 5:
            reset(layer)

    monkeypatch.setattr(zoo.nn.Linear, "reset_parameters", reset_last)
    net = models.VGG(zoo.nn.Sequential(zoo.nn.Conv2d(3, 512, 3)), 5, init_weights=False)
    assert net.classifier[6].bias.all() and abs(net.classifier[6].weight.abs().max().item() * 64 - 1) < 0.01


# -- building without values


def test_skip_init_draws_nothing_and_is_quick():
    """ResNet-50, 25 million parameters, within 50 ms; statistics and counters are there all the same."""
    state, times = zoo.get_rng_state(), []
    for _ in range(5):
        start = time.perf_counter()
        with skip_init():
            model = models.resnet50()
        times.append(time.perf_counter() - start)
    assert (zoo.get_rng_state() == state).all() and min(times) < 0.05
    assert model.bn1.running_var.tolist() == [1.0] * 64 and model.bn1.num_batches_tracked.item() == 0
    models.resnet8()
    assert (zoo.get_rng_state() != state).any()


def test_skip_init_ends_with_its_block_and_stays_in_its_thread():
    weight = zoo.ones(3)
    init = zoo.nn.init
    with pytest.raises(KeyError), skip_init():
        raise KeyError
    other = []
    with skip_init():
        with skip_init():
            pass
        thread = threading.Thread(target=lambda: other.append(init.zeros_(zoo.ones(3)).tolist()))
        thread.start()
        thread.join()
        for fill in (init.zeros_, init.normal_, init.uniform_, lambda t: init.constant_(t, 5.0)):
            assert fill(weight) is weight
    assert weight.tolist() == [1, 1, 1] and other == [[0, 0, 0]]
    assert init.zeros_(weight).tolist() == [0, 0, 0]


# -- summary


def test_summary_counts_by_hand():
    """One convolution with groups, one transposed, one linear layer: the formulas, layer by layer."""
    net = zoo.nn.Sequential(
        zoo.nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),
        zoo.nn.ConvTranspose2d(6, 2, 2, stride=2),
        zoo.nn.Flatten(),
        zoo.nn.Linear(2 * 8 * 8, 5),
    )
    net[3].weight.requires_grad_(False)
    found = models.summary(net, (3, 4, 8, 8))
    assert [r.output_shape for r in found.rows] == [(3, 6, 4, 4), (3, 2, 8, 8), (3, 128), (3, 5)]
    assert [r.mult_adds for r in found.rows] == [3 * 6 * 16 * 2 * 9, 3 * 6 * 16 * 2 * 4, 0, 3 * 128 * 5]
    assert [r.parameters for r in found.rows] == [6 * 2 * 9 + 6, 6 * 2 * 4 + 2, 0, 128 * 5 + 5]
    assert found.activation_bytes == 4 * 3 * (96 + 128 + 128 + 5)
    assert found.trainable_parameters == found.parameters - 640 and found.parameter_bytes == 4 * found.parameters


def test_summary_leaves_the_model_as_it_was(tiny):
    """Modes, statistics, hooks; also when the input does not fit."""
    tiny.layer1.eval()
    before = {k: v.clone() for k, v in tiny.state_dict().items()}
    modes = [m.training for m in tiny.modules()]
    models.summary(tiny, (2, 3, 8, 8))
    with pytest.raises(ShapeError):
        models.summary(tiny, (2, 5, 8, 8))
    assert modes == [m.training for m in tiny.modules()] and not any(m._hooks for m in tiny.modules())
    assert all((before[k] == v).all() for k, v in tiny.state_dict().items())


def test_summary_folds_layers_and_prints_a_table():
    """ResNet-50 as published: 25,557,032 parameters, 4.089 G multiply-adds, however the rows are folded."""
    with skip_init():
        model = models.resnet50()
    whole = models.summary(model, (1, 3, 224, 224))
    folded = models.summary(model, (1, 3, 224, 224), depth=1)
    assert [r.name for r in folded.rows] == [n for n, _ in model.named_children()]
    assert folded[1:] == whole[1:] and len(whole.rows) > 100
    assert sum(r.parameters for r in folded.rows) == whole.parameters == 25_557_032
    lines = str(folded).splitlines()
    assert lines[-3].startswith("Parameters: 25,557,032 (25,557,032 trainable)") and "4.089 G" in lines[-2]
    assert any(row.split()[:2] == ["layer4", "Sequential"] and "(1, 2048, 7, 7)" in row for row in lines)
    with pytest.raises(ValueError, match="depth of at least 1 or None, got 0"):
        models.summary(model, (1, 3, 32, 32), depth=0)
