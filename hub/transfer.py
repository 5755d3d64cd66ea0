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
        with open(partial, "ab", buffering=0) as file, _bar(source, progress) as bar:
            transfer = _Transfer(url, file, bar, source=source, size=size, headers=headers or {}, timeout=timeout)
            while True:
                start = file.tell()
                try:
                    return transfer.go_on()
                except HubError:
                    raise
                except Exception as error:      # urllib lets through whatever the socket, TLS and HTTP raise
                    backoff.received(file.tell() - start)
                    backoff.failed(error)
    except (StorageError, CorruptError):
        partial.unlink(missing_ok=True)         # a full disk is not left full; wrong bytes are not continued
        raise


class _Transfer:
    """A download under way: `file` has the bytes so far, `version` is what the server called the file they are from."""

    def __init__(self, url: str, file: BinaryIO, bar, *, source: str, size: int | None, headers: dict[str, str],
                 timeout: float):
        self.url, self.file, self.bar, self.source = url, file, bar, source
        self.size, self.headers, self.timeout = size, headers, timeout
        self.version: str | None = None

    def go_on(self) -> None:
        """One request for the bytes that are missing."""
        have = self.file.tell()
        if self.size is not None and have == self.size:
            return
        if self.size is not None and have > self.size:
            have = self.restart()
        try:
            response = urllib.request.build_opener(_Redirects).open(self.request(have), timeout=self.timeout)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and have:      # the server's file is shorter than the part
                self.restart()
                raise ConnectionError("the server has no bytes beyond those received") from error
            raise
        with response:
            if have and not _continues_at(response, have):
                self.restart()
            self.receive(response)

    def request(self, have: int) -> urllib.request.Request:
        """The GET for what follows the first `have` bytes; of that very version, where the server named one."""
        request = urllib.request.Request(self.url, headers={"Accept-Encoding": "identity", "User-Agent": "zoo"})
        for name, value in self.headers.items():
            add = request.add_unredirected_header if name.lower() == "authorization" else request.add_header
            add(name, value)
        if have:
            request.add_header("Range", f"bytes={have}-")
            if self.version:
                request.add_header("If-Range", self.version)
        return request

    def restart(self) -> int:
        """Empties the part; the bytes it has now, 0."""
        self.file.truncate(0)
        return self.file.seek(0)

    def receive(self, response) -> None:
        """Appends the body to the file, which keeps every byte that came before a failure."""
        whole = self.whole_size(response)
        version = response.headers.get("ETag") or response.headers.get("Last-Modified")
        self.version = None if version and version.startswith("W/") else version
        self.bar.reset(total=whole)
        self.bar.initial = self.bar.n = self.file.tell()
        while block := response.read1(CHUNK):
            if whole is not None and self.file.tell() + len(block) > whole:
                raise CorruptError(f"{self.source}: the server sends more than the {whole} bytes that were announced")
            self.write(block)
            self.bar.update(len(block))
        if whole is not None and self.file.tell() < whole:
            raise ConnectionError(f"the connection was closed after {self.file.tell()} of {whole} bytes")

    def whole_size(self, response) -> int | None:
        """The bytes that the file will have; refuses a body that cannot be the file."""
        encoding, length = response.headers.get("Content-Encoding", "identity"), response.headers.get("Content-Length")
        whole = self.size if length is None else self.file.tell() + int(length)
        if encoding != "identity":
            problem = f"the server sent it in {encoding}, which was not asked for: is a proxy on the way?"
        elif response.headers.get_content_type() == "text/html":
            problem = ("the server sends a web page in place of a file, as login pages of networks do: open the "
                       "address in a browser")
        elif self.size is not None and whole != self.size:
            problem = (f"{self.size} bytes were announced, the server sends {whole}: a proxy on the way may have "
                       "replaced it; open the address in a browser")
        else:
            return whole
        raise CorruptError(f"{self.source}: {problem}")

    def write(self, block: bytes) -> None:
        """Appends all of `block`; told apart here from the network's errors, which are OSErrors, too."""
        try:
            while block:
                block = block[self.file.write(block):]
        except OSError as error:
            raise storage_error(error, os.path.dirname(self.file.name), self.source) from error


def _continues_at(response, have: int) -> bool:
    """Whether the answer to a Range request begins where the part ends; some servers send the whole file."""
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return response.status == 206 and found is not None and int(found[1]) == have


def _bar(source: str, progress: bool):
    """A bar with the rate on a terminal; silent elsewhere (disable=None), or always with progress=False."""
    from tqdm import tqdm
    return tqdm(desc=source.rpartition("/")[2][-40:], unit="B", unit_scale=True, unit_divisor=1024,
                disable=None if progress else True)
