"""CUDA without torch: memory, streams, launches of Triton kernels, and an interpreter that plays the GPU.

The only place that knows CUDA. Importing it imports neither triton nor the CUDA bindings.
"""

from zoo.ops.cuda.array import DeviceArray as DeviceArray
from zoo.ops.cuda.array import contiguous_strides as contiguous_strides
from zoo.ops.cuda.array import copy_device as copy_device
from zoo.ops.cuda.array import copy_from_numpy as copy_from_numpy
from zoo.ops.cuda.array import empty as empty
from zoo.ops.cuda.array import fill_bytes as fill_bytes
from zoo.ops.cuda.array import from_numpy as from_numpy
from zoo.ops.cuda.array import host_view as host_view
from zoo.ops.cuda.array import to_numpy as to_numpy
from zoo.ops.cuda.capture import CaptureError as CaptureError
from zoo.ops.cuda.capture import StaleGraph as StaleGraph
from zoo.ops.cuda.capture import is_capturing as is_capturing
from zoo.ops.cuda.capture import is_current_stream_capturing as is_current_stream_capturing
from zoo.ops.cuda.capture import random_state as random_state
from zoo.ops.cuda.driver import CudaError as CudaError
from zoo.ops.cuda.driver import OutOfMemoryError as OutOfMemoryError
from zoo.ops.cuda.driver import current_device as current_device
from zoo.ops.cuda.driver import device_count as device_count
from zoo.ops.cuda.driver import get_device_capability as get_device_capability
from zoo.ops.cuda.driver import get_device_name as get_device_name
from zoo.ops.cuda.driver import is_available as is_available
from zoo.ops.cuda.driver import multiprocessors as multiprocessors
from zoo.ops.cuda.driver import set_device as set_device
from zoo.ops.cuda.graph_pool import GraphPool as GraphPool
from zoo.ops.cuda.graph_pool import graph_pool_handle as graph_pool_handle
from zoo.ops.cuda.graph_pool import memory_of as memory_of
from zoo.ops.cuda.graphs import CUDAGraph as CUDAGraph
from zoo.ops.cuda.graphs import graph as graph
from zoo.ops.cuda.launcher import Kernel as Kernel
from zoo.ops.cuda.launcher import launch as launch
from zoo.ops.cuda.launcher import prepare as prepare
from zoo.ops.cuda.mode import is_interpreting as is_interpreting
from zoo.ops.cuda.statistics import empty_cache as empty_cache
from zoo.ops.cuda.statistics import max_memory_allocated as max_memory_allocated
from zoo.ops.cuda.statistics import max_memory_reserved as max_memory_reserved
from zoo.ops.cuda.statistics import mem_get_info as mem_get_info
from zoo.ops.cuda.statistics import memory_allocated as memory_allocated
from zoo.ops.cuda.statistics import memory_reserved as memory_reserved
from zoo.ops.cuda.statistics import reset_peak_memory_stats as reset_peak_memory_stats
from zoo.ops.cuda.streams import Event as Event
from zoo.ops.cuda.streams import Stream as Stream
from zoo.ops.cuda.streams import current_stream as current_stream
from zoo.ops.cuda.streams import default_stream as default_stream
from zoo.ops.cuda.streams import device as device
from zoo.ops.cuda.streams import set_stream as set_stream
from zoo.ops.cuda.streams import stream as stream
from zoo.ops.cuda.streams import synchronize as synchronize
