"""hub.load and what stands around it: every layout of file, through a Hub of our own and the real huggingface_hub."""

import hashlib
import logging
import mmap
import re
import sys

import numpy as np
import pytest

import zoo
from tests.hub_models import X, logits_of, run, seeded
from zoo import checkpoint, hub, models
from zoo.data import digits
from zoo.models import weights as weights_of
from zoo.models.labels import class_names
from zoo.models.weights import Preprocessing
from zoo.nn.state import StateDictError


@pytest.fixture(scope="module")
def resnet18():
    return seeded("resnet18")


@pytest.fixture(scope="module")
def file18(resnet18, tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "resnet18.safetensors"
    checkpoint.write(path, resnet18)
    return path


# -- the weights that ship in the package

def test_digits_need_no_network_and_no_cache(monkeypatch, tmp_path):
    import socket
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)          # importing it raises
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "nothing"))
    model = hub.load("resnet20_digits", offline=True)
    assert not model.training and model.weights.name == "resnet20_digits.zoo"
    assert model.labels == tuple("0123456789")
    assert not (tmp_path / "nothing").exists()


def test_the_row_of_the_digits_tells_the_truth():
    """Accuracy on the 360 test digits, size and hash are those of the fp16 file that ships."""
    model = hub.load("resnet20_digits")
    row, (images, labels) = model.weights, digits(train=False).tensors
    with zoo.no_grad():
        right = (model(images).argmax(1) == labels).float().mean().item()
    assert row.metrics[0].top1 == pytest.approx(100 * right) and len(labels) == 360
    file = hub.path("resnet20_digits")
    assert row.size == file.stat().st_size <= 600_000
    assert row.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    stored = {a.dtype for a in checkpoint.read_state_dict(file).values() if a.ndim}
    assert stored == {np.dtype(row.dtype)} == {np.dtype(np.float16)}
    assert row.parameters == sum(p.numel() for p in model.parameters())
    assert row.licence == "apache-2.0" and "CC BY 4.0" in row.note and "zoo.train" in row.note
    assert {p.dtype for p in model.parameters()} == {np.dtype(np.float32)}


def test_digits_are_read_from_pictures_of_any_size():
    """The 360 test digits, as RGB pictures of 64x64."""
    from PIL import Image
    model = hub.load("resnet20_digits")
    images, labels = digits(train=False).tensors
    pictures = [Image.fromarray((i * 255).astype(np.uint8)).resize((64, 64), Image.Resampling.BOX).convert("RGB")
                for i in images.numpy()[:, 0]]
    with zoo.no_grad():
        right = (model(model.preprocess(pictures)).argmax(1) == labels).float().mean().item()
    assert f"{100 * right:.1f} %" in model.weights.note and right > 0.98
    assert hub.predict(model, pictures[0])[0].label == str(labels[0].item())


# -- files of every layout, by path

@pytest.mark.parametrize("kind", ["safetensors", "torch", "fp16", "V1", "wrapped", "parallel"])
def test_a_path_loads_whatever_layout_it_has(kind, resnet18, tmp_path):
    state, path = resnet18, tmp_path / ("w.safetensors" if kind == "safetensors" else "w.pth")
    if kind == "fp16":
        state = {key: a.astype(np.float16) if a.dtype == np.float32 else a for key, a in state.items()}
    stored = state
    if kind == "V1":                            # torchvision's first files have no batch counters
        stored = {key: a for key, a in state.items() if "num_batches_tracked" not in key}
        assert len(stored) == 102
    if kind == "parallel":
        stored = {f"module.{key}": a for key, a in state.items()}
    if kind in ("wrapped", "parallel"):
        zoo.save({"epoch": 3, "state_dict": {key: zoo.from_numpy(a) for key, a in stored.items()}}, path)
    else:
        checkpoint.write(path, stored)
    model = hub.load("resnet18", path)
    assert not model.training and model.weights is None and {p.dtype for p in model.parameters()} == {zoo.float32}
    expected = {key: a.astype(np.float32) if a.dtype == np.float16 else a for key, a in state.items()}
    assert {key: value.shape for key, value in model.state_dict().items()} == {k: a.shape for k, a in expected.items()}
    np.testing.assert_array_equal(run(model), logits_of("resnet18", expected))
    assert model.preprocess.preprocessing == Preprocessing() and model.labels == class_names("imagenet")


def test_loading_maps_the_file_draws_no_numbers_and_leaves_the_file_alone(file18):
    before, bits = file18.read_bytes(), zoo.get_rng_state().tolist()
    model = hub.load("resnet18", file18)
    assert zoo.get_rng_state().tolist() == bits
    array = owner = model.fc.weight.detach().numpy()
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    assert isinstance(owner.obj if isinstance(owner, memoryview) else owner, mmap.mmap) and array.flags.writeable
    with zoo.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert file18.read_bytes() == before


