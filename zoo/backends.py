"""torch.backends' switches, as far as they mean something here: `zoo.backends.cuda.matmul.allow_tf32`."""
from zoo.ops.face.matmul import get_float32_matmul_precision as _get
from zoo.ops.face.matmul import set_float32_matmul_precision as _set


class _Matmul:
    @property
    def allow_tf32(self) -> bool:
        """Whether float32 matrix products on the GPU may round their inputs to tf32."""
        return _get() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        _set("high" if value else "highest")


class _Cuda:
    matmul = _Matmul()


class _Cudnn(_Matmul):
    """Taken from scripts written for torch; there is no cuDNN here, and kernels are deterministic."""
    benchmark, deterministic, enabled = False, True, False

    def is_available(self) -> bool:
        """False."""
        return False


cuda, cudnn = _Cuda(), _Cudnn()
