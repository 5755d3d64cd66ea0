"""zoo.checkpoint.read: every format, without torch: fixtures written by torch, and files put together by hand."""
import io
import mmap as mapping
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections import OrderedDict

import ml_dtypes
import numpy as np
import pytest

import zoo
from tests.checkpoint_files import (
    FIXTURES,
    archive,
    both,
    call,
    legacy,
    name,
    number,
    program,
    safetensors,
    storage,
    tensor,
    text,
    tuple_of,
)
from zoo import checkpoint
from zoo.checkpoint import FileError
from zoo.checkpoint.dtypes import SAFETENSORS
from zoo.checkpoint.zip_file import FULL32, zip64

VALUES = np.arange(6, dtype=np.float32)


def reads(data, tmp_path):
    """What each way of reading gives: from memory, mapped, and not mapped."""
    path = tmp_path / "file"
    path.write_bytes(data)
    return [checkpoint.read(io.BytesIO(data)), checkpoint.read(path), checkpoint.read(str(path), mmap=False)]


@pytest.mark.parametrize("file", ["torch_zip.pt", "torch_legacy.pt"])
def test_files_that_torch_wrote(file):
    for mmap in (True, False):
        x = checkpoint.read(FIXTURES / file, mmap=mmap)
        np.testing.assert_array_equal(x["w"], VALUES.reshape(2, 3))
        np.testing.assert_array_equal(x["t"], x["w"].T)
        np.testing.assert_array_equal(x["row"], [3, 4, 5])
        assert x["w"].dtype == np.float32 and x["h"].dtype == np.float16 and x["b"].dtype == zoo.bfloat16
        assert x["h"].tolist() == x["b"].tolist() == [1.5, -2.0]
        assert x["n"].shape == () and x["n"] == 7 and x["n"].dtype == np.int64
        assert x["flag"].tolist() == [True, False] and x["p"].tolist() == [1, 1] and x["empty"].shape == (0, 3)
        assert x["plain"] == [1, 2.5, "x", None, (True,)]
        assert type(x["sd"]) is OrderedDict and x["sd"]["weight"].tolist() == [[3]]
        x["w"][1, 0] = 9                      # a private page or a copy: writable, and shared as it was in torch
        assert x["t"][0, 1] == x["row"][0] == 9
    assert checkpoint.read(FIXTURES / file)["w"][1, 0] == 3


def test_the_same_object_as_tensors():
    x = zoo.load(FIXTURES / "torch_zip.pt")
    assert type(x["p"]) is zoo.nn.Parameter and x["p"].requires_grad and not x["w"].requires_grad
    assert x["b"].dtype == zoo.bfloat16 and x["t"].tolist() == x["w"].t().tolist()
    x["w"][1, 0] = 9
    assert x["row"][0].item() == 9
    model = zoo.nn.Linear(1, 1, bias=False)
    model.load_state_dict(x["sd"])
    assert model.weight.tolist() == [[3]]


@pytest.mark.parametrize("kind", ["zip", "legacy"])
def test_strides_and_sharing(kind, tmp_path):
    parts = [tensor(storage(), *geometry) for geometry in (
        (0, (2, 3), (3, 1)), (0, (3, 2), (1, 3)), (1, (2,), (2,)), (5, (4, 1), (0, 0)), (5, (), ()),
        (6, (0, 3), (3, 1)), (0, (1, 2, 3), (6, 1, 2)))]
    for x in reads(both(tuple_of(*parts), data=VALUES)[kind], tmp_path):
        assert [a.tolist() for a in x[:5]] == [[[0, 1, 2], [3, 4, 5]], [[0, 3], [1, 4], [2, 5]], [1, 3], [[5]] * 4, 5]
        assert x[5].shape == (0, 3) and x[6].tolist() == [[[0, 2, 4], [1, 3, 5]]]
        assert x[0].strides == (12, 4) and x[1].strides == (4, 12) and x[3].strides[0] == 0
        x[0][1, 2] = 7
        assert x[1][2, 1] == x[3][0, 0] == x[4] == 7


