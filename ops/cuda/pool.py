"""GPU memory from the driver's stream-ordered pool, and copies."""

import threading
from collections import deque
from collections.abc import Iterable
from functools import cache

import numpy as np

from zoo.ops.cuda import ledger
from zoo.ops.cuda.capture import outside
from zoo.ops.cuda.driver import CudaError, check, cuda, failure, is_over, state, use
from zoo.ops.cuda.ledger import accounts, live
from zoo.ops.cuda.streams import Event, Stream, activate, current_stream

with_pool: set[int] = set()


@cache
def pool(device: int):
    """The device's default pool, told to keep what is freed instead of giving it back to the system."""
    cu = cuda()
    use(device)
    found = check(cu.cuDeviceGetDefaultMemPool(check(cu.cuDeviceGet(device))))
    threshold = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    check(cu.cuMemPoolSetAttribute(found, threshold, cu.cuuint64_t(2**64 - 1)))
    with_pool.add(device)
    return found


class DeviceMemory:
    """A block of GPU memory; freed in the order of the stream on which it was allocated.

    That stream waits for the one that is current when the last array goes: a backward pass reads what a forward pass
    on another stream has left.
    """

    __slots__ = ("device", "nbytes", "pointer", "stream", "users")

    def __init__(self, nbytes: int, device: int):
        self.pointer = 0  # stays 0 if the allocation fails, so that __del__ frees nothing
        self.users = ()
        stream = state.active.get(device) or activate(device)
        if device not in with_pool:
            pool(device)
        account = accounts[device]
        account.need(nbytes, device)
        code, pointer = cuda().cuMemAllocAsync(nbytes or 1, stream.handle)
        if code:
            pointer = allocate_after_trim(code, nbytes, stream)
        self.pointer, self.nbytes, self.device, self.stream = int(pointer), nbytes, device, stream
        account.add(nbytes)

    def record_stream(self, stream):
        """Another stream works on this memory: when it is freed, wait for what that stream had to do by then."""
        if stream not in (self.stream, *self.users):
            self.users = (*self.users, stream)

    def __del__(self, is_over=is_over):  # a module's names are gone before its objects
        if not self.pointer or is_over():
            return
        live.pop(self.pointer, None)
        accounts[self.device].remove(self.nbytes)
        before = state.context
        here = state.active.get(self.device) or activate(self.device)
        if state.graph is not None:
            # What was captured before may use it: it is freed with the graph.
            state.graph.deferred.append((self.pointer, self.stream, self.users))
        elif here is self.stream and not self.users:
            cuda().cuMemFreeAsync(self.pointer, here.handle)
        else:
            free(self.pointer, self.stream, (*self.users, here))
        if before not in (None, self.device):
            use(before)  # the collector may come between a launch and what was looked up for it


def free(pointer: int, stream: Stream, users: Iterable[Stream]):
    """Frees memory of a stream when it and the others are done with what they have to do now."""
    for user in users:
        if user != stream:
            stream.wait_stream(user)
    cuda().cuMemFreeAsync(pointer, stream.handle)


def allocate_after_trim(code, nbytes, stream):
    """Second try, after the pool gave back what it kept. Raises OutOfMemoryError."""
    cu = cuda()
    if code != cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise failure(code)
    ledger.accounts[stream.device].retries += 1
    make_room(stream.device)
    code, pointer = cu.cuMemAllocAsync(max(nbytes, 1), stream.handle)
    if code:
        free, total = check(cu.cuMemGetInfo())
        raise ledger.out_of_memory(nbytes, stream.device, int(free), int(total))
    return pointer


def make_room(device: int):
    """Gives back to the system all that nobody uses, also what other streams are about to free."""
    use(device)
    check(cuda().cuCtxSynchronize())
    empty_cache(device)


on_their_way: deque[tuple[Event, np.ndarray]] = deque()  # what copies read now
letting_go = threading.Lock()  # two threads would let go of one copy more than is done


