"""Pixel numbers in kernels: taken apart by multiply-high instead of division, and compared with an image's borders."""
import triton
import triton.language as tl


@triton.jit
def divide(n, mul, shift):
    """n // d for 0 <= n < 2**31, with d's magic numbers (see `magic`)."""
    u = n.to(tl.uint32)
    return ((tl.umulhi(u, mul.to(tl.uint32, bitcast=True) + tl.zeros_like(u)) + u) >> shift.to(tl.uint32)).to(tl.int32)


@triton.jit
def pixel(i, P, Q, mul_pq, shift_pq, mul_q, shift_q):
    """Image, row and column of pixel number i."""
    n = divide(i, mul_pq, shift_pq)
    rest = i - n * (P * Q)
    p = divide(rest, mul_q, shift_q)
    return n, p, rest - p * Q


@triton.jit
def within(i, size):
    """0 <= i < size in one comparison."""
    return i.to(tl.uint32, bitcast=True) < size.to(tl.uint32)


def magic(d: int) -> tuple[int, int]:
    """(mul, shift) for `divide`: exact for all 0 <= n < 2**31 (Granlund and Montgomery, round-up method)."""
    shift = max(0, (d - 1).bit_length())
    mul = ((1 << 32) * ((1 << shift) - d)) // d + 1
    return mul - (1 << 32) if mul >= 1 << 31 else mul, shift
