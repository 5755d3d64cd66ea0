"""Everything that a source, a network or a disk can do to a download, through the real huggingface_hub: one test each.

Bad bytes are never returned and never stay in the cache; no exception of another library comes through.
"""
import resource
import signal
import socket
import sys
import time

import numpy as np
import pytest

from tests.hub_server import Client, Fault, HubServer, fetch_here, sha256, start_fetch
from zoo.hub.errors import AccessError, CorruptError, HubError, NotFoundError, StorageError, UnavailableError

REPO, FILE = "timm/net.tag", "model.safetensors"
SOURCE = f"hf://{REPO}/{FILE}@main"
DATA = np.random.default_rng(0).bytes(3_000_000)
OTHER = np.random.default_rng(1).bytes(3_000_000)


@pytest.fixture
def server(running):
    running[0].reset()
    running[0].add(REPO, FILE, DATA)
    running[0].plain["x.bin"] = DATA
    return running[0]


@pytest.fixture
def client(running):
    return running[1]


def source_of(kind: str, server: HubServer) -> str:
    return SOURCE if kind == "cdn" else f"{server.url}/plain/x.bin"


def leftovers(folder) -> list[str]:
    """The files of data below a cache folder: blobs, parts, plain files. Not locks, records and tags."""
    return [str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() or p.is_symlink()
            if ".locks" not in p.parts and p.suffix not in (".lock", ".json", ".TAG")]


both = pytest.mark.parametrize("kind", ["cdn", "plain"], ids=["hub", "address"])


# -- wrong bytes

@both
def test_wrong_bytes_of_the_right_length(server, client, tmp_path, kind):
    server.faults = [Fault(on=kind, data=OTHER, times=99)]
    with pytest.raises(CorruptError, match=f"{sha256(OTHER)}, expected {sha256(DATA)}.*do not use it") as caught:
        client.fetch(source_of(kind, server), cache_dir=tmp_path, sha256=sha256(DATA))
    assert source_of(kind, server) in str(caught.value)
    assert leftovers(tmp_path) == []
    assert server.asked().count(("GET", kind)) == 2


@both
def test_wrong_bytes_once_are_fetched_anew(server, client, tmp_path, kind):
    server.faults = [Fault(on=kind, data=OTHER)]
    assert client.fetch(source_of(kind, server), cache_dir=tmp_path, sha256=sha256(DATA)).data == DATA


def test_wrong_bytes_of_a_small_file(server, client, tmp_path):
    """A 40-digit ETag is git's hash of the blob."""
    server.add(REPO, "config.json", b"{'a': 1}", lfs=False)
    server.faults = [Fault(on="hub", data=b"{'a': 2}", times=99)]
    with pytest.raises(CorruptError, match="git hash is"):
        client.fetch(f"hf://{REPO}/config.json", cache_dir=tmp_path)
    assert leftovers(tmp_path) == []


def damaged(data: bytes, how: str) -> bytes:
    return data[:10] if how == "truncated" else b"" if how == "empty" else data[:-1] + bytes([data[-1] ^ 1])


@both
@pytest.mark.parametrize("how", ["flipped", "truncated", "empty"])
def test_a_damaged_cached_file_is_fetched_anew(server, client, tmp_path, kind, how):
    path = client.fetch(source_of(kind, server), cache_dir=tmp_path).path
    path.write_bytes(damaged(DATA, how))
    again = client.fetch(source_of(kind, server), cache_dir=tmp_path)
    assert (again.data, again.downloaded) == (DATA, True)
    assert server.asked().count(("GET", kind)) == 2


