"""torch.backends.cuda: whether float32 matrix products on the GPU may round their inputs to tf32."""
from zoo.ops.face.matmul import get_float32_matmul_precision as _get
from zoo.ops.face.matmul import set_float32_matmul_precision as _set


class Matmul:
    """The switch `allow_tf32`, the same one as set_float32_matmul_precision."""

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 matrix products on the GPU may round their inputs to tf32."""
        return _get() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        _set("high" if value else "highest")


matmul = Matmul()
