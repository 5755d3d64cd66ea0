"""The four calls to huggingface_hub (1.x and 2.x): ask about a file, download it, the headers and the settings.

It is imported when first needed: it reads its settings from the environment at import, and brings an HTTP client.
"""
import importlib.util
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from zoo.hub.cache import Folders
from zoo.hub.errors import CorruptError
from zoo.hub.retry import ANSWER_SECONDS, repeated
from zoo.hub.sources import COMMIT, HubFile, check_url
from zoo.hub.verification import Expected, announced

# hf_xet's own retries keep a blocked storage service waiting for 113 s when it refuses connections, and for more than
# 200 s when it is silent; plain HTTP is there to fall back on. These are its settings, unless the user has set them.
XET_PATIENCE = {"HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1", "HF_XET_CLIENT_RETRY_MAX_DURATION": "5s",
                "HF_XET_CLIENT_CONNECT_TIMEOUT": "5s", "HF_XET_CLIENT_READ_TIMEOUT": "10s"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the Hub says of a file: the commit, its hash and size, where its bytes are, whether Xet storage has them."""
    commit: str
    etag: str
    expected: Expected
    url: str
    xet: bool


def offline() -> bool:
    """Whether HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) forbids requests."""
    from huggingface_hub import constants
    return constants.HF_HUB_OFFLINE


def timeout() -> float:
    """Seconds of silence after which a download counts as broken: HF_HUB_DOWNLOAD_TIMEOUT, or 10."""
    from huggingface_hub import constants
    return constants.HF_HUB_DOWNLOAD_TIMEOUT


def ask(source: HubFile, revision: str, token: str | bool | None) -> Answer:
    """What the Hub says of the file at `revision`: one HEAD request, repeated for a few seconds while it fails.

    Raises:
        HubError: no answer, no such file, no access, or an answer without a commit or hash that can be checked.
    """
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
    url = hf_hub_url(source.repo, source.file, revision=revision)
    seconds = min(ANSWER_SECONDS, constants.HF_HUB_ETAG_TIMEOUT)
    found = repeated(lambda: get_hf_file_metadata(url, token=token, timeout=seconds), str(source))
    expected = announced(found.etag, found.size)
    if not (found.commit_hash and COMMIT.fullmatch(found.commit_hash) and expected.has_hash):
        raise CorruptError(f"{source}: the answer of {constants.ENDPOINT} has no commit and hash (commit "
                           f"{found.commit_hash!r}, ETag {found.etag!r}): it is not the Hub's, check HF_ENDPOINT and "
                           "proxies")
    if COMMIT.fullmatch(revision) and found.commit_hash != revision:
        raise CorruptError(f"{source}: the Hub answered for commit {found.commit_hash}, asked was {revision}")
    location = urljoin(url, found.location)
    if location.split(":")[0] != url.split(":")[0]:
        check_url(location, before=url)
    return Answer(found.commit_hash, found.etag, expected, location, bool(found.xet_file_data) and has_xet())


def has_xet() -> bool:
    """Whether huggingface_hub would use Xet storage: installed and not switched off."""
    from huggingface_hub import constants
    return not constants.HF_HUB_DISABLE_XET and importlib.util.find_spec("hf_xet") is not None


def download(source: HubFile, commit: str, where: Folders, token: str | bool | None, progress: bool) -> Path:
    """The file in huggingface_hub's cache, downloaded or, where its blob is there, linked into the snapshot."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    silence = not progress and not are_progress_bars_disabled()
    if silence:
        disable_progress_bars()
    try:
        with _short_xet_retries():
            return Path(hf_hub_download(source.repo, source.file, revision=commit, cache_dir=where.hub, token=token))
    finally:
        if silence:
            enable_progress_bars()


@contextmanager
def _short_xet_retries():
    """hf_xet reads its settings from the environment when its session begins, in the process's first Xet download."""
    ours = {name: value for name, value in XET_PATIENCE.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


def headers(token: str | bool | None, url: str) -> dict[str, str]:
    """The headers for the download from `url`, with the token only for the Hub itself."""
    from huggingface_hub import constants
    from huggingface_hub.utils import build_hf_headers
    return _without_token(build_hf_headers(token=token), url, constants.ENDPOINT)


def _without_token(headers: dict[str, str], url: str, origin: str) -> dict[str, str]:
    """The headers for `url`: a token goes to the Hub that it is for, and to no other host."""
    if urlsplit(url)[:2] == urlsplit(origin)[:2]:
        return headers
    return {name: value for name, value in headers.items() if name.lower() != "authorization"}
