"""Functions, options and errors that few programs reach: each by what it promises, without a reference library."""

import collections
import copy
import pickle

import numpy as np
import pytest

import zoo
from zoo import nn
from zoo.nn import functional as F
from zoo.ops.errors import ArgumentError, DtypeError, GradError, ShapeError
from zoo.optim.swa_utils import AveragedModel
from zoo.train.recipe import in_steps

X = zoo.tensor([[1.0, 2.0], [3.0, 4.0]])


# -- printing

@pytest.fixture
def printing():
    yield zoo.set_printoptions
    zoo.set_printoptions(profile="default")


def test_print_options(printing):
    many, third = zoo.arange(1001), zoo.tensor([1 / 3, 20.0])
    assert "..." in repr(many) and repr(third) == "tensor([ 0.3333, 20.0000])"
    printing(profile="full")
    assert "..." not in repr(many)
    printing(profile="short")
    assert repr(many) == "tensor([   0,    1,  ...,  999, 1000])" and repr(third) == "tensor([ 0.33, 20.00])"
    printing(precision=1, threshold=5, edgeitems=1, profile="default")
    assert repr(zoo.arange(6)) == "tensor([0,  ..., 5])" and repr(third) == "tensor([ 0.3, 20.0])"
    printing(sci_mode=True)
    assert repr(third) == "tensor([3.3e-01, 2.0e+01])"
    printing(sci_mode=False, linewidth=20)
    assert repr(third.repeat(2)) == "tensor([ 0.3, 20.0,\n         0.3, 20.0])"
    with pytest.raises(ArgumentError, match="wants profile default, short, full, got 'long'"):
        printing(profile="long")


# -- tensors

def test_questions_to_a_tensor():
    assert [zoo.zeros(2, dtype=d).element_size() for d in (zoo.bool, zoo.bfloat16, zoo.float64)] == [1, 2, 8]
    assert 4 in X and 5 not in X
    assert not X.is_pinned() and copy.copy(X).tolist() == X.tolist()
    assert X.__dlpack_device__() == (1, 0)
    assert [0, 1, 2][zoo.tensor(2)] == 2 and range(zoo.tensor([3])) == range(3)
    with pytest.raises(TypeError, match="only integer tensors of one element can be an index"):
        [0, 1][zoo.tensor(1.0)]
    with pytest.raises(GradError, match="detach"):
        X.clone().requires_grad_().__dlpack__()


def test_nonzero_static_cuts_and_fills():
    x = zoo.tensor([[0, 1], [2, 3]])
    assert zoo.nonzero_static(x, size=2).tolist() == [[0, 1], [1, 0]]
    assert zoo.nonzero_static(x, size=4, fill_value=9).tolist() == [[0, 1], [1, 0], [1, 1], [9, 9]]
    with pytest.raises(ArgumentError, match="wants size >= 0, got -1"):
        zoo.nonzero_static(x, size=-1)


def test_sum_to_size_takes_back_what_broadcasting_added():
    assert zoo.ones(3, 2, 4).sum_to_size(2, 1).tolist() == [[12.0], [12.0]]
    assert zoo.ones(3, 2).sum_to_size((1, 2)).tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize("shape, dim", [((4, 3), None), ((3, 5), (0, 1)), ((2, 3, 4), (0, 2)), ((2, 3, 4), (-1, 1))])
@pytest.mark.parametrize("keepdim", [False, True])
def test_nuclear_norm(shape, dim, keepdim, rng):
    """Rank 2 at most: Newton's steps must leave singular values of 0 alone."""
    x = rng.standard_normal(shape)
    x[..., -1] = x[..., 0]
    axes = (0, 1) if dim is None else dim
    wanted = np.linalg.norm(x, "nuc", axis=axes, keepdims=keepdim)
    np.testing.assert_allclose(zoo.norm(zoo.tensor(x), "nuc", dim, keepdim).numpy(), wanted, rtol=1e-12)


def test_names_of_norms():
    with pytest.raises(ArgumentError, match="wants two dims of a matrix for 'nuc', got dim 0"):
        zoo.norm(X, "nuc", 0)
    with pytest.raises(ArgumentError, match="wants a number, 'fro' or 'nuc', got 'two'"):
        zoo.norm(X, "two")


