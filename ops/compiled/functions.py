"""The exponential of a vector (vector.py), and one number of all its lanes.

    first(a, n)                   a in the lanes below n, 0 in the others
    sum_of(a), product_of(a), largest_of(a)      of all lanes: halves with halves
    exp(a)                        e^a
"""
from llvmlite import ir  # pyright: ignore[reportMissingImports]
from numba.core import types  # pyright: ignore[reportMissingImports]
from numba.extending import intrinsic, register_jitable  # pyright: ignore[reportMissingImports]

from zoo.ops.compiled.vector import (
    FLOATS,
    INT32,
    INTS,
    LANES,
    chosen,
    constant,
    fma,
    llvm_function,
    mask_of,
    splat,
    vector,
)

ROUNDER = 1.5 * 2 ** 23           # a float32 + ROUNDER is a whole number, and its last bits are that number's


@intrinsic
def first(typing, a, count):
    def generate(context, builder, signature, args):
        count = context.cast(builder, args[1], signature.args[1], types.int64)
        return builder.select(mask_of(builder, count), args[0], constant(0.0))
    return vector(vector, count), generate


def across(combine):
    """The code generator of one number of all lanes: combine(builder, a, b) of halves, until one lane is left."""
    def generate(context, builder, signature, args):
        a = args[0]
        for width in (8, 4, 2, 1):
            order = ir.Constant(INTS, [(k + width) % LANES for k in range(LANES)])
            a = combine(builder, a, builder.shuffle_vector(a, ir.Constant(FLOATS, ir.Undefined), order))
        return builder.extract_element(a, INT32(0))
    return types.float32(vector), generate


@intrinsic
def sum_of(typing, a):
    return across(lambda builder, a, b: builder.fadd(a, b))


@intrinsic
def product_of(typing, a):
    return across(lambda builder, a, b: builder.fmul(a, b))


@intrinsic
def largest_of(typing, a):
    def combine(builder, a, b):
        return builder.call(llvm_function(builder, "llvm.maximum.v16f32", FLOATS, [FLOATS] * 2), [a, b])
    return across(combine)


@intrinsic
def power_of_two(typing, a):
    """2^n of a = n + ROUNDER, whose last bits are n: 0 for n = -127, infinite for n = 128; n is not beyond these."""
    def generate(context, builder, signature, args):
        exponent = builder.shl(builder.bitcast(args[0], INTS), ir.Constant(INTS, [23] * LANES))
        return builder.bitcast(builder.add(exponent, ir.Constant(INTS, [127 << 23] * LANES)), FLOATS)
    return vector(vector), generate


@register_jitable
def exp(x):
    """e^x within 1 unit in the last place; 0 below -87.68, where float32 has no 24 digits left, infinite from 88.37.

    x = n log(2) + r gives 2^n e^r; the polynomial of r is a least weighted error's, 4e-9 before rounding.
    """
    x = chosen(splat(89.0), x, splat(89.0), x)             # NaN stays
    x = chosen(x, splat(-88.0), splat(-88.0), x)
    t = fma(x, splat(1.4426950408889634), splat(ROUNDER))
    n = t - splat(ROUNDER)
    r = fma(n, splat(2.12194440e-4), fma(n, splat(-0.693359375), x))        # log(2) in two parts, n times one is exact
    p = fma(splat(0.00138143205), r, splat(0.00836885107))
    p = fma(p, r, splat(0.0416684011))
    p = fma(p, r, splat(0.166665195))
    p = fma(p, r, splat(0.499999934))
    return (fma(p, r * r, r) + splat(1.0)) * power_of_two(t)
