"""zoo.save and zoo.load: round trips, other people's files, corrupt files, crashes."""

import errno
import io
import json
import os
from collections import OrderedDict

import numpy as np
import pytest

import zoo
from zoo import nn
from zoo.optim import Adam
from zoo.serialization import FileError, load, save

DTYPES = (
    zoo.float64,
    zoo.float32,
    zoo.float16,
    zoo.bfloat16,
    zoo.int64,
    zoo.int32,
    zoo.int16,
    zoo.int8,
    zoo.uint8,
    np.dtype(bool),
    zoo.complex64,
)


def equal(a, b):
    """The same structure, types and bits."""
    if isinstance(a, zoo.Tensor) and isinstance(b, zoo.Tensor):
        assert isinstance(a, nn.Parameter) == isinstance(b, nn.Parameter)
        assert a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        assert a.detach().numpy().tobytes() == b.detach().numpy().tobytes()
        return
    assert type(a) is type(b), (a, b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            equal(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            equal(x, y)
    else:
        assert a == b or a != a and b != b


def around(obj):
    file = io.BytesIO()
    save(obj, file)
    return load(io.BytesIO(file.getvalue()))


def test_round_trip(tmp_path):
    tree = {
        "step": 3,
        "lr": 0.1,
        "name": "run",
        "none": None,
        "flags": [True, False],
        "huge": 10**30,
        "odd": [float("inf"), -0.0, 1e-320],
        "nested": [{"a": zoo.arange(6).view(2, 3)}, (zoo.ones(2), [zoo.zeros(0, 3)])],
        "tensors": {str(d): zoo.tensor([0, 1, 2]).to(d) for d in DTYPES},
        5: zoo.tensor(1.5),
        (1, "x"): "tuple key",
        "parameter": nn.Parameter(zoo.ones(2)),
        "wants": zoo.ones(1).requires_grad_(),
        "ordered": OrderedDict(b=1, a=2),
        "complex": 1 + 2j,
        "dtype": zoo.bfloat16,
        "device": zoo.device("cpu"),
        "strided": zoo.arange(12).view(3, 4).t()[1:],
        "__metadata__": zoo.ones(1),
        "a.b": zoo.ones(1),
        "a": {"b": zoo.zeros(1)},
    }
    path = tmp_path / "tree.safetensors"
    save(tree, path)
    equal(load(path), tree)
    equal(load(str(path)), tree)
    assert [p.name for p in tmp_path.iterdir()] == ["tree.safetensors"]
    for single in (zoo.ones(3), [], {}, 7, None, "text"):
        equal(around(single), single)


def test_values_of_numpy_become_plain_numbers():
    assert around({"a": np.float64(1.5), "b": np.int64(3), "c": np.bool_(True)}) == {"a": 1.5, "b": 3, "c": True}
    array = around({"a": np.arange(3)})["a"]
    assert type(array) is np.ndarray and array.tolist() == [0, 1, 2]


def test_shared_memory_is_stored_once_and_shared_again():
    w = zoo.rand(100, 100)
    file = io.BytesIO()
    save({"a": w, "b": [w.detach(), nn.Parameter(w)], "part": w[0]}, file)
    assert len(file.getvalue()) < 42_000
    back = load(io.BytesIO(file.getvalue()))
    back["a"][0, 0] = 7
    assert back["b"][0][0, 0].item() == back["b"][1][0, 0].item() == 7


def test_a_training_state_goes_on(tmp_path):
    """Model and optimizer, saved and loaded, go on to the same numbers."""
    zoo.manual_seed(0)
    x = zoo.rand(8, 3)

    def make():
        model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
        return model, Adam(model.parameters(), lr=0.1)

    def steps(model, optimizer, count):
        for _ in range(count):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()

    model, optimizer = make()
    steps(model, optimizer, 3)
    save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "state")
    steps(model, optimizer, 4)
    other, again = make()
    state = load(tmp_path / "state")
    other.load_state_dict(state["model"])
    again.load_state_dict(state["optimizer"])
    steps(other, again, 4)
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert p.detach().numpy().tobytes() == q.detach().numpy().tobytes()


@pytest.mark.torch
def test_files_of_others_and_ours_for_others(tmp_path):
    torch = pytest.importorskip("torch")
    st = pytest.importorskip("safetensors.torch")
    theirs = {"w": torch.rand(3, 4), "b": torch.arange(5), "h": torch.rand(2).bfloat16(), "e": torch.zeros(0, 2)}
    st.save_file(theirs, tmp_path / "theirs.safetensors", metadata={"format": "pt"})
    ours = load(tmp_path / "theirs.safetensors")
    assert sorted(ours) == sorted(theirs)
    for key, value in theirs.items():
        np.testing.assert_array_equal(ours[key].float().numpy(), value.float().numpy())
    save(ours, tmp_path / "ours.safetensors")
    back = st.load_file(tmp_path / "ours.safetensors")
    for key, value in theirs.items():
        assert back[key].dtype == value.dtype and torch.equal(back[key], value)


def good() -> bytes:
    file = io.BytesIO()
    save({"a": zoo.ones(4), "b": [zoo.zeros(2, 2), 3]}, file)
    return file.getvalue()


def with_header(change) -> bytes:
    data = good()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header = change(header) or header
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def set_row(key, **values):
    return lambda header: header[key].update(values)


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "not a safetensors file, or is truncated: 0 bytes"),
        (b"hello, world, this is text", "starts with b'hello, w'"),
        (b"PK\x03\x04" + bytes(40), "no end record"),
        (b"\x80\x02" + bytes(40), "a pickle, but not of torch.save"),
        (good()[:-1], "1 bytes are missing"),
        (good()[:40], "not a safetensors file"),
        (good() + b"x", "1 bytes too many"),
        ((20).to_bytes(8, "little") + b"{" * 20, "header is not JSON"),
        ((200_000).to_bytes(8, "little") + b"{" + b"[" * 199_999, "header is not JSON"),
        ((7).to_bytes(8, "little") + b'{"a":3}', "does not describe tensors"),
        (with_header(set_row("a", dtype="F13")), "'a' of dtype 'F13'"),
        (with_header(set_row("a", shape=[5])), "offsets of tensor 'a'"),
        (with_header(set_row("a", shape=[-1, -4])), "does not describe tensors"),
        (with_header(set_row("a", shape=[2**62, 4])), "offsets of tensor 'a'"),
        (with_header(set_row("b.0", data_offsets=[0, 16])), "do not fit its shape and neighbours"),
        (with_header(set_row("a", data_offsets="xy")), "does not describe tensors"),
        (with_header(lambda h: h.pop("b.0") and None), "corrupt"),
        (with_header(lambda h: h.update(a=3)), "does not describe tensors"),
        (with_header(set_row("__metadata__", zoo='{"dict": 3}')), "tree in its metadata"),
        (with_header(set_row("__metadata__", zoo='{"tensor": ["nowhere", "cpu", false]}')), "tree in its metadata"),
        (with_header(set_row("__metadata__", zoo='{"call": ["os.system", "true"]}')), "tree in its metadata"),
        (with_header(set_row("__metadata__", zoo="[" * 100_000)), "tree in its metadata"),
        (with_header(set_row("__metadata__", zoo="{")), "tree in its metadata"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_corrupt_files_give_one_line(data, words, tmp_path):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    for source, name in ((path, "bad.safetensors"), (io.BytesIO(data), "the file")):
        with pytest.raises(FileError) as caught:
            load(source)
        assert words in str(caught.value) and name in str(caught.value) and "\n" not in str(caught.value)


def test_what_cannot_be_saved_is_named():
    for obj, words in (
        ({"a": [1, {2}]}, "set at a.1"),
        ({"f": {"g": len}}, "at f.g"),
        ({zoo.ones(1): 1}, "keys of strings or numbers"),
        ({"d": [np.dtype("S3")]}, "at d.0"),
        ({"c": zoo.tensor([1j], dtype=np.complex128)}, "complex128"),
    ):
        with pytest.raises(TypeError, match=words):
            save(obj, io.BytesIO())


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state.safetensors"
    save({"step": 1}, path)

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save({"step": 2, "w": zoo.ones(1000)}, path)
    assert load(path) == {"step": 1} and [p.name for p in tmp_path.iterdir()] == ["state.safetensors"]
    with pytest.raises(FileNotFoundError):
        save(1, tmp_path / "nowhere" / "x")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


@pytest.mark.cuda
def test_devices(tmp_path):
    path = tmp_path / "cuda.safetensors"
    save({"w": zoo.arange(4).to("cuda"), "c": zoo.ones(1)}, path)
    back = load(path)
    assert (
        back["w"].device.type == "cuda" and back["c"].device.type == "cpu" and back["w"].cpu().tolist() == [0, 1, 2, 3]
    )
    assert load(path, map_location="cpu")["w"].device.type == "cpu"
    assert load(path, map_location={"cuda:0": "cpu"})["w"].device.type == "cpu"


def test_a_file_from_a_gpu_on_a_machine_without_one():
    tree = json.dumps({"dict": [["w", {"tensor": ["a", "cuda:0", False]}]]})
    data = with_header(set_row("__metadata__", zoo=tree))
    assert load(io.BytesIO(data), map_location="cpu")["w"].tolist() == [1, 1, 1, 1]
    if not zoo.cuda.is_available():
        with pytest.raises(FileError, match="cuda:0, which is not here.*map_location='cpu'"):
            load(io.BytesIO(data))


@pytest.mark.cuda
def test_devices_in_torchs_format(tmp_path):
    w = zoo.arange(4).to("cuda")
    save({"w": w, "tied": w, "c": zoo.ones(1)}, tmp_path / "cuda.pt")
    back = load(tmp_path / "cuda.pt")
    assert back["w"].device.type == "cuda" and back["c"].device.type == "cpu"
    assert back["w"].cpu().tolist() == [0, 1, 2, 3]
    back["w"][0] = 7
    assert back["tied"].cpu().tolist() == [7, 1, 2, 3]
    assert load(tmp_path / "cuda.pt", map_location="cpu")["w"].device.type == "cpu"


def test_a_header_as_long_as_a_pickle_begins():
    """The first byte of a safetensors file is its header's length; 0x80 there is how pickles begin."""
    for length in range(200):
        file = io.BytesIO()
        zoo.save({"n" * length: zoo.ones(1)}, file)
        assert list(zoo.load(io.BytesIO(file.getvalue()))) == ["n" * length]