@pytest.mark.parametrize("length", [100, 1000, 4099])
def test_long_running_products(length, rng):
    """In blocks where no compiler is: as in a row, also behind a 0, and where a block alone leaves float64."""
    x = rng.uniform(0.9, 1.1, (5, length)).astype(np.float32)
    x[1, length // 2] = 0
    x[2, length // 2:] = 1e38
    x[3, 0], x[3, length // 2:] = 0, 1e38
    x[4] = rng.choice([-1, 1], length)
    with np.errstate(over="ignore"):
        wanted = np.multiply.accumulate(x, axis=1, dtype=np.float64).astype(np.float32)
    np.testing.assert_allclose(zoo.from_numpy(x).cumprod(1).numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(zoo.from_numpy(x.T).cumprod(0).numpy(), wanted.T, rtol=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(7, 5), (3, 30), (24, 18)])
def test_antialias_is_pillows_filter(mode, size, rng):
    from PIL import Image
    image = rng.standard_normal((17, 19)).astype(np.float32)
    way = getattr(Image.Resampling, mode.upper())
    wanted = np.asarray(Image.fromarray(image).resize(size[::-1], way))
    found = F.interpolate(zoo.from_numpy(image)[None, None], size, mode=mode, antialias=True)[0, 0].numpy()
    np.testing.assert_allclose(found, wanted, atol=5e-6)        # two passes of sums in float32, of values up to 4


def test_out_takes_the_result():
    out = zoo.empty(0)
    assert zoo.add(X, X, out=out) is out and out.tolist() == [[2.0, 4.0], [6.0, 8.0]]
    with pytest.raises(ShapeError, match="out=: wants an output of shape"):
        zoo.add(X, X, out=zoo.empty(3))
    with pytest.raises(DtypeError, match="can't be cast to the desired output type int64"):
        zoo.add(X, X, out=zoo.zeros(2, 2, dtype=zoo.int64))


@pytest.mark.parametrize("call, message", [
    (lambda: zoo.arange(0, 3, -1), "arange"),
    (lambda: zoo.linspace(0, 1, -2), "linspace: number of steps must be non-negative, got -2"),
    (lambda: zoo.linspace(X, 1, 2), "linspace: start and end must be numbers or 0-d tensors"),
    (lambda: zoo.eye(-1), "eye: wants sizes of at least 0, got -1"),
    (lambda: zoo.tril_indices(-1, 2), "tril_indices: wants sizes of at least 0, got -1, 2"),
    (lambda: zoo.empty_permuted((2, 3), (0, 0)), "empty_permuted: wants each of the 2 dims once"),
    (lambda: zoo.frombuffer(b"abc", dtype=zoo.int32), "frombuffer"),
    (lambda: zoo.ones(2, dtype="float"), "dtype wants a zoo dtype such as zoo.float32, got 'float'"),
    (lambda: zoo.from_numpy(np.array(["a"])), "from_numpy: wants numbers or bools, got dtype <U1"),
    (lambda: zoo.ones(2).copy_(zoo.ones(3)), "copy_: a source of shape"),
    (lambda: zoo.ones(3).fill_diagonal_(1), "fill_diagonal_: wants a matrix, or more dims of equal size"),
])
def test_creation_says_what_it_wanted(call, message):
    with pytest.raises((ArgumentError, ShapeError, TypeError), match=message):
        call()


# -- modules

class Counting(nn.Module):
    """More than tensors in its state."""

    def __init__(self, calls=0):
        super().__init__()
        self.calls = calls

    def get_extra_state(self):
        return {"calls": self.calls}

    def set_extra_state(self, state):
        self.calls = state["calls"]


def test_extra_state_travels_with_the_tensors():
    net, other = (nn.Sequential(nn.Linear(1, 1), Counting(calls)) for calls in (5, 0))
    state = net.state_dict()
    assert state["1._extra_state"] == {"calls": 5}
    other.load_state_dict(state)
    assert other[1].calls == 5
    del state["1._extra_state"]
    with pytest.raises(RuntimeError, match="1._extra_state"):
        other.load_state_dict(state)
    assert other.load_state_dict(state, strict=False).missing_keys == ["1._extra_state"]


def test_submodules_by_path():
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))
    net.set_submodule("0.0", nn.ReLU())
    assert isinstance(net[0][0], nn.ReLU)
    with pytest.raises(AttributeError, match="has no module 'no' "):
        net.set_submodule("0.no", nn.ReLU(), strict=True)
    with pytest.raises(ValueError, match="wants a path and a Module, got '0.0' and int"):
        net.set_submodule("0.0", 3)
    with pytest.raises(AttributeError, match="get_parameter: ReLU has no parameter 'weight'"):
        net.get_parameter("0.0.weight")


def test_a_modules_tensors_change_their_type_together():
    net = nn.BatchNorm1d(2)
    for change, dtype in ((net.double, zoo.float64), (net.half, zoo.float16), (net.bfloat16, zoo.bfloat16),
                          (net.float, zoo.float32)):
        assert change() is net and net.weight.dtype == net.running_mean.dtype == dtype
        assert net.num_batches_tracked.dtype == zoo.int64
    assert net.type(zoo.float64).num_batches_tracked.dtype == zoo.float64, "all of them, as in torch"
    bias = net.bias
    assert net.to_empty(device="cpu").bias is bias and bias.shape == (2,)


@pytest.mark.parametrize("call, message", [
    (lambda m: m.train("no"), "train: wants a bool, got 'no'"),
    (lambda m: m.register_parameter("p", X), "wants a Parameter or None for 'p', got Tensor"),
    (lambda m: m.register_buffer("b", 3), "wants a Tensor or None for 'b', got int"),
    (lambda m: m.register_buffer(3, X), "wants a str as a name, got int"),
    (lambda m: setattr(m, "statistics", 3), "Linear.statistics: wants a Tensor or None, got int"),
    (lambda m: setattr(m, "weight", 3), "Linear.weight: wants a Parameter or None, got int"),
])
def test_modules_refuse(call, message):
    net = nn.Linear(1, 1)
    net.register_buffer("statistics", zoo.ones(1))
    with pytest.raises((TypeError, ValueError), match=message):
        call(net)


def test_a_module_must_be_begun_before_it_takes_parts():
    class Late(nn.Module):
        def __init__(self):
            self.part = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"Late: call super\(\).__init__\(\) before assigning to 'part'"):
        Late()


