"""A closed machine for the pickles inside torch's files: it can build plain data and nothing else.

Python's own unpickler calls what a file names, and its BUILD sets attributes of any object in reach, so that even a
list of allowed names is no protection. Here every opcode that is understood stands in OPCODES. None imports, calls a
method of what the file brought, or sets an attribute; REDUCE runs a Constructor from a table given by the caller.
Opcodes: https://github.com/python/cpython/blob/main/Lib/pickletools.py
"""
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from zoo.checkpoint.costs import DICT, DICT_ITEM, ITEM, LIST, NUMBER, ORDERED, ORDERED_ITEM, SET, TEXT
from zoo.checkpoint.errors import FileError

U8, U16, U32, U64, I32, F64 = map(struct.Struct, ("<B", "<H", "<I", "<Q", "<i", ">d"))
LINE = 512                    # bytes of a module's or class's name
REFUSED = {b"i": "INST", b"o": "OBJ", b"\x81": "NEWOBJ", b"\x92": "NEWOBJ_EX", b"\x82": "EXT1", b"\x83": "EXT2",
           b"\x84": "EXT4", b"2": "DUP", b"P": "PERSID"}
PLAIN_KEYS = (str, int, float, bool, bytes, type(None))


class Constructor(NamedTuple):
    """What a pickle's REDUCE may run."""
    build: Callable[..., Any]


def refusal(code: bytes) -> str:
    """The message for an opcode that is not understood."""
    if not code:
        return "is truncated inside its pickle"
    name = REFUSED.get(code)
    return (f"is refused: its pickle has the opcode {name or code!r}, which files of tensors do not need"
            + (" and which can run code" if name else ""))


def parts_of(key: Any) -> tuple:
    """What must be plain in a key: it, or the items of a short tuple."""
    return key if type(key) is tuple and len(key) <= 16 else (key,)


def check_key(key: Any) -> None:
    """Keys are plain: the hash of a deep tuple overflows C's stack, and that of a doubled one never ends."""
    if any(type(part) not in PLAIN_KEYS for part in parts_of(key)):
        raise FileError(f"is refused: it has a {type(key).__name__} as a key")


