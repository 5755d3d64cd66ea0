"""Random tensors with torch's names, drawn from a Generator: a seed and a count of draws, the same on every device."""
import os
from typing import Any

import numpy as np

from zoo.autograd.creation import dtype_of, leaf, place, shape_of
from zoo.autograd.inplace import copy_, may_write
from zoo.autograd.tensor import Tensor, wrap
from zoo.ops import random as draws
from zoo.ops.device import device as device_class
from zoo.ops.dtypes import FLOATS, INTS, bool_, default_dtype, float32, float64, int64
from zoo.ops.errors import ArgumentError, DtypeError


class Generator:
    """A stream of random numbers: `seed` is the Philox key, `offset` how many draws were made.

    Example:
        >>> import zoo
        >>> g = zoo.Generator().manual_seed(3)
        >>> bool((zoo.rand(4, generator=g) == zoo.rand(4, generator=zoo.Generator().manual_seed(3))).all())
        True
    """

    def __init__(self, device: Any = "cpu"):
        self.device = device_class(device)
        self._seed, self._offset = 67280421310721, 0       # torch's default seed

    def manual_seed(self, seed: int) -> "Generator":
        """Starts the stream of `seed` anew; any integer of 64 bits."""
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise TypeError(f"manual_seed: wants an integer, got {seed!r}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ArgumentError(f"manual_seed: wants an integer of 64 bits, got {seed}")
        self._seed, self._offset = int(seed), 0
        return self

    def seed(self) -> int:
        """Starts the stream of a seed from the operating system, and returns it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed of this stream."""
        return self._seed

    def get_state(self) -> Tensor:
        """(seed, offset) as 16 bytes."""
        return wrap(np.array([self.key, self._offset], np.int64).view(np.uint8).copy())

    def set_state(self, state: Tensor) -> None:
        """Continues where `get_state` was called."""
        if state.dtype != np.uint8 or state.shape != (16,):
            raise ArgumentError(f"set_state: wants 16 bytes from get_state, got {state.dtype} of shape {state.shape}")
        self._seed, self._offset = map(int, state.array.view(np.int64))

    def get_offset(self) -> int:
        """How many draws were made."""
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Goes on as after `offset` draws."""
        self._offset = int(offset)

    @property
    def key(self) -> int:
        """The seed as a signed 64-bit number, which is what kernels take."""
        return (self._seed & (1 << 64) - 1) - (self._seed >> 63 & 1) * (1 << 64)

    def draw(self) -> tuple[int, int]:
        """(seed, offset) of the next draw."""
        self._offset += 1
        return self.key, self._offset - 1


default_generator = Generator()
draws.CAPTURED.append(default_generator)


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator: the same numbers follow, on the CPU and on every GPU."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seeds the default generator from the operating system."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the default generator's state."""
    default_generator.set_state(new_state)


def next_draw(generator: Generator | None) -> tuple[int, int]:
    return (default_generator if generator is None else generator).draw()


def float_dtype(name: str, dtype) -> np.dtype:
    dtype = default_dtype() if dtype is None else dtype_of(name, dtype)
    draws.need_float_dtype(name, dtype)
    return dtype


def rand(*size, generator=None, dtype=None, device=None, requires_grad: bool = False, out=None) -> Tensor:
    """Uniform in [0, 1).

    Raises:
        DtypeError: dtype is not floating. ShapeError: a negative size.
    """
    made = draws.uniform(shape_of("rand", size), float_dtype("rand", dtype), place(device), *next_draw(generator))
    return leaf(made, requires_grad) if out is None else copy_(out, wrap(made))


def randn(*size, generator=None, dtype=None, device=None, requires_grad: bool = False, out=None) -> Tensor:
    """Standard normal.

    Raises:
        DtypeError: dtype is not floating. ShapeError: a negative size.
    """
    made = draws.normal(shape_of("randn", size), float_dtype("randn", dtype), place(device), *next_draw(generator))
    return leaf(made, requires_grad) if out is None else copy_(out, wrap(made))


def randint(
    low: int, high=None, size=None, *, generator=None, dtype=None, device=None, requires_grad: bool = False, out=None
) -> Tensor:
    """Integers in [low, high); `randint(high, size)` begins at 0.

    Raises:
        ArgumentError: high is not above low.
    """
    if size is None or not isinstance(high, (int, np.integer)):
        low, high, size = 0, low, high if size is None else size
    if high <= low:
        raise ArgumentError(f"randint: wants low < high, got {low} and {high}")
    dtype = int64 if dtype is None else dtype_of("randint", dtype)
    drawn = int64 if dtype in FLOATS or dtype == bool_ else dtype
    made = wrap(
        draws.integers(int(low), int(high), shape_of("randint", (size,)), drawn, place(device), *next_draw(generator))
    )
    made = made if drawn == dtype else made.to(dtype)
    return leaf(made.array, requires_grad) if out is None else copy_(out, made)


def randperm(n: int, *, generator=None, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """A random order of 0 ... n - 1: the sorting permutation of n random 62-bit integers."""
    from zoo.ops.sort import sort
    if n < 0:
        raise ArgumentError(f"randperm: wants n of at least 0, got {n}")
    keys = wrap(draws.integers(0, 1 << 62, (n,), int64, place(device), *next_draw(generator)))
    order = sort(keys, 0, False, True)[1]
    return leaf(order.to(int64 if dtype is None else dtype_of("randperm", dtype)).array, requires_grad)


def like(function):
    def method(input, *, dtype=None, device=None, requires_grad=False, generator=None, memory_format=None) -> Tensor:  # noqa: A002
        return function(*input.shape, generator=generator, dtype=input.dtype if dtype is None else dtype,
                        device=input.device if device is None else device, requires_grad=requires_grad)
    method.__name__ = method.__qualname__ = f"{function.__name__}_like"
    method.__doc__ = f"`{function.__name__}` with input's shape, dtype and device."
    return method


rand_like, randn_like = like(rand), like(randn)


def randint_like(input: Tensor, low: int, high=None, *, dtype=None, device=None, requires_grad: bool = False,  # noqa: A002
                 generator=None, memory_format=None) -> Tensor:
    """`randint` with input's shape, dtype and device."""
    low, high = (0, low) if high is None else (low, high)
    return randint(int(low), int(high), input.shape, dtype=input.dtype if dtype is None else dtype, generator=generator,
                   device=input.device if device is None else device, requires_grad=requires_grad)


def normal(mean, std=1.0, size=None, *, generator=None, dtype=None, device=None, out=None) -> Tensor:
    """Normal with the given mean and standard deviation (tensors or numbers), or of a given `size`."""
    shaped = mean if isinstance(mean, Tensor) else std if isinstance(std, Tensor) else None
    if isinstance(std, (int, float)) and std < 0:
        raise ArgumentError(f"normal: wants std of at least 0, got {std}")
    if shaped is None:
        base = randn(*shape_of("normal", (size,)), generator=generator, dtype=dtype, device=device)
    else:
        shape = np.broadcast_shapes(getattr(mean, "shape", ()), getattr(std, "shape", ()))
        base = randn(*shape, generator=generator, dtype=shaped.dtype, device=shaped.device)
    made = (base * std + mean).detach()
    return made if out is None else copy_(out, made)


def bernoulli(input: Tensor, p: float | None = None, *, generator=None, out=None) -> Tensor:  # noqa: A002
    """1 with probability `input` (or p), else 0; input's shape and dtype.

    Raises:
        ArgumentError: a probability outside of [0, 1].
    """
    if p is None:
        if input.dtype not in FLOATS:
            raise DtypeError(f"bernoulli: wants floating probabilities, got {input.dtype}")
        if input.array.size and not bool(((input >= 0) & (input <= 1)).all()):
            raise ArgumentError("bernoulli: wants probabilities in [0, 1]")
    wide = float64 if input.dtype == float64 else float32
    u = rand(*input.shape, generator=generator, dtype=wide, device=input.device)
    made = (u < (input.detach() if p is None else p)).to(input.dtype)
    if p is None and input.requires_grad:
        made = made + input * 0                            # as in torch: the gradient is zero, not missing
    return made if out is None else copy_(out, made)


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator=None, out=None) -> Tensor:  # noqa: A002
    """num_samples indices per row of `input` (weights, (C,) or (N, C)), as int64.

    With replacement by inverting the cumulative sum; without as the top `num_samples` of weight / exponential noise.

    Raises:
        ArgumentError: wrong dims, negative weights, or more samples than categories.
    """
    if input.ndim not in (1, 2) or input.dtype not in FLOATS:
        raise ArgumentError(
            f"multinomial: wants floating weights of shape (C,) or (N, C), got {input.dtype} {input.shape}"
        )
    if num_samples <= 0 or not replacement and num_samples > input.shape[-1]:
        raise ArgumentError(
            f"multinomial: cannot draw {num_samples} samples from {input.shape[-1]} categories without replacement"
        )
    if not bool(((input >= 0) & (input < float("inf"))).all()) or not bool((input.sum(-1) > 0).all()):
        raise ArgumentError("multinomial: wants finite weights of at least 0 with a positive sum")
    if out is not None:
        if out.dtype != int64:
            raise DtypeError(f"multinomial: wants an int64 out, got {out.dtype}")
        return copy_(out, multinomial(input, num_samples, replacement, generator=generator))
    weights = input.detach().to(float64)
    if not replacement:
        u = rand(*input.shape, generator=generator, dtype=float64, device=input.device)
        return (weights / -(1 - u).log()).topk(num_samples, -1)[1]
    edges = weights.cumsum(-1)
    u = rand(*input.shape[:-1], num_samples, generator=generator, dtype=float64, device=input.device) * edges[..., -1:]
    found = (u.unsqueeze(-1) >= edges.unsqueeze(-2)).sum(-1)
    return found.clamp(max=input.shape[-1] - 1)


# --- in place -------------------------------------------------------------------------------------
def fresh(self: Tensor, name: str, function, generator) -> Tensor:
    """Random numbers of self's shape and device, in self's dtype if that is floating, else in float32."""
    may_write(self, name)
    return function(
        *self.shape, generator=generator, dtype=self.dtype if self.dtype in FLOATS else float32, device=self.device
    )


def need_float(self: Tensor, name: str) -> None:
    if self.dtype not in FLOATS:
        raise DtypeError(f"{name}: wants a floating tensor, got {self.dtype}")


def uniform_(self: Tensor, a: float = 0.0, b: float = 1.0, generator=None, **named) -> Tensor:
    """Uniform in [a, b)."""
    a, b = named.get("from", a), named.get("to", b)
    need_float(self, "uniform_")
    if b < a:
        raise ArgumentError(f"uniform_: wants from <= to, got {a} and {b}")
    u = fresh(self, "uniform_", rand, generator)
    return copy_(self, u if (a, b) == (0.0, 1.0) else u * (b - a) + a)


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator=None) -> Tensor:
    """Normal with the given mean and standard deviation."""
    need_float(self, "normal_")
    if std < 0:
        raise ArgumentError(f"normal_: wants std of at least 0, got {std}")
    z = fresh(self, "normal_", randn, generator)
    return copy_(self, z if (mean, std) == (0.0, 1.0) else z * std + mean)


