"""Schedulers and averages of weights: torch's learning rates, step by step, and torch's averages."""

import copy

import numpy as np
import pytest

import zoo
from zoo.nn import Parameter
from zoo.optim import SGD, Adam, lr_scheduler, swa_utils

STEPS = 60
ROWS = [  # scheduler, options
    ("StepLR", {"step_size": 7}),
    ("StepLR", {"step_size": 1, "gamma": 0.97}),
    ("MultiStepLR", {"milestones": [3, 10, 10, 41], "gamma": 0.5}),
    ("ConstantLR", {}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 20}),
    ("ConstantLR", {"factor": 1.0, "total_iters": 0}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 0.01, "end_factor": 0.7, "total_iters": 33}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 50}),
    ("ExponentialLR", {"gamma": 0.93}),
    ("PolynomialLR", {}),
    ("PolynomialLR", {"total_iters": 45, "power": 2.3}),
    ("CosineAnnealingLR", {"T_max": 60}),
    ("CosineAnnealingLR", {"T_max": 11, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 7}),
    ("CosineAnnealingWarmRestarts", {"T_0": 5, "T_mult": 2, "eta_min": 0.003}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 8}),
    ("CyclicLR", {"base_lr": [0.01, 0.02], "max_lr": [0.3, 0.1], "step_size_up": 5, "step_size_down": 9,
                  "mode": "triangular2", "base_momentum": [0.7, 0.6]}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 6, "mode": "exp_range", "gamma": 0.95,
                  "cycle_momentum": False}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 6, "scale_fn": lambda x: 1 / (x + 1),
                  "scale_mode": "iterations"}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 60}),
    ("OneCycleLR", {"max_lr": [0.5, 0.1], "epochs": 6, "steps_per_epoch": 10, "anneal_strategy": "linear"}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 61, "three_phase": True, "pct_start": 0.4, "div_factor": 5.0,
                    "final_div_factor": 100.0, "base_momentum": 0.6, "max_momentum": [0.9, 0.8]}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 70, "cycle_momentum": False}),
    ("LambdaLR", {"lr_lambda": lambda step: 0.9**step}),
    ("LambdaLR", {"lr_lambda": [lambda step: 1 / (step + 1), lambda step: 0.5]}),
    ("MultiplicativeLR", {"lr_lambda": lambda step: 0.99 if step % 2 else 1.005}),
    ("SWALR", {"swa_lr": 0.05}),
    ("SWALR", {"swa_lr": [0.05, 0.5], "anneal_epochs": 25, "anneal_strategy": "linear"}),
    ("SWALR", {"swa_lr": 0.05, "anneal_epochs": 0}),
]
rows = pytest.mark.parametrize("name, options", ROWS, ids=[f"{n}-{'-'.join(o)}" for n, o in ROWS])
METRICS = [1.0, 0.9, 0.9, 0.95, 0.8999, 0.91, 0.5, 0.6, 0.55, 0.7, 0.52, 0.51, 0.4999, 0.7, 0.3] * 4


def optimizer_of(lib, betas=False):
    """Two groups, with momentum or betas."""
    parameter = lib.nn.Parameter
    groups = [{"params": [parameter(lib.ones(1))]}, {"params": [parameter(lib.ones(1))], "lr": 0.02}]
    return lib.optim.Adam(groups, lr=0.1) if betas else lib.optim.SGD(groups, lr=0.1, momentum=0.9)


def class_of(lib, name):
    return getattr(lib.optim.swa_utils if name == "SWALR" else lib.optim.lr_scheduler, name)


def settings(optimizer):
    """lr and momentum or beta1 of every group."""
    return [(float(g["lr"]), g["betas"][0] if "betas" in g else g["momentum"]) for g in optimizer.param_groups]


def walk(lib, optimizer, scheduler, steps):
    seen = []
    for _ in range(steps):
        seen.append([settings(optimizer), list(zip(map(float, scheduler.get_last_lr()), strict=True))])
        optimizer.step()
        scheduler.step()
    return seen


