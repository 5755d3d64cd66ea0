"""zoo.checkpoint.read_state_dict, write and convert."""
import io
import os

import ml_dtypes
import numpy as np
import pytest

import zoo
from zoo import checkpoint
from zoo.checkpoint import FileError
from zoo.checkpoint.dtypes import SAFETENSORS, TORCH_DTYPES

W = {"w": zoo.ones(2), "b": zoo.zeros(1)}
BEFORE = {"module." + k: v for k, v in W.items()}


def file_of(obj):
    file = io.BytesIO()
    zoo.save(obj, file)
    return io.BytesIO(file.getvalue())


@pytest.mark.parametrize("obj, key, wrappers", [
    (W, None, ()),
    ({"state_dict": W, "epoch": 3, "best": zoo.tensor(0.5)}, None, ("state_dict",)),
    ({"model": W, "optimizer": {"state": {}}}, None, ("model",)),
    ({"model_state_dict": W}, None, ("model_state_dict",)),
    ({"model": {"state_dict": W, "vocab": {"a": 1}}}, None, ("model", "state_dict")),
    ({"model": {"depth": 50}, "state_dict": W}, None, ("state_dict",)),
    (BEFORE, None, ("module.",)),
    ({"_orig_mod." + k: v for k, v in BEFORE.items()}, None, ("_orig_mod.", "module.")),
    (BEFORE | {"n_averaged": zoo.tensor(3)}, None, ("module.",)),
    ({"state_dict": BEFORE, "state_dict_ema": {"w": zoo.zeros(2)}}, None, ("state_dict", "module.")),
    ({"state_dict": {"w": zoo.zeros(2)}, "state_dict_ema": W}, "ema", ("state_dict_ema",)),
    ({"model": {"w": zoo.zeros(2)}, "model_ema": {"module": BEFORE}}, "model_ema", ("model_ema", "module", "module.")),
    ({"model": {"w": zoo.zeros(2)}, "ema": W, "ema_model": W}, "ema", ("ema",)),
    ({"generator": {"w": zoo.zeros(2)}, "discriminator": W}, "discriminator", ("discriminator",)),
])
def test_unwrapping(obj, key, wrappers):
    got = checkpoint.read_state_dict(file_of(obj), key=key)
    assert {k: v.tolist() for k, v in got.items()} == {"w": [1, 1], "b": [0]} and got.wrappers == wrappers
    assert all(type(v) is np.ndarray for v in got.values())


def test_what_is_dropped_is_said():
    got = checkpoint.read_state_dict(file_of(BEFORE | {"n_averaged": zoo.tensor(3), "epoch": 3, "net": {}}))
    assert list(got) == ["w", "b"] and got.dropped == ("epoch", "net", "n_averaged")
    plain = checkpoint.read_state_dict(file_of({"model": W, "module.w": zoo.ones(1)}), unwrap=False)
    assert list(plain) == ["module.w"] and plain.dropped == ("model",) and plain.wrappers == ()
    assert checkpoint.read_state_dict(file_of({})) == {}


@pytest.mark.parametrize("obj, key, words", [
    ({"model": W, "state_dict": W}, None, "several state_dicts; say key= one of 'state_dict', 'model'"),
    ({"generator": W, "discriminator": W, "epoch": 1}, None, "say key= one of 'generator', 'discriminator'"),
    ({"epoch": 1}, None, "holds no tensors at the top, only 'epoch'"),
    ({"model": W}, "ema", "has no entry 'ema'; it has 'model'"),
    ({"model_ema": W, "state_dict_ema": W}, "ema", "several kinds of averaged weights"),
    ([zoo.ones(1)], None, "holds a list, not a state_dict"), ([zoo.ones(1)], "ema", "holds a list, which has no entry"),
    (zoo.ones(1), None, "holds a ndarray"), ({"epoch": 3}, "epoch", "holds a int"),
])
def test_what_is_no_state_dict(obj, key, words):
    with pytest.raises(FileError) as caught:
        checkpoint.read_state_dict(file_of(obj), key=key)
    assert words in str(caught.value) and str(caught.value).startswith("load: the file ")


@pytest.mark.parametrize("kind", checkpoint.writing.FORMATS)
def test_casts(kind):
    half, eight = np.array([1.5, -2], np.float16), np.array([1.5, -2], ml_dtypes.float8_e4m3fn)
    arrays = {"h": half, "bf": half.astype(zoo.bfloat16), "f8": eight, "e5": half.astype(ml_dtypes.float8_e5m2),
              "n": np.array(3), "flag": np.array([True]), "c": np.array([1j], np.complex64), "d": half.astype(float)}
    file = io.BytesIO()
    checkpoint.write(file, arrays, format=kind)
    kept = checkpoint.read_state_dict(io.BytesIO(file.getvalue()))
    assert {k: v.dtype for k, v in kept.items()} == {k: v.dtype for k, v in arrays.items()}
    got = checkpoint.read_state_dict(io.BytesIO(file.getvalue()), dtype=zoo.float32)
    for name in ("h", "bf", "f8", "e5", "d"):
        assert got[name].dtype == np.float32 and got[name].tolist() == [1.5, -2]
    assert [got[k].dtype for k in ("n", "flag", "c")] == [np.int64, np.bool_, np.complex64]


