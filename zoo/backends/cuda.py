"""torch.backends.cuda: whether float32 matrix products on the GPU may round to tf32; and where there is no choice.

Attention on the GPU is one fused kernel, of flash attention's kind: the switches for others are taken and do nothing.
"""
from typing import Any

from zoo.ops.errors import ArgumentError
from zoo.ops.face.matmul import get_float32_matmul_precision as _get
from zoo.ops.face.matmul import set_float32_matmul_precision as _set


class Matmul:
    """The switch `allow_tf32`, which is set_float32_matmul_precision's, and torch's newer name of it."""

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 matrix products on the GPU may round their inputs to tf32."""
        return _get() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        _set("high" if value else "highest")

    @property
    def fp32_precision(self) -> str:
        """The same switch: "tf32", or "ieee" (also called "none")."""
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("ieee", "tf32", "none"):
            raise ArgumentError(f"fp32_precision: wants 'ieee', 'tf32' or 'none', got {value!r}")
        self.allow_tf32 = value == "tf32"

    def _always_float32(self, value: Any) -> None:
        """Takes what scripts set; sums of half precision are kept in float32 whatever it is."""

    allow_fp16_reduced_precision_reduction = property(lambda self: False, _always_float32)
    allow_bf16_reduced_precision_reduction = property(lambda self: False, _always_float32)
    allow_fp16_accumulation = property(lambda self: False, _always_float32)


matmul = Matmul()


def is_built() -> bool:
    """True: every op has its kernel, compiled when it is first used."""
    return True


def enable_flash_sdp(enabled: bool) -> None:
    """Has no effect: attention on the GPU is one fused kernel."""


def flash_sdp_enabled() -> bool:
    """True."""
    return True


enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp


def mem_efficient_sdp_enabled() -> bool:
    """False: there is no such kernel."""
    return False


math_sdp_enabled = cudnn_sdp_enabled = mem_efficient_sdp_enabled
