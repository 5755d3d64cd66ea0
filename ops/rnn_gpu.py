"""Launches of the recurrent layers: one for the whole time loop where its programs all run at once, else one a step.

The loop's programs wait for each other: the launch is cooperative, which makes the driver refuse what would hang. In
the interpreter, where programs take turns, the loop is a single program unless a test asks for more.
"""
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from zoo.ops import cuda, gpu_configs
from zoo.ops import rnn as contract
from zoo.ops.cuda import DeviceArray, mode
from zoo.ops.cuda.capture import Untraceable
from zoo.ops.cuda.driver import attribute, state
from zoo.ops.dtypes import HALVES, float32, float64, int32
from zoo.ops.gpu_configs import Config
from zoo.ops.index import embedding
from zoo.ops.matmul import linear, linear_input_grad
from zoo.ops.matmul_gpu import kind_of
from zoo.ops.pointwise_gpu import contiguous_copy
from zoo.ops.rnn_backward_gpu import gru_steps_back, lstm_steps_back, rnn_steps_back
from zoo.ops.rnn_forward_gpu import gru_steps, lstm_steps, rnn_steps
from zoo.ops.shape import cast


class Chip(NamedTuple):
    """What a loop has to fit: one program on each multiprocessor, its weights and states in shared memory."""
    multiprocessors: int
    shared: int                       # bytes
    major: int                        # of the compute capability


SPARE = 4096                          # bytes that a compiled kernel needs beside its operands


