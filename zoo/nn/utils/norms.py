"""Norms of weights, which both kinds of weight and spectral normalisation use."""
from zoo.autograd.tensor import Tensor


def norm_except(v: Tensor, dim: int | None) -> Tensor:
    """|v| over all dimensions but `dim`, of a shape that v divides by; None and -1 mean over all, as in torch."""
    if dim is None or dim == -1:
        return v.norm()
    kept = dim % v.ndim
    return v.norm(2, [d for d in range(v.ndim) if d != kept], keepdim=True) if v.ndim > 1 else v.abs()


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """weight with `dim` as its rows."""
    return weight.movedim(dim, 0).reshape(weight.shape[dim], -1)


def rows_of(module: object) -> int:
    """The dimension of a module's weight that counts its outputs."""
    return 1 if "ConvTranspose" in type(module).__name__ else 0