@both
def test_a_damaged_cached_file_while_offline(server, client, tmp_path, kind):
    path = client.fetch(source_of(kind, server), cache_dir=tmp_path).path
    path.write_bytes(damaged(DATA, "flipped"))
    with pytest.raises(UnavailableError, match="sha256 is .* deleted from the cache, and offline mode forbids"):
        client.fetch(source_of(kind, server), cache_dir=tmp_path, offline=True)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(("fault", "says"), [
    (Fault(data=DATA[:1000]), "3000000 bytes were announced, the server sends 1000: "),
    (Fault(data=DATA + b"more"), "3000000 bytes were announced, the server sends 3000004"),
    (Fault(data=DATA + b"more", chunked=True), "more than the 3000000 bytes that were announced"),
    (Fault(headers={"Content-Encoding": "gzip"}), "sent it in gzip, which was not asked for"),
    (Fault(headers={"Content-Type": "text/html; charset=utf-8"}), "sends a web page in place of a file"),
], ids=["shorter", "longer", "endless", "encoded", "page"])
@both
def test_something_else_than_announced(server, client, tmp_path, kind, fault, says):
    fault.on, fault.times = kind, 99
    server.faults = [fault]
    with pytest.raises(CorruptError, match=says):
        client.fetch(source_of(kind, server), cache_dir=tmp_path, size=len(DATA))
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(("headers", "says"), [
    ({"X-Repo-Commit": None}, "has no commit and hash"),
    ({"ETag": None, "X-Linked-Etag": None}, "has no commit and hash"),
    ({"X-Linked-Etag": '"../../evil"'}, "has no commit and hash"),
    ({"X-Repo-Commit": "../evil"}, "has no commit and hash"),
    ({"X-Linked-Size": "5"}, "5 bytes were announced, the server sends 3000000"),
    ({"X-Linked-Size": str(10 ** 15)}, "1000000000000000 bytes are missing, the disk of .* free"),
])
def test_a_hub_that_announces_nonsense(server, client, tmp_path, headers, says):
    server.add(REPO, FILE, DATA, headers=headers)
    with pytest.raises((CorruptError, StorageError), match=says):
        client.fetch(SOURCE, cache_dir=tmp_path)
    assert leftovers(tmp_path) == []


def test_a_hub_that_answers_for_another_commit(server, client, tmp_path):
    commit = server.add(REPO, FILE, DATA, headers={"X-Repo-Commit": "0" * 40})
    with pytest.raises(CorruptError, match=f"answered for commit {'0' * 40}, asked was {commit}"):
        client.fetch(f"hf://{REPO}/{FILE}@{commit}", cache_dir=tmp_path)


# -- broken connections

@both
@pytest.mark.parametrize("how", ["reset_after", "close_after", "stall_after"])
def test_a_broken_connection_is_continued(server, client, tmp_path, kind, how):
    """The next request asks for what is missing, to the byte."""
    server.faults = [Fault(on=kind, **{how: 1_000_000})]
    got = client.fetch(source_of(kind, server), cache_dir=tmp_path, size=len(DATA))
    assert got.data == DATA and got.seconds < 5, "HF_HUB_DOWNLOAD_TIMEOUT is 1 s here, the silence lasts 8 s"
    assert server.ranges(kind) == [None, "bytes=1000000-"]


@both
def test_a_server_without_ranges_sends_it_all_again(server, client, tmp_path, kind):
    server.faults = [Fault(on=kind, reset_after=1_000_000), Fault(on=kind, ignore_range=True)]
    assert client.fetch(source_of(kind, server), cache_dir=tmp_path).data == DATA
    assert server.ranges(kind) == [None, "bytes=1000000-"]


def test_a_file_that_changes_during_the_download(server, client, tmp_path):
    """No hash is known that would tell: the server is asked for the rest of that very version, or all of the new."""
    server.faults = [Fault(on="plain", data=OTHER, reset_after=1_000_000)]
    assert client.fetch(source_of("plain", server), cache_dir=tmp_path).data == DATA
    assert server.ranges("plain") == [None, "bytes=1000000-"]


@both
def test_exhausted_retries_keep_what_came(server, client, tmp_path, kind):
    """The error comes after a handful of tries; the next call continues."""
    server.faults = [Fault(on=kind, close_after=1000, times=99)]
    with pytest.raises(UnavailableError, match="no connection .*check the network"):
        client.fetch(source_of(kind, server), cache_dir=tmp_path, sha256=sha256(DATA))
    tries = len(server.ranges(kind))
    assert 3 <= tries <= 10 and [name[-5:] for name in leftovers(tmp_path)] == [".part"]
    server.faults = []
    assert client.fetch(source_of(kind, server), cache_dir=tmp_path, sha256=sha256(DATA)).data == DATA
    assert server.ranges(kind)[-1] == f"bytes={1000 * tries}-"
    assert not [name for name in leftovers(tmp_path) if name.endswith(".part")]


@both
@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_busy_server_is_asked_again(server, client, tmp_path, kind, status):
    server.faults = [Fault(on=kind, status=status, times=2)]
    assert client.fetch(source_of(kind, server), cache_dir=tmp_path).data == DATA
    assert len(server.ranges(kind)) == 3