class Machine:
    """One run of a pickle.

    Args:
        file: stands at the first opcode; after `run` behind the last.
        size: no string is longer; Python takes memory for all that a read asks for.
        spend: is told of memory before it is taken, and raises FileError when it is too much.
        names: (module, name) -> what GLOBAL puts on the stack.
        persistent: what BINPERSID makes of its id.
    """

    def __init__(self, file: BinaryIO, size: int, spend: Callable[[int], None], names: Mapping[tuple[str, str], Any],
                 persistent: Callable[[Any], Any] | None = None):
        self.file, self.size, self.spend, self.names, self.persistent = file, size, spend, names, persistent
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Runs to STOP, and returns what is on top of the stack."""
        read = self.file.read
        while (code := read(1)) != b".":
            action = OPCODES.get(code)
            if action is None:
                raise FileError(refusal(code))
            action(self)
        return self.pop()

    def read(self, count: int) -> bytes:
        data = self.file.read(count)
        if len(data) != count:
            raise FileError("is truncated inside its pickle")
        return data

    def unpack(self, layout: struct.Struct) -> Any:
        """One number."""
        return layout.unpack(self.read(layout.size))[0]

    def line(self) -> str:
        text = self.file.readline(LINE)
        if not text.endswith(b"\n"):
            raise FileError("is corrupt: a name in its pickle has no end")
        return text[:-1].decode()

    def push(self, value: Any, cost: int = 0) -> None:
        self.spend(ITEM + cost)
        self.stack.append(value)

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise FileError("is corrupt: its pickle takes more than it put")
        return self.stack.pop()

    def pop_to_mark(self) -> list[Any]:
        if not self.marks:
            raise FileError("is corrupt: its pickle lacks a mark")
        begin = self.marks.pop()
        items = self.stack[begin:]
        del self.stack[begin:]
        return items

    def top(self, *kinds: type) -> Any:
        """The top of the stack, which must be of exactly one of these types."""
        value = self.pop()
        if type(value) not in kinds:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise FileError(f"is corrupt: its pickle wants a {wanted}, and has a {type(value).__name__}")
        self.stack.append(value)
        return value

    def remember(self, key: int) -> None:
        value = self.pop()
        self.stack.append(value)
        self.spend(DICT_ITEM)
        self.memo[key] = value

    def recall(self, key: int) -> None:
        if key not in self.memo:
            raise FileError(f"is corrupt: its pickle recalls {key}, which it never stored")
        self.push(self.memo[key])

    # --- what the opcodes do; OPCODES below says which is whose
    def new(self, kind: type, cost: int) -> None:
        self.push(kind(), cost)

    def constant(self, value: Any) -> None:
        self.push(value)

    def number(self, layout: struct.Struct) -> None:
        self.push(self.unpack(layout), NUMBER)

    def integer_text(self) -> None:
        """INT, by which Python 2 wrote integers of more than 32 bits."""
        self.push(int(self.line()), NUMBER)

    def long(self) -> None:
        self.push(int.from_bytes(self.read(self.unpack(U8)), "little", signed=True), NUMBER + 256)

    def raw(self, layout: struct.Struct) -> bytes:
        """A byte string that follows its length."""
        count = self.unpack(layout)
        if not 0 <= count <= self.size:
            raise FileError(f"is truncated or corrupt: its pickle has a string of {count} bytes")
        self.spend(TEXT + 4 * count)
        return self.read(count)

    def text(self, layout: struct.Struct, coding: str) -> None:
        self.push(self.raw(layout).decode(coding, "surrogatepass" if coding == "utf-8" else "strict"))

    def binary(self, layout: struct.Struct) -> None:
        self.push(self.raw(layout))

    def skip(self, count: int) -> None:
        """PROTO and FRAME: what follows is the same."""
        self.read(count)

    def mark(self) -> None:
        self.spend(NUMBER)
        self.marks.append(len(self.stack))

    def tuple_to_mark(self) -> None:
        items = self.pop_to_mark()
        self.push(tuple(items), LIST + ITEM * len(items))

    def tuple_of(self, count: int) -> None:
        items = [self.pop() for _ in range(count)]
        self.push(tuple(items[::-1]), LIST + ITEM * count)

    def discard(self) -> None:
        self.pop()

    def append(self) -> None:
        item = self.pop()
        self.spend(ITEM)
        self.top(list).append(item)

    def appends(self) -> None:
        items = self.pop_to_mark()
        self.spend(ITEM * len(items))
        self.top(list).extend(items)

    def add_items(self) -> None:
        items = self.pop_to_mark()
        self.spend(DICT_ITEM * len(items))
        for item in items:
            check_key(item)
        self.top(set).update(items)

    def set_item(self) -> None:
        value, key = self.pop(), self.pop()
        self.store([key, value])

    def set_items(self) -> None:
        self.store(self.pop_to_mark())

    def store(self, items: list[Any]) -> None:
        """Alternating keys and values into the dict on top of the stack."""
        if len(items) % 2:
            raise FileError("is corrupt: its pickle has a key without a value")
        target = self.top(dict, OrderedDict)
        self.spend((DICT_ITEM if type(target) is dict else ORDERED_ITEM) * (len(items) // 2))
        for key, value in zip(items[::2], items[1::2], strict=True):
            check_key(key)
            target[key] = value

    def named(self, module: str, name: str) -> None:
        if (module, name) not in self.names:
            raise FileError(f"is refused: it names {f'{module}.{name}'!r:.120}, neither a tensor nor plain data; where "
                            "it was made, save model.state_dict() and plain numbers instead of whole objects")
        self.push(self.names[module, name])

    def global_name(self) -> None:
        self.named(self.line(), self.line())

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            raise FileError("is corrupt: a name in its pickle is no string")
        self.named(module, name)

    def reduce(self) -> None:
        arguments, constructor = self.pop(), self.pop()
        if type(constructor) is not Constructor or type(arguments) is not tuple:
            raise FileError(f"is refused: its pickle calls a {type(constructor).__name__}")
        self.push(constructor.build(*arguments), ORDERED)

    def build(self) -> None:
        """The attributes of an OrderedDict (a state_dict's _metadata) are dropped; nothing else may have any."""
        self.pop()
        self.top(OrderedDict)

    def persistent_id(self) -> None:
        if self.persistent is None:
            raise FileError("is refused: its pickle refers to data outside of it")
        self.push(self.persistent(self.pop()), ORDERED)

    def put(self, layout: struct.Struct) -> None:
        self.remember(self.unpack(layout))

    def memoize(self) -> None:
        self.remember(len(self.memo))

    def get(self, layout: struct.Struct) -> None:
        self.recall(self.unpack(layout))


OPCODES: dict[bytes, Callable[[Machine], None]] = {
    b"\x80": partial(Machine.skip, count=1),                            # PROTO
    b"\x95": partial(Machine.skip, count=8),                            # FRAME
    b"N": partial(Machine.constant, value=None),                        # NONE
    b"\x88": partial(Machine.constant, value=True),                     # NEWTRUE
    b"\x89": partial(Machine.constant, value=False),                    # NEWFALSE
    b"I": Machine.integer_text,                                         # INT
    b"K": partial(Machine.number, layout=U8),                           # BININT1
    b"M": partial(Machine.number, layout=U16),                          # BININT2
    b"J": partial(Machine.number, layout=I32),                          # BININT
    b"G": partial(Machine.number, layout=F64),                          # BINFLOAT
    b"\x8a": Machine.long,                                              # LONG1
    b"\x8c": partial(Machine.text, layout=U8, coding="utf-8"),          # SHORT_BINUNICODE
    b"X": partial(Machine.text, layout=U32, coding="utf-8"),            # BINUNICODE
    b"\x8d": partial(Machine.text, layout=U64, coding="utf-8"),         # BINUNICODE8
    b"U": partial(Machine.text, layout=U8, coding="latin-1"),           # SHORT_BINSTRING, of Python 2
    b"T": partial(Machine.text, layout=I32, coding="latin-1"),          # BINSTRING, of Python 2
    b"C": partial(Machine.binary, layout=U8),                           # SHORT_BINBYTES
    b"B": partial(Machine.binary, layout=U32),                          # BINBYTES
    b"\x8e": partial(Machine.binary, layout=U64),                       # BINBYTES8
    b"(": Machine.mark,                                                 # MARK
    b"0": Machine.discard,                                              # POP
    b"1": Machine.pop_to_mark,                                          # POP_MARK
    b")": partial(Machine.new, kind=tuple, cost=0),                     # EMPTY_TUPLE
    b"t": Machine.tuple_to_mark,                                        # TUPLE
    b"\x85": partial(Machine.tuple_of, count=1),                        # TUPLE1
    b"\x86": partial(Machine.tuple_of, count=2),                        # TUPLE2
    b"\x87": partial(Machine.tuple_of, count=3),                        # TUPLE3
    b"]": partial(Machine.new, kind=list, cost=LIST),                   # EMPTY_LIST
    b"}": partial(Machine.new, kind=dict, cost=DICT),                   # EMPTY_DICT
    b"\x8f": partial(Machine.new, kind=set, cost=SET),                  # EMPTY_SET
    b"a": Machine.append,                                               # APPEND
    b"e": Machine.appends,                                              # APPENDS
    b"\x90": Machine.add_items,                                         # ADDITEMS
    b"s": Machine.set_item,                                             # SETITEM
    b"u": Machine.set_items,                                            # SETITEMS
    b"c": Machine.global_name,                                          # GLOBAL
    b"\x93": Machine.stack_global,                                      # STACK_GLOBAL
    b"R": Machine.reduce,                                               # REDUCE
    b"b": Machine.build,                                                # BUILD
    b"Q": Machine.persistent_id,                                        # BINPERSID
    b"q": partial(Machine.put, layout=U8),                              # BINPUT
    b"r": partial(Machine.put, layout=U32),                             # LONG_BINPUT
    b"\x94": Machine.memoize,                                           # MEMOIZE
    b"h": partial(Machine.get, layout=U8),                              # BINGET
    b"j": partial(Machine.get, layout=U32),                             # LONG_BINGET
}
