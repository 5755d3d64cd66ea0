"""A model as a table: layers, output shapes, parameters, multiply-adds, activation memory."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from zoo.autograd.creation import zeros
from zoo.autograd.mode import no_grad
from zoo.autograd.tensor import Tensor
from zoo.nn.conv import Convolution
from zoo.nn.linear import Linear
from zoo.nn.module import Module


class Row(NamedTuple):
    """One line of a Summary: a layer, or all layers below a module where `depth` folds them."""

    name: str
    type: str
    output_shape: tuple[int, ...]
    parameters: int
    mult_adds: int
    activation_bytes: int


class Summary(NamedTuple):
    """What `summary` returns; printing it gives the table.

    Fields: rows in the order of the calls; parameters (all, and those that require gradients) and their bytes;
    mult_adds of all convolutions and linear layers; activation_bytes, the outputs of all layers together.
    """

    rows: list[Row]
    parameters: int
    trainable_parameters: int
    parameter_bytes: int
    mult_adds: int
    activation_bytes: int

    def __str__(self):
        heads = ("Layer", "Type", "Output shape", "Parameters", "Multiply-adds", "Activations")
        lines = [heads, *(cells(row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = [
            "  ".join(align(cell, i, w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))).rstrip()
            for line in lines
        ]
        rule = "-" * max(map(len, texts))
        totals = (
            f"Parameters: {self.parameters:,} ({self.trainable_parameters:,} trainable), {mega(self.parameter_bytes)}",
            f"Multiply-adds: {self.mult_adds / 1e9:.3f} G",
            f"Activations: {mega(self.activation_bytes)}",
        )
        return "\n".join([texts[0], rule, *texts[1:], rule, *totals])

    __repr__ = __str__


def cells(row: Row) -> tuple[str, ...]:
    """A row's texts."""
    mult_adds = f"{row.mult_adds:,}" if row.mult_adds else ""
    parameters = f"{row.parameters:,}" if row.parameters else ""
    return row.name, row.type, str(row.output_shape), parameters, mult_adds, mega(row.activation_bytes)


def align(cell: str, column: int, width: int) -> str:
    """Names to the left, numbers to the right."""
    return cell.ljust(width) if column < 3 else cell.rjust(width)


def mega(count: int) -> str:
    """Bytes in megabytes of 10^6."""
    return f"{count / 1e6:.2f} MB"


def mult_adds(layer: Module, x: Tensor, y: Tensor) -> int:
    """Multiplications, each with its addition, of one call of a convolution or linear layer; biases are not counted."""
    if isinstance(layer, Convolution):
        each = x if layer.transposed else y  # the side on which every element meets one filter of weights
        return each.numel() * math.prod(layer.weight.shape[1:])
    return y.numel() * layer.in_features if isinstance(layer, Linear) else 0


def tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in what a layer returned."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)


class Recorder:
    """Forward hooks that note what every layer of a model gives."""

    def __init__(self, model: Module, depth: int | None):
        self.model, self.depth = model, depth
        self.rows: dict[str, Row] = {}
        self.handles = [
            layer.register_forward_hook(lambda layer, args, out, path=path: self.note(path, layer, args, out))
            for path, layer in model.named_modules()
            if not any(True for _ in layer.children())
        ]

    def note(self, path: str, layer: Module, args: tuple, out: Any) -> None:
        """Adds one call of a layer to its row."""
        outs = list(tensors(out))
        name = ".".join(path.split(".")[: self.depth])
        shown = self.model.get_submodule(name)
        old = self.rows.get(name)
        work = mult_adds(layer, args[0], outs[0]) if args and outs else 0
        self.rows[name] = Row(
            name,
            type(shown).__name__,
            tuple(outs[0].shape) if outs else (),
            sum(p.numel() for p in shown.parameters()),
            work + (old.mult_adds if old else 0),
            sum(t.nbytes for t in outs) + (old.activation_bytes if old else 0),
        )

    def close(self) -> None:
        """Takes the hooks off."""
        for handle in self.handles:
            handle.remove()


def run_once(model: Module, x: Tensor) -> None:
    """One forward pass in eval mode, after which every module has its old mode."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        with no_grad():
            model.eval()(x)
    finally:
        for module, mode in modes:
            module.training = mode


def summary(model: Module, input_size: Sequence[int], *, dtype: Any = None, depth: int | None = None) -> Summary:
    """What a model is made of and what one forward pass costs, found by running it once on zeros in eval mode.

    Multiply-adds are those of convolutions and linear layers, as torchvision publishes them ("GFLOPS"). Activations
    are the outputs of all layers, what a forward pass keeps for the backward pass to within a small factor.

    Args:
        model: any Module that takes one tensor.
        input_size: shape of the input with the batch, (N, C, H, W) for pictures.
        dtype: of the input; default the first parameter's.
        depth: fold the layers below this depth of the module tree into one row; None: a row for every layer.

    Returns:
        A Summary; print it for the table.

    Raises:
        ValueError: depth below 1.

    Example:
        >>> from zoo import models
        >>> models.summary(models.resnet20(), (1, 3, 32, 32), depth=1)
        Layer    Type               Output shape     Parameters  Multiply-adds  Activations
        -----------------------------------------------------------------------------------
        conv1    Conv2d             (1, 16, 32, 32)         432        442,368      0.07 MB
        ...
        Parameters: 272,474 (272,474 trainable), 1.09 MB
        Multiply-adds: 0.041 G
        Activations: 2.36 MB
    """
    if depth is not None and depth < 1:
        raise ValueError(f"summary: wants depth of at least 1 or None, got {depth}")
    parameters = list(model.parameters())
    first = parameters[0] if parameters else zeros(())
    x = zeros(tuple(input_size), device=first.device, dtype=first.dtype if dtype is None else dtype)
    recorder = Recorder(model, depth)
    try:
        run_once(model, x)
    finally:
        recorder.close()
    rows = list(recorder.rows.values())
    return Summary(
        rows,
        sum(p.numel() for p in parameters),
        sum(p.numel() for p in parameters if p.requires_grad),
        sum(p.nbytes for p in parameters),
        sum(row.mult_adds for row in rows),
        sum(row.activation_bytes for row in rows),
    )
