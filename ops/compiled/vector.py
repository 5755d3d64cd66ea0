"""Vectors of 16 float32 inside Numba's functions: what they load, compute and store is what is written here.

Numba's own vectoriser gives up on loops over more than a few arrays, whose memory might overlap, and sums in another
order on every processor. A `vector` is LLVM's <16 x float>: one register of AVX-512, two of AVX, four of SSE or NEON,
and the same order of sums on all of them. Arrays are flat memory, their last dimension without gaps, and indices are
not checked: callers answer for both.

    load(a, i, n), store(a, i, v, n)    elements i .. i + n - 1 of the array's memory, n <= 16; other lanes are 0
    store_bytes(a, i, v, n)             the same into an array of uint8
    prefetch(a, i)                      into the cache
    splat(s)                            s in all lanes
    a + b, a - b, a * b, a / b, fma(a, b, c)     fma is a * b + c, rounded once where the processor has it
    largest(a, b), smallest(a, b), sqrt(a)       NaN if either is NaN
    chosen(a, b, c, d)                  c where a <= b, else d, also where one is NaN
    stride(a, d)                        elements from one index of dimension d to the next
"""
import operator

from llvmlite import ir  # pyright: ignore[reportMissingImports]
from numba.core import types  # pyright: ignore[reportMissingImports]
from numba.extending import (  # pyright: ignore[reportMissingImports]
    intrinsic,
    models,
    overload,
    register_jitable,
    register_model,
)

LANES = 16
FLOAT, INT32, INDEX = ir.FloatType(), ir.IntType(32), ir.IntType(64)
BYTES = ir.IntType(8).as_pointer()
FLOATS, INTS, BITS = (ir.VectorType(t, LANES) for t in (FLOAT, INT32, ir.IntType(1)))


class VectorType(types.Type):
    def __init__(self):
        super().__init__(name="float32x16")


vector = VectorType()


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, FLOATS)


def constant(value: float):
    return ir.Constant(FLOATS, [value] * LANES)


def address(context, builder, array_type, array, index):
    """The pointer to element `index` of the array's memory."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def mask_of(builder, count):
    """The lanes below count: all of them, known to the compiler, where count is 16 in the source."""
    narrow = builder.trunc(count, INT32)
    wide = builder.insert_element(ir.Constant(INTS, ir.Undefined), narrow, INT32(0))
    wide = builder.shuffle_vector(wide, ir.Constant(INTS, ir.Undefined), ir.Constant(INTS, [0] * LANES))
    return builder.icmp_signed("<", ir.Constant(INTS, list(range(LANES))), wide)


def llvm_function(builder, name: str, result, arguments):
    kind = ir.FunctionType(result, arguments)
    return builder.module.globals.get(name) or ir.Function(builder.module, kind, name)


@register_jitable
def stride(a, d):
    return a.strides[d] // a.itemsize


@intrinsic
def load(typing, array, index, count):
    def generate(context, builder, signature, args):
        index, count = (context.cast(builder, args[k], signature.args[k], types.int64) for k in (1, 2))
        pointer = builder.bitcast(address(context, builder, signature.args[0], args[0], index), FLOATS.as_pointer())
        kind = [FLOATS.as_pointer(), INT32, BITS, FLOATS]
        function = llvm_function(builder, "llvm.masked.load.v16f32.p0", FLOATS, kind)
        return builder.call(function, [pointer, INT32(4), mask_of(builder, count), constant(0.0)])
    return vector(array, index, count), generate


@intrinsic
def prefetch(typing, array, index):
    """Asks for the cache line of an element; also beyond the array."""
    def generate(context, builder, signature, args):
        index = context.cast(builder, args[1], signature.args[1], types.int64)
        pointer = builder.bitcast(address(context, builder, signature.args[0], args[0], index), BYTES)
        function = llvm_function(builder, "llvm.prefetch.p0", ir.VoidType(), [BYTES, INT32, INT32, INT32])
        builder.call(function, [pointer, INT32(0), INT32(3), INT32(1)])          # to be read, often, data
        return context.get_dummy_value()
    return types.none(array, index), generate


@intrinsic
def store(typing, array, index, value, count):
    def generate(context, builder, signature, args):
        index, count = (context.cast(builder, args[k], signature.args[k], types.int64) for k in (1, 3))
        pointer = builder.bitcast(address(context, builder, signature.args[0], args[0], index), FLOATS.as_pointer())
        kind = [FLOATS, FLOATS.as_pointer(), INT32, BITS]
        function = llvm_function(builder, "llvm.masked.store.v16f32.p0", ir.VoidType(), kind)
        builder.call(function, [args[2], pointer, INT32(4), mask_of(builder, count)])
        return context.get_dummy_value()
    return types.none(array, index, vector, count), generate


@intrinsic
def store_bytes(typing, array, index, value, count):
    """Into an array of uint8."""
    def generate(context, builder, signature, args):
        index, count = (context.cast(builder, args[k], signature.args[k], types.int64) for k in (1, 3))
        short = ir.VectorType(ir.IntType(8), LANES)
        pointer = builder.bitcast(address(context, builder, signature.args[0], args[0], index), short.as_pointer())
        kind = [short, short.as_pointer(), INT32, BITS]
        function = llvm_function(builder, "llvm.masked.store.v16i8.p0", ir.VoidType(), kind)
        builder.call(function, [builder.fptoui(args[2], short), pointer, INT32(1), mask_of(builder, count)])
        return context.get_dummy_value()
    return types.none(array, index, vector, count), generate


@intrinsic
def splat(typing, value):
    def generate(context, builder, signature, args):
        number = context.cast(builder, args[0], signature.args[0], types.float32)
        first = builder.insert_element(ir.Constant(FLOATS, ir.Undefined), number, INT32(0))
        return builder.shuffle_vector(first, ir.Constant(FLOATS, ir.Undefined), ir.Constant(INTS, [0] * LANES))
    return vector(value), generate


def binary(name: str):
    """The intrinsic of an instruction of two vectors."""
    @intrinsic
    def instruction(typing, a, b):
        def generate(context, builder, signature, args):
            return getattr(builder, name)(*args)
        if a == b == vector:
            return vector(vector, vector), generate
    return instruction


def as_operator(symbol, name: str):
    instruction = binary(name)

    @overload(symbol)
    def rule(a, b):
        if a == b == vector:
            return lambda a, b: instruction(a, b)


as_operator(operator.add, "fadd")
as_operator(operator.sub, "fsub")
as_operator(operator.mul, "fmul")
as_operator(operator.truediv, "fdiv")


def of_llvm(name: str, count: int):
    """The code generator of one of LLVM's functions of `count` vectors."""
    def generate(context, builder, signature, args):
        return builder.call(llvm_function(builder, f"llvm.{name}.v16f32", FLOATS, [FLOATS] * count), args)
    return vector(*[vector] * count), generate


@intrinsic
def fma(typing, a, b, c):
    return of_llvm("fmuladd", 3)


@intrinsic
def sqrt(typing, a):
    return of_llvm("sqrt", 1)


@intrinsic
def largest(typing, a, b):
    return of_llvm("maximum", 2)


@intrinsic
def smallest(typing, a, b):
    return of_llvm("minimum", 2)


@intrinsic
def chosen(typing, a, b, c, d):
    def generate(context, builder, signature, args):
        a, b, c, d = args
        return builder.select(builder.fcmp_ordered("<=", a, b), c, d)
    return vector(vector, vector, vector, vector), generate
