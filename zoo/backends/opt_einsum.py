"""torch.backends.opt_einsum: opt_einsum is not used: einsum goes from left to right."""
enabled = False


def is_available() -> bool:
    """False."""
    return False
