"""The engine: graphs, in-place writes, views, hooks, custom functions, beside torch where it is installed."""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import zoo
from zoo.autograd import Function, Tensor, grad
from zoo.autograd.mode import PAUSED

RNG = np.random.default_rng(0)
X, V = RNG.normal(size=(3, 4)), RNG.normal(size=(4,))


# --- in place and views, against torch ------------------------------------------------------------
def row_write(x, v): y = x * 2.0; y[0] = v; return y * y
def add_through_view(x, v): y = x * 2.0; r = y[0]; r += v; return y * y
def read_view_after_base_write(x, v): y = x * 2.0; r = y[0]; y *= v; return r * r + y.sum()
def view_of_view(x, v): y = x * 2.0; r = y[1:]; s = r[0]; s *= v; r[1] = v * 3.0; return (y * y).sum() + (s * r).sum()
def index_arrays(x, v): y = x * 2.0; y[[0, 2], [1, 1]] = v[:2]; return y * x
def arithmetic(x, v): y = x * 1.0; y *= v; y += x; y -= v; y /= 2.0; return y * y
def reshaped_view(x, v):
    y = x * 1.0
    r = y.reshape(4, 3)
    r[1] = v[:3]
    y += 1.0
    return (r * r).sum() + y.sum() * (v * 1.0).sum()


def transposed_base(x, v): y = (x * 1.0).t() * 1.0; r = y.t(); r[0] = v; return y * y
def view_of_transposed(x, v): y = (x * 1.0).t(); r = y[1]; r *= 3.0; return (y * y).sum() + (r * v[:3]).sum()
def mask_write(x, v): y = x * 1.0; y[y > 0] = 2.0; return y * y
def copied(x, v): y = x * 0.0; y.copy_(v); y[1].copy_(x[2]); return y * x
def functions(x, v): y = x * 1.0; y.exp_(); y = y * 1.0; y.mul_(v).add_(1.0); return y * y
def buffer(x, v):
    y = (x * 0.0).detach()
    y[1] = v
    return y * y + x
def reshaped_in_place(x, v): y = x * 1.0; y.t_(); r = y[1]; r.unsqueeze_(0); r *= 2.0; return (r * v[:3]).sum() + y * y
def filled(x, v): y = x * 2.0; y[:, 1].fill_(3.0); y[2].zero_(); return y * v


PROGRAMS = [
    row_write, add_through_view, read_view_after_base_write, view_of_view, index_arrays, arithmetic, reshaped_view,
    transposed_base, view_of_transposed, mask_write, copied, functions, buffer, filled, reshaped_in_place,
]


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_in_place_as_torch(program):
    import torch
    a = [zoo.from_numpy(x.copy()).requires_grad_() for x in (X, V)]
    b = [torch.tensor(x, requires_grad=True) for x in (X, V)]
    y, z = program(*a), program(*b)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-12)
    y.sum().backward()
    z.sum().backward()
    for p, q in zip(a, b, strict=True):
        want = np.zeros(p.shape) if q.grad is None else q.grad.numpy()
        np.testing.assert_allclose(
            np.zeros(p.shape) if p.grad is None else p.grad.numpy(), want, rtol=1e-12, atol=1e-14
        )


def leaf():
    return zoo.from_numpy(X.copy()).requires_grad_()


def write_to_leaf(): x = leaf(); x += 1.0
def write_to_leaf_view(): x = leaf(); x[0] += 1.0
def write_to_saved_input(): y = leaf() * 1.0; z = y * y; y += 1.0; z.sum().backward()
def write_to_saved_output(): y = (leaf() * 1.0).exp(); z = y + 0.0; y += 1.0; z.sum().backward()
def write_through_view_of_saved(): y = leaf() * 1.0; z = y * y; r = y[0]; r += 1.0; z.sum().backward()
def write_through_detached(): y = leaf() * 2.0; z = y * y; d = y.detach(); d += 1.0; z.sum().backward()
def freed(): z = (leaf() * leaf()).sum(); z.backward(); z.backward()
def backward_of_vector(): (leaf() * 2).backward()
def backward_of_constant(): zoo.ones(1).backward()
def wrong_gradient_shape(): (leaf() * 2).backward(zoo.ones(3))
def write_to_expanded(): y = zoo.zeros(1, 3).expand(2, 3); y += 1.0
def float_into_int(): y = zoo.zeros(3, dtype=zoo.int64); y += 1.5
def too_large_for_place(): y = zoo.zeros(3); y += zoo.zeros(2, 3)
def integer_gradient(): zoo.arange(3).requires_grad_()
def unused_input(): x, y = leaf(), leaf(); grad((x * 2).sum(), y)
def numpy_of_recorded(): leaf().numpy()
def out_with_gradient(): zoo.add(leaf(), 1.0, out=zoo.empty(3, 4, dtype=zoo.float64))
def stop_recording_inner(): (leaf() * 2).requires_grad_(False)


