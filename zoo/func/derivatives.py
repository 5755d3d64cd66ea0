"""Derivatives of functions, as functions: grad, grad_and_value, vjp, jvp, jacrev, jacfwd, hessian.

Each call runs the function on other names of its arguments, whose history leads on to the arguments' own. So the
transforms nest, and what they give is recorded exactly where something outside asks for its gradient.
"""
from collections.abc import Callable
from functools import wraps
from typing import Any

from zoo.autograd.engine import Variable
from zoo.autograd.functional import matching, pulled_back, rows, weighted
from zoo.autograd.mode import MODE, enable_grad
from zoo.autograd.tensor import Tensor
from zoo.func.tree import leaves, mapped, rebuilt
from zoo.ops.errors import ArgumentError, GradError, ShapeError


class Level:
    """One call of one transform: the inputs' other names, and whether a value depends on more than these."""

    def __init__(self, name: str, trees: tuple):
        self.name, self.outside = name, MODE.grad
        for x in leaves(trees):
            if not isinstance(x, Tensor):
                raise ArgumentError(f"{name}: wants tensors to differentiate by, got {type(x).__name__}")
        self.trees = mapped(self.renamed, trees)
        self.inputs = tuple(leaves(self.trees))
        self.own = {x for x in self.inputs if x.node is None}

    def renamed(self, x: Tensor) -> Tensor:
        """Another tensor on x's memory, which hands its gradient on to x if x has one outside of this call."""
        return x.view_as(x) if x.requires_grad and self.outside else x.detach().requires_grad_()

    def recorded(self, ys: Any) -> bool:
        """Do any of these tensors ask for a gradient outside of this call?"""
        stack = [y.node or y for y in ys if isinstance(y, Tensor) and y.requires_grad] if self.outside else []
        seen = set(stack)
        while stack:
            node = stack.pop()
            if not isinstance(node, Variable):
                new = set(node.edges) - seen
                seen |= new
                stack += new
            elif node not in self.own:
                return True
        return False

    def settled(self, tree: Any) -> Any:
        """The tree as the caller gets it: a tensor keeps its history only if that leads out of this call."""
        return mapped(lambda y: y.detach() if isinstance(y, Tensor) and not self.recorded([y]) else y, tree)

    def gradients(self, ys: list, vs: Any = None, retain: bool = True) -> tuple:
        """The gradients at the inputs of the sum of ys weighted by vs; recorded if one of either is."""
        vs = (None,) * len(ys) if vs is None else vs
        again = self.recorded([*ys, *vs])
        return tuple(g if again else g.detach() for g in weighted(tuple(ys), self.inputs, vs, again, retain or again))