def random_(self: Tensor, low: int = 0, high: int | None = None, *, generator=None) -> Tensor:
    """Integers in [low, high), by default all that the dtype holds exactly."""
    if high is None:
        limit = {np.dtype(np.float16): 2049, float32: (1 << 24) + 1, float64: (1 << 53) + 1, bool_: 2}
        most = np.iinfo(self.dtype).max if self.dtype in INTS else limit.get(self.dtype, 257) - 1
        low, high = (0, most if self.dtype == int64 else most + 1) if low == 0 else (0, low)
    may_write(self, "random_")
    return copy_(self, randint(low, high, self.shape, generator=generator, device=self.device).to(self.dtype))


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator=None) -> Tensor:
    """1 with probability p (a number or a tensor), else 0."""
    if not isinstance(p, Tensor) and not 0 <= p <= 1:
        raise ArgumentError(f"bernoulli_: wants p in [0, 1], got {p}")
    return copy_(self, (fresh(self, "bernoulli_", rand, generator) < p).to(self.dtype))


def exponential_(self: Tensor, lambd: float = 1.0, *, generator=None) -> Tensor:
    """Exponential: -log(1 - u) / lambd."""
    need_float(self, "exponential_")
    if lambd <= 0:
        raise ArgumentError(f"exponential_: wants lambd > 0, got {lambd}")
    return copy_(self, -(1 - fresh(self, "exponential_", rand, generator)).log() / lambd)


