"""State dicts by path or address: hub.load_state_dict, and torch.hub's load_state_dict_from_url."""

import os
import re
from typing import Any
from urllib.parse import urlsplit

from zoo.autograd.tensor import Tensor, wrap
from zoo.checkpoint import read_state_dict
from zoo.hub.client import fetch
from zoo.serialization import load


def load_state_dict(
    source: str | os.PathLike, *, key: str | None = None, sha256: str | None = None, progress: bool = True,
    offline: bool | None = None, cache_dir: Any = None, token: str | bool | None = None,
) -> dict[str, Tensor]:
    """The tensors of a checkpoint, wherever it lies and whichever format it has; none of its code runs.

    Args:
        source: a path, "https://host/file" or "hf://owner/name/file@revision".
        key: the entry that holds the state dict ("ema"); default the usual ones ("state_dict", "model" ...), if any.
        sha256: what the file's must be, 64 hex digits.
        progress, offline, cache_dir, token: as hub.load takes them.

    Returns:
        name -> Tensor; they share the memory-mapped file's pages, and writing to them does not change it.

    Raises:
        HubError: the file is not to be had. FileError (ValueError, RuntimeError): it is no checkpoint.

    Example:
        >>> import zoo
        >>> from zoo import hub
        >>> zoo.save({"weight": zoo.ones(2)}, "one.safetensors")
        >>> hub.load_state_dict("one.safetensors")
        {'weight': tensor([1., 1.])}
    """
    options = {"progress": progress, "offline": offline, "cache_dir": cache_dir, "token": token}
    with fetch(source, sha256=sha256, **options) as found:
        return {name: wrap(array) for name, array in read_state_dict(found.file, key=key).items()}


def load_state_dict_from_url(
    url: str, model_dir: Any = None, map_location: Any = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = True,
) -> Any:
    """torch.hub's function of this name: the object in the checkpoint at an address, downloaded once.

    Args:
        url: https address.
        model_dir: folder of the cache; default hub.get_dir().
        map_location: as zoo.load takes it. progress: show a bar while downloading.
        check_hash: the file's name ends in "-<first digits of its sha256>.<suffix>", and they must be right.
        file_name, weights_only: taken for torch's sake: the cache names its files itself, and no code ever runs.

    Returns:
        What zoo.load gives for the file.

    Raises:
        ValueError: check_hash, and no hash in the name. HubError: the file is not to be had, or another one.
    """
    prefix = re.search(r"-([0-9a-f]{8,64})\.", urlsplit(url).path) if check_hash else None
    if check_hash and prefix is None:
        raise ValueError(f"load_state_dict_from_url: check_hash wants a name ending in -<sha256>.<suffix>, got {url}")
    with fetch(url, sha256_prefix=prefix and prefix[1], progress=progress, cache_dir=model_dir) as found:
        return load(found.file, map_location)
