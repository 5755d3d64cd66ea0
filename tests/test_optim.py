"""Optimizers: torch's numbers over many steps, torch's state_dict layout, and the kernel against NumPy."""

import copy
import pickle

import numpy as np
import pytest

import zoo
from zoo import optim
from zoo.autograd.tensor import wrap
from zoo.nn import Parameter
from zoo.ops import cuda
from zoo.ops import optim as updates
from zoo.optim import SGD, Adam, AdamW
from zoo.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

SHAPES = ((3, 4), (5,), (), (130, 130))  # the last is too large to be stepped together with the others
MATRICES = ((3, 4), (5, 2), (6, 6), (130, 40))
STEPS = 50
ROWS = [  # class, options, options of the second of two groups
    ("SGD", {"lr": 0.1}, {"lr": 0.02}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}, {"momentum": 0.0}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}, {"nesterov": False}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "maximize": True, "weight_decay": 0.1}, {"maximize": False}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "fused": True}, {"dampening": 0.5}),
    ("Adam", {"lr": 0.01}, {"betas": (0.5, 0.9)}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1, "maximize": True}, {"eps": 1e-3}),
    ("Adam", {"lr": 0.05, "amsgrad": True}, {"amsgrad": False}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}, {"decoupled_weight_decay": False}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.1}, {"weight_decay": 0.0}),
    ("AdamW", {"lr": 0.05, "amsgrad": True, "maximize": True, "foreach": True}, {"lr": 0.01}),
    ("NAdam", {"lr": 0.01}, {"betas": (0.7, 0.9)}),
    ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "momentum_decay": 0.1}, {"decoupled_weight_decay": True}),
    ("NAdam", {"lr": 0.01, "maximize": True, "eps": 1e-3}, {"maximize": False}),
    ("RAdam", {"lr": 0.01}, {"betas": (0.7, 0.9)}),
    ("RAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}, {"decoupled_weight_decay": False}),
    ("RAdam", {"lr": 0.01, "maximize": True, "eps": 1e-3, "betas": (0.8, 0.6)}, {"weight_decay": 0.2}),
    ("Adamax", {"lr": 0.01}, {"betas": (0.7, 0.9)}),
    ("Adamax", {"lr": 0.02, "eps": 1e-2, "weight_decay": 0.1, "maximize": True}, {"maximize": False}),
    ("Adagrad", {"lr": 0.05}, {"lr_decay": 0.1}),
    ("Adagrad", {"lr": 0.05, "weight_decay": 0.1, "initial_accumulator_value": 0.3, "maximize": True}, {"eps": 1e-2}),
    ("Adadelta", {}, {"rho": 0.5}),
    ("Adadelta", {"lr": 0.5, "eps": 1e-4, "weight_decay": 0.1, "maximize": True}, {"weight_decay": 0.0}),
    ("RMSprop", {"lr": 0.01}, {"alpha": 0.8}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}, {"momentum": 0.0}),
    ("RMSprop", {"lr": 0.01, "centered": True, "eps": 1e-3}, {"centered": False}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.9, "maximize": True}, {"momentum": 0.5}),
    ("Rprop", {}, {"etas": (0.3, 1.5)}),
    ("Rprop", {"lr": 0.1, "step_sizes": (1e-3, 0.2), "maximize": True}, {"lr": 0.05}),
    ("ASGD", {"lr": 0.05}, {"lambd": 0.1}),
    ("ASGD", {"lr": 0.05, "t0": 10, "alpha": 0.5, "weight_decay": 0.1, "maximize": True}, {"t0": 30}),
    ("Adafactor", {}, {"d": 2.0}),
    ("Adafactor", {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-3, 0.1), "weight_decay": 0.1}, {"maximize": True}),
    ("Muon", {}, {"momentum": 0.5}),
    ("Muon", {"lr": 0.01, "nesterov": False, "weight_decay": 0.2}, {"ns_steps": 3}),
    ("Muon", {"lr": 0.01, "adjust_lr_fn": "match_rms_adamw"}, {"adjust_lr_fn": "original"}),
]
IDS = [f"{name}-{'-'.join(map(str, (*options, *second)))}" for name, options, second in ROWS]
rows = pytest.mark.parametrize("name, options, second", ROWS, ids=IDS)


