"""Wrong results of losses, gradients and batches found by comparing random calls with torch's, each in a few lines."""
import numpy as np
import pytest

import zoo
from zoo.data import Subset, TensorDataset, default_collate
from zoo.nn import functional as F

nan, inf = float("nan"), float("inf")


@pytest.mark.parametrize("loss", [F.huber_loss, F.smooth_l1_loss])
def test_the_slope_of_nan_is_nan(loss):
    x = zoo.tensor([nan, 3.0, 0.5], requires_grad=True)
    loss(x, zoo.zeros(3), reduction="sum").backward()
    assert x.grad[0].isnan() and x.grad[1:].tolist() == [1.0, 0.5]


def test_equal_scores_are_ranked_apart_without_a_margin():
    a, b = zoo.zeros(1, requires_grad=True), zoo.zeros(1, requires_grad=True)
    F.margin_ranking_loss(a, b, zoo.ones(1)).backward()
    assert (a.grad.item(), b.grad.item()) == (-1.0, 1.0)


def test_soft_margin_loss_of_a_sure_score_is_zero():
    assert F.soft_margin_loss(zoo.tensor([inf, 1e4]), zoo.ones(2), reduction="none").tolist() == [0.0, 0.0]


def test_an_ignored_row_may_be_nan_under_weights_and_smoothing():
    x = zoo.tensor([[nan, 1.0], [0.0, 0.0]], requires_grad=True)
    loss = F.cross_entropy(x, zoo.tensor([-100, 1]), zoo.ones(2), label_smoothing=0.2)
    assert abs(loss.item() - 0.693147) < 1e-5


def test_a_value_that_does_not_fit_a_place_given_by_a_tensor():
    x, values = zoo.zeros(1, 2, 3), zoo.ones(2, 4)
    for write in (lambda: x.__setitem__(zoo.tensor(0), values), lambda: x.index_put((zoo.tensor(-1),), values)):
        with pytest.raises(RuntimeError, match="expand"):
            write()


def test_a_gradient_set_by_hand_is_like_its_tensor():
    x = zoo.ones(2, requires_grad=True)
    for wrong in (zoo.ones(3), zoo.ones(2, dtype=zoo.float64), x):
        with pytest.raises(RuntimeError, match="grad"):
            x.grad = wrong
    for wrong in (5, [1.0, 2.0]):
        with pytest.raises(TypeError, match="grad"):
            x.grad = wrong
    x.grad = own = zoo.ones(2)
    (x * 3).sum().backward()
    assert x.grad is own and own.tolist() == [4.0, 4.0]
    del x.grad
    assert x.grad is None


@pytest.mark.parametrize("change, error", [
    (lambda g: 5, TypeError), (lambda g: g[:1], RuntimeError), (lambda g: g.double(), RuntimeError)])
def test_what_a_hook_gives_is_like_the_gradient(change, error):
    x = zoo.ones(2, requires_grad=True)
    x.register_hook(change)
    with pytest.raises(error, match="register_hook"):
        (x * 2).sum().backward()


def test_inputs_of_a_backward_pass():
    x, y = zoo.ones(1, requires_grad=True), zoo.ones(1)
    for inputs in ([], [y], [x, y]):
        with pytest.raises(RuntimeError, match="inputs"):
            (x * 2).backward(inputs=inputs)
    with pytest.raises(ValueError, match="materialize_grads"):
        zoo.autograd.grad(x * 2, x, materialize_grads=True, allow_unused=False)


def test_a_batch_of_samples_that_do_not_fit_together():
    for batch in ([zoo.ones(2), zoo.ones(3)], [np.ones(2), np.ones(3)], [[1], [1, 2]]):
        with pytest.raises(RuntimeError, match="default_collate"):
            default_collate(batch)
    for batch in ([np.array("text")], [np.array([None])]):
        with pytest.raises(TypeError, match="default_collate"):
            default_collate(batch)
    assert [default_collate(b).dtype for b in ([1, 2.5], [2.5, 1], [True, False])] == [
        zoo.float32, zoo.float64, zoo.bool]


def test_a_subset_takes_a_list_of_places():
    assert Subset(TensorDataset(zoo.arange(5)), [4, 2, 0])[[0, 2]][0].tolist() == [4, 0]
