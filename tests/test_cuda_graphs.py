"""Captured steps give the numbers of the same steps run one op at a time; what cannot be captured says so."""

import gc

import numpy as np
import pytest

import zoo
import zoo.nn as nn
import zoo.nn.functional as F
from zoo.ops.cuda import StaleGraph

pytest.importorskip("triton")
pytestmark = pytest.mark.cuda
CALLS = 6


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, c, k, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c, k, 3, stride, 1, bias=False), nn.BatchNorm2d(k)
        self.conv2, self.bn2 = nn.Conv2d(k, k, 3, 1, 1, bias=False), nn.BatchNorm2d(k)
        self.shortcut = nn.Conv2d(c, k, 1, stride)

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class Words(nn.Module):
    """An LSTM over embedded words."""

    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.head = nn.Embedding(7, 4), nn.LSTM(4, 5, dropout=0.3, num_layers=2), nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.lstm(self.embed(x))[0][-1])


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3)),
            lambda rng: rng.standard_normal((4, 6)).astype("f")),
    "resnet": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), Block(4, 4, 1), Block(4, 6, 2), nn.Dropout(0.2),
                                     nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3)),
               lambda rng: rng.standard_normal((2, 3, 4, 4)).astype("f")),
    "lstm": (Words, lambda rng: rng.integers(0, 7, (3, 2))),
}
OPTIMIZERS = {
    "sgd": lambda ps: zoo.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True),
    "adamw": lambda ps: zoo.optim.AdamW(ps, lr=0.02),
    "radam": lambda ps: zoo.optim.RAdam(ps, lr=0.02),  # its formula changes at the sixth step
}


