"""torch.backends.mps: Apple's GPUs are not supported."""


def is_available() -> bool:
    """False."""
    return False


def is_built() -> bool:
    """False."""
    return False