@pytest.mark.parametrize(
    "program, words",
    [
        (write_to_leaf, "leaf"),
        (write_to_leaf_view, "leaf"),
        (write_to_saved_input, "mul.*in ?place"),
        (write_to_saved_output, "exp.*in ?place"),
        (write_through_view_of_saved, "mul"),
        (write_through_detached, "mul"),
        (freed, "retain_graph"),
        (backward_of_vector, "scalar.*(3, 4)"),
        (backward_of_constant, "does not require"),
        (wrong_gradient_shape, r"\(3, 4\).*\(3,\)"),
        (write_to_expanded, "single memory location"),
        (float_into_int, "float32.*int64"),
        (too_large_for_place, "doesn't match the broadcast shape"),
        (integer_gradient, "floating"),
        (unused_input, "not used"),
        (numpy_of_recorded, "detach"),
        (out_with_gradient, "out="),
        (stop_recording_inner, "leaves"),
    ],
    ids=lambda p: getattr(p, "__name__", None),
)
def test_graph_errors(program, words):
    """torch's kind of error, which is also a ValueError or TypeError, with words that say what and where."""
    with pytest.raises(RuntimeError, match=words) as caught:
        program()
    assert isinstance(caught.value, (ValueError, TypeError))


def test_detect_anomaly_names_the_line():
    x = leaf()
    with zoo.autograd.detect_anomaly():
        y = (x * 0.0).sqrt() * 0.0          # derivative 0 * inf
        with pytest.raises(RuntimeError, match=r"sqrt.*test_autograd\.py:\d+"):
            y.sum().backward()


# --- the walk -------------------------------------------------------------------------------------
def test_100000_nodes_deep():
    x = zoo.ones(2, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]
    y = x
    for _ in range(100_000):
        y = y.tanh() * x
    del y                                    # freeing must not overflow the C stack either
    y = zoo.ones(5, requires_grad=True) * 1.0
    for _ in range(100_000):
        y = y[:]
    del y


def test_no_reference_cycles():
    gc.collect()
    gc.disable()
    try:
        x = zoo.ones(3, requires_grad=True)
        y = x.tanh() * x
        z = y[1:]
        dead = [weakref.ref(t) for t in (y, z, y.node)]
        leaf_ref = weakref.ref(x)
        y.sum().backward()
        del y, z
        assert all(r() is None for r in dead)
        del x
        assert leaf_ref() is None
    finally:
        gc.enable()


def test_saved_values_are_freed_as_backward_goes():
    x = zoo.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    loss = z.sum()
    kept = z.node
    assert kept.saved is not None
    loss.backward()
    assert kept.saved is None


def test_backward_twice_where_nothing_is_saved():
    x = zoo.ones(3, requires_grad=True)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_grad_prunes_and_keeps_grad_untouched():
    x, y = leaf(), leaf()
    gx, = grad((x * y).sum(), x)
    np.testing.assert_array_equal(gx.numpy(), X)
    assert x.grad is None and y.grad is None
    assert grad(x.sum(), [x, y], allow_unused=True)[1] is None
    assert (grad(x.sum(), [x, y], materialize_grads=True)[1] == 0).all()


def test_gradients_of_inner_tensors_hooks_and_retain_grad():
    x = leaf()
    y = x * 2
    y.retain_grad()
    seen = []
    handle = y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(g.shape))
    (y * 3).sum().backward()
    assert (x.grad == 60).all() and seen == [(3, 4)] and (y.grad == 30).all()
    handle.remove()
    x.grad = None
    y = x * 2
    (y * 3).sum().backward()
    assert (x.grad == 6).all()


def test_backward_inputs_only():
    x, y = leaf(), leaf()
    (x * y).sum().backward(inputs=[x])
    assert x.grad is not None and y.grad is None


def test_gradients_are_not_aliased():
    a, b = leaf(), leaf()
    (a + b).sum().backward()
    a.grad.zero_()
    assert (b.grad == 1).all() and a.grad.array.flags.writeable


def test_accumulation_is_in_place():
    x = leaf()
    x.sum().backward()
    held = x.grad
    x.sum().backward()
    assert held is x.grad and (held == 2).all()


def test_third_derivative():
    x = zoo.tensor(2.0, dtype=zoo.float64, requires_grad=True)
    y = x ** 4
    for want in (32.0, 48.0, 48.0):
        y, = grad(y, x, create_graph=True)
        assert float(y) == pytest.approx(want)


def test_create_graph_through_backward():
    x = zoo.tensor(3.0, requires_grad=True)
    (x ** 3).backward(create_graph=True)
    g, x.grad = x.grad, None
    g.backward()
    assert float(x.grad) == 18


