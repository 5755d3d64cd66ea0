"""Pruning: masks that set chosen elements of a parameter to 0 in every call. torch.nn.utils.prune.

The parameter becomes `<name>_orig`, which goes on to be trained, beside the buffer `<name>_mask`; a forward pre-hook
puts their product in its place. Pruned again, a fraction counts of what is left.
"""
from collections.abc import Iterable, Iterator
from typing import Any, Self

from zoo.autograd.creation import ones_like, zeros_like
from zoo.autograd.mode import no_grad
from zoo.autograd.random import rand, rand_like
from zoo.autograd.tensor import Tensor
from zoo.nn.module import Module
from zoo.nn.utils.reparametrize import Computed
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.face.join import cat


class PruningContainer(Computed):
    """The forward pre-hook of one pruned parameter: the methods that were applied to it, in order."""

    def __init__(self, name: str):
        super().__init__(name)
        self._tensor_name, self.methods = name, []

    def compute(self, module: Module) -> Tensor:
        """The parameter with its mask on it."""
        orig = getattr(module, f"{self.name}_orig")
        return getattr(module, f"{self.name}_mask").to(orig.dtype) * orig

    def __len__(self) -> int:
        return len(self.methods)

    def __iter__(self) -> Iterator["BasePruningMethod"]:
        return iter(self.methods)

    def __getitem__(self, index: Any) -> Any:
        return self.methods[index]


class BasePruningMethod:
    """How a mask is chosen: subclass it, say PRUNING_TYPE, write compute_mask, and call `apply(module, name, ...)`.

    PRUNING_TYPE: "unstructured" (compute_mask sees the elements that are left, flat), "structured" (the slices that are
    left along the attribute `dim`) or "global" (everything).

    Example:
        >>> import zoo
        >>> class EveryOther(zoo.nn.utils.prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...     def compute_mask(self, t, default_mask):
        ...         mask = default_mask.clone()
        ...         mask.view(-1)[::2] = 0
        ...         return mask
        >>> layer = zoo.nn.Linear(2, 2)
        >>> method = EveryOther.apply(layer, "weight")
        >>> layer.weight_mask
        tensor([[0., 1.],
                [0., 1.]])
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The new mask of ones and zeros: t are the scores, default_mask what holds already; both of one shape."""
        raise NotImplementedError(f"{type(self).__name__}: compute_mask is not written")

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None,
              **kwargs: Any) -> Self:
        """Prunes module.<name> by a method made with args and kwargs; the scores are by default the values."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        container, value = container_of(module, name), getattr(module, name)
        before = ones_like(value) if container is None else getattr(module, f"{name}_mask").clone()
        mask = method.mask_of(value.detach() if importance_scores is None else importance_scores, before)
        if container is None:
            container = PruningContainer(name)
            module.register_parameter(f"{name}_orig", container.take(module))
        module.register_buffer(f"{name}_mask", mask)
        container.methods.append(method)
        container(module, ())
        return method

    def mask_of(self, scores: Tensor, before: Tensor) -> Tensor:
        """The mask `before`, with compute_mask's choice among what that leaves."""
        if scores.shape != before.shape:
            raise ShapeError(f"{type(self).__name__}: wants importance_scores of the parameter's shape {before.shape}, "
                             f"got {scores.shape}")
        with no_grad():
            place = self.left(before)
            mask = before.detach().clone()
            mask[place] = self.compute_mask(scores.detach()[place], default_mask=before.detach()[place]).to(mask.dtype)
            return mask

    def left(self, mask: Tensor) -> Any:
        """The index of what compute_mask is to see."""
        if self.PRUNING_TYPE == "global" or bool(mask.all()):
            return ...
        if self.PRUNING_TYPE == "unstructured":
            return mask == 1
        if self.PRUNING_TYPE != "structured":
            raise ValueError(f"{type(self).__name__}: wants PRUNING_TYPE 'unstructured', 'structured' or 'global', got "
                             f"{self.PRUNING_TYPE!r}")
        dim = checked_dim(self.dim, mask)
        return (slice(None),) * dim + (mask.sum(others(dim, mask)) != 0,)

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """t with the mask on it; no module takes part."""
        before = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, default_mask=before)

    def remove(self, module: Module) -> None:
        """Ends the pruning of its parameter; see `remove`."""
        remove(module, self._tensor_name)


