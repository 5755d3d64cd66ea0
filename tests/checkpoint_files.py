"""Checkpoint files put together by hand, for tests that need no torch: opcodes, zip archives, legacy streams."""
import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np

from zoo.checkpoint.torch_file import LEGACY

FIXTURES = Path(__file__).parent / "fixtures"      # written by torch 2.13: the same object in both of its formats
PROTO, STOP, MARK, REDUCE, PERSID = b"\x80\x02", b".", b"(", b"R", b"Q"


def text(x: str) -> bytes:
    return b"X" + struct.pack("<I", len(x.encode())) + x.encode()


def number(x: int) -> bytes:
    return b"J" + struct.pack("<i", x)


def tuple_of(*parts: bytes) -> bytes:
    return MARK + b"".join(parts) + b"t"


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def call(module: str, attribute: str, *arguments: bytes) -> bytes:
    return name(module, attribute) + tuple_of(*arguments) + REDUCE


def storage(key="0", count=6, kind="FloatStorage") -> bytes:
    return tuple_of(text("storage"), name("torch", kind), text(key), text("cpu"), number(count)) + PERSID


def tensor(place: bytes, offset=0, size=(2, 3), stride=(3, 1)) -> bytes:
    numbers = [tuple_of(*map(number, numbers)) for numbers in (size, stride)]
    return call("torch._utils", "_rebuild_tensor_v2", place, number(offset), *numbers, b"\x89",
                call("collections", "OrderedDict"))


def program(*parts: bytes) -> bytes:
    return PROTO + b"".join(parts) + STOP


def archive(pickle: bytes, storages: dict[str, bytes] | None = None, records: dict[str, bytes] | None = None,
            root="archive/", method=zipfile.ZIP_STORED) -> bytes:
    """torch's zip format."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as z:
        z.writestr(root + "data.pkl", pickle)
        for key, data in (storages or {}).items():
            z.writestr(f"{root}data/{key}", data)
        for key, data in {"version": b"3\n", **(records or {})}.items():
            z.writestr(root + key, data)
    return file.getvalue()


def legacy(pickle: bytes, storages: dict[str, tuple[int, bytes]] | None = None, little=True) -> bytes:
    """torch's legacy format; storages are key -> (count of elements, bytes)."""
    order = "<" if little else ">"
    system = program(b"}", text("little_endian"), b"\x88" if little else b"\x89", b"s")
    head = PROTO + LEGACY + program(number(1001)) + system + pickle
    keys = program(b"](", *map(text, storages or {}), b"e")
    return head + keys + b"".join(struct.pack(order + "q", n) + data for n, data in (storages or {}).values())


def both(*parts: bytes, data: np.ndarray | None = None) -> dict[str, bytes]:
    """The same program in both formats, with one storage if there is data."""
    one = {} if data is None else {"0": data.tobytes()}
    two = {} if data is None else {"0": (data.size, data.tobytes())}
    return {"zip": archive(program(*parts), one), "legacy": legacy(program(*parts), two)}


def safetensors(header, data=b"") -> bytes:
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + data
