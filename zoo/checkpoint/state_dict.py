"""`read_state_dict`: the weights of a checkpoint, whatever is wrapped around them."""
from itertools import islice
from typing import Any

import numpy as np

from zoo.checkpoint.builder import Builder
from zoo.checkpoint.dtypes import FLOATS
from zoo.checkpoint.errors import FileError
from zoo.checkpoint.reading import read_source
from zoo.checkpoint.source import opened
from zoo.checkpoint.tree import memory_key

WRAPPERS = ("state_dict", "model_state_dict", "model", "module", "net", "network", "params", "weights")
EMA = ("ema", "model_ema", "state_dict_ema", "ema_state_dict", "ema_model", "model_ema_state_dict", "params_ema")
PREFIXES = ("module.", "_orig_mod.")         # DataParallel and DistributedDataParallel; torch.compile
COUNTER = "n_averaged"                       # what swa_utils.AveragedModel adds to its module.
DEPTH = 4                    # of wrappers in wrappers


class StateDict(dict):
    """Arrays by name, and how they were found.

    Args:
        arrays: name -> np.ndarray.
        wrappers: keys that were opened and prefixes that were cut, outermost first.
        dropped: entries beside the tensors that were left out.
    """

    def __init__(self, arrays: dict[str, np.ndarray], wrappers: tuple[str, ...] = (), dropped: tuple[str, ...] = ()):
        super().__init__(arrays)
        self.wrappers, self.dropped = wrappers, dropped


def read_state_dict(f: Any, *, unwrap: bool = True, key: str | None = None, dtype: Any = None,
                    mmap: bool = True) -> StateDict:
    """The tensors of a checkpoint by name.

    Args:
        f: a path or an open binary file of any format that `read` knows.
        unwrap: open {"state_dict": ...}, {"model": ...} and their like, one in the other too, and cut the prefixes
            "module." and "_orig_mod." where all names have them.
        key: the entry to open first; "ema" is whichever of the usual names of averaged weights is there.
        dtype: what floating arrays (8-bit ones too) are cast to; integers, bools and complex numbers are kept.
        mmap: as for `read`.

    Returns:
        StateDict, a dict of np.ndarray with `.wrappers` (what was opened and cut) and `.dropped` (what is no tensor).

    Raises:
        FileError (ValueError, RuntimeError): not a state_dict, several of them and no key, or what `read` raises.

    Example:
        >>> import zoo
        >>> from zoo import checkpoint
        >>> zoo.save({"epoch": 3, "model": {"module.w": zoo.ones(2)}}, "run.pt")
        >>> weights = checkpoint.read_state_dict("run.pt")
        >>> weights, weights.wrappers
        ({'w': array([1., 1.], dtype=float32)}, ('model', 'module.'))
    """
    with opened(f, mmap) as source:
        obj = read_source(source, Builder())
        opened_keys: list[str] = []
        if key is not None:
            obj = entry(obj, key, opened_keys)
        if unwrap:
            obj = unwrapped(obj, opened_keys)
        result = tensors_of(obj, tuple(opened_keys))
        if unwrap:
            result = without_prefixes(result)
        if dtype is not None:
            cast(result, np.dtype(dtype), source.size)
        return result


def names(keys: Any) -> str:
    """Keys as a message shows them."""
    return ", ".join(map(repr, islice(keys, 20)))[:200]


def entry(obj: Any, key: str, trail: list[str]) -> Any:
    """obj[key], where "ema" has many names."""
    if not isinstance(obj, dict):
        raise FileError(f"holds a {type(obj).__name__}, which has no entry {key!r}")
    found = [k for k in ((key,) if key in obj or key != "ema" else EMA) if k in obj]
    if len(found) != 1:
        raise FileError(f"has no entry {key!r}; it has {names(obj)}" if not found
                        else f"has several kinds of averaged weights; say key= one of {names(found)}")
    trail.append(found[0])
    return obj[found[0]]


def unwrapped(obj: Any, trail: list[str]) -> Any:
    """The dict of tensors inside the wrappers of obj; their keys are added to the trail."""
    for _ in range(DEPTH):
        if not isinstance(obj, dict):
            break
        found = [k for k in WRAPPERS if holds_tensors(obj.get(k))]
        if not found:
            break
        if len(found) > 1:
            raise FileError(f"has several state_dicts; say key= one of {names(found)}")
        trail.append(found[0])
        obj = obj[found[0]]
    return obj


def holds_tensors(obj: Any, depth: int = DEPTH) -> bool:
    """Whether obj is a dict of tensors, or wraps one."""
    if not isinstance(obj, dict) or not depth:
        return False
    return (any(isinstance(value, np.ndarray) for value in obj.values())
            or any(holds_tensors(obj.get(k), depth - 1) for k in WRAPPERS))


def tensors_of(obj: Any, trail: tuple[str, ...]) -> StateDict:
    """The arrays of a dict."""
    if not isinstance(obj, dict):
        raise FileError(f"holds a {type(obj).__name__}, not a state_dict")
    arrays = {k: v for k, v in obj.items() if isinstance(v, np.ndarray) and isinstance(k, str)}
    if obj and not arrays:
        inner = [k for k, v in obj.items() if isinstance(v, dict)]
        raise FileError("holds no tensors at the top"
                        + (f"; say key= one of {names(inner)}" if inner else f", only {names(obj)}"))
    return StateDict(arrays, trail, tuple(str(k) for k in obj if k not in arrays))


def without_prefixes(state: StateDict) -> StateDict:
    """The same without prefixes that all names share."""
    while state:
        prefix = next((p for p in PREFIXES if all(k.startswith(p) for k in state if k != COUNTER)), None)
        if prefix is None or all(k == COUNTER for k in state):
            break
        dropped = (*state.dropped, COUNTER) if COUNTER in state else state.dropped
        arrays = {k.removeprefix(prefix): v for k, v in state.items() if k != COUNTER}
        state = StateDict(arrays, (*state.wrappers, prefix), dropped)
    return state


def cast(state: StateDict, dtype: np.dtype, limit: int) -> None:
    """Casts the floating arrays in place of the old ones; tied ones stay tied, and expanded ones (stride 0) expanded.

    Raises:
        FileError: more elements than the file has bytes, as windows that overlap may have.
    """
    done: dict[tuple, np.ndarray] = {}
    total = 0
    for name, array in state.items():
        if array.dtype not in FLOATS or array.dtype == dtype:
            continue
        where = memory_key(array)
        if where not in done:
            step = tuple(slice(0, 1) if n and not s else slice(None) for n, s in zip(array.shape, array.strides,
                                                                                     strict=True))
            total += array[step].size
            if total > limit:
                raise FileError(f"is refused: its tensors have more elements than its {limit} bytes can hold")
            base = array[step].astype(dtype)
            done[where] = base if base.shape == array.shape else np.broadcast_to(base, array.shape)
        state[name] = done[where]
