"""torch.backends.mkl: Intel's MKL is not used: matrix products on the CPU are NumPy's."""


def is_available() -> bool:
    """False."""
    return False
