"""What compiled kernels take of the GPU beyond time: the stack of a thread, where spilled registers lie."""
from collections.abc import Callable
from functools import partial

from zoo.ops.cuda.driver import check, cuda, state
from zoo.ops.cuda.launcher import Kernel
from zoo.ops.cuda.mode import is_interpreting
from zoo.ops.cuda.remember import Trace, device_of


class Launches(Trace):
    """Gathers the compiled functions of what would be launched; nothing runs."""

    def __init__(self, device: int):
        super().__init__(device)
        self.functions: list[int] = []

    def launch(self, kernel: Kernel, grid: tuple[int, ...], args: tuple):
        """Compiles the kernel for these arguments; in the interpreter there is nothing to compile."""
        if not is_interpreting():
            _, function, *_ = kernel.compile(args)
            self.functions.append(function)

    def call(self, function: Callable, *args):
        """Copies and fills have no registers."""


def stack_of(run: partial) -> int:
    """The most bytes of stack that a thread has in any kernel which `run` launches; 0 in the interpreter.

    Args:
        run: a function and its arguments, all arrays among them; what a trace can write down. It is called with
            stand-ins for the arrays, and launches nothing.

    Raises:
        Untraceable: it waits for values. RuntimeError: a kernel does not compile, or the GPU cannot hold it.
    """
    trace = Launches(device_of(run.args))
    args = [trace.argument(a, "") for a in run.args]
    before = state.trace, state.device
    state.trace, state.device = trace, trace.device
    try:
        run.func(*args)
    finally:
        state.trace, state.device = before
    return max(map(_local_bytes, trace.functions), default=0)


def _local_bytes(function: int) -> int:
    cu = cuda()
    key = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
    return int(check(cu.cuFuncGetAttribute(key, cu.CUfunction(function))))
