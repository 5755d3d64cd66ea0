"""hub.load through a Hub of our own and the real huggingface_hub: repositories of every layout, and what it refuses."""

import json

import numpy as np
import pytest

import zoo
from tests.hub_models import logits_of, run, seeded
from tests.hub_server import Fault, sha256
from zoo import checkpoint, models
from zoo.checkpoint.safetensors_file import write_safetensors
from zoo.nn.init import skip_init

TIMM = {"tag": "mine", "input_size": [3, 48, 48], "interpolation": "bicubic", "crop_pct": 0.95, "mean": [0.5, 0.5, 0.5],
        "std": [0.2, 0.3, 0.4], "license": "mit", "first_conv": "conv1", "classifier": "fc"}


@pytest.fixture(scope="module")
def resnet18():
    return seeded("resnet18")


@pytest.fixture
def server(running):
    running[0].reset()
    return running[0]


@pytest.fixture
def load(running, tmp_path):
    """hub.load in a process whose Hub is the server, with a cache of its own: what is to be seen of the model."""
    def call(name, weights="default", **options):
        return running[1].call(seen_of, name, weights, {"cache_dir": str(tmp_path / "cache"), **options})
    return call


def seen_of(name, weights, options):
    """Runs in the client's process: a model itself does not travel between processes."""
    from zoo import hub
    if isinstance(weights, dict):
        from dataclasses import replace

        from zoo.models.weights import get
        weights = replace(get(name), **weights)
    model = hub.load(name, weights, progress=False, **options)
    preprocessing = model.preprocess and model.preprocess.preprocessing
    row = model.weights and model.weights.name
    return {"logits": run(model), "labels": model.labels, "preprocessing": preprocessing, "row": row,
            "architecture": model.architecture}


def safetensors(state):
    """The bytes of a .safetensors file."""
    import io
    file = io.BytesIO()
    write_safetensors(file, state, {"format": "pt"})
    return file.getvalue()


def pth(state, tmp_path):
    checkpoint.write(tmp_path / "made.pth", state)
    return (tmp_path / "made.pth").read_bytes()


def half(state):
    return {key: a.astype(np.float16) if a.dtype == np.float32 else a for key, a in state.items()}


def widened(state):
    return {key: a.astype(np.float32) if a.dtype == np.float16 else a for key, a in state.items()}


def microsoft_keys(state):
    """torchvision's ResNet keys in transformers' layout (shared/facts/hub.md, 1.4), written out the other way round."""
    made = {}
    for key, array in state.items():
        *path, kind = key.split(".")
        if path == ["fc"]:
            new = "classifier.1"
        elif len(path) == 1:
            new = "resnet.embedder.embedder." + {"conv1": "convolution", "bn1": "normalization"}[path[0]]
        else:
            stage, block, layer = int(path[0].removeprefix("layer")) - 1, path[1], path[2]
            if layer == "downsample":
                inner = "shortcut." + ("convolution", "normalization")[int(path[3])]
            else:
                role = "convolution" if layer.startswith("conv") else "normalization"
                inner = f"layer.{int(layer[-1]) - 1}.{role}"
            new = f"resnet.encoder.stages.{stage}.layers.{block}.{inner}"
        made[f"{new}.{kind}"] = array
    return made


def timm_vgg_keys(state):
    """torchvision's VGG keys in timm's layout: two convolutions in the place of two linear layers."""
    names = {"classifier.0": "pre_logits.fc1", "classifier.3": "pre_logits.fc2", "classifier.6": "head.fc"}
    shapes = {"classifier.0.weight": (4096, 512, 7, 7), "classifier.3.weight": (4096, 4096, 1, 1)}
    made = {}
    for key, array in state.items():
        layer, _, kind = key.rpartition(".")
        made[f"{names.get(layer, layer)}.{kind}"] = array.reshape(shapes.get(key, array.shape))
    return made


def test_a_repository_says_its_architecture(server, load, resnet18):
    about = {"architecture": "resnet18", "num_classes": 1000, "pretrained_cfg": TIMM}
    server.add("owner/net", "config.json", json.dumps(about).encode(), lfs=False)
    server.add("owner/net", "model.safetensors", safetensors(resnet18))
    seen = load("owner/net")
    np.testing.assert_array_equal(seen["logits"], logits_of("resnet18", resnet18))
    p = seen["preprocessing"]
    assert (p.resize, p.crop, p.interpolation, p.mean, p.std) == (50, 48, "bicubic", (0.5,) * 3, (0.2, 0.3, 0.4))
    assert seen["row"] is None and seen["architecture"] == "resnet18" and len(seen["labels"]) == 1000
    asked = len(server.requests)
    np.testing.assert_array_equal(load("owner/net")["logits"], seen["logits"])
    assert len(server.requests) == asked           # what the branch was is recorded


def test_old_configurations_pickles_and_labels(server, load, tmp_path):
    """A flat config.json, pytorch_model.bin only, names of the classes, a revision."""
    state = seeded("resnet20", num_classes=3)
    about = {**TIMM, "architecture": "resnet20", "num_classes": 3, "label_names": ["ant", "bee", "cat"]}
    server.add("owner/old", "config.json", json.dumps(about).encode(), lfs=False, branch="v1")
    commit = server.add("owner/old", "pytorch_model.bin", pth(state, tmp_path), branch="v1")
    for revision in ("v1", commit):
        seen = load(f"owner/old@{revision}")
        np.testing.assert_array_equal(seen["logits"], logits_of("resnet20", state, num_classes=3))
        assert seen["labels"] == ("ant", "bee", "cat")


