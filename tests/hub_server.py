"""A Hub of our own on the loopback, with the standard library: what huggingface_hub asks for, and every fault.

`HubServer` answers as the Hub does (HEAD and GET of /owner/repo/resolve/revision/file), sends large files from a
second server, which is another origin (localhost against 127.0.0.1) as the Hub's CDN is, and serves plain addresses
under /plain/. `faults` breaks the next answers. `Client` runs `fetch` in one child process, since huggingface_hub reads
HF_ENDPOINT when it is imported.
"""
import hashlib
import multiprocessing
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from email.message import Message
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent


def git_sha1(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Stored:
    """A file: its bytes, whether it is large (sha256 as linked ETag, bytes on the CDN), and headers that lie."""
    data: bytes
    lfs: bool = True
    headers: dict[str, str | None] = field(default_factory=dict)      # None: the header is left out
    xet: bool = False
    token: str | None = None                                          # who has it may read
    gated: bool = False

    @cached_property
    def etag(self) -> str:
        return sha256(self.data) if self.lfs else git_sha1(self.data)


@dataclass
class Fault:
    """What happens to the next `times` requests with this method on this server ("hub", "cdn" or "plain")."""
    method: str = "GET"
    on: str = "cdn"
    times: int = 1
    status: int | None = None
    reset_after: int | None = None        # TCP reset after so many bytes of the body
    close_after: int | None = None        # orderly end after so many bytes
    stall_after: int | None = None        # silence of `seconds` after so many bytes
    seconds: float = 8.0
    ignore_range: bool = False
    data: bytes | None = None             # other bytes than the file's
    headers: dict[str, str | None] = field(default_factory=dict)
    location: str | None = None           # a redirect to there
    chunked: bool = False                 # a body without Content-Length


class Handler(BaseHTTPRequestHandler):
    """One request; `self.server` is a _Server, whose `hub` is the HubServer."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        hub = self.server.hub
        kind = "plain" if "/plain/" in self.path else self.server.kind
        if "agent-harnesses" in self.path:               # huggingface_hub's daily look for news
            return self.reply(404, b"", {})
        hub.requests.append((self.command, kind, unquote(self.path), self.headers))
        fault = hub.next_fault(self.command, kind)
        if fault.status or fault.location:
            self.reply(fault.status or 302, b"", {"Location": fault.location, **fault.headers})
        elif kind == "plain":
            self.body(hub.plain.get(self.path.rpartition("/")[2]), fault)
        elif kind == "cdn":
            self.body(hub.blobs().get(self.path.rpartition("/")[2]), fault)
        elif "/resolve/" in self.path:
            self.resolve(fault)
        elif "/xet-read-token/" in self.path and hub.xet_storage:
            self.reply(200, b"", {"X-Xet-Cas-Url": hub.xet_storage, "X-Xet-Access-Token": "t",
                                  "X-Xet-Token-Expiration": "4000000000"})
        else:
            self.reply(404, b"", {})

    def resolve(self, fault: Fault):
        hub = self.server.hub
        repo, _, rest = unquote(self.path)[1:].partition("/resolve/")
        revision, _, name = rest.partition("/")
        files = hub.repos.get(repo)
        if files is None:
            return self.reply(401, b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Invalid credentials"})
        commit = hub.refs[repo].get(revision, revision)
        if commit not in files:
            return self.reply(404, b"", {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"})
        stored = files[commit].get(name)
        if stored is None:
            return self.reply(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
        if stored.gated:
            return self.reply(403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        if stored.token and self.headers.get("Authorization") != f"Bearer {stored.token}":
            return self.reply(401, b"", {"X-Error-Message": "Invalid token"})
        self.announce(repo, commit, stored, fault)

    def announce(self, repo: str, commit: str, stored: Stored, fault: Fault):
        hub = self.server.hub
        headers: dict[str, str | None] = {"X-Repo-Commit": commit, "ETag": f'"{stored.etag}"'}
        if stored.xet:
            route = f"{hub.url}/api/models/{repo}/xet-read-token/{commit}"
            headers |= {"X-Xet-Hash": stored.etag, "X-Xet-Refresh-Route": route}
        if not stored.lfs:
            return self.body(stored.data, replace(fault, headers=headers | stored.headers | fault.headers))
        headers |= {"X-Linked-Etag": f'"{stored.etag}"', "X-Linked-Size": str(len(stored.data)),
                    "Location": f"{hub.cdn_url}/blob/{stored.etag}"}
        self.reply(302, b"", headers | stored.headers | fault.headers)

    def reply(self, status: int, body: bytes, headers: dict[str, str | None]):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def body(self, data: bytes | None, fault: Fault):
        """The file, or the part that a Range asks for, broken as the fault says."""
        if data is None:
            return self.reply(404, b"", {})
        data = data if fault.data is None else fault.data
        status, headers, start = 200, {"ETag": f'"{hash(data):x}"'}, 0
        same = self.headers.get("If-Range", headers["ETag"]) == headers["ETag"]
        if (wanted := self.headers.get("Range")) and same and not fault.ignore_range:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            if start >= len(data):
                return self.reply(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            status, headers["Content-Range"] = 206, f"bytes {start}-{len(data) - 1}/{len(data)}"
        part = data[start:]
        headers |= {"Transfer-Encoding": "chunked"} if fault.chunked else {"Content-Length": str(len(part))}
        self.send_response(status)
        for name, value in {**headers, **fault.headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.send_part(part, fault)

    def send_part(self, part: bytes, fault: Fault):
        if fault.chunked:
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(part), part))
            return
        stops = [at for at in (fault.reset_after, fault.close_after, fault.stall_after) if at is not None]
        self.wfile.write(part[:stops[0]] if stops else part)
        if not stops:
            return
        self.close_connection = True
        if fault.stall_after is not None:
            time.sleep(fault.seconds)
        if fault.reset_after is not None:
            time.sleep(0.1)               # lets the bytes arrive before the reset discards what is under way
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: "HubServer", kind: str):
        super().__init__(("127.0.0.1", 0), Handler)
        self.hub, self.kind = hub, kind
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request, client_address):
        """The client went away, which the tests are about."""


class HubServer:
    """The Hub, its CDN and a plain web server, with what they hold and what they were asked."""

    def __init__(self):
        self._hub, self._cdn = _Server(self, "hub"), _Server(self, "cdn")
        self.url = f"http://127.0.0.1:{self._hub.server_port}"
        self.cdn_url = f"http://localhost:{self._cdn.server_port}"
        self.reset()

    def reset(self) -> None:
        """Forgets files, faults and requests."""
        self.repos: dict[str, dict[str, dict[str, Stored]]] = {}      # repository -> commit -> name -> file
        self.refs: dict[str, dict[str, str]] = {}                     # repository -> branch -> commit
        self.plain: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, str, Message]] = []
        self.xet_storage: str | None = None           # the address of Xet storage; None: its tokens' route answers 404

    def add(self, repo: str, name: str, data: bytes, *, branch: str = "main", **options) -> str:
        """A new commit of the branch that has the file; its 40 hex digits."""
        commits = self.repos.setdefault(repo, {})
        branches = self.refs.setdefault(repo, {})
        before = commits.get(branches.get(branch, ""), {})
        commit = hashlib.sha1(f"{repo}{name}{len(commits)}".encode()).hexdigest()
        commits[commit] = {**before, name: Stored(data, **options)}
        branches[branch] = commit
        return commit

    def blobs(self) -> dict[str, bytes]:
        return {s.etag: s.data for commits in self.repos.values() for files in commits.values() for s in files.values()}

    def next_fault(self, method: str, kind: str) -> Fault:
        for fault in self.faults:
            if fault.times > 0 and (fault.method, fault.on) == (method, kind):
                fault.times -= 1
                return fault
        return Fault()

    def asked(self) -> list[tuple[str, str]]:
        """(method, server) of the requests so far."""
        return [(method, kind) for method, kind, _, _ in self.requests]

    def ranges(self, kind: str) -> list[str | None]:
        """The Range headers of the GETs to a server."""
        return [headers.get("Range") for method, on, _, headers in self.requests if (method, on) == ("GET", kind)]

    def close(self) -> None:
        for server in (self._hub, self._cdn):
            server.shutdown()
            server.server_close()


@dataclass(frozen=True)
class Outcome:
    """What fetch returned, in a form that passes between processes."""
    path: Path
    sha256: str
    data: bytes
    commit: str | None
    downloaded: bool
    seconds: float


def settings(url: str, **more: str) -> dict[str, str]:
    """The environment of a child that talks to the server at `url` only, and quickly finds out when that is dead."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HF_HUB_DISABLE_XET", "HF_HOME"):
        kept.pop(name, None)
    return kept | {"HF_ENDPOINT": url, "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1",
                   "HF_HUB_DOWNLOAD_TIMEOUT": "1", "HF_XET_CLIENT_READ_TIMEOUT": "1s",
                   "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [kept.get("PYTHONPATH")])])} | more


def begin(environment: dict[str, str]) -> None:
    """Makes a fresh process a client of the server: environment, loopback without TLS, short waits."""
    os.environ.clear()
    os.environ.update(environment)
    from zoo.hub import retry, sources
    sources.PLAIN_HTTP_HOSTS.update({"127.0.0.1", "localhost"})
    retry.FIRST_WAIT = 0.02


def fetch_here(source: str, options: dict) -> Outcome:
    from zoo.hub.client import fetch
    start = time.monotonic()
    with fetch(source, progress=False, **options) as got:
        return Outcome(got.path, got.sha256, got.file.read(), got.commit, got.downloaded, time.monotonic() - start)


def cache_call(name: str, *args, **options):
    from zoo.hub import cache
    return getattr(cache, name)(*args, **options)


class Client:
    """A child process with huggingface_hub set to the server; each call names its cache folder."""

    def __init__(self, url: str, **environment: str):
        self.pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), begin, (settings(url, **environment),))

    def fetch(self, source: str, **options) -> Outcome:
        return self.pool.submit(fetch_here, source, options).result(timeout=60)

    def call(self, function, *args, **options):
        return self.pool.submit(function, *args, **options).result(timeout=60)

    def close(self) -> None:
        self.pool.shutdown()


def start_fetch(url: str, source: str, cache_dir, before: str = "", *, stderr: int = subprocess.PIPE,
                progress: bool = False, **environment: str) -> subprocess.Popen:
    """A process of its own that fetches `source`, after running `before`; it prints the sha256 or the error."""
    code = f"""
import os
from tests.hub_server import begin
begin(dict(os.environ))
from zoo.hub.client import fetch
{before}
try:
    with fetch({source!r}, progress={progress}, cache_dir={str(cache_dir)!r}) as got:
        print(got.sha256)
except OSError as error:
    print(type(error).__name__, error)
"""
    return subprocess.Popen([sys.executable, "-c", code], env=settings(url, **environment), stdout=subprocess.PIPE,
                            stderr=stderr, text=True)
