"""Wrong results found by comparing random programs with torch's, each reduced to the few lines that showed it."""
import pytest

import zoo
from zoo import nn
from zoo.nn import functional as F


def test_a_cast_to_integers_has_no_gradient():
    x = zoo.tensor([1.5, -2.5], requires_grad=True)
    assert not x.long().requires_grad and not x.to(zoo.bool).requires_grad
    (x * 3 + x.long()).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_the_result_of_a_division_may_be_changed_in_place():
    x = zoo.tensor([2.0, 4.0], requires_grad=True)
    y = 8 / x
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [-6.0, -1.5]


def test_a_write_to_an_empty_window_is_nothing():
    x = zoo.ones(2, 3, requires_grad=True)
    y = x * 2
    y[:0] = 5
    y[:, 1:1] *= 3
    y[:0].add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_erf_of_one_large_number():
    assert zoo.erf(zoo.tensor(6.0)).item() == 1.0


@pytest.mark.parametrize("name, sign", [("add", 1), ("sub", -1)])
def test_alpha_keeps_the_promoted_dtype(name, sign):
    half = zoo.ones(2, dtype=zoo.float16)
    y = getattr(zoo, name)(half, zoo.ones(2, dtype=zoo.int32), alpha=2.5)
    assert y.dtype == zoo.float16 and y.tolist() == [1 + sign * 2.5] * 2
    small = zoo.ones(2, dtype=zoo.uint8) * 5
    y = getattr(zoo, name)(small, zoo.tensor([True, False]), alpha=2)
    assert y.dtype == zoo.uint8 and y.tolist() == [5 + sign * 2, 5]


def test_bools_stay_bools():
    a, b = zoo.tensor([True, False, False]), zoo.tensor([False, True, False])
    assert zoo.add(a, b, alpha=2).dtype == zoo.bool
    assert zoo.heaviside(a, b).tolist() == [True, True, False]


@pytest.mark.parametrize("window", [lambda x: x.unfold(0, 2, 1), lambda x: x.as_strided((2, 2), (1, 1))])
def test_overlapping_windows_are_views(window):
    x = zoo.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    view = window(y)
    y.mul_(2)                                              # after the view was made
    (view * 3).sum().backward()
    assert view.tolist() == [[2, 4], [4, 6]] and x.grad.tolist() == [6, 12, 6]


def test_a_write_to_windows_reaches_the_base():
    x = zoo.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y.unfold(0, 1, 2).mul_(5)
    y.sum().backward()
    assert y.tolist() == [5, 2, 15] and x.grad.tolist() == [5, 1, 5]


def test_numpys_names_of_dim_and_keepdim():
    x = zoo.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert x.sum(axis=1).tolist() == [3, 8] and zoo.mean(x, axis=0, keepdims=True).tolist() == [[2, 3.5]]
    assert x.argmax(axis=0).tolist() == [1, 1] and x.amax(axis=1, keepdims=True).tolist() == [[2], [5]]
    assert zoo.cat([x, x], axis=1).shape == (2, 4) and x.max(axis=0).values.tolist() == [3, 5]
    with pytest.raises(TypeError):
        x.sum(axis=0, dim=0)
    with pytest.raises(TypeError):
        x.amax(axis=0, dim=0)


def test_swapaxes_by_name():
    assert zoo.ones(2, 3, 4).swapaxes(axis0=0, axis1=2).shape == (4, 3, 2)


def test_a_tensor_overwritten_as_a_whole_goes_on_to_require_grad():
    x = zoo.ones(3, requires_grad=True)
    for write in (lambda y: y.zero_(), lambda y: y.fill_(2.0), lambda y: y.copy_(zoo.ones(3))):
        y = x * 2
        write(y)
        assert y.requires_grad and y.grad_fn is not None
        (g,) = zoo.autograd.grad((y + x).sum(), x)
        assert g.tolist() == [1.0, 1.0, 1.0]


def test_equals_share_the_gradient_of_the_median():
    x = zoo.tensor([1.0, 2.0, 2.0, 3.0, 2.0], requires_grad=True)
    y = x.median()
    y.backward()
    assert y.item() == 2.0
    assert x.grad.numpy() == pytest.approx([0, 1 / 3, 1 / 3, 0, 1 / 3])
    assert zoo.tensor([1.0, float("nan")]).median().isnan()