class Amount(BasePruningMethod):
    """What the methods share that prune an amount: a count (int), or a fraction between 0 and 1 (float)."""

    def __init__(self, amount: int | float):
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise TypeError(f"prune: wants a number as amount, got {amount!r}")
        if amount < 0 or isinstance(amount, float) and amount > 1:
            raise ValueError(f"prune: wants amount to be a count, or a fraction between 0 and 1, got {amount}")
        self.amount = amount

    def count(self, size: int) -> int:
        """How many of `size` are pruned."""
        if isinstance(self.amount, int) and self.amount > size:
            raise ValueError(f"prune: wants an amount of at most {size}, got {self.amount}")
        return self.amount if isinstance(self.amount, int) else round(self.amount * size)


class Unstructured(Amount):
    """Prunes the elements of the lowest rank."""

    def ranks(self, t: Tensor) -> Tensor:
        """A number for each element of t."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """0 for the elements of the lowest rank."""
        mask = default_mask.contiguous().clone()
        if count := self.count(t.numel()):
            mask.view(-1)[self.ranks(t).reshape(-1).topk(count, largest=False).indices] = 0
        return mask


class Structured(Amount):
    """Prunes the slices along `dim` of the lowest rank."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def ranks(self, t: Tensor) -> Tensor:
        """A number for each slice."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """0 for the slices of the lowest rank, and where default_mask is 0."""
        if t.ndim < 2:
            raise ValueError(f"{type(self).__name__}: structured pruning wants two dimensions or more, got {t.shape}")
        dim = checked_dim(self.dim, t)
        count = self.count(t.shape[dim])
        kept = self.ranks(t).topk(t.shape[dim] - count).indices
        mask = zeros_like(t)
        mask[(slice(None),) * dim + (kept,)] = 1
        return mask * default_mask.to(mask.dtype)


class Identity(BasePruningMethod):
    """Prunes nothing: the mask is all ones."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """default_mask itself."""
        return default_mask


class RandomUnstructured(Unstructured):
    """Prunes elements at random."""

    def ranks(self, t: Tensor) -> Tensor:
        """Random numbers."""
        return rand_like(t)


class L1Unstructured(Unstructured):
    """Prunes the elements of the smallest absolute value."""

    def ranks(self, t: Tensor) -> Tensor:
        """The absolute values."""
        return t.abs()


class RandomStructured(Structured):
    """Prunes slices along `dim` at random."""

    def ranks(self, t: Tensor) -> Tensor:
        """Random numbers."""
        return rand(t.shape[self.dim], device=t.device)


class LnStructured(Structured):
    """Prunes the slices along `dim` of the smallest norm `n`."""

    def __init__(self, amount: int | float, n: Any, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def ranks(self, t: Tensor) -> Tensor:
        """The norms of the slices."""
        return t.norm(self.n, others(checked_dim(self.dim, t), t))


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The given mask and default_mask together."""
        if self.mask.shape != default_mask.shape:
            raise ShapeError(f"custom_from_mask: wants a mask of shape {default_mask.shape}, got {self.mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)


def checked_dim(dim: int, t: Tensor) -> int:
    """dim counted from the front."""
    if not -t.ndim <= dim < t.ndim:
        raise IndexError(f"prune: wants dim in [{-t.ndim}, {t.ndim - 1}], got {dim}")
    return dim % t.ndim


def others(dim: int, t: Tensor) -> list[int]:
    """All dimensions of t but one."""
    return [d for d in range(t.ndim) if d != dim]


def container_of(module: Module, name: str) -> PruningContainer | None:
    """The hook that prunes module.<name>."""
    for hook in (module._hooks or {}).values():
        if isinstance(hook.function, PruningContainer) and hook.function.name == name:
            return hook.function
    return None


def identity(module: Module, name: str) -> Module:
    """Pruning's names (`<name>_orig`, `<name>_mask`) without pruning anything."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Prunes a count or fraction of the elements, chosen at random.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.utils.prune.random_unstructured(zoo.nn.Linear(2, 3), "weight", amount=2)
        >>> int((layer.weight_mask == 0).sum())
        2
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None) -> Module:
    """Prunes the elements of the smallest absolute value (of importance_scores, if given).

    Args:
        module: it is changed and given back. name: of one of its parameters.
        amount: a count (int), or a fraction of the elements (float between 0 and 1).
        importance_scores: of the parameter's shape.

    Raises:
        ValueError: an amount that is negative or more than there is. ShapeError: scores of another shape.
        ArgumentError (ValueError, RuntimeError): no such parameter.

    Example:
        >>> import zoo
        >>> layer = zoo.nn.Linear(2, 1)
        >>> layer.weight.data = zoo.tensor([[-3.0, 1.0]])
        >>> zoo.nn.utils.prune.l1_unstructured(layer, "weight", amount=0.5).weight.tolist()
        [[-3.0, 0.0]]
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Prunes a count or fraction of the slices along `dim`, chosen at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: int | float, n: Any, dim: int,
                  importance_scores: Tensor | None = None) -> Module:
    """Prunes the slices along `dim` of the smallest norm n (a number, inf, -inf, "fro").

    Example:
        >>> import zoo
        >>> layer = zoo.nn.Linear(2, 2)
        >>> layer.weight.data = zoo.tensor([[3.0, -1.0], [0.5, 2.0]])
        >>> zoo.nn.utils.prune.ln_structured(layer, "weight", amount=1, n=2, dim=0).weight.tolist()
        [[3.0, -1.0], [0.0, 0.0]]
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes where mask, of the parameter's shape, is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Iterable[tuple[Module, str]], pruning_method: type[BasePruningMethod],
                        importance_scores: dict | None = None, **kwargs: Any) -> None:
    """Prunes several parameters as if they were one: the fraction may differ between them.

    Args:
        parameters: (module, name) pairs. pruning_method: an unstructured one, made with kwargs.
        importance_scores: (module, name) -> scores of its shape, for some of them.

    Raises:
        TypeError: parameters that are no pairs, or a method that is not unstructured.

    Example:
        >>> import zoo
        >>> from zoo.nn.utils import prune
        >>> a, b = zoo.nn.Linear(2, 3), zoo.nn.Linear(3, 1)
        >>> prune.global_unstructured([(a, "weight"), (b, "weight")], pruning_method=prune.L1Unstructured, amount=4)
        >>> int((a.weight == 0).sum() + (b.weight == 0).sum())
        4
    """
    if not isinstance(parameters, Iterable):
        raise TypeError(f"global_unstructured: wants (module, name) pairs, got {type(parameters).__name__}")
    if not issubclass(pruning_method, BasePruningMethod) or pruning_method.PRUNING_TYPE != "unstructured":
        raise TypeError(f"global_unstructured: wants an unstructured pruning method, got {pruning_method.__name__}")
    pairs, given = [tuple(pair) for pair in parameters], importance_scores or {}
    values = [getattr(*pair).detach() for pair in pairs]
    scores = [given.get(pair, value).reshape(-1) for pair, value in zip(pairs, values, strict=True)]
    masks = [getattr(module, f"{name}_mask", ones_like(value)).reshape(-1)
             for (module, name), value in zip(pairs, values, strict=True)]
    mask = pruning_method(**kwargs).mask_of(cat(scores), cat(masks))
    parts = mask.split([value.numel() for value in values])
    for (module, name), value, part in zip(pairs, values, parts, strict=True):
        custom_from_mask(module, name, part.reshape(value.shape))


def remove(module: Module, name: str) -> Module:
    """Makes a pruned parameter an ordinary one again, with the zeros in it. Raises ValueError if it is not pruned."""
    container = container_of(module, name)
    if container is None:
        raise ArgumentError(f"prune.remove: {name!r} of {type(module).__name__} is not pruned")
    orig = getattr(module, f"{name}_orig")
    with no_grad():
        orig.data = container.compute(module)
    for key in [key for key, hook in module._hooks.items() if hook.function is container]:
        del module._hooks[key]
    for part in (name, f"{name}_orig", f"{name}_mask"):
        delattr(module, part)
    module.register_parameter(name, orig)
    return module


def is_pruned(module: Module) -> bool:
    """Whether any parameter of the module, or of one below it, is pruned."""
    return any(isinstance(hook.function, PruningContainer)
               for part in module.modules() for hook in (part._hooks or {}).values())
