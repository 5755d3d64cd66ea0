"""The committed table of tile configs: which one a matrix kernel runs with, as a pure function of GPU family and shape.

One JSON file per family of GPUs that share shared memory and matrix instructions (`FAMILIES`), a list of rows:

    {"op": "gemm", "kind": "half", "tags": ["tma"], "M": [256, null], "tiles": 132,
     "config": {"BM": 128, "BN": 256, "BK": 64, "num_warps": 8, "num_stages": 4, "kernel": "tma", "sub": 2},
     "basis": "predicted: ..."}

The first row whose conditions all hold is taken, so rows go from special to general, and the last of an op and kind has
no conditions. Conditions, each may be missing: `tags`, all of which the caller named (layout and epilogue: what an op
knows of itself, see its launcher); `M`, `N`, `K`, ranges [least, most] of the sizes of the (implicit) matrix product,
null for no bound; `tiles`, how many whole tiles of this config the result has at least, over the batch too.
`config` holds fields of `Config`. `basis` says why: "predicted: ...", or an object with microseconds, spread, shape,
GPU, versions, date and commit, which `python -m zoo.ops.tune` writes. Ops: gemm, conv_forward, conv_input_grad,
conv_weight_grad, attend, grad_query, grad_key_value, and the time loops of recurrent layers by their kernels' names.
Kinds: half, tf32, tf32x3, ieee, double, integer. A convolution's M, N, K are those of its product: forward (pixels,
channels out, taps * channels in), and likewise for the gradients, of one group; those of attention are queries, keys
and the width of a head, to the next power of two; those of a time loop are its step's, forward (sequences, gates *
units, units), backward (sequences, units, gates * units). A loop for which there is no row goes by a rule (rnn_gpu.py).

No choice depends on anything but the arguments and the family, so the bits of a result are those of every GPU of it.
"""
import contextlib
import json
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from zoo.ops import cuda
from zoo.ops.errors import KernelError


class Config(NamedTuple):
    """A tile of the output, the depth of one step, how many warps and pipeline stages work on it; then which kernel.

    kernel: "tiled", "tma" (persistent, Hopper and later), or "composed": no tile fits, other ops take its place
    (attention of wide heads). Of a time loop, whose tile is BM sequences and BN units: "resident", "streaming" (one
    launch, its weights held or read in blocks of BK) or "steps" (a launch a step). split: parts of K; 0 for as many as
    fill the GPU, or stream-K where that gains; -1 for stream-K. group: tile rows walked together. sub, flatten,
    specialize: of the persistent kernel (gemm_gpu.gemm_tma). per_sm: programs that fit a multiprocessor at a time.
    registers: the most of a thread, of products, attention and loops; 0 for what the assembler takes, which spills a
    few to fit more programs.
    """
    BM: int
    BN: int
    BK: int
    num_warps: int = 4
    num_stages: int = 3
    kernel: str = "tiled"
    split: int = 0
    group: int = 8
    sub: int = 1
    flatten: bool = True
    specialize: bool = False
    per_sm: int = 1
    registers: int = 0


class Family(NamedTuple):
    """GPUs for which one table holds."""
    name: str
    arch: int                  # the compute capability the table's configs are compiled for when they are checked
    multiprocessors: int       # of the largest common one: what work is cut for, whatever the GPU, for equal bits
    shared: int                # bytes of shared memory that a program may have
    shared_per_sm: int         # and of a multiprocessor, 1024 bytes of which every program loses


FAMILIES = {f.name: f for f in (
    Family("sm80", 80, 108, 166912, 167936),         # A100, and Orin (8.7)
    Family("sm86", 86, 84, 101376, 102400),          # consumer Ampere, Ada and Blackwell: 8.6, 8.9, 12.x
    Family("sm90", 90, 132, 232448, 233472),         # H100, H200
    Family("sm100", 100, 148, 232448, 233472),       # B200
)}


