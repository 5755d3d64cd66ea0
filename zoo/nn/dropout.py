"""Dropout as modules."""

from zoo.nn import functional as F  # noqa: N812
from zoo.nn.module import Module


class Dropout1d(Module):
    """While training, sets whole channels of (N, C, L) to 0 with probability p, and scales the rest by 1 / (1 - p)."""

    function = "dropout1d"

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}: wants a probability between 0 and 1, got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input):  # noqa: A002
        return getattr(F, self.function)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(Dropout1d):
    """While training, sets elements to 0 with probability p and scales the rest by 1 / (1 - p) (Srivastava, 2014).

    Example:
        >>> import zoo
        >>> zoo.nn.Dropout(0.5).eval()(zoo.ones(3))
        tensor([1., 1., 1.])
    """

    function = "dropout"


class Dropout2d(Dropout1d):
    """While training, sets whole channels of (N, C, H, W) to 0 with probability p; the rest grows by 1 / (1 - p)."""

    function = "dropout2d"


class Dropout3d(Dropout1d):
    """While training, sets whole channels of (N, C, D, H, W) to 0 with probability p; the rest grows by 1 / (1 - p)."""

    function = "dropout3d"


class AlphaDropout(Dropout1d):
    """Dropout that keeps the mean and variance of SELU activations (Klambauer et al., 2017)."""

    function = "alpha_dropout"

    def forward(self, input):  # noqa: A002  (torch's module, too, has an `inplace` that it does not heed)
        return getattr(F, self.function)(input, self.p, self.training)


class FeatureAlphaDropout(AlphaDropout):
    """AlphaDropout of whole channels."""

    function = "feature_alpha_dropout"
