"""The rows of pretrained weights: hashes as they were seen, layouts onto their models, names, labels, the docs page."""
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.house import ROOT
from zoo.models import create, key_maps, weights
from zoo.models.labels import class_names
from zoo.models.weights import Weights
from zoo.nn.init import skip_init

FACTS = json.loads((ROOT / "tests/data/hub_facts.json").read_text())       # transcribed from what somebody saw
ROWS = [row for row in weights.rows() if row.labels == "imagenet"]         # test_rnn_models.py has those of texts
TENSORS = {"resnet18": 122, "resnet34": 218, "resnet50": 320, "resnet101": 626, "resnet152": 932, "vgg11": 22,
           "vgg13": 26, "vgg16": 32, "vgg19": 38, "vgg11_bn": 62, "vgg13_bn": 76, "vgg16_bn": 97, "vgg19_bn": 118}


# -- nothing is invented

def test_hub_rows_have_the_hashes_and_commits_that_were_seen():
    """Both ways: no row says more than the facts, and none says less."""
    rows = {row.name: row for row in weights.rows("*_in1k")}
    assert rows.keys() == {name for name in FACTS["hub"] if ".fb_" not in name}
    for name, row in rows.items():
        seen = FACTS["hub"][name]
        assert (row.sha256, row.sha256_prefix) == (seen.get("sha256"), seen.get("sha256_prefix")), name
        assert row.source == f"hf://timm/{name}/model.safetensors@{seen.get('commit', 'main')}"
        assert row.revision_seen == ("commit" in seen) == (row.note != "revision unseen"), name
    assert sum("sha256" in seen for seen in FACTS["hub"].values()) == 19
    assert sum("commit" in seen for seen in FACTS["hub"].values()) == 12


def test_urls_have_the_prefixes_that_were_seen():
    rows = weights.rows("*.IMAGENET1K_*")
    assert sorted(row.sha256_prefix for row in rows) == FACTS["torchvision_sha256_prefixes"]
    for row in rows:
        assert re.fullmatch(rf"https://download.pytorch.org/models/[\w-]+-{row.sha256_prefix}\.pth", row.source)
        assert row.sha256 is None and row.revision_seen


@pytest.mark.torch
def test_url_rows_are_torchvisions(torchvision):
    rows = weights.rows("*.IMAGENET1K_*")
    theirs = {f"{name}.{entry.name}": entry for name in {row.model for row in rows}
              for entry in torchvision.models.get_model_weights(name)}
    assert {row.name for row in rows} == set(theirs)
    for row in rows:
        entry = theirs[row.name]
        preset, meta, ours = entry.transforms(), entry.meta, row.preprocessing
        assert (row.source, row.parameters) == (entry.url, meta["num_params"])
        assert row.size_text == f"{meta['_file_size']} MiB"
        assert ([ours.crop], [ours.resize]) == (preset.crop_size, preset.resize_size)
        assert (list(ours.mean), list(ours.std)) == (preset.mean, preset.std)
        assert ours.interpolation == preset.interpolation.value
        if row.metrics:
            measured = meta["_metrics"]["ImageNet-1K"]
            assert (row.metrics[0].top1, row.metrics[0].top5) == (measured["acc@1"], measured["acc@5"])
        # 4 bytes a number, or 2.
        assert row.dtype == ("float16" if meta["_file_size"] * 2**20 < 3 * row.parameters else "float32"), row.name
    assert sum(row.dtype == "float16" for row in rows) == 2 and sum(not row.metrics for row in rows) == 1


def test_licences_allow_commercial_use():
    assert {row.licence for row in ROWS} == {"bsd-3-clause", "apache-2.0"}
    assert not [row.name for row in ROWS if row.tag.startswith("fb_")]


# -- names

def test_names_defaults_and_shortcuts():
    assert len(ROWS) == 48 + 27 + 1 and len({row.name for row in ROWS}) == len(ROWS)
    for model in {row.model for row in ROWS}:
        assert weights.get(model) == weights.get("default", model) == weights.get("DEFAULT", model)
        assert weights.get("tv", model).tag in ("tv_in1k", "IMAGENET1K_V1")
    expected = {"resnet18": "a1_in1k", "resnet34": "a1_in1k", "resnet50": "a1_in1k", "resnet101": "a1h_in1k",
                "resnet152": "a1h_in1k", "vgg16_bn": "tv_in1k", "alexnet": "IMAGENET1K_V1"}
    assert {model: weights.get(model).tag for model in expected} == expected
    assert weights.get("tv2", "resnet50").name == "resnet50.tv2_in1k"
    assert weights.get("vgg16.IMAGENET1K_FEATURES").preprocessing.std == (1 / 255,) * 3
    assert [row.tag for row in weights.rows("resnet18")] == ["tv_in1k", "a1_in1k", "a2_in1k", "a3_in1k", "gluon_in1k",
                                                            "IMAGENET1K_V1"]


