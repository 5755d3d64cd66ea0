"""Muon."""

import math
from typing import Any

from zoo.autograd.creation import zeros_like
from zoo.autograd.tensor import Tensor
from zoo.ops.dtypes import bfloat16, float32
from zoo.optim.optimizer import Optimizer, need_range

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic: the steepest at 0 that stays bounded (Jordan, 2024)


class Muon(Optimizer):
    """Muon (Jordan et al., 2024, kellerjordan.github.io/posts/muon): a momentum made orthogonal, for weight matrices.

    b = momentum b + (1 - momentum) g; u = (1 - momentum) g + momentum b with nesterov, else b;
    p = (1 - lr weight_decay) p - lr' NewtonSchulz(u).

    Args:
        params: matrices (out, in); give vectors and embeddings to AdamW.
        lr: learning rate. weight_decay, momentum, nesterov: see the formula.
        ns_coefficients, ns_steps: a, b, c and number of the iterations x = a x + (b s + c s^2) x with s = x x^T.
        eps: the smallest norm that the first x is divided by.
        adjust_lr_fn: lr' of a matrix (A, B): "original" (None): lr sqrt(max(1, A / B)); "match_rms_adamw":
            0.2 lr sqrt(max(A, B)) (Liu et al., 2025), which suits lr and weight_decay of AdamW.

    The iteration runs in bfloat16 on the GPU, as torch's, and in float32 on the CPU, where bfloat16 gains nothing.

    Raises:
        ValueError: a negative number, 100 steps or more, no three coefficients, a parameter that is no matrix.

    Example:
        >>> import zoo
        >>> p = zoo.nn.Parameter(zoo.zeros(2, 3))
        >>> optimizer = zoo.optim.Muon([p], lr=0.1)
        >>> (p * zoo.eye(2, 3)).sum().backward()
        >>> optimizer.step()
        >>> [round(x, 2) for x in p[0].tolist()]
        [-0.11, 0.0, 0.0]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        need_range("Muon", "learning rate", lr)
        need_range("Muon", "momentum value", momentum)
        need_range("Muon", "weight_decay value", weight_decay)
        need_range("Muon", "ns_steps", ns_steps, high=100)
        if len(ns_coefficients) != 3:
            raise ValueError(f"Muon: ns_coefficients wants 3 numbers, got {ns_coefficients}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Muon: adjust_lr_fn wants 'original' or 'match_rms_adamw', got {adjust_lr_fn!r}")
        defaults = dict(
            lr=lr,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            ns_coefficients=ns_coefficients,
            eps=eps,
            ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn,
        )
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            if p.ndim != 2:
                raise ValueError(f"Muon only supports 2D parameters, got one of shape {tuple(p.shape)}")

    def step_group(self, index: int, group: dict) -> None:
        lr, momentum = float(group["lr"]), group["momentum"]
        for p in group["params"]:
            if p.grad is not None:
                if "momentum_buffer" not in self.state[p]:
                    self.state[p]["momentum_buffer"] = zeros_like(p)
                b = self.state[p]["momentum_buffer"].lerp_(p.grad, 1 - momentum)
                u = p.grad.lerp(b, momentum) if group["nesterov"] else b
                direction = newton_schulz(u, group["ns_coefficients"], group["ns_steps"], group["eps"])
                p.mul_(1 - lr * group["weight_decay"])
                p.sub_(direction.to(p.dtype), alpha=lr * shape_factor(group["adjust_lr_fn"], *p.shape))


def shape_factor(adjust: str | None, rows: int, cols: int) -> float:
    """What lr is multiplied by for a matrix of this shape."""
    return 0.2 * math.sqrt(max(rows, cols)) if adjust == "match_rms_adamw" else math.sqrt(max(1, rows / cols))


def newton_schulz(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """About U V^T of the singular value decomposition U S V^T: every singular value comes near 1."""
    a, b, c = coefficients
    x = matrix.to(float32 if matrix.device.type == "cpu" else bfloat16)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        s = x @ x.T
        x = a * x + (b * s + c * (s @ s)) @ x
    return x.T if tall else x
