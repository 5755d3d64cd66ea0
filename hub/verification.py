"""Whether a file's bytes are those that were promised: size, sha256, git's blob hash.

The file is opened once: the handle that was hashed is the one that is returned, so that nobody can put another file
in its place between the check and the reading.
"""
import hashlib
import os
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import BinaryIO

from zoo.hub.errors import CorruptError, HubError, NotFoundError

SHA256 = re.compile(r"[0-9a-f]{64}")
GIT_SHA1 = re.compile(r"[0-9a-f]{40}")
MD5 = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Expected:
    """What is known of a file before it is read; None: not known.

    `sha256`, `sha256_prefix` and `md5` are lower-case hex, `size` is in bytes. `git_sha1` is the hash of git's blob:
    sha1(b"blob <size>\\0" + data). An md5 is what some sources publish; as files of one md5 can be made, it never
    counts as the hash that makes a file safe.
    """
    sha256: str | None = None
    sha256_prefix: str | None = None
    git_sha1: str | None = None
    md5: str | None = None
    size: int | None = None

    def __post_init__(self):
        for name, pattern, what in (("sha256", SHA256, "64 hex digits"), ("git_sha1", GIT_SHA1, "40 hex digits"),
                                    ("md5", MD5, "32 hex digits"),
                                    ("sha256_prefix", re.compile("[0-9a-f]{6,64}"), "6 to 64 hex digits")):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and pattern.fullmatch(value)):
                raise ValueError(f"fetch: {name} must be {what} in lower case, got {value!r}")
        if self.size is not None and not (isinstance(self.size, int) and self.size >= 0):
            raise ValueError(f"fetch: size must be a number of bytes, got {self.size!r}")

    @property
    def has_hash(self) -> bool:
        return bool(self.sha256 or self.sha256_prefix or self.git_sha1)

    def joined(self, other: "Expected") -> "Expected":
        """Self, and `other` where self knows nothing."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Expected(*(theirs if mine is None else mine for mine, theirs in pairs))

    def contradicts(self, other: "Expected") -> str | None:
        """Why no file can satisfy both, or None."""
        if self.sha256 and other.sha256 and self.sha256 != other.sha256:
            return f"sha256 {other.sha256}, expected {self.sha256}"
        if self.sha256_prefix and other.sha256 and not other.sha256.startswith(self.sha256_prefix):
            return f"sha256 {other.sha256}, expected one that begins with {self.sha256_prefix}"
        if self.size is not None and other.size is not None and self.size != other.size:
            return f"{other.size} bytes, expected {self.size}"
        return None


def announced(etag: str | None, size: int | None = None) -> Expected:
    """What the Hub's ETag promises: 64 hex digits are a sha256 (large files), 40 are git's blob hash; else nothing.

    >>> announced("0" * 40).git_sha1 == "0" * 40
    True
    """
    etag = etag or ""
    return Expected(sha256=etag if SHA256.fullmatch(etag) else None,
                    git_sha1=etag if GIT_SHA1.fullmatch(etag) else None, size=size)


def git_blob_sha1(file: BinaryIO, size: int) -> str:
    """Git's hash of the file's bytes from its present position on."""
    header = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    return hashlib.file_digest(file, lambda: header).hexdigest()


def open_verified(path: Path, expected: Expected, source: str) -> tuple[BinaryIO, str]:
    """The open file and its sha256, after its size and hashes were found right.

    Args:
        path: the file.
        expected: what it must be.
        source: where it came from, for the message.

    Returns:
        (file, sha256): `file` is open for reading at its beginning and unbuffered; the caller closes it.

    Raises:
        CorruptError: it is another file than expected, or was written to meanwhile.
        NotFoundError: there is no such file.
        HubError: it cannot be read.
    """
    try:
        file = open(path, "rb", buffering=0)
    except FileNotFoundError as error:
        raise NotFoundError(f"{source}: there is no such file{'' if source == str(path) else f' as {path}'}") from error
    except OSError as error:
        raise HubError(f"{source}: {path} cannot be read: {error.strerror}") from error
    try:
        before = os.fstat(file.fileno())
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        problem = _problem(file, before.st_size, sha256, expected)
        after = os.fstat(file.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            problem = problem or "it was written to while it was being checked"
        if problem:
            raise CorruptError(f"{source}: {path} is not the file that it should be: {problem}")
        file.seek(0)
        return file, sha256
    except BaseException:
        file.close()
        raise


def _problem(file: BinaryIO, size: int, sha256: str, expected: Expected) -> str | None:
    if expected.size is not None and size != expected.size:
        return f"it has {size} bytes, expected {expected.size}"
    if expected.sha256 and sha256 != expected.sha256:
        return f"its sha256 is {sha256}, expected {expected.sha256}"
    if expected.sha256_prefix and not sha256.startswith(expected.sha256_prefix):
        return f"its sha256 is {sha256}, expected one that begins with {expected.sha256_prefix}"
    if expected.git_sha1:
        file.seek(0)
        if (found := git_blob_sha1(file, size)) != expected.git_sha1:
            return f"its git hash is {found}, expected {expected.git_sha1}"
    if expected.md5:
        file.seek(0)
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        if found != expected.md5:
            return f"its md5 is {found}, expected {expected.md5}"
    return None