@pytest.mark.parametrize("name, model, words", [
    ("resnet51", None, "no pretrained weights for 'resnet51'; nearest: .*resnet50"),
    ("resnet50.a1_in2k", None, "nearest: resnet50.a1_in1k"),
    ("a9_in1k", "resnet50", "resnet50 has no weights 'a9_in1k'; it has tv_in1k, .*and default"),
    ("tv2", "vgg16", "vgg16 has no weights 'tv2'"),
    ("vgg16.tv_in1k", "vgg19", "vgg19 has no weights 'vgg16.tv_in1k'"),
    ("qqqqqq", None, "rows"),
])
def test_bad_names_say_what_is_near(name, model, words):
    with pytest.raises(ValueError, match=words):
        weights.get(name, model)


def test_bad_rows():
    good = {"model": "m", "tag": "t", "source": "https://host/file.pth", "licence": "mit", "parameters": 1}
    for wrong, words in (({"sha256": "12"}, "64 hex"), ({"sha256": "g" * 64}, "64 hex"),
                         ({"sha256_prefix": "12"}, "8 to 63"), ({"md5": "12"}, "32 hex"),
                         ({"source": "hf://a/b/c"}, "hf://, https://"),
                         ({"source": "http://host/file.pth"}, "hf://, https://")):
        with pytest.raises(ValueError, match=f"Weights: m.t: .*{words}"):
            Weights(**{**good, **wrong})
    with pytest.raises(ValueError, match="resnet18.tv_in1k are registered already"):
        weights.register(weights.get("resnet18.tv_in1k"))


# -- layouts

def own_shapes(model: str) -> dict[str, tuple[int, ...]]:
    with skip_init():
        return {key: tuple(value.shape) for key, value in create(model).state_dict().items()}