@pytest.mark.parametrize(("text", "message"), [
    (b"{", "does not describe a model"),
    (b'{"model_type": "bert"}', "names no architecture"),
    (b'{"architecture": "resnet18", "num_classes": -1}', "num_classes: wants a positive number"),
    (b'{"architecture": "resnet18", "pretrained_cfg": {"input_size": [], "mean": [], "std": []}}', "does not describe"),
    (b'{"architecture": "resnt18"}', "nearest: resnet18"),
])
def test_configurations_that_say_nothing_usable(server, load, text, message):
    server.add("owner/bad", "config.json", text, lfs=False)
    with pytest.raises(ValueError if b"resnt" in text else OSError, match=message):
        load("owner/bad")


def test_microsofts_layout_through_its_row(server, load):
    """The row's revision is unseen: the first load records the commit, and the second asks nothing."""
    state = half(seeded("resnet50"))
    server.add("microsoft/resnet-50", "model.safetensors", safetensors(microsoft_keys(state)))
    seen = load("microsoft/resnet-50")
    assert seen["row"] == "resnet50.microsoft"
    np.testing.assert_array_equal(seen["logits"], logits_of("resnet50", widened(state)))
    asked = len(server.requests)
    server.add("microsoft/resnet-50", "model.safetensors", b"another version")
    assert load("resnet50", "microsoft")["row"] == "resnet50.microsoft" and len(server.requests) == asked


@pytest.mark.slow
def test_timms_vgg_layout(server, load):
    """vgg11 at its true shapes, as fp16 to halve the 531 MB."""
    with skip_init():
        shapes = {key: array.shape for key, array in models.vgg11().state_dict().items()}
    state = {key: np.resize(np.linspace(-0.02, 0.02, 1009, dtype=np.float16), shape) for key, shape in shapes.items()}
    data = safetensors(timm_vgg_keys(state))
    server.add("timm/vgg11.tv_in1k", "model.safetensors", data)
    seen = load("vgg11", {"sha256": sha256(data)})
    assert seen["row"] == "vgg11.tv_in1k"
    np.testing.assert_array_equal(seen["logits"], logits_of("vgg11", widened(state)))


def test_torchvisions_file_over_an_address(server, load, resnet18, tmp_path):
    """A .pth without batch counters; http on the loopback is the tests' own seam (tests/hub_server.py, begin)."""
    stored = {key: a for key, a in resnet18.items() if "num_batches_tracked" not in key}
    data = pth(stored, tmp_path)
    server.plain["resnet18.pth"] = data
    address = f"{server.url}/plain/resnet18.pth"
    seen = load("resnet18", address)
    np.testing.assert_array_equal(seen["logits"], logits_of("resnet18", resnet18))
    assert server.asked() == [("GET", "plain")]
    load("resnet18", address, offline=True)
    assert server.asked() == [("GET", "plain")]


def test_pinned_and_warm_asks_nothing_and_wrong_bytes_never_load(server, load, resnet18, tmp_path):
    good = safetensors(resnet18)
    commit = server.add("timm/resnet18.a1_in1k", "model.safetensors", good)
    row = {"source": f"hf://timm/resnet18.a1_in1k/model.safetensors@{commit}", "sha256": sha256(good)}
    first = load("resnet18", row)
    asked = len(server.requests)
    np.testing.assert_array_equal(load("resnet18", row, offline=True)["logits"], first["logits"])
    assert len(server.requests) == asked
    other = bytearray(good)
    other[-3] ^= 1                                 # as long as the right file, and announced as it
    server.reset()
    server.add("timm/resnet18.a1_in1k", "model.safetensors", bytes(other),
               headers={"X-Linked-Etag": f'"{sha256(good)}"'})
    for source in (row["source"], "hf://timm/resnet18.a1_in1k/model.safetensors@main"):
        with pytest.raises(OSError, match=f"sha256 is {sha256(bytes(other))}"):
            load("resnet18", {**row, "source": source}, cache_dir=str(tmp_path / "fresh"))


def test_what_the_source_refuses_is_one_kind_of_error(server, load):
    with pytest.raises(OSError, match="no such repository") as caught:
        load("owner/nothing")
    assert type(caught.value).__module__ == "zoo.hub.errors"
    server.add("owner/half", "config.json", b'{"architecture": "resnet18"}', lfs=False)
    with pytest.raises(OSError, match="no such file"):
        load("owner/half")
    server.faults.append(Fault("HEAD", "hub", times=99, status=404))
    with pytest.raises(OSError, match="not in the cache"):
        load("resnet18", offline=True)


def test_state_dicts_by_address(server, running, tmp_path, resnet18):
    data = safetensors(resnet18)
    server.plain[f"net-{sha256(data)[:8]}.safetensors"] = data
    server.plain["net-00000000.safetensors"] = data
    good, bad = (f"{server.url}/plain/net-{prefix}.safetensors" for prefix in (sha256(data)[:8], "0" * 8))
    found = running[1].call(keys_of, "load_state_dict_from_url", good, model_dir=tmp_path, check_hash=True)
    assert found == sorted(resnet18) == running[1].call(keys_of, "load_state_dict", bad, cache_dir=tmp_path)
    with pytest.raises(OSError, match="begins with 00000000"):
        running[1].call(keys_of, "load_state_dict_from_url", bad, model_dir=tmp_path / "other", check_hash=True)
    with pytest.raises(ValueError, match="check_hash wants a name"):
        running[1].call(keys_of, "load_state_dict_from_url", f"{server.url}/plain/net.pth", check_hash=True)


def keys_of(function, *args, **options):
    from zoo import hub
    found = getattr(hub, function)(*args, progress=False, **options)
    assert all(isinstance(value, zoo.Tensor) for value in found.values())
    return sorted(found)
