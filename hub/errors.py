"""What can go wrong between a source and verified bytes: one class, HubError, with a subclass for each remedy.

Each message says what was wrong, where the file came from and what to do.
"""
import errno

# By name, as huggingface_hub 1.x raises httpx's classes and 2.x those of httpx2.
TRANSPORT_NAMES = {"TransportError", "ConnectionError", "TimeoutError", "URLError", "HTTPException"}
TRANSIENT_STATUSES = {408, 429, 500, 502, 503, 504}
BAD_CERTIFICATE = "CERTIFICATE_VERIFY_FAILED"
FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}


class HubError(OSError):
    """A file could not be had from its source, or is not the file that it should be."""


class SourceError(HubError, ValueError):
    """The source's name is malformed or refused before any request."""


class NotFoundError(HubError, FileNotFoundError):
    """The source answered that there is no such repository, revision or file."""


class AccessError(HubError, PermissionError):
    """The source wants a token, or one that may read this file."""


class UnavailableError(HubError, ConnectionError):
    """The source cannot be reached, has a failure, or may not be asked (offline), and the cache has no copy."""


class CorruptError(HubError, RuntimeError):
    """The bytes are not those that were announced or pinned: hash or size differ. RuntimeError, as torch.hub raises."""


class StorageError(HubError):
    """The cache folder is full or cannot be written."""


def status_of(error: BaseException) -> int | None:
    """The HTTP status in an exception of huggingface_hub or urllib, None where there is none."""
    response = getattr(error, "response", None)
    return getattr(response, "status_code", None) or getattr(error, "code", None)


def transient(error: BaseException) -> bool:
    """Whether the same request may well succeed a moment later: a broken connection, a busy or failing server."""
    status = status_of(error)
    if status is not None:
        return status in TRANSIENT_STATUSES
    if BAD_CERTIFICATE in str(error):
        return False
    return bool(TRANSPORT_NAMES & {cls.__name__ for cls in type(error).__mro__})


def storage_error(error: OSError, folder, wanted: str) -> StorageError:
    """The message for a write into the cache that failed."""
    if error.errno in FULL_DISK:
        advice = "free some space there (python -m zoo.hub cache), or set HF_HOME to a folder on another disk"
    else:
        advice = "make it writable, or set HF_HOME or cache_dir= to a folder that is"
    return StorageError(f"{wanted}: cannot write to the cache {folder}: {error.strerror or error}; {advice}")


def from_network(error: Exception, source: str) -> HubError:
    """The HubError for what huggingface_hub, httpx or urllib raised while `source` was asked for."""
    names = {cls.__name__ for cls in type(error).__mro__}
    status = status_of(error)
    if isinstance(error, HubError):
        return error
    if isinstance(error, OSError) and error.errno in FULL_DISK | UNWRITABLE:
        return storage_error(error, error.filename or "", source)
    if "GatedRepoError" in names:
        return AccessError(f"{source}: the repository is gated: accept its terms on its page on the Hub, then set "
                           "HF_TOKEN or run `hf auth login`")
    if "RepositoryNotFoundError" in names:
        return NotFoundError(f"{source}: no such repository, or a private one: check the name; for a private one set "
                             "HF_TOKEN or run `hf auth login`")
    if "RevisionNotFoundError" in names:
        return NotFoundError(f"{source}: the repository has no such revision: check what follows the @")
    if "EntryNotFoundError" in names or status in (404, 410):
        return NotFoundError(f"{source}: no such file there: check the name")
    if status in (401, 403):
        return AccessError(f"{source}: the server refused access (HTTP {status}): check HF_TOKEN, or remove it if "
                           "the file is public")
    if status is not None and status < 400:
        return HubError(f"{source}: a redirect that is not followed ({error}): check the address")
    if status in TRANSIENT_STATUSES:
        return UnavailableError(f"{source}: the server answered HTTP {status}; try again later")
    if status is not None:
        return HubError(f"{source}: the server answered HTTP {status}; check the address")
    if BAD_CERTIFICATE in str(error):
        return HubError(f"{source}: the server's certificate is not trusted: {error}; behind a company proxy set "
                        "SSL_CERT_FILE to its certificate")
    if transient(error):
        return UnavailableError(f"{source}: no connection ({type(error).__name__}: {error}): check the network, "
                                "proxies and HF_ENDPOINT; a file that is in the cache loads without a network")
    return HubError(f"{source}: {type(error).__name__}: {error}")
