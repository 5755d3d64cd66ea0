"""A file from a source to verified bytes: the cache first, else a download, and in each case the hash.

No stamp file says "was checked once": the sha256 of 100 MB takes 0.06 s, so each load computes it.
"""
import importlib.resources
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from zoo.hub import cache, hf
from zoo.hub.errors import CorruptError, HubError, NotFoundError, UnavailableError, storage_error
from zoo.hub.sources import HubFile, LocalFile, PackageFile, Source, parse
from zoo.hub.stores import HubStore, Place, Request, Store, UrlStore
from zoo.hub.verification import Expected, open_verified

REMEDY = ("If loading it again ends the same way, the source or a proxy on the way serves another file than the pinned "
          "one: do not use it")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file whose bytes were hashed in this call and found right.

    `file` is the open file that was hashed, at its beginning: reading it, and not `path` once more, leaves no gap in
    which another file could take its place. Close it, or use the whole as a context manager.
    """
    path: Path
    sha256: str
    size: int
    source: str
    commit: str | None
    downloaded: bool
    file: BinaryIO

    def close(self) -> None:
        """Closes the file."""
        self.file.close()

    def __enter__(self) -> "Fetched":
        return self

    def __exit__(self, *exception) -> None:
        self.close()


def fetch(source, *, sha256: str | None = None, sha256_prefix: str | None = None, md5: str | None = None,
          size: int | None = None, progress: bool = True, offline: bool | None = None, cache_dir=None,
          token: str | bool | None = None, update: bool = False) -> Fetched:
    """The verified file of a source: from the cache without a request where its commit is known, else downloaded.

    The hash is checked in every call: against `sha256` or `sha256_prefix`, the one that the Hub announces, or the one
    that was recorded at the first load. A branch or tag is resolved at the first load; later loads use that commit.

    Args:
        source: "hf://owner/repo/file@revision", "https://...", "package://zoo.models/file" or a local path.
        sha256: the file's hash, 64 hex digits in lower case.
        sha256_prefix: its first digits (6 or more), as torchvision's file names have them.
        md5: its md5, 32 hex digits, a check beside the one of the sha256 that the Hub announces.
        size: the file's size in bytes.
        progress: whether a terminal shows a bar with the rate.
        offline: True makes no request; None: as HF_HUB_OFFLINE says.
        cache_dir: the folder to use in place of HF_HOME.
        token: for the Hub; None: as HF_TOKEN or `hf auth login` say; False: none.
        update: whether a branch is resolved anew and what was recorded is replaced.

    Returns:
        Fetched, with the open file.

    Raises:
        HubError: with a subclass for each remedy, see zoo/hub/errors.py; also ValueError for a malformed source.

    Example:
        >>> from zoo.hub.client import fetch
        >>> from pathlib import Path
        >>> _ = Path("labels.txt").write_text("cat")
        >>> with fetch("labels.txt", size=3) as fetched:
        ...     fetched.file.read()
        b'cat'
    """
    parsed, expected = parse(source), Expected(sha256, sha256_prefix, md5=md5, size=size)
    if isinstance(parsed, (LocalFile, PackageFile)):
        return _local(parsed, expected)
    where = cache.folders(cache_dir)
    request = Request(parsed, expected, where, hf.offline() if offline is None else offline, progress, token, update)
    store = HubStore(request) if isinstance(parsed, HubFile) else UrlStore(request)
    try:
        return _from_store(store, request)
    except HubError:
        raise
    except OSError as error:             # those of the network are HubErrors by now
        raise storage_error(error, error.filename or where.zoo, str(parsed)) from error


def _local(source: LocalFile | PackageFile, expected: Expected) -> Fetched:
    if isinstance(source, PackageFile):
        try:
            path = Path(str(importlib.resources.files(source.package))) / source.file
        except ModuleNotFoundError as error:
            raise NotFoundError(f"{source}: there is no package {source.package}") from error
    else:
        path = source.path
    return _opened(Place(path, expected), source, downloaded=False)


def _from_store(store: Store, request: Request) -> Fetched:
    """The cached file if it is right; else a download, twice at most, as what was damaged may have been the way."""
    problem = "not in the cache"
    place = store.cached()
    for attempt in range(3):
        if attempt and request.offline:
            raise UnavailableError(f"{request.source}: {problem}, and offline mode forbids a download: load it once "
                                   "with a network (offline=False, HF_HUB_OFFLINE unset), or pass the path of a copy")
        try:
            if attempt:
                place = store.download()
            if place:
                return _remembered(_opened(place, request.source, downloaded=attempt > 0), request)
        except CorruptError as error:
            problem = str(error)
            if place and place.path.exists():
                cache.discard(place.path, request.where, problem)
                problem += ". It was deleted from the cache"
    raise CorruptError(f"{problem}. {REMEDY}")


def _opened(place: Place, source: Source, *, downloaded: bool) -> Fetched:
    file, sha256 = open_verified(place.path, place.expected, str(source))
    size = file.seek(0, 2)
    file.seek(0)
    return Fetched(place.path, sha256, size, str(source), place.commit, downloaded, file)


def _remembered(fetched: Fetched, request: Request) -> Fetched:
    record = cache.Record(fetched.source, fetched.sha256, fetched.size, fetched.commit)
    if cache.read_record(request.source, request.where) != record:
        cache.write_record(record, request.where)
    return fetched
