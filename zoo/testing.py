"""torch.testing: assert_close."""
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zoo.autograd.tensor import Tensor, wrap
from zoo.ops.dtypes import bfloat16, complex64, complex128, float16, float32, float64
from zoo.ops.errors import ArgumentError

# (rtol, atol) of each dtype that is rounded; what has another dtype must be equal.
TOLERANCES = {float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5), float64: (1e-7, 1e-7),
              complex64: (1.3e-6, 1e-5), complex128: (1e-7, 1e-7)}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raises AssertionError unless |actual - expected| <= atol + rtol |expected| everywhere.

    Args:
        actual, expected: Tensors, arrays, numbers, or sequences and mappings of them.
        rtol, atol: both or neither; by default those of the coarser dtype (float32: 1.3e-6 and 1e-5; integers: 0).
        equal_nan: nan is close to nan. check_device, check_dtype, check_stride: these have to agree as well.
        msg: the error's text instead, or a function of it.

    Raises:
        AssertionError: they are not close; the text says where and by how much.
        ArgumentError (ValueError, RuntimeError): one tolerance alone.

    Example:
        >>> import zoo
        >>> zoo.testing.assert_close(zoo.tensor([1.0]), zoo.tensor([1.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        raise ArgumentError(f"assert_close: wants both rtol and atol or neither, got {rtol} and {atol}")
    checks = {"device": check_device, "dtype": check_dtype, "stride": check_stride}
    problem = difference(actual, expected, rtol, atol, equal_nan, checks, "")
    if problem is not None:
        raise AssertionError(msg(problem) if callable(msg) else msg or problem)


def difference(actual, expected, rtol, atol, equal_nan: bool, checks: dict, where: str) -> str | None:
    """What is wrong with `actual` at the place `where`, or None."""
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or actual.keys() != expected.keys():
            return f"The keys do not match{where}: {list(actual)} and {list(expected)}"
        pairs = [(actual[k], expected[k], f"{where} at {k!r}") for k in expected]
    elif isinstance(expected, Sequence) and not isinstance(expected, str):
        if not isinstance(actual, Sequence) or len(actual) != len(expected):
            return f"The sequences' lengths do not match{where}"
        pairs = [(a, e, f"{where} at {k}") for k, (a, e) in enumerate(zip(actual, expected, strict=True))]
    else:
        return leaves_differ(actual, expected, rtol, atol, equal_nan, checks, where)
    found = (difference(a, e, rtol, atol, equal_nan, checks, place) for a, e, place in pairs)
    return next((text for text in found if text is not None), None)


def leaves_differ(actual, expected, rtol, atol, equal_nan: bool, checks: dict, where: str) -> str | None:
    """`difference` of two tensors, arrays or numbers."""
    numbers = not (isinstance(actual, Tensor) or isinstance(expected, Tensor))
    actual, expected = (x.detach() if isinstance(x, Tensor) else wrap(np.asarray(x)) for x in (actual, expected))
    if actual.shape != expected.shape:
        return f"The values for attribute 'shape' do not match{where}: {actual.shape} != {expected.shape}."
    for name, wanted in checks.items():
        mine, theirs = (x.stride() if name == "stride" else getattr(x, name) for x in (actual, expected))
        if wanted and mine != theirs and not (numbers and name == "dtype"):
            return f"The values for attribute '{name}' do not match{where}: {mine} != {theirs}."
    if rtol is None:
        rtol, atol = (max(pair) for pair in zip(*(TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (actual, expected)),
                                                strict=True))
    wide = np.complex128 if complex64 in (actual.dtype, expected.dtype) or complex128 in (
        actual.dtype, expected.dtype) else np.float64
    exact = rtol == atol == 0 and actual.dtype == expected.dtype
    a, e = (x.cpu().numpy() if exact else x.cpu().numpy().astype(wide) for x in (actual, expected))
    close = a == e if exact else np.isclose(a, e, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if np.all(close):
        return None
    gap = np.where(close, 0, np.abs(a.astype(wide) - e.astype(wide)))
    worst = np.unravel_index(int(np.nanargmax(gap)) if not np.isnan(gap).all() else 0, gap.shape)
    return (f"Tensor-likes are not close{where}!\n\nMismatched elements: {int((~close).sum())} / {close.size}\n"
            f"Greatest absolute difference: {gap[worst]} at index {tuple(int(i) for i in worst)} "
            f"(up to {atol} allowed, relative tolerance {rtol})")