@pytest.mark.parametrize("kind", ["zip", "legacy"])
def test_values_beside_tensors(kind, tmp_path):
    pid = tuple_of(text("storage"), name("torch.storage", "UntypedStorage"), text("0"), text("cpu"), number(24)) + b"Q"
    typed = call("torch._utils", "_rebuild_tensor_v3", pid, number(1), tuple_of(number(2)), tuple_of(number(1)),
                 b"\x89", call("collections", "OrderedDict"), name("torch", "uint16"))
    parts = [
        call("torch", "Size", tuple_of(number(2), number(3))), call("torch", "device", text("cuda"), number(1)),
        name("torch", "bfloat16"), call("builtins", "set", b"](" + number(1) + number(2) + b"e"),
        call("_codecs", "encode", text("\xff"), text("latin1")), call("builtins", "complex", number(1), number(-2)),
        call("collections", "Counter", b"}" + text("a") + number(2) + b"s"), b"\x8a\x09" + bytes(8) + b"\x01",
        b"G\xbf\xf0" + bytes(6), b"U\x01a", b"T\x01\x00\x00\x00\xff", b"\x8c\x01b", b"C\x01c", b"B\x01\x00\x00\x00d",
        b"\x8f(" + number(3) + b"\x90", b"I-5\n", b"N0" + b"(NN1" + b"\x88", b"\x89\x85", b"NN\x86", b"NNN\x87",
        b"K\x05\x94q\x07h\x07\x86", b"\x95" + bytes(8) + b"\x8c\x05torch\x8c\x04int8\x93",
        call("collections", "OrderedDict", b"](" + b"](" + text("k") + number(1) + b"e" + b"e"), typed,
    ]
    data = both(b"(" + b"".join(parts) + b"t", data=np.frombuffer(VALUES.tobytes(), np.uint8))[kind]
    for x in reads(data, tmp_path):
        assert x[:-1] == ((2, 3), "cuda:1", zoo.bfloat16, {1, 2}, b"\xff", 1 - 2j, {"a": 2}, 1 << 64, -1.0, "a", "\xff",
                          "b", b"c", b"d", {3}, -5, True, (False,), (None, None), (None,) * 3, (5, 5), np.int8,
                          OrderedDict(k=1))
        assert x[-1].tolist() == np.frombuffer(VALUES.tobytes(), np.uint16)[1:3].tolist() and x[-1].dtype == np.uint16


def test_big_endian_files(tmp_path):
    swapped = VALUES.astype(">f4").tobytes()
    body = program(tensor(storage()))
    for data in (archive(body, {"0": swapped}, {"byteorder": b"big"}), legacy(body, {"0": (6, swapped)}, little=False)):
        for x in reads(data, tmp_path):
            assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x.dtype.isnative


def test_archives_of_other_shape(tmp_path):
    """Deflated, without a folder, with a storage at an odd offset, with a folder name that is not ASCII."""
    body, data = program(tensor(storage())), {"0": VALUES.tobytes()}
    for file in (archive(body, data, method=zipfile.ZIP_DEFLATED), archive(body, data, root=""),
                 archive(body, data, {"pad": b"x"}, root="é" * 5 + "/")):
        for x in reads(file, tmp_path):
            assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x.flags.aligned and x.flags.writeable


def test_zip64_fields():
    """Only fields that are full stand in the extra field, in their order; other extra fields are passed over."""
    extra = struct.pack("<2sHI", b"FB", 4, 0) + struct.pack("<2H2Q", 1, 16, 1 << 33, 1 << 34)
    assert zip64(extra, FULL32, 5, FULL32) == [1 << 33, 5, 1 << 34]
    assert zip64(b"", 1, 2, 3) == [1, 2, 3]
    with pytest.raises(FileError, match="zip64 field is missing"):
        zip64(extra, FULL32, FULL32, FULL32)


