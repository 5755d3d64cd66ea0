"""Triton's view of CUDA, without torch: which device, which stream, how to load and launch a binary.

Triton 3.6 and 3.7 find no GPU without torch, and later ones always launch on stream 0; so the driver object is ours.
Triton's own C launcher is compiled with gcc on its first use; where there is no compiler, a launcher in Python over
cuda-bindings takes its place.
"""

import ctypes
import functools
import os
import subprocess
import sys

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.backends.nvidia import driver as nvidia
from triton.compiler import make_backend
from triton.runtime import _allocation

from zoo.ops.cuda.array import empty
from zoo.ops.cuda.driver import attribute, check, context, cuda, get_device_capability, set_device, state
from zoo.ops.cuda.memory import memory_class
from zoo.ops.cuda.streams import current_stream

VERSION = tuple(int(n) for n in triton.__version__.split(".")[:2])
NO_COMPILER = RuntimeError, OSError, ImportError, subprocess.CalledProcessError
C_TYPES = {"i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64}
C_TYPES |= {"u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64}
C_TYPES |= {"i1": ctypes.c_int8, "u1": ctypes.c_uint8, "fp32": ctypes.c_float, "fp64": ctypes.c_double}


@functools.cache
def prepare():
    """Lets 3.6 and 3.7 specialise their first argument, upon which they import torch if it is installed, without it."""
    from triton._C.libtriton import native_specialize_impl

    # Multiply and add are fused, as nvcc does by default: 3.10 turns it off, and 3.9 warns unless the choice is made.
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    hide = VERSION < (3, 8) and "torch" not in sys.modules
    if hide:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        native_specialize_impl(make_backend(GPUTarget("cuda", 90, 32)), 16, False, True, True)
    finally:
        if hide:
            del sys.modules["torch"]


class TorchFreeDriver(nvidia.CudaDriver):
    """The active driver of a process that computes on CUDA with zoo."""

    def __init__(self):
        # Not super().__init__(): up to 3.7 it imports torch, later it does so if torch is loaded already.
        try:
            self.utils = nvidia.CudaUtils()
        except NO_COMPILER:
            self.utils = PythonUtils()
        self.launcher_cls = launcher
        self.get_current_device = current_context
        self.set_current_device = set_device
        self.get_current_stream = current_handle
        self.get_device_capability = get_device_capability

    @staticmethod
    def is_active():
        return True

    def get_current_target(self):
        return target_of(current_context())

    def get_active_torch_device(self):
        return "cuda", current_context()


def current_context() -> int:
    """Index of the device whose context is current."""
    return state.device if state.context is None else state.context


def current_handle(device: int) -> int:
    """Raw handle of the device's current stream."""
    return current_stream(device).handle


@functools.cache
def target_of(device: int):
    """What Triton compiles for, for a device of this machine."""
    major, minor = get_device_capability(device)
    return GPUTarget("cuda", major * 10 + minor, 32)


@functools.cache
def install():
    """Makes ours the active driver of Triton."""
    prepare()
    context(state.device)
    triton.runtime.driver.set_active(TorchFreeDriver())


def launcher(source, metadata):
    """Triton's launcher for a compiled kernel, or ours without a C compiler, which 3.6 needs for every signature."""
    try:
        return nvidia.CudaLauncher(source, metadata)
    except (*NO_COMPILER, AttributeError):
        return PythonLauncher(source, metadata)


class PythonUtils:
    """Triton's `cuda_utils`, as far as kernels without tensor descriptors need it, over cuda-bindings."""

    def get_device_properties(self, device):
        """The properties Triton asks for."""
        return {
            "max_shared_mem": attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", device),
            "max_num_regs": attribute("MAX_REGISTERS_PER_BLOCK", device),
            "multiprocessor_count": attribute("MULTIPROCESSOR_COUNT", device),
            "warpSize": attribute("WARP_SIZE", device),
            "sm_clock_rate": attribute("CLOCK_RATE", device),
            "mem_clock_rate": attribute("MEMORY_CLOCK_RATE", device),
            "mem_bus_width": attribute("GLOBAL_MEMORY_BUS_WIDTH", device),
        }

    def load_binary(self, name, data, shared, device):
        """(module, function, registers, spilled words, largest block) of a cubin."""
        cu = cuda()
        key = cu.CUfunction_attribute
        module = check(cu.cuModuleLoadData(data))
        function = check(cu.cuModuleGetFunction(module, name.encode()))

        def of(name):
            return int(check(cu.cuFuncGetAttribute(getattr(key, f"CU_FUNC_ATTRIBUTE_{name}"), function)))

        if shared > 49152:  # what a block gets without asking
            most = attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", device) - of("SHARED_SIZE_BYTES")
            check(cu.cuFuncSetAttribute(function, key.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most))
        spilled = of("LOCAL_SIZE_BYTES") // 4
        return int(module), int(function), of("NUM_REGS"), spilled, of("MAX_THREADS_PER_BLOCK")

    def unload_module(self, module):
        """Frees a module's code."""
        cuda().cuModuleUnload(module)


# What Triton's C launcher wants between the stream and the kernel's arguments. These come one by one up to 3.6, then as
# a tuple.
AS_TUPLE = VERSION >= (3, 7)
HEAD = ("function, cooperative, pdl, packed, None, None, None, None, None, annotations, signature" if AS_TUPLE else
        "function, cooperative, pdl, None, None, packed, None, None, None")
SCRATCH = 8 if AS_TUPLE else 4  # behind the grid: the place of the memory for tensor descriptors


def direct(found) -> tuple:
    """(run, function, cooperative, pdl, packed, annotations, signature) of a compiled kernel, to call run with HEAD.

    run is Triton's C function itself. The object in Python before it takes 0.8 us to see that a kernel has no scratch
    memory, and 2 us more if it has some; only what we do not know, and a launcher of ours, are called through it.
    """
    if found.module is None:  # `run` loads it too, but not again after it failed
        found._init_handles()
    run, packed = found.run, found.packed_metadata
    described = getattr(run, "arg_annotations", None), getattr(run, "kernel_signature", None)
    if type(run) is nvidia.CudaLauncher and not (run.profile_scratch_size or getattr(run, "gsan_enabled", False)):
        start = with_scratch(run) if run.global_scratch_size else run.launch
        return start, found.function, run.launch_cooperative_grid, run.launch_pdl, packed, *described
    return through(run), found.function, False, False, packed, *described


def with_scratch(run):
    """The C function of a kernel that makes tensor descriptors: every program has memory for its own."""
    start, each = run.launch, run.global_scratch_size * run.num_ctas

    def call(x, y, z, *args):
        memory = memory_class()(x * y * z * each, current_context())
        start(x, y, z, *args[:SCRATCH], memory.pointer, *args[SCRATCH + 1:])

    return call


def scratch(size: int, alignment: int, stream):
    """Memory in which a launch keeps its tensor descriptors."""
    return empty((size,), np.int8, current_context())


def through(run):
    """A launcher object, to be called as its C function is."""
    names = HEAD.split(", ")
    packed, values = 4 + names.index("packed"), 4 + len(names)

    def call(*args):
        triton.set_allocator(scratch)  # of this thread: Triton keeps it in a context variable
        run(*args[:5], args[packed], None, None, None, *(args[values] if AS_TUPLE else args[values:]))

    return call


def flat(values):
    """All leaves of nested tuples."""
    for v in values:
        if isinstance(v, (tuple, list)):
            yield from flat(v)
        else:
            yield v


class PythonLauncher:
    """Launches a compiled kernel through cuda-bindings: slower than Triton's, and needs no compiler."""

    def __init__(self, source, metadata):
        signature = list(flat(source.signature.values()))
        if metadata.num_ctas != 1 or any("tensordesc" in str(s) for s in signature):
            raise RuntimeError("clusters and tensor descriptors as arguments want a C compiler: install gcc")
        self.scratch = metadata.global_scratch_size, metadata.global_scratch_align
        self.kept = [i for i, s in enumerate(signature) if s != "constexpr"]
        kinds = [ctypes.c_void_p if signature[i][0] == "*" else C_TYPES[signature[i]] for i in self.kept]
        self.types = (*kinds, ctypes.c_void_p, ctypes.c_void_p)  # behind the arguments: two scratch pointers
        self.block, self.shared = 32 * metadata.num_warps, metadata.shared
        cu = cuda()
        self.start = functools.partial(
            cu.cuLaunchCooperativeKernel if metadata.launch_cooperative_grid else cu.cuLaunchKernel
        )
        self.tail = () if metadata.launch_cooperative_grid else (0,)

    def __call__(self, x, y, z, stream, function, metadata, launch_metadata, enter, leave, *args):
        given = [v.data_ptr() if hasattr(v, "data_ptr") else v for v in flat(args)]
        size, alignment = self.scratch
        scratch = _allocation._allocator.get()(size * x * y * z, alignment, stream) if size else None
        values = (*(given[i] for i in self.kept), 0 if scratch is None else scratch.data_ptr(), 0)
        parameters = values, self.types
        check(self.start(function, x, y, z, self.block, 1, 1, self.shared, stream, parameters, *self.tail))


class CompileOnlyDriver(DriverBase):
    """No GPU: `kernel.warmup(...)` compiles for any target on the way that real launches take."""

    def __init__(self, target, index: int = 0):
        self.target = target
        self.get_current_device = lambda: index  # jit functions remember the target per index
        self.get_current_stream = lambda device: 0
        self.set_current_device = lambda device: None

    @classmethod
    def is_active(cls):
        return True

    def map_python_to_cpp_type(self, name):
        return nvidia.ty_to_cpp(name)

    def get_current_target(self):
        return self.target

    def get_active_torch_device(self):
        return None

    def get_benchmarker(self):
        raise RuntimeError("zoo chooses no kernel by timing at run time")
