"""torch's integrals and differences of samples: trapezoid rule and numerical gradient."""
from numbers import Number

from zoo.ops.dims import wrap
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.face.shape import at
from zoo.ops.join import cat
from zoo.ops.op import OPS
from zoo.ops.shape import basic_index, reshape

FUNCTIONS = ("cumulative_trapezoid", "gradient", "trapezoid", "trapz")
METHODS = ()
NN_FUNCTIONS = ()
INPLACE = ()


def panels(name, y, x, dx, d: int):
    """The area between every two neighbours along d, where `x` gives the places or `dx` their distance."""
    if x is not None and dx is not None:
        raise ArgumentError(f"{name}: wants x or dx, got both")
    later, earlier = basic_index(y, at(d, slice(1, None))), basic_index(y, at(d, slice(0, max(y.shape[d] - 1, 0))))
    sums = OPS["add"](later, earlier)
    if x is None:
        return sums * ((1.0 if dx is None else dx) / 2)
    if len(x.shape) == 1:
        if x.shape[0] != y.shape[d]:
            raise ShapeError(f"{name}: wants x of {y.shape[d]} elements, got {x.shape[0]}")
        x = reshape(x, (-1,) + (1,) * (len(y.shape) - 1 - d))
        along = 0
    else:
        along = len(x.shape) - (len(y.shape) - d)
        if along < 0:
            raise ShapeError(f"{name}: wants x that broadcasts to {tuple(y.shape)}, got {tuple(x.shape)}")
    n = x.shape[along]
    steps = basic_index(x, at(along, slice(1, None))) - basic_index(x, at(along, slice(0, max(n - 1, 0))))
    return sums * steps * 0.5


def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral along `dim` by the trapezoid rule: sum of (y[i] + y[i + 1]) / 2 (x[i + 1] - x[i]).

    Args:
        y: samples, any shape. x: their places, (n,) or like y. dx: their distance, if they are evenly spaced (1).

    Raises:
        ArgumentError: both x and dx. ShapeError: x does not fit y.

    Example:
        >>> import zoo
        >>> zoo.trapezoid(zoo.tensor([1.0, 2.0, 3.0])).item()
        4.0
    """
    d = wrap("trapezoid", dim, len(y.shape))
    return OPS["sum"](panels("trapezoid", y, x, dx, d), d, False, None)


def trapz(y, x=None, *, dx=None, dim=-1):
    """`trapezoid` under its older name."""
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral along `dim` up to each sample but the first; see `trapezoid`.

    Example:
        >>> import zoo
        >>> zoo.cumulative_trapezoid(zoo.tensor([1.0, 2.0, 3.0])).tolist()
        [1.5, 4.0]
    """
    d = wrap("cumulative_trapezoid", dim, len(y.shape))
    return OPS["cumsum"](panels("cumulative_trapezoid", y, x, dx, d), d, None)


def gradient(input, *, spacing=None, dim=None, edge_order=1):
    """The derivative of samples along each of `dim` (default: all), by central differences, as a list of tensors.

    Args:
        spacing: the distance of samples (1), a number or one for each dim; or their places, a 1-d tensor for each dim.
        edge_order: 1 takes the first two samples at a border, 2 the first three.

    Raises:
        ArgumentError: another edge_order, or not one spacing for each dim. ShapeError: too few samples.

    Example:
        >>> import zoo
        >>> zoo.gradient(zoo.tensor([1.0, 2.0, 4.0]))[0].tolist()
        [1.0, 1.5, 2.0]
    """
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: wants edge_order 1 or 2, got {edge_order}")
    rank = len(input.shape)
    dims = range(rank) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = [wrap("gradient", d, rank) for d in dims]
    several = isinstance(spacing, (list, tuple))
    spaces = list(spacing) if several else [1 if spacing is None else spacing] * len(dims)
    if len(spaces) != len(dims) or len(set(dims)) != len(dims):
        raise ArgumentError(f"gradient: wants one spacing for each of the dims {dims}, got {len(spaces)}")
    return [differences(input, d, space, edge_order) for d, space in zip(dims, spaces, strict=True)]


def differences(x, d: int, space, edge_order: int):
    """The derivative along d. With steps h0 before and h1 after a sample it is exact for parabolas."""
    n = x.shape[d] if len(x.shape) else 0
    if n <= edge_order:
        raise ShapeError(f"gradient: wants more than {edge_order} samples along dim {d}, got shape {tuple(x.shape)}")

    def part(a, b):
        return basic_index(x, at(d, slice(a, b if b else None)))

    def step(a, b):
        """h[a:b] of the n - 1 steps, in a shape that broadcasts along d."""
        if isinstance(space, Number):
            return space
        h = basic_index(space, (slice(1, None),)) - basic_index(space, (slice(0, n - 1),))
        return reshape(basic_index(h, (slice(a, b if b else None),)), (-1,) + (1,) * (len(x.shape) - 1 - d))

    def three(h0, h1, y0, y1, y2, weights):
        a, b, c = weights(h0, h1)
        return y0 * a + y1 * b + y2 * c

    inner = []
    if n > 2:
        if isinstance(space, Number):
            inner = [(part(2, 0) - part(0, -2)) / (2 * space)]
        else:
            inner = [three(step(0, -1), step(1, 0), part(0, -2), part(1, -1), part(2, 0), centred)]
    if edge_order == 1:
        first, last = (part(1, 2) - part(0, 1)) / step(0, 1), (part(n - 1, n) - part(n - 2, n - 1)) / step(n - 2, n - 1)
    else:
        first = three(step(0, 1), step(1, 2), part(0, 1), part(1, 2), part(2, 3), at_start)
        last = three(step(n - 2, n - 1), step(n - 3, n - 2), part(n - 1, n), part(n - 2, n - 1), part(n - 3, n - 2),
                     lambda h0, h1: tuple(-w for w in at_start(h0, h1)))
    return cat(d, first, *inner, last)


def centred(h0, h1):
    """The weights of three samples for the derivative at the middle one."""
    return -h1 / (h0 * (h0 + h1)), (h1 - h0) / (h0 * h1), h0 / (h1 * (h0 + h1))


def at_start(h0, h1):
    """The weights of three samples for the derivative at the first one."""
    return -(2 * h0 + h1) / (h0 * (h0 + h1)), (h0 + h1) / (h0 * h1), -h0 / (h1 * (h0 + h1))