def test_checksums(tmp_path):
    """A flipped byte of a storage is found when it is read, not when it is mapped; a CRC of 0 is none."""
    data = archive(program(tensor(storage())), {"0": VALUES.tobytes()})
    at = data.index(VALUES.tobytes())
    flipped = bytearray(data)
    flipped[at + 4] ^= 1
    path = tmp_path / "flipped.pt"
    path.write_bytes(flipped)
    assert checkpoint.read(path)[0, 1] != 1
    for f in (io.BytesIO(flipped), path):
        with pytest.raises(FileError, match="checksum of its member 'archive/data/0'"):
            checkpoint.read(f, mmap=False)
    pickled = data.replace(b"FloatStorage", b"FloatStorbge")
    with pytest.raises(FileError, match="checksum of its member 'archive/data.pkl'"):
        checkpoint.read(io.BytesIO(pickled))
    crc = zipfile.ZipFile(io.BytesIO(data)).getinfo("archive/data/0").CRC.to_bytes(4, "little")
    assert checkpoint.read(io.BytesIO(flipped.replace(crc, bytes(4))), mmap=False)[0, 2] == 2


@pytest.mark.parametrize("dtype", SAFETENSORS.values(), ids=str)
def test_every_dtype_of_safetensors(dtype, tmp_path):
    array = (np.arange(6).reshape(2, 3) % 2 + 1).astype(dtype)
    file = io.BytesIO()
    checkpoint.write(file, {"a": array, "t": array.T, "none": array[:0]})
    for x in reads(file.getvalue(), tmp_path):
        assert [x[k].dtype for k in x] == [dtype] * 3 and x["none"].shape == (0, 3)
        assert x["a"].tobytes() == array.tobytes() and x["t"].tobytes() == array.T.tobytes()


def test_mapped_arrays_are_pages_of_the_file(tmp_path):
    path = tmp_path / "w.safetensors"
    checkpoint.write(path, {"w": np.zeros(1000, np.float32)})
    a, b = (checkpoint.read(path)["w"] for _ in range(2))
    a[0] = 1
    assert b[0] == 0 and checkpoint.read(path)["w"][0] == 0          # private
    with open(path, "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(np.float32(5).tobytes())
    assert b[-1] == 5                                                # not a copy
    assert checkpoint.read(path, mmap=False)["w"].base is not b.base


def test_npz_and_npy(tmp_path):
    arrays = {"w": VALUES.reshape(2, 3), "f": np.asfortranarray(VALUES.reshape(2, 3)), "big": VALUES.astype(">f4"),
              "z": np.ones((0, 2), np.complex128), "s": np.array(3, np.int8)}
    np.savez(tmp_path / "a.npz", **arrays)
    np.savez_compressed(tmp_path / "b.npz", **arrays)
    for f in ("a.npz", "b.npz"):
        for x in reads((tmp_path / f).read_bytes(), tmp_path):
            assert list(x) == list(arrays) and all(np.array_equal(x[k], v) for k, v in arrays.items())
            assert x["big"].dtype == np.float32 and x["big"].dtype.isnative and x["f"].flags.f_contiguous
    np.save(tmp_path / "a.npy", VALUES)
    assert checkpoint.read(tmp_path / "a.npy").tolist() == VALUES.tolist()
    assert zoo.load(tmp_path / "a.npz")["w"].tolist() == VALUES.reshape(2, 3).tolist()
    for bad, words in ((np.array([None]), "'|O'"), (np.array(["x"]), "'<U1'"),
                       (np.ones(2, ml_dtypes.bfloat16), "'<V2'"), (np.ones(2, "f4,f4"), "f0")):
        np.savez(tmp_path / "bad.npz", bad=bad)
        with pytest.raises(FileError, match="only arrays of numbers") as caught:
            checkpoint.read(tmp_path / "bad.npz")
        assert words in str(caught.value)


def tar_file() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("storages"), io.BytesIO())
    return file.getvalue()


