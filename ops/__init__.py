"""Tensor ops on raw arrays: contract, NumPy path and derivative; the Triton kernels lie in the *_gpu modules beside."""
import warnings

# torch gives no warning for 1/0 or log(0); an errstate costs a microsecond per op, this costs nothing.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"zoo(\.|$)")