def test_an_empty_list_of_dims_reduces_none():
    x = zoo.tensor([[1.0, 0.0], [2.0, 3.0]])
    assert x.all(dim=()).tolist() == x.any(dim=()).tolist() == [[True, False], [True, True]]


def test_the_square_of_bools_is_an_integer():
    y = zoo.square(zoo.tensor([True, False]))
    assert y.dtype == zoo.int64 and y.tolist() == [1, 0]


def test_functions_in_place():
    x = zoo.tensor([-1.0, 4.0])
    assert zoo.relu_(x) is x and x.tolist() == [0, 4]
    zoo.sqrt_(x)
    assert x.tolist() == [0, 2] and zoo.fill_(x, 7).tolist() == [7, 7]


def test_a_shape_is_a_size():
    shape = zoo.ones(2, 3, 4).shape
    assert isinstance(shape, zoo.Size) and shape == (2, 3, 4) and shape.numel() == 24
    assert isinstance(shape[1:], zoo.Size) and isinstance(shape[:1] + (5,), zoo.Size) and shape[-1] == 4
    assert zoo.ones(shape[1:]).reshape(*shape[1:]).view(shape[1:].numel()).size() == zoo.Size([12])


@pytest.mark.parametrize("exponent", [-3, -2, -1, 0, 1, 2, 3, 4, -1.5, 0.5])
@pytest.mark.parametrize("dtype", [zoo.float32, zoo.float64])
def test_powers_with_whole_negative_exponents_have_gradients(exponent, dtype):
    """A float tensor to a negative int: the derivative's exponent is an int too, and was refused as for integers."""
    x = zoo.tensor([0.5, 2.0, -3.0] if exponent == int(exponent) else [0.5, 2.0, 3.0], dtype=dtype, requires_grad=True)
    first, = zoo.autograd.grad((x**exponent).sum(), x, create_graph=True)
    second, = zoo.autograd.grad((first * first).sum() / 2, x)
    a, n = x.detach().numpy(), float(exponent)
    assert first.dtype == second.dtype == dtype
    assert first.detach().numpy() == pytest.approx(n * a ** (n - 1), rel=1e-5)
    assert second.numpy() == pytest.approx(n * a ** (n - 1) * n * (n - 1) * a ** (n - 2), rel=1e-5)


@pytest.mark.parametrize("ask", [lambda w: w.requires_grad_(), lambda w: setattr(w, "requires_grad", True)],
                         ids=["requires_grad_", "attribute"])
