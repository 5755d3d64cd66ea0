"""What memory is in use and what for: counts, live blocks with their shapes, and on demand the lines that made them."""

import sys
from collections import defaultdict
from typing import Any, NamedTuple

from zoo.ops.cuda.capture import inside_zoo
from zoo.ops.cuda.driver import OutOfMemoryError

LARGEST = 5


class Use(NamedTuple):
    """A live block: its array's shape and dtype, and if that was recorded the user's line and the module that ran."""

    nbytes: int
    shape: tuple[int, ...]
    dtype: Any
    device: int
    line: str = ""
    module: str = ""

    def text(self) -> str:
        """For people."""
        where = f" by {self.module}" * bool(self.module) + f" at {self.line}" * bool(self.line)
        return f"{size_text(self.nbytes)} {self.shape} {self.dtype}{where}"


class Account:
    """The memory of one device: how many blocks and bytes there are, were at most, and have been in all."""

    __slots__ = ("blocks", "limit", "most_blocks", "most_nbytes", "nbytes", "ooms", "retries", "total", "total_blocks")

    def __init__(self):
        self.blocks = self.nbytes = self.most_blocks = self.most_nbytes = self.total_blocks = self.total = 0
        self.limit: float = float("inf")
        self.retries = self.ooms = 0

    def add(self, nbytes: int):
        """A block came."""
        self.total_blocks += 1
        self.total += nbytes
        self.blocks = blocks = self.blocks + 1
        self.nbytes = held = self.nbytes + nbytes
        if held > self.most_nbytes:
            self.most_nbytes = held
        if blocks > self.most_blocks:
            self.most_blocks = blocks

    def remove(self, nbytes: int):
        """A block went."""
        self.blocks -= 1
        self.nbytes -= nbytes

    def need(self, nbytes: int, device: int):
        """Raises OutOfMemoryError if the limit of `set_per_process_memory_fraction` leaves no room."""
        if self.nbytes + nbytes > self.limit:
            raise out_of_memory(nbytes, device, int(self.limit) - self.nbytes, int(self.limit))


accounts: defaultdict[int, Account] = defaultdict(Account)
live: dict[int, tuple] = {}  # address -> what lies there, the fields of a Use: making one here took 0.3 us
recording = False  # are lines and modules looked up? It costs some microseconds for each array


def record_memory_history(enabled: Any = "all"):
    """From now on each new array's line and module are kept, for `memory_snapshot` and for errors; None ends that."""
    global recording
    recording = bool(enabled)


def uses(device: int) -> list[tuple[int, Use]]:
    """(address, use) of what is live on a device, the largest first."""
    found = [(pointer, Use(*fields)) for pointer, fields in live.items()]
    return sorted((pair for pair in found if pair[1].device == device), key=lambda pair: -pair[1].nbytes)


def origin() -> tuple[str, str]:
    """The user's line that led here, and the innermost module whose forward runs, by its name in the outermost one."""
    frame, line, modules = sys._getframe(2), "", []
    while frame is not None:
        if not line and not inside_zoo(frame):
            line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if frame.f_code.co_name == "forward" and hasattr(owner := frame.f_locals.get("self"), "named_modules"):
            modules.append(owner)
        frame = frame.f_back
    if not modules:
        return line, ""
    name = next((name for name, m in modules[-1].named_modules() if m is modules[0]), "")
    return line, f"{name or 'the model'} ({type(modules[0]).__name__})"


def out_of_memory(nbytes: int, device: int, free: int, total: int) -> OutOfMemoryError:
    """The error for an allocation that failed: with the largest live arrays and their lines."""
    accounts[device].ooms += 1
    text = f"CUDA out of memory on cuda:{device}: wanted {nbytes:,} bytes, free {free:,} of {total:,}"
    if largest := uses(device)[:LARGEST]:
        text += "; the largest of what is live: " + "; ".join(use.text() for _, use in largest)
        text += "" if recording else " (zoo.cuda.record_memory_history() shows their lines)"
    return OutOfMemoryError(text)


def memory_by_module(device: int) -> dict[str, int]:
    """Bytes of live arrays by the module whose forward made them; "" where none ran, or none was recorded."""
    found: defaultdict[str, int] = defaultdict(int)
    for _, use in uses(device):
        found[use.module] += use.nbytes
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def snapshot(device: int) -> list[dict[str, Any]]:
    """Live blocks, the largest first, in the form of torch's segments; each is a segment of its own."""
    found = []
    for pointer, use in uses(device):
        file, _, number = use.line.rpartition(":")
        frames = [{"filename": file, "line": int(number), "name": use.module}] if use.line else []
        block = {"address": pointer, "size": use.nbytes, "requested_size": use.nbytes, "frames": frames,
                 "state": "active_allocated", "shape": use.shape, "dtype": str(use.dtype), "module": use.module}
        found.append({"device": device, "address": pointer, "total_size": use.nbytes, "blocks": [block],
                      "allocated_size": use.nbytes, "active_size": use.nbytes, "segment_type": "large"})
    return found


def stats(device: int, reserved: int, most_reserved: int) -> dict[str, int]:
    """The main keys of torch.cuda.memory_stats."""
    a = accounts[device]
    found = {}
    for name, now, most, total in (("allocation", a.blocks, a.most_blocks, a.total_blocks),
                                   ("allocated_bytes", a.nbytes, a.most_nbytes, a.total)):
        values = {"current": now, "peak": most, "allocated": total, "freed": total - now}
        found |= {f"{name}.all.{key}": value for key, value in values.items()}
    for kind in ("active", "requested"):
        found |= {f"{kind}_bytes.all.{key}": found[f"allocated_bytes.all.{key}"]
                  for key in ("current", "peak", "allocated", "freed")}
    found |= {"reserved_bytes.all.current": reserved, "reserved_bytes.all.peak": most_reserved}
    return found | {"num_alloc_retries": a.retries, "num_ooms": a.ooms}


def size_text(nbytes: int) -> str:
    """Bytes for people."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}"
    return f"{nbytes} bytes"
