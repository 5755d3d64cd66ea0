"""What the registry-driven tests run: every op's samples, cast, made strided, moved to a device; tolerances."""

import numpy as np

import zoo  # noqa: F401  (fills the registry)
from zoo.ops.dtypes import FLOATS, HALVES, bfloat16
from zoo.ops.op import OPS, Op

KINDS = ("ordinary", "empty", "0-d", "odd", "extreme")
DTYPES = {"floats": [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), bfloat16],
          "ints": [np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.uint8)], "bool": [np.dtype(np.bool_)]}
# relative to the largest magnitude of the result; a GPU kernel may round differently from NumPy by a few units
TOLERANCE = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
NAMES = sorted(OPS)


def samples(op: Op, seed: int = 0) -> dict:
    """kind -> argument tuples, or the reason why there are none. A derivative row borrows its op's inputs."""
    if op.kind == "gradient":
        return gradient_samples(op, seed)
    return op.samples(np.random.default_rng(seed))


def gradient_samples(op: Op, seed: int) -> dict:
    """Arguments of `mul.da(dy, b)`: those of `mul`, its output for y, and a random dy."""
    parent = OPS[op.name.rpartition(".")[0]]
    rng, found = np.random.default_rng(seed + 1), {}
    for kind, rows in parent.samples(np.random.default_rng(seed)).items():
        found[kind] = rows if isinstance(rows, str) else [gradient_args(op, parent, row, rng) for row in rows]
    return found


def gradient_args(op: Op, parent: Op, row: tuple, rng) -> tuple:
    row = parent.bind(row, {})
    y = np.asarray(parent.forward(*row))
    known = {
        **dict(zip(parent.parameters, row, strict=True)),
        "y": y,
        "dy": rng.normal(size=y.shape).astype(y.dtype if y.dtype in FLOATS else float),
    }
    return tuple(known[p] for p in op.parameters)


def is_float_array(x) -> bool:
    return isinstance(x, np.ndarray) and x.dtype in FLOATS


def cast(args: tuple, dtype: np.dtype) -> tuple:
    """Float arrays of the sample as `dtype`; index arrays and masks stay."""
    def one(x):
        if isinstance(x, tuple) and any(isinstance(v, np.ndarray) for v in x):
            return tuple(map(one, x))
        if isinstance(x, np.generic):
            x = np.asarray(x)                 # rng.normal(size=()) gives a NumPy scalar
        if not is_float_array(x):
            return x
        if dtype.kind in "iu":
            x = np.asarray(
                np.nan_to_num(x, nan=0.0, posinf=100.0, neginf=-100.0).clip(-100, 100) * 3
            )  # 0-d stays an array
            return np.asarray(np.abs(x) if dtype.kind == "u" else x).astype(dtype)
        return np.asarray(x > 0) if dtype.kind == "b" else x.astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return tuple(map(one, args))


def strided(args: tuple) -> tuple:
    """The same values in memory with gaps: every second element of a larger array, dimensions in reverse order."""
    def one(x):
        if not isinstance(x, np.ndarray) or x.ndim == 0:
            return x
        big = np.zeros((*x.shape[::-1][:-1], 2 * x.shape[0]), x.dtype)
        view = big[..., ::2].transpose(range(x.ndim)[::-1])
        view[...] = x
        return view
    return tuple(map(one, args))


def dtypes_of(op: Op) -> list[np.dtype]:
    return [d for word in op.dtypes.split() for d in DTYPES[word]]


def all_of(y) -> tuple:
    return y if isinstance(y, tuple) else (y,)


def assert_close(got: np.ndarray, want: np.ndarray, dtype: np.dtype, length: int = 1, what: str = "") -> None:
    """Equal shape and dtype, NaN and infinities at the same places, values within the dtype's tolerance.

    length: how many terms were summed for one element; errors of sums grow with its square root.
    """
    assert got.shape == want.shape, f"{what}: shape {got.shape}, want {want.shape}"
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, want {want.dtype}"
    if want.dtype not in FLOATS:
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    tolerance = TOLERANCE[np.dtype(dtype).name if dtype in FLOATS else want.dtype.name] * max(1.0, length ** 0.5)
    if want.dtype in HALVES:
        tolerance = max(tolerance, TOLERANCE[want.dtype.name])
    a, b = got.astype(np.float64), want.astype(np.float64)
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    if length == 1:
        scale = 0.1 * min(1.0, scale)  # elementwise: terms of size 1 cancel near a formula's zeros (gelu', silu')
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=max(tolerance * scale, 1e-6 * tolerance), err_msg=what)
