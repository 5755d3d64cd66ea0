"""The hub's client through the real huggingface_hub: what it asks for, what it keeps, what it refuses by name."""
import hashlib
import os
import termios
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.hub_server import Client, Fault, cache_call, git_sha1, sha256, start_fetch
from zoo.hub import sources
from zoo.hub.client import fetch
from zoo.hub.errors import AccessError, CorruptError, HubError, NotFoundError, SourceError, UnavailableError
from zoo.hub.verification import Expected

REPO, FILE = "timm/net.tag", "model.safetensors"
DATA = np.random.default_rng(0).bytes(3_000_000)
OTHER = np.random.default_rng(1).bytes(3_000_000)


@pytest.fixture
def server(running):
    running[0].reset()
    return running[0]


@pytest.fixture
def client(running):
    return running[1]


# -- names of sources

@pytest.mark.parametrize(("text", "expected"), [
    ("hf://a/b/c.bin", sources.HubFile("a/b", "c.bin", "main")),
    ("hf://a/b/d/c.bin@refs/pr/1", sources.HubFile("a/b", "d/c.bin", "refs/pr/1")),
    ("https://host/a/net-0123abcd.pth#x", sources.Url("https://host/a/net-0123abcd.pth")),
    ("package://zoo.models/x.safetensors", sources.PackageFile("zoo.models", "x.safetensors")),
    ("folder/x.pth", sources.LocalFile(Path("folder/x.pth"))),
])
def test_sources_are_parsed(text, expected):
    assert sources.parse(text) == expected
    assert sources.parse(expected) is expected


@pytest.mark.parametrize("text", [
    "", "hf://a", "hf://a/b", "hf://a/b/", "hf://a/../x", "hf://a/b/../../x", "hf://a/b//x", "hf://a/b/./x",
    "hf://a/b/c\\..\\x", "hf://a/b/c\0d", "hf://a/b/C:x", "hf://a/b/x@", "hf://a/b/x@..", "hf://a/b/x@/etc",
    "hf://../b/x", "hf://a--b/c/x", "hf://a/b/x@re v", "ftp://h/x", "file:///etc/passwd", "https:///x",
    "https://user:secret@h/x", "http://127.0.0.1/x", "http://h/x", "package://os/x", "package://zoo.models/../x",
])
def test_bad_names_are_refused(text):
    with pytest.raises(SourceError):
        sources.parse(text)
    with pytest.raises(TypeError, match="string or a path, got int"):
        sources.parse(3)


def test_names_of_downloads_are_safe():
    assert sources.Url("https://h/a%2F..%2Fb c.pth?x=1").name == "b_c.pth"
    assert sources.Url("https://h").name == "file"


@pytest.mark.parametrize(("option", "value"), [("sha256", "0" * 63), ("sha256", "G" * 64), ("sha256_prefix", "12"),
                                               ("sha256", 5), ("md5", "0" * 40), ("size", -1), ("size", "3")])
def test_malformed_hashes_are_refused(option, value, tmp_path):
    with pytest.raises(ValueError, match=f"fetch: {option} must be"):
        fetch(tmp_path, **{option: value})


# -- files of this machine