def tolerance(name):
    """torch computes Muon's direction in bfloat16, zoo in float32: a hundredth of each of the 50 steps."""
    return 1e-2 if name == "Muon" else 1e-9


def shapes_of(name):
    return MATRICES if name == "Muon" else SHAPES


def gradients(shapes=SHAPES, steps=STEPS, seed=0):
    """The same random gradients for both libraries; the third parameter has none in every other step."""
    rng = np.random.default_rng(seed)
    for k in range(steps):
        yield [None if i == 2 and k % 2 else rng.normal(size=s) for i, s in enumerate(shapes)]


def start(shapes=SHAPES, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in shapes]


def run(optimizer, params, make, grads):
    for row in grads:
        for p, g in zip(params, row, strict=True):
            p.grad = None if g is None else make(g)
        optimizer.step()


def groups(params, second):
    return [{"params": params[:1] + params[3:]}, {"params": params[1:3], **second}]


def both(torch, name, options, second):
    """(our optimizer, our parameters, torch's optimizer, torch's parameters), from the same values."""
    values = start(shapes_of(name))
    ours = [Parameter(zoo.tensor(a)) for a in values]
    theirs = [torch.nn.Parameter(torch.tensor(a)) for a in values]
    return (
        getattr(optim, name)(groups(ours, second), **options),
        ours,
        getattr(torch.optim, name)(groups(theirs, second), **options),
        theirs,
    )


def same(ours, theirs, atol):
    for p, q in zip(ours, theirs, strict=True):
        assert p.dtype == np.float64
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=0, atol=atol)


def translate(state, is_tensor, make):
    """A state_dict in the other library's tensors."""
    def value(v):
        return make(v.numpy().copy()) if is_tensor(v) else [value(x) for x in v] if isinstance(v, list) else v
    return {
        "state": {k: {n: value(v) for n, v in s.items()} for k, s in state["state"].items()},
        "param_groups": state["param_groups"],
    }


@pytest.mark.torch
@rows
def test_numbers_are_torchs(name, options, second):
    torch = pytest.importorskip("torch")
    optimizer, ours, reference, theirs = both(torch, name, options, second)
    shapes = shapes_of(name)
    run(optimizer, ours, zoo.tensor, gradients(shapes))
    run(reference, theirs, torch.tensor, gradients(shapes))
    same(ours, theirs, tolerance(name))


@pytest.mark.torch
@rows
def test_state_crosses_both_ways(name, options, second):
    """torch's state after 7 steps goes on here, ours there, to the numbers of the run that stayed; equal layout."""
    torch = pytest.importorskip("torch")
    optimizer, ours, reference, theirs = both(torch, name, options, second)
    shapes, atol = shapes_of(name), tolerance(name)
    run(reference, theirs, torch.tensor, gradients(shapes, 7))
    with zoo.no_grad():
        for p, q in zip(ours, theirs, strict=True):
            p.copy_(zoo.tensor(q.detach().numpy()))
    optimizer.load_state_dict(translate(reference.state_dict(), torch.is_tensor, zoo.tensor))
    run(optimizer, ours, zoo.tensor, gradients(shapes, 20, seed=3))
    run(reference, theirs, torch.tensor, gradients(shapes, 20, seed=3))
    same(ours, theirs, atol)
    mine, wanted = optimizer.state_dict(), reference.state_dict()
    assert mine["state"].keys() == wanted["state"].keys()
    for key, row in wanted["state"].items():
        tensors = {n: v for n, v in row.items() if v is not None}
        assert mine["state"][key].keys() == tensors.keys()
        for n, v in tensors.items():
            assert mine["state"][key][n].shape == v.shape
            np.testing.assert_allclose(mine["state"][key][n].numpy(), v.numpy(), rtol=atol, atol=atol / 1000)
    assert [set(g) for g in mine["param_groups"]] == [set(g) for g in wanted["param_groups"]]
    again = getattr(torch.optim, name)(groups(theirs, second), **options)
    again.load_state_dict(translate(mine, zoo.is_tensor, torch.tensor))
    run(again, theirs, torch.tensor, gradients(shapes, 20, seed=4))
    run(optimizer, ours, zoo.tensor, gradients(shapes, 20, seed=4))
    # on loading torch casts NAdam's mu_product, rounded to float32 before, to float64 and goes on in that
    same(ours, theirs, max(atol, 1e-7) if name == "NAdam" else atol)


