"""Functions whose GPU work is recorded once and replayed: whole training steps, and parts of them."""

from collections.abc import Callable, Mapping
from typing import Any

from zoo.autograd.mode import MODE
from zoo.autograd.tensor import Tensor
from zoo.ops import cuda
from zoo.ops.cuda import CUDAGraph, GraphPool, StaleGraph, Stream

WARMUP = 2  # calls that run as ever before one is captured: the first makes an optimizer's state, the second finds it


class GraphedStep:
    """A function whose calls after the first few replay one recorded graph per class of arguments; see cuda.graph."""

    def __init__(self, function: Callable, pool: GraphPool | None = None, stream: Stream | None = None,
                 warmup: int = WARMUP, capture_error_mode: str = "thread_local"):
        if not callable(function):
            raise TypeError(f"cuda.graph: wants a CUDAGraph or a function, got {type(function).__name__}")
        if warmup < 1:
            raise ValueError(f"cuda.graph: wants a warmup of at least 1 call, got {warmup}")
        self.function, self.warmup, self.mode = function, warmup, capture_error_mode
        self.pool = GraphPool() if pool is None else pool
        self.stream = stream
        self.captures: dict[Any, Capture] = {}

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self.stream is None:
            self.stream = Stream()
        given = args, options
        key = kind_of(given), MODE.grad, tuple((MODE.autocast or {}).items())
        capture = self.captures.get(key)
        if capture is None:
            capture = self.captures[key] = Capture(self, given)
        try:
            return capture.run(given)
        except StaleGraph:
            capture = self.captures[key] = Capture(self, given)
            return capture.run(given)

    def reset(self) -> None:
        """Lets go of all graphs; the next calls warm up and capture again."""
        self.captures.clear()


class Capture:
    """The graph of one class of arguments: its static inputs and outputs.

    Args:
        step: whose function and stream. given: (args, options), copied into memory of its own.
    """

    def __init__(self, step: GraphedStep, given: tuple):
        self.step, self.warm = step, 0
        self.inputs = over_tensors(given, own)
        self.graph: CUDAGraph | None = None
        self.outputs: Any = None

    def run(self, given: tuple) -> Any:
        """A call: as ever while it is warmed up, then captured, then replayed."""
        feed(self.inputs, given)
        if self.graph is None and self.warm < self.step.warmup:
            self.warm += 1
            return self.eagerly()
        if self.graph is None:
            self.capture()
        assert self.graph is not None
        self.graph.replay()
        return self.outputs

    def eagerly(self) -> Any:
        """The function, on the stream and in the memory in which it will be captured."""
        here, side = cuda.current_stream(), self.step.stream
        assert side is not None
        side.wait_stream(here)
        with cuda.stream(side), cuda.memory_of(self.step.pool):
            outputs = self.call()
        here.wait_stream(side)
        return outputs

    def capture(self) -> None:
        """Records the function; nothing is run."""
        graph = CUDAGraph()
        with cuda.graph(graph, self.step.pool, self.step.stream, self.step.mode):
            self.outputs = self.call()
        added_to = [(leaf, before) for leaf, before in graph.leaves.items() if before is not None]
        gradients = [(leaf, leaf.grad) for leaf in graph.leaves]
        graph.before.append(lambda: need(added_to))
        graph.after.append(lambda: restore(gradients))
        self.graph = graph

    def call(self) -> Any:
        args, options = self.inputs
        return over_tensors(self.step.function(*args, **options), Tensor.detach)


def need(gradients: list[tuple[Tensor, Tensor]]) -> None:
    """Raises StaleGraph if gradients that the graph adds to are not the leaves' any more."""
    if not all(leaf.grad is g for leaf, g in gradients):
        raise StaleGraph("cuda.graph: the gradients that a captured step adds to were replaced")


def restore(gradients: list[tuple[Tensor, Tensor | None]]) -> None:
    """Each leaf has the gradient of the graph that was replayed, and not that of another one."""
    for leaf, g in gradients:
        leaf.grad = g


def kind_of(value: Any) -> Any:
    """What a graph depends on of an argument: a tensor's shape, dtype and device; of anything else its value."""
    if isinstance(value, Tensor):
        return "tensor", tuple(value.shape), value.dtype, value.device
    if isinstance(value, Mapping):
        return type(value), tuple((k, kind_of(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return type(value), tuple(kind_of(v) for v in value)
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"cuda.graph: wants tensors, numbers or other hashable values as arguments, got {type(value).__name__}"
        ) from None
    return type(value), value


def over_tensors(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """The nested value with `function` of each tensor in the tensor's place."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, Mapping):
        return {k: over_tensors(v, function) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        made = [over_tensors(v, function) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def own(x: Tensor) -> Tensor:
    """A static copy of an argument.

    Raises:
        TypeError: it lies on the CPU, or wants a gradient, which the caller would not find in it.
    """
    if not x.is_cuda:
        raise TypeError(f"cuda.graph: wants tensors on the GPU as arguments, got one on cpu of shape {tuple(x.shape)}")
    if x.requires_grad:
        raise TypeError("cuda.graph: an argument requires grad: the step computes on a copy of it. What is trained, "
                        "the step's function finds by itself; make_graphed_callables is for parts of a step")
    return x.detach().clone()


def feed(static: Any, given: Any) -> None:
    """Copies the given tensors into the static ones."""
    if isinstance(static, Tensor):
        if static.array is not given.array:
            static.copy_(given.detach())
    elif isinstance(static, Mapping):
        for k, v in static.items():
            feed(v, given[k])
    elif isinstance(static, (list, tuple)):
        for a, b in zip(static, given, strict=True):
            feed(a, b)