# --- modes ----------------------------------------------------------------------------------------
def test_modes():
    x = leaf()
    with zoo.no_grad():
        assert not (x * 2).requires_grad
        with zoo.enable_grad():
            assert (x * 2).requires_grad
    with zoo.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    with zoo.inference_mode():
        assert zoo.is_inference_mode_enabled() and not (x * 2).requires_grad
    assert zoo.is_grad_enabled()

    @zoo.no_grad()
    def f():
        return x * 2

    @zoo.no_grad
    def g():
        return x * 2
    assert not f().requires_grad and not g().requires_grad


def test_leaf_update_under_no_grad():
    x = leaf()
    with zoo.no_grad():
        x -= 0.5
    np.testing.assert_allclose(x.detach().numpy(), X - 0.5)
    assert x.requires_grad and x.is_leaf


# --- custom functions -----------------------------------------------------------------------------
class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = zoo.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * y


class Split(Function):
    @staticmethod
    def forward(x, k):
        return x * k, x + k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.k + h, None


def test_function_of_any_order():
    x = zoo.from_numpy(X.copy()).requires_grad_()
    assert zoo.autograd.gradcheck(Exp.apply, (x,)) and zoo.autograd.gradgradcheck(Exp.apply, (x,))
    assert zoo.autograd.gradcheck(lambda x: Split.apply(x, 3.0), (x,))
    a, _ = Split.apply(x, 3.0)
    assert (grad(a.sum(), x)[0] == 3).all()


def test_function_notices_writes_and_freed_graphs():
    x = leaf()
    y = Exp.apply(x)
    y += 1.0
    with pytest.raises(RuntimeError, match="in place"):
        y.sum().backward()
    y = Exp.apply(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_gradcheck_finds_a_wrong_derivative():
    class Wrong(Exp):
        @staticmethod
        def backward(ctx, g):
            return g * 2
    x = leaf()
    with pytest.raises(RuntimeError, match="gradcheck"):
        zoo.autograd.gradcheck(Wrong.apply, (x,))
    assert not zoo.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)


def test_functional_transforms():
    f = lambda x: (x ** 3).sum()  # noqa: E731
    x, v = zoo.tensor([1.0, 2.0], dtype=zoo.float64), zoo.tensor([1.0, -1.0], dtype=zoo.float64)
    F = zoo.autograd.functional
    assert F.hessian(f, x).tolist() == [[6, 0], [0, 12]]
    assert F.hvp(f, x, v)[1].tolist() == [6, -12]
    assert F.jvp(lambda x: x * x, x, v)[1].tolist() == [2, -4]
    assert F.vjp(lambda x: x * x, x, v)[1].tolist() == [2, -4]


# --- sharing memory, pickle, NumPy ----------------------------------------------------------------
def test_numpy_and_dlpack_share_memory():
    a = np.zeros(3, np.float32)
    t = zoo.from_numpy(a)
    t[1] = 5
    assert a[1] == 5 and t.numpy() is a or np.shares_memory(t.numpy(), a)
    assert np.shares_memory(np.from_dlpack(t), a)
    assert np.shares_memory(zoo.from_dlpack(a).numpy(), a)
    assert (np.asarray(t) == a).all() and isinstance(a * t, Tensor)


def test_pickle_and_deepcopy():
    import copy
    x = zoo.ones(2, 3, dtype=zoo.bfloat16).t().requires_grad_()
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == x.dtype and y.requires_grad and (y == x).all()
    z = copy.deepcopy(leaf())
    assert z.is_leaf and z.requires_grad
    with pytest.raises(RuntimeError, match="leaf"):
        copy.deepcopy(leaf() * 2)


@pytest.mark.torch
@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.5],
        [1, 2],
        [True, False],
        [[1.0, 1e-5], [3.0, 1e10]],
        [],
        [float("nan"), float("inf"), 1.0],
        3.5,
        [0.0001, 0.001],
        [1e9, 1.5],
        [[[1.0], [2.0]]],
        list(range(2000)),
        [1e-10],
        [100000.0, 0.5],
    ],
    ids=lambda v: str(v)[:20],
)
def test_repr_as_torch(values):
    import torch
    assert repr(zoo.tensor(values)) == repr(torch.tensor(values)).replace("torch.", "zoo.")


def test_no_grad_of_one_thread_is_no_matter_of_another():
    x, inside, leave, recorded = zoo.ones(2, requires_grad=True), threading.Event(), threading.Event(), []

    def other():
        with zoo.no_grad():
            inside.set()
            leave.wait(10)
            recorded.append((x * 2).requires_grad)
        recorded.append((x * 2).requires_grad)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10) and (x * 2).requires_grad
    with zoo.no_grad():
        assert not (x * 2).requires_grad
        leave.set()
        thread.join(10)
        assert recorded == [False, True] and not (x * 2).requires_grad
    assert (x * 2).requires_grad and not PAUSED


def test_a_thread_that_ended_without_grad_changes_nothing():
    x = zoo.ones(2, requires_grad=True)
    thread = threading.Thread(target=zoo.set_grad_enabled, args=(False,))
    thread.start()
    thread.join(10)
    assert PAUSED and (x * 2).requires_grad
    PAUSED.clear()
