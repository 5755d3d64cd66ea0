"""What python -m zoo.train says of a loss that is no number, of full memory, and of common mistakes in a loop."""

import re
from contextlib import nullcontext

import pytest

import zoo
from tests.training import train
from zoo import nn
from zoo.nn import functional as F  # noqa: N812
from zoo.ops.cuda import OutOfMemoryError
from zoo.train import memory
from zoo.train.__main__ import main
from zoo.train.diagnosis import first_bad_module
from zoo.train.lint import Lint

SMALL = ["--width", "2", "--limit", "32", "--batch-size", "8", "--epochs", "2", "--no-report"]


# -- a loss that is no number


def test_a_learning_rate_that_explodes_stops_the_run(tmp_path, capsys):
    assert main([*SMALL, "--lr", "1e30", "--schedule", "constant", "--out", str(tmp_path)]) == 1
    err = capsys.readouterr().err.splitlines()
    assert re.match(r"zoo.train: the loss of step \d is (nan|inf): .+ \(\w+\) (is the producer|is not finite)", err[-1])
    assert not any("Traceback" in line for line in err)


def model_of(*modules):
    zoo.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), *modules, nn.Linear(2, 2))


class Log(nn.Module):
    def forward(self, x):
        return (x * 0).log()


class Between(nn.Module):
    """The bad operation is in a forward, not in a module of its own."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return self.second(self.first(x) / 0)


def spoilt():
    model = model_of()
    nn.init.constant_(model[1].weight, float("nan"))
    return model


@pytest.mark.parametrize("model, words", [
    (model_of(Log(), nn.ReLU()), r"1 \(Log\) is the producer: its inputs are finite \(up to [\d.]+\), its output is"),
    (Between(), r"second \(Linear\) is the victim: its input is not finite"),
    (spoilt(), r"the parameter weight of 1 \(Linear\) is not finite, an earlier step has spoilt it"),
    (model_of(), r"all modules' outputs are finite, the loss itself is not"),
])
def test_producer_and_victim(model, words):
    assert re.match(words, first_bad_module(model, zoo.ones(3, 2), nullcontext))
    assert not any(module._hooks for module in model.modules())


def test_pictures_that_are_not_finite():
    assert "the pictures" in first_bad_module(model_of(), zoo.full((1, 2), float("inf")), nullcontext)


# -- full memory


def test_full_memory_names_the_largest_tensors_and_a_batch_that_fits(tmp_path, capsys, monkeypatch):
    """The second step finds no memory; what is free is set so that a few pictures would fit."""
    from zoo.train import run

    real, calls = run.GradScaler.scale, iter(range(100))

    def scale(self, outputs):
        if next(calls) == 1:
            raise OutOfMemoryError("8 GiB were asked for")
        return real(self, outputs)

    monkeypatch.setattr(run.GradScaler, "scale", scale)
    monkeypatch.setattr(memory, "total_memory", lambda images: 210_000)
    assert main([*SMALL, "--width", "4", "--out", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("zoo.train: out of memory with a batch of 8: 8 GiB were asked for. The largest: ")
    assert re.search(r"16.0 KiB output \(4, 8, 8\) of layer1.0.\w+ \(\w+, \w+\.py:\d+\) for 8 pictures", line)
    assert "parameters, gradients and optimizer state of layer3.0.conv2 (Conv2d)" in line
    fits = int(re.search(r"a batch of about (\d) would fit", line)[1])
    assert 1 <= fits < 8


def test_the_estimate_of_a_batch():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    optimizer = zoo.optim.Adam(model.parameters())
    model(zoo.ones(2, 4)).sum().backward()
    optimizer.step()
    (weights,) = memory.weight_uses(model, optimizer)
    assert weights.nbytes == 40 * 4 * 4 + 2 * 4            # values, gradients, two moments; two step counts
    outputs = memory.output_uses(model, zoo.ones(16, 4))
    assert [u.nbytes for u in outputs] == [2 * 8 * 4] * 2 and "0 (Linear, linear.py:" in outputs[0].text
    assert memory.batch_that_fits(weights.nbytes + 10 * 128, weights.nbytes, 128) == 10


# -- lint


def loop(model, optimizer, x=None, zero_grad=True, loss=F.cross_entropy, steps=3):
    """An ordinary loop of a script; what lint found."""
    found: list[str] = []
    with Lint(model, optimizer, found.append):
        for _ in range(steps):
            inputs = zoo.randn(8, 4) if x is None else x
            value = loss(model(inputs), zoo.randint(0, 3, (8,)))
            if zero_grad:
                optimizer.zero_grad()
            value.backward()
            optimizer.step()
    return found


def parts(*extra, lr=0.1):
    zoo.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3), *extra)
    return model, zoo.optim.SGD(model.parameters(), lr=lr)


def test_a_good_loop_is_not_blamed():
    model, optimizer = parts()
    assert loop(model, optimizer) == []
    assert not model._hooks and not optimizer.hooks_of("step_before") and "zero_grad" not in vars(optimizer)


def test_model_zero_grad_counts():
    model, optimizer = parts()
    found: list[str] = []
    with Lint(model, optimizer, found.append):
        for _ in range(3):
            model.zero_grad()
            model(zoo.randn(2, 4)).sum().backward()
            optimizer.step()
    assert found == []


@pytest.mark.parametrize("words, options, change", [
    ("zero_grad was not called since the last step", {"zero_grad": False}, None),
    ("the model is in eval mode", {}, lambda model: model.eval()),
    ("the input is constant: all 32 numbers are 0.5", {"x": zoo.full((8, 4), 0.5)}, None),
    ("2 of the optimizer's 4 parameters are frozen", {}, lambda model: model[0].requires_grad_(False)),
    ("the model ends with a softmax", {}, lambda model: model.append(nn.Softmax(1))),
])
def test_every_mistake_is_said_once(words, options, change):
    model, optimizer = parts()
    if change:
        change(model)
    (found,) = loop(model, optimizer, **options)
    assert found.startswith(f"lint: {words}")


def test_a_learning_rate_of_zero():
    assert loop(*parts(lr=0.0)) == ["lint: the learning rate is 0: nothing is learned"]


def test_without_gradients_nothing_is_looked_at():
    model, optimizer = parts(nn.Softmax(1))
    found: list[str] = []
    with Lint(model.eval(), optimizer, found.append), zoo.no_grad():
        model(zoo.zeros(2, 4))
    assert found == []


def test_it_takes_itself_off_and_warns_by_default():
    model, optimizer = parts(lr=0.0)
    lint = Lint(model, optimizer, steps=1)
    model(zoo.randn(2, 4)).sum().backward()
    with pytest.warns(UserWarning, match="learning rate is 0"):
        optimizer.step()
    assert lint.hooks == [] and not model._hooks


def test_the_command_lints_its_own_loop(tmp_path, capsys, monkeypatch):
    """A schedule that begins at 0, say."""
    train(tmp_path, *SMALL, "--schedule", "linear", "--schedule-options", "start_factor=1e-300", "--lr", "1e-300")
    assert "zoo.train: lint: the learning rate is 0: nothing is learned" in capsys.readouterr().err
    train(tmp_path, *SMALL[:-1])                           # the report runs the model in eval mode with gradients
    assert not capsys.readouterr().err