def zip_of(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        for member in names:
            z.writestr(member, b"x")
    return file.getvalue()


OTHERS = {
    "html": (b"\n <!DOCTYPE html><html>", "web page"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "gzip": (b"\x1f\x8b\x08" + bytes(20), "gunzip"),
    "tar": (tar_file(), "tar archive"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(20), "HDF5"),
    "gguf": (b"GGUF" + bytes(20), "GGUF"),
    "pickle": (b"\x80\x04N.", "a pickle, but not of torch.save"),
    "torchscript": (archive(program(b"N"), {}, {"constants.pkl": b"x"}), "TorchScript program"),
    "other zip": (zip_of("a.txt", "model.pt"), "zip archive of other things (a.txt, model.pt)"),
    "empty zip": (zip_of(), "empty zip archive"),
    "cut zip": (archive(program(b"N"))[:-30], "no end record"),
    "cut legacy": (legacy(program(tensor(storage())), {"0": (6, VALUES.tobytes())})[:-1], "truncated"),
    "empty": (b"", "0 bytes"),
    "text": (b"lr: 0.1\nmomentum: 0.9\n", "starts with b'lr: 0.1"),
    "pickled module": (archive(program(call("torchvision.models.resnet", "ResNet"))),
                       "names 'torchvision.models.resnet.ResNet'"),
    "numpy scalar": (archive(program(call("numpy.core.multiarray", "scalar"))), "plain numbers"),
    "quantized": (archive(program(call("torch._utils", "_rebuild_qtensor"))), "_rebuild_qtensor"),
    "old module": (legacy(program(tuple_of(text("module"), text("a"), text("b"), text("c")) + b"Q")), "whole pickled"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_files_are_named(case, tmp_path):
    data, words = OTHERS[case]
    path = tmp_path / "weights"
    path.write_bytes(data)
    for f, where in ((path, str(path)), (io.BytesIO(data), "the file")):
        with pytest.raises(FileError) as caught:
            checkpoint.read(f)
        assert words in str(caught.value) and where in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileError, match="a folder or a device"):
        checkpoint.read(tmp_path)
    with pytest.raises(FileError, match="a folder or a device"):
        checkpoint.read("/dev/zero")
    with pytest.raises(FileNotFoundError):
        checkpoint.read(tmp_path / "none")
    with pytest.raises(FileError, match="not open in binary mode"):
        checkpoint.read(io.StringIO("text"))


def root(array):
    """What owns an array's memory."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return getattr(array, "obj", array)


def test_open_files(tmp_path):
    """Reading begins where the file stands, a file from its beginning is mapped, a pipe is read to its end."""
    data = safetensors({"w": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, b"\1\2")
    for inner in (data, both(tensor(storage()), data=VALUES)["legacy"]):
        file = io.BytesIO(b"junk" + inner)
        file.seek(4)
        checkpoint.read(file)
    path = tmp_path / "w"
    path.write_bytes(data)
    for buffering in (-1, 0):
        with open(path, "rb", buffering=buffering) as file:
            array = checkpoint.read(file)["w"]
            assert not file.closed and isinstance(root(array), mapping.mmap)
            file.seek(3)
            with pytest.raises(FileError, match=str(path)):
                checkpoint.read(file)
        assert array.tolist() == [1, 2]
    with subprocess.Popen([sys.executable, "-c", f"import os; os.write(1, {data!r})"], stdout=subprocess.PIPE) as child:
        assert checkpoint.read(child.stdout)["w"].tolist() == [1, 2]


def test_map_location_of_torchs_files():
    pid = tuple_of(text("storage"), name("torch", "FloatStorage"), text("0"), text("cuda:5"), number(6)) + b"Q"
    device = call("torch", "device", text("cuda"), number(5))
    for data in both(tuple_of(tensor(pid), device), data=VALUES).values():
        array, where = zoo.load(io.BytesIO(data), map_location="cpu")
        assert array.tolist() == [[0, 1, 2], [3, 4, 5]] and where == zoo.device("cuda:5")
        if not zoo.cuda.is_available():
            with pytest.raises(FileError, match="cuda:5, which is not here.*map_location='cpu'"):
                zoo.load(io.BytesIO(data))
        with pytest.raises(RuntimeError, match="wants cpu, cuda") as caught:
            zoo.load(io.BytesIO(data), map_location="tpu")
        assert not isinstance(caught.value, FileError)                # the caller's fault, not the file's
    for data in both(call("torch", "device", text("tpu"))).values():
        with pytest.raises(FileError, match="wants cpu, cuda"):
            zoo.load(io.BytesIO(data))


def test_gradients_of_integers_are_the_files_fault():
    for data in both(call("torch._utils", "_rebuild_parameter", tensor(storage(kind="IntStorage")), b"\x88"),
                     data=VALUES.astype(np.int32)).values():
        assert checkpoint.read(io.BytesIO(data)).tolist() == [[0, 1, 2], [3, 4, 5]]
        with pytest.raises(FileError, match="only floating tensors"):
            zoo.load(io.BytesIO(data))
