"""L-BFGS, with a strong Wolfe line search."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from zoo.autograd.creation import zeros_like
from zoo.autograd.mode import enable_grad, no_grad
from zoo.autograd.tensor import Tensor
from zoo.ops.face.join import cat
from zoo.optim.optimizer import Optimizer, need_range


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal and Wright, Numerical Optimization, algorithm 7.5; line search: 3.5 and 3.6).

    The direction is -H g, H the inverse Hessian that the last `history_size` pairs of steps and gradient changes give.

    Args:
        params: parameters of one device and dtype, in one group.
        lr: length of a step, or the first trial of the line search. max_iter: most iterations per step.
        max_eval: most evaluations of the closure per step, by default 1.25 max_iter.
        tolerance_grad: stop where no element of the gradient is greater. tolerance_change: where the loss or the
            parameters change less. history_size: pairs that are kept. line_search_fn: None or "strong_wolfe".

    Raises:
        ValueError: a negative lr, several groups, another line search. TypeError: `step` without a closure.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.tensor([3.0, -2.0]))
        >>> optimizer = zoo.optim.LBFGS([p], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((p - 1) ** 2 * zoo.tensor([1.0, 10.0])).sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item()
        94.0
        >>> [round(x, 3) for x in p.tolist()]
        [1.0, 1.0]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        need_range("LBFGS", "learning rate", lr)
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn wants None or 'strong_wolfe', got {line_search_fn!r}")
        defaults = dict(
            lr=lr,
            max_iter=max_iter,
            max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            history_size=history_size,
            line_search_fn=line_search_fn,
        )
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if self.param_groups:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        super().add_param_group(param_group)

    def step(self, closure: Callable | None = None) -> Any:
        """Up to max_iter iterations; returns the loss before the first.

        Args:
            closure: clears the gradients, computes the loss, calls backward and returns the loss.
        """
        if closure is None:
            raise TypeError("LBFGS.step: wants a closure that computes the loss again")
        with no_grad():
            return self.iterate(enable_grad()(closure))

    def iterate(self, closure: Callable) -> Any:
        """The iterations of one step."""
        group, params = self.param_groups[0], self.param_groups[0]["params"]
        lr, small, most = float(group["lr"]), group["tolerance_change"], group["max_eval"]
        state = self.state[params[0]]  # of the optimizer as a whole, where torch keeps it
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, grad, evaluations = float(first), flat_gradient(params), 1
        state["func_evals"] += 1
        if largest(grad) <= group["tolerance_grad"]:
            return first
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            remember(state, grad, group["history_size"])
            d = state["d"] = direction(state, grad)
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            state["t"] = lr * (min(1.0, 1.0 / grad.abs().sum().item()) if state["n_iter"] == 1 else 1.0)
            start = Point(0.0, loss, grad, dot(grad, d))
            if start.slope > -small:
                break
            if group["line_search_fn"]:
                along = Line(closure, params, d)
                point = strong_wolfe(along, start, state["t"], small, most - evaluations)
                loss, grad, state["t"] = point.loss, point.grad, point.t
                move(params, d, state["t"])
                used = along.evaluations
            else:
                move(params, d, state["t"])
                used = int(iteration < group["max_iter"])  # the last point's loss is not wanted any more
                if used:
                    loss, grad = float(closure()), flat_gradient(params)
            evaluations += used
            state["func_evals"] += used
            arrived = used and largest(grad) <= group["tolerance_grad"]
            stuck = largest(d) * abs(state["t"]) <= small or abs(loss - state["prev_loss"]) < small
            if evaluations >= most or arrived or stuck:
                break
        return first


def remember(state: dict, grad: Tensor, history_size: int) -> None:
    """Takes the last step and its change of the gradient into the history; starts the history at the first step."""
    if state["n_iter"] == 1:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
        return
    y, s = grad - state["prev_flat_grad"], state["d"] * state["t"]
    ys = dot(y, s)
    if ys > 1e-10:  # else the curvature condition does not hold
        for name, value in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / ys)):
            state[name] = [*state[name], value][-history_size:]
        state["H_diag"] = ys / dot(y, y)


def direction(state: dict, grad: Tensor) -> Tensor:
    """-H grad by the two loops over the history."""
    history = [(y, s, float(r)) for y, s, r in zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True)]
    q, shares = -grad, []
    for y, s, r in reversed(history):
        shares.append(dot(s, q) * r)
        q.sub_(y, alpha=shares[-1])
    q.mul_(float(state["H_diag"]))
    for (y, s, r), share in zip(history, reversed(shares), strict=True):
        q.add_(s, alpha=share - dot(y, q) * r)
    return q


class Point(NamedTuple):
    """A point of a line: how far along it, the loss, its gradient, and the derivative of the loss along the line."""

    t: float
    loss: float
    grad: Tensor
    slope: float


class Line:
    """The loss along parameters + t * d: `line(t)` is a Point, and leaves the parameters as they were."""

    def __init__(self, closure: Callable, params: list[Tensor], d: Tensor):
        self.closure, self.params, self.d, self.evaluations = closure, params, d, 0
        self.origin, self.length = [p.clone() for p in params], largest(d)

    def __call__(self, t: float) -> Point:
        move(self.params, self.d, t)
        loss, grad = float(self.closure()), flat_gradient(self.params)
        for p, value in zip(self.params, self.origin, strict=True):
            p.copy_(value)
        self.evaluations += 1
        return Point(t, loss, grad, dot(grad, self.d))


def strong_wolfe(line: Line, start: Point, t: float, small: float, most: int, c1=1e-4, c2=0.9) -> Point:
    """A point with enough decrease (c1) and a flat enough slope (c2); the best one seen if `most` trials find none."""

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + c1 * point.t * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -c2 * start.slope

    before, point, ends, trials = start, line(t), [], 0
    while trials < most and not ends:  # go on until two points have a minimum between them
        if too_high(point) or trials > 1 and point.loss >= before.loss:
            ends = [before, point]
        elif flat(point):
            return point
        elif point.slope >= 0:
            ends = [before, point]
        else:
            bounds = point.t + 0.01 * (point.t - before.t), point.t * 10
            before, point = point, line(cubic_minimum(before, point, bounds))
            trials += 1
    ends = ends or [start, point]
    low, near_end = lower(ends), False
    while trials < most and abs(ends[1].t - ends[0].t) * line.length >= small:  # narrow it down
        t, near_end = inner(cubic_minimum(*ends), ends, near_end)
        point = line(t)
        trials += 1
        if too_high(point) or point.loss >= ends[low].loss:
            ends[1 - low] = point
            low = lower(ends)
            continue
        if flat(point):
            return point
        if point.slope * (ends[1 - low].t - ends[low].t) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = point
    return ends[low]


def lower(ends: list[Point]) -> int:
    """The index of the end with the lower loss."""
    return 0 if ends[0].loss <= ends[1].loss else 1


def inner(t: float, ends: list[Point], near_end: bool) -> tuple[float, bool]:
    """(t, whether t lies near an end). Near an end for the second time, or outside, t moves a tenth inwards."""
    left, right = sorted(end.t for end in ends)
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if near_end or t >= right or t <= left:
        return (right - margin if abs(t - right) < abs(t - left) else left + margin), False
    return t, True


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through both points and slopes is least, within bounds (Nocedal and Wright, eq. 3.59)."""
    a, b = sorted((a, b), key=lambda point: point.t)
    low, high = bounds or (a.t, b.t)
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(t, low), high)


def flat_gradient(params: list[Tensor]) -> Tensor:
    """All gradients in one vector; zeros where there is none."""
    return cat([(zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in params])


def move(params: list[Tensor], d: Tensor, t: float) -> None:
    """params += t * d."""
    start = 0
    for p in params:
        p.add_(d[start : start + p.numel()].reshape(p.shape), alpha=t)
        start += p.numel()


def dot(a: Tensor, b: Tensor) -> float:
    """The inner product, as a number."""
    return a.dot(b).item()


def largest(x: Tensor) -> float:
    """The greatest absolute value."""
    return x.abs().max().item()
