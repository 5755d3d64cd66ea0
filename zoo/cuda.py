"""torch.cuda's names: devices, streams, events, memory. Nothing is loaded before it is used."""
from zoo.autograd.random import manual_seed as manual_seed
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
from zoo.ops.cuda import graph as graph
from zoo.ops.cuda import is_available as is_available
from zoo.ops.cuda import is_interpreting as is_interpreting
from zoo.ops.cuda import max_memory_allocated as max_memory_allocated
from zoo.ops.cuda import max_memory_reserved as max_memory_reserved
from zoo.ops.cuda import mem_get_info as mem_get_info
from zoo.ops.cuda import memory_allocated as memory_allocated
from zoo.ops.cuda import memory_reserved as memory_reserved
from zoo.ops.cuda import reset_peak_memory_stats as reset_peak_memory_stats
from zoo.ops.cuda import set_device as set_device
from zoo.ops.cuda import set_stream as set_stream
from zoo.ops.cuda import stream as stream
from zoo.ops.cuda import synchronize as synchronize

manual_seed_all = manual_seed
