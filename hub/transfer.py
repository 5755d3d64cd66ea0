"""One file over HTTP into a partial file, which the next try continues, be it in another process.

Only the standard library: proxies come from the environment, certificates from the system (SSL_CERT_FILE).
"""
import os
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urljoin

from zoo.hub.errors import CorruptError, HubError, StorageError, storage_error
from zoo.hub.retry import Backoff
from zoo.hub.sources import check_url

CHUNK = 1 << 20                 # bytes


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to what check_url allows: never from https to http, never to another scheme."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        check_url(urljoin(req.full_url, newurl), before=req.full_url)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(url: str, partial: Path, *, source: str, size: int | None = None, headers: dict[str, str] | None = None,
             timeout: float = 10.0, progress: bool = True) -> None:
    """Fetches `url` into `partial`, continuing after the bytes that are already there.

    A partial file that is left by an error is for the next call to continue; one that cannot be right is removed.

    Args:
        url: the address; `headers` go to it and, "Authorization" excepted, to where it redirects.
        partial: the file to write; its folder exists.
        source: what the user asked for, for messages.
        size: of the whole file in bytes, where known: more is never written.
        headers: of the request.
        timeout: seconds without a byte after which the connection counts as broken.
        progress: whether to show a bar with the rate on a terminal.

    Raises:
        HubError: with all tries used up, on an answer that is final, on a full disk.
    """
    backoff = Backoff(source)
    try:
        with _opened(partial, source) as file, _bar(source, size, progress) as bar:
            while True:
                start = file.tell()
                try:
                    return _continue(url, file, size, dict(headers or {}), timeout, bar, source)
                except HubError:
                    raise
                except Exception as error:      # urllib lets through whatever the socket, TLS and HTTP raise
                    backoff.received(file.tell() - start)
                    backoff.failed(error)
    except (StorageError, CorruptError):
        partial.unlink(missing_ok=True)         # a full disk is not left full; wrong bytes are not continued
        raise


def _opened(partial: Path, source: str) -> BinaryIO:
    try:
        return open(partial, "ab", buffering=0)
    except OSError as error:
        raise storage_error(error, partial.parent, source) from error


def _continue(url: str, file: BinaryIO, size: int | None, headers: dict[str, str], timeout: float, bar,
              source: str) -> None:
    """One request for what `file` lacks of `size` bytes."""
    have = file.tell()
    if size is not None and have == size:
        return
    if size is not None and have > size:
        have = _restart(file)
    request = _request(url, headers, have)
    try:
        response = _opener().open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:       # the server's file is shorter than the part: begin anew
            _restart(file)
            raise ConnectionError("the server has no bytes beyond those received") from error
        raise
    with response:
        if have and not _continues_at(response, have):
            have = _restart(file)
        bar.reset(total=size)
        bar.update(have)
        _receive(response, file, size, bar, source)


def _restart(file: BinaryIO) -> int:
    """Empties the part; the bytes it has now, 0."""
    file.truncate(0)
    return file.seek(0)


def _request(url: str, headers: dict[str, str], have: int) -> urllib.request.Request:
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity", "User-Agent": "zoo"})
    for name, value in headers.items():
        add = request.add_unredirected_header if name.lower() == "authorization" else request.add_header
        add(name, value)
    if have:
        request.add_header("Range", f"bytes={have}-")
    return request


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Redirects)


def _continues_at(response, have: int) -> bool:
    """Whether the answer to a Range request begins where the part ends; some servers send the whole file."""
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return response.status == 206 and found is not None and int(found[1]) == have


def _receive(response, file: BinaryIO, size: int | None, bar, source: str) -> None:
    """Appends the body to `file`, which keeps every byte that came before a failure."""
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise CorruptError(f"{source}: the server sent it in {encoding}, which was not asked for: is a proxy between?")
    if response.headers.get_content_type() == "text/html":
        raise CorruptError(f"{source}: the server sends a web page in place of a file, as login pages of networks do: "
                           "open the address in a browser")
    length = response.headers.get("Content-Length")
    whole = size if length is None else file.tell() + int(length)
    if size is not None and whole != size:
        raise CorruptError(f"{source}: {size} bytes were announced, the server sends {whole}: a proxy on the "
                           "way may have replaced it; open the address in a browser")
    while block := response.read1(CHUNK):
        if whole is not None and file.tell() + len(block) > whole:
            raise CorruptError(f"{source}: the server sends more than the {whole} bytes that were announced")
        _write(file, block, source)
        bar.update(len(block))
    if whole is not None and file.tell() < whole:
        raise ConnectionError(f"the connection was closed after {file.tell()} of {whole} bytes")


def _write(file: BinaryIO, block: bytes, source: str) -> None:
    try:
        while block:
            block = block[file.write(block):]
    except OSError as error:
        raise storage_error(error, os.path.dirname(file.name), source) from error


def _bar(source: str, size: int | None, progress: bool):
    """A bar with the rate on a terminal; silent elsewhere (disable=None), or always with progress=False."""
    from tqdm import tqdm
    return tqdm(desc=source.rpartition("/")[2][-40:], total=size, unit="B", unit_scale=True, unit_divisor=1024,
                disable=None if progress else True)
