"""The rules of optimizers that treat every element alike: one formula each, for NumPy and for Triton.

    rule(p, g, state, n, flags) -> (new p, new state)

p: values of the parameter; g: its gradient, after maximize and weight decay; state: tuple of arrays like p; n: numbers
of p's dtype; flags: bools that are known before the kernel is compiled. As they stand the formulas run on NumPy arrays;
optim_gpu.py binds the same source to Triton's names. Each optimizer's class has the formula with its source.
"""
from collections.abc import Callable

from numpy import abs, maximum, minimum, sign, sqrt, where


def sgd(p, g, state, n, flags):
    """State: momentum_buffer, or none. Numbers: lr, momentum, 1 - dampening. Flags: momentum, first step, nesterov."""
    if flags[0]:
        if flags[1]:
            b = g
        else:
            b = n[1] * state[0] + n[2] * g
        if flags[2]:
            return p - n[0] * (g + n[1] * b), (b,)
        else:
            return p - n[0] * b, (b,)
    else:
        return p - n[0] * g, ()


def adam(p, g, state, n, flags):
    """State: exp_avg, exp_avg_sq and, by the flag amsgrad, max_exp_avg_sq.

    Numbers: rate, beta2, 1 - beta1, 1 - beta2, eps; rate and eps contain the bias corrections.
    """
    m = state[0] + (g - state[0]) * n[2]
    v = state[1] * n[1] + g * g * n[3]
    if flags[0]:
        top = maximum(state[2], v)
        return p - n[0] * m / (sqrt(top) + n[4]), (m, v, top)
    else:
        return p - n[0] * m / (sqrt(v) + n[4]), (m, v)


def nadam(p, g, state, n, flags):
    """State: exp_avg, exp_avg_sq. Numbers: rate of g, rate of exp_avg, beta2, 1 - beta1, 1 - beta2, eps."""
    m = state[0] + (g - state[0]) * n[3]
    v = state[1] * n[2] + g * g * n[4]
    return p - (n[0] * g + n[1] * m) / (sqrt(v) + n[5]), (m, v)


def radam(p, g, state, n, flags):
    """State: exp_avg, exp_avg_sq. Numbers: rate, beta2, 1 - beta1, 1 - beta2, eps. Flag: the variance is tractable."""
    m = state[0] + (g - state[0]) * n[2]
    v = state[1] * n[1] + g * g * n[3]
    if flags[0]:
        return p - n[0] * m / (sqrt(v) + n[4]), (m, v)
    else:
        return p - n[0] * m, (m, v)


def adamax(p, g, state, n, flags):
    """State: exp_avg, exp_inf. Numbers: rate, beta2, 1 - beta1, eps."""
    m = state[0] + (g - state[0]) * n[2]
    u = maximum(state[1] * n[1], abs(g) + n[3])
    return p - n[0] * m / u, (m, u)


def adagrad(p, g, state, n, flags):
    """State: sum. Numbers: rate, eps."""
    total = state[0] + g * g
    return p - n[0] * g / (sqrt(total) + n[1]), (total,)


def adadelta(p, g, state, n, flags):
    """State: square_avg, acc_delta. Numbers: lr, rho, 1 - rho, eps."""
    v = state[0] * n[1] + g * g * n[2]
    delta = sqrt(state[1] + n[3]) / sqrt(v + n[3]) * g
    return p - n[0] * delta, (v, state[1] * n[1] + delta * delta * n[2])


def rmsprop(p, g, state, n, flags):
    """State: square_avg; by flags grad_avg (centered) and then momentum_buffer (momentum).

    Numbers: lr, alpha, 1 - alpha, eps, momentum. Flags: centered, momentum.
    """
    v = state[0] * n[1] + g * g * n[2]
    if flags[0]:
        mean = state[1] + (g - state[1]) * n[2]
        d = g / (sqrt(v - mean * mean) + n[3])
        if flags[1]:
            b = n[4] * state[2] + d
            return p - n[0] * b, (v, mean, b)
        else:
            return p - n[0] * d, (v, mean)
    else:
        d = g / (sqrt(v) + n[3])
        if flags[1]:
            b = n[4] * state[1] + d
            return p - n[0] * b, (v, b)
        else:
            return p - n[0] * d, (v,)


def rprop(p, g, state, n, flags):
    """State: prev, step_size. Numbers: eta minus, eta plus, smallest and largest step size."""
    turn = g * state[0]
    size = where(turn > 0, state[1] * n[1], where(turn < 0, state[1] * n[0], state[1]))
    size = minimum(maximum(size, n[2]), n[3])
    g = where(turn < 0, 0, g)
    return p - sign(g) * size, (g, size)


def asgd(p, g, state, n, flags):
    """State: ax. Numbers: eta, mu. Flag: averaging has begun. The parameter arrives shrunk by 1 - lambd * eta."""
    p = p - n[0] * g
    if flags[0]:
        return p, (state[0] + (p - state[0]) * n[1],)
    else:
        return p, (p,)


def lion(p, g, state, n, flags):
    """State: exp_avg. Numbers: lr, 1 - beta1, 1 - beta2."""
    m = state[0]
    return p - n[0] * sign(m + (g - m) * n[1]), (m + (g - m) * n[2],)


RULES: dict[str, Callable] = {f.__name__: f for f in (
    sgd, adam, nadam, radam, adamax, adagrad, adadelta, rmsprop, rprop, asgd, lion)}
