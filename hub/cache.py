"""The files on this machine's disk: where they lie, what is recorded of them, and how they are checked and removed.

Files of the Hub lie in huggingface_hub's own cache, shared with every other program; files of plain addresses and our
records in a folder `zoo` beside it. A record says what a source was when it was first loaded: the commit a branch then
pointed to, and the sha256. Later loads ask for just that.
"""
import fnmatch
import hashlib
import json
import os
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from zoo.hub.errors import CorruptError, storage_error
from zoo.hub.sources import HubFile, Url, parse
from zoo.hub.verification import Expected, open_verified

STALE_SECONDS = 24 * 3600       # a partial file that nobody has written to for so long is nobody's


@dataclass(frozen=True, slots=True)
class Folders:
    """The two roots of the cache: huggingface_hub's, and ours for other addresses and for records."""
    hub: Path
    zoo: Path


@dataclass(frozen=True, slots=True)
class Record:
    """What a source was when it was first loaded. `commit` is None for a plain address."""
    source: str
    sha256: str
    size: int
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A cached file that this library has loaded: its record, its path, and when it was last read (Unix seconds)."""
    source: str
    path: Path
    size: int
    sha256: str
    commit: str | None
    last_read: float


class Chosen:
    """The folder that set_dir chose for calls without cache_dir."""
    root: Path | None = None


def set_dir(d: str | os.PathLike | None) -> None:
    """Chooses the cache's folder for all calls without cache_dir; None: where HF_HOME says. torch.hub's name.

    >>> from zoo import hub
    >>> hub.set_dir("/data")
    >>> hub.get_dir()
    '/data'
    >>> hub.set_dir(None)
    """
    Chosen.root = None if d is None else Path(d).expanduser()


def get_dir() -> str:
    """The cache's folder: the one that set_dir chose, else HF_HOME. torch.hub's name."""
    if Chosen.root is not None:
        return str(Chosen.root)
    from huggingface_hub import constants
    return constants.HF_HOME


def folders(cache_dir=None) -> Folders:
    """The cache's roots: below `cache_dir` or the folder of set_dir, else where HF_HOME and HF_HUB_CACHE say.

    >>> from zoo.hub.cache import folders
    >>> folders("/data").hub.as_posix()
    '/data/hub'
    """
    if cache_dir is not None or Chosen.root is not None:
        root = Path(cache_dir if cache_dir is not None else Chosen.root).expanduser()
        return Folders(root / "hub", root / "zoo")
    from huggingface_hub import constants
    return Folders(Path(constants.HF_HUB_CACHE), Path(constants.HF_HOME) / "zoo")


# -- where a file lies

def repo_folder(source: HubFile, where: Folders) -> Path:
    """The folder of a repository in huggingface_hub's documented layout: blobs/<etag>, snapshots/<commit>/<file>."""
    return where.hub / ("models--" + source.repo.replace("/", "--"))


def snapshot_path(source: HubFile, commit: str, where: Folders) -> Path:
    """Where huggingface_hub keeps the file as of `commit`: a link into blobs, or a copy on systems without links."""
    return repo_folder(source, where) / "snapshots" / commit / source.file


def url_path(source: Url, where: Folders) -> Path:
    """Where the file of a plain address lies."""
    return where.zoo / "files" / f"{_key(source)}-{source.name}"


def place_of(source: HubFile | Url, commit: str | None, where: Folders) -> Path | None:
    """The path that the file of a source has once it is cached; None as long as a branch's commit is not known."""
    if isinstance(source, Url):
        return url_path(source, where)
    return snapshot_path(source, commit, where) if commit else None


def discard(path: Path, where: Folders, reason: str) -> None:
    """Removes a cached file and, where it is a link, what it leads to inside the cache: other snapshots may share it.

    Raises:
        StorageError: it cannot be removed; the message begins with `reason`.
    """
    chain, root = [path], where.hub.resolve()
    while chain[-1].is_symlink():
        target = chain[-1].parent.resolve() / os.readlink(chain[-1])
        if root not in target.parent.resolve().parents:
            break               # somebody's own file, linked into the cache by hand
        chain.append(target)
    for file in reversed(chain):
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, file.parent, f"{reason}; {file} cannot be deleted") from error


@contextmanager
def locked(path: Path):
    """Holds the file lock at `path`, which ends with the process, however that ends."""
    from filelock import FileLock
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path):
        yield


# -- records

def _key(source) -> str:
    return hashlib.sha256(str(source).encode()).hexdigest()[:20]


def _record_path(source, where: Folders) -> Path:
    return where.zoo / "records" / f"{_key(source)}.json"


