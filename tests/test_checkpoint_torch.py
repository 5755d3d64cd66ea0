"""Files of torch's own making read as torch reads them, and files of ours read by torch."""
import collections
import io

import numpy as np
import pytest

import zoo
from zoo import checkpoint
from zoo.checkpoint import FileError
from zoo.checkpoint.dtypes import TORCH_DTYPES

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
FORMATS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False},
           "protocol 4": {"pickle_protocol": 4},
           "legacy 4": {"_use_new_zipfile_serialization": False, "pickle_protocol": 4}}


def tensors() -> dict:
    """Every way in which a tensor can lie on its storage, and every dtype."""
    torch.manual_seed(0)
    base = torch.randn(4, 6)
    conv = torch.nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
    model = torch.nn.Sequential(torch.nn.LSTM(3, 4, 2, bidirectional=True), torch.nn.BatchNorm1d(4))
    out = {
        "base": base, "transposed": base.t(), "rows": base[1:3], "columns": base[:, 2:5], "steps": base[::2, 1::3],
        "expanded": base[:1].expand(5, 6), "expanded scalar": torch.tensor(3.0).expand(2, 2), "scalar": base[0, 0],
        "windows": base.view(-1).unfold(0, 4, 2), "diagonal": base.diagonal(), "empty": torch.zeros(0, 3),
        "empty view": base[2:2], "one": torch.ones(1, 1, 1), "channels_last": conv.weight.detach(),
        "channels_last image": torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        "tied": base, "parameter": torch.nn.Parameter(torch.randn(3)), "leaf": torch.randn(2, requires_grad=True),
        "fixed parameter": torch.nn.Parameter(torch.randn(3), requires_grad=False), "odd": base.view(-1)[1:4],
    }
    for name in TORCH_DTYPES:
        dtype = getattr(torch, name)
        out[name] = torch.randn(2, 3, dtype=dtype) if dtype.is_complex else (torch.rand(2, 3) * 5).to(dtype)
    out |= {f"model.{key}": value for key, value in model.state_dict().items()}
    return out


