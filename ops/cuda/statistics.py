"""How much GPU memory is in use, in the shapes of torch.cuda."""

from typing import Any

from zoo.ops.cuda import ledger, pool
from zoo.ops.cuda.capture import refuse
from zoo.ops.cuda.driver import check, cuda, index, is_available, use
from zoo.ops.cuda.mode import is_interpreting


def statistic(name: str, device: Any) -> int:
    """A number of the pool; 0 without a GPU, as in torch."""
    return pool.statistic(name, index(device)) if is_available() else 0


def memory_allocated(device: Any = None) -> int:
    """Bytes in use by arrays."""
    return ledger.accounts[index(device)].nbytes if is_interpreting() else statistic("USED_MEM_CURRENT", device)


def max_memory_allocated(device: Any = None) -> int:
    """Most bytes in use since the start or `reset_peak_memory_stats`."""
    return ledger.accounts[index(device)].most_nbytes if is_interpreting() else statistic("USED_MEM_HIGH", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the pool holds, in use or kept for later."""
    return ledger.accounts[index(device)].nbytes if is_interpreting() else statistic("RESERVED_MEM_CURRENT", device)


def max_memory_reserved(device: Any = None) -> int:
    """Most bytes that the pool held since the start or `reset_peak_memory_stats`."""
    return ledger.accounts[index(device)].most_nbytes if is_interpreting() else statistic("RESERVED_MEM_HIGH", device)


def reset_peak_memory_stats(device: Any = None):
    """Lets the two peaks start anew."""
    account = ledger.accounts[index(device)]
    account.most_blocks, account.most_nbytes = account.blocks, account.nbytes
    if not is_interpreting() and is_available():
        pool.reset_peak(index(device))


def reset_accumulated_memory_stats(device: Any = None):
    """Lets what was allocated and freed in all start anew."""
    account = ledger.accounts[index(device)]
    account.total_blocks, account.total = account.blocks, account.nbytes
    account.retries = account.ooms = 0


def empty_cache(device: Any = None):
    """Gives memory that the pool keeps and nobody uses back to the system."""
    refuse("gives memory back")
    if is_available() and not is_interpreting():
        pool.empty_cache(index(device))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of the GPU."""
    if is_interpreting():
        from os import sysconf

        page = sysconf("SC_PAGE_SIZE")
        return sysconf("SC_AVPHYS_PAGES") * page, sysconf("SC_PHYS_PAGES") * page
    use(index(device))
    free, total = check(cuda().cuMemGetInfo())
    return int(free), int(total)


def set_per_process_memory_fraction(fraction: float, device: Any = None):
    """Lets this process use so large a share of the GPU's memory; more is an OutOfMemoryError."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"set_per_process_memory_fraction: wants a fraction in [0, 1], got {fraction}")
    total = mem_get_info(device)[1]
    ledger.accounts[index(device)].limit = float("inf") if fraction == 1 else total * fraction


def memory_stats(device: Any = None) -> dict[str, int]:
    """torch.cuda.memory_stats, its main keys: blocks and bytes now, at most, and in all; failed allocations."""
    return ledger.stats(index(device), memory_reserved(device), max_memory_reserved(device))


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """What is live, the largest first, in the form of torch's segments: address, size, shape, dtype; while
    `record_memory_history` is on also the user's line and the module that made it.
    """
    return ledger.snapshot(index(device))


def memory_by_module(device: Any = None) -> dict[str, int]:
    """Bytes of live arrays by the module whose forward made them, where `record_memory_history` was on."""
    return ledger.memory_by_module(index(device))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The main numbers of `memory_stats` as a table, and the largest live arrays unless abbreviated."""
    found, text = memory_stats(device), ledger.size_text
    lines = [f"{'':20s}{'current':>12s}{'peak':>12s}{'allocated':>12s}{'freed':>12s}"]
    for name, show in (("allocated_bytes", text), ("allocation", str)):
        values = [show(found[f"{name}.all.{key}"]) for key in ("current", "peak", "allocated", "freed")]
        lines.append(f"{name:20s}" + "".join(f"{v:>12s}" for v in values))
    reserved = [text(found[f"reserved_bytes.all.{key}"]) for key in ("current", "peak")]
    lines.append(f"{'reserved_bytes':20s}" + "".join(f"{v:>12s}" for v in reserved))
    if not abbreviated:
        lines += [use.text() for _, use in ledger.uses(index(device))[:ledger.LARGEST]]
    return "\n".join(lines)