def equal(ours, theirs):
    for mine, wanted in zip(ours, theirs, strict=True):
        for a, b in zip(mine, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.torch
@rows
def test_schedules_are_torchs(name, options):
    torch = pytest.importorskip("torch")
    walks = []
    for lib in (zoo, torch):
        optimizer = optimizer_of(lib, betas=name == "OneCycleLR" and "epochs" in options)
        walks.append(walk(lib, optimizer, class_of(lib, name)(optimizer, **options), STEPS))
    equal(*walks)


@rows
def test_schedules_resume(name, options, tmp_path):
    """state_dict of both after 23 steps, saved and loaded into new ones, goes on to the same numbers, bit for bit."""
    optimizer = optimizer_of(zoo)
    scheduler = class_of(zoo, name)(optimizer, **options)
    walk(zoo, optimizer, scheduler, 23)
    zoo.save({"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, tmp_path / "state")
    rest = walk(zoo, optimizer, scheduler, 30)
    again = optimizer_of(zoo)
    resumed = class_of(zoo, name)(again, **options)
    saved = zoo.load(tmp_path / "state")
    again.load_state_dict(saved["optimizer"])
    resumed.load_state_dict(saved["scheduler"])
    assert walk(zoo, again, resumed, 30) == rest


@pytest.mark.torch
@pytest.mark.parametrize("name, options", [r for r in ROWS if r[0] not in ("CyclicLR", "OneCycleLR", "SWALR")])
def test_steps_to_an_epoch(name, options):
    """step(epoch) of the closed forms, forward and back, and constructing at last_epoch."""
    torch = pytest.importorskip("torch")
    seen = []
    for lib in (zoo, torch):
        optimizer = optimizer_of(lib)
        scheduler = class_of(lib, name)(optimizer, **options)
        lrs = []
        for epoch in (4, 5, 3, 40, 12):
            optimizer.step()
            with pytest.warns(UserWarning) if lib is torch and "Warm" not in name else open("/dev/null"):
                scheduler.step(epoch)
            lrs.append([scheduler.get_last_lr()])
        resumed = class_of(lib, name)(optimizer, last_epoch=5, **options)
        seen.append([*lrs, [resumed.get_last_lr()]])
    equal(*seen)


COMBINATIONS = {
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
    "chained three": lambda s, o: s.ChainedScheduler(
        [s.LinearLR(o, 0.2, total_iters=9), s.CosineAnnealingLR(o, 30), s.StepLR(o, 10)], optimizer=o),
    "sequential": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1), s.ExponentialLR(o, 0.9)], [4]),
    "warm-up": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.01, total_iters=8), s.CosineAnnealingLR(o, 50)], [8]),
    "three": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o), s.CosineAnnealingWarmRestarts(o, 6), s.PolynomialLR(o, 20)], [5, 30]),
    "from the second": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o), s.StepLR(o, 7)], [0]),
    "nested": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.LinearLR(o), s.ExponentialLR(o, 0.9)]), s.StepLR(o, 9)], [20]),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", COMBINATIONS)
def test_combinations_are_torchs(name):
    torch = pytest.importorskip("torch")
    make, walks = COMBINATIONS[name], []
    for lib in (zoo, torch):
        optimizer = optimizer_of(lib)
        walks.append(walk(lib, optimizer, make(lib.optim.lr_scheduler, optimizer), STEPS))
    equal(*walks)


@pytest.mark.parametrize("name", COMBINATIONS)
def test_combinations_resume(name):
    make = COMBINATIONS[name]
    optimizer, again = optimizer_of(zoo), optimizer_of(zoo)
    scheduler, resumed = make(lr_scheduler, optimizer), make(lr_scheduler, again)
    walk(zoo, optimizer, scheduler, 13)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    resumed.load_state_dict(copy.deepcopy(scheduler.state_dict()))
    assert walk(zoo, again, resumed, 30) == walk(zoo, optimizer, scheduler, 30)