def test_another_number_of_classes_gets_a_fresh_classifier_and_a_line(file18, resnet18, caplog):
    with caplog.at_level(logging.WARNING, "zoo.hub"):
        model = hub.load("resnet18", file18, num_classes=7)
    assert len(caplog.records) == 1 and "1000 classes, 7 were asked for: fc is fresh" in caplog.text
    state = model.state_dict()
    assert state["fc.weight"].shape == (7, 512) and model.labels is None and run(model).shape == (2, 7)
    # torch's Linear draws from U(-k, k) with k = 1 / sqrt(in_features): standard deviation k / sqrt 3
    weight = state["fc.weight"].numpy()
    assert abs(weight).max() <= 512**-0.5 and weight.std() == pytest.approx((3 * 512) ** -0.5, rel=0.05)
    for key in state.keys() - {"fc.weight", "fc.bias"}:
        np.testing.assert_array_equal(state[key].numpy(), resnet18[key])
    caplog.clear()
    assert hub.load("resnet18", file18, num_classes=1000).labels is not None and not caplog.records


def test_a_file_brings_its_own_number_of_classes(tmp_path):
    state = seeded("resnet20", num_classes=3)
    checkpoint.write(tmp_path / "three.pt", state)
    model = hub.load("resnet20", tmp_path / "three.pt")
    assert model.num_classes == 3 and model.labels is None
    np.testing.assert_array_equal(run(model), logits_of("resnet20", state, num_classes=3))


@pytest.mark.parametrize("in_chans", [1, 4])
def test_other_channels_adapt_the_first_convolution(in_chans, file18, resnet18):
    model = hub.load("resnet18", file18, in_chans=in_chans)
    weight = resnet18["conv1.weight"]
    wanted = weight.sum(1, keepdims=True) if in_chans == 1 else weight[:, [0, 1, 2, 0]] * np.float32(0.75)
    np.testing.assert_allclose(model.conv1.weight.detach().numpy(), wanted, rtol=1e-6, atol=1e-7)
    if in_chans == 1:
        grey = np.repeat(X[:, :1], 3, 1)
        np.testing.assert_allclose(run(model, X[:, :1]), run(hub.load("resnet18", file18), grey), rtol=1e-3, atol=1e-3)
        assert model.preprocess(np.zeros((300, 300), np.uint8)).shape == (1, 224, 224)
    else:
        assert model.preprocess is None


def test_dtype_strict_and_features(file18, resnet18, tmp_path):
    assert {p.dtype for p in hub.load("resnet18", file18, dtype=zoo.float16).parameters()} == {zoo.float16}
    pyramid = hub.load("resnet18", file18, features_only=True, out_indices=(1, 4))
    with zoo.no_grad():
        assert [y.shape[1] for y in pyramid(zoo.from_numpy(X))] == [64, 512] and pyramid.preprocess is not None
    checkpoint.write(tmp_path / "part.pt", {key: a for key, a in resnet18.items() if key != "fc.bias"})
    with pytest.raises(StateDictError, match=r"fc\.bias +missing"):
        hub.load("resnet18", tmp_path / "part.pt")
    loose = hub.load("resnet18", tmp_path / "part.pt", strict=False)
    assert abs(loose.fc.bias.detach().numpy()).max() <= 512**-0.5          # fresh, not what memory happened to hold
    np.testing.assert_array_equal(loose.fc.weight.detach().numpy(), resnet18["fc.weight"])


@pytest.mark.cuda
def test_a_device(file18, resnet18):
    model = hub.load("resnet18", file18, device="cuda")
    assert {p.device.type for p in model.parameters()} == {"cuda"}
    np.testing.assert_array_equal(model.fc.weight.detach().cpu().numpy(), resnet18["fc.weight"])


def test_fresh_weights():
    zoo.manual_seed(3)
    model = hub.load("resnet8", None, num_classes=4, in_chans=1)
    assert not model.training and model.weights is model.preprocess is model.labels is None
    zoo.manual_seed(3)
    np.testing.assert_array_equal(run(model, X[:, :1]), run(models.resnet8(num_classes=4, in_chans=1).eval(), X[:, :1]))


@pytest.mark.parametrize(("arguments", "error", "text"), [
    (("resnt50",), ValueError, "no model 'resnt50'; nearest: resnet50"),
    (("resnet50.a9_in1k",), ValueError, "nearest: resnet50.ra_in1k"),
    (("resnet50", "a9"), ValueError, "resnet50 has no weights 'a9'; it has tv_in1k"),
    (("resnet20",), ValueError, "no pretrained weights; weights=None"),
    (("resnet50", "./no.pth"), FileNotFoundError, "no file ./no.pth"),
    (("resnet18", weights_of.get("resnet50.tv_in1k")), ValueError, "are weights of resnet50, not of resnet18"),
    (("resnet50", 3), TypeError, "got int"),
    ((3,), TypeError, "got int"),
    (("resnet50", "http://example.org/x.pth"), ValueError, "http without TLS is refused"),
    (("resnet50", "hf://a/../b"), ValueError, "hf://"),
])
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=re.escape(text)):
        hub.load(*arguments)


def test_wrong_options_and_wrong_files(file18, tmp_path):
    with pytest.raises(TypeError, match="load: resnet18: .*no_such"):
        hub.load("resnet18", file18, no_such=1)
    with pytest.raises(StateDictError, match="keys"):
        hub.load("resnet34", file18)
    (tmp_path / "page.pth").write_text("<html>")
    with pytest.raises(checkpoint.FileError, match=r"page\.pth is a web page"):
        hub.load("resnet18", tmp_path / "page.pth")
    with pytest.raises(hub.HubError, match=r"config\.json"):
        hub.load(tmp_path)