class Plan(NamedTuple):
    """How a loop is cut into programs, whether it is one launch, and whether the weights stay on the chip."""
    PERSIST: bool
    RESIDENT: bool
    PRECISION: str
    BB: int
    BH: int
    BK: int
    num_warps: int = 4
    num_stages: int = 1
    maxnreg: int | None = None

    def programs(self, batch: int, size: int) -> int:
        return -(-batch // self.BB) * -(-size // self.BH)


class Loop(NamedTuple):
    """A kernel's loop with `gates` matrices (size, size) over so many sequences and steps, in the arithmetic of x."""
    kernel: Any
    gates: int
    batch: int
    size: int
    steps: int
    dtype: np.dtype
    device: int

    @property
    def kind(self) -> str:
        """Of the table of configs; three products of tf32 a step would not fit the registers, so these are by FMA."""
        kind = kind_of(self.dtype)
        return "ieee" if kind == "tf32x3" else kind

    @property
    def width(self) -> int:
        """Units, to the power of two that a whole sum is read as."""
        return _power(self.size)

    def fits(self, plan: Plan, chip: Chip) -> bool:
        """Whether all programs run at once if they have to, and hold the weights and the states of a step."""
        if plan.PERSIST and plan.programs(self.batch, self.size) > chip.multiprocessors:
            return False
        held = self.width * (self.gates * plan.BH + plan.BB) * self.dtype.itemsize
        return not plan.RESIDENT or self.kind in ("half", "tf32") and held <= chip.shared - SPARE


# Up to which width 4 warps hold the weights of halves and of float32, and 8 above it, so that nothing is spilled:
# compiled for compute capabilities 8.0, 9.0 and 10.0 (scripts/compile_configs.py).
FOUR_WARPS = {"rnn_steps": (512, 512), "lstm_steps_back": (256, 64), "gru_steps": (1024, 1024)}


def _power(n: int) -> int:
    """The least tile side of a product on tensor cores is 16."""
    return max(16, triton.next_power_of_2(n))


def chip_of(device: int) -> Chip:
    if cuda.is_interpreting():        # as on the GPUs whose table holds
        family = gpu_configs.FAMILIES[gpu_configs.current().family]
        return Chip(family.multiprocessors, family.shared, family.arch // 10)
    return Chip(cuda.multiprocessors(device), attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", device),
                cuda.get_device_capability(device)[0])


def _plan_of(loop: Loop) -> Plan:
    """As the table of configs has it, if it has a row whose programs fit this GPU; else by the rule."""
    size, many = loop.size, loop.gates * loop.size
    name = loop.kernel.__name__
    n, k = (size, many) if name.endswith("back") else (many, size)
    config = gpu_configs.found(name, loop.kind, loop.batch, n, k, loop.steps)
    if config is not None:
        plan = planned(config, loop)
        if cuda.is_interpreting() and not mode.dry or loop.fits(plan, chip_of(loop.device)):
            return plan
    return _ruled(loop)


def planned(config: Config, loop: Loop) -> Plan:
    """A config as a plan; a resident loop reads a unit's sum as a whole."""
    resident = config.kernel == "resident"
    return Plan(config.kernel != "steps", resident, _precision(loop), config.BM, config.BN,
                loop.width if resident else config.BK, config.num_warps, config.num_stages, config.registers or None)


def _precision(loop: Loop) -> str:
    return "tf32" if loop.kind == "tf32" else "ieee"


def _ruled(loop: Loop) -> Plan:
    """In as many programs as run at once; weights stay on the chip where they fit.

    They stay where tensor cores read them from shared memory: float32 in three parts or by FMA, and float64, would fill
    and spill the registers. Blackwell's tensor cores want the states of a long sum in other registers: there sums of
    1024, and in float32 four matrices of 512, spilled 160 to 350 bytes.
    """
    kind, width, name = loop.kind, loop.width, loop.kernel.__name__
    on_tensor_cores = kind in ("half", "tf32")
    streaming = Plan(True, False, _precision(loop), min(32, _power(loop.batch)), 16, 16 if kind == "double" else 32,
                     maxnreg=240)
    holding = streaming._replace(RESIDENT=True, BK=width, maxnreg=_most_registers(name))
    if cuda.is_interpreting() and not mode.dry:
        return (holding if on_tensor_cores else streaming)._replace(BB=_power(loop.batch), BH=width)
    chip, four_warps = chip_of(loop.device), FOUR_WARPS.get(name, (0, 0))[kind != "half"]
    spared = chip.major < 10 or width <= 512 and loop.gates * width * loop.dtype.itemsize < 8192
    for bh in (16, 32, 64):
        held = holding._replace(BH=bh, num_warps=4 if width <= four_warps else 8)
        plan = streaming._replace(BH=bh, num_warps=8)
        if loop.fits(plan, chip):
            return held if spared and loop.fits(held, chip) else plan
    return streaming._replace(PERSIST=False)


def _most_registers(name: str) -> int | None:
    """Of a thread of a resident loop, so that nothing is spilled: compiled for 8.0, 9.0, 10.0, by Triton 3.6 and 3.9.

    One program runs on a multiprocessor and may have them all; left to itself, None, the assembler spills 8 to 24 bytes
    of some kernels to fit a second program. A limit makes it load the operands of long sums ahead, and spill those.
    """
    if name in ("lstm_steps_back", "gru_steps_back"):
        return None
    return 255 if name == "lstm_steps" else 240


class Index(NamedTuple):
    """Where the rows of steps, and those before and after each row, are: on the device."""
    starts: DeviceArray               # (T + 1,)
    before: DeviceArray               # (N,), of the initial states and the outputs together
    after: DeviceArray                # (N,), -1 at the end
    begins: DeviceArray               # (B,), the row at which each sequence's walk begins


def _index_of(batch_sizes: tuple[int, ...], reverse: bool, device: int) -> Index:
    """From the cache; a step that is captured keeps it too, since its replays read it.

    What is remembered of a call keeps it as well; so calls with sequences of different lengths, which seldom come
    again, are not remembered.
    """
    trace = state.trace
    if trace is None:
        index = _cached_index(batch_sizes, reverse, device)
        _keep(index)
        return index
    if batch_sizes[-1] != batch_sizes[0]:
        raise Untraceable("reads tables of the sequences' lengths")
    index = _cached_index(batch_sizes, reverse, trace.device)
    trace.call(partial(_keep, index))
    return Index(*(DeviceArray(a.pointer, a.shape, a.strides, a.dtype, a.owner, device) for a in index))


def _keep(index: Index) -> None:
    if state.graph is not None:
        state.graph.kept.append(index)


@lru_cache(16)
def _cached_index(batch_sizes: tuple[int, ...], reverse: bool, device: int) -> Index:
    before = contract.rows_before(batch_sizes, reverse)
    batch, after, begins = batch_sizes[0], np.full(len(before), -1), np.empty(batch_sizes[0], np.int64)
    inner = before >= batch
    after[before[inner] - batch] = np.flatnonzero(inner)
    begins[before[~inner]] = np.flatnonzero(~inner)
    starts = np.concatenate([[0], np.cumsum(batch_sizes)])
    with cuda.lasting():
        return Index(*(cuda.from_numpy(a.astype(np.int64), device) for a in (starts, before, after, begins)))


def _wide_of(dtype):
    return tl.float64 if dtype == float64 else tl.float32


def _carried(x: DeviceArray) -> DeviceArray:
    """A copy in float32 or wider, that a kernel carries on from."""
    return cast(x, float32) if x.dtype in HALVES else contiguous_copy(x)


def _dense(*xs) -> list:
    return [x if x is None or x.is_contiguous else contiguous_copy(x) for x in xs]


def _walk(kernel, gates: int, arrays: tuple, x: DeviceArray, states: DeviceArray, batch_sizes, reverse, **constexprs):
    """Launches the loop, all steps in one cooperative launch or one launch a step; x (N, ...), states (B, size)."""
    (batch, size), steps = states.shape, len(batch_sizes)
    plan = _plan_of(Loop(kernel, gates, batch, size, steps, x.dtype, x.device))
    programs = plan.programs(batch, size)
    bar = cuda.empty((1,), int32, x.device)
    cuda.fill_bytes(bar, 0)
    step = steps if plan.PERSIST else 1
    for first in range(0, steps, step):
        cuda.launch(kernel, (programs,), *arrays, bar, first, first + step, steps, batch, size, programs,
                    REVERSE=reverse, WIDE=_wide_of(x.dtype), cooperative=plan.PERSIST and programs > 1,
                    **plan._asdict(), **constexprs)


def _states(h0: DeviceArray, rows: int) -> tuple[DeviceArray, DeviceArray]:
    """Initial states and, after them, room for the outputs (rows, H); and the outputs alone."""
    batch, size = h0.shape
    hs = cuda.empty((batch + rows, size), h0.dtype, h0.device)
    cuda.copy_device(hs.view((batch, size), hs.strides), contiguous_copy(h0))
    return hs, hs.view((rows, size), hs.strides, batch * size)


def _rnn(op, relu: bool, x, h0, w_ih, w_hh, bias, batch_sizes, reverse):
    op.check(x, h0, w_ih, w_hh, bias, batch_sizes, reverse)
    gx, (w,) = linear(x, w_ih, bias), _dense(w_hh)
    hs, y = _states(h0, len(gx))
    hn, index = _carried(h0), _index_of(batch_sizes, reverse, x.device)
    _walk(rnn_steps, 1, (gx, w, hs, index.before, index.starts, hn), x, h0, batch_sizes, reverse, RELU=relu)
    return y, cast(hn, x.dtype)


@cuda.remembered
def rnn_tanh(x, h0, w_ih, w_hh, bias, batch_sizes, reverse=False):
    return _rnn(contract.rnn_tanh, False, x, h0, w_ih, w_hh, bias, batch_sizes, reverse)


@cuda.remembered
def rnn_relu(x, h0, w_ih, w_hh, bias, batch_sizes, reverse=False):
    return _rnn(contract.rnn_relu, True, x, h0, w_ih, w_hh, bias, batch_sizes, reverse)


def _first_gradient(dgates, w_hh, dh, index: Index, dtype):
    """dh0: what is in dh, and the product of the gates' gradients where each sequence begins."""
    return cast(dh + cast(linear_input_grad(embedding(index.begins, dgates), w_hh), dh.dtype), dtype)


@cuda.remembered
def rnn_grad(dy, dhn, w_hh, slope, batch_sizes, reverse):
    dy, w, slope = _dense(dy, w_hh, slope)
    dgates, dh = cuda.empty(dy.shape, dy.dtype, dy.device), _carried(dhn)
    index = _index_of(batch_sizes, reverse, dy.device)
    _walk(rnn_steps_back, 1, (dy, w, slope, dgates, dh, index.after, index.starts), dy, dhn, batch_sizes, reverse)
    return dgates, _first_gradient(dgates, w, dh, index, dy.dtype)


@cuda.remembered
def lstm(x, h0, c0, w_ih, w_hh, bias, w_hr, batch_sizes, reverse=False):
    *_, kept, cell = contract.lstm.check(x, h0, c0, w_ih, w_hh, bias, w_hr, batch_sizes, reverse)
    if w_hr is not None:                                     # the projection would be a second exchange in each step
        return contract.lstm_steps(x, h0, c0, w_ih, w_hh, bias, w_hr, batch_sizes, reverse)
    dtype, device = x.dtype, x.device
    gx, (w,) = linear(x, w_ih, bias), _dense(w_hh)
    hs, y = _states(h0, len(gx))
    gates, cells = (cuda.empty(s.shape, s.dtype, device) for s in (kept, cell))
    hn, cn, index = _carried(h0), _carried(c0), _index_of(batch_sizes, reverse, device)
    _walk(lstm_steps, 4, (gx, w, hs, index.before, index.starts, hn, cn, gates, cells), x, c0, batch_sizes, reverse)
    return y, cast(hn, dtype), cast(cn, dtype), gates, cells


@cuda.remembered
def lstm_grad(dy, dhn, dcn, x, before, c0, w_ih, w_hh, bias, w_hr, gates, cells, batch_sizes, reverse):
    if w_hr is not None:
        return contract.lstm_grad.decompose(dy, dhn, dcn, x, before, c0, w_ih, w_hh, bias, w_hr, gates, cells,
                                            batch_sizes, reverse)
    size, dtype, device = dcn.shape[1], dy.dtype, dy.device
    dy, w, gates, cells = _dense(dy, w_hh, gates, cells)
    dgates, dh, dc = cuda.empty(gates.shape, dtype, device), _carried(dhn), _carried(dcn)
    index = _index_of(batch_sizes, reverse, device)
    _walk(lstm_steps_back, 4, (dy, w, gates, cells, dgates, dh, dc, index.after, index.starts), dy, dcn, batch_sizes,
          reverse)
    return dgates, _first_gradient(dgates, w, dh, index, dtype), cast(dc, dtype), cuda.empty((0, size), dtype, device)


@cuda.remembered
def gru(x, h0, w_ih, w_hh, b_ih, b_hh, batch_sizes, reverse=False):
    *_, kept, part = contract.gru.check(x, h0, w_ih, w_hh, b_ih, b_hh, batch_sizes, reverse)
    dtype, device = x.dtype, x.device
    gx, (w, bias) = linear(x, w_ih, b_ih), _dense(w_hh, b_hh)
    hs, y = _states(h0, len(gx))
    gates, hidden = (cuda.empty(s.shape, s.dtype, device) for s in (kept, part))
    hn, index = _carried(h0), _index_of(batch_sizes, reverse, device)
    _walk(gru_steps, 3, (gx, w, bias, hs, index.before, index.starts, hn, gates, hidden), x, h0, batch_sizes, reverse)
    return y, cast(hn, dtype), gates, hidden


@cuda.remembered
def gru_grad(dy, dhn, x, before, w_ih, w_hh, b_ih, b_hh, gates, hidden, batch_sizes, reverse):
    dtype, device = dy.dtype, dy.device
    dy, w, gates, hidden, states = _dense(dy, w_hh, gates, hidden, before)
    dgates, dstates = (cuda.empty(gates.shape, dtype, device) for _ in "gs")
    dh, index = _carried(dhn), _index_of(batch_sizes, reverse, device)
    _walk(gru_steps_back, 3, (dy, w, gates, hidden, states, dgates, dstates, dh, index.after, index.starts), dy, dhn,
          batch_sizes, reverse)
    return dgates, dstates, _first_gradient(dstates, w, dh, index, dtype)