def test_a_view_that_asks_for_a_gradient_is_a_leaf(ask):
    """`zoo.linspace(...).view(2, 3).requires_grad_()`: a write to it was recorded, and its gradient lost."""
    w = zoo.linspace(-1, 1, 6).view(2, 3)
    ask(w)
    for write in (lambda: w.add_(1), lambda: w[0].mul_(2), lambda: w.view(-1).sub_(1), lambda: w.__setitem__(0, 1)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            write()
    with zoo.no_grad():
        w -= 1
        w[0] = 3
    (w * w)[0].sum().backward()
    assert w.is_leaf and w.grad.tolist() == [[6, 6, 6], [0, 0, 0]]


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_warn_of_targets_that_broadcast(name):
    loss = getattr(F, name)
    with pytest.warns(UserWarning, match=rf"{name}: the target's shape \(4,\) differs from the input's \(4, 1\)"):
        loss(zoo.ones(4, 1), zoo.ones(4))
    loss(zoo.ones(4, 1), zoo.ones(4, 1))


@pytest.mark.parametrize("value", [2.0, -0.1, float("nan")])
def test_binary_cross_entropy_refuses_what_is_no_probability(value):
    with pytest.raises(RuntimeError, match=r"wants input in \[0, 1\].*with_logits"):
        nn.BCELoss()(zoo.tensor([0.5, value]), zoo.ones(2))


def test_dtype_is_the_class_of_every_dtype():
    assert all(isinstance(d, zoo.dtype) for d in (zoo.float32, zoo.int64, zoo.bfloat16, zoo.bool, zoo.ones(1).dtype))


def test_transpose_in_place_takes_keywords():
    x = zoo.ones(2, 3).unsqueeze_(dim=0)
    assert x.transpose_(dim0=0, dim1=2).shape == (3, 2, 1)


def test_negative_numbers_wrap_in_unsigned_tensors():
    """torch's rule for `x[i] = -2`, full and pad: from the end; what has no place at all is refused."""
    x = zoo.zeros(3, dtype=zoo.uint8)
    x[0] = -2
    assert x.tolist() == [254, 0, 0] and zoo.full((2,), -1, dtype=zoo.uint8).tolist() == [255, 255]
    assert zoo.nn.functional.pad(x, (1, 0), value=-1).tolist() == [255, 254, 0, 0]
    for wrong in (lambda: x.fill_(300), lambda: x.__setitem__(0, -300), lambda: zoo.full((2,), 1e9, dtype=zoo.int8)):
        with pytest.raises(RuntimeError, match="overflow"):
            wrong()


def test_sorted_search_takes_two_dtypes():
    assert zoo.searchsorted(zoo.tensor([1, 3, 5]), zoo.tensor([2.5, 3.0])).tolist() == [1, 1]


def test_logit_outside_of_the_unit_interval():
    x = zoo.tensor([-0.5, 0.25, 1.5], requires_grad=True)
    x.logit().sum().backward()
    assert x.grad.isnan().tolist() == [True, False, True] and x.grad[1].item() == pytest.approx(16 / 3)


def test_heaviside_names_a_number():
    with pytest.raises(TypeError, match="heaviside"):
        zoo.heaviside(zoo.ones(2), 1.0)


@pytest.mark.parametrize("dtype", [zoo.float64, zoo.float16, zoo.bfloat16])
def test_the_mean_of_a_bag_has_the_dtype_of_the_table(dtype):
    table = zoo.tensor([[1.0], [2.0], [4.0]], dtype=dtype)
    y = F.embedding_bag(zoo.tensor([[0, 1], [2, 2]]), table, mode="mean")
    assert y.dtype == dtype and y.tolist() == [[1.5], [4]]


@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_batch_of_nothing_leaves_the_running_statistics(momentum):
    norm = nn.BatchNorm2d(2, momentum=momentum)
    assert norm(zoo.zeros(0, 2, 3, 3)).shape == (0, 2, 3, 3)
    assert norm.running_mean.tolist() == [0, 0] and norm.running_var.tolist() == [1, 1]
    assert norm.num_batches_tracked.item() == 1


def test_dropout_that_drops_nothing_gives_back_its_input():
    x = zoo.ones(3, requires_grad=True)
    for name in ("Dropout", "Dropout2d", "Dropout3d"):
        assert getattr(nn, name)(0.0, inplace=True)(x) is x and getattr(nn, name)(0.5).eval()(x) is x
    assert nn.FeatureAlphaDropout(1.0, inplace=True)(x).tolist() == [0, 0, 0] and x.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError):
        nn.Dropout2d(0.5)(x)


def test_the_mean_over_no_probabilities():
    assert F.cross_entropy(zoo.zeros(0, 3), zoo.zeros(0, 3)).isnan()
    with pytest.raises(RuntimeError):
        F.cross_entropy(zoo.zeros(2, 3), zoo.zeros(2, 3), ignore_index=1)


def test_a_group_of_one_value_has_no_variance():
    with pytest.raises(ValueError):
        nn.GroupNorm(3, 3)(zoo.ones(1, 3))
    assert nn.GroupNorm(3, 3)(zoo.ones(2, 3)).tolist() == [[0, 0, 0]] * 2


def test_ldexp_keeps_the_floating_dtype():
    half, whole = zoo.tensor([1.5], dtype=zoo.float16), zoo.tensor([3])
    assert zoo.ldexp(half, whole).dtype == zoo.float16 and zoo.ldexp(half, whole).tolist() == [12]
    assert zoo.ldexp(zoo.tensor(1.0, dtype=zoo.float64), whole).dtype == zoo.float64
    assert zoo.ldexp(whole, whole).dtype == zoo.float32
    assert zoo.ldexp(zoo.tensor([2.0 ** -14], dtype=zoo.float16), zoo.tensor([17])).tolist() == [8]


