"""How much GPU memory is in use, in the shapes of torch.cuda."""

from zoo.ops.cuda import pool
from zoo.ops.cuda.capture import refuse
from zoo.ops.cuda.driver import check, cuda, is_available, state, use
from zoo.ops.cuda.memory import HostMemory
from zoo.ops.cuda.mode import is_interpreting


def index(device: int | None) -> int:
    """The current device if none is named."""
    return state.device if device is None else device


def statistic(name: str, device: int | None) -> int:
    """A number of the pool; 0 without a GPU, as in torch."""
    return pool.statistic(name, index(device)) if is_available() else 0


def memory_allocated(device: int | None = None) -> int:
    """Bytes in use by arrays."""
    return HostMemory.held if is_interpreting() else statistic("USED_MEM_CURRENT", device)


def max_memory_allocated(device: int | None = None) -> int:
    """Most bytes in use since the start or `reset_peak_memory_stats`."""
    return HostMemory.peak if is_interpreting() else statistic("USED_MEM_HIGH", device)


def memory_reserved(device: int | None = None) -> int:
    """Bytes that the pool holds, in use or kept for later."""
    return HostMemory.held if is_interpreting() else statistic("RESERVED_MEM_CURRENT", device)


def max_memory_reserved(device: int | None = None) -> int:
    """Most bytes that the pool held since the start or `reset_peak_memory_stats`."""
    return HostMemory.peak if is_interpreting() else statistic("RESERVED_MEM_HIGH", device)


def reset_peak_memory_stats(device: int | None = None):
    """Lets the two peaks start anew."""
    if is_interpreting():
        HostMemory.peak = HostMemory.held
    else:
        pool.reset_peak(index(device))


def empty_cache(device: int | None = None):
    """Gives memory that the pool keeps and nobody uses back to the system."""
    refuse("gives memory back")
    if is_available() and not is_interpreting():
        pool.empty_cache(index(device))


def mem_get_info(device: int | None = None) -> tuple[int, int]:
    """(free, total) bytes of the GPU."""
    if is_interpreting():
        from os import sysconf

        page = sysconf("SC_PAGE_SIZE")
        return sysconf("SC_AVPHYS_PAGES") * page, sysconf("SC_PHYS_PAGES") * page
    use(index(device))
    free, total = check(cuda().cuMemGetInfo())
    return int(free), int(total)
