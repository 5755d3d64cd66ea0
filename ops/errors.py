"""What a wrong argument raises: always a ValueError or TypeError, and the class torch users catch as well.

Messages name the op, what it wanted and got: `matmul: wants (..., M, K) and (..., K, N), got (2, 3) and (4, 5)`.
"""


class ShapeError(ValueError, RuntimeError):
    """Shapes or sizes that do not fit together; torch raises RuntimeError."""


class DimError(ValueError, IndexError):
    """A dimension or an index out of range; torch raises IndexError."""


class RangeError(DimError, RuntimeError):
    """An element of an index array out of range; torch raises IndexError or RuntimeError, depending on the op."""


class DtypeError(TypeError, RuntimeError):
    """A dtype that the op does not take; torch raises RuntimeError."""


class DeviceError(TypeError, RuntimeError):
    """Arrays of two devices in one call, or a device that is not there; torch raises RuntimeError."""


class GradError(ValueError, RuntimeError):
    """A graph that cannot be walked: freed, not there, or written to since; torch raises RuntimeError."""


class ArgumentError(ValueError, RuntimeError):
    """A value that an option does not take, where torch raises RuntimeError."""


class LinAlgError(ValueError, RuntimeError):
    """A matrix that is singular, or not positive definite; torch raises torch.linalg.LinAlgError, a RuntimeError."""


class KernelError(NotImplementedError):
    """An op without a kernel for the device of its arguments: nothing falls back to the CPU silently."""