@pytest.mark.parametrize("name, options, second", [r for r in ROWS if r[0] != "Muon"][::2] + [ROWS[-1]])
def test_resuming_is_exact(name, options, second):
    """state_dict after 7 steps, in a new optimizer with new parameters: the same bits 20 steps later, in float32."""
    shapes = shapes_of(name)

    def make(values):
        params = [Parameter(zoo.tensor(a.astype(np.float32))) for a in values]
        return params, getattr(optim, name)(groups(params, second), **options)

    def single(a):
        return zoo.tensor(a.astype(np.float32))

    params, optimizer = make(start(shapes))
    run(optimizer, params, single, gradients(shapes, 7))
    again, resumed = make([p.detach().numpy() for p in params])
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for stepped, ps in ((optimizer, params), (resumed, again)):
        run(stepped, ps, single, gradients(shapes, 20, seed=3))
    for p, q in zip(params, again, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())


def test_hooks():
    """Those of one optimizer and of all; the pre hook changes the arguments; load and save hooks change the dict."""
    p = Parameter(zoo.ones(2))
    optimizer, seen = SGD([p], lr=0.5), []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((lambda: 7,), {}))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(args[0]()))
    with (
        register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("before")),
        register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("after")),
    ):
        assert optimizer.step() == 7
    assert seen == ["before", 7, "after"]
    assert optimizer.step() == 7 and seen == ["before", 7, "after", 7]
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("late"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("early"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    assert optimizer.state_dict()["note"] == 1 and seen[-2:] == ["early", "late"]
    optimizer.register_load_state_dict_pre_hook(lambda o, state: {**state, "param_groups": o.param_groups})
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict({"state": {}, "param_groups": []})
    assert seen[-1] == "loaded"
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(TypeError, match="args, kwargs"):
        optimizer.step()


def test_hooks_run_once_where_a_step_calls_its_base():
    class Twice(SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    p, seen = Parameter(zoo.ones(1)), []
    p.grad = zoo.ones(1)
    optimizer = Twice([p], lr=0.25)
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(p.item()))
    optimizer.step()
    optimizer.step()
    assert seen == [0.5, 0.0]


def test_groups_come_later_and_options_change():
    """add_param_group between steps; momentum switched on; state replaced or the parameter moved: memory follows."""
    p, q = Parameter(zoo.ones(2)), Parameter(zoo.ones(2))
    optimizer = SGD([("p", p)], lr=0.5)
    p.grad = q.grad = zoo.ones(2)
    optimizer.step()
    optimizer.add_param_group({"params": [("q", q)], "lr": 0.25})
    optimizer.param_groups[0]["momentum"] = 0.5
    optimizer.step()
    optimizer.step()
    np.testing.assert_array_equal(p.detach().numpy(), np.full(2, 1 - 0.5 - 0.5 - 0.75, "f"))
    np.testing.assert_array_equal(q.detach().numpy(), np.full(2, 0.5, "f"))
    assert [g["param_names"] for g in optimizer.state_dict()["param_groups"]] == [["p"], ["q"]]
    optimizer.state.clear()
    optimizer.step()
    np.testing.assert_array_equal(optimizer.state[p]["momentum_buffer"].numpy(), np.ones(2, "f"))
    p.data = zoo.zeros(2, dtype=zoo.float64)
    p.grad = zoo.ones(2, dtype=zoo.float64)
    optimizer.step()
    assert optimizer.state[p]["momentum_buffer"].dtype == p.dtype == np.float64
    np.testing.assert_array_equal(p.detach().numpy(), np.full(2, -0.75))


def test_copies_and_pickles_step_alone():
    """A deep copy or a pickle has memory of its own, which its steps go through."""
    p = Parameter(zoo.ones(3))
    optimizer = Adam([p], lr=0.1)
    p.grad = zoo.ones(3)
    optimizer.step()
    for again in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        q = again.param_groups[0]["params"][0]
        before = p.detach().numpy().copy()
        q.grad = zoo.ones(3)
        again.step()
        np.testing.assert_array_equal(p.detach().numpy(), before)
        assert again.state[q]["step"].item() == 2 and optimizer.state[p]["step"].item() == 1
        assert again.state[q]["exp_avg"][0].item() == pytest.approx(0.19)


@pytest.mark.parametrize("dtype", [zoo.float16, zoo.bfloat16])
def test_half_types_are_computed_in_float32(dtype):
    """One Adam step on halves is the float32 step of the same values, rounded once."""
    rng = np.random.default_rng(0)
    p, g = (rng.normal(size=40).astype(dtype) for _ in range(2))
    state = [np.zeros(40, dtype) for _ in range(2)]
    wide = [p.astype(np.float32), g.astype(np.float32), np.zeros(40, np.float32), np.zeros(40, np.float32)]
    options = (0.1, 0.9, 0.1, 0.001, 1e-8), (False,), True, 0.01, 0.99
    for arrays in (wide, [p, g, *state]):
        updates.update("adam", [tuple(arrays)], *options)
    for ours, wanted in zip((p, *state), (wide[0], *wide[2:]), strict=True):
        np.testing.assert_array_equal(ours, wanted.astype(dtype))


def test_gradients_and_versions():
    """The gradient stays as it was, zero_grad drops it, and a step is seen by the version check of a saved value."""
    p = Parameter(zoo.tensor([1.0, 2.0]))
    loss = (p * p).sum()
    optimizer = Adam([p], lr=0.1)
    p.grad = zoo.tensor([1.0, -1.0])
    optimizer.step()
    np.testing.assert_array_equal(p.grad.numpy(), np.float32([1, -1]))
    with pytest.raises(RuntimeError, match="mul.*in place"):
        loss.backward()
    optimizer.zero_grad()
    assert p.grad is None
    assert optimizer.step(lambda: 3) == 3


def test_non_contiguous_parameter():
    values = np.asfortranarray(np.ones((3, 4)))
    p = Parameter(zoo.from_numpy(values))
    p.grad = zoo.ones(3, 4, dtype=zoo.float64)
    SGD([p], lr=0.5).step()
    np.testing.assert_array_equal(values, np.full((3, 4), 0.5))


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: SGD([], lr=0.1), ValueError, "empty parameter list"),
        (lambda: SGD(zoo.ones(2), lr=0.1), TypeError, "iterable of Tensors"),
        (lambda: SGD([1.0], lr=0.1), TypeError, "can only optimize Tensors.*float"),
        (lambda: SGD([Parameter(zoo.ones(2)) * 2], lr=0.1), ValueError, "non-leaf"),
        (lambda: SGD([Parameter(zoo.ones(2))], lr=-1), ValueError, "Invalid learning rate.*-1"),
        (lambda: SGD([Parameter(zoo.ones(2))], lr=1, nesterov=True), ValueError, "Nesterov"),
        (lambda: Adam([Parameter(zoo.ones(2))], betas=(1.0, 0.9)), ValueError, "index 0.*1.0"),
        (lambda: Adam([Parameter(zoo.ones(2))], eps=-1.0), ValueError, "epsilon"),
        (lambda: AdamW([Parameter(zoo.ones(2))], weight_decay=-1.0), ValueError, "weight_decay"),
        (
            lambda: Adam([{"params": (q := [Parameter(zoo.ones(2))])}, {"params": q}]),
            ValueError,
            "more than one parameter group",
        ),
        (
            lambda: Adam([Parameter(zoo.ones(2))]).load_state_dict({"state": {}, "param_groups": []}),
            ValueError,
            "0 parameter groups",
        ),
    ],
)
def test_wrong_arguments(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.cuda
@pytest.mark.parametrize(
    "name, options", [*((n, o) for n, o, _ in ROWS if n != "Muon"), ("Lion", {"weight_decay": 0.1})]
)
def test_kernel_against_numpy(name, options):
    """Three steps in every floating dtype, NumPy beside the kernel: odd sizes over a block, an unaligned view, a
    transposed one, an empty one. One launch for all parameters.
    """
    rng = np.random.default_rng(0)
    allowed = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}
    for dtype in (zoo.float64, zoo.float32, zoo.float16, zoo.bfloat16):
        values = [rng.normal(size=s).astype(dtype) for s in ((3, 347), (5,), (4, 3), (0, 2), (1024,))]

        def place(a, k):
            x = cuda.from_numpy(a)
            return x.view((4,), (1,), 1) if k == 1 else x.view((3, 4), (1, 3)) if k == 2 else x

        host = [Parameter(zoo.tensor(a[1:] if k == 1 else a.T if k == 2 else a)) for k, a in enumerate(values)]
        device = [Parameter(wrap(place(a, k))) for k, a in enumerate(values)]
        pair = [getattr(optim, name)(ps, **options) for ps in (host, device)]
        for _ in range(3):
            for p, q in zip(host, device, strict=True):
                g = rng.normal(size=tuple(p.shape)).astype(dtype)
                p.grad, q.grad = zoo.tensor(g), wrap(cuda.from_numpy(g))
            for optimizer in pair:
                optimizer.step()
        if name != "Adafactor":                      # a program of tensor ops, as Muon
            assert len(pair[1].blocks[0][2]) == 1
        for p, q in zip(host, device, strict=True):
            states = [o.state[x] for o, x in zip(pair, (p, q), strict=True)]
            assert states[0].keys() == states[1].keys()
            for a, b in [(p, q), *((states[0][n], states[1][n]) for n in states[0])]:
                a, b = (np.asarray(x.detach().cpu().numpy(), np.float64) for x in (a, b))
                np.testing.assert_allclose(b, a, rtol=allowed[dtype.name], atol=allowed[dtype.name])


