"""repr of tensors as torch prints them: 4 digits, aligned columns, summarised above 1,000 elements."""
import math
from typing import Any

import numpy as np

from zoo.ops.device import fetch
from zoo.ops.dtypes import bfloat16, bool_, default_dtype, int64
from zoo.ops.errors import ArgumentError


class Options:
    """What `set_printoptions` sets."""
    precision, threshold, edgeitems, linewidth, sci_mode = 4, 1000, 3, 80, None


PROFILES = {
    "default": dict(precision=4, threshold=1000, edgeitems=3, linewidth=80),
    "short": dict(precision=2, threshold=1000, edgeitems=2, linewidth=80),
    "full": dict(precision=4, threshold=math.inf, edgeitems=3, linewidth=80),
}


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Digits, and when and how long tensors are shortened; as torch.set_printoptions.

    Args:
        precision: digits behind the point. linewidth: columns of a line.
        threshold: the number of elements above which only `edgeitems` at both ends of each dimension are shown.
        profile: "default", "short" or "full" sets these four, before those that are given.
        sci_mode: whether numbers have exponents; None decides by their size.

    Raises:
        ArgumentError: another profile.

    Example:
        >>> import zoo
        >>> zoo.set_printoptions(precision=2)
        >>> zoo.tensor([1 / 3])
        tensor([0.33])
        >>> zoo.set_printoptions(profile="default")
    """
    if profile is not None and profile not in PROFILES:
        raise ArgumentError(f"set_printoptions: wants profile {', '.join(PROFILES)}, got {profile!r}")
    given = dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth)
    chosen = dict(PROFILES[profile]) if profile is not None else {}
    chosen.update((name, value) for name, value in given.items() if value is not None)
    for name, value in chosen.items():
        setattr(Options, name, value)
    Options.sci_mode = sci_mode


def formatter(values: np.ndarray) -> tuple:
    """(number -> text, width of a column), from the numbers that will be shown."""
    if values.dtype.kind in "iub":
        width = max((len(str(v)) for v in values.tolist()), default=0)
        return (lambda v: str(v).rjust(width)), width
    wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide) & (wide != 0)]
    digits, whole, science = Options.precision, bool((finite == np.ceil(finite)).all()), False
    if finite.size:
        low, high = np.abs(finite).min(), np.abs(finite).max()
        science = bool(high / low > 1000 or high > 1e8 or (not whole and low < 1e-4))
    science = science if Options.sci_mode is None else Options.sci_mode

    def text(v) -> str:
        if science:
            return f"{v:.{digits}e}"
        if whole:
            return f"{v:.0f}" + ("." if math.isfinite(v) else "")
        return f"{v:.{digits}f}"
    width = max((len(text(v)) for v in finite.tolist()), default=1)
    return (lambda v: text(v).rjust(width)), width


def shown(a: np.ndarray, short: bool) -> np.ndarray:
    """The elements that will be printed, flat."""
    edge = Options.edgeitems
    for axis, n in enumerate(a.shape):
        if short and n > 2 * edge:
            a = np.concatenate([np.take(a, range(edge), axis), np.take(a, range(n - edge, n), axis)], axis)
    return a.reshape(-1)


def layout(a: np.ndarray, form: tuple, short: bool, indent: int) -> str:
    (text, width), edge = form, Options.edgeitems
    if a.ndim == 0:
        return text(a.item())
    cut = short and len(a) > 2 * edge
    parts: list[Any] = [*a[:edge], None, *a[-edge:]] if cut else list(a)
    if a.ndim == 1:
        words = [" ..." if p is None else text(p.item() if hasattr(p, "item") else p) for p in parts]
        per_line = max(1, (Options.linewidth - indent) // (width + 2))
        lines = [words[i:i + per_line] for i in range(0, len(words), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"
    rows = ["..." if p is None else layout(p, form, short, indent + 1) for p in parts]
    return "[" + ("," + "\n" * (a.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def tensor_repr(self) -> str:
    """`tensor([1., 2.], device='cuda:0', dtype=float64, grad_fn=<mul>)`."""
    a = fetch(self.array)
    values = a.astype(np.float32) if a.dtype == bfloat16 else a
    short = a.size > Options.threshold
    name = "Parameter containing:\ntensor" if type(self).__name__ == "Parameter" else "tensor"
    indent = len("tensor(")
    body = "[]" if not a.size else layout(values, formatter(shown(values, short)), short, indent)
    parts = [body]
    if not a.size and a.ndim != 1:
        parts.append(f"size={tuple(a.shape)}")
    if self.is_cuda:
        parts.append(f"device='{self.device}'")
    if not (a.dtype == default_dtype() or a.dtype in (int64, bool_)) or (not a.size and a.dtype != default_dtype()):
        parts.append(f"dtype=zoo.{a.dtype.name}")
    if self.node is not None:
        parts.append(f"grad_fn=<{self.node.name}>")
    elif self.requires_grad:
        parts.append("requires_grad=True")
    return f"{name}({', '.join(parts)})"


