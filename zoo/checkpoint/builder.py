"""What a reader makes of the tensors that it finds."""
from typing import Any

import numpy as np


class Builder:
    """Plain NumPy: arrays stay arrays, devices are their names. zoo.load has a builder that makes Tensors."""

    def tensor(self, array: np.ndarray, location: str, requires_grad: bool) -> Any:
        """A tensor that was saved from the device `location`."""
        return array

    def parameter(self, tensor: Any, requires_grad: bool) -> Any:
        """An nn.Parameter around what `tensor` returned."""
        return tensor

    def device(self, name: str) -> Any:
        """A device by its name: "cpu", "cuda:0"."""
        return name