class Row(NamedTuple):
    """A row of the table."""
    op: str
    kind: str
    config: Config
    basis: Any
    tags: frozenset = frozenset()
    M: tuple = (None, None)
    N: tuple = (None, None)
    K: tuple = (None, None)
    tiles: int = 0

    def holds(self, m: int, n: int, k: int, batch: int, tags: frozenset) -> bool:
        """Whether this row is for such a product."""
        if not self.tags <= tags:
            return False
        for (least, most), size in ((self.M, m), (self.N, n), (self.K, k)):
            if least is not None and size < least or most is not None and size > most:
                return False
        return (m // self.config.BM) * (n // self.config.BN) * batch >= self.tiles


def family_of(capability: tuple[int, int]) -> str:
    """The family of a compute capability; what nobody knows is taken for the least able.

    Example:
        >>> family_of((9, 0)), family_of((8, 9))
        ('sm90', 'sm86')
    """
    major, _ = capability
    if capability in ((8, 0), (8, 7)):
        return "sm80"
    return {9: "sm90", 10: "sm100", 11: "sm100"}.get(major, "sm86")


class Choice(NamedTuple):
    """Whose table is read; a config instead of all of its rows, or of one op's, while it is measured or tested."""
    family: str
    config: Config | None = None
    op: str = ""


forced: Choice | None = None


def current() -> Choice:
    """The table in force: the current device's, unless inside `using`."""
    return forced or Choice(family_of(cuda.get_device_capability()))


@contextlib.contextmanager
def using(family: str | None = None, config: Config | None = None, op: str = ""):
    """Inside, the family's table holds, or this config for everything or one op: to measure, test, compile ahead."""
    global forced
    before, here = forced, current()
    forced = Choice(family or here.family, config, op)
    try:
        yield
    finally:
        forced = before


def parse(table: dict) -> list[Row]:
    """The rows of a family's file."""
    rows = []
    for row in table["rows"]:
        ranges = {side: tuple(row[side]) for side in "MNK" if side in row}
        rows.append(Row(row["op"], row["kind"], Config(**row["config"]), row["basis"],
                        frozenset(row.get("tags", ())), tiles=row.get("tiles", 0), **ranges))
    return rows


def dumped(table: dict) -> str:
    """A family's file, a row a line."""
    rows = ",\n".join(f"  {json.dumps(row)}" for row in table["rows"])
    return f'{{"family": {json.dumps(table["family"])},\n "rows": [\n{rows}\n ]}}\n'


@cache
def rows_of(name: str) -> list[Row]:
    """A family's rows, in order."""
    return parse(json.loads(files(__name__).joinpath(f"{name}.json").read_text()))


@lru_cache(4096)
def chosen(name: str, op: str, kind: str, m: int, n: int, k: int, batch: int, tags: frozenset) -> Config | None:
    """The config of the first row that holds."""
    return next((row.config for row in rows_of(name)
                 if row.op == op and row.kind == kind and row.holds(m, n, k, batch, tags)), None)


class Query(NamedTuple):
    """What the table was asked."""
    op: str
    kind: str
    M: int
    N: int
    K: int
    batch: int
    tags: frozenset


heard: list[Query] | None = None


@contextlib.contextmanager
def listening():
    """Inside, gathers what is asked of the table: `python -m zoo.ops.tune` writes rows that answer just that."""
    global heard
    before, heard = heard, []
    cuda.forget()                           # what is remembered asks no table
    try:
        yield heard
    finally:
        heard = before


def found(op: str, kind: str, m: int, n: int, k: int, batch: int = 1, tags: Iterable[str] = ()) -> Config | None:
    """`choose` for an op that goes by a rule where no row holds."""
    now, query = current(), Query(op, kind, m, n, k, batch, frozenset(tags))
    if heard is not None:
        heard.append(query)
    return now.config if now.config and now.op in ("", op) else chosen(now.family, *query)


def choose(op: str, kind: str, m: int, n: int, k: int, batch: int = 1, tags: Iterable[str] = ()) -> Config:
    """The config for a product (m, k) @ (k, n) of a batch, on the current device.

    Args:
        op, kind: as in the rows. m, n, k, batch: sizes, at least 1. tags: what is true of this call.

    Raises:
        KernelError (RuntimeError): no row holds.

    Example:
        >>> choose("gemm", "half", 8192, 8192, 8192).num_warps      # doctest: +SKIP
        8
    """
    config = found(op, kind, m, n, k, batch, tags)
    if config is None:
        raise KernelError(f"{op}: the table of {current().family} has no config for {kind}, {m} x {n} x {k}")
    return config
