"""A third citizen beside ndarray and Tensor: what ops and autograd promise to graph mode, export and vmap."""

from dataclasses import dataclass, field

import numpy as np

import zoo
from zoo.autograd.tensor import wrap
from zoo.ops.op import OPS


@dataclass
class Graph:
    """Every op that met a Traced, in order; `run` does the same on other arrays."""

    inputs: int
    calls: list = field(default_factory=list)

    def run(self, *arrays):
        values = list(arrays)
        for op, args in self.calls:
            values.append(op(*[values[a[1]] if type(a) is tuple and a[:1] == ("slot",) else a for a in args]))
        return values


class Traced:
    """An array that records; below Tensor, so a Tensor that holds one records its backward pass as well."""

    __op_level__ = 0

    def __init__(self, graph, value, slot):
        self.graph, self.value, self.slot = graph, value, slot

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    ndim = property(lambda self: self.value.ndim)

    @staticmethod
    def __op__(op):
        def call(*args):
            graph = next(a.graph for a in args if isinstance(a, Traced))
            graph.calls.append((op, tuple(("slot", a.slot) if isinstance(a, Traced) else a for a in args)))
            value = op(*[a.value if isinstance(a, Traced) else a for a in args])
            return Traced(graph, value, graph.inputs + len(graph.calls) - 1)

        return call


def test_a_tracer_records_forward_and_backward():
    """Neither ops nor autograd has a line about it; the recorded graph gives the gradient on other numbers."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    graph = Graph(2)
    leaves = [wrap(Traced(graph, a, i)).requires_grad_() for i, a in enumerate((x, w))]
    y = OPS["tanh"](OPS["linear"](leaves[0], leaves[1], None))
    forward = y.array.slot
    seed = np.ones((3, 5))
    gx, gw = zoo.autograd.grad(y, leaves, zoo.from_numpy(seed))
    other = [rng.normal(size=a.shape) for a in (x, w)]
    values = graph.run(*other)
    a, b = (zoo.from_numpy(v).requires_grad_() for v in other)
    z = zoo.tanh(zoo.nn.functional.linear(a, b))
    np.testing.assert_allclose(values[forward], z.detach().numpy())
    for found, want in zip((gx, gw), zoo.autograd.grad(z, (a, b), zoo.from_numpy(seed)), strict=True):
        np.testing.assert_allclose(values[found.array.slot], want.numpy())


def test_plain_arrays_stay_arrays():
    y = OPS["mul"](np.ones(3), 2.0)
    assert type(y) is np.ndarray and type(OPS["sum"](y)) is np.ndarray
