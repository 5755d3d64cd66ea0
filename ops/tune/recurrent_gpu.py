"""What is measured of recurrent layers: the time loops of LSTM and GRU, forward and backward, as one launch or many."""
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from zoo.ops import cuda, rnn
from zoo.ops.gpu_configs import Config, Family, Query
from zoo.ops.rnn_gpu import Loop, chip_of, gru_steps, gru_steps_back, lstm_steps, lstm_steps_back, planned
from zoo.ops.tune.cases import DTYPES, Case, Started, error_beside, normal

INPUTS = 16                     # columns of x: the product with them, which is timed too, takes next to no time
LOOPS = {"lstm_steps": lstm_steps, "lstm_steps_back": lstm_steps_back, "gru_steps": gru_steps,
         "gru_steps_back": gru_steps_back}
KINDS = "half", "tf32", "ieee"


class Layer(NamedTuple):
    """`batch` sequences of `steps` steps through `size` units."""
    batch: int
    size: int
    steps: int


# In the order of measuring: the goal of issue 7; language models of 512 and 256 units; one sequence at a time.
LAYERS = [Layer(64, 1024, 128), Layer(32, 512, 128), Layer(32, 256, 128), Layer(1, 1024, 128)]
TINY = [Layer(3, 20, 4)]


def case(kind: str, op: str, layer: Layer) -> Case:
    """One loop of one layer, with what its op does before and after; checked against the plan that holds now."""
    def start():
        dtype, rows, gates = DTYPES[kind], layer.batch * layer.steps, 4 if op.startswith("lstm") else 3
        shapes = ((rows, INPUTS), (layer.batch, layer.size), (gates * layer.size, INPUTS),
                  (gates * layer.size, layer.size), (gates * layer.size,))
        x, state, w_ih, w_hh, bias = (cuda.from_numpy(normal(s, np.float32).astype(dtype)
                                                      / np.asarray(layer.size ** 0.5, dtype)) for s in shapes)
        lengths = (layer.batch,) * layer.steps
        if op.startswith("lstm"):
            forward = rnn.lstm, (x, state, state, w_ih, w_hh, bias, None, lengths)
            y, hn, cn, *kept = rnn.lstm(*forward[1])
            backward = rnn.lstm_grad, (y, hn, cn, x, y, state, w_ih, w_hh, bias, None, *kept, lengths, False)
        else:
            forward = rnn.gru, (x, state, w_ih, w_hh, bias, bias, lengths)
            y, hn, *kept = rnn.gru(*forward[1])
            backward = rnn.gru_grad, (y, hn, x, y, w_ih, w_hh, bias, bias, *kept, lengths, False)
        function, args = backward if op.endswith("back") else forward
        run = partial(function, *args)
        return Started(run, error_beside(run()))
    return Case(f"{kind} {op} {layer}", kind, start, candidates, op)


def cases(names: list[str], kind: str, group: str, tiny: bool) -> Iterator[Case]:
    """The loops of every layer, if "recurrent" is among the names."""
    if "recurrent" in names and group == "sequences" and kind in KINDS:
        yield from (case(kind, op, layer) for layer in (TINY if tiny else LAYERS) for op in LOOPS)


def candidates(query: Query, family: Family) -> Iterator[Config]:
    """Loops that hold their weights, then those that read them in each step, then a launch a step."""
    chip = chip_of(cuda.current_device())
    many, size = max(query.N, query.K), min(query.N, query.K)
    loop = Loop(LOOPS[query.op], many // size, query.M, size, query.batch, DTYPES[query.kind], 0)
    for kernel in ("resident", "streaming", "steps"):
        for config in tiles(kernel, query):
            if loop.fits(planned(config, loop), chip):
                yield config


def tiles(kernel: str, query: Query) -> Iterator[Config]:
    """A kernel's tiles, whose sums leave registers for operands; a sum that is read as a whole has no stages."""
    depths = ((0, 1),) if kernel == "resident" else ((64, 3), (32, 1))
    for sequences, units, warps in product((16, 32, 64), (16, 32, 64), (8, 4)):
        if sequences < 2 * max(query.M, 16) and sequences * units <= 512 * warps:
            for depth, stages in depths:
                yield Config(sequences, units, depth, warps, stages, kernel)