def split_aux(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """(output, aux) of a function's result; without aux that is None."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise ArgumentError(f"{name}: with has_aux=True func must give (output, aux), got {type(result).__name__}")
    return result


def tensors(name: str, tree: Any) -> list:
    """The leaves of a function's output, which must be tensors."""
    found = leaves(tree)
    for y in found:
        if not isinstance(y, Tensor):
            raise ArgumentError(f"{name}: func must give tensors, got {type(y).__name__}")
    return found


def opened(name: str, args: tuple, argnums: int | tuple[int, ...]) -> tuple[Level, list, tuple[int, ...]]:
    """The level of a call, its arguments with the chosen ones renamed, and the places of these."""
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not places:
        raise ArgumentError(f"{name}: argnums must not be empty")
    for k in places:
        if not isinstance(k, int) or not -len(args) <= k < len(args):
            raise ArgumentError(f"{name}: argnums {argnums} does not fit {len(args)} positional arguments")
    places = tuple(k % len(args) for k in places)
    if len(set(places)) < len(places):
        raise ArgumentError(f"{name}: argnums must not name an argument twice, got {argnums}")
    level, inside = Level(name, tuple(args[k] for k in places)), list(args)
    for k, tree in zip(places, level.trees, strict=True):
        inside[k] = tree
    return level, inside, places


def chosen(trees: tuple, argnums: int | tuple[int, ...]) -> Any:
    """What is given for argnums: one thing for a number, a tuple for a tuple."""
    return trees[0] if isinstance(argnums, int) else trees


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that gives (gradient, value) of func, whose result is a scalar.

    Args:
        func: takes tensors or nested dicts, lists and tuples of them, and gives a tensor of no dimensions.
        argnums: by which positional argument, or a tuple of them, to differentiate.
        has_aux: func gives (value, anything), and so the result is (gradient, (value, anything)).

    Raises:
        GradError (RuntimeError), when called: func gave something else than one number.

    Example:
        >>> import zoo
        >>> zoo.func.grad_and_value(lambda x: (x * x).sum())(zoo.tensor([1.0, 3.0]))
        (tensor([2., 6.]), tensor(10.))
    """
    @wraps(func)
    def call(*args: Any, **options: Any) -> tuple:
        level, inside, _ = opened("grad", args, argnums)
        with enable_grad():
            value, aux = split_aux("grad", func(*inside, **options), has_aux)
            if not isinstance(value, Tensor):
                raise GradError(f"grad: func must give a tensor, got {type(value).__name__}")
            if value.ndim:
                raise GradError(f"grad: func must give a scalar tensor, got one of shape {value.shape}")
            grads = rebuilt(level.trees, iter(level.gradients([value], retain=False)))
        kept = (value, aux) if has_aux else value
        return chosen(grads, argnums), level.settled(kept)
    return call


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that gives the gradient of func, whose result is a scalar; see grad_and_value.

    Of the form of the argument: a dict of parameters gives a dict of gradients. With has_aux it gives (gradient, aux).

    Example:
        >>> import zoo
        >>> from zoo.func import grad
        >>> grad(zoo.sin)(zoo.tensor(0.0)), grad(grad(grad(zoo.sin)))(zoo.tensor(0.0))
        (tensor(1.), tensor(-1.))
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def call(*args: Any, **options: Any) -> Any:
        grads, value = both(*args, **options)
        return (grads, value[1]) if has_aux else grads
    return call


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(func(*primals), the function from v to v^T J), or (output, function, aux) with has_aux.

    Args:
        primals: tensors, or nested dicts, lists and tuples of them. func may give such a tree too.

    Returns:
        the output, and a function that takes one v for it (a tree of its form and shapes), as often as one likes, and
        gives a tuple with one gradient for each of primals (for a single one: the gradient itself is in the tuple).

    Example:
        >>> import zoo
        >>> y, back = zoo.func.vjp(lambda x: x * x, zoo.tensor([1.0, 2.0]))
        >>> y, back(zoo.ones(2))
        (tensor([1., 4.]), (tensor([2., 4.]),))
    """
    level = Level("vjp", primals)
    with enable_grad():
        out, aux = split_aux("vjp", func(*level.trees), has_aux)
    ys = tensors("vjp", out)

    def back(*cotangents: Any) -> tuple:
        """(v^T J by each of primals)."""
        vs = leaves(cotangents if len(cotangents) > 1 else cotangents[0])
        if len(vs) != len(ys):
            raise ShapeError(f"vjp: wants {len(ys)} tensors, one for each output, got {len(vs)}")
        with enable_grad():
            return rebuilt(level.trees, iter(level.gradients(ys, matching("vjp", vs, tuple(ys)))))
    return (level.settled(out), back, level.settled(aux)) if has_aux else (level.settled(out), back)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """(func(*primals), J tangents), or (output, J tangents, aux) with has_aux.

    Ops have no forward-mode derivatives here: v^T J is recorded and differentiated by v, on which it depends linearly.
    That costs about three runs of func, and is exact; it can be differentiated again.

    Args:
        primals: a tuple of func's arguments. tangents: a tuple of the same form and shapes.
        strict: has no effect: an output that does not depend on the inputs has a tangent of zeros.

    Example:
        >>> import zoo
        >>> zoo.func.jvp(lambda x: x * x, (zoo.tensor([1.0, 2.0]),), (zoo.ones(2),))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise ArgumentError(f"jvp: wants tuples of primals and tangents, got {type(primals).__name__} and "
                            f"{type(tangents).__name__}")
    level = Level("jvp", primals)
    vs = leaves(tangents)
    if len(vs) != len(level.inputs):
        raise ShapeError(f"jvp: wants {len(level.inputs)} tangents, one for each tensor of primals, got {len(vs)}")
    matching("jvp", vs, level.inputs)
    with enable_grad():
        out, aux = split_aux("jvp", func(*level.trees), has_aux)
        ys = tensors("jvp", out)
        us, gs = pulled_back(tuple(ys), level.inputs)
        js = weighted(gs, us, tuple(vs), level.recorded([*ys, *vs]))
    tangent = rebuilt(out, iter(js))
    results = (level.settled(out), tangent)
    return (*results, level.settled(aux)) if has_aux else results


def jacrev(func: Callable, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False,
           chunk_size: int | None = None) -> Callable:
    """A function that gives the Jacobian of func, of shape (*output, *input), by one backward pass for each output.

    Args:
        func: its output may be a nested dict, list or tuple, as may the argument: each tensor of the output is then
            replaced by a tree of the argument's form.
        argnums: by which positional argument, or a tuple of them (the innermost tuple of the result).
        has_aux: func gives (output, anything), and so does the result.
        chunk_size: has no effect: rows are worked out one after another.

    Example:
        >>> import zoo
        >>> zoo.func.jacrev(zoo.sin)(zoo.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    def by_rows(level: Level, ys: list) -> list:
        return [rows(y, level.inputs, level.recorded([y])) for y in ys]
    return jacobian("jacrev", by_rows, func, argnums, has_aux)


def jacfwd(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable:
    """A function that gives the Jacobian of func, as jacrev does, by one pass for each input: for few inputs.

    Args:
        randomness: has no effect: func runs once.

    Example:
        >>> import zoo
        >>> zoo.func.jacfwd(lambda x: x ** 2)(zoo.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    def by_columns(level: Level, ys: list) -> list:
        us, gs = pulled_back(tuple(ys), level.inputs)
        again = level.recorded(ys)
        transposed = [rows(g, us, again) for g in gs]                       # (*input, *output)
        return [[t[k].movedim(tuple(range(x.ndim)), tuple(range(-x.ndim, 0)))
                 for t, x in zip(transposed, level.inputs, strict=True)] for k in range(len(ys))]
    return jacobian("jacfwd", by_columns, func, argnums, has_aux)


def jacobian(name: str, blocks: Callable, func: Callable, argnums: int | tuple[int, ...], has_aux: bool) -> Callable:
    """A function that gives a Jacobian; `blocks(level, outputs)` is a list for each output with one for each input."""
    @wraps(func)
    def call(*args: Any, **options: Any) -> Any:
        level, inside, _ = opened(name, args, argnums)
        with enable_grad():
            out, aux = split_aux(name, func(*inside, **options), has_aux)
            found = blocks(level, tensors(name, out))
        by_inputs = [chosen(rebuilt(level.trees, iter(row)), argnums) for row in found]
        result = rebuilt(out, iter(by_inputs))
        return (result, level.settled(aux)) if has_aux else result
    return call


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """A function that gives the second derivatives of func, of shape (*output, *input, *input).

    Example:
        >>> import zoo
        >>> zoo.func.hessian(lambda x: x[0] ** 2 * x[1])(zoo.tensor([3.0, 5.0]))
        tensor([[10.,  6.],
                [ 6.,  0.]])
    """
    return jacrev(jacrev(func, argnums), argnums)