def test_warm_up_is_linear_then_the_scheduler():
    """From 1% in a line in 10 steps, then exactly what the scheduler gives by itself."""
    alone, warmed = optimizer_of(zoo), optimizer_of(zoo)
    reference = lr_scheduler.CosineAnnealingLR(alone, 40)
    scheduler = lr_scheduler.warm_up(lr_scheduler.CosineAnnealingLR(warmed, 40), steps=10)
    seen = [lrs for lrs, _ in walk(zoo, warmed, scheduler, 40)]
    wanted = [lrs for lrs, _ in walk(zoo, alone, reference, 30)]
    rise = [[(base * (0.01 + 0.99 * k / 10), 0.9) for base in (0.1, 0.02)] for k in range(10)]
    np.testing.assert_allclose(seen, [*rise, *wanted], rtol=1e-12)
    chained = optimizer_of(zoo)
    poly = lr_scheduler.warm_up(lr_scheduler.ConstantLR(chained, 0.5, 5), steps=2, start_factor=0.5)
    np.testing.assert_allclose([x[0][0][0] for x in walk(zoo, chained, poly, 8)],
                               [0.05, 0.075, *[0.05] * 5, 0.1], rtol=1e-12)
    with pytest.raises(ValueError, match="1 step or more"):
        lr_scheduler.warm_up(reference, steps=0)


@pytest.mark.torch
@pytest.mark.parametrize("options", [
    {}, {"patience": 1, "factor": 0.5}, {"patience": 1, "mode": "max", "cooldown": 2},
    {"patience": 0, "threshold": 0.05, "threshold_mode": "abs", "min_lr": [0.01, 0.001]},
    {"patience": 1, "mode": "max", "threshold_mode": "abs", "min_lr": 0.03},
    {"patience": 1, "eps": 0.005, "cooldown": 1}])
def test_plateau_is_torchs(options):
    """Learning rates, the best metric and the counters over 60 metrics; resumed on our side after 20."""
    torch = pytest.importorskip("torch")
    optimizers = [optimizer_of(lib) for lib in (zoo, torch)]
    mine, wanted = (lib.optim.lr_scheduler.ReduceLROnPlateau(o, **options)
                    for lib, o in zip((zoo, torch), optimizers, strict=True))
    for k, metric in enumerate(METRICS):
        if k == 20:
            state = copy.deepcopy(mine.state_dict())
            mine = lr_scheduler.ReduceLROnPlateau(optimizers[0])
            mine.load_state_dict(state)
        mine.step(zoo.tensor(metric, dtype=zoo.float64))
        wanted.step(torch.tensor(metric, dtype=torch.float64))
        equal([[mine.get_last_lr(), settings(optimizers[0])]], [[wanted.get_last_lr(), settings(optimizers[1])]])
        for name in ("best", "num_bad_epochs", "cooldown_counter", "last_epoch"):
            assert getattr(mine, name) == getattr(wanted, name)


def test_tensor_learning_rates_and_late_groups():
    """A Tensor lr is written in place; a group added later keeps its lr where the schedule goes by initial ones."""
    lr = zoo.tensor(0.5, dtype=zoo.float64)
    optimizer = SGD([Parameter(zoo.ones(1))], lr=lr)
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    optimizer.add_param_group({"params": [Parameter(zoo.ones(1))], "lr": 0.3})
    scheduler.step()
    assert lr.item() == 0.25 and optimizer.param_groups[0]["lr"] is lr
    assert scheduler.get_last_lr() == [0.25, 0.3]


class Halves:
    """A callable object, whose attributes are state."""

    def __init__(self):
        self.calls = 0

    def __call__(self, step):
        self.calls += 1
        return 0.5**step