def test_scattering_bools_and_scattering_nothing():
    yes, no, first = zoo.tensor([True]), zoo.tensor([False]), zoo.tensor([0])
    assert not yes.scatter_reduce(0, first, no, "amax", include_self=False)
    assert no.scatter_reduce(0, first, yes, "amin", include_self=False)
    x, none = zoo.ones(3, 2), zoo.zeros(0, dtype=zoo.int64)
    assert x.index_reduce(0, none, zoo.ones(0, 2), "prod").tolist() == x.tolist()
    with pytest.raises(IndexError):
        x.index_put((), x)
    with pytest.raises(RuntimeError):
        whole = zoo.tensor([5, 6])
        whole.index_add(0, zoo.tensor([0]), zoo.tensor([3]), alpha=0.5)


@pytest.mark.parametrize("call", [
    lambda x: x @ 2, lambda x: 2 @ x, lambda x: F.linear(x, None), lambda x: F.linear([1.0], x),
    lambda x: x.gather(0, 1), lambda x: zoo.gcd(x.long(), 2), lambda x: nn.LayerNorm(2)(None)])
@pytest.mark.parametrize("grad", [True, False])
def test_what_is_no_tensor_is_named(call, grad):
    with pytest.raises(TypeError, match="wants (a )?tensors?"):
        call(zoo.ones(2, 2, requires_grad=grad))


@pytest.mark.parametrize("copy", [
    lambda x: x.repeat(3, 1), lambda x: x.repeat(1, 1), lambda x: x.tile(2, 1), lambda x: x[0, 0].repeat(2),
    lambda x: x[0, 0].median(0).values, lambda x: x[0, 0].mode().values, lambda x: zoo.diff(x, n=0),
    lambda x: x[:, ::2].ravel(), lambda x: F.pixel_shuffle(x.reshape(4, 1, 1)[:4], 2),
    lambda x: F.channel_shuffle(x.reshape(1, 4, 1), 1)])
def test_a_copy_shares_no_memory(copy):
    x = zoo.tensor([[1.0, 2.0, 3.0, 4.0]])
    y = copy(x)
    before = y.tolist()
    x.add_(10)
    assert y.tolist() == before
    y.add_(1)
    assert x.tolist() == [[11, 12, 13, 14]]


def test_what_was_transposed_in_place_is_not_what_was_saved():
    x, w = zoo.ones(2, 2, requires_grad=True), zoo.ones(2, 2, requires_grad=True)
    y = x * zoo.tensor([[1.0, 2.0], [3.0, 4.0]])
    z = y * w
    y.t_()
    with pytest.raises(RuntimeError, match="in place"):
        z.sum().backward()


@pytest.mark.parametrize("turn", [
    lambda x: x.t_(), lambda x: x.transpose_(0, 1), lambda x: x.unsqueeze_(1),
    lambda x: x.t_().unsqueeze_(0).squeeze_()])
@pytest.mark.parametrize("write", [False, True])
def test_a_view_outlives_the_shape_of_its_base(turn, write):
    a = zoo.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    x = a * 1
    row = x[0]
    turn(x)
    if write:
        x.mul_(3)
        row += 1
    (row * row).sum().backward()
    scale, shift = (3, 1) if write else (1, 0)
    assert row.tolist() == [scale + shift, 2 * scale + shift]
    assert a.grad.tolist() == [[2 * scale * (scale + shift), 2 * scale * (2 * scale + shift)], [0, 0]]


def test_weighted_huber_losses_and_negative_probabilities():
    x, y, weight = zoo.tensor([1.0, 2.0]), zoo.tensor([1.5, 0.0]), zoo.tensor([4.0, 1.0])
    assert F.huber_loss(x, y, weight=weight).item() == (0.125 * 4 + 1.5) / 2
    assert F.mse_loss(x, y, weight=weight).item() == (0.25 * 4 + 4) / 5
    divergence = F.kl_div(zoo.zeros(3), zoo.tensor([-1.0, 0.0, 1.0]), reduction="none")
    assert divergence.isnan().tolist() == [True, False, False]


def test_no_grad_around_a_generator_ends_while_it_waits():
    @zoo.no_grad()
    def walk():
        got = yield zoo.is_grad_enabled()
        try:
            yield got
        except KeyError:
            yield zoo.is_grad_enabled()
        return "end"

    steps = walk()
    assert next(steps) is False and zoo.is_grad_enabled()
    assert steps.send(5) == 5 and steps.throw(KeyError()) is False and zoo.is_grad_enabled()
    with pytest.raises(StopIteration, match="end"):
        next(steps)