def test_hooks_see_and_change_keywords():
    class Scale(nn.Module):
        def forward(self, x, *, by=1.0):
            return x * by

    net, seen = Scale(), []
    before = net.register_forward_pre_hook(lambda m, args, options: (args, {"by": options["by"] + 1}), with_kwargs=True)
    net.register_forward_hook(lambda m, args, options, out: seen.append(options), with_kwargs=True)
    assert net(zoo.ones(1), by=2.0).item() == 3.0 and seen == [{"by": 3.0}]
    before.remove()
    net.register_forward_pre_hook(lambda m, args, options: args, with_kwargs=True)
    with pytest.raises(ValueError):
        net(zoo.ones(1), by=2.0)


def test_backward_hooks_change_gradients():
    net, x = nn.Linear(1, 1), zoo.ones(1, 1, requires_grad=True)
    nn.init.constant_(net.weight, 5.0)
    net.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 2,))
    net.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * outputs[0],))
    net(x).backward()
    assert x.grad.item() == 5.0 * 2 * 2 and net.weight.grad.item() == 2.0


@pytest.mark.parametrize("call, message", [
    (lambda: nn.init.calculate_gain("leaky_relu", "steep"), "wants a number as negative slope, got 'steep'"),
    (lambda: nn.init.eye_(zoo.ones(2)), "eye_: wants a 2-d tensor"),
    (lambda: nn.init.dirac_(zoo.ones(2, 2)), "dirac_: wants a 3-, 4- or 5-d tensor"),
    (lambda: nn.init.dirac_(zoo.ones(4, 2, 3), 3), "dirac_: wants groups that divide 4, got 3"),
    (lambda: nn.init.kaiming_normal_(zoo.ones(2, 2), mode="fan"), "wants mode 'fan_in' or 'fan_out', got 'fan'"),
    (lambda: nn.init.orthogonal_(zoo.ones(2)), "orthogonal_: wants at least 2 dimensions"),
    (lambda: nn.init.sparse_(zoo.ones(2, 2, 2), 0.1), "sparse_: wants a 2-d tensor"),
])
def test_initialisations_refuse(call, message):
    with pytest.raises((ValueError, ShapeError), match=message):
        call()


