"""One formula, three bindings: a copy of the function whose free names mean NumPy, Triton or the ops themselves.

A row is a class body with the scalar formula `f` and its derivatives `d<input>`; `elementwise` makes it an Op. Its
parameters without a default are arrays (or numbers in their place); those with a default are options, always numbers.
"""
import inspect
from collections.abc import Callable
from types import FunctionType

import numpy as np

from zoo.ops import dtypes, scalar
from zoo.ops.dtypes import COMPLEX, HALVES, INEXACT, INTS, float32, rank, result_type
from zoo.ops.errors import DtypeError, ShapeError
from zoo.ops.fast_cpu import INTO
from zoo.ops.op import OPS, Op, Spec, signature
from zoo.ops.pieces import WHOLE, on_pieces

NUMPY = scalar.NAMES                       # what the free names of a formula mean on ndarrays
DIRECT = {                                 # dtypes on which the bare formula gives the right dtype by itself
    "same": INEXACT - HALVES | INTS | {dtypes.bool_}, "float": INEXACT - HALVES,
    "bool": INEXACT - HALVES | INTS | {dtypes.bool_}, "int": INTS | {dtypes.bool_}}
SINGLE = {(f.__code__.co_code, f.__code__.co_argcount): ufunc for f, ufunc in (
    (lambda a, b: a + b, np.add), (lambda a, b: a - b, np.subtract), (lambda a, b: a * b, np.multiply),
    (lambda a, b: a / b, np.divide), (lambda a: -a, np.negative))}
NAMED = (lambda a: exp(a)).__code__.co_code            # noqa: F821 -- of a formula that is one function of its input
TESTED = {"same": "floats ints", "float": "floats ints", "bool": "floats ints bool", "int": "ints bool"}
RANKS = ("bool", "int", "float", "complex")   # by dtypes.rank: the words of `refuses`
LIFTED = HALVES | COMPLEX              # dtypes that a derivative does not compute in as it stands


def bind(formula: Callable, names: dict) -> Callable:
    """A copy of `formula` in which free names mean what `names` says."""
    bound = FunctionType(formula.__code__, {**formula.__globals__, **names}, formula.__name__, formula.__defaults__)
    bound.__module__, bound.__qualname__ = formula.__module__, formula.__qualname__
    return bound


def in_numpy(formula: Callable, name: str = "", options: tuple = ()) -> Callable:
    """The formula of op `name` on ndarrays; its last parameters, as many as there are options, are numbers.

    One operation of its arguments is NumPy's function itself: quicker."""
    code = formula.__code__
    single = SINGLE.get((code.co_code, code.co_argcount))
    if single:
        return single
    fn = NUMPY.get(code.co_names[0]) if code.co_code == NAMED and code.co_argcount == 1 else None
    numbers = sum(n in options for n in code.co_varnames[:code.co_argcount])
    return of_any_size(fn or bind(formula, NUMPY), INTO.get(name), code.co_argcount - numbers - 1)


def of_any_size(fn: Callable, into: Callable | None, last: int) -> Callable:
    """fn, an elementwise function of arrays and options; on large ones in pieces, and by `into` on float32.

    last: the place of the last array among its arguments."""
    ndarray, empty_like = np.ndarray, np.empty_like

    def plain(*xs):
        x = xs[0]
        return on_pieces(fn, None, xs) if type(x) is ndarray and x.size > WHOLE else fn(*xs)

    if into is None:
        return plain
    write = into

    def fast(*xs):
        x = xs[0]
        if type(x) is not ndarray or x.dtype != float32 or not x.ndim or xs[last].shape != x.shape:
            return plain(*xs)
        if x.size > WHOLE:
            return on_pieces(fn, into, xs)
        y = empty_like(xs[last])
        write(y, *xs)
        return y
    return fast


