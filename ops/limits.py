"""What the numbers of a dtype can hold, under torch's names: finfo and iinfo, with plain Python numbers."""
import ml_dtypes
import numpy as np

from zoo.ops.dtypes import FLOATS, INTS, default_dtype, is_dtype


class finfo:  # noqa: N801
    """Limits of a floating dtype: bits, eps, max, min, tiny (smallest_normal), resolution.

    Args:
        type: float16, bfloat16, float32 or float64; the default dtype if left out.

    Raises:
        TypeError: type is not a floating dtype.

    Example:
        >>> import zoo
        >>> zoo.finfo(zoo.float32).eps
        1.1920928955078125e-07
    """
    __slots__ = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")

    def __init__(self, type=None):  # noqa: A002
        dtype = default_dtype() if type is None else type
        if not is_dtype(dtype) or np.dtype(dtype) not in FLOATS:
            raise TypeError(f"finfo: wants a floating dtype, got {dtype!r}; iinfo is for integers")
        limits = ml_dtypes.finfo(np.dtype(dtype))
        self.bits, self.dtype = int(limits.bits), np.dtype(dtype).name
        self.eps, self.max, self.min, self.resolution = map(
            float, (limits.eps, limits.max, limits.min, limits.resolution)
        )
        self.tiny = self.smallest_normal = float(limits.smallest_normal)

    def __repr__(self):
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{name}={getattr(self, name):g}' for name in names)}, dtype={self.dtype})"


class iinfo:  # noqa: N801
    """Limits of an integer dtype: bits, max, min.

    Raises:
        TypeError: type is not an integer dtype.

    Example:
        >>> import zoo
        >>> zoo.iinfo(zoo.int8).max
        127
    """
    __slots__ = ("bits", "max", "min", "dtype")

    def __init__(self, type):  # noqa: A002
        if not is_dtype(type) or np.dtype(type) not in INTS:
            raise TypeError(f"iinfo: wants an integer dtype, got {type!r}; finfo is for floats")
        limits = np.iinfo(np.dtype(type))
        self.bits, self.max, self.min, self.dtype = limits.bits, int(limits.max), int(limits.min), limits.dtype.name

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
