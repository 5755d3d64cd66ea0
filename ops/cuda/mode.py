"""Which machine plays the GPU: CUDA, or with `ZOO_INTERPRET=1` Triton's interpreter on host memory."""

import os
from functools import cache

dry = False  # interpreter only: launches are recorded and not run, memory has no contents (record.dry_run)


@cache
def is_interpreting() -> bool:
    """True if kernels run in Triton's interpreter on host memory (environment variable `ZOO_INTERPRET=1`)."""
    return os.environ.get("ZOO_INTERPRET", "") not in ("", "0")
