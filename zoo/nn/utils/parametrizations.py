"""weight_norm, spectral_norm and orthogonal as parametrizations: torch.nn.utils.parametrizations."""
from typing import Any

from zoo.autograd.creation import eye, zeros
from zoo.autograd.mode import no_grad
from zoo.autograd.random import randn
from zoo.autograd.tensor import Tensor
from zoo.nn.functional import normalize
from zoo.nn.module import Module
from zoo.nn.utils.norms import as_matrix, norm_except, rows_of
from zoo.nn.utils.parametrize import register_parametrization
from zoo.ops.dtypes import bool_
from zoo.ops.errors import ArgumentError
from zoo.ops.face.factors import linalg_qr
from zoo.ops.face.join import cat
from zoo.ops.face.linalg import solve
from zoo.ops.face.matrix_functions import geqrf, householder_product, matrix_exp
from zoo.ops.face.pointwise import allclose, where
from zoo.ops.limits import finfo

FIRST_ITERATIONS = 15       # of the power iteration when spectral_norm is registered, as many as torch's


def weight_of(function: str, module: Module, name: str) -> Tensor:
    """The parameter, buffer or parametrized tensor of that name."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(f"{function}: {type(module).__name__} has no parameter or buffer {name!r}")
    return weight


class WeightNorm(Module):
    """g v / |v|; see weight_norm."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The norms and the weight itself."""
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """module.<name> = g v / |v|, with g and v as parameters: parametrizations.<name>.original0 and original1.

    Args:
        dim: one norm for each index of this dimension; None or -1 for one norm of all.

    A state_dict of `nn.utils.weight_norm` (<name>_g, <name>_v) can be loaded too.

    Raises:
        ArgumentError (ValueError, RuntimeError): no such parameter.

    Source: T. Salimans and D. P. Kingma, arXiv 1602.07868.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.utils.parametrizations.weight_norm(zoo.nn.Linear(20, 40))
        >>> layer.parametrizations.weight.original0.shape, layer.weight.shape
        ((40, 1), (40, 20))
    """
    weight_of("weight_norm", module, name)
    register_parametrization(module, name, WeightNorm(dim), unsafe=True)

    def take_old_names(module: Module, state: dict, prefix: str, *_: Any) -> None:
        for old, new in (("g", "original0"), ("v", "original1")):
            if f"{prefix}{name}_{old}" in state:
                state[f"{prefix}parametrizations.{name}.{new}"] = state.pop(f"{prefix}{name}_{old}")

    module.register_load_state_dict_pre_hook(take_old_names)
    return module


class SpectralNorm(Module):
    """weight / its largest singular value, by power iteration on the buffers _u and _v; see spectral_norm."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        if n_power_iterations < 1:
            raise ArgumentError(f"spectral_norm: wants n_power_iterations > 0, got {n_power_iterations}")
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"spectral_norm: wants dim in [{-weight.ndim}, {weight.ndim - 1}], got {dim}")
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps
        if weight.ndim > 1:
            with no_grad():
                matrix = as_matrix(weight.detach(), dim)
                for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                    self.register_buffer(name, normalize(randn(size, dtype=weight.dtype, device=weight.device), dim=0,
                                                         eps=eps))
                self.iterate(matrix, FIRST_ITERATIONS)

    def iterate(self, matrix: Tensor, steps: int) -> None:
        """Brings _u and _v nearer to the singular vectors of the largest singular value."""
        for _ in range(steps):
            self._u.copy_(normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            with no_grad():
                self.iterate(matrix, self.n_power_iterations)
        # copies: the next call writes into the buffers, while this one's graph still needs them
        return weight / self._u.clone().dot(matrix.mv(self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself, which forward scales."""
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """Divides module.<name> by its largest singular value; parametrizations.<name>.original is what is trained.

    Args:
        n_power_iterations: steps at each reading in training mode, from the vectors of the reading before.
        eps: bounds the vectors' norms from below.
        dim: counts the rows of the weight as a matrix; by default 1 for transposed convolutions, else 0.

    Raises:
        ArgumentError (ValueError, RuntimeError): no such parameter, or no steps. IndexError: no such dim.

    Source: T. Miyato et al., arXiv 1802.05957.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.utils.parametrizations.spectral_norm(zoo.nn.Linear(20, 40))
        >>> round(zoo.linalg.norm(layer.eval().weight, 2).item())
        1
    """
    weight = weight_of("spectral_norm", module, name)
    rows = rows_of(module) if dim is None else dim
    return register_parametrization(module, name, SpectralNorm(weight, n_power_iterations, rows, eps))


def skew(x: Tensor) -> Tensor:
    """X - X' of the lower triangle of x (..., n, k), filled up to n columns with zeros."""
    n, k = x.shape[-2:]
    low = x.tril()
    low = low if n == k else cat([low, zeros(*x.shape[:-1], n - k, dtype=x.dtype, device=x.device)], -1)
    return low - low.mT