def same(ours, theirs) -> None:
    """Dtype, shape, strides and bits."""
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(theirs.dtype).removeprefix("torch.") == ours.dtype.name
    if theirs.numel():
        steps = [s // ours.itemsize for s, n in zip(ours.strides, ours.shape, strict=True) if n > 1]
        assert steps == [s for s, n in zip(theirs.stride(), theirs.shape, strict=True) if n > 1]
    bits = theirs.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    assert np.ascontiguousarray(ours).tobytes() == bits.tobytes()


def saved(obj, **options) -> bytes:
    torch.save(obj, file := io.BytesIO(), **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", FORMATS)
def test_every_kind_of_tensor(kind, tmp_path):
    theirs = tensors()
    assert len(theirs) >= 45
    path = tmp_path / "t.pt"
    path.write_bytes(saved(theirs, **FORMATS[kind]))
    for mmap in (True, False):
        ours = checkpoint.read(path, mmap=mmap)
        assert list(ours) == list(theirs)
        for name in theirs:
            same(ours[name], theirs[name])
        ours["base"][2, 3] = 77                        # one storage, as in torch
        assert ours["transposed"][3, 2] == ours["tied"][2, 3] == ours["rows"][1, 3] == ours["columns"][2, 1] == 77
    both = zoo.load(path)
    assert type(both["parameter"]) is zoo.nn.Parameter and both["parameter"].requires_grad
    assert type(both["fixed parameter"]) is zoo.nn.Parameter and not both["fixed parameter"].requires_grad
    assert both["leaf"].requires_grad and not both["base"].requires_grad


@pytest.mark.parametrize("kind", FORMATS)
def test_values_beside_tensors(kind):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    obj = {"n": [0, 255, 256, -1, 2**31, -(2**40), 2**70], "x": [0.5, float("inf")], "s": ["", "é", "x" * 300],
           "none": None, "flags": (True, False), "size": torch.Size([2, 3]), "device": torch.device("cuda:1"),
           "cpu": torch.device("cpu"), "dtype": torch.float16, "set": {1, 2}, "complex": 1 - 2j,
           "bytes": b"\x00\xff" * 200,
           "counter": collections.Counter("aab"), "optimizer": optimizer.state_dict(), 5: "int", (1, "x"): "tuple",
           "state": model.state_dict(), "model": {"vocab": {"_unit2id": {"<PAD>": 0}, "_id2unit": ["<PAD>"]}}}
    ours = checkpoint.read(io.BytesIO(saved(obj, **FORMATS[kind])))
    expected = {"size": (2, 3), "device": "cuda:1", "cpu": "cpu", "dtype": np.float16, "counter": {"a": 2, "b": 1}}
    assert list(ours) == list(obj)
    for key in obj.keys() - {"optimizer", "state"}:
        assert ours[key] == expected.get(key, obj[key]), key
    assert type(ours["state"]) is collections.OrderedDict and list(ours["state"]) == ["weight", "bias"]
    assert ours["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]
    assert ours["optimizer"]["state"][0]["step"] == 1


def test_half_files_and_files_without_counters_load_into_models():
    """The V1 files of torchvision: no num_batches_tracked; those of the wide nets in float16."""
    theirs = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)).half()
    state = {k: v for k, v in theirs.state_dict().items() if not k.endswith("num_batches_tracked")}
    ours = zoo.nn.Sequential(zoo.nn.Conv2d(1, 2, 3), zoo.nn.BatchNorm2d(2))
    for options in FORMATS.values():
        weights = checkpoint.read_state_dict(io.BytesIO(saved(state, **options)), dtype=zoo.float32)
        assert all(a.dtype == np.float32 for a in weights.values())
        missing, extra = ours.load_state_dict({k: zoo.tensor(v) for k, v in weights.items()}, strict=False)
        assert not extra and set(missing) <= {"1.num_batches_tracked"}
        assert ours[0].weight.dtype == zoo.float32
        np.testing.assert_array_equal(ours[0].weight.detach().numpy(), theirs[0].weight.detach().float().numpy())


def test_files_without_checksums(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.arange(6)}, tmp_path / "w.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    for mmap in (True, False):
        assert checkpoint.read(tmp_path / "w.pt", mmap=mmap)["w"].tolist() == [0, 1, 2, 3, 4, 5]


class Other:
    """Pickled by its name."""


REFUSED = {
    "module": lambda: torch.nn.Linear(2, 2), "numpy scalar": lambda: np.float64(1), "numpy array": lambda: np.ones(2),
    "sparse": lambda: torch.sparse_coo_tensor([[0]], [1.0], (2,), check_invariants=True), "range": lambda: range(3),
    "conjugate": lambda: torch.randn(2, dtype=torch.complex64).conj(), "object": Other, "class": lambda: Other,
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore")                  # torch's, about sparse and quantized tensors
def test_what_is_refused(case):
    data = saved({"x": REFUSED[case]()})
    for read in (checkpoint.read, zoo.load):
        with pytest.raises(FileError, match="is refused"):
            read(io.BytesIO(data))


def test_torchscript_is_named(tmp_path):
    with pytest.warns():
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "script.pt")
    with pytest.raises(FileError, match="is a TorchScript program"):
        checkpoint.read(tmp_path / "script.pt")


def test_torch_reads_ours(tmp_path):
    theirs = tensors()
    ours = checkpoint.read(io.BytesIO(saved(theirs)))
    checkpoint.write(tmp_path / "arrays.pt", ours)
    back = torch.load(tmp_path / "arrays.pt", weights_only=True)
    mapped = torch.load(tmp_path / "arrays.pt", weights_only=True, mmap=True)
    for name in theirs:
        same(ours[name], back[name])
        assert mapped[name].stride() == back[name].stride()
    back["base"][2, 3] = 77
    assert back["transposed"][3, 2] == back["tied"][2, 3] == back["rows"][1, 3] == 77
    assert back["expanded"].stride(0) == 0 and back["channels_last"].is_contiguous(memory_format=torch.channels_last)


def test_torch_reads_our_objects(tmp_path):
    model = zoo.nn.Sequential(zoo.nn.Linear(2, 3), zoo.nn.BatchNorm1d(3))
    optimizer = zoo.optim.Adam(model.parameters())
    model(zoo.ones(2, 2)).sum().backward()
    optimizer.step()
    obj = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "n": [0, 255, 256, -1, 2**31, 2**70],
           "x": [0.5, float("-inf")], "s": "é" * 200, "none": None, "flags": (True, False), "complex": 1 - 2j,
           "dtype": zoo.bfloat16, "device": zoo.device("cuda:1"), "cpu": zoo.device("cpu"), 5: "int", (1, "x"): "tuple",
           "parameter": zoo.nn.Parameter(zoo.ones(2)), "fixed": zoo.nn.Parameter(zoo.ones(2), requires_grad=False),
           "leaf": zoo.ones(2).requires_grad_(), "numpy": np.arange(3), "np scalar": np.float32(0.5)}
    zoo.save(obj, tmp_path / "ours.pt")
    back = torch.load(tmp_path / "ours.pt", weights_only=True)
    assert list(back) == list(obj)
    for key in ("n", "x", "s", "none", "flags", "complex", 5, (1, "x"), "np scalar"):
        assert back[key] == obj[key] and type(back[key]) is type(obj[key]) or key == "np scalar"
    assert back["dtype"] is torch.bfloat16 and back["device"] == torch.device("cuda:1")
    assert back["cpu"] == torch.device("cpu") and back["numpy"].tolist() == [0, 1, 2]
    assert type(back["parameter"]) is torch.nn.Parameter and back["parameter"].requires_grad
    assert type(back["fixed"]) is torch.nn.Parameter and not back["fixed"].requires_grad and back["leaf"].requires_grad
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    theirs.load_state_dict(back["model"])
    for key, value in model.state_dict().items():
        assert theirs.state_dict()[key].numpy().tobytes() == value.numpy().tobytes()
    torch.optim.Adam(theirs.parameters()).load_state_dict(back["optimizer"])
    torch.save(back, tmp_path / "again.pt")
    again = zoo.load(tmp_path / "again.pt")
    assert list(again) == list(obj) and again["device"] == zoo.device("cuda:1") and again["dtype"] == zoo.bfloat16


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "uint16"])
def test_safetensors_of_others(dtype, tmp_path):
    others = pytest.importorskip("safetensors.torch")
    values = torch.ones(2, 3, dtype=getattr(torch, dtype))
    others.save_file({"w": values, "e": values[:0]}, tmp_path / "theirs.safetensors")
    ours = checkpoint.read(tmp_path / "theirs.safetensors")
    same(ours["w"], values)
    checkpoint.write(tmp_path / "ours.safetensors", ours)
    back = others.load_file(tmp_path / "ours.safetensors")
    same(ours["w"], back["w"])
    assert back["e"].shape == (0, 3)