@both
@pytest.mark.parametrize(("status", "error", "says"), [
    (503, HubError, "answered HTTP 503; try again later"), (403, AccessError, "refused access"),
    (401, AccessError, "refused access"), (404, NotFoundError, "no such file"), (418, HubError, "answered HTTP 418"),
])
def test_errors_of_the_download(server, client, tmp_path, kind, status, error, says):
    server.faults = [Fault(on=kind, status=status, times=99)]
    with pytest.raises(error, match=says):
        client.fetch(source_of(kind, server), cache_dir=tmp_path)
    assert [name for name in leftovers(tmp_path) if not name.endswith(".part")] == []


def test_a_failing_hub_is_asked_again(server, client, tmp_path):
    server.faults = [Fault("HEAD", "hub", status=500, times=2)]
    assert client.fetch(SOURCE, cache_dir=tmp_path).data == DATA


def test_a_failing_hub_with_a_warm_cache(server, client, tmp_path):
    """A branch that only huggingface_hub has loaded: its last commit is used when the Hub gives no answer."""
    client.call(load_by_the_client, tmp_path / "hub")
    server.faults = [Fault("HEAD", "hub", status=503, times=99)]
    with pytest.raises(HubError, match="HTTP 503"):
        client.fetch(f"hf://{REPO}/{FILE}@v9", cache_dir=tmp_path)
    assert client.fetch(SOURCE, cache_dir=tmp_path).data == DATA


def load_by_the_client(folder):
    from huggingface_hub import hf_hub_download
    hf_hub_download(REPO, FILE, cache_dir=folder)


@pytest.mark.parametrize("how", ["closed", "silent"])
def test_a_dead_hub_answers_in_seconds(tmp_path, how):
    """Nothing listens, or nothing answers; with the waits as shipped. huggingface_hub alone takes 23 s."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if how == "silent":
            taken.listen()
        child = start_fetch(f"http://127.0.0.1:{taken.getsockname()[1]}", SOURCE, tmp_path,
                            before="from zoo.hub import retry; retry.FIRST_WAIT = 0.5")
        start = time.monotonic()
        out = child.communicate(timeout=60)[0]
    assert out.startswith("UnavailableError") and "check the network" in out
    assert time.monotonic() - start < 18, "6 s of tries, and the start of Python on a busy machine"


# -- Xet storage

def test_xet_without_a_token_falls_back(server, client, tmp_path):
    """The token's route answers 404: the real client gives up, we go on over plain HTTP."""
    server.add(REPO, FILE, OTHER, xet=True)
    assert client.fetch(SOURCE, cache_dir=tmp_path).data == OTHER
    paths = [path for _, _, path, _ in server.requests]
    assert any("xet-read-token" in path for path in paths), "the real client was not asked to use Xet"
    assert server.asked().count(("GET", "cdn")) == 1


@pytest.mark.parametrize("how", ["closed", "silent"])
def test_xet_storage_that_is_blocked_falls_back(server, tmp_path, how):
    """In seconds; hf_xet's own retries take 113 s for a closed port and more than 200 s for a silent one."""
    server.add(REPO, FILE, OTHER, xet=True)
    client = Client(server.url)                    # hf_xet reads its settings once in a process
    with socket.socket() as storage:
        storage.bind(("127.0.0.1", 0))
        if how == "silent":
            storage.listen()
        server.xet_storage = f"http://127.0.0.1:{storage.getsockname()[1]}"
        got = client.fetch(SOURCE, cache_dir=tmp_path)
        client.close()
    assert got.data == OTHER and got.seconds < 30
    assert [path for _, _, path, _ in server.requests if "xet-read-token" in path]
    assert server.asked().count(("GET", "cdn")) == 1


def fetch_with_xet_sending(data: bytes, folder) -> bytes:
    """In the child: Xet storage cannot be had here, so its transfer alone is replaced."""
    from unittest.mock import patch
    with patch("huggingface_hub.file_download.xet_get", lambda *, incomplete_path, **rest:
               incomplete_path.write_bytes(data)):
        return fetch_here(SOURCE, {"cache_dir": folder}).data


@pytest.mark.parametrize("sent", ["right", "wrong"])
def test_bytes_from_xet_are_checked(server, client, tmp_path, sent):
    """Right ones need no plain HTTP; wrong ones are thrown away and fetched over plain HTTP."""
    server.add(REPO, FILE, DATA, xet=True)
    assert client.call(fetch_with_xet_sending, DATA if sent == "right" else OTHER, tmp_path) == DATA
    assert server.asked().count(("GET", "cdn")) == (0 if sent == "right" else 1)
    assert {sha256(DATA)} == {sha256(path.read_bytes()) for path in (tmp_path / "hub").rglob("*")
                              if path.is_file() and path.stat().st_size > 1_000_000}