def trained(model, optimizer, graphed, data, calls=CALLS):
    """The losses of each step and the weights and counters after all of them, as bytes."""
    zoo.manual_seed(0)
    model = model().cuda()
    optimizer = optimizer(model.parameters())
    schedule = zoo.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def step(x, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    run = zoo.cuda.graph(step) if graphed else step
    rng, losses = np.random.default_rng(1), []
    for _ in range(calls):
        x = data(rng)
        labels = rng.integers(0, 3, x.shape[1] if x.dtype == np.int64 else len(x))
        losses.append(run(zoo.tensor(x).cuda(), zoo.tensor(labels).cuda())["loss"].item())
        schedule.step()
    state = {**model.state_dict(), **{f"{k}.{n}": v for k, s in optimizer.state_dict()["state"].items()
                                      for n, v in s.items() if v is not None}}
    return losses, {name: v.detach().cpu().numpy().tobytes() for name, v in state.items()}, run


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_a_captured_training_step_gives_the_same_bits(model, optimizer):
    if model != "mlp" and optimizer != "adamw":
        pytest.skip("each model once, each optimizer once")
    make, data = MODELS[model]
    calls = 8 if optimizer == "radam" else CALLS
    losses, weights, _ = trained(make, OPTIMIZERS[optimizer], False, data, calls)
    graphed, same, run = trained(make, OPTIMIZERS[optimizer], True, data, calls)
    assert len(set(losses)) == calls and graphed == losses
    assert same == weights
    assert [c.graph is not None for c in run.captures.values()] == [True], "it was really captured"


def test_dropout_goes_on_from_replay_to_replay_and_follows_the_seed():
    x = zoo.ones(64, device="cuda")
    step = zoo.cuda.graph(lambda x: F.dropout(x, 0.5))
    zoo.manual_seed(5)
    masks = [step(x).cpu().tolist() for _ in range(5)]
    between = zoo.rand(1).item()
    masks.append(step(x).cpu().tolist())
    zoo.manual_seed(5)
    assert masks[:5] == [F.dropout(x, 0.5).cpu().tolist() for _ in range(5)] and masks[3] != masks[4]
    assert zoo.rand(1).item() == between
    assert masks[5] == F.dropout(x, 0.5).cpu().tolist()


def test_new_shapes_and_values_are_captured_anew():
    seen = []

    def step(x, factor=2):
        seen.append(tuple(x.shape))
        return x * factor

    run = zoo.cuda.graph(step, warmup=1)
    for n, factor in [(2, 2), (2, 2), (2, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 5), (2, 5), (2, 5)]:
        made = run(zoo.full((n,), 3.0, device="cuda"), factor=factor)
        assert made.tolist() == [3.0 * factor] * n
    assert seen == [(2,)] * 2 + [(3,)] * 2 + [(2,)] * 2
    run.reset()
    run(zoo.ones(2, device="cuda"))
    assert len(seen) == 7


REFUSED = {
    "item": (lambda x: x.sum().item(), "item: copies values to the host"),
    "truth": (lambda x: 1 if x.sum() > 0 else 0, "__bool__: copies values"),
    "cpu": (lambda x: x.cpu(), "to_device: copies values"),
    "nonzero": (lambda x: x.nonzero(), "nonzero: copies values"),
    "upload": (lambda x: x + zoo.ones(3).cuda(), "cuda: copies an array from the host"),
    "feed": (lambda x: x.copy_(zoo.ones(3)), "copy_: copies an array from the host"),
    "wait": (lambda x: zoo.cuda.synchronize(), "waits for the GPU"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_graph_can_repeat_is_named_with_its_line(name):
    function, message = REFUSED[name]
    run = zoo.cuda.graph(lambda x: function(x), warmup=1)
    x = zoo.ones(3, device="cuda")
    run(x)
    with pytest.raises(zoo.cuda.CaptureError, match=message) as caught:
        run(x)
    assert f"test_cuda_graphs.py:{function.__code__.co_firstlineno}" in str(caught.value)
    assert not zoo.cuda.is_current_stream_capturing() and (x + 1).tolist() == [2.0] * 3, "everything goes on"


def test_optimizers_and_schedules_that_compute_on_the_host_are_refused():
    p = zoo.nn.Parameter(zoo.ones(3, device="cuda"))
    p.grad = zoo.ones(3, device="cuda")
    lamb, sgd = zoo.optim.LAMB([p]), zoo.optim.SGD([p], lr=0.1)
    schedule = zoo.optim.lr_scheduler.StepLR(sgd, 1)
    for step, message in ((lamb.step, "LAMB computes on the host"), (schedule.step, "StepLR sets learning rates")):
        run = zoo.cuda.graph(step, warmup=1)
        run()
        with pytest.raises(zoo.cuda.CaptureError, match=message):
            run()


def test_a_failed_capture_takes_back_what_the_host_counted():
    p = zoo.nn.Parameter(zoo.ones(3, device="cuda"))
    p.grad = zoo.ones(3, device="cuda")
    optimizer = zoo.optim.Adam([p])
    zoo.manual_seed(0)

    def step():
        optimizer.step()
        return zoo.rand(3, device="cuda").sum().item()

    run = zoo.cuda.graph(step, warmup=1)
    run()
    with pytest.raises(zoo.cuda.CaptureError):
        run()
    assert optimizer.state[p]["step"].item() == 1
    assert zoo.autograd.random.default_generator.get_offset() == 1


def test_a_state_that_was_loaded_is_captured_anew():
    p = zoo.nn.Parameter(zoo.ones(3, device="cuda"))
    optimizer = zoo.optim.Adam([p], lr=0.1)

    def step():
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()

    def both():
        run, first = zoo.cuda.graph(step), None
        for i in range(8):
            run()
            if i == 4:
                optimizer.load_state_dict(optimizer.state_dict())
        return first

    both()
    graphed = p.tolist()
    p.detach().fill_(1.0)
    again = zoo.optim.Adam([p], lr=0.1)
    optimizer = again
    for _ in range(8):
        step()
    assert graphed == p.tolist() and again.state[p]["step"].item() == 8


def test_the_face_of_a_graph():
    g, x = zoo.cuda.CUDAGraph(), zoo.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="nothing was captured"):
        g.replay()
    with zoo.cuda.graph(g, pool=zoo.cuda.graph_pool_handle()):
        y = x + 1
        assert zoo.cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="captured already"):
        g.capture_begin()
    g.replay()
    assert y.tolist() == [2.0] * 3
    pool, held = g.pool(), y.array.owner.below
    del y
    gc.collect()
    assert any(block is held for _, block in pool.free[0, True]), "its memory is free for the next capture"
    g.reset()
    assert g.pool() is None
    with pytest.raises(RuntimeError, match="nothing was captured"):
        g.replay()
    other = zoo.Generator().manual_seed(77)
    with pytest.raises(zoo.cuda.CaptureError, match="register_generator_state"), zoo.cuda.graph(g):
        zoo.rand(3, device="cuda", generator=other)
    g.register_generator_state(other.manual_seed(77))
    with zoo.cuda.graph(g):
        y = zoo.rand(3, device="cuda", generator=other)
    g.replay()
    assert y.tolist() == zoo.rand(3, generator=zoo.Generator().manual_seed(77)).tolist()
    with pytest.raises(ValueError, match="capture_error_mode"):
        zoo.cuda.CUDAGraph().capture_begin(capture_error_mode="never")


def test_arguments_that_do_not_fit_are_named():
    run = zoo.cuda.graph(lambda x: x)
    with pytest.raises(TypeError, match="on cpu of shape"):
        run(zoo.ones(3))
    with pytest.raises(TypeError, match="requires grad"):
        run(zoo.ones(3, device="cuda", requires_grad=True))
    with pytest.raises(TypeError, match="hashable"):
        run(np.ones(3))
    with pytest.raises(TypeError, match="wants a CUDAGraph or a function"):
        zoo.cuda.graph(3)
    with pytest.raises(ValueError, match="warmup"):
        zoo.cuda.graph(len, warmup=0)
    assert issubclass(StaleGraph, RuntimeError)


@pytest.mark.parametrize("graphed", [False, True])
def test_gradients_add_up_over_captured_calls(graphed):
    """Two batches make a step; the second is smaller in every third step, and then runs between two replays."""
    p = zoo.nn.Parameter(zoo.ones(3, device="cuda"))
    optimizer = zoo.optim.SGD([p], lr=0.1)

    def batch(x, first, last):
        if first:
            optimizer.zero_grad()
        (p * x).sum().backward()
        if last:
            optimizer.step()

    run, rng = zoo.cuda.graph(batch) if graphed else batch, np.random.default_rng(0)
    for i in range(16):
        n = 1 if i % 6 == 5 else 2
        run(zoo.tensor(rng.standard_normal((n, 3)).astype("f")).cuda(), i % 2 == 0, i % 2 == 1)
    SUMMED.append((p.tolist(), p.grad.tolist()))
    assert SUMMED[0] == SUMMED[-1]


@pytest.mark.parametrize("graphed", [False, True])
def test_a_scaler_in_a_captured_step_skips_and_adapts(graphed):
    """Gradients that overflow in the fourth and sixth step: the scale, the counts and the weights of the plain loop."""
    p = zoo.nn.Parameter(zoo.ones(3, device="cuda"))
    optimizer = zoo.optim.Adam([p], lr=0.1)
    scaler = zoo.amp.GradScaler(init_scale=8.0, growth_interval=2)

    def step(x):
        optimizer.zero_grad()
        scaler.scale((p * x).sum()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_([p], 1.0)
        scaler.step(optimizer)
        scaler.update()

    run = zoo.cuda.graph(step) if graphed else step
    scales, weights = [], []
    for i in range(8):
        run(zoo.full((3,), float("inf") if i in (3, 5) else 2.0, device="cuda"))
        scales.append(scaler.get_scale())
        weights.append(p.tolist())
    assert scales == [8, 16, 16, 8, 8, 4, 4, 8]
    assert weights[2] == weights[3] and weights[4] == weights[5] != weights[6]
    assert optimizer.state[p]["step"].item() == 6
    SCALED.append((weights, scaler.state_dict()))
    assert SCALED[0] == SCALED[-1]


SCALED: list = []
SUMMED: list = []


def test_parts_of_a_step_as_graphs_give_the_same_bits():
    """A module with dropout in training mode, between plain code: gradients of its input and of its parameters."""
    made = []
    for graphed in (False, True):
        zoo.manual_seed(0)
        part = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, 3)).cuda()
        head = nn.Linear(3, 2).cuda()
        if graphed:
            part = zoo.cuda.make_graphed_callables(part, (zoo.ones(3, 4, device="cuda", requires_grad=True),))
        for i in range(3):
            x = zoo.full((3, 4), float(i + 1), device="cuda", requires_grad=True)
            head(part(x * 2)).sum().backward()
            made.append((i, x.grad.tolist(), [p.grad.tolist() for p in (*part.parameters(), *head.parameters())]))
        part.eval()
        made.append(part(zoo.ones(3, 4, device="cuda")).tolist())
    assert made[:4] == made[4:]
    double = zoo.cuda.make_graphed_callables(lambda x: x * 2, (zoo.ones(3, device="cuda"),))
    with zoo.no_grad():
        assert double(zoo.full((3,), 4.0, device="cuda")).tolist() == [8.0] * 3
    with pytest.raises(TypeError, match="on cpu"):
        zoo.cuda.make_graphed_callables(abs, (zoo.ones(3),))


@pytest.mark.parametrize("model", MODELS)
def test_a_graph_that_is_dropped_leaves_no_memory(model):
    """What caches keep of a step lies outside the graph's pool: a block of 80 bytes there once kept gigabytes."""
    make, data = MODELS[model]
    x = zoo.from_numpy(data(np.random.default_rng(0))).cuda()

    def run(graphed):
        network = make().cuda()
        optimizer = zoo.optim.AdamW(network.parameters())

        def step():
            optimizer.zero_grad()
            network(x).float().sum().backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
        step = zoo.cuda.graph(step) if graphed else step
        for _ in range(4):
            step()

    left = []
    for graphed in (False, True, True):
        run(graphed)
        gc.collect()
        left.append(zoo.cuda.memory_allocated())
    assert left[2] == left[1] <= left[0] + 4096, left
