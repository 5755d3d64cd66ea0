"""torch.special's functions: those that are torch's own under another name, and a few made of them."""
from math import sqrt

from zoo.ops import transcendental
from zoo.ops.dtypes import INEXACT
from zoo.ops.face import pointwise
from zoo.ops.op import OPS, into

FUNCTIONS = ()
METHODS = ()
NN_FUNCTIONS = ()
INPLACE = ()


def given(result, out):
    """The result, or `out` with the result moved into it."""
    return result if out is None else into(result, out)


def floating(x):
    """Integers as the default float dtype."""
    return x if x.dtype in INEXACT else x * 1.0


def entr(input, *, out=None):
    """-x log(x), 0 at 0 and -inf below: the elements' part in the entropy.

    Example:
        >>> import zoo
        >>> zoo.special.entr(zoo.tensor([0.0, 1.0, -1.0])).tolist()
        [0.0, -0.0, -inf]
    """
    return given(transcendental.entr(input), out)


def ndtr(input, *, out=None):
    """The area under the normal distribution's curve up to x: erfc(-x / sqrt(2)) / 2.

    Example:
        >>> import zoo
        >>> zoo.special.ndtr(zoo.tensor([0.0])).item()
        0.5
    """
    return given(OPS["erfc"](floating(input) * -sqrt(0.5)) * 0.5, out)


def ndtri(input, *, out=None):
    """The inverse of `ndtr`: sqrt(2) erfinv(2 x - 1).

    Example:
        >>> import zoo
        >>> zoo.special.ndtri(zoo.tensor([0.5])).item()
        0.0
    """
    return given(OPS["erfinv"](floating(input) * 2.0 - 1.0) * sqrt(2), out)


def xlog1py(input, other, *, out=None):
    """input log(1 + other), and 0 where input is 0.

    Example:
        >>> import zoo
        >>> zoo.special.xlog1py(zoo.tensor([0.0]), zoo.tensor([-1.0])).item()
        0.0
    """
    return given(OPS["xlog1py"](input, other), out)


SAME = {"digamma": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expit": "sigmoid",
        "expm1": "expm1", "gammaln": "lgamma", "log1p": "log1p", "logit": "logit", "polygamma": "polygamma",
        "psi": "digamma", "round": "round", "sinc": "sinc", "xlogy": "xlogy"}
SPECIAL_FUNCTIONS = {name: getattr(pointwise, of) for name, of in SAME.items()}
SPECIAL_FUNCTIONS |= {f.__name__: f for f in (entr, ndtr, ndtri, xlog1py)}