def test_local_files_are_hashed(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(DATA)
    md5 = hashlib.md5(DATA).hexdigest()
    with fetch(path, sha256=sha256(DATA), sha256_prefix=sha256(DATA)[:8], md5=md5, size=len(DATA)) as got:
        path.unlink()
        path.write_bytes(OTHER)                        # what was opened and hashed is what is read
        assert got.file.read() == DATA
        assert (got.sha256, got.size, got.commit, got.downloaded) == (sha256(DATA), len(DATA), None, False)
    for wrong in ({"sha256": sha256(DATA)}, {"sha256_prefix": "0123abcd"}, {"md5": md5}, {"size": 3}):
        with pytest.raises(CorruptError, match="not the file that it should be"):
            fetch(path, **wrong)
    assert path.exists(), "a file that is in no cache is not ours to delete"
    with pytest.raises(NotFoundError, match="no such file"):
        fetch(tmp_path / "missing")
    with pytest.raises(HubError, match="cannot be read: Is a directory"):
        fetch(tmp_path)


def test_package_files():
    with fetch("package://zoo.data/__init__.py") as got:
        assert got.path.name == "__init__.py" and got.size == len(got.file.read()) > 0
    with pytest.raises(NotFoundError):
        fetch("package://zoo.data/none.bin")
    with pytest.raises(NotFoundError, match="no package zoo.none"):
        fetch("package://zoo.none/x.bin")


# -- the Hub

@pytest.mark.parametrize("lfs", [True, False], ids=["sha256", "git sha1"])
def test_cold_then_warm(server, client, tmp_path, lfs):
    """With a commit: asked, fetched and linked once; then never a request, and the hash all the same."""
    commit = server.add(REPO, FILE, DATA, lfs=lfs)
    source = f"hf://{REPO}/{FILE}@{commit}"
    cold = client.fetch(source, cache_dir=tmp_path)
    assert (cold.data, cold.sha256, cold.commit, cold.downloaded) == (DATA, sha256(DATA), commit, True)
    asked = server.asked()
    assert asked.count(("GET", "cdn" if lfs else "hub")) == 1 and len(asked) <= 3
    assert cold.path == tmp_path / "hub" / "models--timm--net.tag" / "snapshots" / commit / FILE
    assert cold.path.resolve().name == (sha256 if lfs else git_sha1)(DATA)
    warm = client.fetch(source, cache_dir=tmp_path)
    assert replace(warm, seconds=0) == replace(cold, downloaded=False, seconds=0)
    assert server.asked() == asked


def scan(folder):
    from huggingface_hub import scan_cache_dir
    found = scan_cache_dir(folder)
    return [str(w) for w in found.warnings], [(r.repo_id, r.nb_files) for r in found.repos]


def fetched_by_the_client(repo, file, commit, folder):
    from huggingface_hub import hf_hub_download
    return hf_hub_download(repo, file, revision=commit, cache_dir=folder)


def test_the_cache_is_shared_with_huggingface_hub(server, client, tmp_path):
    """What we fetched, it has; what it fetched, we check and use."""
    commit = server.add(REPO, FILE, DATA)
    ours = client.fetch(f"hf://{REPO}/{FILE}@{commit}", cache_dir=tmp_path)
    server.requests.clear()
    assert client.call(fetched_by_the_client, REPO, FILE, commit, tmp_path / "hub") == str(ours.path)
    assert client.call(scan, tmp_path / "hub") == ([], [(REPO, 1)])
    later = server.add(REPO, "b.bin", OTHER)
    client.call(fetched_by_the_client, REPO, "b.bin", later, tmp_path / "hub")
    server.requests.clear()
    assert client.fetch(f"hf://{REPO}/b.bin@{later}", cache_dir=tmp_path).data == OTHER
    assert server.asked() == []


def test_a_branch_is_pinned_at_its_first_load(server, client, tmp_path):
    source = f"hf://{REPO}/{FILE}@main"
    first = server.add(REPO, FILE, DATA)
    assert client.fetch(source, cache_dir=tmp_path).commit == first
    second = server.add(REPO, FILE, OTHER)
    server.requests.clear()
    again = client.fetch(source, cache_dir=tmp_path)
    assert (again.commit, again.data, server.asked()) == (first, DATA, [])
    moved = client.fetch(source, cache_dir=tmp_path, update=True)
    assert (moved.commit, moved.data) == (second, OTHER)
    assert client.fetch(source, cache_dir=tmp_path).commit == second


def test_a_pinned_branch_comes_back_after_the_cache_is_emptied(server, client, tmp_path):
    """The record outlives the file: the same commit and the same bytes, although main has moved."""
    source = f"hf://{REPO}/{FILE}"
    first = server.add(REPO, FILE, DATA)
    client.fetch(source, cache_dir=tmp_path)
    server.add(REPO, FILE, OTHER)
    assert len(client.call(cache_call, "prune", cache_dir=tmp_path)) == 1
    back = client.fetch(source, cache_dir=tmp_path)
    assert (back.commit, back.data, back.downloaded) == (first, DATA, True)


def test_a_record_yields_to_the_hash_that_is_asked_for(server, client, tmp_path):
    source = f"hf://{REPO}/{FILE}@main"
    server.add(REPO, FILE, DATA)
    client.fetch(source, cache_dir=tmp_path)
    server.add(REPO, FILE, OTHER)
    assert client.fetch(source, cache_dir=tmp_path, sha256=sha256(OTHER)).data == OTHER


def test_another_hash_than_announced_is_refused_before_the_download(server, client, tmp_path):
    server.add(REPO, FILE, DATA)
    for wanted in ({"sha256": "0" * 64}, {"sha256_prefix": "0" * 8}, {"size": 3}):
        with pytest.raises(CorruptError, match="the Hub announces .* nothing was downloaded"):
            client.fetch(f"hf://{REPO}/{FILE}", cache_dir=tmp_path, **wanted)
    assert ("GET", "cdn") not in server.asked()


def test_without_links_the_record_has_the_hash(server, tmp_path):
    """HF_HUB_DISABLE_SYMLINKS, as on some Windows systems: no blob's name tells the hash."""
    from huggingface_hub import constants
    if not hasattr(constants, "HF_HUB_DISABLE_SYMLINKS"):
        pytest.skip("this huggingface_hub always links")
    commit = server.add(REPO, FILE, DATA)
    client = Client(server.url, HF_HUB_DISABLE_SYMLINKS="1")
    try:
        got = client.fetch(f"hf://{REPO}/{FILE}@{commit}", cache_dir=tmp_path)
        assert not got.path.is_symlink()
        server.requests.clear()
        got.path.write_bytes(OTHER)
        assert client.fetch(f"hf://{REPO}/{FILE}@{commit}", cache_dir=tmp_path).data == DATA
        assert server.asked()
    finally:
        client.close()


@pytest.mark.parametrize(("options", "name", "error", "says"), [
    ({}, "timm/none/x.bin", NotFoundError, "no such repository, or a private one.*HF_TOKEN"),
    ({}, f"{REPO}/none.bin", NotFoundError, "no such file"),
    ({}, f"{REPO}/{FILE}@v9", NotFoundError, "no such revision"),
    ({"gated": True}, f"{REPO}/{FILE}", AccessError, "gated: accept its terms"),
    ({"token": "right"}, f"{REPO}/{FILE}", AccessError, "check HF_TOKEN"),
])
def test_refusals_say_what_to_do(server, client, tmp_path, options, name, error, says):
    server.add(REPO, FILE, DATA, **options)
    with pytest.raises(error, match=says) as caught:
        client.fetch(f"hf://{name}", cache_dir=tmp_path, token="wrong")
    assert f"hf://{name}" in str(caught.value)
    assert isinstance(caught.value, HubError)
    assert server.asked() == [("HEAD", "hub")], "an answer that is final is not asked for again"


def test_the_token_goes_to_the_hub_only(server, client, tmp_path):
    for lfs in (True, False):
        server.add(REPO, FILE, DATA, token="right", lfs=lfs)
        assert client.fetch(f"hf://{REPO}/{FILE}", cache_dir=tmp_path / str(lfs), token="right").data == DATA
    seen = {(kind, headers.get("Authorization")) for _, kind, _, headers in server.requests}
    assert seen == {("hub", "Bearer right"), ("cdn", None)}


def test_environment_is_honoured(server, tmp_path):
    """HF_HOME, HF_TOKEN and HF_HUB_OFFLINE, in processes of their own."""
    server.add(REPO, FILE, DATA, token="right")
    source, here = f"hf://{REPO}/{FILE}", {"HF_HOME": str(tmp_path), "HF_TOKEN": "right"}

    def outcome(**more):
        client = Client(server.url, **here, **more)
        try:
            return client.fetch(source)
        finally:
            client.close()

    with pytest.raises(UnavailableError, match="offline mode forbids"):
        outcome(HF_HUB_OFFLINE="1")
    assert outcome().path.is_relative_to(tmp_path / "hub")
    server.requests.clear()
    assert outcome(HF_HUB_OFFLINE="1").data == DATA
    assert server.requests == []


def test_offline(server, client, tmp_path):
    source = f"hf://{REPO}/{FILE}"
    server.add(REPO, FILE, DATA)
    with pytest.raises(UnavailableError, match="not in the cache, and offline mode forbids a download"):
        client.fetch(source, cache_dir=tmp_path, offline=True)
    assert server.asked() == []
    client.fetch(source, cache_dir=tmp_path)
    server.requests.clear()
    assert client.fetch(source, cache_dir=tmp_path, offline=True).data == DATA
    assert server.asked() == []


# -- plain addresses

def test_an_address_is_fetched_once(server, client, tmp_path):
    server.plain["net-0123.pth"] = DATA
    source = f"{server.url}/plain/net-0123.pth"
    cold = client.fetch(source, cache_dir=tmp_path, sha256_prefix=sha256(DATA)[:8], size=len(DATA))
    assert (cold.data, cold.downloaded, server.asked()) == (DATA, True, [("GET", "plain")])
    assert client.fetch(source, cache_dir=tmp_path, sha256_prefix=sha256(DATA)[:8]).downloaded is False
    assert client.fetch(source, cache_dir=tmp_path, offline=True).data == DATA
    assert server.asked() == [("GET", "plain")]


def test_an_address_without_a_known_hash_keeps_that_of_its_first_load(server, client, tmp_path):
    server.plain["x.bin"] = DATA
    source = f"{server.url}/plain/x.bin"
    first = client.fetch(source, cache_dir=tmp_path)
    first.path.unlink()
    server.plain["x.bin"] = OTHER
    with pytest.raises(CorruptError, match=f"sha256 is {sha256(OTHER)}, expected {sha256(DATA)}.*do not use it"):
        client.fetch(source, cache_dir=tmp_path)
    assert not first.path.exists()
    assert client.fetch(source, cache_dir=tmp_path, update=True).data == OTHER


def test_redirects(server, client, tmp_path):
    """To another host: followed. To a host without TLS, or away from the web: refused."""
    server.plain["x.bin"] = DATA
    source = f"{server.url}/plain/x.bin"
    server.faults = [Fault(on="plain", location=f"{server.cdn_url}/plain/x.bin")]
    assert client.fetch(source, cache_dir=tmp_path / "a").data == DATA
    for target in ("http://example.invalid/x.bin", "file:///etc/passwd", "ftp://h/x"):
        server.faults = [Fault(on="plain", location=target)]
        with pytest.raises(HubError, match="without TLS is refused|not a web address|redirect that is not followed"):
            client.fetch(source, cache_dir=tmp_path / "b")
    server.faults = [Fault(on="plain", location=source, times=99)]
    with pytest.raises(HubError, match="a redirect that is not followed"):
        client.fetch(source, cache_dir=tmp_path / "b")


def test_https_is_never_left_for_http(monkeypatch):
    monkeypatch.setattr(sources, "PLAIN_HTTP_HOSTS", {"127.0.0.1"})
    sources.check_url("http://127.0.0.1/x", before="http://127.0.0.1/y")
    with pytest.raises(SourceError, match="http without TLS is refused"):
        sources.check_url("http://127.0.0.1/x", before="https://127.0.0.1/y")


def test_proxies_of_the_environment_are_used(server, tmp_path):
    server.plain["x.bin"] = DATA
    child = start_fetch(server.url, "http://proxied.invalid/plain/x.bin", tmp_path, http_proxy=server.url,
                        before="from zoo.hub import sources; sources.PLAIN_HTTP_HOSTS.add('proxied.invalid')")
    assert child.communicate(timeout=30)[0].strip() == sha256(DATA)
    assert server.requests[0][2] == "http://proxied.invalid/plain/x.bin"


def test_a_terminal_shows_the_rate(server, tmp_path):
    """A bar with bytes, time and rate on a terminal; nothing where stderr is a file."""
    server.plain["x.bin"] = DATA
    server.faults = [Fault(on="plain", stall_after=1_000_000, seconds=0.5, times=99)]
    terminal, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    child = start_fetch(server.url, f"{server.url}/plain/x.bin", tmp_path, stderr=theirs, progress=True)
    os.close(theirs)
    shown = b""
    with pytest.raises(OSError, match="Input/output error"):          # what a terminal says when the child has ended
        while True:
            shown += os.read(terminal, 10_000)
    os.close(terminal)
    assert child.communicate(timeout=30)[0].strip() == sha256(DATA)
    assert b"x.bin" in shown and b"B/s" in shown
    quiet = start_fetch(server.url, f"{server.url}/plain/x.bin", tmp_path / "b", progress=True)
    assert quiet.communicate(timeout=30) == (sha256(DATA) + "\n", "")


# -- the cache as a whole

def test_entries_sizes_and_pruning(server, client, tmp_path):
    server.add("timm/a", FILE, DATA)
    server.add("timm/b", FILE, OTHER[:1000])
    server.plain["c.pth"] = OTHER[:500]
    names = ["hf://timm/a/model.safetensors@main", "hf://timm/b/model.safetensors@main", f"{server.url}/plain/c.pth"]
    for age, name in enumerate(names):
        path = client.fetch(name, cache_dir=tmp_path).path
        os.utime(path, (path.stat().st_mtime - age * 86400 * 10,) * 2)
    found = client.call(cache_call, "entries", cache_dir=tmp_path)
    assert [entry.source for entry in found] == names
    assert [entry.size for entry in found] == [len(DATA), 1000, 500]
    assert client.call(cache_call, "cache_size", cache_dir=tmp_path) == len(DATA) + 1500
    assert [e.source for e in client.call(cache_call, "entries", "timm/*", cache_dir=tmp_path)] == names[:2]

    def pruned(**options):
        return [e.source for e in client.call(cache_call, "prune", cache_dir=tmp_path, **options)]

    assert pruned(older_than=15, dry_run=True) == names[2:]
    assert pruned(max_size=1600, dry_run=True) == names[:1]
    assert pruned(older_than=15) == names[2:]
    assert pruned(pattern="timm/b") == [names[1]]
    assert [entry.source for entry in client.call(cache_call, "entries", cache_dir=tmp_path)] == names[:1]


def test_verify_finds_and_removes_what_changed(server, client, tmp_path):
    server.add("timm/a", FILE, DATA)
    server.add("timm/b", FILE, OTHER)
    good, bad = (client.fetch(f"hf://timm/{name}/{FILE}", cache_dir=tmp_path).path for name in "ab")
    bad.write_bytes(OTHER[:-1] + b"!")
    told = {e.path: p for e, p in client.call(cache_call, "verify", remove=False, cache_dir=tmp_path)}
    assert told[good] is None and "sha256 is" in told[bad]
    client.call(cache_call, "verify", cache_dir=tmp_path)
    assert good.exists() and not bad.exists() and not bad.is_symlink()
    assert client.call(cache_call, "verify", cache_dir=tmp_path)[0][1] is None


def test_damaged_records_are_passed_over(server, client, tmp_path):
    server.add(REPO, FILE, DATA)
    client.fetch(f"hf://{REPO}/{FILE}", cache_dir=tmp_path)
    (record,) = (tmp_path / "zoo" / "records").glob("*.json")
    good = record.read_text()
    for text in ("", "{", "[1]", '{"source": 1}', good.replace("hf://", "/"), good.replace(sha256(DATA), "../x")):
        record.write_text(text)
        assert client.call(cache_call, "entries", cache_dir=tmp_path) == []
        assert client.fetch(f"hf://{REPO}/{FILE}", cache_dir=tmp_path).data == DATA
    assert sha256(DATA) in record.read_text()


def test_files_linked_in_by_hand_are_not_deleted(server, client, tmp_path):
    commit = server.add(REPO, FILE, DATA)
    path = client.fetch(f"hf://{REPO}/{FILE}@{commit}", cache_dir=tmp_path).path
    mine = tmp_path / "mine.bin"
    mine.write_bytes(OTHER)
    path.unlink()
    path.symlink_to(mine)
    assert client.fetch(f"hf://{REPO}/{FILE}@{commit}", cache_dir=tmp_path).data == DATA
    assert mine.read_bytes() == OTHER


def test_expected_joins_and_contradicts():
    known, other = Expected(sha256="a" * 64, size=0), Expected(sha256="b" * 64, size=5)
    assert known.joined(other) == known
    assert Expected(size=3).joined(other) == Expected(sha256="b" * 64, size=3)
    assert known.contradicts(known) is None
    assert "expected" in known.contradicts(other)
