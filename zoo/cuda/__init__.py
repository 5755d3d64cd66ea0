"""torch.cuda's names: devices, streams, events, graphs, memory. Nothing is loaded before it is used."""
from typing import Any

from zoo.autograd.random import manual_seed as manual_seed
from zoo.cuda import amp as amp
from zoo.cuda.properties import get_device_properties as get_device_properties
from zoo.cuda.properties import get_rng_state as get_rng_state
from zoo.cuda.properties import get_rng_state_all as get_rng_state_all
from zoo.cuda.properties import init as init
from zoo.cuda.properties import initial_seed as initial_seed
from zoo.cuda.properties import is_bf16_supported as is_bf16_supported
from zoo.cuda.properties import is_initialized as is_initialized
from zoo.cuda.properties import is_tf32_supported as is_tf32_supported
from zoo.cuda.properties import seed as seed
from zoo.cuda.properties import set_rng_state as set_rng_state
from zoo.cuda.properties import set_rng_state_all as set_rng_state_all
from zoo.ops.cuda import CaptureError as CaptureError
from zoo.ops.cuda import CudaError as CudaError
from zoo.ops.cuda import CUDAGraph as CUDAGraph
from zoo.ops.cuda import Event as Event
from zoo.ops.cuda import OutOfMemoryError as OutOfMemoryError
from zoo.ops.cuda import Stream as Stream
from zoo.ops.cuda import current_device as current_device
from zoo.ops.cuda import current_stream as current_stream
from zoo.ops.cuda import default_stream as default_stream
from zoo.ops.cuda import device as device
from zoo.ops.cuda import device_count as device_count
from zoo.ops.cuda import empty_cache as empty_cache
from zoo.ops.cuda import get_device_capability as get_device_capability
from zoo.ops.cuda import get_device_name as get_device_name
from zoo.ops.cuda import graph as _graph
from zoo.ops.cuda import graph_pool_handle as graph_pool_handle
from zoo.ops.cuda import is_available as is_available
from zoo.ops.cuda import is_current_stream_capturing as is_current_stream_capturing
from zoo.ops.cuda import is_interpreting as is_interpreting
from zoo.ops.cuda import max_memory_allocated as max_memory_allocated
from zoo.ops.cuda import max_memory_reserved as max_memory_reserved
from zoo.ops.cuda import mem_get_info as mem_get_info
from zoo.ops.cuda import memory_allocated as memory_allocated
from zoo.ops.cuda import memory_by_module as memory_by_module
from zoo.ops.cuda import memory_reserved as memory_reserved
from zoo.ops.cuda import memory_snapshot as memory_snapshot
from zoo.ops.cuda import memory_stats as memory_stats
from zoo.ops.cuda import memory_summary as memory_summary
from zoo.ops.cuda import record_memory_history as record_memory_history
from zoo.ops.cuda import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from zoo.ops.cuda import reset_peak_memory_stats as reset_peak_memory_stats
from zoo.ops.cuda import set_device as set_device
from zoo.ops.cuda import set_per_process_memory_fraction as set_per_process_memory_fraction
from zoo.ops.cuda import set_stream as set_stream
from zoo.ops.cuda import stream as stream
from zoo.ops.cuda import synchronize as synchronize

manual_seed_all, seed_all = manual_seed, seed


def graph(target: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "thread_local",
          warmup: int = 2) -> Any:
    """A function whose GPU work is recorded once and replayed; or, given a CUDAGraph, torch's context manager.

    `step = zoo.cuda.graph(step)`: for each new class of arguments (shapes and dtypes of tensors, values of the rest)
    the first `warmup` calls run as ever, the next is recorded, and from then on a call copies the tensors into the
    graph's own, and launches the graph: forward, backward and optimizer at once. The numbers are those of the function
    itself: random numbers go on from replay to replay, and an optimizer of the library counts its steps and reads its
    learning rate at each. What the function returns lies in the graph's memory until the next call.

    Python inside the function runs only while it is warmed up and recorded. Gradients are to be cleared inside of it.

    Args:
        target: a function of tensors on the GPU (also nested) and hashable values; or a CUDAGraph.
        pool: memory to share with other graphs, from `graph_pool_handle()`. stream: which is recorded.
        capture_error_mode: what the driver refuses meanwhile, as in torch. warmup: calls before one is recorded.

    Returns:
        The function; its `reset()` lets go of the graphs.

    Raises:
        CaptureError: from the call that records: the op, its reason and the line, for what no graph can repeat: values
            taken to the host, waiting, a shape that depends on values, a learning rate schedule.
        TypeError: an argument on the CPU, or one that requires grad.

    Example:
        >>> import zoo
        >>> def double(x):
        ...     return x * 2
        >>> if zoo.cuda.is_available():
        ...     double = zoo.cuda.graph(double)
    """
    if isinstance(target, CUDAGraph):
        return _graph(target, pool, stream, capture_error_mode)
    from zoo.graphed_step import GraphedStep

    return GraphedStep(target, pool, stream, warmup, capture_error_mode)


def make_graphed_callables(callables: Any, sample_args: tuple, num_warmup_iters: int = 3,
                           allow_unused_input: bool = True, pool: Any = None) -> Any:
    """torch's: functions or modules whose forward and backward pass are replayed as CUDA graphs, between plain code.

    Args:
        callables: a function of tensors or a Module; or a tuple of them, called one after the other.
        sample_args: tensors on the GPU like those of later calls, with their requires_grad; a tuple of such tuples.
        num_warmup_iters: calls before the recording. allow_unused_input: taken for torch's sake. pool: of memory.

    Returns:
        The functions to call; a module is returned itself, and replays in the mode (training or not) that it was in.
        Outputs lie in the graph's memory until the next call; one forward call is followed by at most one backward.

    Raises:
        CaptureError: something that no graph can repeat. TypeError: a sample on the CPU.

    Example:
        >>> import zoo
        >>> if zoo.cuda.is_available():
        ...     x = zoo.ones(2, 3, device="cuda")
        ...     layer = zoo.cuda.make_graphed_callables(zoo.nn.Linear(3, 3).cuda(), (x,))
    """
    from zoo.graphed_part import make_graphed_callables as make

    return make(callables, sample_args, num_warmup_iters, allow_unused_input, pool)
