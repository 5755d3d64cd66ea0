"""Elementwise ops beside torch: dtypes and values on difficult inputs, gradients at kinks, layouts of the kernels."""
import numpy as np
import pytest

import zoo
from zoo.ops import activation, pointwise, scalar, unary
from zoo.ops.binding import in_numpy
from zoo.ops.dtypes import COMPLEX
from zoo.ops.op import OPS

VALUES = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, 6.0, -6.0, 7.0, 100.0, -100.0,
                   np.inf, -np.inf, np.nan, 1e-3, 20.5])
DTYPES = [np.dtype(t) for t in ("f4", "f8", "i8", "i4", "i1", "u1", "?")]
UNARY = ("abs neg sign signbit isnan isinf isfinite logical_not bitwise_not reciprocal sqrt rsqrt exp exp2 expm1 log "
         "log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv lgamma digamma "
         "sigmoid logit sinc deg2rad rad2deg floor ceil trunc round frac").split()
ACTIVATIONS = ("relu leaky_relu elu celu selu silu mish hardswish hardsigmoid softplus logsigmoid softshrink "
               "hardshrink").split()
BINARY = ("add sub mul div remainder fmod pow maximum minimum fmax fmin atan2 hypot copysign logaddexp logaddexp2 "
          "xlogy eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor "
          "bitwise_left_shift bitwise_right_shift floor_divide").split()


def cast(x, dtype):
    if dtype.kind == "f":
        return x.astype(dtype)
    x = np.nan_to_num(x, nan=5.0, posinf=9.0, neginf=-9.0)
    return x > 0 if dtype.kind == "b" else (np.abs(x) if dtype.kind == "u" else x).astype(dtype)


def outcome(function, *args):
    try:
        return function(*args)
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        return type(error)


def agree(name, mine, torchs):
    """Both raise, or both give equal dtypes and values."""
    assert isinstance(mine, type) == isinstance(torchs, type), f"{name}: {mine} beside torch's {torchs}"
    if isinstance(mine, type):
        assert issubclass(mine, (ValueError, TypeError)) and issubclass(mine, RuntimeError)
        return
    want = torchs.numpy()
    assert mine.dtype == want.dtype, name
    tolerance = {"f4": 8e-6, "f8": 4e-12}.get(want.dtype.str[1:], 0)
    np.testing.assert_allclose(mine, want, rtol=tolerance, atol=tolerance / 8, err_msg=name)


@pytest.mark.torch
@pytest.mark.parametrize("name", UNARY + ACTIVATIONS)
def test_one_input_as_torch(name):
    torch = pytest.importorskip("torch")
    reference = getattr(torch.nn.functional if name in ACTIVATIONS else torch, name)
    for dtype in DTYPES:
        x = cast(VALUES, dtype)
        agree(f"{name} {dtype}", outcome(OPS[name], x), outcome(reference, torch.from_numpy(x)))


@pytest.mark.torch
@pytest.mark.parametrize("name", BINARY)
def test_two_inputs_as_torch(name):
    """All pairs of difficult values, all pairs of dtypes; integers by 0 have a test below."""
    torch = pytest.importorskip("torch")
    reference = getattr(torch, name) if name != "floor_divide" else lambda a, b: torch.div(a, b, rounding_mode="floor")
    pairs = [v.ravel() for v in np.meshgrid(VALUES, VALUES)]
    for first in DTYPES:
        for second in DTYPES:
            a, b = cast(pairs[0], first), cast(pairs[1], second)
            if name in ("remainder", "fmod", "floor_divide") and "f" not in (first.kind, second.kind):
                a, b = a[b != 0], b[b != 0]
            if "shift" in name and second.kind in "iu":
                b = np.abs(b) % 8
            if name == "pow" and "f" not in (first.kind, second.kind):
                b = np.abs(b) % 6 if b.dtype.kind != "b" else b
                if first.kind == second.kind == "b":
                    continue                             # refused here; torch gives bool
            agree(f"{name} {first} {second}", outcome(OPS[name], a, b),
                  outcome(reference, torch.from_numpy(a), torch.from_numpy(b)))


