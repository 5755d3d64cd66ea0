"""vmap: a function of one sample as a function of a batch."""
from collections.abc import Callable
from functools import wraps
from typing import Any

from zoo.autograd.random import default_generator
from zoo.autograd.tensor import Tensor
from zoo.func.tree import along, leaves, rebuilt
from zoo.ops.errors import ArgumentError, DimError
from zoo.ops.face.join import stack

RANDOMNESS = "error", "different", "same"


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable:
    """A function that runs func on each sample of a batch, and stacks what it gives.

    Here func runs once for each sample, one after another: results, gradients and nesting are torch's, and func may
    look at values (`if x > 0`, `x.item()`), which torch's may not; but nothing is worked out for all samples at once.
    Per-sample gradients so cost a forward and a backward pass for each sample.

    Args:
        func: takes tensors, or nested dicts, lists and tuples of them; gives a tensor, or such a tree.
        in_dims: which dimension of each argument counts the samples: a number, or a tuple with one for each argument,
            in which None stands for an argument that all samples get whole. For a tree, one number or a tree of them.
        out_dims: where that dimension lies in the outputs; None for an output that is the same for all samples.
        randomness: what random functions may do: "error", "different" numbers for each sample, or the "same".
        chunk_size: has no effect but for the check that it is above 0: samples run one by one.

    Raises:
        ValueError: in_dims or out_dims that do not fit, sizes that differ, or an output that is no tensor.
        ArgumentError (ValueError, RuntimeError): func drew random numbers with randomness="error".

    Example:
        >>> import zoo
        >>> zoo.vmap(zoo.dot)(zoo.tensor([[1.0, 2.0], [3.0, 4.0]]), zoo.ones(2, 2))
        tensor([3., 7.])
        >>> slopes = zoo.vmap(zoo.func.grad(lambda w, x: (w * x) ** 2), in_dims=(None, 0))
        >>> slopes(zoo.tensor(3.0), zoo.tensor([1.0, 2.0]))
        tensor([ 6., 24.])
    """
    if randomness not in RANDOMNESS:
        raise ArgumentError(f"vmap: wants randomness to be one of {RANDOMNESS}, got {randomness!r}")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: wants chunk_size to be None or above 0, got {chunk_size}")

    @wraps(func)
    def call(*args: Any, **options: Any) -> Any:
        dims, values = along(in_dims_of(in_dims, args), args, "in_dims"), leaves(args)
        count = samples(values, dims)
        if not count:                    # the form of the output is that of a sample of zeros
            values = [x if d is None else zeros_of_one(x, d) for x, d in zip(values, dims, strict=True)]
        runs = []
        start = default_generator.get_offset()
        for k in range(count or 1):
            if randomness == "same":
                default_generator.set_offset(start)
            mine = [x if d is None else x.select(d, k) for x, d in zip(values, dims, strict=True)]
            runs.append(func(*rebuilt(args, iter(mine)), **options))
            if randomness == "error" and default_generator.get_offset() != start:
                raise ArgumentError('vmap: func drew random numbers; say randomness="different" or "same"')
        return stacked(runs, out_dims, count)
    return call


def in_dims_of(in_dims: Any, args: tuple) -> Any:
    """in_dims as a tree, or one number for all; raises where there is nothing to run over."""
    if not args:
        raise ValueError("vmap: got no inputs")
    if isinstance(in_dims, bool) or not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(f"vmap: wants in_dims to be an int or a tuple as the inputs are, got {in_dims!r}")
    return in_dims if isinstance(in_dims, int) else tuple(in_dims)


def samples(values: list, dims: list) -> int:
    """How many samples the batch has; raises if the inputs do not agree."""
    sizes = []
    for x, d in zip(values, dims, strict=True):
        if d is None:
            continue
        if not isinstance(d, int) or not isinstance(x, Tensor):
            raise ValueError(f"vmap: got in_dim={d!r} for an input of type {type(x).__name__}; use None for it")
        if not -x.ndim <= d < x.ndim:
            raise ValueError(f"vmap: got in_dim={d} for an input of shape {x.shape}")
        sizes.append(x.shape[d])
    if not sizes:
        raise ValueError("vmap: at least one input must have an in_dim that is not None")
    if len(set(sizes)) > 1:
        raise ValueError(f"vmap: wants one size in the mapped dimension, got {sizes}")
    return sizes[0]


def zeros_of_one(x: Tensor, dim: int) -> Tensor:
    """Zeros of x's shape with a single sample."""
    shape = list(x.shape)
    shape[dim] = 1
    return x.new_zeros(shape)


def stacked(runs: list, out_dims: Any, count: int) -> Any:
    """The outputs of all runs, each joined along its dimension; count may be 0, for which one run stands."""
    where = along(out_dims, runs[0], "out_dims")
    columns = list(zip(*map(leaves, runs), strict=True))
    found = []
    for dim, column in zip(where, columns, strict=True):
        if dim is None:
            found.append(column[0])
            continue
        for y in column:
            if not isinstance(y, Tensor):
                raise ValueError(f"vmap: func must give tensors, got {type(y).__name__} (with out_dims=None it may)")
        if not -column[0].ndim - 1 <= dim <= column[0].ndim:
            raise DimError(f"vmap: wants out_dims in [{-column[0].ndim - 1}, {column[0].ndim}], got {dim}")
        y = stack(column, dim)
        found.append(y if count else y.narrow(dim, 0, 0))
    return rebuilt(runs[0], iter(found))
