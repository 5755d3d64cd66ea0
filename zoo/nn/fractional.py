"""Max pooling over windows at random places, as layers."""
from typing import Any

from zoo.autograd.tensor import Tensor
from zoo.nn import functional as F  # noqa: N812
from zoo.nn.module import Module
from zoo.ops.errors import ArgumentError


class FractionalMaxPool2d(Module):
    """The largest value of windows whose steps are drawn anew in each call: nn.functional.fractional_max_pool2d.

    Args:
        kernel_size, output_size, output_ratio, return_indices: as of the function.

    Raises:
        ValueError: both or none of output_size and output_ratio.

    Example:
        >>> import zoo
        >>> zoo.nn.FractionalMaxPool2d(2, output_size=(3, 5))(zoo.rand(1, 2, 8, 8)).shape
        (1, 2, 3, 5)
    """

    dims = 2

    def __init__(self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None):
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ArgumentError(f"{type(self).__name__}: wants either output_size or output_ratio, "
                                f"got {output_size} and {output_ratio}")
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices, self._random_samples = return_indices, _random_samples

    def forward(self, input: Tensor) -> Any:  # noqa: A002
        pool = getattr(F, f"fractional_max_pool{self.dims}d")
        return pool(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                    self._random_samples)


class FractionalMaxPool3d(FractionalMaxPool2d):
    """FractionalMaxPool2d of volumes."""

    dims = 3
