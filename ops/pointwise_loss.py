"""Elementwise losses, one formula and so one kernel each; face/loss.py weighs and reduces them."""
import numpy as np

from zoo.ops.binding import elementwise


def near(rng, *options) -> dict:
    """Samples of (input, target): targets in (0, 1), of one shape or broadcast."""
    def draw(*shape):
        return rng.normal(size=shape)

    def target(*shape):
        return rng.uniform(0.1, 0.9, shape)
    far = np.array([0.0, 1.0, -1.0, 100.0, -100.0, np.inf, -np.inf, np.nan])
    return {"ordinary": [(draw(3, 4), target(3, 4), *options), (draw(3, 4), target(4), *options)],
            "empty": [(draw(0, 4), target(0, 4), *options)], "0-d": [(draw(), target(), *options)],
            "odd": [(draw(7, 1, 13), target(13), *options), (draw(1031), target(1031), *options)],
            "extreme": [(far, np.zeros(8), *options), (far, np.ones(8), *options)]}


def within(rng) -> dict:
    """Samples of (probability, target): both in (0, 1); the extremes at 0 and 1."""
    def draw(*shape):
        return rng.uniform(0.1, 0.9, shape)
    ends = np.array([0.0, 1.0, 0.0, 1.0, 0.5])
    return {"ordinary": [(draw(3, 4), draw(3, 4)), (draw(3, 4), draw(4))], "empty": [(draw(0, 4), draw(0, 4))],
            "0-d": [(draw(), draw())], "odd": [(draw(7, 1, 13), draw(13)), (draw(1031), draw(1031))],
            "extreme": [(ends, np.array([0.0, 0.0, 1.0, 1.0, 1.0]))]}


@elementwise
class squared_error:
    """(input - target)^2."""
    def f(input, target): return (input - target) * (input - target)
    def dinput(dy, input, target): return dy * 2.0 * (input - target)
    def dtarget(dy, input, target): return dy * 2.0 * (target - input)
    dtypes = "floats"


@elementwise
class absolute_error:
    """|input - target|."""
    def f(input, target): return abs(input - target)
    def dinput(dy, input, target): return dy * sign(input - target)
    def dtarget(dy, input, target): return dy * sign(target - input)
    dtypes = "floats"
    samples = near


@elementwise
class smooth_absolute_error:
    """Half the squared error over beta where the error is below beta, else |error| - beta / 2.

    The slope of nan is nan: hence `>=` in the derivatives, which nan does not pass.
    """
    kind = "float"
    def f(input, target, beta=1.0):
        return where(abs(input - target) < beta, (input - target) * (input - target) * (0.5 / beta),
                     abs(input - target) - 0.5 * beta)
    def dinput(dy, input, target, beta=1.0):
        return dy * where(abs(input - target) >= beta, sign(input - target), (input - target) * (1.0 / beta))
    def dtarget(dy, input, target, beta=1.0):
        return dy * where(abs(input - target) >= beta, sign(target - input), (target - input) * (1.0 / beta))
    dtypes = "floats"
    def samples(rng): return near(rng, 0.7)


@elementwise
class huber:
    """Half the squared error where the error is below delta, else delta (|error| - delta / 2). Slopes: as above."""
    kind = "float"
    def f(input, target, delta=1.0):
        return where(abs(input - target) < delta, (input - target) * (input - target) * 0.5,
                     (abs(input - target) - 0.5 * delta) * delta)
    def dinput(dy, input, target, delta=1.0):
        return dy * where(abs(input - target) >= delta, sign(input - target) * delta, input - target)
    def dtarget(dy, input, target, delta=1.0):
        return dy * where(abs(input - target) >= delta, sign(target - input) * delta, target - input)
    dtypes = "floats"
    def samples(rng): return near(rng, 0.7)


@elementwise
class binary_entropy:
    """-(t log p + (1 - t) log(1 - p)), each logarithm at least -100."""
    kind = "float"
    def f(input, target):
        return (target - 1.0) * maximum(log1p(-input), -100.0) - target * maximum(log(input), -100.0)
    def dinput(dy, input, target):
        return dy * (input - target) / maximum((1.0 - input) * input, 1e-12)
    def dtarget(dy, input):
        return dy * (maximum(log1p(-input), -100.0) - maximum(log(input), -100.0))
    dtypes = "floats"
    samples = within


@elementwise
class binary_entropy_with_logits:
    """max(x, 0) - x t + log(1 + exp(-|x|)): the cross entropy of sigmoid(x) against t, for any x."""
    kind = "float"
    def f(input, target): return maximum(input, 0.0) - input * target + log1p(exp(-abs(input)))
    def dinput(dy, input, target): return dy * (sigmoid(input) - target)
    def dtarget(dy, input): return -dy * input
    dtypes = "floats"
    samples = near


@elementwise
class relative_entropy:
    """t log t - t x for log probabilities x: the divergence of each element, 0 log 0 = 0; nan for t < 0."""
    kind = "float"
    def f(input, target): return where(target == 0.0, -target * input, target * (log(target) - input))
    def dinput(dy, target): return -dy * target
    def dtarget(dy, input, target): return dy * where(target == 0.0, 0.0 - input, log(target) + 1.0 - input)
    dtypes = "floats"
    samples = near