def read_record(source, where: Folders) -> Record | None:
    """What is recorded of a source; None where nothing is, or nothing that can be read."""
    record = _read(_record_path(source, where))
    return record if record and record.source == str(source) else None


def _read(file: Path) -> Record | None:
    try:
        record = Record(**json.loads(file.read_text()))
        Expected(sha256=record.sha256, git_sha1=record.commit, size=record.size)
        return record if isinstance(parse(record.source), (HubFile, Url)) else None
    except (OSError, ValueError, TypeError):
        return None


def write_record(record: Record, where: Folders) -> None:
    """Records what a source is. One small file each, replaced as a whole: concurrent writers need no lock.

    A cache that cannot be written (shared, read-only) stays without: its files load, and are checked all the same.
    """
    path = _record_path(record.source, where)
    temporary = path.with_suffix(f".{uuid.uuid4().hex[:8]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(asdict(record), indent=1))
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):          # a read-only file system says so even of a file that is not there
            temporary.unlink()


# -- the cache as a whole

def entries(pattern: str = "*", cache_dir=None) -> list[Entry]:
    """The cached files that this library has loaded.

    Args:
        pattern: of the source's name, with * and ?, as in "*resnet*".
        cache_dir: the cache's folder; None: the usual one.

    Returns:
        Entries, the most recently read first.

    Example:
        >>> from zoo.hub.cache import entries
        >>> entries(cache_dir="nowhere")
        []
    """
    where, found = folders(cache_dir), []
    for file in (where.zoo / "records").glob("*.json"):
        record = _read(file)
        if record is None or not fnmatch.fnmatch(record.source, f"*{pattern}*"):
            continue
        path = place_of(parse(record.source), record.commit, where)
        if path is not None and path.exists():
            status = path.stat()
            found.append(Entry(record.source, path, status.st_size, record.sha256, record.commit, status.st_atime))
    return sorted(found, key=lambda entry: -entry.last_read)


def cache_size(cache_dir=None) -> int:
    """The bytes of the cached files that this library has loaded.

    >>> from zoo.hub.cache import cache_size
    >>> cache_size(cache_dir="nowhere")
    0
    """
    return sum({entry.path.resolve(): entry.size for entry in entries(cache_dir=cache_dir)}.values())


def verify(pattern: str = "*", *, remove: bool = True, cache_dir=None) -> list[tuple[Entry, str | None]]:
    """Computes the hash of each cached file anew.

    Args:
        pattern: of the source's name.
        remove: whether files that are not what they were are deleted.
        cache_dir: the cache's folder; None: the usual one.

    Returns:
        Pairs (entry, problem); problem is None where the file is right.
    """
    results = []
    for entry in entries(pattern, cache_dir):
        try:
            open_verified(entry.path, Expected(sha256=entry.sha256), entry.source)[0].close()
            results.append((entry, None))
        except CorruptError as error:
            if remove:
                discard(entry.path, folders(cache_dir), str(error))
            results.append((entry, str(error)))
    return results


def prune(pattern: str = "*", *, max_size: int | None = None, older_than: float | None = None, dry_run: bool = False,
          cache_dir=None) -> list[Entry]:
    """Removes cached files that this library has loaded; their records stay, so that a new load gets the same bytes.

    Args:
        pattern: of the source's name.
        max_size: bytes that may stay; the files read longest ago go first. None: no such limit.
        older_than: days; files read since then stay. None: no such limit. With neither limit, all matching files go.
        dry_run: only say what would go.
        cache_dir: the cache's folder; None: the usual one.

    Returns:
        The entries that went.

    Raises:
        StorageError: a file cannot be removed.
    """
    going, kept, limited = [], 0, max_size is not None or older_than is not None
    for entry in entries(pattern, cache_dir):
        fits = max_size is None or kept + entry.size <= max_size
        recent = older_than is None or entry.last_read > time.time() - older_than * 86400
        if limited and fits and recent:
            kept += entry.size
        else:
            going.append(entry)
    if not dry_run:
        for entry in going:
            discard(entry.path, folders(cache_dir), "prune")
        remove_stale_parts(folders(cache_dir))
    return going


def remove_stale_parts(where: Folders, seconds: float = STALE_SECONDS) -> list[Path]:
    """Removes partial files, ours and huggingface_hub's, that nobody has written to for `seconds`; those removed."""
    parts = [*where.zoo.glob("files/*.part"), *where.hub.glob("models--*/blobs/*.incomplete"),
             *where.hub.glob("models--*/blobs/*.part")]
    removed = []
    for part in parts:
        try:
            if part.stat().st_mtime < time.time() - seconds:
                part.unlink()
                removed.append(part)
        except OSError:
            continue            # finished or removed by its owner meanwhile
    return removed
