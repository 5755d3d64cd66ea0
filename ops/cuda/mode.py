"""Which machine plays the GPU: CUDA, or with `ZOO_INTERPRET=1` Triton's interpreter on host memory."""

import os
from functools import cache

dry = False  # interpreter only: launches are recorded and not run, memory has no contents (record.dry_run)
sanitizing = os.environ.get("ZOO_INTERPRET", "") == "sanitize"  # interpreter only: races are errors (sanitizer.py)


@cache
def is_interpreting() -> bool:
    """True if kernels run in Triton's interpreter on host memory (`ZOO_INTERPRET=1` or `sanitize`)."""
    return os.environ.get("ZOO_INTERPRET", "") not in ("", "0")
