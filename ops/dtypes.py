"""Which dtype comes out: torch's promotion rules on numpy dtypes."""
import ml_dtypes
import numpy as np

from zoo.ops.errors import ArgumentError

bfloat16 = np.dtype(ml_dtypes.bfloat16)
float16, float32, float64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
int8, int16, int32, int64 = np.dtype(np.int8), np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.int64)
uint8, uint16, uint32, uint64 = np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64)
bool_ = np.dtype(np.bool_)
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)

COMPLEX = frozenset({complex64, complex128})
FLOATS = frozenset({float16, bfloat16, float32, float64})
HALVES = frozenset({float16, bfloat16})              # computed in float32, rounded once
SIGNED = frozenset({int8, int16, int32, int64})
INTS = SIGNED | {uint8, uint16, uint32, uint64}
INEXACT = FLOATS | COMPLEX
NUMBERS = (bool, int, float, complex)


class Default:
    """The dtype of Python floats and of what is created without dtype=."""
    dtype = float32


def default_dtype() -> np.dtype:
    return Default.dtype


def set_default_dtype(dtype) -> None:
    """Sets the dtype that Python floats become and that `zeros`, `rand` ... return.

    Raises:
        TypeError: dtype is not a floating one.
    """
    if not is_dtype(dtype) or np.dtype(dtype) not in FLOATS:
        raise TypeError(f"set_default_dtype: wants a floating dtype, got {dtype}")
    Default.dtype = np.dtype(dtype)


def is_dtype(x) -> bool:
    return isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, (np.generic, bool, int, float)))


def rank(dtype: np.dtype) -> int:
    """bool < integer < float < complex."""
    return 2 if dtype in FLOATS else 0 if dtype == bool_ else 1 if dtype in INTS else 3


def of_number(x) -> np.dtype:
    if isinstance(x, (bool, np.bool_)):
        return bool_
    if isinstance(x, (int, np.integer)):
        return int64
    if isinstance(x, (float, np.floating)):
        return Default.dtype
    return complex128 if Default.dtype == float64 else complex64


def join(a: np.dtype | None, b: np.dtype | None) -> np.dtype | None:
    """Common dtype of two equals. A float beats every integer and keeps its own width."""
    if a is None or b is None or a == b:
        return b if a is None else a
    if rank(a) != rank(b):
        high, low = (a, b) if rank(a) > rank(b) else (b, a)
        return complex128 if high == complex64 and low == float64 else high
    if bfloat16 in (a, b):
        other = b if a == bfloat16 else a
        return float32 if other == float16 else other
    return np.promote_types(a, b)


def stronger(first: np.dtype | None, second: np.dtype | None) -> np.dtype | None:
    """`second` counts only where its kind is higher: bool < integer < float < complex."""
    if first is None or second is None:
        return join(first, second)
    if rank(second) <= rank(first):
        return first
    return complex128 if second in COMPLEX and first == float64 else complex64 if second in COMPLEX else second


def result_type(*xs) -> np.dtype:
    """torch.result_type of any number of arrays and Python numbers: arrays first, then 0-d arrays, then numbers.

    >>> import numpy as np
    >>> result_type(np.ones(3, np.float16), 2.5, np.ones((), np.float64))
    dtype('float16')
    """
    arrays = zeros = numbers = None
    for x in xs:
        if isinstance(x, NUMBERS) or isinstance(x, np.generic):
            numbers = join(numbers, of_number(x))
        elif len(x.shape):
            arrays = join(arrays, x.dtype)
        else:
            zeros = join(zeros, x.dtype)
    found = stronger(arrays, stronger(zeros, numbers))
    if found is None:
        raise TypeError("result_type: wants at least one tensor or number")
    return found


def number_in(op: str, value, dtype: np.dtype):
    """A Python number as an element of `dtype`: for unsigned integers a negative one counts from the end, as in torch.

    Raises ArgumentError if an integer dtype has no such element.

    >>> import numpy as np
    >>> number_in("full", -2, np.dtype("uint8"))
    254
    """
    if dtype.kind not in "iu" or type(value) not in (int, float) or dtype not in INTS:
        return value
    limits = np.iinfo(dtype)
    low = limits.min or -limits.max
    if not low <= value <= limits.max:
        raise ArgumentError(f"{op}: value {value} cannot be converted to {dtype} without overflow")
    return int(value) % (limits.max + 1) if limits.min == 0 else int(value)