KINKS = {
    "relu": [0.0], "abs": [0.0], "leaky_relu": [0.0], "elu": [0.0], "celu": [0.0], "selu": [0.0],
    "hardtanh": [-1.0, 1.0], "hardswish": [-3.0, 3.0], "hardsigmoid": [-3.0, 3.0], "softshrink": [-0.5, 0.5],
    "hardshrink": [-0.5, 0.5], "sign": [0.0], "softplus": [20.0, 21.0, 100.0, -100.0], "silu": [100.0, -100.0],
    "mish": [100.0, -50.0], "logsigmoid": [0.0, 100.0, -100.0], "gelu": [0.0, 10.0, -10.0], "sinc": [0.0, 1.0],
    "floor": [1.0], "nan_to_num": [np.nan, np.inf, 1.0], "sigmoid": [100.0, -100.0], "tanh": [0.0, 100.0],
    "xlogy": [(0.0, 0.0), (0.0, 2.0), (2.0, 3.0)], "pow": [(0.0, 0.0), (0.0, 2.0), (2.0, 0.0), (-2.0, 2.0)],
    "maximum": [(1.0, 1.0), (1.0, 2.0)], "minimum": [(1.0, 1.0), (1.0, 2.0)],
    "fmax": [(1.0, 1.0), (np.nan, 2.0), (1.0, np.nan)], "fmin": [(1.0, 1.0), (np.nan, 2.0), (1.0, np.nan)],
    "atan2": [(0.0, 0.0), (1.0, 0.0)], "copysign": [(0.0, -1.0), (2.0, -1.0)], "remainder": [(5.0, -3.0), (-5.0, 3.0)],
    "fmod": [(5.0, -3.0), (-5.0, 3.0)], "logaddexp": [(1.0, 1.0), (100.0, -100.0)],
    "clamp": [(1.0, 1.0, 2.0), (2.0, 1.0, 2.0), (0.0, 1.0, 2.0), (3.0, 1.0, 2.0), (1.5, 2.0, 1.0)],
    "hypot": [(3.0, 4.0)], "clamp_min": [(1.0, 1.0), (0.0, 1.0)], "clamp_max": [(1.0, 1.0), (2.0, 1.0)],
    "lerp": [(1.0, 3.0, 0.5), (1.0, 3.0, 0.2)],
}


@pytest.mark.torch
@pytest.mark.parametrize("name", KINKS)
def test_gradient_at_kinks_as_torch(name):
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    reference = getattr(functional if name in vars(activation) else torch, name)
    function = getattr(zoo.nn.functional, name) if name in vars(activation) else getattr(zoo, name)
    for row in KINKS[name]:
        row = row if isinstance(row, tuple) else (row,)
        theirs = [torch.tensor([v], dtype=torch.float64, requires_grad=True) for v in row]
        mine = [zoo.tensor([v], dtype=zoo.float64, requires_grad=True) for v in row]
        reference(*theirs).sum().backward()
        function(*mine).sum().backward()
        for x, t in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-12, atol=1e-300, err_msg=f"{name}{row}")


