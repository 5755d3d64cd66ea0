"""A weight computed from other parameters before every call: weight and spectral normalisation."""
from typing import Any

from zoo.autograd.mode import no_grad
from zoo.autograd.random import randn
from zoo.nn.functional import normalize
from zoo.nn.module import Module
from zoo.nn.parameter import Parameter
from zoo.nn.utils.norms import as_matrix, norm_except, rows_of
from zoo.ops.errors import ArgumentError


class Computed:
    """A forward pre-hook that sets `module.<name>` to what `compute(module)` gives; subclasses say how."""

    def __init__(self, name: str):
        self.name = name

    def compute(self, module: Module) -> Any:
        """The weight, from the parameters and buffers that stand for it."""
        raise NotImplementedError

    def __call__(self, module: Module, args: tuple) -> None:
        object.__setattr__(module, self.name, self.compute(module))

    def take(self, module: Module) -> Any:
        """Takes the parameter out of the module, and registers this hook."""
        if any(isinstance(h.function, Computed) and h.function.name == self.name
               for h in (module._hooks or {}).values()):
            raise ArgumentError(f"{type(self).__name__}: {self.name!r} is computed already")
        weight = getattr(module, self.name)
        if not isinstance(weight, Parameter):
            raise ArgumentError(f"{type(self).__name__}: wants the name of a parameter, got {self.name!r}")
        del module._parameters[self.name]
        module.register_forward_pre_hook(self)
        return weight


class WeightNorm(Computed):
    """weight = g v / |v|; the norm is over all dimensions but `dim`, or over all of them where dim is None or -1."""

    def __init__(self, name: str, dim: int | None):
        super().__init__(name)
        self.dim = dim

    def compute(self, module: Module) -> Any:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except(v, self.dim))


class SpectralNorm(Computed):
    """weight = weight_orig / sigma, sigma its largest singular value by steps of the power iteration."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        super().__init__(name)
        self.steps, self.dim, self.eps = n_power_iterations, dim, eps

    def compute(self, module: Module) -> Any:
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = as_matrix(weight, self.dim)
        if module.training:
            with no_grad():
                for _ in range(self.steps):
                    v.copy_(normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(normalize(matrix.mv(v), dim=0, eps=self.eps))
        # copies: the next call writes into the buffers, while this one's graph still needs them
        return weight / u.clone().dot(matrix.mv(v.clone()))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Puts `<name>_g` and `<name>_v` in place of a module's parameter, which is then g v / |v| in every call.

    Args:
        module: any module; it is changed and given back. name: its parameter.
        dim: one norm for each index of this dimension; None or -1 for one norm of all.

    Raises:
        ArgumentError (ValueError, RuntimeError): no such parameter, or normalised already.

    Source: T. Salimans and D. P. Kingma, arXiv 1602.07868.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.utils.weight_norm(zoo.nn.Linear(20, 40))
        >>> layer.weight_g.shape, layer.weight_v.shape
        ((40, 1), (40, 20))
    """
    hook = WeightNorm(name, dim)
    weight = hook.take(module)
    module.register_parameter(f"{name}_g", Parameter(norm_except(weight.detach(), dim).clone()))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    hook(module, ())
    return module


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a module's parameter by its largest singular value in every call; `<name>_orig` is what is trained.

    Args:
        module: any module; it is changed and given back. name: its parameter, taken as a matrix whose rows are `dim`
            (by default 1 for transposed convolutions, else 0).
        n_power_iterations: steps in each call in training mode, from the vectors of the call before.
        eps: added to the vectors' norms.

    Raises:
        ArgumentError (ValueError, RuntimeError): no such parameter, normalised already, or no steps.

    Source: T. Miyato et al., arXiv 1802.05957.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.utils.spectral_norm(zoo.nn.Linear(20, 40))
        >>> sorted(layer.state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if n_power_iterations < 1:
        raise ArgumentError(f"spectral_norm: wants n_power_iterations > 0, got {n_power_iterations}")
    if dim is None:
        dim = rows_of(module)
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = hook.take(module)
    rows, columns = as_matrix(weight.detach(), dim).shape
    module.register_parameter(f"{name}_orig", weight)
    for letter, size in (("u", rows), ("v", columns)):
        vector = normalize(randn(size, dtype=weight.dtype, device=weight.device), dim=0, eps=eps)
        module.register_buffer(f"{name}_{letter}", vector)
    object.__setattr__(module, name, weight.detach())
    return module


def remove(kind: type, function: str, module: Module, name: str, parts: tuple[str, ...]) -> Module:
    """The parameter again, with the value it has, in place of `parts` and the hook."""
    for key, hook in list((module._hooks or {}).items()):
        if isinstance(hook.function, kind) and hook.function.name == name:
            with no_grad():
                weight = hook.function.compute(module)
            del module._hooks[key]
            for part in parts:
                delattr(module, f"{name}_{part}")
            module.__dict__.pop(name, None)
            module.register_parameter(name, Parameter(weight.detach().clone()))
            return module
    raise ArgumentError(f"{function}: {name!r} of {type(module).__name__} is not normalised")


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes a parameter of `weight_norm` an ordinary one again. Raises ArgumentError if it is one."""
    return remove(WeightNorm, "remove_weight_norm", module, name, ("g", "v"))


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Makes a parameter of `spectral_norm` an ordinary one again. Raises ArgumentError if it is one."""
    return remove(SpectralNorm, "remove_spectral_norm", module, name, ("orig", "u", "v"))