def geometric_(self: Tensor, p: float, *, generator=None) -> Tensor:
    """Geometric: ceil(log(1 - u) / log(1 - p)), at least 1."""
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_: wants p in (0, 1), got {p}")
    u = fresh(self, "geometric_", rand, generator)
    return copy_(self, ((1 - u).log() / float(np.log1p(-p))).ceil().clamp(min=1).to(self.dtype))


def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator=None) -> Tensor:
    """Cauchy: median + sigma tan(pi (u - 1/2))."""
    need_float(self, "cauchy_")
    if sigma <= 0:
        raise ArgumentError(f"cauchy_: wants sigma > 0, got {sigma}")
    return copy_(self, ((fresh(self, "cauchy_", rand, generator) - 0.5) * float(np.pi)).tan() * sigma + median)


def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator=None) -> Tensor:
    """exp of a normal with the given mean and standard deviation."""
    need_float(self, "log_normal_")
    if std <= 0:
        raise ArgumentError(f"log_normal_: wants std > 0, got {std}")
    return copy_(self, (fresh(self, "log_normal_", randn, generator) * std + mean).exp())


METHODS = {
    f.__name__: f
    for f in (
        uniform_,
        normal_,
        random_,
        bernoulli_,
        exponential_,
        geometric_,
        cauchy_,
        log_normal_,
        bernoulli,
        multinomial,
    )
}
FUNCTIONS = {
    f.__name__: f
    for f in (
        manual_seed,
        seed,
        initial_seed,
        get_rng_state,
        set_rng_state,
        rand,
        randn,
        randint,
        randperm,
        rand_like,
        randn_like,
        randint_like,
        normal,
        bernoulli,
        multinomial,
        Generator,
    )
}
