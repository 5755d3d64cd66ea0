"""torch.backends.mkldnn: oneDNN is not used: convolutions on the CPU are zoo's own."""
enabled = False


def is_available() -> bool:
    """False."""
    return False
