"""Transforms of functions of tensors: vjp, jvp, jacobian, hessian, vhp, hvp (names of torch.autograd.functional)."""
from typing import Any

from zoo.autograd.creation import zeros, zeros_like
from zoo.autograd.tensor import Tensor, grad
from zoo.ops.errors import ShapeError


def leaves(inputs: Any) -> tuple[tuple, bool]:
    single = isinstance(inputs, Tensor)
    return tuple(x.detach().requires_grad_() for x in ((inputs,) if single else inputs)), single


def matching(name: str, vs: Any, ys: tuple) -> tuple:
    vs = (vs,) if isinstance(vs, Tensor) else tuple(vs)
    for v, y in zip(vs, ys, strict=True):
        if v.shape != y.shape:
            raise ShapeError(f"{name}: wants v of shape {y.shape}, got {v.shape}")
    return vs


def filled(grads: tuple, inputs: tuple) -> tuple:
    return tuple(zeros_like(x) if g is None else g for g, x in zip(grads, inputs, strict=True))


def pulled_back(ys: tuple, xs: tuple) -> tuple[tuple, tuple]:
    """(us, u^T J at each of xs), u = 0: recorded, so that what is linear in us can be differentiated by them."""
    us = tuple(zeros_like(y).detach().requires_grad_() for y in ys)
    return us, weighted(ys, xs, us, create_graph=True)


def weighted(ys: tuple, xs: tuple, vs: tuple, create_graph: bool, retain_graph: bool | None = None) -> tuple:
    """The gradients at xs of the sum of ys weighted by vs (None: by 1); zeros where nothing depends on them."""
    live = [(y, v) for y, v in zip(ys, vs, strict=True) if y.requires_grad]
    if not live:
        return filled((None,) * len(xs), xs)
    return filled(grad([y for y, _ in live], xs, [v for _, v in live], retain_graph, create_graph, allow_unused=True),
                  xs)


def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(inputs), v^T J): the vector-Jacobian product, by one backward pass.

    Example:
        >>> import zoo
        >>> zoo.autograd.functional.vjp(lambda x: x * x, zoo.ones(2), zoo.ones(2))[1]
        tensor([2., 2.])
    """
    xs, single = leaves(inputs)
    ys = func(*xs)
    many = ys if isinstance(ys, tuple) else (ys,)
    vs = (None,) * len(many) if v is None else matching("vjp", v, many)
    gs = weighted(many, xs, vs, create_graph)
    out = ys if create_graph else (tuple(y.detach() for y in ys) if isinstance(ys, tuple) else ys.detach())
    return out, gs[0] if single else gs


def jvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(inputs), J v): the Jacobian-vector product, by differentiating the vjp in its v (double backward)."""
    xs, _ = leaves(inputs)
    ys = func(*xs)
    many = ys if isinstance(ys, tuple) else (ys,)
    us, gs = pulled_back(many, xs)
    vs = matching("jvp", v if v is not None else zeros_like(xs[0]) + 1, xs)
    js = weighted(gs, us, vs, create_graph)
    out = ys if create_graph else (tuple(y.detach() for y in ys) if isinstance(ys, tuple) else ys.detach())
    return out, js if isinstance(ys, tuple) else js[0]


def jacobian(func, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False):
    """d func / d inputs, of shape (*output, *input), row by row.

    Example:
        >>> import zoo
        >>> zoo.autograd.functional.jacobian(lambda x: x * x, zoo.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    xs, single = leaves(inputs)
    if create_graph and any(x.requires_grad for x in ((inputs,) if single else inputs)):
        xs = (inputs,) if single else tuple(inputs)
    ys = func(*xs)
    many = ys if isinstance(ys, tuple) else (ys,)
    blocks = tuple(rows(y, xs, create_graph) for y in many)
    blocks = tuple(b[0] for b in blocks) if single else blocks
    return blocks if isinstance(ys, tuple) else blocks[0]


def rows(y: Tensor, xs: tuple, create_graph: bool) -> tuple:
    """The Jacobian of one output by every input."""
    from zoo.ops.face.join import stack
    flat = y.reshape(-1)
    if not flat.requires_grad or not flat.numel():
        return tuple(zeros(*y.shape, *x.shape, dtype=x.dtype, device=x.device) for x in xs)
    each = [
        filled(grad(flat[i], xs, retain_graph=True, create_graph=create_graph, allow_unused=True), xs)
        for i in range(flat.numel())
    ]
    return tuple(stack([g[k] for g in each]).reshape(*y.shape, *x.shape) for k, x in enumerate(xs))


def hessian(func, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False):
    """The second derivatives of a scalar function, of shape (*input, *input)."""
    single = isinstance(inputs, Tensor)

    def gradient(*xs):
        y = func(*xs)
        if y.numel() != 1:
            raise ShapeError(f"hessian: wants a function with one output, got shape {y.shape}")
        gs = filled(grad(y.reshape(()), xs, create_graph=True, allow_unused=True), xs)
        return gs[0] if single else gs
    return jacobian(gradient, inputs, create_graph=create_graph)


def hvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(func(inputs), H v): the Hessian-vector product, by two backward passes."""
    xs, single = leaves(inputs)
    y = func(*xs)
    gs = filled(grad(y, xs, create_graph=True, allow_unused=True), xs)
    vs = matching("hvp", v, xs)
    hs = weighted(gs, xs, vs, create_graph)
    return (y if create_graph else y.detach()), hs[0] if single else hs


vhp = hvp       # the Hessian is symmetric
