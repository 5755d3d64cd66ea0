"""DLPack: hands a DeviceArray to another library, and takes theirs, without a copy (spec: github.com/dmlc/dlpack)."""

import ctypes

import numpy as np

from zoo.ops.cuda import mode
from zoo.ops.cuda.array import DeviceArray, contiguous_strides
from zoo.ops.cuda.driver import is_over, state
from zoo.ops.cuda.mode import is_interpreting
from zoo.ops.cuda.shadow import shared_with_host

CPU, CUDA, PINNED, MANAGED = 1, 2, 3, 13
CODES = {"i": 0, "u": 1, "f": 2, "b": 6, "c": 5}  # numpy kind -> DLDataTypeCode; bfloat16 is 4
READ_ONLY = 1
LEGACY = 1  # the handle of the legacy default stream


class DLTensor(ctypes.Structure):
    """The C struct of that name: what the memory looks like."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManagedTensor(ctypes.Structure):
    """DLTensor and how to free it, before version 1 of the protocol."""

    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class DLManagedTensorVersioned(ctypes.Structure):
    """DLTensor and how to free it, since version 1 of the protocol."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


KINDS = {b"dltensor": DLManagedTensor, b"dltensor_versioned": DLManagedTensorVersioned}
USED = {name: b"used_" + name for name in KINDS}  # kept: a capsule has its name's address, not a copy
api = ctypes.pythonapi
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", api)
)
is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", api))
pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", api))
# The two that a capsule's destructor calls get the capsule's bare address: it is being destroyed.
valid_address = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", api))
address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", api))

exported: dict[int, tuple] = {}  # address of a struct handed out -> what must live as long


@Deleter
def release(address):
    """The consumer has let go of the memory: when that is freed, the consumer's stream may still be at work there."""
    kept = exported.pop(address, None)
    if kept is not None and kept[-1] is not None and not is_over():
        kept[-2].record_stream(kept[-1])


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def destroy(capsule):
    """A capsule that nobody took was dropped; one that was taken bears another name."""
    for name in KINDS:
        if valid_address(capsule, name):
            exported.pop(address_of(capsule, name), None)


def export(x: DeviceArray, stream=None, max_version=None, dl_device=None, copy=None):
    """The capsule that `__dlpack__` returns; the consumer's stream waits for ours."""
    kind = CPU if is_interpreting() else CUDA
    index = 0 if is_interpreting() else x.device
    if copy or dl_device not in (None, (kind, index)):
        raise BufferError("DLPack: a DeviceArray is shared without a copy, on its own device")
    if not is_interpreting():
        order_streams(x, stream)
    elif mode.sanitizing:
        shared_with_host(x)
    versioned = max_version is not None and max_version[0] >= 1
    name = b"dltensor_versioned" if versioned else b"dltensor"
    managed = KINDS[name]()
    sizes = ctypes.c_int64 * max(x.ndim, 1)
    shape, strides = sizes(*x.shape), sizes(*x.strides)
    code = 4 if x.dtype.name == "bfloat16" else CODES.get(x.dtype.kind)
    if code is None:
        raise BufferError(f"DLPack: no code for dtype {x.dtype}")
    managed.tensor = DLTensor(x.pointer, kind, index, x.ndim, code, x.dtype.itemsize * 8, 1, shape, strides, 0)
    managed.deleter = release
    if versioned:
        managed.major, managed.minor = 1, 0
    address = ctypes.addressof(managed)
    exported[address] = managed, shape, strides, x.owner, None if is_interpreting() else consumer(x, stream)
    return new_capsule(address, name, ctypes.cast(destroy, ctypes.c_void_p))


def consumer(x: DeviceArray, stream):
    """The stream on which a consumer works; the legacy default stream if it does not say."""
    from zoo.ops.cuda.streams import ExternalStream

    return ExternalStream(LEGACY if stream in (None, -1) else stream, x.device)


