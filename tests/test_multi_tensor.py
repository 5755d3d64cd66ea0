"""Lists of tensors worked on together: NumPy beside the kernels, how many launches, and no wait for the GPU."""
import numpy as np
import pytest

import zoo
from zoo import nn, optim
from zoo.autograd import lists
from zoo.ops import cuda
from zoo.ops.cuda import launcher, record

SHAPES = [(3, 347), (5,), (4, 3), (0, 2), (33,), (2, 3, 2, 2), ()]
ALLOWED = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}


def pairs(dtypes=("float32",), seed=0):
    """Equal tensors on the CPU and the device: one unaligned, one transposed, one with gaps, one channels-last."""
    rng, host, device = np.random.default_rng(seed), [], []
    for name in dtypes:
        for k, shape in enumerate(SHAPES):
            dtype = getattr(zoo, name)
            x = zoo.tensor(rng.normal(size=shape) if dtype.kind not in "iu" else rng.integers(-9, 9, shape)).to(dtype)
            there = x.to("cuda")
            if k == 1:
                x, there = x[1:], there[1:]
            elif k == 2:
                x, there = x.t(), there.t()
            elif k == 4:
                x, there = x[::3], there[::3]
            elif k == 5:
                there = there.to(memory_format=zoo.channels_last)
            host.append(x)
            device.append(there)
    return host, device


def same(host, device):
    for x, y in zip(host, device, strict=True):
        a, b = x.double().numpy(), y.cpu().double().numpy()
        allowed = ALLOWED.get(x.dtype.name, 0)
        np.testing.assert_allclose(b, a, rtol=allowed, atol=allowed)


def launches(run) -> list[str]:
    """The kernels of the library that a call launches."""
    found = []
    with record.listening(lambda kernel, grid, arguments: found.append(kernel.function.fn.__name__)):
        run()
    return found


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ALLOWED)
def test_the_kernels_equal_numpy(dtype):
    host, device = pairs([dtype])
    if dtype == "float32":                                 # more than one chunk of a norm, and a whole one
        host, device = ([*xs, zoo.linspace(-3, 5, 8200, device=xs[0].device)] for xs in (host, device))
    for order in (1.0, 2.0, 3.5, float("inf")) if dtype == "float32" else (2.0,):
        a, b = (lists.norm(xs, order).item() for xs in (host, device))
        assert b == pytest.approx(a, rel=5 * ALLOWED[dtype]), "sums of up to 9,000"
    for xs in (host, device):
        lists.clip_to_norm(xs, lists.norm(xs, 2.0), 3.0)
    same(host, device)
    for xs in (host, device):
        lists.clip_to_value(xs, 0.05)
        assert all((x.abs() <= 0.0501).all().item() for x in xs)
    same(host, device)
    host, device = host[:len(SHAPES)], device[:len(SHAPES)]
    others = pairs([dtype], 1)
    for weight in (0.25, 0.75, 1.0):
        for xs, ys in zip((host, device), others, strict=True):
            lists.average(xs, ys, weight)
        same(host, device)
    assert all((x == y).all().item() for x, y in zip(device, others[1], strict=True))
    for xs in (host, device):
        assert [f.item() for f in lists.unscale(xs, 0.5)] == [False]
        xs[0][2, 345] = float("inf")
        assert [f.item() for f in lists.unscale(xs, 0.5)] == [True]
        lists.zero(xs)
    same(host, device)


@pytest.mark.cuda
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_norms_and_clips_of_what_is_no_number(value):
    for xs in pairs():
        xs[4][7] = value
        for order in (1.0, 2.0, float("inf")):
            np.testing.assert_equal(lists.norm(xs, order).item(), value)
        lists.clip_to_value(xs, 0.5)
        np.testing.assert_equal(xs[4][7].item(), min(value, 0.5) if value == value else value)


@pytest.mark.cuda
def test_averages_of_integers_are_cut():
    (host, device), others = pairs(["int64", "int32"]), pairs(["int64", "int32"], 1)
    for xs, ys in zip((host, device), others, strict=True):
        lists.average(xs, ys, 0.3)
    same(host, device)
    assert host[0].tolist() != others[0][0].tolist()


