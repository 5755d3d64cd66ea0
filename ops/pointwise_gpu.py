"""Kernels of every elementwise op, forward and derivative: two templates that take the op's formula as a function.

`flat` runs where all arrays lie alike and densely in memory, `tile` where something is strided or broadcast.
Up to four arrays and six parameters in all; what is a number arrives as 64 bits in a slot of its own.
"""
import functools
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from zoo.ops import cuda, scalar_gpu, special_gpu
from zoo.ops.binding import bind, compute_dtype
from zoo.ops.cuda import DeviceArray, contiguous_strides
from zoo.ops.cuda.array import new
from zoo.ops.dtypes import COMPLEX, FLOATS, HALVES, Default, bool_, float32, int8
from zoo.ops.errors import KernelError, ShapeError
from zoo.ops.op import OPS, Op

TRITON = {**scalar_gpu.NAMES, **special_gpu.NAMES}
BLOCK = 1024            # elements of a program: 8 a thread, 16 bytes of a half type
HEAVY_BLOCK = 256       # where the formula calls a function of float64: more elements would spill registers
SHORTCUTS = {("pow", 2): "square", ("pow", 0.5): "sqrt", ("pow", -1): "reciprocal", ("pow.da", 2): "square.dx"}
POINTERS, SLOTS = 4, 6  # arrays and parameters that the templates take
MOST_PLANS = 4096       # combinations of layouts remembered per op
DOUBLE, WORD = struct.Struct("d"), struct.Struct("q")
copies: dict[tuple, Callable] = {}      # of copy_into, as each op's plans
TYPES = {"bool": tl.int1, "float16": tl.float16, "bfloat16": tl.bfloat16, "float32": tl.float32, "float64": tl.float64,
         **{f"{u}int{n}": getattr(tl, f"{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)}}


@triton.jit
def convert(v, T: tl.constexpr):
    """v as dtype T: integers wrap, floats truncate, whatever is not 0 is True."""
    if v.dtype == T:
        return v
    elif T == tl.int1:
        return v != 0
    elif (T == tl.float16) or (T == tl.bfloat16):
        return v.to(tl.float32).to(T)
    elif (v.dtype == tl.float16) or (v.dtype == tl.bfloat16):
        return v.to(tl.float32).to(T)
    else:
        return v.to(T)


@triton.jit
def number(bits, shape: tl.constexpr, T: tl.constexpr):
    """The number in a slot, everywhere: the bits of a double where T is floating, else the integer itself."""
    if T.is_floating():
        return tl.broadcast_to(bits.to(tl.float64, bitcast=True).to(T), shape)
    else:
        return convert(tl.broadcast_to(bits, shape), T)


@triton.jit
def fetch(x, bits, i, mask, K: tl.constexpr, ONE: tl.constexpr, CAST: tl.constexpr, T: tl.constexpr):
    """Parameter K of the formula: a number, an array's only element, or its elements at offsets i."""
    if x is None:
        return number(bits, i.shape, T)
    else:
        if (ONE >> K) & 1:
            v = tl.broadcast_to(tl.load(x), i.shape)
        else:
            v = tl.load(x + i, mask=mask)
        if (CAST >> K) & 1:
            v = convert(v, T)
        return v


@triton.jit
def apply(F: tl.constexpr, PARAMS: tl.constexpr, p0, p1, p2, p3, p4, p5):
    if PARAMS == 1:
        return F(p0)
    elif PARAMS == 2:
        return F(p0, p1)
    elif PARAMS == 3:
        return F(p0, p1, p2)
    elif PARAMS == 4:
        return F(p0, p1, p2, p3)
    elif PARAMS == 5:
        return F(p0, p1, p2, p3, p4)
    else:
        return F(p0, p1, p2, p3, p4, p5)


@triton.jit
def compute(x0, x1, x2, x3, s0, s1, s2, s3, s4, s5, i0, i1, i2, i3, mask, F: tl.constexpr, PARAMS: tl.constexpr,
            ONE: tl.constexpr, CAST: tl.constexpr, T: tl.constexpr):
    p0 = fetch(x0, s0, i0, mask, 0, ONE, CAST, T)
    p1 = fetch(x1, s1, i1, mask, 1, ONE, CAST, T)
    p2 = fetch(x2, s2, i2, mask, 2, ONE, CAST, T)
    p3 = fetch(x3, s3, i3, mask, 3, ONE, CAST, T)
    p4 = number(s4, i0.shape, T)
    p5 = number(s5, i0.shape, T)
    return apply(F, PARAMS, p0, p1, p2, p3, p4, p5)


NUMBERS = ["s0", "s1", "s2", "s3", "s4", "s5"]


@triton.jit(do_not_specialize=["n", *NUMBERS])
def flat(y, x0, x1, x2, x3, s0: "i64", s1: "i64", s2: "i64", s3: "i64", s4: "i64", s5: "i64", n,  # noqa: F821
         F: tl.constexpr, PARAMS: tl.constexpr, ONE: tl.constexpr, CAST: tl.constexpr, T: tl.constexpr,
         BLOCK: tl.constexpr):
    """y, x0..x3: n elements each, dense and in one order; x: None where s is the number, one element where ONE says so.

    Grid: (ceil(n / BLOCK),). Whole blocks take a path without mask: an odd n would make every access scalar.
    """
    base = tl.program_id(0).to(tl.int64) * BLOCK
    i = base + tl.arange(0, BLOCK)
    if base + BLOCK <= n:
        v = compute(x0, x1, x2, x3, s0, s1, s2, s3, s4, s5, i, i, i, i, None, F, PARAMS, ONE, CAST, T)
        tl.store(y + i, convert(v, y.dtype.element_ty))
    else:
        mask = i < n
        v = compute(x0, x1, x2, x3, s0, s1, s2, s3, s4, s5, i, i, i, i, mask, F, PARAMS, ONE, CAST, T)
        tl.store(y + i, convert(v, y.dtype.element_ty), mask=mask)


@triton.jit
def row_offsets(row, sizes, strides, UNIT: tl.constexpr, DIMS: tl.constexpr):
    """Offsets of rows, the row-major numbers of the outer dimensions; strides are in units of UNIT elements."""
    offset = row.to(tl.int64) * 0
    for k in tl.static_range(DIMS):
        size = sizes[DIMS - 1 - k]
        rest = row // size
        offset += (row - rest * size).to(tl.int64) * strides[DIMS - 1 - k]
        row = rest
    return offset * UNIT


@triton.jit(do_not_specialize=["rows", "cols", "sizes", "ty", "t0", "t1", "t2", "t3", *NUMBERS])
def tile(y, x0, x1, x2, x3, s0: "i64", s1: "i64", s2: "i64", s3: "i64", s4: "i64", s5: "i64", rows, cols, sizes,  # noqa: F821
         ty, t0, t1, t2, t3, cy, c0, c1, c2, c3, F: tl.constexpr, PARAMS: tl.constexpr, ONE: tl.constexpr,
         CAST: tl.constexpr, T: tl.constexpr, DIMS: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr,
         WIDE: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    """y, x0..x3: (*sizes, cols) with strides (*t, c) in elements, t in units of UNIT; rows = prod(sizes).

    Grid: (ceil(rows / ROWS) * ceil(cols / COLS),). EVEN: COLS divides cols, so that no mask stops wide accesses.
    """
    if WIDE:
        cols = cols.to(tl.int64)
    across = tl.cdiv(cols, COLS)
    pid = tl.program_id(0)
    row = (pid // across) * ROWS + tl.arange(0, ROWS)
    col = (pid % across) * COLS + tl.arange(0, COLS)
    mask = (row < rows)[:, None]
    if not EVEN:
        mask = mask & (col < cols)[None, :]
    col = col.to(tl.int64)[None, :]
    i0 = row_offsets(row, sizes, t0, UNIT, DIMS)[:, None] + col * c0
    i1 = row_offsets(row, sizes, t1, UNIT, DIMS)[:, None] + col * c1
    i2 = row_offsets(row, sizes, t2, UNIT, DIMS)[:, None] + col * c2
    i3 = row_offsets(row, sizes, t3, UNIT, DIMS)[:, None] + col * c3
    iy = row_offsets(row, sizes, ty, UNIT, DIMS)[:, None] + col * cy
    v = compute(x0, x1, x2, x3, s0, s1, s2, s3, s4, s5, i0, i1, i2, i3, mask, F, PARAMS, ONE, CAST, T)
    tl.store(y + iy, convert(v, y.dtype.element_ty), mask=mask)


@triton.jit
def identity(x):
    return x


class Plan(NamedTuple):
    """How to launch for inputs of given dtypes and layouts: everything but the pointers and the numbers."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    floating: bool                # of the computation: numbers travel as the bits of a double
    kernel: cuda.Kernel           # with its constexprs
    programs: int
    rest: tuple                   # arguments behind the numbers


# A call whose plan is known, for as many arguments as a formula has: 0.4 us where a loop over them took 2.
CALL = """
def call({all}):
    run = plans.get(({keys}Default.dtype))
    return first({all}) if run is None else run({all})
"""
KEY = "({a}.shape, {a}.strides, {a}.dtype, {a}.device) if type({a}) is DeviceArray else type({a}), "
# A plan, for arguments of given types: {given} are those that differ from call to call.
RUN = """
def make(plan, start, device):
    shape, strides, dtype, _, _, programs, ({rest}) = plan
    nbytes = prod(shape) * dtype.itemsize
    def run({given}):
        {made}
        {launch}
        return y
    return run
"""


@functools.cache
def jitted(op: Op) -> Callable:
    """An op's formula with Triton's names, as a jit function. Triton reads its source: a row is a def, not a lambda."""
    function = triton.jit(bind(op.formula, TRITON))
    function.op_name = op.name
    return function


def launcher(op: Op, guarded: Callable) -> Callable:
    """The function that runs an elementwise op on DeviceArrays and numbers. It remembers what `guarded` let through."""
    plans: dict[tuple, Callable] = {}

    def first(*args):
        """A call with inputs of new layouts."""
        if op.name == "silu" and args[0].dtype in COMPLEX:
            return _complex_silu(args[0])
        run = _remember(plans, _key_of(args), _written(_plan_of(op, args), args))
        return run(*args)

    call = written_call(len(op.parameters))(plans, guarded(op, first))
    short = {number: OPS[name] for (of, number), name in SHORTCUTS.items() if of == op.name}

    def call_or_shortcut(*args):
        """A power by a frequent number, without logarithms."""
        *xs, number = args
        if type(number) in (int, float) and number in short and all(x.dtype in FLOATS for x in xs):
            return short[number](*xs)
        return call(*args)
    return call_or_shortcut if short else call


def _remember(plans: dict, key: tuple, run: Callable) -> Callable:
    if len(plans) >= MOST_PLANS:
        plans.clear()
    plans[key] = run
    return run


@functools.cache
def written_call(count: int) -> Callable:
    """(plans, first) -> the function of that many arguments that looks for its plan, and asks `first` for a new one."""
    names = [f"a{k}" for k in range(count)]
    call = CALL.format(all=", ".join(names), keys="".join(KEY.format(a=a) for a in names)).replace("\n", "\n    ")
    exec(f"def make(plans, first):{call}\n    return call", space := {"DeviceArray": DeviceArray, "Default": Default})
    return space["make"]


def _key_of(args: tuple) -> tuple:
    """What a plan depends on, as CALL has it."""
    return (*((a.shape, a.strides, a.dtype, a.device) if type(a) is DeviceArray else type(a) for a in args),
            Default.dtype)


def _written(plan: Plan, args: tuple, into: bool = False) -> Callable:
    """The function that runs a plan on arguments like these: to a new array, or into an array given before them."""
    arrays = tuple(type(a) is DeviceArray for a in args)
    make = _maker(arrays, len(plan.rest), plan.floating, plan.programs > 0, into)
    slots = *(DeviceArray if a else type(None) for a in arrays[:POINTERS]), *(type(None),) * (POINTERS - len(arrays))
    start = plan.kernel.starter((DeviceArray, *slots, *(int,) * SLOTS, *map(type, plan.rest)))
    return make(plan, start, next((a.device for a in args if type(a) is DeviceArray), None))


@functools.cache
def _maker(arrays: tuple[bool, ...], count: int, floating: bool, launched: bool, into: bool) -> Callable:
    """RUN, written out: which of the arguments are arrays, how many numbers follow theirs, is there anything to do."""
    names = [f"a{k}" for k in range(len(arrays))]
    pointers = [a if is_array else "None" for a, is_array in zip(names, arrays, strict=True)][:POINTERS]
    bits = "unpack(pack({a}))[0]" if floating else "(int({a}) + 2**63) % 2**64 - 2**63"
    numbers = ["0" if is_array else bits.format(a=a) for a, is_array in zip(names, arrays, strict=True)]
    slots = *pointers, *["None"] * (POINTERS - len(pointers)), *numbers, *["0"] * (SLOTS - len(numbers))
    rest = "".join(f"r{k}, " for k in range(count))
    text = RUN.format(
        rest=rest, given=", ".join(["y"] * into + names),
        made="pass" if into else "y = new(shape, strides, dtype, nbytes, device)",
        launch=f"start(programs, 1, 1, y, {', '.join(slots)}, {rest})" if launched else "pass")
    exec(text, space := {"new": new, "prod": math.prod, "pack": DOUBLE.pack, "unpack": WORD.unpack})
    return space["make"]


def _plan_of(op: Op, args: tuple) -> Plan:
    """Dtypes and layout of one call. Raises what op.check raises, KernelError for what no kernel can do."""
    shape, dtype = op.check(*args)
    inner = compute_dtype(op, args)
    if inner in COMPLEX or dtype in COMPLEX:
        raise KernelError(f"{op.name}: no GPU kernel for {inner}: the GPU computes in real numbers")
    if len(args) > SLOTS or any(type(a) is DeviceArray for a in args[POINTERS:]):
        raise KernelError(f"{op.name}: a GPU kernel takes {POINTERS} arrays and {SLOTS} parameters at most")
    cast = 0
    for k, a in enumerate(args):
        kept = op.parameters[k] == "c" or op.kind == "gradient" and type(a) is DeviceArray and a.dtype == bool_
        cast |= (not kept) << k
    strides = next((a.strides for a in args if type(a) is DeviceArray and a.shape == shape and is_dense(a)),
                   contiguous_strides(shape))
    if inner == bool_ and op.kind != "int":
        inner = int8                       # True + True is True: what is not 0 is stored as True
    block = BLOCK if special_gpu.NAMES.keys().isdisjoint(op.formula.__code__.co_names) else HEAVY_BLOCK
    return _layout(jitted(op), cast, inner, shape, strides, dtype, args, block)


def is_dense(x: DeviceArray) -> bool:
    """No gaps and no overlaps: a permutation of a contiguous array."""
    return is_dense_layout(x.shape, x.strides)


@functools.lru_cache(MOST_PLANS)
def is_dense_layout(shape: tuple, strides: tuple) -> bool:
    """`is_dense`, of an array of this shape and these strides. An optimizer asks it of each parameter in each step."""
    wanted = 1
    for stride, size in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n != 1):
        if stride != wanted:
            return False
        wanted *= size
    return True


def _layout(formula: Callable, cast: int, inner: np.dtype, shape: tuple, strides: tuple, dtype: np.dtype,
            args: tuple, block: int = BLOCK) -> Plan:
    """Which template, and its arguments, for inputs `args` and an output of this shape and these strides."""
    size = math.prod(shape)
    one, alike, steps = 0, True, []
    for k, a in enumerate(args):
        if type(a) is not DeviceArray:
            steps.append((0,) * len(shape))
            continue
        lead = len(shape) - len(a.shape)
        step = (*(0,) * lead, *(0 if n == 1 else s for n, s in zip(a.shape, a.strides, strict=True)))
        steps.append(step)
        if size > 1 and not any(step):
            one |= 1 << k
        else:
            alike = alike and all(m == 1 or s == t for s, t, m in zip(step, strides, shape, strict=True))
    wide = float32 if inner in HALVES else inner
    constexprs = dict(F=formula, PARAMS=len(args), ONE=one, CAST=cast, T=TYPES[wide.name])
    floating = wide.kind == "f"
    if size <= 1 or alike and is_dense_layout(shape, strides):
        kernel = cuda.prepare(flat, **constexprs, BLOCK=block)
        return Plan(shape, strides, dtype, floating, kernel, -(-size // block), (size,))
    return Plan(shape, strides, dtype, floating, *_tiling(shape, strides, steps, constexprs, block))


def _coalesced(shape: tuple, strides: tuple, steps: list) -> list[list]:
    """[size, stride of y, strides of the inputs ...] of each dimension, outermost first, as few as there can be."""
    rows = [[n, s, *(t[d] for t in steps)] for d, (n, s) in enumerate(zip(shape, strides, strict=True)) if n != 1]
    rows.sort(key=lambda r: -r[1])
    out: list[list] = []
    for row in rows:
        if out and all(s == t * row[0] for s, t in zip(out[-1][1:], row[1:], strict=True)):
            out[-1] = [out[-1][0] * row[0], *row[1:]]
        else:
            out.append(row)
    return out


def _tiling(shape: tuple, strides: tuple, steps: list, constexprs: dict, block: int) -> tuple:
    """`tile`, how many programs and its arguments: the innermost dimension is the columns, all others are the rows."""
    steps = steps[:POINTERS]
    blank = [0] * (POINTERS - len(steps))
    *outer, (cols, *inner) = [row + blank for row in _coalesced(shape, strides, steps)]
    outer = outer or [[1] + [0] * (1 + POINTERS)]
    rows = math.prod(r[0] for r in outer)
    divisor, across = cols & -cols, triton.next_power_of_2(cols)
    width = min(block, divisor if divisor >= 32 else across)
    height = block // width
    unit = next(u for u in (8, 4, 1) if all(s % u == 0 for r in outer for s in r[1:]))
    tables = [tuple(r[k] // unit if k else r[0] for r in outer) for k in range(2 + POINTERS)]
    programs = -(-rows // height) * -(-cols // width)
    constants = dict(DIMS=len(outer), UNIT=unit, EVEN=cols % width == 0, ROWS=height, COLS=width,
                     WIDE=max(rows + height, cols + width) >= 2**31)
    return cuda.prepare(tile, **constexprs, **constants), programs, cuda.kept((rows, cols, *tables, *inner))


def _as_bits(x: DeviceArray) -> DeviceArray:
    """A complex array as the doubles or floats it is made of, with a last dimension of 2."""
    part = np.dtype(np.float32 if x.dtype.itemsize == 8 else np.float64)
    return DeviceArray(x.pointer, (*x.shape, 2), (*(2 * s for s in x.strides), 1), part, x.owner, x.device)


def copy_into(dst: DeviceArray, src: Any) -> DeviceArray:
    """dst[...] = src, broadcast and cast: floats truncate to integers, integers wrap. Both may be strided.

    Raises:
        ShapeError: src does not broadcast to dst.
    """
    if type(src) is not DeviceArray:
        inner = dst.dtype
        src = complex(src) if inner in COMPLEX else float(src) if inner in FLOATS else int(src)
    else:
        inner = src.dtype
        try:
            fits = np.broadcast_shapes(dst.shape, src.shape) == dst.shape
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(f"copy: wants what broadcasts to {dst.shape}, got {src.shape}")
    if dst.dtype in COMPLEX or inner in COMPLEX:
        return _copy_complex(dst, src)
    if inner == dst.dtype and getattr(src, "shape", None) == dst.shape and src.is_contiguous and dst.is_contiguous:
        cuda.copy_device(dst, src)
        return dst
    key = _key_of((dst, src))
    run = copies.get(key)
    if run is None:
        plan = _layout(identity, 1, inner, dst.shape, dst.strides, dst.dtype, (src,))
        run = _remember(copies, key, _written(plan, (src,), into=True))
    return run(dst, src)


def _parts(x: Any) -> tuple:
    """Real and imaginary part of a number or an array; those of a complex array are views."""
    if type(x) is not DeviceArray:
        return x.real, x.imag
    if x.dtype not in COMPLEX:
        return x, 0
    both = _as_bits(x)
    return both.view(x.shape, both.strides[:-1]), both.view(x.shape, both.strides[:-1], 1)


def _complex_silu(x: DeviceArray) -> DeviceArray:
    """x / (1 + exp(-x)) of a complex array, by its parts: Triton has no complex numbers, torch's silu takes them."""
    a, b = _parts(x)
    e = OPS["exp"](-a)
    c, s = e * OPS["cos"](b) + 1.0, -(e * OPS["sin"](b))            # 1 + exp(-x) = c + i s
    n = c * c + s * s
    y = cuda.empty(x.shape, x.dtype, x.device)
    for part, value in zip(_parts(y), ((a * c + b * s) / n, (b * c - a * s) / n), strict=True):
        copy_into(part, value)
    return y


def _copy_complex(dst: DeviceArray, src: Any) -> DeviceArray:
    """Real and imaginary parts one by one."""
    for d, s in zip(_parts(dst), _parts(src), strict=True):
        if type(d) is DeviceArray:
            copy_into(d, s)
    return dst


def contiguous_copy(x: DeviceArray) -> DeviceArray:
    """A new contiguous array with the values of x."""
    return copy_into(cuda.empty(x.shape, x.dtype, x.device), x)