# -- processes

def wait_for(condition, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@both
def test_a_killed_process_is_continued(server, client, tmp_path, kind):
    """kill -9 in mid-download: the next process asks for the rest, and clears what huggingface_hub left behind."""
    server.faults = [Fault(on=kind, stall_after=1_000_000, seconds=1.0)]
    source = source_of(kind, server)
    if kind == "plain":
        pin = f"import functools; fetch = functools.partial(fetch, sha256={sha256(DATA)!r})"
    else:
        pin = ""
    child = start_fetch(server.url, source, tmp_path, before=pin, HF_HUB_DOWNLOAD_TIMEOUT="30")
    wait_for(lambda: any(p.stat().st_size == 1_000_000 for p in tmp_path.rglob("*.part")))
    child.send_signal(signal.SIGKILL)
    child.communicate()
    if kind == "cdn":
        (part,) = tmp_path.rglob("*.part")
        part.with_name(part.name.replace(".part", ".12345678.incomplete")).write_bytes(b"left by a killed process")
    assert client.fetch(source, cache_dir=tmp_path, sha256=sha256(DATA)).data == DATA
    assert server.ranges(kind) == [None, "bytes=1000000-"]
    assert not [name for name in leftovers(tmp_path) if name.endswith((".part", ".incomplete"))]


@both
def test_threads_fetch_one_file(server, client, tmp_path, kind):
    source = source_of(kind, server)
    assert client.call(fetch_in_threads, source, tmp_path) == [sha256(DATA)] * 4
    assert server.ranges(kind) == [None]


def fetch_in_threads(source, folder):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool:
        return [one.sha256 for one in pool.map(lambda _: fetch_here(source, {"cache_dir": folder}), range(4))]


@both
def test_two_processes_fetch_one_file(server, tmp_path, kind):
    server.faults = [Fault(on=kind, stall_after=1_000_000)]
    children = [start_fetch(server.url, source_of(kind, server), tmp_path) for _ in range(2)]
    assert [child.communicate(timeout=60)[0].strip() for child in children] == [sha256(DATA)] * 2
    assert server.ranges(kind) == [None, "bytes=1000000-"]


# -- disks

@both
def test_a_full_disk(server, tmp_path, kind):
    """A limit on the size of files: write() fails as it does on a full disk, in the middle of the download."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))"
    out = start_fetch(server.url, source_of(kind, server), tmp_path, before=limit).communicate(timeout=60)[0]
    assert out.startswith("StorageError") and "free some space there" in out and "HF_HOME" in out
    assert leftovers(tmp_path) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


# Root may write into every folder, as long as it has its capabilities: capset(header of version 3, none).
NO_PRIVILEGES = r"import ctypes; assert ctypes.CDLL(None).capset(b'\x22\x05\x08\x20' + bytes(4), bytes(24)) == 0"


@pytest.fixture
def folders(tmp_path):
    """tmp_path, whose folders can be made read-only by calling what comes with it."""
    def change(mode):
        for path in [tmp_path, *tmp_path.rglob("*")]:
            if path.is_dir() and not path.is_symlink():
                path.chmod(mode)
    yield tmp_path, lambda: change(0o555)
    change(0o755)


@both
@pytest.mark.skipif(sys.platform != "linux", reason="capset is Linux's")
def test_a_read_only_cache(server, client, folders, kind):
    """Warm: it loads. Cold: the error says what to do. Damaged: refused, as it cannot be deleted."""
    source, (folder, make_read_only) = source_of(kind, server), folders
    path = client.fetch(source, cache_dir=folder / "warm").path
    (folder / "cold").mkdir()
    make_read_only()

    def outcome(name):
        return start_fetch(server.url, source, folder / name, before=NO_PRIVILEGES).communicate(timeout=60)[0]

    assert outcome("warm").strip() == sha256(DATA)
    out = outcome("cold")
    assert out.startswith("StorageError") and "cache_dir= to a folder that is" in out
    path.write_bytes(OTHER)
    out = outcome("warm")
    assert out.startswith("StorageError") and "sha256 is" in out and "cannot be deleted" in out
