"""The two kinds of remote file, to the same four questions: is it cached, fetch it, remove it, remember it."""
import logging
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from zoo.hub import cache, hf
from zoo.hub.errors import FULL_DISK, CorruptError, StorageError, UnavailableError, storage_error
from zoo.hub.retry import repeated
from zoo.hub.sources import COMMIT, HubFile, Url
from zoo.hub.verification import Expected, announced, open_verified

log = logging.getLogger("zoo.hub")


@dataclass(frozen=True, slots=True)
class Request:
    """One call of fetch, its defaults filled in."""
    source: HubFile | Url
    expected: Expected
    where: cache.Folders
    offline: bool
    progress: bool
    token: str | bool | None
    update: bool


@dataclass(frozen=True, slots=True)
class Place:
    """A file on this machine, what it has to be, and the commit that it belongs to."""
    path: Path
    expected: Expected
    commit: str | None = None


class Store(Protocol):
    """What fetch asks of a kind of remote file."""

    def cached(self) -> Place | None:
        """Where the file lies already, without a request if that can be told without one."""
        ...

    def download(self) -> Place:
        """The file from its source."""
        ...


def recorded(request: Request) -> tuple[Expected, str | None]:
    """What the first load of the source found, hash and commit, unless that is to be replaced or was another file."""
    record = cache.read_record(request.source, request.where)
    if record is None or request.update:
        return Expected(), None
    known = Expected(sha256=record.sha256, size=record.size)
    return (Expected(), None) if request.expected.contradicts(known) else (known, record.commit)


class UrlStore:
    """Files of plain https addresses: one GET each, kept under the address's hash."""

    def __init__(self, request: Request):
        self.request = request
        self.path = cache.url_path(request.source, request.where)
        self.expected = request.expected.joined(recorded(request)[0])

    def cached(self) -> Place | None:
        if self.request.update or not self.path.exists():
            return None
        return Place(self.path, self.expected)

    def download(self) -> Place:
        part = self.path.with_name(self.path.name + ".part")
        with cache.locked(self.path.with_name(self.path.name + ".lock")):
            if not self.expected.has_hash:
                part.unlink(missing_ok=True)         # nothing would tell if two versions were spliced
            if self.request.update or not self.path.exists():
                receive(self.request.source.url, part, self.path, self.expected, self.request)
        return Place(self.path, self.expected)


class HubStore:
    """Files on the Hub: found and linked by huggingface_hub, in its cache."""

    def __init__(self, request: Request):
        self.request, self.source, self.where = request, request.source, request.where
        self.known, commit = recorded(request)
        self.commit = self.source.commit or commit
        self.answer: hf.Answer | None = None
        self.tried_xet = False

    def cached(self) -> Place | None:
        commit = self.commit or self._commit_now()
        path = cache.snapshot_path(self.source, commit, self.where) if commit else None
        return self._place(path, commit) if path and path.exists() else None

    def download(self) -> Place:
        answer = self._ask()
        if problem := self.request.expected.joined(self.known).contradicts(answer.expected):
            raise CorruptError(f"{self.source}: the Hub announces {problem}; nothing was downloaded: correct the hash, "
                               "or ask for the commit that has the file you want")
        path = self._by_xet(answer) if answer.xet and not self.tried_xet else None
        return self._place(path or self._by_http(answer), answer.commit)

    def _place(self, path: Path, commit: str) -> Place:
        """The cached file; the name of the blob that it links to is the hash that the Hub announced for it."""
        expected = self.request.expected.joined(self.known)
        if path.is_symlink():
            expected = expected.joined(announced(Path(os.readlink(path)).name))
        if self.answer or not expected.has_hash:
            expected = expected.joined(self._ask().expected)
        return Place(path, expected, commit)

    def _commit_now(self) -> str | None:
        """The commit that a branch or tag points to: the Hub's word, or without a network huggingface_hub's last."""
        ref = cache.repo_folder(self.source, self.where) / "refs" / self.source.revision
        last = ref.read_text().strip() if ref.is_file() else ""
        last = last if COMMIT.fullmatch(last) else None
        if self.request.offline:
            return last
        try:
            return self._ask().commit
        except UnavailableError as error:
            if last is None:
                raise
            log.warning("%s; using the commit that is in the cache, %s", error, last)
            return last

    def _ask(self) -> hf.Answer:
        if self.request.offline:
            raise UnavailableError(f"{self.source}: only the Hub can tell its hash, and offline mode forbids to ask: "
                                   "load it once with a network, or pass sha256=")
        if self.answer is None:
            self.answer = hf.ask(self.source, self.commit or self.source.revision, self.request.token)
        return self.answer

    def _by_xet(self, answer: hf.Answer) -> Path | None:
        """The download as huggingface_hub does it; None where its storage service cannot be used."""
        with self._locked(answer):
            pass                                     # removes what a killed process left
        self.tried_xet = True                        # a second try, for wrong bytes, goes the other way
        try:
            return hf.download(self.source, answer.commit, self.where, self.request.token, self.request.progress)
        except Exception as error:                   # the service's library raises classes of its own
            if isinstance(error, OSError) and error.errno in FULL_DISK:
                raise storage_error(error, self.where.hub, str(self.source)) from error
            log.warning("%s: Xet storage failed (%s: %s); going on over plain HTTP. HF_HUB_DISABLE_XET=1 spares the "
                        "attempt", self.source, type(error).__name__, error)
            return None

    def _by_http(self, answer: hf.Answer) -> Path:
        """Our transfer into the blob that huggingface_hub then links: it resumes, and is checked before it counts."""
        blob = self._blob(answer)
        with self._locked(answer):
            if not blob.exists():
                receive(answer.url, blob.with_name(blob.name + ".part"), blob, answer.expected, self.request,
                        hf.headers(self.request.token, answer.url))
        return repeated(lambda: hf.download(self.source, answer.commit, self.where, self.request.token, progress=False),
                        str(self.source))

    def _blob(self, answer: hf.Answer) -> Path:
        return cache.repo_folder(self.source, self.where) / "blobs" / answer.etag

    @contextmanager
    def _locked(self, answer: hf.Answer):
        """Holds huggingface_hub's own lock on the blob; its partial files of killed processes are removed first."""
        blob = self._blob(answer)
        with cache.locked(self.where.hub / ".locks" / blob.parent.parent.name / f"{blob.name}.lock"):
            for part in blob.parent.glob(f"{blob.name}.*.incomplete"):
                part.unlink(missing_ok=True)
            yield


def receive(url: str, part: Path, path: Path, expected: Expected, request: Request,
            headers: dict[str, str] | None = None) -> None:
    """Downloads `url` to `path`, which appears as a whole and only if it is as expected."""
    source = str(request.source)
    part.parent.mkdir(parents=True, exist_ok=True)
    begun = part.stat().st_size if part.exists() else 0
    room = shutil.disk_usage(part.parent).free
    if expected.size and expected.size - begun > room:
        raise StorageError(f"{source}: {expected.size - begun} bytes are missing, the disk of {part.parent} has {room} "
                           "free: free some space there, or set HF_HOME to a folder on another disk")
    from zoo.hub.transfer import download  # brings HTTP and TLS, which a warm cache does not need
    download(url, part, source=source, size=expected.size, headers=headers, timeout=hf.timeout(),
             progress=request.progress)
    try:
        open_verified(part, expected, source)[0].close()
    except CorruptError:
        part.unlink(missing_ok=True)
        raise
    os.replace(part, path)