@pytest.mark.cuda
def test_a_captured_step_replays():
    """SGD with momentum in a CUDA graph: three replays are three steps, whatever ran in between."""
    values, g = start()[3], np.ones((130, 130))
    params = [Parameter(zoo.tensor(values).to(where)) for where in ("cpu", "cuda")]
    optimizers = [SGD([p], lr=0.1, momentum=0.9) for p in params]
    for p, optimizer in zip(params, optimizers, strict=True):
        p.grad = zoo.tensor(g).to(p.device)
        optimizer.step()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        optimizers[1].step()
    for _ in range(3):
        graph.replay()
        _ = [zoo.tensor(g).to("cuda") for _ in range(8)]
        optimizers[0].step()
    np.testing.assert_allclose(params[1].detach().cpu().numpy(), params[0].detach().numpy(), rtol=1e-12)


@pytest.mark.interpret
@pytest.mark.parametrize("align, wide", [(16, True), (4, False)])
def test_whole_chunks_are_read_16_bytes_at_a_time(align, wide):
    """Compiled for a GPU that is not here: one wide load for p, g, m and v each, twice with 4 warps; unaligned none."""
    import triton.language as tl
    from triton.runtime import driver

    from zoo.ops import optim_gpu
    from zoo.ops.cuda import interpreter, launcher, record, triton_driver

    before = driver._active
    try:
        with interpreter.compiling():
            triton_driver.prepare()
            driver.set_active(triton_driver.CompileOnlyDriver(triton_driver.GPUTarget("cuda", 90, 32), index=7))
            kernel = launcher.Kernel(
                optim_gpu.step_kernel, RULE=optim_gpu.adam, FLAGS=(False,), MAXIMIZE=False, DECAY=True, STATES=2,
                S=tl.float32, T=tl.float32, ALIGN=align, BLOCK=optim_gpu.BLOCK)
            table = record.sample("*int64/16")
            values = table, table, 3, *[0.5] * 8, None, None
            ptx = kernel.warm(dict(zip(kernel.names, values, strict=True))).asm["ptx"]
    finally:
        driver._active = before
    assert ptx.count("ld.global.v4.b32") == (8 if wide else 0)
