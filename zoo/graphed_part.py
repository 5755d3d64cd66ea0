"""Parts of a step as two CUDA graphs, one for each direction, between code that stays as it is."""

from collections.abc import Callable
from typing import Any

from zoo.autograd.function import Function
from zoo.autograd.mode import MODE
from zoo.autograd.random import default_generator
from zoo.autograd.tensor import Tensor, grad
from zoo.graphed_step import feed, over_tensors
from zoo.nn.module import Module
from zoo.ops import cuda


class Replayed(Function):
    """A call of a GraphedPart: the arguments, then the module's parameters, as inputs."""

    @staticmethod
    def forward(ctx: Any, part: "GraphedPart", *inputs: Tensor) -> Any:
        """Replays the forward graph."""
        ctx.part = part
        return part.replay_forward(inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple:
        """Replays the backward graph."""
        return None, *ctx.part.replay_backward(gradients)


class GraphedPart:
    """A function or module of tensors, recorded for arguments like `sample`; see cuda.make_graphed_callables.

    Args:
        function, sample: what is recorded. warmup: calls before. pool: of the memory.
    """

    def __init__(self, function: Callable, sample: tuple[Tensor, ...], warmup: int, pool: cuda.GraphPool):
        self.function = function
        self.parameters = list(function.parameters()) if isinstance(function, Module) else []
        self.inputs = [x.detach().clone().requires_grad_(x.requires_grad) for x in sample]
        leaves = [*self.inputs, *self.parameters]
        self.wanted = [x for x in leaves if x.requires_grad]
        self.forward, self.backward = cuda.CUDAGraph(), cuda.CUDAGraph()
        drawn, side = default_generator.get_offset(), cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side), cuda.memory_of(pool):
            for _ in range(warmup):
                outputs = self.call()
                self.gradients_of(outputs, [o.detach() for o in outputs])
        with cuda.graph(self.forward, pool, side):
            outputs = self.call()
        self.forward.replay()  # the backward graph's random numbers are those of the forward replay before it
        self.given = [o.detach().clone() for o in outputs]
        with cuda.graph(self.backward, pool, side):
            found = self.gradients_of(outputs, self.given)
        default_generator.set_offset(drawn)
        self.outputs = [o.detach() for o in outputs]
        by_leaf = dict(zip(self.wanted, found, strict=True))
        self.gradients = [by_leaf.get(x) for x in leaves]

    def call(self) -> list[Tensor]:
        """The function's outputs, in a list."""
        made = self.function(*self.inputs)
        self.alone = isinstance(made, Tensor)
        return [made] if self.alone else list(made)

    def gradients_of(self, outputs: list[Tensor], given: list[Tensor]) -> tuple:
        """Gradients at the wanted leaves, None where an output does not depend on one."""
        tracked = [k for k, o in enumerate(outputs) if o.requires_grad]
        if not tracked or not self.wanted:
            return (None,) * len(self.wanted)
        return grad([outputs[k] for k in tracked], self.wanted, [given[k] for k in tracked], allow_unused=True)

    def replay_forward(self, inputs: tuple[Tensor, ...]) -> Any:
        """Outputs that share the graph's memory: the next call overwrites them."""
        feed(self.inputs, inputs[: len(self.inputs)])
        self.forward.replay()
        made = tuple(o.detach() for o in self.outputs)
        return made[0] if self.alone else made

    def replay_backward(self, gradients: tuple[Tensor, ...]) -> tuple:
        """Gradients of inputs and parameters, as copies: whoever adds them up keeps them."""
        feed(self.given, gradients)
        self.backward.replay()
        return tuple(None if g is None else g.clone() for g in self.gradients)

    def __call__(self, *args: Tensor) -> Any:
        if not MODE.grad:
            return self.replay_forward(args)
        return Replayed.apply(self, *args, *self.parameters)


def make_graphed_callables(callables: Any, sample_args: tuple, num_warmup_iters: int = 3,
                           allow_unused_input: bool = True, pool: cuda.GraphPool | None = None) -> Any:
    """See zoo.cuda.make_graphed_callables."""
    pool = cuda.GraphPool() if pool is None else pool
    if isinstance(callables, tuple):
        return tuple(make_graphed_callables(f, args, num_warmup_iters, allow_unused_input, pool)
                     for f, args in zip(callables, sample_args, strict=True))
    over_tensors(sample_args, need_gpu)
    part = GraphedPart(callables, tuple(sample_args), num_warmup_iters, pool)
    if not isinstance(callables, Module):
        return part
    plain, training = callables.forward, callables.training
    callables.forward = lambda *args: part(*args) if callables.training == training else plain(*args)
    part.function = plain
    return callables


def need_gpu(x: Tensor) -> None:
    """Raises TypeError for a tensor on the CPU."""
    if not x.is_cuda:
        raise TypeError(f"make_graphed_callables: wants tensors on the GPU, got one on cpu of shape {tuple(x.shape)}")