def by_exponential(x: Tensor) -> Tensor:
    """exp of a skew matrix."""
    return matrix_exp(skew(x))


def by_cayley(x: Tensor) -> Tensor:
    """(1 - A / 2)^-1 (1 + A / 2) of a skew matrix A."""
    a = skew(x)
    one = eye(a.shape[-1], dtype=a.dtype, device=a.device)
    return solve(one - a / 2, one + a / 2)


def by_reflections(x: Tensor) -> Tensor:
    """The product of the reflections below x's diagonal, whose signs choose those of the columns."""
    below = x.tril(-1)
    signs = x.detach().diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    return householder_product(below, 2 / (1 + (below * below).sum(-2))) * signs


MAPS = {"matrix_exp": by_exponential, "cayley": by_cayley, "householder": by_reflections}


class Orthogonal(Module):
    """A matrix with orthonormal columns (or rows, if it is wide) from any matrix of its shape; see orthogonal."""

    base: Tensor

    def __init__(self, shape: tuple, orthogonal_map: str, use_trivialization: bool = True):
        super().__init__()
        self.shape, self.orthogonal_map, self.use_trivialization = tuple(shape), orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.shape[-2] < x.shape[-1]
        tall = x.mT if wide else x
        q = MAPS[self.orthogonal_map](tall)[..., :tall.shape[-1]]
        q = self.base @ q if self.use_trivialization else q
        return q.mT if wide else q

    def right_inverse(self, q: Tensor) -> Tensor:
        """What gives q, or the orthogonal matrix of its QR decomposition."""
        if tuple(q.shape) != self.shape:
            raise ArgumentError(f"orthogonal: wants a matrix of shape {self.shape}, got {q.shape}")
        if not self.use_trivialization and self.orthogonal_map != "householder":
            raise NotImplementedError(f"orthogonal: {self.orthogonal_map} without use_trivialization has no right "
                                      "inverse")
        wide = q.shape[-2] < q.shape[-1]
        tall = q.mT if wide else q
        with no_grad():
            n, k = tall.shape[-2:]
            unit = eye(n, k, dtype=q.dtype, device=q.device)
            if self.use_trivialization:
                self.base = orthonormal(tall)
                x: Any = -unit.expand(tall.shape).contiguous()         # of which each map makes the unit matrix
            else:
                a, tau = geqrf(tall)
                signs = a.diagonal(dim1=-2, dim2=-1).sign()
                signs = where(tau == 0, -signs, signs)         # no reflection: the one in its place flips the sign
                x = where(unit.to(bool_), signs.unsqueeze(-2), a)
            return x.mT.contiguous() if wide else x


def orthonormal(tall: Tensor) -> Tensor:
    """A square orthogonal matrix whose first columns are those of `tall` (..., n, k), made orthonormal if need be."""
    n, k = tall.shape[-2:]
    one = eye(n, dtype=tall.dtype, device=tall.device)
    if n == k and allclose(tall.mT @ tall, one.expand(tall.shape), atol=10 * n * finfo(tall.dtype).eps):
        return tall.clone()
    if n != k:
        tall = cat([tall, randn(*tall.shape[:-1], n - k, dtype=tall.dtype, device=tall.device)], -1)
    q, r = linalg_qr(tall)
    return q * where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(q.dtype).unsqueeze(-2)


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Module:
    """Makes module.<name> (..., m, n) a matrix with orthonormal columns if m >= n, otherwise with orthonormal rows.

    Args:
        orthogonal_map: "matrix_exp" or "cayley" of a skew matrix, or "householder", a product of reflections; by
            default "matrix_exp" for square matrices and "householder" for others.
        use_trivialization: the map is taken around a fixed matrix, the buffer parametrizations.<name>[0].base. Then the
            weight starts where it is if it is orthogonal, otherwise from its QR decomposition, and can be assigned to.

    Raises:
        ArgumentError (ValueError, RuntimeError): no such parameter, less than two dimensions, or an unknown map.

    Source: M. Lezcano-Casado, "Trivializations for gradient-based optimization on manifolds", arXiv 1909.09501.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.utils.parametrizations.orthogonal(zoo.nn.Linear(20, 40))
        >>> zoo.allclose(layer.weight.T @ layer.weight, zoo.eye(20), atol=1e-5)
        True
    """
    weight = weight_of("orthogonal", module, name)
    if weight.ndim < 2:
        raise ArgumentError(f"orthogonal: wants a matrix or a batch of them, got shape {weight.shape}")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in MAPS:
        raise ArgumentError(f"orthogonal: wants orthogonal_map to be one of {sorted(MAPS)}, got {orthogonal_map!r}")
    return register_parametrization(module, name, Orthogonal(weight.shape, orthogonal_map, use_trivialization),
                                    unsafe=True)
