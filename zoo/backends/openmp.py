"""torch.backends.openmp: OpenMP is not used: zoo has a pool of threads of its own."""


def is_available() -> bool:
    """False."""
    return False