class Doubled(zoo.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_a_custom_function_writes_to_a_view():
    x = zoo.tensor([[2.0, 3.0], [4.0, 5.0]], requires_grad=True)
    y = x * 1
    row = Doubled.apply(y[0])
    (y * y).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [[16, 24], [8, 10]]
    (g,) = zoo.autograd.grad((row * row).sum(), x)
    assert g.tolist() == [[16, 24], [0, 0]]
    with pytest.raises(RuntimeError, match="leaf"):
        Doubled.apply(x)


def test_a_custom_function_asks_for_none_instead_of_zeros():
    seen = []

    class Two(zoo.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g is None, h is None))
            return (g if h is None else h), *((g,) if too_many else ())

    x, too_many = zoo.ones(2, requires_grad=True), False
    Two.apply(x)[0].sum().backward()
    Two.apply(x)[1].sum().backward()
    assert seen == [(False, True), (True, False)]
    too_many = True
    with pytest.raises(RuntimeError, match="gradients"):
        Two.apply(x)[0].sum().backward()


def test_a_part_of_an_expanded_view_is_not_written_to():
    x = zoo.ones(3).expand(2, 3)
    for write in (lambda: x[0].add_(1), lambda: x[0].copy_(zoo.zeros(3)), lambda: x.add_(1)):
        with pytest.raises(RuntimeError, match="clone"):
            write()


def test_a_write_through_a_view_of_what_was_transposed_in_place():
    x, y = zoo.ones(2, 3, requires_grad=True), zoo.ones(2, 3, 1, requires_grad=True)
    z = x * 1
    view = z.unsqueeze(-1)
    z.transpose_(0, 1)
    view.copy_(y * zoo.arange(6.0).reshape(2, 3, 1))
    z.sum().backward()
    assert z.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.grad.tolist() == [[0, 0, 0]] * 2 and y.grad.flatten().tolist() == [0, 1, 2, 3, 4, 5]


def test_a_copy_of_a_result_has_a_node_of_its_own():
    a = zoo.tensor([-0.0, 2.0], requires_grad=True)
    y, x, z = a * 2, zoo.zeros(2), zoo.zeros(2)
    x.copy_(y)
    z.copy_(a)
    assert z.signbit().tolist() == [True, False]                # a leaf's copy is not a + 0
    for t in (x, y, z):
        t.retain_grad()
    x.register_hook(lambda g: g * 10)
    (x * 3 + y * 5 + z * 7).sum().backward()
    assert [t.grad.tolist() for t in (x, y, z, a)] == [[30, 30], [35, 35], [7, 7], [77, 77]]


def test_a_retained_gradient_is_that_of_the_latest_version():
    a = zoo.tensor([1.0, 2.0], requires_grad=True)
    y = a * 2
    y.retain_grad()
    y.mul_(a).retain_grad()
    y[0] = a[1] * 5
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3, 3] and a.grad.tolist() == [0, 39]
    z = a * 1
    view = z[:1]
    view.retain_grad()
    view.mul_(4)
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3]


def test_a_hook_can_be_removed_after_retain_grad():
    y = zoo.ones(2, requires_grad=True) * 2
    handle = y.register_hook(lambda g: g * 10)
    y.retain_grad()
    handle.remove()
    y.sum().backward()
    assert y.grad.tolist() == [1, 1]


def test_a_window_of_zeros_has_no_slope_in_norm_pooling():
    x = zoo.tensor([[0.0, 0.0, 3.0, 4.0]], requires_grad=True)
    F.lp_pool1d(x, 2, 2).sum().backward()
    assert [round(g, 6) for g in x.grad[0].tolist()] == [0, 0, 0.6, 0.8]


def test_rrelu_has_the_slope_of_its_negative_side_at_zero():
    x = zoo.zeros(1, requires_grad=True)
    F.rrelu(x, 0.5, 0.5, training=True).backward()
    assert x.grad.tolist() == [0.5]


def test_no_warning_of_numpy_leaves_a_derivative():
    x = zoo.zeros(1, 1, requires_grad=True)
    (x * zoo.zeros(1, 1)).backward(zoo.full((1, 1), float("inf")))      # warnings are errors here
    assert x.grad.isnan().all()
