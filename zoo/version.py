"""torch.version's names."""
import sys
from types import ModuleType

__version__ = "0.1.0"
hip = rocm = xpu = git_version = None
debug = False


class _Version(ModuleType):
    @property
    def cuda(self) -> str | None:
        """The CUDA version of the driver, such as "13.0"; None without a GPU, and in the interpreter.

        Example:
            >>> import zoo
            >>> zoo.version.cuda is None or "." in zoo.version.cuda
            True
        """
        from zoo.ops.cuda.driver import check, cuda, is_available, is_interpreting
        if is_interpreting() or not is_available():
            return None
        number = int(check(cuda().cuDriverGetVersion()))
        return f"{number // 1000}.{number % 1000 // 10}"


sys.modules[__name__].__class__ = _Version
