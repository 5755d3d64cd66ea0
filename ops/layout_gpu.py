"""How kernels see an array that is worked along some dimensions: kept and reduced ones, each as at most two strides."""
from typing import NamedTuple

from zoo.ops.cuda import DeviceArray
from zoo.ops.pointwise_gpu import contiguous_copy

EDGE = 2**31 - 2**13            # what 32 bits count to, and a block more

class Layout(NamedTuple):
    """Element (k, r) lies at (k // k1) * sk0 + (k % k1) * sk1 + (r // r1) * sr0 + (r % r1) * sr1."""
    x: DeviceArray
    k: int                  # how many kept elements, in the order of the result
    k1: int
    sk0: int
    sk1: int
    r: int                  # how many elements are reduced to one
    r1: int
    sr0: int
    sr1: int

    @property
    def numbers(self) -> tuple[int, ...]:
        return self[1:]

    @property
    def wide(self) -> bool:
        """Do offsets need 64 bits?"""
        kept = self.k // self.k1 * abs(self.sk0) + self.k1 * abs(self.sk1)
        span = kept + self.r // self.r1 * abs(self.sr0) + self.r1 * abs(self.sr1)
        return max(span, self.k, self.r) >= EDGE


def merged(x: DeviceArray, dims: tuple[int, ...]) -> list[tuple[int, int]]:
    """`dims` of x as few (size, stride) pairs as their strides allow, outermost first."""
    found: list[tuple[int, int]] = []
    for d in dims:
        n, s = x.shape[d], x.strides[d]
        if n == 1:
            continue
        if found and found[-1][1] == s * n:
            found[-1] = found[-1][0] * n, s
        else:
            found.append((n, s))
    return found


def two(groups: list[tuple[int, int]]) -> tuple[int, int, int, int]:
    """(elements, inner size, outer stride, inner stride) of at most two groups."""
    if not groups:
        return 1, 1, 0, 0
    if len(groups) == 1:
        n, s = groups[0]
        return n, n, 0, s
    (n0, s0), (n1, s1) = groups
    return n0 * n1, n1, s0, s1


def layout(x: DeviceArray, dims: tuple[int, ...]) -> Layout:
    """x as (kept, reduced); copied only if either needs more than two strides. x has no dimension of size 0."""
    rest = tuple(i for i in range(x.ndim) if i not in dims)
    kept, reduced = merged(x, rest), merged(x, dims)
    if len(kept) > 2 or len(reduced) > 2:
        order = (*rest, *dims)
        y = x.view(tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order))
        y = contiguous_copy(y)
        kept = merged(y, tuple(range(len(rest))))
        reduced = merged(y, tuple(range(len(rest), x.ndim)))
        x = y
    return Layout(x, *two(kept), *two(reduced))


def power_of_two(n: int) -> int:
    """The smallest one that is not below n."""
    return 1 << max(n - 1, 0).bit_length()
