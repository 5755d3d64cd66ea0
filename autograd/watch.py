"""What is done to each new node inside detect_anomaly and saved_tensors_hooks."""
import sys
from typing import Any

from zoo.autograd.mode import ANOMALY, MODE


def mark(node: Any) -> None:
    """Anomaly mode: the node remembers the user's line. Hooks on saved tensors: it holds what they give."""
    if ANOMALY:
        node.line = users_line()
    if MODE.packing:
        from zoo.autograd.graph import pack_saved  # which needs Tensor, and so this module
        pack_saved(node, *MODE.packing[-1])


def users_line() -> str | None:
    """file:line of the first frame outside of zoo."""
    frame = sys._getframe(1)
    while frame and (frame.f_code.co_filename == "<string>" or frame.f_globals.get("__name__", "").startswith("zoo.")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else None
