"""Hostile files: nothing of them runs, nothing outside is touched, no memory beyond the bound, one kind of error."""
import builtins
import collections
import io
import os
import pickle
import posix
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

import zoo
from tests.checkpoint_files import (
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
from zoo.checkpoint import FileError, opcodes, source, torch_names
from zoo.checkpoint.state_dict import WRAPPERS
from zoo.serialization import load

DATA = np.arange(6, dtype=np.float32)


class Runs:
    """An object whose pickle calls something."""

    def __init__(self, function, *arguments, state=None):
        self.call = function, arguments, state

    def __reduce__(self):
        return self.call if self.call[2] is not None else self.call[:2]


def short(x: str) -> bytes:
    return b"\x8c" + bytes([len(x)]) + x.encode()


PICKLES = {f"{function.__module__}.{function.__name__} by protocol {protocol}":
           pickle.dumps(Runs(function, *arguments), protocol)
           for protocol in range(2, 6)
           for function, arguments in ((os.system, ("touch /tmp/zoo_was_here",)), (builtins.eval, ("1",)),
                                       (builtins.exec, ("1",)), (builtins.open, ("/tmp/zoo_was_here", "w")),
                                       (builtins.print, ("x",)), (builtins.setattr, (1, "real", 2)),
                                       (subprocess.Popen, (["true"],)), (__import__, ("antigravity",)))}
PICKLES |= {
    "posix.system": program(call("posix", "system", text("true"))),
    "nt.system": program(call("nt", "system", text("true"))),
    "a name with dots": program(b"\x95" + bytes(8), short("torch"), short("serialization.os.system"), b"\x93",
                                tuple_of(text("true")), b"R"),
    "a submodule of a listed module": program(call("torch", "load", text("x"))),
    "torch.hub": program(call("torch.hub", "load", text("x"), text("y"))),
    "numpy loads": program(call("numpy", "load", text("x"))),
    "BUILD of Counter": program(name("collections", "Counter"), b"}", text("most_common"), number(1), b"sb"),
    "BUILD with slots of Counter": program(name("collections", "Counter"), b"N}", text("most_common"), number(1),
                                           b"s\x86b"),
    "BUILD of OrderedDict itself": program(name("collections", "OrderedDict"), b"N}", text("pop"), number(1),
                                           b"s\x86b"),
    "BUILD of a dict": program(b"}}b"), "BUILD of a list": program(b"]}b"),
    "SETITEM on a class": program(name("collections", "OrderedDict"), text("x"), number(1), b"s"),
    "APPEND to a class": program(name("collections", "OrderedDict"), text("x"), b"a"),
    "REDUCE of a dtype": program(name("torch", "float32"), b")R"),
    "REDUCE of a storage class": program(name("torch", "FloatStorage"), b")R"),
    "REDUCE of a string": program(text("os.system"), tuple_of(text("true")), b"R"),
    "REDUCE with a list": program(name("collections", "OrderedDict"), b"]R"),
    "codecs into a file": program(call("_codecs", "encode", text("x"), text("zip"))),
    "NEWOBJ": program(name("collections", "OrderedDict"), b")\x81"),
    "NEWOBJ_EX": program(name("collections", "OrderedDict"), b")}\x92"),
    "OBJ": program(b"(", name("collections", "OrderedDict"), b"o"), "INST": program(b"(ios\nsystem\n"),
    "EXT1": program(b"\x82\x01"), "EXT2": program(b"\x83\x01\x00"), "EXT4": program(b"\x84\x01\x00\x00\x00"),
    "PERSID": program(b"Pos.system\n"), "a persistent id of one string": program(text("x"), b"Q"),
    "a persistent id of an open file": program(tuple_of(text("file"), text("/etc/passwd")), b"Q"),
    "a persistent id of a list": program(b"]Q"),
    "STRING": program(b"S'\\x41'\n"), "STRING with bad escapes": program(b"S'\\xZZ\n"),
    "UNICODE": program(b"V\\ud800\n"),
    "LONG": program(b"L5L\n"), "PUT": program(b"Np0\n"), "GET": program(b"g0\n"), "DICT": program(b"(d"),
    "a text that is longer than the file": program(b"X\xff\xff\xff\xff"),
    "bytes of 2**63": program(b"\x8e" + struct.pack("<Q", 2**63)),
    "a string of negative length": program(b"T\xff\xff\xff\xff"),
    "LONG4 of negative length": program(b"\x8b\xff\xff\xff\xff"),
    "no STOP": b"\x80\x02N", "nothing": b"", "an empty stack": program(), "a mark left": program(b"("),
    "POP of nothing": program(b"0"), "a tuple without a mark": program(b"t"), "a pop below a mark": program(b"N(0"),
    "BINGET of nothing": program(b"h\x05"), "odd items": program(b"}(Nu"), "a list as a key": program(b"}]Ns"),
    "a nested tuple as a key": program(b"}N\x85\x85Ns"),
    "a tuple doubled 60 times as a key": program(b"}N", b"q\x00h\x00\x86" * 60, b"Ns"),
    "a long integer": program(b"I" + b"9" * 5000 + b"\n"), "a name without end": program(b"c" + b"a" * 5000),
    "a name of bad UTF-8": program(b"c\xff\xfe\nx\n"), "an integer of letters": program(b"Iabc\n"),
    "surrogates": program(b"X\x01\x00\x00\x00\xff"), "protocol 200 and junk": b"\x80\xc8\xff.",
}
DOUBLED = b"N" + b"q\x00h\x00\x86" * 60             # a tuple of twice the same, 60 levels deep
BAD_TENSORS = {
    "outside": tensor(storage(), 0, (7,), (1,)), "offset outside": tensor(storage(), 6, (1,), (1,)),
    "stride outside": tensor(storage(), 0, (2, 2), (5, 1)), "negative offset": tensor(storage(), -1, (2,), (1,)),
    "negative size": tensor(storage(), 0, (-2,), (1,)), "negative stride": tensor(storage(), 5, (2,), (-1,)),
    "size without stride": tensor(storage(), 0, (2,), ()), "65 dimensions": tensor(storage(), 0, (1,) * 65, (1,) * 65),
    "size of a list": call("torch._utils", "_rebuild_tensor_v2", storage(), number(0), b"]", b")", b"\x89", b"N"),
    "size of a bool": call("torch._utils", "_rebuild_tensor_v2", storage(), number(0), b"\x88\x85", b"K\x01\x85", b"N",
                           b"N"),
    "huge": call("torch._utils", "_rebuild_tensor_v2", storage(), number(0),
                 tuple_of(b"\x8a\x09" + b"\xff" * 8 + b"\x00"), tuple_of(number(1)), b"\x89", b"N"),
    "huge and empty": call("torch._utils", "_rebuild_tensor_v2", storage(), number(0),
                           tuple_of(number(0), b"\x8a\x08" + b"\xff" * 7 + b"\x7f"), tuple_of(number(1), number(1)),
                           b"\x89", b"N"),
    "no storage": tensor(b"N"), "too few arguments": call("torch._utils", "_rebuild_tensor_v2", storage()),
    "wrong count": tensor(storage(count=5)), "huge count": tensor(storage(count=2**31 - 1)),
    "negative count": tensor(storage(count=-1)), "unknown key": tensor(storage("../../etc/passwd")),
    "two dtypes": tuple_of(tensor(storage()), tensor(storage(kind="IntStorage"))),
    "a conjugate bit": call("torch._utils", "_rebuild_tensor_v2", storage(), number(0), tuple_of(number(2)),
                            tuple_of(number(1)), b"\x89", b"}", b"}" + text("conj") + b"\x88s"),
    "a parameter of a string": call("torch._utils", "_rebuild_parameter", text("x")),
    "BUILD": tensor(storage()) + b"}" + text("shape") + number(1) + b"sb",
    "a size that is doubled": DOUBLED + b"q\x01" + call(
        "torch._utils", "_rebuild_tensor_v2", storage(), number(0), b"h\x01", b"h\x01", b"\x89", b"N"),
    "a size of a list that is doubled": DOUBLED + b"q\x01" + call(
        "torch._utils", "_rebuild_tensor_v2", storage(), b"h\x01", b"](h\x01e", b"h\x01", b"\x89", b"N"),
    "a dtype that is doubled": DOUBLED + b"q\x01" + call(
        "torch._utils", "_rebuild_tensor_v3", storage(), number(0), b")", b")", b"\x89", b"N", b"h\x01"),
    "a device that is doubled": DOUBLED + b"q\x01" + call("torch", "device", b"h\x01", b"h\x01"),
    "a coding that is doubled": DOUBLED + b"q\x01" + call("_codecs", "encode", b"h\x01", b"h\x01"),
    "a set that is doubled": DOUBLED + b"q\x01" + call("builtins", "set", b"h\x01"),
    "a complex number that is doubled": DOUBLED + b"q\x01" + call("builtins", "complex", b"h\x01"),
    "a storage that is doubled": DOUBLED + b"q\x01" + call("torch._utils", "_rebuild_tensor", *[b"h\x01"] * 4),
    "an id that is doubled": DOUBLED + b"Q", "a name that is doubled": DOUBLED + b"q\x01h\x01\x93",
    "a call that is doubled": DOUBLED + b"q\x01h\x01R",
    "a key that is doubled": tuple_of(text("storage"), name("torch", "FloatStorage"), DOUBLED, text("cpu"),
                                      number(6)) + b"Q",
    "a tensor as a key": b"}" + tensor(storage()) + b"Ns", "a device of a list": call("torch", "device", b"]"),
}
FORBIDDEN: list[str] = []
WATCH = {"on": False, "file": ""}


def watch(event: str, arguments: tuple) -> None:
    """Python's audit hook: it cannot be taken away, so it sleeps while no test is on."""
    if WATCH["on"] and event != "mmap.__new__" and not (event == "open" and str(arguments[0]) == WATCH["file"]):
        FORBIDDEN.append(f"{event} {arguments!r:.200}")


def attributes() -> dict[tuple[str, str], int]:
    """The attributes of modules and classes that a file could reach."""
    places = (os, posix, sys, builtins, collections, collections.Counter, collections.OrderedDict, np, pickle, zoo,
              checkpoint, opcodes, torch_names, torch_names.Names, torch_names.Storage, opcodes.Machine)
    return {(str(place), key): id(value) for place in places for key, value in vars(place).items()}


@pytest.fixture(scope="module", autouse=True)
def hook():
    sys.addaudithook(watch)
    for read in (checkpoint.read, load):            # what is imported on first use is here from now on
        read(io.BytesIO(archive(program(b"N"))))


def refused(data: bytes, tmp_path) -> None:
    """Reading data is a FileError, and nothing but the file was touched."""
    path = tmp_path / "hostile.pt"
    path.write_bytes(data)
    before = attributes()
    del FORBIDDEN[:]
    for f, mmap in ((path, True), (path, False), (io.BytesIO(data), False)):
        for reader in (checkpoint.read, load):
            WATCH.update(on=True, file=str(path))
            try:
                reader(f, mmap=mmap)
            except FileError as error:
                caught = str(error)
            else:
                caught = None
            finally:
                WATCH["on"] = False
            assert caught and "\n" not in caught and len(caught) < 1000, caught
            if f is not path:
                f.seek(0)
    assert FORBIDDEN == [] and attributes() == before


@pytest.fixture
def small(monkeypatch):
    """The constant that any file may take is 64 MB: less of it makes the bombs of a second enough."""
    monkeypatch.setattr(source, "SMALL", 1 << 20)
    return (1 << 20) + (1 << 17)                  # and what the reader's own tables take


def stays_within(limit: int, data: bytes) -> None:
    f = io.BytesIO(data)
    tracemalloc.start()
    try:
        checkpoint.read(f)
    except FileError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2 * len(data) + limit


def test_the_hook_sees():
    """Guards the tests below: a hook that sees nothing never fails."""
    WATCH.update(on=True, file="/dev/null")
    with open("/dev/null"):
        seen = list(FORBIDDEN)
    os.listdir("/")
    open("/dev/zero").close()
    WATCH["on"] = False
    assert seen == [] and len(FORBIDDEN) == 2


@pytest.mark.parametrize("case", PICKLES)
def test_malicious_pickles(case, tmp_path):
    for data in (archive(PICKLES[case]), legacy(PICKLES[case]), PICKLES[case]):
        refused(data, tmp_path)
    assert not os.path.exists("/tmp/zoo_was_here")


@pytest.mark.parametrize("case", BAD_TENSORS)
@pytest.mark.parametrize("kind", ["zip", "legacy"])
def test_bad_tensors(case, kind, tmp_path):
    refused(both(BAD_TENSORS[case], data=DATA)[kind], tmp_path)


def test_keys_of_storages_that_are_doubled(tmp_path):
    """The last pickle of a legacy file, and its head."""
    good = both(tensor(storage()), data=DATA)["legacy"]
    refused(good.replace(program(b"](", text("0"), b"e"), program(b"](" + DOUBLED + b"e")), tmp_path)
    refused(good.replace(program(number(1001)), program(DOUBLED)), tmp_path)


def with_directory(data: bytes, member: str, at: int, layout: str, value: int) -> bytes:
    """The archive with a field of a member's entry in the central directory changed."""
    start = data.rindex(b"PK\1\2", 0, data.rindex(member.encode()))
    return data[: start + at] + struct.pack(layout, value) + data[start + at + struct.calcsize(layout) :]


def zip_cases() -> dict[str, bytes]:
    good = both(tensor(storage()), data=DATA)["zip"]
    end = good.rindex(b"PK\5\6")
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as z, pytest.warns(UserWarning, match="Duplicate"):
        z.writestr("a/data.pkl", program(b"N"))
        z.writestr("a/data.pkl", program(b"N"))
    first = good.index(b"PK\1\2")
    return {
        "encrypted": with_directory(good, "data/0", 8, "<H", 1),
        "packed by bzip2": with_directory(good, "data/0", 10, "<H", 12),
        "two sizes": with_directory(good, "data/0", 24, "<I", 48), "size beyond the file":
            with_directory(with_directory(good, "data/0", 20, "<I", 1 << 30), "data/0", 24, "<I", 1 << 30),
        "local header elsewhere": with_directory(good, "data/0", 42, "<I", 7),
        "offset beyond the file": with_directory(good, "data/0", 42, "<I", 1 << 30),
        "zip64 without a field": with_directory(good, "data/0", 42, "<I", 0xFFFFFFFF),
        "overlapping members": with_directory(good, "data/0", 42, "<I", 0),
        "twice the same name": twice.getvalue(),
        "more members than there are": good[: end + 8] + b"\xff\xfe\xff\xfe" + good[end + 12 :],
        "2**32 members": good[:end] + zip64_end(2**32, len(good) - first, first) + good[end:end + 8] + b"\xff" * 12
            + good[end + 20 :],
        "directory beyond the file": good[: end + 16] + b"\xfe\xff\xff\xff" + good[end + 20 :],
        "no pickle": archive(b""), "byteorder of junk": archive(program(b"N"), {}, {"byteorder": b"\xff\xfe"}),
    }


def zip64_end(count: int, size: int, start: int) -> bytes:
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
    return record + struct.pack("<4sLQL", b"PK\6\7", 0, start + size, 1)


@pytest.mark.parametrize("case", zip_cases())
def test_bad_archives(case, tmp_path):
    refused(zip_cases()[case], tmp_path)


def npz_cases() -> dict[str, bytes]:
    def npz(header: bytes, data=b"", method=zipfile.ZIP_STORED, version=b"\1\0"):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as z:
            z.writestr("a.npy", b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header + data)
        return file.getvalue()

    row = "{'descr': %r, 'fortran_order': False, 'shape': %s}\n"
    bomb = npz((row % ("<f4", (5 << 20,))).encode(), bytes(20 << 20), zipfile.ZIP_DEFLATED)
    good = npz((row % ("<f4", (6,))).encode(), DATA.tobytes(), zipfile.ZIP_DEFLATED)
    return {
        "objects": npz((row % ("|O", (1,))).encode(), b"\x80\x02cos\nsystem\n."), "a bomb": bomb,
        "a member larger than announced": with_directory(good, "a.npy", 24, "<I", 50),
        "a member smaller than announced": with_directory(good, "a.npy", 24, "<I", 500),
        "a shape of strings": npz((row % ("<f4", "('a',)")).encode()),
        "a shape beyond the data": npz((row % ("<f4", (7,))).encode(), DATA.tobytes()),
        "a huge shape": npz((row % ("<f4", (2**62, 8))).encode(), DATA.tobytes()),
        "a negative shape": npz((row % ("<f4", (-1, -6))).encode(), DATA.tobytes()),
        "code in the header": npz(b"__import__('os').system('touch /tmp/zoo_was_here')\n"),
        "nested deeply": npz(b"(" * 9000 + b"\n"), "no header": npz(b""), "version 9": npz(b"", version=b"\x09\0"),
    }


@pytest.mark.parametrize("case", [
    "objects", "a bomb", "a member larger than announced", "a member smaller than announced", "a shape of strings",
    "a shape beyond the data", "a huge shape", "a negative shape", "code in the header", "nested deeply", "no header",
    "version 9"])
def test_bad_npz(case, small, tmp_path):
    data = npz_cases()[case]
    refused(data, tmp_path)
    stays_within(small, data)


def row(begin=0, end=8, dtype="F32", shape=(2,)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


HEADERS = {
    "overlap": ({"a": row(0, 8), "b": row(4, 12)}, 12), "a gap": ({"a": row(0, 8), "b": row(12, 20)}, 20),
    "beyond the end": ({"a": row(0, 8, shape=(2,))}, 4), "before the begin": ({"a": row(-8, 0)}, 8),
    "backwards": ({"a": row(8, 0)}, 8), "a huge shape": ({"a": row(shape=(2**40, 2**40))}, 8),
    "a shape of floats": ({"a": row(shape=(2.0,))}, 8), "a shape of bools": ({"a": row(0, 4, shape=(True,))}, 4),
    "65 dimensions": ({"a": row(0, 4, shape=(1,) * 65)}, 4), "a dtype of half bytes": ({"a": row(dtype="F4")}, 8),
    "a dtype of a list": ({"a": row(dtype=["F32"])}, 8), "no offsets": ({"a": {"dtype": "F32", "shape": [2]}}, 8),
    "two rows of one name": (b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],'
                             b'"data_offsets":[0,1]}}', 1),
    "nested deeply": (b'{"a":' + b"[" * 100_000, 0), "nested deeply and well": (
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 0),
    "bad UTF-8": (b'{"\xff":{}}', 0), "a huge number": (b'{"a":' + b"9" * 5000 + b"}", 0),
    "NaN": (b'{"a":{"dtype":"U8","shape":[NaN],"data_offsets":[0,1]}}', 1), "a list": (b'{"a":[]}', 0),
    "the tree of a key that is nested": ({"__metadata__": {"zoo": '{"dict":[[{"tuple":[{"tuple":[]}]},1]]}'}}, 0),
}


@pytest.mark.parametrize("case", HEADERS)
def test_bad_safetensors(case, tmp_path):
    header, count = HEADERS[case]
    refused(safetensors(header, bytes(count)), tmp_path)


def test_lengths_of_safetensors_headers(tmp_path):
    for length in (0, 1, 99, 100 << 20, (100 << 20) + 1, 2**63, 2**64 - 1):
        refused(struct.pack("<Q", length) + b'{"a":1}' + bytes(50), tmp_path)


# --- what is allowed, and takes no more memory than its size allows
BOMBS = {
    "lists": b"]" * 100_000, "dicts": b"}" * 50_000, "sets": b"\x8f" * 50_000, "marks": b"(" * 100_000,
    "ordered dicts": name("collections", "OrderedDict") + b"q\x00" + b"h\x00)R" * 20_000,
    "memos": b"N" + b"\x94" * 100_000, "one memo written often": b"N" + b"q\x00" * 100_000,
    "numbers": b"J\x00\x00\x00\x7f" * 100_000, "tuples": b"N" + b"\x85" * 100_000,
    "tensors": storage() + b"q\x00" + tensor(b"h\x00", size=(1,), stride=(1,)) * 2_000,
    "many tensors of few bytes": name("torch._utils", "_rebuild_tensor") + b"q\x01" + tuple_of(
        storage(), number(0), tuple_of(number(1)), tuple_of(number(1))) + b"q\x02" + b"h\x01h\x02R" * 20_000,
    "devices": name("torch", "device") + b"q\x00" + text("cpu") + b"\x85q\x01" + b"h\x00h\x01R" * 20_000,
    "sets of a list": b"](" + b"".join(number(i) for i in range(5_000)) + b"eq\x01" + name("builtins", "set")
                      + b"q\x00" + b"h\x00h\x01\x85R" * 100,
}


@pytest.mark.parametrize("case", BOMBS)
@pytest.mark.parametrize("kind", ["zip", "legacy"])
def test_memory_of_bombs(case, kind, small):
    """Few bytes that stand for much: refused or not, never more than twice the file and the constant."""
    stays_within(small, both(BOMBS[case], data=DATA)[kind])


@pytest.mark.parametrize("unit", ["[],", "{},", '{"a":1},', "1,", "1.5,", '"abc",', "123456,"])
def test_memory_of_json_bombs(unit, small):
    items = unit * (200_000 // len(unit)) + "1]"
    stays_within(small, safetensors(('{"a":[' + items + "}").encode()))
    stays_within(small, safetensors({"__metadata__": {"zoo": '{"list":[' + items + "}"}}))


def test_memory_of_many_members(small):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        for i in range(5000):
            z.writestr(str(i), b"")
    stays_within(small, file.getvalue())


def test_what_grows_only_when_looked_at(tmp_path):
    """100,000 nested lists, a list doubled 60 times, a list in itself: read as they are, without following them."""
    for data in both(b"]" * 100_000 + b"a" * 99_999).values():
        depth, x = 0, checkpoint.read(io.BytesIO(data))
        while x:
            depth, x = depth + 1, x[0]
        assert depth == 99_999
        assert type(load(io.BytesIO(data))) is list
    for data in both(DOUBLED).values():
        assert len(checkpoint.read(io.BytesIO(data))) == 2
        with pytest.raises(FileError, match="holds a tuple"):
            checkpoint.read_state_dict(io.BytesIO(data))
    for data in both(b"}q\x00", text("model"), b"h\x00s").values():
        assert checkpoint.read(io.BytesIO(data))["model"]["model"]
        with pytest.raises(FileError, match="no tensors"):
            checkpoint.read_state_dict(io.BytesIO(data))
    for data in both(b"}q\x00(" + b"".join(text(key) + b"h\x00" for key in WRAPPERS) + b"u").values():
        with pytest.raises(FileError, match="no tensors"):
            checkpoint.read_state_dict(io.BytesIO(data))


def test_overlapping_windows_are_not_copied_out():
    """A view of 2**26 elements on a storage of 2**14: read as a view; a cast would make all of them."""
    data = np.zeros(1 << 14, np.float32)
    file = both(b"}", text("w"), tensor(storage(count=1 << 14), 0, (1 << 13, 1 << 13), (1, 1)), b"s", data=data)["zip"]
    assert checkpoint.read(io.BytesIO(file))["w"].shape == (1 << 13, 1 << 13)
    with pytest.raises(FileError, match="more elements than"):
        checkpoint.read_state_dict(io.BytesIO(file), dtype="float64")
    wide = both(b"}", text("w"), tensor(storage(), 0, (1 << 20, 6), (0, 1)), b"s", data=DATA)["zip"]
    cast = checkpoint.read_state_dict(io.BytesIO(wide), dtype="float64")["w"]
    assert cast.shape == (1 << 20, 6) and cast.strides == (0, 8) and cast[-1].tolist() == DATA.tolist()