@pytest.mark.torch
@pytest.mark.parametrize("name", ["mul", "div", "exp", "log", "sin", "tanh", "sigmoid", "pow", "sqrt", "reciprocal"])
def test_complex_gradients_as_torch(name):
    """dy times the conjugate of the slope."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    count = len(OPS[name].differentiable)
    xs = [rng.normal(size=5) + 1j * rng.normal(size=5) for _ in range(count)]
    dy = rng.normal(size=5) + 1j * rng.normal(size=5)
    theirs = [torch.from_numpy(x).requires_grad_() for x in xs]
    mine = [zoo.from_numpy(x).requires_grad_() for x in xs]
    want = torch.autograd.grad(getattr(torch, name)(*theirs), theirs, torch.from_numpy(dy))
    got = zoo.autograd.grad(OPS[name](*mine), mine, zoo.from_numpy(dy))
    assert got[0].dtype in COMPLEX
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-10)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "trunc_divide"])
def test_integer_division_by_zero_raises(name):
    with pytest.raises(RuntimeError, match=f"ZeroDivisionError.*{'divisor'}"):
        OPS[name](np.array([1, 2]), np.array([1, 0]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_where_of_large_arrays_copies_bits(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 90, 91)).astype(dtype)
    a[0], b[1] = np.nan, -np.inf
    c = rng.uniform(size=(90, 91)) > 0.5
    for x, y in [(a, b), (a, 0.0), (0.0, b), (a[::-1], b.T[:1].T), (a[0], b), (1.5, b), (a[:1], a[1, :1])]:
        got = scalar.where(c, x, y)
        assert got.dtype == a.dtype
        np.testing.assert_array_equal(got, np.where(c, x, y))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(np.where(c, x, y)))


def test_wrong_calls_name_op_and_what_they_got():
    for call, kind, words in [
            (lambda: zoo.add(zoo.ones(2, 3), zoo.ones(4)), ValueError, ("add", "(2, 3)", "(4,)")),
            (lambda: zoo.maximum(2, zoo.ones(3)), TypeError, ("maximum", "int")),
            (lambda: zoo.eq(2, 3), TypeError, ("eq", "int")),
            (lambda: zoo.bitwise_and(zoo.ones(2), zoo.ones(2)), TypeError, ("bitwise_and", "float32")),
            (lambda: zoo.sub(zoo.tensor([True]), zoo.tensor([True])), RuntimeError, ("sub", "bool")),
            (lambda: zoo.div(zoo.ones(2), 2, rounding_mode="up"), RuntimeError, ("div", "'up'")),
            (lambda: zoo.where(zoo.ones(2), zoo.ones(2), 0), RuntimeError, ("where", "float32")),
            (lambda: zoo.clamp(zoo.ones(2)), RuntimeError, ("clamp", "neither")),
            (lambda: zoo.add(zoo.tensor([1]), 1, alpha=0.5), RuntimeError, ("add", "0.5")),
            (lambda: zoo.nn.functional.glu(zoo.ones(3)), RuntimeError, ("glu", "(3,)")),
            (lambda: zoo.pow(zoo.tensor([2]), -1), RuntimeError, ("pow", "-1"))]:
        with pytest.raises(kind) as caught:
            call()
        assert all(word in str(caught.value) for word in words), str(caught.value)


def test_special_functions_to_double_precision():
    """Against mpmath's or, where that is missing, math's values."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 30
    x = np.concatenate([np.linspace(0.05, 20.0, 97), np.logspace(-8, 2, 31)])
    table = {"erf": mpmath.erf, "erfc": mpmath.erfc, "lgamma": mpmath.loggamma, "digamma": mpmath.digamma}
    for name, exact in table.items():
        points = x[x < 26] if name == "erfc" else x[np.abs(x - 1) + 0 * x > 1e-3]
        want = np.array([float(exact(mpmath.mpf(float(v))).real) for v in points])
        np.testing.assert_allclose(getattr(scalar, name)(points), want, rtol=2e-13, atol=1e-15, err_msg=name)
    y = np.linspace(-0.999, 0.999, 101)
    np.testing.assert_allclose(scalar.erf(scalar.erfinv(y)), y, rtol=1e-13, atol=1e-16)
    single = np.linspace(-5, 5, 1001, dtype=np.float32)
    want = np.array([float(mpmath.erf(float(v))) for v in single])
    np.testing.assert_allclose(scalar.erf(single), want, rtol=4e-7)


def on_device(x):
    from zoo.ops import cuda
    return cuda.from_numpy(x)


def permuted(x, dims):
    return x.view([x.shape[d] for d in dims], [x.strides[d] for d in dims])


@pytest.mark.cuda
def test_kernel_keeps_a_dense_layout():
    """Channels-last in, channels-last out, also with a broadcast bias."""
    from zoo.ops import cuda
    x = np.random.default_rng(0).normal(size=(2, 5, 7, 3)).astype(np.float32)
    bias = np.arange(3, dtype=np.float32).reshape(3, 1, 1)
    image = permuted(on_device(x), (0, 3, 1, 2))
    for y, want in [(pointwise.add(image, on_device(bias)), x.transpose(0, 3, 1, 2) + bias),
                    (unary.neg(image), -x.transpose(0, 3, 1, 2))]:
        assert y.strides == image.strides
        np.testing.assert_array_equal(cuda.to_numpy(y), want)