def stored_shapes(row: Weights, own: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """What the row's file has, by a table written out for each layout; test_stored_layouts_are_real checks it."""
    if row.key_map == "timm_vgg":
        head = {"pre_logits.fc1.weight": (4096, 512, 7, 7), "pre_logits.fc1.bias": (4096,),
                "pre_logits.fc2.weight": (4096, 4096, 1, 1), "pre_logits.fc2.bias": (4096,),
                "head.fc.weight": (1000, 4096), "head.fc.bias": (1000,)}
        return {key: shape for key, shape in own.items() if key.startswith("features.")} | head
    if row.key_map == "microsoft_resnet":
        return microsoft_resnet50()
    if row.source.endswith(".pth") and row.tag == "IMAGENET1K_V1":      # older than batch counters
        return {key: shape for key, shape in own.items() if not key.endswith("num_batches_tracked")}
    return own


def microsoft_resnet50() -> dict[str, tuple[int, ...]]:
    """transformers' ResNetForImageClassification of microsoft/resnet-50, block by block."""
    made: dict[str, tuple[int, ...]] = {}

    def conv_and_norm(place: str, out: int, into: int, side: int) -> None:
        made[f"{place}.convolution.weight"] = (out, into, side, side)
        for kind in ("weight", "bias", "running_mean", "running_var"):
            made[f"{place}.normalization.{kind}"] = (out,)
        made[f"{place}.normalization.num_batches_tracked"] = ()

    conv_and_norm("resnet.embedder.embedder", 64, 3, 7)
    channels = 64
    for stage, (depth, out) in enumerate(((3, 256), (4, 512), (6, 1024), (3, 2048))):
        for block in range(depth):
            place = f"resnet.encoder.stages.{stage}.layers.{block}"
            if block == 0:
                conv_and_norm(f"{place}.shortcut", out, channels, 1)
            conv_and_norm(f"{place}.layer.0", out // 4, channels, 1)
            conv_and_norm(f"{place}.layer.1", out // 4, out // 4, 3)
            conv_and_norm(f"{place}.layer.2", out, out // 4, 1)
            channels = out
    return made | {"classifier.1.weight": (1000, 2048), "classifier.1.bias": (1000,)}


@pytest.mark.parametrize("model", sorted({row.model for row in ROWS}))
def test_mapped_layouts_are_the_models(model):
    """Keys, shapes and dtypes, for all rows of a model, after what hub.load does with a file's arrays."""
    own = own_shapes(model)
    counters = [key for key in own if key.endswith("num_batches_tracked")]
    statistics = [key for key in own if key.rpartition(".")[2] in ("running_mean", "running_var")]
    assert TENSORS.get(model, len(own)) == len(own)
    for row in weights.rows(model):
        if row not in ROWS:
            continue
        trained = sum(int(np.prod(shape)) for key, shape in own.items() if key not in counters + statistics)
        assert trained == row.parameters and own[list(own)[-1]] == (row.num_classes,)
        # One number in memory, seen as an array of any shape: complete() casts nothing here (see the test of it below).
        dtypes = {key: np.zeros((), np.int64 if key in counters else row.dtype) for key in own}
        stored = {key: np.broadcast_to(np.zeros((), np.int64 if key.endswith("tracked") else row.dtype), shape)
                  for key, shape in stored_shapes(row, own).items()}
        made = key_maps.complete(key_maps.apply(row.key_map, stored), dtypes)
        assert {key: array.shape for key, array in made.items()} == own, row.name
        assert all(array.dtype == dtypes[key].dtype for key, array in made.items()), row.name


@pytest.mark.torch
@pytest.mark.parametrize("model", sorted({row.model for row in ROWS}))
def test_stored_layouts_are_real(model, torchvision):
    """The written-out layouts are those of timm's and torchvision's own models (without memory, on torch's meta)."""
    torch = pytest.importorskip("torch")
    import timm
    own = own_shapes(model)

    def shapes(build):
        with torch.device("meta"):
            return {key: tuple(value.shape) for key, value in build().state_dict().items()}
    assert shapes(lambda: torchvision.models.get_model(model)) == own
    for row in weights.rows(f"{model}.*_in1k")[:1]:              # those of one model have one layout; AlexNet has none
        assert shapes(lambda: timm.create_model(model)) == stored_shapes(row, own)


@pytest.mark.torch
def test_timm_vgg_undoes_timms_own_map(torchvision):
    """Torchvision's keys go through as they are, and come back from timm's layout bit for bit, without a copy."""
    torch = pytest.importorskip("torch")
    from timm.models.vgg import _filter_fn
    rng = np.random.default_rng(0)
    own = {"features.0.weight": (4, 3, 3, 3), "features.0.bias": (4,), "classifier.0.weight": (6, 25088),
           "classifier.0.bias": (6,), "classifier.3.weight": (5, 4096), "classifier.3.bias": (5,),
           "classifier.6.weight": (3, 5), "classifier.6.bias": (3,)}
    arrays = {key: rng.normal(size=shape).astype(np.float32) for key, shape in own.items()}
    theirs = {k: v.numpy() for k, v in _filter_fn({k: torch.from_numpy(v) for k, v in arrays.items()}).items()}
    assert "pre_logits.fc1.weight" in theirs and "classifier.0.weight" not in theirs
    for stored in (theirs, arrays):
        made = key_maps.apply("timm_vgg", stored)
        assert made.keys() == arrays.keys() and all((made[key] == arrays[key]).all() for key in arrays)
    assert np.shares_memory(key_maps.apply("timm_vgg", theirs)["classifier.0.weight"], theirs["pre_logits.fc1.weight"])


def test_complete_casts_only_floats_and_adds_only_counters():
    own = {"w": np.zeros(2, np.float32), "n": np.zeros(2, np.int64), "bn.num_batches_tracked": np.zeros((), np.int64),
           "b": np.zeros(2, np.float32)}
    stored = {"w": np.array([1, 2], np.float16), "n": np.array([1, 2], np.int32), "extra": np.ones(1, np.float16)}
    made = key_maps.complete(stored, own)
    assert {key: array.dtype.name for key, array in made.items()} == {
        "w": "float32", "n": "int32", "extra": "float16", "bn.num_batches_tracked": "int64"}
    assert made["w"].tolist() == [1, 2] and made["bn.num_batches_tracked"] == 0


def test_bad_key_maps():
    with pytest.raises(ValueError, match="key map: wants one of same, timm_vgg, microsoft_resnet, .*got 'other'"):
        key_maps.apply("other", {})
    with pytest.raises(ValueError, match="microsoft_resnet: wants keys of transformers' ResNet, got 'conv1.weight'"):
        key_maps.apply("microsoft_resnet", {"conv1.weight": 0})
    with pytest.raises(ValueError, match="two of the 2 keys become one"):
        key_maps.apply("timm_vgg", {"head.fc.bias": 0, "classifier.6.bias": 0})


# -- labels and the docs page

def test_labels():
    names = class_names("imagenet")
    assert len(names) == 1000 and names[0] == "tench" and names[999] == "toilet tissue" and all(names)
    for row in ROWS:
        assert len(class_names(row.labels)) == row.num_classes
    with pytest.raises(ValueError, match="wants 'imagenet' or 'digits', got 'coco'"):
        class_names("coco")


@pytest.mark.torch
def test_labels_are_torchvisions(torchvision):
    theirs = torchvision.models.ResNet50_Weights.IMAGENET1K_V1
    assert list(class_names("imagenet")) == theirs.meta["categories"]


def test_the_docs_page_is_up_to_date():
    """`python scripts/docs/pretrained_models.py` writes it."""
    command = [sys.executable, "scripts/docs/pretrained_models.py", "--check"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    made = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    page = (ROOT / "docs/pretrained-models.md").read_text()
    assert all(f"`{row.tag}`" in page and row.model in page for row in weights.rows())
