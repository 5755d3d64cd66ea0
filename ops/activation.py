"""Activation functions: elementwise rows whose options are numbers."""
from zoo.ops.binding import elementwise


@elementwise
class relu:
    refuses = "bool complex"
    def f(x): return relu(x)
    def dx(dy, y): return where(y <= 0, 0.0, dy)         # nan hands its gradient on, as in torch


@elementwise
class leaky_relu:
    """x, and negative_slope x for x <= 0."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x, negative_slope=0.01): return where(x > 0, x, x * negative_slope)
    def dx(dy, x, negative_slope): return where(x > 0, dy, dy * negative_slope)


@elementwise
class prelu:
    """x, and w x for x <= 0; w broadcasts to x."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x, w): return where(x > 0, x, x * w)
    def dx(dy, x, w): return where(x > 0, dy, dy * w)
    def dw(dy, x): return where(x > 0, 0.0, dy * x)


@elementwise
class elu:
    """x, and alpha (exp(x) - 1) for x <= 0."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x, alpha=1.0): return where(x > 0, x, alpha * expm1(minimum(x, 0.0)))
    def dx(dy, x, alpha): return where(x > 0, dy, dy * (alpha * exp(where(x > 0, 0.0, x))))


@elementwise
class celu:
    """x, and alpha (exp(x / alpha) - 1) for x <= 0."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x, alpha=1.0): return where(x > 0, x, alpha * expm1(where(x > 0, 0.0, x / alpha)))
    def dx(dy, x, alpha): return where(x > 0, dy, dy * exp(where(x > 0, 0.0, x / alpha)))


@elementwise
class selu:
    """1.0507 elu(x, 1.6733): keeps mean 0 and variance 1 (Klambauer et al. 2017)."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x): return 1.0507009873554805 * where(x > 0, x, 1.6732632423543772 * expm1(minimum(x, 0.0)))
    def dx(dy, x):
        return dy * 1.0507009873554805 * where(x > 0, 1.0, 1.6732632423543772 * exp(where(x > 0, 0.0, x)))


@elementwise
class gelu:
    """x times the normal distribution's cdf (Hendrycks and Gimpel 2016)."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x): return 0.5 * x * (1 + erf(x * 0.7071067811865476))
    def dx(dy, x):
        return dy * (0.5 * (1 + erf(x * 0.7071067811865476)) + x * (0.3989422804014327 * exp(-0.5 * (x * x))))


@elementwise
class gelu_tanh:
    """gelu with its tanh approximation."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x): return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))))
    def dx(dy, x):
        t = tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x)))
        slope = 0.7978845608028654 * (1 + 0.134145 * (x * x))
        return dy * (0.5 * (1 + t) + 0.5 * x * ((1 - t * t) * slope))


@elementwise
class silu:
    """x sigmoid(x)."""
    refuses, dtypes = "bool int", "floats"
    def f(x): return x * sigmoid(x)
    def dx(dy, x):
        s = sigmoid(x)
        return dy * (s * (1 + x * (1 - s)))


@elementwise
class mish:
    """x tanh(softplus(x)) (Misra 2019)."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x): return x * tanh(softplus(x))
    def dx(dy, x):
        t = tanh(softplus(x))
        return dy * (t + x * sigmoid(x) * (1 - t * t))


@elementwise
class hardtanh:
    refuses, dtypes = "bool complex", "floats"
    def f(x, min_val=-1.0, max_val=1.0): return minimum(maximum(x, min_val), max_val)
    def dx(dy, x, min_val, max_val): return where((x > min_val) & (x < max_val), dy, 0.0)


@elementwise
class hardswish:
    """x relu6(x + 3) / 6 (Howard et al. 2019)."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x): return x * minimum(maximum(x + 3, 0.0), 6.0) / 6
    def dx(dy, x): return where(x <= -3, 0.0, where(x < 3, dy * (x / 3 + 0.5), dy))


@elementwise
class hardsigmoid:
    """relu6(x + 3) / 6."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x): return minimum(maximum(x + 3, 0.0), 6.0) / 6
    def dx(dy, x): return where((x > -3) & (x < 3), dy / 6, 0.0)


@elementwise
class softplus:
    """log(1 + exp(beta x)) / beta; x itself where beta x > threshold."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x, beta=1.0, threshold=20.0): return where(x * beta > threshold, x, softplus(x * beta) / beta)
    def dx(dy, x, beta, threshold): return where(x * beta > threshold, dy, dy * sigmoid(x * beta))


@elementwise
class logsigmoid:
    """log(sigmoid(x))."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x): return -softplus(-x)
    def dx(dy, x): return dy * sigmoid(-x)


@elementwise
class softsign:
    """x / (1 + |x|)."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x): return x / (1 + abs(x))
    def dx(dy, x):
        d = 1 + abs(x)
        return dy / (d * d)


@elementwise
class softshrink:
    """x moved towards 0 by lambd, 0 within."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x, lambd=0.5): return where(x > lambd, x - lambd, where(x < -lambd, x + lambd, where(x == x, 0.0, x)))
    def dx(dy, x, lambd): return where((x >= -lambd) & (x <= lambd), 0.0, dy)


@elementwise
class hardshrink:
    """0 for |x| <= lambd, else x."""
    refuses, dtypes = "bool int complex", "floats"
    def f(x, lambd=0.5): return where((x >= -lambd) & (x <= lambd), 0.0, x)
    def dx(dy, x, lambd): return where((x >= -lambd) & (x <= lambd), 0.0, dy)


@elementwise
class tanhshrink:
    """x - tanh(x)."""
    refuses, dtypes = "bool int", "floats"
    def f(x): return x - tanh(x)
    def dx(dy, x):
        t = tanh(x)
        return dy * (t * t)


@elementwise
class threshold:
    """x, and value for x <= threshold."""
    refuses = "bool complex"
    def f(x, threshold=0.0, value=0.0): return where(x <= threshold, value, x)
    def dx(dy, x, threshold): return where(x <= threshold, 0.0, dy)
