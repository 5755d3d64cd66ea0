"""One kernel for all that a batch of batch norm leaves behind: running mean, running variance, number of batches."""
import triton
import triton.language as tl

from zoo.ops import cuda
from zoo.ops.norm import statistics_dtype
from zoo.ops.norm_columns_gpu import wide_of
from zoo.ops.norm_gpu import dense_all
from zoo.ops.pointwise_gpu import copy_into

BLOCK = 1024


@triton.jit(do_not_specialize=["C"])
def move_statistics(running_mean, running_var, batches, mean, var, C, momentum: "fp64", unbiased: "fp64",  # noqa: F821
                    AVERAGE: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """running_mean, running_var (C,) or None move towards mean and unbiased * var (C,); batches () or None grows by 1.

    By momentum, or with AVERAGE by 1 / batches. Grid: (1,): all need the number, one writes it.
    """
    share = momentum
    if batches is not None:
        number = tl.load(batches) + 1
        tl.debug_barrier()                                 # every thread has read it before one writes
        tl.store(batches, number)
        if AVERAGE:
            share = 1 / number.to(tl.float64)
    keep = (1 - share).to(WIDE)
    share = share.to(WIDE)
    for c in range(0, C, BLOCK):
        at = c + tl.arange(0, BLOCK)
        inside = at < C
        if running_mean is not None:
            old = tl.load(running_mean + at, mask=inside, other=0.0).to(WIDE)
            new = tl.load(mean + at, mask=inside, other=0.0).to(WIDE)
            tl.store(running_mean + at, (old * keep + new * share).to(running_mean.dtype.element_ty), mask=inside)
        if running_var is not None:
            old = tl.load(running_var + at, mask=inside, other=0.0).to(WIDE)
            new = tl.load(var + at, mask=inside, other=0.0).to(WIDE) * unbiased.to(WIDE)
            tl.store(running_var + at, (old * keep + new * share).to(running_var.dtype.element_ty), mask=inside)


def move(running_mean, running_var, batches, mean, var, momentum, unbiased):
    strided = [v for v in (running_mean, running_var) if v is not None and not v.is_contiguous]
    if strided:
        copies = dense_all(running_mean, running_var)
        move(*copies, batches, mean, var, momentum, unbiased)
        for v, copy in zip((running_mean, running_var), copies, strict=True):
            if v is not None:
                copy_into(v, copy)
        return
    mean, var = dense_all(mean, var)
    running = running_mean if running_var is None else running_var
    wide = statistics_dtype(mean.dtype if running is None else running.dtype)
    cuda.launch(move_statistics, (1,), running_mean, running_var, batches, mean, var, mean.size,
                0.0 if momentum is None else float(momentum), float(unbiased), AVERAGE=momentum is None,
                WIDE=wide_of(wide), BLOCK=BLOCK)
