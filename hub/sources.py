"""Where a file comes from, parsed and checked: a file on the Hub, a URL, a file of this package, a local path."""
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from zoo.hub.errors import SourceError

REPO_PART = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?")
REVISION = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._/+-]{0,254}")
COMMIT = re.compile(r"[0-9a-f]{40}")
# Hosts that may be asked without TLS; nobody's in use, the tests put their server on the loopback here.
PLAIN_HTTP_HOSTS: set[str] = set()


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a model repository on the Hugging Face Hub, at a commit, branch or tag."""
    repo: str
    file: str
    revision: str = "main"

    @property
    def commit(self) -> str | None:
        """The revision where it is a full commit, which never changes; else None."""
        return self.revision if COMMIT.fullmatch(self.revision) else None

    def __str__(self) -> str:
        return f"hf://{self.repo}/{self.file}@{self.revision}"


@dataclass(frozen=True, slots=True)
class Url:
    """A file at an https address."""
    url: str

    @property
    def name(self) -> str:
        """The last part of the address's path, made safe as a file's name."""
        return re.sub(r"[^A-Za-z0-9._-]", "_", unquote(urlsplit(self.url).path).rpartition("/")[2])[-100:] or "file"

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A data file that ships inside zoo."""
    package: str
    file: str

    def __str__(self) -> str:
        return f"package://{self.package}/{self.file}"


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of this machine, in no cache."""
    path: Path

    def __str__(self) -> str:
        return str(self.path)


Source = HubFile | Url | PackageFile | LocalFile


def parse(source) -> Source:
    """The source that a string or path names.

    Args:
        source: "hf://owner/repo/folder/file@revision" (no @: main), "https://host/file",
            "package://zoo.models/file", a path, or a Source, which is returned as it is.

    Returns:
        HubFile, Url, PackageFile or LocalFile.

    Raises:
        SourceError: (a ValueError) a name that could leave its folder, an unknown scheme, http without TLS.
        TypeError: neither a string nor a path.

    Example:
        >>> from zoo.hub.sources import parse
        >>> parse("hf://timm/resnet18.a1_in1k/model.safetensors").revision
        'main'
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, os.PathLike):
        return LocalFile(Path(source).expanduser())
    if not isinstance(source, str):
        raise TypeError(f"parse: source must be a string or a path, got {type(source).__name__}")
    scheme, separator, rest = source.partition("://")
    if not separator:
        if not source or "\0" in source:
            raise SourceError(f"{source!r}: not the name of a file")
        return LocalFile(Path(source).expanduser())
    readers = {"hf": _hub_file, "https": _url, "http": _url, "package": _package_file}
    if scheme not in readers:
        raise SourceError(f"{source}: unknown kind of source {scheme!r}: use hf://, https://, package:// or a path")
    return readers[scheme](source, rest)


def check_url(url: str, *, before: str | None = None) -> None:
    """Raises SourceError unless `url` may be asked for; `before` is the address that redirected to it."""
    parts = urlsplit(url)
    came = f" (redirected from {before})" if before else ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SourceError(f"{url}{came}: not a web address")
    if parts.username is not None:
        raise SourceError(f"{parts.hostname}{came}: addresses with a user name or password are refused")
    downgrade = before is not None and urlsplit(before).scheme == "https"
    if parts.scheme == "http" and (downgrade or parts.hostname not in PLAIN_HTTP_HOSTS):
        raise SourceError(f"{url}{came}: http without TLS is refused: use https")


def _hub_file(source: str, rest: str) -> HubFile:
    path, _, revision = rest.rpartition("@") if "@" in rest else (rest, "", "main")
    owner, _, path = path.partition("/")
    name, _, file = path.partition("/")
    if not (REPO_PART.fullmatch(owner) and REPO_PART.fullmatch(name)):
        raise SourceError(f"{source}: wanted hf://owner/repo/file@revision, got the repository {owner}/{name}")
    if not REVISION.fullmatch(revision):
        raise SourceError(f"{source}: {revision!r} is not a revision: a branch, a tag or a commit of 40 hex digits")
    return HubFile(f"{owner}/{name}", _inner_path(source, file), revision)


def _url(source: str, rest: str) -> Url:
    check_url(source)
    return Url(urlunsplit(urlsplit(source)._replace(fragment="")))


def _package_file(source: str, rest: str) -> PackageFile:
    package, _, file = rest.partition("/")
    if not re.fullmatch(r"zoo(\.\w+)*", package):
        raise SourceError(f"{source}: only zoo's own packages have files here, got {package!r}")
    return PackageFile(package, _inner_path(source, file))


def _inner_path(source: str, file: str) -> str:
    """`file`, a relative path with / that stays inside its folder on every system."""
    bad = any(part in ("", ".", "..") for part in file.split("/"))
    if bad or re.search(r'[\x00-\x1f\x7f\\:*?"<>|]', file) or len(file) > 1000:
        raise SourceError(f"{source}: {file!r} is not a file inside a repository: "
                          "no empty, . or .. part, no backslash, colon or control character")
    return file
