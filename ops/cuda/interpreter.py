"""Runs ordinary `@triton.jit` kernels on host memory with Triton's interpreter, in the process that also compiles.

Triton's own way (TRITON_INTERPRET=1) is all or nothing, patches `triton.language` anew at every launch and computes
bfloat16 on its bit patterns. Here the patch is put on once and stays until `compiling()` or `restore()`, bfloat16 is
true (ml_dtypes, round to nearest even), and every load and store is checked against the memory that is alive.
The module leans on private names of triton 3.6 to 3.9; tests/test_cuda.py runs on both ends.

`ZOO_INTERPRET=sanitize` finds more: races, missing barriers, memory that nobody wrote (sanitizer.py).

As on the GPU, a Python float reaches the kernel as float32 unless the parameter is annotated `"fp64"`.
Not there: inline assembly, libdevice, `tl.flip` on 3.6; `tl.dot` is exact float32 where a GPU may use tf32.
"""

import contextlib
import dataclasses
import functools
import inspect
import itertools
import threading

import ml_dtypes
import numpy as np
import triton.language as tl
from triton.runtime import interpreter as stock
from triton.runtime.interpreter import InterpretedFunction, TensorHandle
from triton.runtime.jit import JITFunction

from zoo.ops.cuda import mode
from zoo.ops.cuda.array import DeviceArray
from zoo.ops.cuda.memory import HostMemory
from zoo.ops.cuda.turns import Turns

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INT_TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
INT_TYPES |= {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}
SCALARS = {"fp32", "fp64", *INT_TYPES}
POINTER_NAMES = {"float32": "fp32", "float16": "fp16", "float64": "fp64", "bfloat16": "bf16", "bool": "u1"}
POINTER_NAMES |= {np.dtype(t).name: name for name, t in INT_TYPES.items()}
POINTER_NAMES |= {"float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}

lock = threading.RLock()
scope = None  # what to undo; None while triton.language is as it came
overhang = None  # the kernel that runs, for error messages
watch = None  # the sanitizer's view of the launch that runs
turns = None  # of its programs, if they wait for each other


class NoScope:
    """What patching returns while the patch is on: nothing to undo."""

    def restore(self):
        """Nothing."""


class BothModules:
    """Stands in for a kernel's function when patching: names both modules whatever a kernel's globals are."""

    __globals__ = {"tl": tl, "core": tl.core}


@functools.cache
def rewritten(fn):
    """The plain Python function that the interpreter runs for a kernel's function."""
    return InterpretedFunction(fn).rewrite()


def call_jit_function(self, *args, **kwargs):
    """JITFunction.__call__ while interpreting: one kernel function calls another."""
    return rewritten(self.fn)(*args, **kwargs)


def bind_jit_function(self, instance, owner=None):
    """JITFunction.__get__ while interpreting."""
    return self if instance is None else functools.partial(self, instance)


def install():
    """Puts the interpreter into `triton.language`; a second call does nothing."""
    global scope
    if scope is not None:
        return
    fix_bfloat16()
    original = JITFunction.__call__, stock._patch_lang
    patched = stock._patch_lang(BothModules)
    speed_up(patched)
    for name in ("multiple_of", "max_contiguous", "max_constancy"):
        for module in (tl, tl.core):
            patched.set_attr(module, name, functools.partial(hint, name))
    # int() of a one-element array is an error since NumPy 2.4, and triton 3.6 relies on it.
    patched.set_attr(tl.core.tensor, "__index__", lambda self: int(self.handle.data.squeeze()))
    JITFunction.__call__ = call_jit_function
    JITFunction.__get__ = bind_jit_function  # x.sum(0), x.sigmoid(): methods of tl.tensor are jit functions
    stock._patch_lang = lambda fn: NoScope()
    scope = patched, *original


def hint(name, block, values):
    """`tl.multiple_of` and the like, which the compiler builds on."""
    if watch is not None and isinstance(block, tl.tensor):
        values = [getattr(v, "value", v) for v in (values if isinstance(values, (tuple, list)) else [values])]
        step = bytes_of_element(block.handle) if block.dtype.is_ptr() else 1
        watch.hint(name, block.handle.data, step, values)
    return block


def speed_up(patched):
    """Takes Triton's slowest Python out of every operation: 2 to 4 times faster, same results.

    A block's type and a tensor's shape are worked out once per shape; integers wrap as on a GPU, where the interpreter
    computes everything once more in 64 bits to see whether they do.
    """
    block, tensor = tl.core.block_type, tl.core.tensor
    make_block, make_tensor = block.__init__, tensor.__init__
    blocks: dict[tuple, dict] = {}

    def block_type(self, element_ty, shape):
        key = id(element_ty), *shape
        if set(map(type, key)) != {int}:
            return make_block(self, element_ty, shape)
        found = blocks.get(key)
        if found is None:
            if len(blocks) > 10_000:
                blocks.clear()
            make_block(self, element_ty, shape)
            blocks[key] = found = self.__dict__  # keeps element_ty, and with it the id
            sample = object.__new__(tensor)
            make_tensor(sample, None, self)
            self.fields = {k: v for k, v in sample.__dict__.items() if k not in ("handle", "type")}
        self.__dict__ = found

    def tensor_of(self, handle, type):
        fields = type.__dict__.get("fields")
        if fields is None:
            return make_tensor(self, handle, type)
        self.__dict__.update(fields)
        self.handle, self.type = handle, type

    patched.set_attr(block, "__init__", block_type)
    patched.set_attr(tensor, "__init__", tensor_of)
    builder = stock.interpreter_builder
    patched.set_attr(builder, "options", dataclasses.replace(builder.options, sanitize_overflow=False))


def restore():
    """Gives `triton.language` back as it came, so that kernels can be compiled."""
    global scope
    if scope is None:
        return
    patched, JITFunction.__call__, stock._patch_lang = scope
    del JITFunction.__get__
    patched.restore()
    scope = None


@contextlib.contextmanager
def compiling():
    """Inside, kernels are compiled as if nothing had ever been interpreted. Other threads must wait."""
    with lock:
        installed = scope is not None
        restore()
        try:
            yield
        finally:
            if installed:
                install()


@functools.cache
def fix_bfloat16():
    """Makes bfloat16 a number: the stock interpreter stores uint16, adds bit patterns and truncates when rounding."""
    builder = stock.InterpreterBuilder
    numpy_dtype, cast, cast_float = stock._get_np_dtype, builder.cast_impl, builder.create_fp_to_fp

    known: dict[str, np.dtype] = {}

    def get_np_dtype(dtype):
        name = (dtype.element_ty if isinstance(dtype, tl.block_type) else dtype).name
        if name not in known:
            known[name] = BFLOAT16 if name == "bf16" else numpy_dtype(dtype)
        return known[name]

    def round_to(self, source, dtype):
        return TensorHandle(source.data.astype(get_np_dtype(dtype)), dtype.scalar)

    def cast_impl(self, source, dtype):
        touches = tl.bfloat16 in (source.dtype.scalar, dtype.scalar)
        return (round_to if touches else cast)(self, source, dtype)

    def create_fp_to_fp(self, source, dtype, rounding_mode):
        pair = source.dtype.scalar, dtype.scalar
        if tl.bfloat16 in pair and min(t.primitive_bitwidth for t in pair) >= 16:
            return round_to(self, source, dtype)
        return cast_float(self, source, dtype, rounding_mode)

    def cast_any(self, source, dtype):
        return self.cast_impl(source, dtype)

    stock._get_np_dtype = get_np_dtype
    builder.cast_impl = cast_impl
    builder.create_fp_to_fp = create_fp_to_fp
    builder.get_all_ones_value = lambda self, type: TensorHandle(         # -1 is no uint8 to NumPy 2
        ~np.zeros(1, numpy_dtype(type)), type.scalar)
    builder.get_bf16 = lambda self, value: TensorHandle(np.array([value], BFLOAT16), tl.bfloat16)
    for name in ("si_to_fp", "ui_to_fp", "fp_to_si", "fp_to_ui", "fp_ext", "fp_trunc"):
        setattr(builder, f"create_{name}", cast_any)
    builder.create_int_cast = lambda self, source, dtype, signed: self.cast_impl(source, dtype)
    fix_memory(builder)


def fix_memory(builder):
    """Loads and stores: bounds, the sanitizer if it is on, bfloat16 as uint16 bits: the C++ code knows no ml_dtypes."""
    load, store = builder.create_masked_load, builder.create_masked_store
    update, swap = builder.create_atomic_rmw, builder.create_atomic_cas

    def bits(handle):
        return TensorHandle(handle.data.view(np.uint16), tl.uint16)

    def create_masked_load(self, pointers, mask, other, *rest, **named):
        check_bounds("load", pointers, mask.data)
        if watch is not None:
            watch.load(*elements(pointers, mask.data))
        if pointers.get_element_ty() != tl.bfloat16:
            return load(self, pointers, mask, other, *rest, **named)
        as_bits = TensorHandle(pointers.data, tl.pointer_type(tl.uint16))
        loaded = load(self, as_bits, mask, other if other is None else bits(other), *rest, **named)
        return TensorHandle(loaded.data.view(BFLOAT16), tl.bfloat16)

    def create_masked_store(self, pointers, value, mask, *rest, **named):
        check_bounds("store", pointers, mask.data)
        if value.data.dtype == BFLOAT16:
            value = bits(value)
        if watch is not None:
            watch.store(*elements(pointers, mask.data), value.data)
        return store(self, pointers, value, mask, *rest, **named)

    def create_atomic_rmw(self, operation, pointers, value, mask, order, *rest):
        check_bounds("atomic", pointers, mask.data)
        if watch is not None:
            watch.atomic(*elements(pointers, mask.data), order.name)
        before = update(self, operation, pointers, value, mask, order, *rest)
        pass_on(self, pointers, mask, before)
        return before

    def create_atomic_cas(self, pointers, expected, value, order, *rest):
        check_bounds("atomic", pointers, np.True_)
        if watch is not None:
            watch.atomic(*elements(pointers, np.True_), order.name)
        before = swap(self, pointers, expected, value, order, *rest)
        pass_on(self, pointers, TensorHandle(np.ones_like(pointers.data, bool), tl.int1), before)
        return before

    def pass_on(self, pointers, mask, before):
        if turns is not None:
            now = stock._interpreter.load(pointers.data, mask.data, before.data, before.data.dtype)
            turns.pass_on(changed=bool((now != before.data).any()))

    def create_barrier(self):
        if watch is not None:
            watch.barrier()

    builder.create_masked_load, builder.create_masked_store = create_masked_load, create_masked_store
    builder.create_atomic_rmw, builder.create_atomic_cas = create_atomic_rmw, create_atomic_cas
    builder.create_barrier = create_barrier


spans: list[tuple[int, int]] = []  # first and end address of the memory of the running launch's arguments


def check_bounds(action, pointers, mask):
    """Raises IndexError if an address that is not masked lies outside living memory; a GPU would go there."""
    addresses, mask = pointers.data, np.asarray(mask)       # the buffer of an array where 3.6 loads by descriptor
    if not mask.all():
        addresses = addresses[np.broadcast_to(mask, addresses.shape)]
        if not addresses.size:
            return
    size = bytes_of_element(pointers)
    first, end = int(addresses.min()), int(addresses.max()) + size
    if not any(a <= first and end <= b for a, b in spans):
        check_blocks(action, addresses, size)


def bytes_of_element(pointers) -> int:
    """Of what the pointers point to."""
    return max(pointers.get_element_ty().primitive_bitwidth // 8, 1)


def elements(pointers, mask):
    """What the sanitizer asks about an access: addresses, which of them are not masked, and bytes of an element."""
    return pointers.data, np.asarray(mask), bytes_of_element(pointers)


def check_blocks(action, addresses, size):
    """The slow half: addresses of several blocks at once (tables of pointers), and the error."""
    starts = np.array(sorted(HostMemory.live), np.uint64)
    ends = np.array([int(a) + HostMemory.live[int(a)] for a in starts], np.uint64)
    block = np.searchsorted(starts, addresses, "right") - 1
    wrong = (block < 0) | (addresses + np.uint64(size) > ends[block])
    if wrong.any():
        address, i = int(addresses[wrong][0]), int(block[wrong][0])
        raise IndexError(
            f"{overhang}: {action} of {size} bytes out of bounds: {int(wrong.sum())} of {addresses.size} addresses, "
            f"the first {address - int(ends[i])} bytes behind the end of a block of {HostMemory.live[int(starts[i])]}"
        )


@functools.cache
def scalar_type(name):
    """Triton's type of a name such as "fp32" or "*i64"."""
    return tl.str_to_ty(name, None)


def int_type(value):
    """The type in which Triton passes a Python int."""
    if -(2**31) <= value < 2**31:
        return "i32"
    return "i64" if value < 2**63 else "u64"


def scalar(value, annotation=None):
    """A Python number as the kernel sees it on a GPU."""
    if type(value) is float:
        name = annotation or "fp32"
        data = np.array([value], np.float64 if name == "fp64" else np.float32)
    elif type(value) is bool:
        name, data = "i1", np.array([value])
    else:
        name = annotation or int_type(value)
        data = np.array([value], INT_TYPES[name])
    dtype = scalar_type(name)
    return tl.tensor(TensorHandle(data, dtype.scalar), dtype)


def argument(value, annotation=None):
    """An argument as the interpreted function takes it."""
    kind = type(value)
    if kind is DeviceArray:
        dtype = scalar_type("*" + POINTER_NAMES[value.dtype.name])
        memory = value.owner
        spans.append((memory.pointer, memory.pointer + memory.nbytes))
        return tl.tensor(TensorHandle(np.array([value.pointer], np.uint64), dtype), dtype)
    if kind is int or kind is float or kind is bool:
        return scalar(value, annotation)
    if kind is tuple:
        return tuple(argument(v) for v in value)
    return value


@functools.cache
def annotations(fn) -> dict[str, str]:
    """The scalar types that a kernel's function fixes: parameter -> "fp64", "i64" ..."""
    notes = inspect.get_annotations(fn)
    return {name: note for name, note in notes.items() if isinstance(note, str) and note in SCALARS}


def launch(kernel, grid, arguments, constexprs, threads=128, together=False):
    """Runs every program of the grid, one after the other; `together` if they wait for each other.

    `threads` run a program on a GPU: what the sanitizer wants to know.
    """
    global overhang, watch, turns
    with lock:
        install()
        function, notes = rewritten(kernel.fn), annotations(kernel.fn)
        spans.clear()
        values = {n: argument(a, notes.get(n)) for n, a in arguments.items()}
        builder = stock.interpreter_builder
        builder.set_grid_dim(*grid)
        before, overhang = overhang, kernel.fn.__name__
        programs = list(itertools.product(*map(range, grid)))
        if mode.sanitizing:
            from zoo.ops.cuda.sanitizer import Launch

            watch = Launch(overhang, programs, threads, spans)

        def resume(k):
            builder.grid_idx = programs[k]
            if watch is not None:
                watch.program = k

        def run(k):
            resume(k)
            function(**values, **constexprs)

        try:
            if together and len(programs) > 1:
                turns = Turns(run, resume, len(programs))
                turns.play()
            else:
                with np.errstate(all="ignore"):
                    for k in range(len(programs)):
                        run(k)
        finally:
            overhang, watch, turns = before, None, None