def test_callable_objects_are_saved():
    for make, name in ((lambda o, f: lr_scheduler.LambdaLR(o, f), "lr_lambda"),
                       (lambda o, f: lr_scheduler.CyclicLR(o, 0.1, 1.0, 4, scale_fn=f), "scale_fn")):
        first, second, optimizer = Halves(), Halves(), SGD([Parameter(zoo.ones(1))], lr=1.0, momentum=0.9)
        scheduler = make(optimizer, first)
        scheduler.step()
        again = make(optimizer, second)
        again.load_state_dict(scheduler.state_dict())
        assert second.calls == first.calls > 1, name


@pytest.mark.parametrize("call, kind, words", [
    (lambda o: lr_scheduler.StepLR(3, 1), TypeError, "StepLR: wants an Optimizer, got int"),
    (lambda o: lr_scheduler.StepLR(o, 1, last_epoch=3), KeyError, "initial_lr"),
    (lambda o: lr_scheduler.LambdaLR(o, [abs] * 3), ValueError, "2, one per group, got 3"),
    (lambda o: lr_scheduler.MultiplicativeLR(o, 0.5), TypeError, "functions, got float"),
    (lambda o: lr_scheduler.ConstantLR(o, 1.5), ValueError, "factor between 0 and 1, got 1.5"),
    (lambda o: lr_scheduler.LinearLR(o, 0.0), ValueError, "start_factor above 0"),
    (lambda o: lr_scheduler.LinearLR(o, 1.0, 2.0), ValueError, "end_factor"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0 wants a positive integer, got 0"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2).step(-1), ValueError, "epoch of 0 or more"),
    (lambda o: lr_scheduler.CyclicLR(o, 0.1, 1.0, mode="square"), ValueError, "mode wants"),
    (lambda o: lr_scheduler.CyclicLR(zoo.optim.Adagrad([Parameter(zoo.ones(1))]), 0.1, 1.0), ValueError, "momentum"),
    (lambda o: lr_scheduler.OneCycleLR(o, 1.0), ValueError, "total_steps"),
    (lambda o: lr_scheduler.OneCycleLR(o, 1.0, 10, pct_start=2.0), ValueError, "pct_start"),
    (lambda o: lr_scheduler.OneCycleLR(o, 1.0, 10, anneal_strategy="up"), ValueError, "anneal_strategy"),
    (lambda o: [lr_scheduler.OneCycleLR(o, 1.0, 1).step(k) for k in range(3)], ValueError,
     "at most 1 steps, got step 2"),
    (lambda o: lr_scheduler.SequentialLR(o, [], []), ValueError, "at least one"),
    (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 1)], [1]), ValueError, "0 milestones for 1"),
    (lambda o: lr_scheduler.ChainedScheduler([3]), TypeError, "got int at index 0"),
    (lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(o)]), ValueError, "metric"),
    (lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(o, 1), lr_scheduler.StepLR(optimizer_of(zoo), 1)]),
     ValueError, "another optimizer"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0), ValueError, "below 1"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, mode="up"), ValueError, "mode wants"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "threshold_mode"),
    (lambda o: swa_utils.SWALR(o, 0.1, anneal_strategy="x"), ValueError, "anneal_strategy"),
    (lambda o: swa_utils.SWALR(o, 0.1, anneal_epochs=-1), ValueError, "anneal_epochs"),
    (lambda o: swa_utils.get_ema_avg_fn(1.5), ValueError, "decay"),
    (lambda o: swa_utils.EMA(zoo.nn.Linear(1, 1), 2.0), ValueError, "EMA: Invalid decay"),
    (lambda o: swa_utils.AveragedModel(zoo.nn.Linear(1, 1), None, abs, abs), ValueError, "got both"),
])
def test_wrong_arguments(call, kind, words):
    with pytest.raises(kind, match=words):
        call(optimizer_of(zoo))


