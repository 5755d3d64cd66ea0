"""What a GPU is and can, and torch.cuda's names of what zoo has one of for all devices: its random numbers."""
from dataclasses import dataclass
from typing import Any

from zoo.autograd.random import default_generator
from zoo.autograd.random import get_rng_state as state_of_all
from zoo.autograd.random import set_rng_state as set_state_of_all
from zoo.autograd.tensor import Tensor
from zoo.ops.cuda.driver import (
    attribute,
    cuda,
    device_count,
    get_device_capability,
    get_device_name,
    index,
    multiprocessors,
    state,
)
from zoo.ops.cuda.mode import is_interpreting
from zoo.ops.cuda.statistics import mem_get_info

# Of the device that the interpreter plays: an architecture's limits, as NVIDIA's tables have them for sm_90.
PLAYED = {"warp_size": 32, "max_threads_per_block": 1024, "max_threads_per_multi_processor": 2048,
          "regs_per_multiprocessor": 65536, "shared_memory_per_block": 49152, "shared_memory_per_block_optin": 232448,
          "shared_memory_per_multiprocessor": 233472, "L2_cache_size": 0, "clock_rate": 0, "is_integrated": 0}
ATTRIBUTES = {"warp_size": "WARP_SIZE", "max_threads_per_block": "MAX_THREADS_PER_BLOCK",
              "max_threads_per_multi_processor": "MAX_THREADS_PER_MULTIPROCESSOR",
              "regs_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
              "shared_memory_per_block": "MAX_SHARED_MEMORY_PER_BLOCK",
              "shared_memory_per_block_optin": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
              "shared_memory_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
              "L2_cache_size": "L2_CACHE_SIZE", "clock_rate": "CLOCK_RATE", "is_integrated": "INTEGRATED"}


@dataclass(frozen=True)
class DeviceProperties:
    """A GPU's name, compute capability (major.minor) and sizes: bytes, registers, threads, kHz."""
    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    clock_rate: int
    is_integrated: int


def get_device_properties(device: Any = None) -> DeviceProperties:
    """What the driver says of a device (a number, "cuda:0", a zoo.device; by default the current one).

    In the interpreter: the host's memory, and the limits of sm_90; L2_cache_size and clock_rate are 0.

    Raises:
        RuntimeError: no GPU, or no device of that number. ValueError: a device that is no GPU.

    Example:
        >>> import zoo
        >>> if zoo.cuda.is_available():
        ...     assert zoo.cuda.get_device_properties(0).warp_size == 32
    """
    number = index(device)
    if not is_interpreting():
        cuda()                                      # says in one line that there is no GPU
    if not 0 <= number < device_count():
        raise RuntimeError(f"get_device_properties: device {number} does not exist; there are {device_count()}")
    sizes = PLAYED if is_interpreting() else {name: attribute(key, number) for name, key in ATTRIBUTES.items()}
    return DeviceProperties(get_device_name(number), *get_device_capability(number), mem_get_info(number)[1],
                            multiprocessors(number), **sizes)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether kernels run in bfloat16: from compute capability 8.0 on. Nothing is emulated here.

    Example:
        >>> import zoo
        >>> zoo.cuda.is_bf16_supported() in (True, False)
        True
    """
    return device_count() > 0 and get_device_capability() >= (8, 0)


def is_tf32_supported() -> bool:
    """Whether float32 products may round their inputs to tf32: from compute capability 8.0 on."""
    return is_bf16_supported()


def init() -> None:
    """Loads the driver, which the first tensor on a GPU does too. RuntimeError where there is none."""
    if not is_interpreting():
        cuda()


def is_initialized() -> bool:
    """Whether this thread has used a GPU."""
    return state.context is not None


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The default generator's state: the same one for the CPU and every GPU."""
    return state_of_all()


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Sets the default generator's state, for all devices."""
    set_state_of_all(new_state)


def get_rng_state_all() -> list[Tensor]:
    """The state for each GPU: the same one, as often as there are GPUs."""
    return [state_of_all() for _ in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Sets the default generator's state to the last of new_states; from get_rng_state_all they are all the same."""
    for new_state in new_states:
        set_state_of_all(new_state)


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def seed() -> None:
    """Seeds the default generator from the operating system."""
    default_generator.seed()