@pytest.mark.cuda
def test_kernel_of_six_strided_dimensions():
    from zoo.ops import cuda
    x = np.random.default_rng(0).normal(size=(2, 3, 2, 3, 2, 3)).astype(np.float32)
    order = (4, 1, 5, 2, 0, 3)
    y = pointwise.mul(permuted(on_device(x), order), on_device(np.ascontiguousarray(x.transpose(order))))
    np.testing.assert_array_equal(cuda.to_numpy(y), x.transpose(order) ** 2)


@pytest.mark.cuda
def test_numbers_reach_the_kernel_in_full_precision():
    from zoo.ops import cuda
    one = on_device(np.ones(3))
    assert cuda.to_numpy(pointwise.mul(one, 0.1))[0] == 0.1
    big = 2**62 + 1
    assert cuda.to_numpy(pointwise.add(on_device(np.zeros(2, np.int64)), big))[0] == big


@pytest.mark.cuda
@pytest.mark.parametrize("source, target", [("f4", "i4"), ("f4", "?"), ("i8", "i1"), ("f8", "f2"), ("i4", "f8"),
                                            ("?", "f4"), ("c8", "c16"), ("f4", "c8"), ("i8", "u1")])
def test_copy_into_a_strided_window_casts_as_numpy(source, target):
    from zoo.ops import cuda
    from zoo.ops.pointwise_gpu import copy_into
    x = (np.random.default_rng(0).normal(size=(4, 1)) * 300).astype(source)
    whole = np.zeros((6, 7, 2), target)
    want = whole.copy()
    want[1:5, ::2, 1] = x.astype(target)
    y = on_device(whole)
    copy_into(y.view((4, 4), (14, 4), 15), on_device(x))
    np.testing.assert_array_equal(cuda.to_numpy(y), want)


@pytest.mark.cuda
def test_kernels_name_what_they_cannot_do():
    with pytest.raises(NotImplementedError, match="mul.*complex64"):
        pointwise.mul(on_device(np.ones(2, np.complex64)), 2.0)
    with pytest.raises(ValueError, match=r"add.*\(2, 3\).*\(4,\)"):
        pointwise.add(on_device(np.ones((2, 3))), on_device(np.ones(4)))


@pytest.mark.cuda
def test_complex_silu_on_the_device():
    """The only activation that torch defines for complex numbers."""
    x = np.random.default_rng(0).normal(size=(3, 5)) + 1j * np.random.default_rng(1).normal(size=(3, 5))
    t = zoo.from_numpy(x.astype(np.complex64))
    got = zoo.nn.functional.silu(t.cuda()).cpu().numpy()
    np.testing.assert_allclose(got, x / (1 + np.exp(-x)), rtol=2e-5)


def test_a_formula_of_one_operation_is_numpys_function():
    assert in_numpy(lambda x, y: x * y) is np.multiply and in_numpy(lambda dy: -dy) is np.negative
    for other in (lambda a, b: b / a, lambda a, b, c: a / b, lambda a, b: a / b / b, lambda a: a / a):
        assert in_numpy(other) is not np.divide
        x = [np.array([2.0]), np.array([8.0]), np.array([5.0])][:other.__code__.co_argcount]
        np.testing.assert_array_equal(in_numpy(other)(*x), other(*x))


def test_the_value_of_addcmul_of_integers_counts_without_its_fraction():
    """As in torch: 0.5 counts as 0 and -1.5 as -1."""
    one, x = zoo.tensor([1, 1, 1]), zoo.tensor([1, 2, 3])
    assert zoo.addcmul(one, x, x, value=0.5).tolist() == [1, 1, 1]
    assert one.addcmul_(x, x, value=-1.5).tolist() == [0, -3, -8]
    assert zoo.addcmul(one.float(), x, x, value=0.5).tolist() == [0.5, -1, -3.5]