# -- training

def test_averages_by_a_function_of_ones_own():
    for option in ({"avg_fn": lambda average, value, n: average + (value - average) / (n + 1)},
                   {"multi_avg_fn": lambda averages, values, n: [a.mul_(n / (n + 1)).add_(v / (n + 1))
                                                                 for a, v in zip(averages, values, strict=True)]}):
        model = nn.Linear(1, 1)
        average = AveragedModel(model, **option)
        for value in (1.0, 2.0, 6.0):
            nn.init.constant_(model.weight, value)
            average.update_parameters(model)
        assert average.module.weight.item() == pytest.approx(3.0) and int(average.n_averaged) == 3
    with pytest.raises(ValueError, match="wants avg_fn or multi_avg_fn, got both"):
        AveragedModel(model, avg_fn=max, multi_avg_fn=max)


def test_an_optimizer_shows_its_groups_and_refuses():
    p = nn.Parameter(zoo.ones(1))
    optimizer = zoo.optim.SGD([p], lr=0.5)
    assert repr(optimizer).startswith("SGD (\nParameter Group 0\n") and "    lr: 0.5\n" in repr(optimizer)
    for group, message in (([p], "param_group must be a dict, but got list"), ({"params": {p}}, "ordered collections")):
        with pytest.raises(TypeError, match=message):
            optimizer.add_param_group(group)


def test_schedule_options_in_epochs_become_steps():
    assert in_steps([2, 0.5], 10) == [20, 5] and in_steps(0.001, 10) == 1


# -- data

Pair = collections.namedtuple("Pair", "x y")


def test_batches_keep_the_kinds_of_their_containers():
    batch = zoo.data.default_collate([Pair(1, 2.0), Pair(3, 4.0)])
    assert type(batch) is Pair and batch.x.tolist() == [1, 3] and batch.y.dtype == zoo.float64


def test_lengths_of_loaders_over_streams():
    """len of an IterableDataset that has one; the last short batch counts, or is dropped."""
    class Stream(zoo.data.IterableDataset):
        def __iter__(self):
            return iter(range(7))

        def __len__(self):
            return 7

    for drop, wanted in ((False, 3), (True, 2)):
        loader = zoo.data.DataLoader(Stream(), batch_size=3, drop_last=drop)
        assert len(loader) == wanted == len(list(loader))


# -- what has no tests of its own for being so short

def test_constants_that_scripts_ask_for():
    assert not zoo.jit.is_scripting() and not zoo.jit.is_tracing()
    assert zoo.backends.cuda.is_built() and not zoo.backends.mps.is_built()
    assert zoo.amp.GradScaler(enabled=False).is_enabled() is False
    assert isinstance(X, zoo.FloatTensor) and not isinstance(X, zoo.LongTensor)
    size = pickle.loads(pickle.dumps(X.shape))
    assert size == X.shape and type(size) is type(X.shape)


def test_bounds_of_parameters():
    from zoo.distributions import constraints
    x = zoo.tensor([-1.0, 0.0, 1.0])
    assert constraints.less_than(0.5).check(x).tolist() == [True, True, False]
    assert constraints.half_open_interval(0, 1).check(x).tolist() == [False, True, False]
    lower = constraints.lower_cholesky
    assert lower.check(zoo.eye(2)).item() and not lower.check(-zoo.eye(2)).item() and not lower.check(X).item()


def test_perplexity_of_a_fair_die():
    assert zoo.distributions.Categorical(zoo.ones(6)).perplexity().item() == pytest.approx(6)