def copy_to_device(x, array: np.ndarray, non_blocking: bool = False):
    """Contiguous host array into contiguous `x`.

    The host array may be changed when this returns; with non_blocking and page-locked memory when the copy is done.
    """
    use(x.device)
    stream = current_stream(x.device)
    check(cuda().cuMemcpyHtoDAsync(x.pointer, array.ctypes.data, array.nbytes, stream.handle))
    if not is_page_locked(array):
        return  # pageable memory was staged before the call returned, pinned memory is still being read
    if non_blocking:
        with letting_go:
            while on_their_way and on_their_way[0][0].query():
                on_their_way.popleft()
            on_their_way.append((stream.record_event(), array))
    else:
        stream.synchronize()


def copy_to_host(array: np.ndarray, x):
    """Contiguous `x` into a contiguous host array; waits."""
    use(x.device)
    stream = current_stream(x.device)
    check(cuda().cuMemcpyDtoHAsync(array.ctypes.data, x.pointer, x.nbytes, stream.handle))
    stream.synchronize()


def copy_on_device(target, source):
    """Bytes from array to array; between two devices by way of the host."""
    if target.device != source.device:
        block = np.empty(source.nbytes, np.uint8)
        copy_to_host(block, source)
        use(target.device)
        handle = current_stream(target.device).handle
        check(cuda().cuMemcpyHtoDAsync(target.pointer, block.ctypes.data, block.nbytes, handle))
        return
    use(target.device)
    handle = current_stream(target.device).handle
    check(cuda().cuMemcpyDtoDAsync(target.pointer, source.pointer, source.nbytes, handle))


def set_bytes(x, byte: int):
    """Every byte of a contiguous array."""
    use(x.device)
    check(cuda().cuMemsetD8Async(x.pointer, byte, x.nbytes, current_stream(x.device).handle))


class PinnedMemory:
    """Page-locked host memory, for copies that run beside the host."""

    live: dict[int, int] = {}

    def __init__(self, nbytes: int):
        use(state.device)
        self.pointer = int(check(cuda().cuMemAllocHost(max(nbytes, 1))))
        PinnedMemory.live[self.pointer] = nbytes
        self.__array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (self.pointer, False),
            "version": 3,
        }

    def __del__(self, is_over=is_over):
        if self.live.pop(getattr(self, "pointer", 0), None) is not None and not is_over():
            with outside():  # a capture forbids it
                use(state.device)
                cuda().cuMemFreeHost(self.pointer)


def pinned_empty(shape, dtype) -> np.ndarray:
    """A host array in page-locked memory, freed with the last view of it."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64))
    return np.asarray(PinnedMemory(size * dtype.itemsize)).view(dtype)[:size].reshape(shape)


def is_pinned(array: np.ndarray) -> bool:
    """True if the array lies in memory of `pinned_empty`."""
    address = array.ctypes.data
    live = list(PinnedMemory.live.items())       # at once: a loader's thread may be adding to it
    return any(start <= address < start + size for start, size in live)


def is_page_locked(array: np.ndarray) -> bool:
    """True if copies of the array run beside the host: it lies in our pinned memory, or in another library's."""
    if is_pinned(array):
        return True
    cu = cuda()
    key = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    return not cu.cuPointerGetAttribute(key, array.ctypes.data)[0]  # of ordinary memory the driver knows nothing


def statistic(name: str, device: int) -> int:
    """An attribute of the pool, by the end of its name in the driver."""
    key = getattr(cuda().CUmemPool_attribute, f"CU_MEMPOOL_ATTR_{name}")
    return int(check(cuda().cuMemPoolGetAttribute(pool(device), key)))


def reset_peak(device: int):
    """Lets the pool's high-water marks start anew."""
    cu = cuda()
    for name in ("USED_MEM_HIGH", "RESERVED_MEM_HIGH"):
        key = getattr(cu.CUmemPool_attribute, f"CU_MEMPOOL_ATTR_{name}")
        check(cu.cuMemPoolSetAttribute(pool(device), key, cu.cuuint64_t(0)))


def empty_cache(device: int):
    """Gives back to the system what the pool keeps and nobody uses."""
    try:
        check(cuda().cuMemPoolTrimTo(pool(device), 0))
    except CudaError as e:
        raise CudaError(f"empty_cache: {e}") from e