class Small(nn.Module):
    """Parameters of two dtypes, one of them channels-last, and buffers of two."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(zoo.rand(1, 3, 2, 2).to(memory_format=zoo.channels_last))
        self.norm, self.head = nn.BatchNorm1d(3), nn.Linear(3, 2).to(zoo.bfloat16)

    def forward(self, x):
        return self.head(self.norm((x * self.scale).sum((2, 3))).to(zoo.bfloat16)).float()


@pytest.mark.interpret
@pytest.mark.parametrize("count", [1, 10])
def test_a_handful_of_launches_whatever_the_number_of_tensors(count):
    """One for each dtype, and one more that ends the norm."""
    params = [nn.Parameter(zoo.ones(5, k + 1, device="cuda", dtype=d))
              for k in range(count) for d in (zoo.float32, zoo.bfloat16)]
    for p in params:
        p.grad = zoo.ones(p.shape, dtype=p.dtype, device="cuda")
    model = nn.ParameterList(params)
    model.register_buffer("steps", zoo.tensor(0, device="cuda"))
    optimizer, scaler = optim.SGD(params, lr=0.1, momentum=0.9), zoo.amp.GradScaler(init_scale=2.0)
    average = optim.swa_utils.EMA(model, 0.5)
    assert launches(lambda: scaler.unscale_(optimizer)) == ["apply_kernel"] * 2
    assert launches(lambda: nn.utils.clip_grad_norm_(params, 1.0)) == (
        ["norm_kernel"] * 2 + ["norm_end_kernel"] + ["apply_kernel"] * 2)
    assert launches(lambda: nn.utils.clip_grad_value_(params, 0.1)) == ["apply_kernel"] * 2
    assert launches(lambda: optimizer.zero_grad(set_to_none=False)) == ["apply_kernel"] * 2
    for _ in range(2):                                     # the first takes the values as they are
        assert launches(lambda: average.update_parameters(model)) == ["apply_kernel"] * 3
    optimizer.step()                                       # makes the state
    assert launches(optimizer.step) == ["step_kernel"] * 2


@pytest.mark.interpret
@pytest.mark.parametrize("name", ["AdamW", "SGD", "RMSprop"])
def test_channels_last_parameters_are_stepped_without_a_copy(name):
    """The state lies as the parameter does, and moves with it; the bits are those of contiguous parameters."""
    options = {"momentum": 0.9} if name == "SGD" else {}
    grads = np.random.default_rng(0).normal(size=(4, 6, 5, 3, 3)).astype("f")
    start = zoo.tensor(grads[3]).cuda()
    results = []
    for form in (zoo.contiguous_format, zoo.channels_last):
        p = nn.Parameter(start.clone().to(memory_format=form))
        optimizer, found = getattr(optim, name)([p], lr=0.1, **options), []
        for g in grads[:2]:
            p.grad = zoo.tensor(g).cuda().to(memory_format=form)
            found = launches(optimizer.step)
        assert found == ["step_kernel"], "nothing but the step"
        states = [v for v in optimizer.state[p].values() if v.ndim == 4]
        assert states and all(v.stride() == p.stride() for v in states)
        p.data = p.data.to(memory_format=zoo.contiguous_format)
        p.grad = zoo.tensor(grads[2]).cuda()
        optimizer.step()                                   # another layout: the state follows
        states = [v for v in optimizer.state[p].values() if v.ndim == 4]
        assert all(v.stride() == p.stride() for v in states)
        again = getattr(optim, name)([p], lr=0.1, **options)
        again.load_state_dict(optimizer.state_dict())
        again.step()
        results.append([x.cpu().tolist() for x in (p.detach(), *states)])
    assert results[0] == results[1]


GRAPHED: list = []


@pytest.mark.cuda
@pytest.mark.parametrize("graphed", [False, True])
def test_a_captured_step_clips_scales_and_averages(graphed):
    """Everything in one graph, which refuses whatever waits for the GPU; the bits of the plain loop."""
    zoo.manual_seed(0)
    model = Small().cuda()
    optimizer, scaler = optim.AdamW(model.parameters(), lr=0.01), zoo.amp.GradScaler(init_scale=8.0, growth_interval=2)
    averages = [optim.swa_utils.EMA(model, 0.9, warm_up=True), optim.swa_utils.AveragedModel(model)]

    def step(x):
        optimizer.zero_grad(set_to_none=False)
        scaler.scale((model(x) ** 2).sum()).backward()
        scaler.unscale_(optimizer)
        total = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        for average in averages:
            average.update_parameters(model)
        return total

    run = zoo.cuda.graph(step) if graphed else step
    rng, norms = np.random.default_rng(0), []
    for k in range(6):
        x = zoo.tensor(rng.normal(size=(2, 3, 2, 2)).astype("f")).cuda()
        norms.append(run(x * (float("inf") if k == 3 else 1)).item())
    assert [int(a.n_averaged) for a in averages] == [6, 6]
    weights = [p.detach().cpu().float().numpy().tobytes()
               for m in (model, averages[0].module, averages[1].module) for p in m.parameters()]
    GRAPHED.append((norms[:3] + norms[4:], weights, scaler.state_dict()))
    assert GRAPHED[0] == GRAPHED[-1]


@pytest.mark.interpret
def test_an_average_by_a_users_function_is_refused_in_a_capture():
    model = nn.Linear(2, 2).cuda()
    average = optim.swa_utils.AveragedModel(model, avg_fn=lambda a, c, n: a + (c - a) / (n + 1))
    run = zoo.cuda.graph(lambda x: average.update_parameters(model) or x, warmup=1)
    run(zoo.ones(1, device="cuda"))
    with pytest.raises(zoo.cuda.CaptureError, match="function of the user's"):
        run(zoo.ones(1, device="cuda"))
    assert int(average.n_averaged) == 1


def test_versions_and_arguments():
    p = nn.Parameter(zoo.ones(3))
    p.grad = zoo.ones(3)
    version = p.grad._version
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == pytest.approx(3**0.5)
    assert p.grad._version > version
    with pytest.raises(ValueError, match="norm_type above 0, got -1"):
        nn.utils.clip_grad_norm_([p], 1.0, -1.0)
    assert nn.utils.clip_grad_norm_([nn.Parameter(zoo.ones(1))], 1.0).item() == 0
    mixed = [zoo.ones(2, dtype=d) for d in (zoo.float16, zoo.float32)]
    assert lists.norm(mixed, 2.0).dtype == zoo.float32 and cuda.is_capturing() is False


@pytest.mark.cuda
def test_a_step_prepares_its_kernel_once():
    """Flags are a new tuple in each step: equal ones are one kernel, or each step would compile and keep its own."""
    p = zoo.ones(3, device="cuda").requires_grad_()
    p.grad = zoo.ones(3, device="cuda")
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9, nesterov=True)
    counts = []
    for _ in range(4):
        optimizer.step()
        counts.append(len(launcher.prepared))
    assert counts[1:] == counts[1:2] * 3            # the first step's momentum is another flag
    one, two = (launcher.key_of(print, (), {"FLAGS": flags}) for flags in ((True, (1, 2)), (1, (True, 2))))
    assert one != two and one == launcher.key_of(print, (), {"FLAGS": (True, (1, 2))})
