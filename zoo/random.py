"""torch.random's names: the default generator's seed and state."""
from contextlib import contextmanager as _contextmanager

from zoo.autograd.random import default_generator as default_generator
from zoo.autograd.random import get_rng_state as get_rng_state
from zoo.autograd.random import initial_seed as initial_seed
from zoo.autograd.random import manual_seed as manual_seed
from zoo.autograd.random import seed as seed
from zoo.autograd.random import set_rng_state as set_rng_state


@_contextmanager
def fork_rng(devices=None, enabled: bool = True):
    """What is drawn inside leaves the default generator as it was.

    Example:
        >>> import zoo
        >>> with zoo.random.fork_rng():
        ...     _ = zoo.manual_seed(1)
    """
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