AVERAGES = {
    "swa": lambda u: {},
    "swa multi": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "swa avg_fn": lambda u: {"avg_fn": u.get_swa_avg_fn()},
    "ema": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9)},
    "ema avg_fn": lambda u: {"avg_fn": u.get_ema_avg_fn(0.7)},
    "ema buffers": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9), "use_buffers": True},
    "own": lambda u: {"avg_fn": lambda average, value, n: average * 0.5 + value * 0.5 + n},
}


@pytest.mark.torch
@pytest.mark.parametrize("name", AVERAGES)
def test_averages_are_torchs(name):
    """State dicts of averaged models over 12 steps, and after update_bn; torch's loads into ours."""
    torch = pytest.importorskip("torch")
    data = np.random.default_rng(0).normal(size=(12, 8, 3))
    weights, averages = {}, []
    for lib in (torch, zoo):
        model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 1))
        model = model.to(lib.float64)
        weights = weights or {k: v.numpy().copy() for k, v in model.state_dict().items()}
        model.load_state_dict({k: lib.tensor(v) for k, v in weights.items()})
        average = lib.optim.swa_utils.AveragedModel(model, **AVERAGES[name](lib.optim.swa_utils))
        optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
        for x in data:
            optimizer.zero_grad()
            (model(lib.tensor(x)) ** 2).mean().backward()
            optimizer.step()
            average.update_parameters(model)
        before = {k: v.numpy().copy() for k, v in average.state_dict().items()}
        lib.optim.swa_utils.update_bn([[lib.tensor(x)] for x in data], average)
        averages.append((before, {k: v.numpy() for k, v in average.state_dict().items()}))
        assert average.module[1].momentum == 0.1 and average.training
    # with multi_avg_fn torch computes the weight 1 / (n + 1) from an int64 tensor, hence in float32
    atol = 1e-8 if name == "swa multi" else 1e-12
    for wanted, mine in zip(*averages, strict=True):
        assert wanted.keys() == mine.keys()
        for k, v in wanted.items():
            np.testing.assert_allclose(mine[k], v, rtol=1e-9, atol=atol)
    average.load_state_dict({k: zoo.tensor(v) for k, v in averages[0][0].items()})
    assert average.n_averaged.item() == 12


def test_ema():
    """The average of weights and buffers by its formula; with warm-up the first decays are 2/11, 3/12 ..."""
    for warm_up in (False, True):
        model = zoo.nn.BatchNorm1d(2)
        ema = swa_utils.EMA(model, decay=0.8, warm_up=warm_up)
        weight = mean = None
        for k in range(9):
            with zoo.no_grad():
                model.weight.fill_(float(k * k))
                model.running_mean.fill_(float(-k))
            ema.update_parameters(model)
            decay = min(0.8, (1 + k) / (10 + k)) if warm_up else 0.8
            weight = k * k if weight is None else decay * weight + (1 - decay) * k * k
            mean = -k if mean is None else decay * mean - (1 - decay) * k
        np.testing.assert_allclose(ema.module.weight.detach().numpy(), weight, rtol=1e-6)
        np.testing.assert_allclose(ema.module.running_mean.numpy(), mean, rtol=1e-6)


def test_schedulers_drive_beta1():
    optimizer = Adam([Parameter(zoo.ones(1))], lr=0.1, betas=(0.5, 0.99))
    scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=10)
    assert optimizer.param_groups[0]["betas"] == (0.95, 0.99)
    scheduler.step()
    assert optimizer.param_groups[0]["betas"][0] < 0.95


def test_reduce_on_plateau_reduces_groups_that_came_later():
    optimizer = Adam([Parameter(zoo.ones(1))], lr=1.0)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.05)
    optimizer.add_param_group({"params": [Parameter(zoo.ones(1))], "lr": 0.2})
    for _ in range(2):
        scheduler.step(1.0)
    assert scheduler.get_last_lr() == [0.1, 0.05]
