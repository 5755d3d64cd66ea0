"""Random numbers of a sample that depend on nothing but the pass, the sample's place in it and its index.

One pass over a dataset has a key of 128 bits: the (seed, offset) that a Generator gave for it, so a new one in every
epoch. Under this key each sample owns 2^128 Philox 4x64-10 blocks, counted from (0, kind, place, index). Whichever
process loads the sample finds the same numbers there, so batches do not depend on the number of workers. Source:
J. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from zoo.autograd.random import default_generator

SAMPLE, COLLATE, ITEM, WORKER = range(4)  # what the numbers are for: streams of two kinds never meet
WORD = (1 << 64) - 1


class Streams:
    """The streams of one pass, of which one at a time is current: that of the sample being loaded.

    Args:
        seed, offset: the key of the pass, from `Generator.draw()`.

    Example:
        >>> streams = Streams(3, 0)
        >>> with streams.installed():
        ...     streams.begin(SAMPLE, place=0, index=7)
        ...     a = sample_stream().random()
        >>> with streams.installed():
        ...     streams.begin(SAMPLE, place=0, index=7)
        ...     a == sample_stream().random()
        True
    """

    def __init__(self, seed: int, offset: int):
        self.key = np.array([seed & WORD, offset & WORD], np.uint64)
        self.blocks = np.random.Philox(key=self.key)
        self.fresh = self.blocks.state
        self.legacy = np.random.MT19937(0)  # what `np.random.rand` and its kin draw from while installed
        self.counter = np.zeros(4, np.uint64)
        self.stream: np.random.Generator | None = None

    def begin(self, kind: int, place: int, index: int = 0) -> None:
        """Makes the stream of (kind, place, index) the current one, and seeds the global generators from it."""
        self.counter = np.array([0, kind, place & WORD, index & WORD], np.uint64)
        self.stream = None
        self.fresh["state"]["counter"] = self.counter
        self.blocks.state = self.fresh
        zoo_seed, python_seed, numpy_seed, _ = self.blocks.random_raw(4).tolist()
        default_generator.manual_seed(zoo_seed)
        random.seed(python_seed)
        np.random.seed(numpy_seed & 0xFFFFFFFF)

    def current(self) -> np.random.Generator:
        """The current stream; its first block went to the global generators."""
        if self.stream is None:
            counter = self.counter.copy()
            counter[0] = 1
            self.stream = np.random.Generator(np.random.Philox(key=self.key, counter=counter))
        return self.stream

    @contextmanager
    def installed(self) -> Iterator[None]:
        """`sample_stream()` answers from here; the states of the global generators come back afterwards."""
        python, zoo, numpy = random.getstate(), default_generator.get_state(), np.random.get_bit_generator()
        np.random.set_bit_generator(self.legacy)  # swapped: reading and writing NumPy's state takes 50 us
        token = CURRENT.set(self)
        try:
            yield
        finally:
            CURRENT.reset(token)
            np.random.set_bit_generator(numpy)
            default_generator.set_state(zoo)
            random.setstate(python)


CURRENT: ContextVar[Streams | None] = ContextVar("CURRENT", default=None)


def sample_stream() -> np.random.Generator:
    """The random numbers of the sample that is being loaded, for datasets and random transforms.

    In a DataLoader it is the stream of (pass, place in the pass, sample's index), the same in whichever process loads
    the sample; calls for one sample go on where the last stopped. Elsewhere each call makes a stream from the next
    draw of zoo's default generator, so `zoo.manual_seed` fixes it.

    Returns:
        numpy.random.Generator on a Philox bit generator.

    Example:
        >>> import zoo
        >>> from zoo.data.seeding import sample_stream
        >>> _ = zoo.manual_seed(0)
        >>> 0 <= sample_stream().random() < 1
        True
    """
    streams = CURRENT.get()
    if streams is not None:
        return streams.current()
    key = np.array([part & WORD for part in default_generator.draw()], np.uint64)
    return np.random.Generator(np.random.Philox(key=key))