def order_streams(x: DeviceArray, stream):
    """Makes the consumer's stream (1 = legacy default, 2 = per thread, -1 = do not) wait for ours."""
    from zoo.ops.cuda.driver import check, cuda, use
    from zoo.ops.cuda.streams import current_stream

    if stream == -1:
        return
    use(x.device)
    mine = current_stream(x.device)
    if stream in (None, 1, 2):
        mine.synchronize()  # None is the legacy stream too, with which our non-blocking stream does not synchronise
    elif stream != mine.handle:
        check(cuda().cuStreamWaitEvent(stream, mine.record_event().handle, 0))


class Borrowed:
    """Memory of another library, given back when the last array on it is gone and our work on it is done.

    The host waits for that: the other library may use the memory anew at once, on streams that we do not know.
    """

    __slots__ = ("block", "device", "managed", "nbytes", "pointer", "users")

    def __init__(self, managed, pointer, nbytes, device):
        self.managed, self.pointer, self.nbytes, self.device = managed, pointer, nbytes, device
        self.users = ()
        if is_interpreting():
            self.block = (ctypes.c_uint8 * nbytes).from_address(pointer)

    def array(self, pointer, shape, strides, dtype):
        """The NumPy view of the same bytes; only in the interpreter."""
        return np.ndarray(shape, dtype, self.block, pointer - self.pointer, strides)

    def record_stream(self, stream):
        """Another stream works on this memory, too."""
        self.users = (*self.users, stream)

    def __del__(self, is_interpreting=is_interpreting, is_over=is_over):
        if not self.managed.deleter:
            return
        if not is_interpreting():
            if is_over():
                return
            if state.graph is not None:  # what is captured may use it: it goes with the graph
                state.graph.kept.append(Borrowed(self.managed, self.pointer, self.nbytes, self.device))
                return
            from zoo.ops.cuda.streams import current_stream

            for stream in {current_stream(self.device), *self.users}:
                stream.synchronize()
        self.managed.deleter(ctypes.addressof(self.managed))


def from_dlpack(source) -> DeviceArray:
    """An array on the memory of another library's GPU array; in the interpreter, of its CPU array.

    Raises BufferError if the memory lies elsewhere, is read-only, or has a dtype that NumPy does not know.
    """
    from zoo.ops.cuda.streams import current_stream

    kind, index = source.__dlpack_device__()
    wanted = (CPU,) if is_interpreting() else (CUDA, MANAGED)
    if kind not in wanted:
        raise BufferError(f"DLPack: wants memory of device type {wanted[0]}, got {kind}")
    stream = None if is_interpreting() else current_stream(index).handle
    try:
        capsule = source.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # a producer from before version 1
        capsule = source.__dlpack__(stream=stream)
    name = next(n for n in KINDS if is_valid(capsule, n))
    managed = KINDS[name].from_address(pointer_of(capsule, name))
    if getattr(managed, "flags", 0) & READ_ONLY:
        raise BufferError("DLPack: the memory is read-only")
    t = managed.tensor
    dtype = dtype_of(t)
    rename(capsule, USED[name])
    shape = tuple(t.shape[: t.ndim])
    strides = tuple(t.strides[: t.ndim]) if t.strides else contiguous_strides(shape)
    low = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0 < n)
    high = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s > 0 and n)
    pointer = (t.data or 0) + t.byte_offset
    nbytes = (high - low + 1) * dtype.itemsize if 0 not in shape else 0
    owner = Borrowed(managed, pointer + low * dtype.itemsize, nbytes, index)
    return DeviceArray(pointer, shape, strides, dtype, owner, index)


def dtype_of(t: DLTensor) -> np.dtype:
    """The NumPy dtype of a DLTensor."""
    if t.code == 4 and t.bits == 16 and t.lanes == 1:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    letter = {code: k for k, code in CODES.items()}.get(t.code)
    if letter is None or t.lanes != 1:
        raise BufferError(f"DLPack: no dtype for code {t.code}, {t.bits} bits, {t.lanes} lanes")
    return np.dtype(f"{letter}{t.bits // 8}")