def arrays_and_options(formula: Callable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of a formula's array inputs and of its options (the parameters with a default)."""
    names, defaults, _ = signature(formula)
    fixed = len(names) - len(formula.__defaults__ or ())
    return names[:fixed], names[fixed:]


def result_dtypes(name: str, kind: str, xs: tuple, refuses: str = "") -> tuple[np.dtype, np.dtype]:
    """(dtype of the computation, dtype of the result) of inputs that are arrays or numbers."""
    for x in xs:
        if not hasattr(x, "dtype") and not isinstance(x, dtypes.NUMBERS):
            raise TypeError(f"{name}: wants tensors and numbers, got {type(x).__name__}")
    dtype = result_type(*xs)
    if "any-bool" in refuses and any(getattr(x, "dtype", type(x)) in (dtypes.bool_, bool) for x in xs):
        raise DtypeError(f"{name}: a bool tensor is not supported, use logical_xor or logical_not")
    if refuses and RANKS[rank(dtype)] in refuses:
        raise DtypeError(f"{name}: not defined for {RANKS[rank(dtype)]} inputs, got {dtype}")
    if kind == "float" and dtype not in INEXACT:
        dtype = dtypes.default_dtype()
    elif kind == "int" and dtype in INEXACT:
        raise DtypeError(f"{name}: wants integers or bools, got {dtype}")
    return dtype, dtypes.bool_ if kind == "bool" else dtype


def compute_dtype(op: Op, args: tuple) -> np.dtype:
    """The dtype in which an elementwise op, or a derivative of one, computes on these arguments."""
    if op.kind == "gradient":
        return args[0].dtype
    arrays, _ = arrays_and_options(op.formula)
    return result_dtypes(op.name, op.kind, args[1 if arrays[0] == "c" else 0:len(arrays)])[0]


def check_of(name: str, arrays: tuple, options: tuple, kind: str, refuses: str) -> Callable:
    """The `check` of an elementwise op: broadcast shape and promoted dtype. A first input `c` is a condition."""
    skip = 1 if arrays[0] == "c" else 0

    def check(*args) -> Spec:
        xs = args[:len(arrays)]
        shapes = [getattr(x, "shape", ()) for x in xs]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            raise ShapeError(f"{name}: shapes do not broadcast: {', '.join(map(str, shapes))}") from None
        if skip and getattr(xs[0], "dtype", dtypes.bool_) not in (dtypes.bool_, dtypes.uint8):
            raise DtypeError(f"{name}: wants a bool condition, got {xs[0].dtype}")
        return Spec(shape, result_dtypes(name, kind, xs[skip:], refuses)[1])
    return check


def promotion_of(name: str, fn: Callable, kind: str, count: int, skip: int, check: Callable) -> Callable:
    """The slow path of every formula: checks, casts to the dtype of the computation, rounds the result once."""
    ndarray, asarray = np.ndarray, np.asarray

    def promoted(*args):
        xs, rest = args[:count], args[count:]
        if not any(isinstance(x, ndarray) for x in xs):
            raise TypeError(f"{name}: wants a tensor, got {', '.join(type(x).__name__ for x in xs)}")
        spec = check(*args)
        dtype = result_dtypes(name, kind, xs[skip:])[0]
        wide = float32 if dtype in HALVES else dtype
        xs = [*xs[:skip], *(asarray(x).astype(wide, copy=False) for x in xs[skip:])]
        return asarray(fn(*xs, *rest)).astype(spec.dtype, copy=False)
    return promoted


def arrays_of(name: str, fn: Callable, kind: str, arrays: tuple, options: tuple, check: Callable,
              refuses: str) -> Callable:
    """The NumPy path of one formula: fast when the dtypes agree, torch's promotion when they do not."""
    direct = frozenset(d for d in DIRECT[kind] if RANKS[rank(d)] not in refuses and (d in INEXACT or not options))
    ndarray, asarray, numbers = np.ndarray, np.asarray, (float, int)
    count, skip = len(arrays), 1 if arrays[0] == "c" else 0
    first = float32 if float32 in direct else None          # asked by identity: half the time of a set

    promoted = promotion_of(name, fn, kind, count, skip, check)

    def unary(x):
        try:
            if x.dtype not in direct:
                return promoted(x)
        except AttributeError:
            return promoted(x)                              # raises
        y = fn(x)
        return y if type(y) is ndarray else asarray(y)

    def unary_with_options(x, *rest):
        if type(x) is not ndarray or x.dtype not in direct:
            return promoted(x, *rest)
        y = fn(x, *rest)
        return y if type(y) is ndarray else asarray(y)

    def binary(a, b):
        if type(a) is ndarray:
            d = a.dtype
            if type(b) is ndarray:
                if d is b.dtype and (d is first or d in direct):
                    try:
                        y = fn(a, b)
                    except ValueError:
                        return promoted(a, b)               # its check names the op and both shapes
                    return y if type(y) is ndarray else asarray(y)
            elif type(b) in numbers and d in direct and d in INEXACT:
                y = fn(a, asarray(b, d))                    # half the time of a Python number
                return y if type(y) is ndarray else asarray(y)
        elif type(a) in numbers and type(b) is ndarray and b.dtype in direct and b.dtype in INEXACT:
            y = fn(asarray(a, b.dtype), b)
            return y if type(y) is ndarray else asarray(y)
        return promoted(a, b)

    if skip or count > 2:
        return several_of(fn, promoted, direct, count, skip)
    if count == 2:
        return promoted if options else binary
    return unary_with_options if options else unary


def several_of(fn: Callable, promoted: Callable, direct: frozenset, count: int, skip: int) -> Callable:
    """The fast path of three inputs and more, or of a condition and two: arrays of one dtype, and numbers."""
    ndarray, asarray, numbers = np.ndarray, np.asarray, (float, int)

    def several(*args):
        d = None
        for x in args[skip:count]:
            if type(x) is ndarray:
                if d is None:
                    d = x.dtype
                elif x.dtype is not d:
                    return promoted(*args)
            elif type(x) not in numbers:
                return promoted(*args)
        if d not in direct or d not in INEXACT or skip and getattr(args[0], "dtype", None) is not dtypes.bool_:
            return promoted(*args)
        try:
            y = fn(*args[:skip], *(x if type(x) is ndarray else asarray(x, d) for x in args[skip:count]), *args[count:])
        except ValueError:
            return promoted(*args)
        return y if type(y) is ndarray else asarray(y)
    return several


def elementwise(row: type) -> Op:
    """Class body -> Op: `f` is the scalar formula, and `dx` its derivative by the input `x`.

    Each derivative becomes an Op of its own (one kernel on the GPU); on anything that records, it falls apart
    into the ops it is written in, and that is where second and higher derivatives come from.

    Body: kind = "same" (keeps the promoted dtype; default) | "float" (lifts integers) | "bool" (comparisons) |
    "int" (refuses floats); samples (see tests/cases.py); domain = (low, high) of the default samples;
    dtypes = words of "floats ints bool" that the tests run; refuses = words of "bool int float complex": dtypes of the
    promoted inputs that raise DtypeError.
    """
    body, name = vars(row), row.__name__
    formula, kind, refuses = body["f"], body.get("kind", "same"), body.get("refuses", "")
    arrays, options = arrays_and_options(formula)
    derivatives = {n: gradient(f"{name}.d{n}", body[f"d{n}"], options, row) for n in arrays if f"d{n}" in body}
    check = check_of(name, arrays, options, kind, refuses)
    call = signed(arrays_of(name, in_numpy(formula, name, options), kind, arrays, options, check, refuses), formula)
    call.__doc__ = row.__doc__
    low, high = body.get("domain", (-2.0, 2.0))

    def samples(rng):
        return default_samples(rng, len(arrays), low, high)
    words = body.get("dtypes", TESTED[kind])
    return Op(name, call, derivatives, check=check, samples=body.get("samples", samples), formula=formula, kind=kind,
              dtypes=words, module=row.__module__)


def default_samples(rng, arity: int, low: float, high: float) -> dict:
    """Argument tuples by kind for a row that gives none: broadcast, empty, 0-d, odd sizes, extreme values."""
    def draw(*shape):
        return rng.uniform(low, high, shape)
    shapes = [(3, 4), (4,), (3, 1)]
    extremes = np.array([low, high, 0.0, -0.0, 1.0, -1.0, 1e4, -1e4, np.inf, -np.inf, np.nan])
    return {
        "ordinary": [tuple(draw(3, 4) for _ in range(arity)), tuple(draw(*shapes[i]) for i in range(arity))],
        "empty": [tuple(draw(0, 4) for _ in range(arity))],
        "0-d": [tuple(draw() for _ in range(arity))],
        "odd": [tuple(draw(7, 1, 13) for _ in range(arity)), tuple(draw(1031) for _ in range(arity))],
        "extreme": [tuple(np.roll(extremes, i) for i in range(arity))],
    }


def signed(call: Callable, formula: Callable) -> Callable:
    """`call` under the formula's own names and defaults, which is what an Op looks at."""
    out = FunctionType(call.__code__, call.__globals__, call.__name__, call.__defaults__, call.__closure__)
    out.takes = signature(formula)
    return out


def gradient(name: str, formula: Callable, options: tuple, row: type) -> Op:
    """The Op of one derivative. Dtypes agree already inside a backward pass, so the bound formula runs bare."""
    graph: list[Callable] = []
    bare = in_numpy(formula, name, options)

    def in_ops(*xs):
        if not graph:
            graph.append(bind(formula, {n: OPS[n] for n in formula.__code__.co_names if n in OPS}))
        if xs[0].dtype in COMPLEX:
            return OPS["conj"](graph[0](OPS["conj"](xs[0]), *xs[1:]))
        return graph[0](*xs)

    def arrays(*xs):
        dtype = xs[0].dtype
        if dtype in LIFTED:
            if dtype in COMPLEX:        # torch's convention, dy times the conjugate of the slope
                return np.asarray(np.conj(bare(np.conj(xs[0]), *xs[1:]))).astype(dtype, copy=False)
            wide = [x.astype(float32) if isinstance(x, np.ndarray) and x.dtype in HALVES else x for x in xs]
            return np.asarray(bare(*wide)).astype(dtype)
        y = bare(*xs)
        if type(y) is not np.ndarray or y.dtype is not dtype:
            y = np.asarray(y).astype(dtype, copy=False)
        return y

    names = signature(formula)[0]
    call = FunctionType(arrays.__code__, arrays.__globals__, name, None, arrays.__closure__)
    call.takes = names, (inspect.Parameter.empty,) * len(names), False
    xs = tuple(n for n in names if n not in options)

    def check(*args) -> Spec:
        shape = np.broadcast_shapes(*(getattr(a, "shape", ()) for n, a in zip(names, args, strict=True) if n in xs))
        return Spec(shape, args[0].dtype)
    return Op(name, call, check=check, decompose=in_ops, bare=bare, formula=formula, kind="gradient",
              module=row.__module__)
