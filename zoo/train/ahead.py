"""Batches on the device, the next one on its way while the GPU computes with the present one."""

from collections.abc import Callable, Iterator
from typing import Any

from zoo.autograd.tensor import Tensor
from zoo.ops import cuda


class Ahead:
    """Iterates over a loader's batches; `prepare()` fetches the next one and starts its copy on a stream of its own.

    Without a call of it, batches are fetched when they are asked for.

    Args:
        batches: what the loader gives. upload: moves a loaded batch to the device. on_gpu: whether that is a GPU.
    """

    def __init__(self, batches: Any, upload: Callable[[Any], Any], on_gpu: bool):
        self.batches, self.upload = iter(batches), upload
        self.stream = cuda.Stream() if on_gpu else None
        self.ready: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self.ready:
            self.prepare()
        batch = self.ready.pop()
        if batch is None:
            raise StopIteration
        if self.stream is not None:
            here = cuda.current_stream()
            here.wait_stream(self.stream)
            for x in batch:
                if isinstance(x, Tensor) and x.is_cuda:
                    x.array.owner.record_stream(here)
        return batch

    def prepare(self) -> None:
        """Fetches the next batch, unless that was done; the host may have to wait for it, the GPU works on."""
        if self.ready:
            return
        loaded = next(self.batches, None)
        with cuda.stream(self.stream):
            self.ready.append(None if loaded is None else self.upload(loaded))