def test_tied_weights_stay_tied_through_write_and_cast(tmp_path):
    w = np.arange(6, dtype=np.float16).reshape(2, 3)
    checkpoint.write(tmp_path / "w.pt", {"a": w, "t": w.T, "row": w[1], "again": w})
    assert (tmp_path / "w.pt").read_bytes().count(w.tobytes()) == 1
    for dtype in (None, "float32"):
        x = checkpoint.read_state_dict(tmp_path / "w.pt", dtype=dtype)
        x["a"][1, 0] = 9
        assert x["again"][1, 0] == 9 and x["a"].flags.writeable
    x = checkpoint.read(tmp_path / "w.pt")
    x["a"][1, 0] = 9
    assert x["t"][0, 1] == x["row"][0] == 9


@pytest.mark.parametrize("suffix, start", [(".pt", b"PK"), (".pth", b"PK"), (".bin", b"PK"), (".ckpt", b"PK"),
                                           (".safetensors", None), ("", None)])
def test_suffix_decides_the_format(suffix, start, tmp_path):
    for index, write in enumerate((lambda p: checkpoint.write(p, {"w": np.ones(2)}), lambda p: zoo.save(W, p),
                                   lambda p: checkpoint.convert(file_of({"model": W}), p))):
        path = tmp_path / f"{index}{suffix}"
        write(path)
        head = path.read_bytes()[:9]
        assert head.startswith(start) if start else head[8:] == b"{"
        assert zoo.load(path)["w"].tolist() == [1, 1]
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{i}{suffix}" for i in range(3)]


def test_format_is_said_and_checked(tmp_path):
    checkpoint.write(tmp_path / "w.pt", {"w": np.ones(2)}, format="safetensors")
    assert (tmp_path / "w.pt").read_bytes()[8:9] == b"{"
    for write in (lambda: checkpoint.write(tmp_path / "x", {}, format="onnx"), lambda: zoo.save({}, "x", format="npz")):
        with pytest.raises(ValueError, match="wants the format safetensors or torch, got"):
            write()
    with pytest.raises(TypeError, match="wants arrays by name, got list at 'a'"):
        checkpoint.write(tmp_path / "x", {"a": [1]})
    with pytest.raises(TypeError, match="safetensors has no dtype complex128"):
        checkpoint.write(tmp_path / "x", {"a": np.ones(1, complex)})
    with pytest.raises(TypeError, match="torch has no dtype <U1"):
        checkpoint.write(tmp_path / "x.pt", {"a": np.array(["a"])})
    assert [p.name for p in tmp_path.iterdir()] == ["w.pt"]


def test_convert(tmp_path):
    zoo.save({"state_dict": BEFORE, "epoch": 3}, tmp_path / "in.pth")
    state = checkpoint.convert(tmp_path / "in.pth", tmp_path / "out.safetensors", dtype="float16")
    assert state.wrappers == ("state_dict", "module.")
    out = checkpoint.read(tmp_path / "out.safetensors")
    assert out["w"].dtype == np.float16 and out["w"].tolist() == [1, 1] and sorted(out) == ["b", "w"]
    checkpoint.convert(tmp_path / "out.safetensors", tmp_path / "out.safetensors", dtype="float32")   # onto itself
    assert checkpoint.read(tmp_path / "out.safetensors")["w"].dtype == np.float32


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "w.pt"
    zoo.save(W, path)
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        zoo.save({"w": zoo.zeros(1000)}, path)
    with pytest.raises(TypeError, match="set at a.1"):
        zoo.save({"a": [1, {2}]}, path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["w.pt"]


def test_write_is_the_same_each_time():
    one, two = io.BytesIO(), io.BytesIO()
    for file in (one, two):
        checkpoint.write(file, {"w": np.ones(2), "v": np.ones((0, 3))}, format=checkpoint.writing.FORMATS[1])
    assert one.getvalue() == two.getvalue()


def test_odd_arrays_survive_torchs_format():
    """Negative strides, big-endian elements, views of part of an element, expanded, empty and 0-d arrays."""
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    parts = np.zeros(4, [("x", "i1"), ("y", "<f4")])
    arrays = {"back": a[::-1], "big": a.astype(">f4"), "part": parts["y"], "wide": np.broadcast_to(a[0], (5, 4)),
              "empty": a[:0], "scalar": np.array(2.5), "step": a[:, ::2], "f": np.asfortranarray(a), "bool": a > 3}
    checkpoint.write(file := io.BytesIO(), arrays, format=checkpoint.writing.FORMATS[1])
    back = checkpoint.read(io.BytesIO(file.getvalue()))
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].shape == array.shape and back[name].dtype == array.dtype.newbyteorder("=")
    assert back["wide"].strides[0] == 0 and back["f"].strides == (4, 12)


def test_the_tables_name_each_dtype_once():
    for table in (SAFETENSORS, TORCH_DTYPES):
        assert len(set(table.values())) == len(table)
