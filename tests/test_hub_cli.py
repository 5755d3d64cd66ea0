"""python -m zoo.hub, hub.list, info, predict, plot, save_pretrained and push."""

import base64
import hashlib
import json
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import zoo
from tests.house import ROOT
from tests.hub_server import settings
from zoo import checkpoint, hub, models
from zoo.data import digits
from zoo.hub import config
from zoo.hub.__main__ import COMMANDS, main
from zoo.hub.plot import BLUE, MARGIN, PANEL, ROW, SIDE, draw
from zoo.hub.sources import parse
from zoo.models import weights as weights_of
from zoo.models.weights import Preprocessing


@pytest.fixture
def picture(tmp_path):
    """The first test digit, 64x64, as a file; and its label."""
    from PIL import Image
    images, labels = digits(train=False).tensors
    path = tmp_path / "digit.png"
    Image.fromarray((images.numpy()[0, 0] * 255).astype(np.uint8)).resize((64, 64), Image.Resampling.BOX).save(path)
    return path, str(labels[0].item())


def said(capsys, *arguments, status=0):
    """What the command printed: JSON parsed, or the line of an error."""
    assert main(list(arguments)) == status
    out, err = capsys.readouterr()
    if status and not out:
        assert err.startswith("zoo.hub: ") and err.count("\n") == 1
        return err
    return json.loads(out) if "--json" in arguments else out


# -- lists

def test_list():
    assert hub.list("resnet1*") == ["resnet14", "resnet18", "resnet101", "resnet110", "resnet152"]
    assert set(hub.list()) == set(models.names()) and hub.list("no*") == []
    assert sorted(hub.list(pretrained=True)) == sorted(weights_of.REGISTRY)
    assert "resnet50.a1_in1k" in hub.list("resnet50", pretrained=True)


def test_info():
    found = hub.info("resnet50", "tv2")
    assert found.row is weights_of.get("resnet50.tv2_in1k") and not found.default and "a1_in1k" in found.tags
    assert hub.info("resnet50").default and str(hub.info("resnet18.tv_in1k")).count(found.row.licence) == 1
    with pytest.raises(ValueError, match="nearest: resnet50"):
        hub.info("resnt50")


def test_the_command_lists_and_informs(capsys):
    assert said(capsys, "list", "alex*") == "alexnet\n"
    rows = said(capsys, "list", "--pretrained", "--json", "vgg11")
    assert [r["name"] for r in rows] == hub.list("vgg11", pretrained=True) and rows[0]["licence"] == "bsd-3-clause"
    table = said(capsys, "list", "--pretrained", "resnet50")
    assert "69" not in table.splitlines()[0] and "resnet50.a1_in1k" in table and "81.24" in table
    assert said(capsys, "info", "resnet50", "--json")["tag"] == "a1_in1k"
    text = said(capsys, "info", "vgg16.tv_in1k")
    assert "57b026918159a6bf9faf8405c3a551903768e7138989d9c6224a14227203fad8" in text and "bsd-3-clause" in text


@pytest.mark.parametrize(("arguments", "text"), [
    ([], "required: command"),
    (["lsit"], "no command 'lsit', did you mean 'list'?"),
    (["list", "--jsn"], "no option '--jsn', did you mean '--json'?"),
    (["list", "qqq*"], "no name fits 'qqq*'"),
    (["info", "resnt50"], "nearest: resnet50"),
    (["download", "resnet20"], "no pretrained weights"),
    (["predict", "resnet20_digits", "a", "b", "--plot", "c.png"], "--plot: wants one picture"),
    (["cache", "--dry-run"], "--dry-run go with --prune"),
    (["predict", "resnet20_digits", "x.png", "--topk", "many"], "--topk: invalid int value"),
])
def test_wrong_options_are_one_line(arguments, text, capsys):
    assert text in said(capsys, *arguments, status=2)


def test_files_that_are_not_there_or_no_checkpoints(capsys, tmp_path):
    assert "no.png" in said(capsys, "predict", "resnet20_digits", str(tmp_path / "no.png"), status=1)
    (tmp_path / "x.pth").write_text("<html>")
    out = str(tmp_path / "y.safetensors")
    assert "web page" in said(capsys, "convert", str(tmp_path / "x.pth"), out, status=1)
    told = said(capsys, "download", "resnet18", "--offline", "--cache-dir", str(tmp_path), status=1)
    assert "not in the cache" in told


def test_the_command_as_a_process():
    """Help for every command, and a status that the shell sees."""
    command = [sys.executable, "-m", "zoo.hub"]
    helped, done = (subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)
                    for arguments in (["--help"], ["info", "resnt50"]))
    assert helped.returncode == 0 and all(name in helped.stdout for name in COMMANDS)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr


# -- files

def test_convert(capsys, tmp_path):
    zoo.save({"state_dict": {"module.w": zoo.ones(3)}, "epoch": 3}, tmp_path / "a.pth")
    source, target = (str(tmp_path / name) for name in ("a.pth", "b.safetensors"))
    told = said(capsys, "convert", source, target, "--json", "--dtype", "float16")
    assert told["tensors"] == 1 and told["unwrapped"] == ["state_dict", "module."]
    found = checkpoint.read(target)
    assert found["w"].dtype == np.float16 and found["w"].tolist() == [1, 1, 1]


def test_download_cache_verify_and_prune(capsys, tmp_path):
    """A file of the cache, put there as a first load would, goes through all commands."""
    from zoo.hub import cache as cached
    assert said(capsys, "download", "resnet20_digits").splitlines()[0].endswith("resnet20_digits.safetensors")
    source, where = parse("https://example.org/w.bin"), cached.folders(tmp_path)
    file = cached.url_path(source, where)
    file.parent.mkdir(parents=True)
    file.write_bytes(b"weights")
    cached.write_record(cached.Record(str(source), hashlib.sha256(b"other weights").hexdigest(), 7), where)
    at = ["--cache-dir", str(tmp_path)]
    assert said(capsys, "cache", "--json", *at)[0]["source"] == "https://example.org/w.bin"
    assert said(capsys, "cache", "--prune", "--max-size", "1", *at).endswith("0 files, 0.0 MB removed\n")
    assert said(capsys, "verify", "--keep", *at, status=1).endswith("1 files, 1 bad\n") and file.exists()
    assert said(capsys, "verify", *at, status=1).endswith("1 files, 1 bad, deleted\n") and not file.exists()
    file.write_bytes(b"weights")
    assert "would go" in said(capsys, "cache", "--prune", "--dry-run", *at) and file.exists()
    assert "1 files" in said(capsys, "cache", "--prune", *at) and not file.exists()


def test_set_dir(tmp_path):
    from zoo.hub import cache as cached
    before = hub.get_dir()
    hub.set_dir(tmp_path)
    try:
        assert hub.get_dir() == str(tmp_path) and cached.folders().hub == tmp_path / "hub"
        assert cached.folders(tmp_path / "other").hub == tmp_path / "other" / "hub"
    finally:
        hub.set_dir(None)
    assert hub.get_dir() == before


# -- pictures

def test_predict(picture):
    path, label = picture
    model = hub.load("resnet20_digits")
    found = hub.predict(model, path, topk=3)
    assert found[0].label == label and len(found) == 3
    assert found[0].probability > found[1].probability > found[2].probability > 0
    assert sum(p.probability for p in hub.predict("resnet20_digits", path, topk=99)) == pytest.approx(1)
    for row in hub.predict(model, [path, path.read_bytes()], topk=3):
        assert [p.index for p in row] == [p.index for p in found]
        assert [p.probability for p in row] == pytest.approx([p.probability for p in found], rel=1e-4)
    with zoo.no_grad():
        logits = model(model.preprocess([path])).softmax(1)[0]
    assert found[0].probability == pytest.approx(logits[found[0].index].item(), rel=1e-5)
    with zoo.no_grad():
        model.fc.bias.fill_(float("nan"))
    with pytest.raises(ValueError, match="not finite .*white digits on black"):
        hub.predict(model, path)
    with pytest.raises(ValueError, match="training mode"):
        hub.predict(model.train(), path)
    with pytest.raises(ValueError, match="topk"):
        hub.predict(model, path, topk=0)
    with pytest.raises(ValueError, match="no preprocess"):
        hub.predict(models.resnet8().eval(), path)


def test_the_command_predicts_and_plots(picture, capsys, tmp_path):
    from PIL import Image
    path, label = picture
    out = tmp_path / "plot.png"
    text = said(capsys, "predict", "resnet20_digits", str(path), "--topk", "3", "--plot", str(out))
    assert text.splitlines()[0].split() == [text.split()[0], label] and text.count("\n") == 3
    told = said(capsys, "predict", "resnet20_digits", str(path), str(path), "--json")
    assert [t["predictions"][0]["label"] for t in told] == [label, label]
    with Image.open(out) as made:
        assert made.size == (3 * MARGIN + SIDE + PANEL, SIDE + 2 * MARGIN)


def test_bars_are_as_long_as_the_probabilities():
    from PIL import Image
    predictions = [hub.Prediction("a label far too long for its place " * 5, 0.75, 0), hub.Prediction("b", 0.25, 1)]
    drawn = np.asarray(draw(Image.new("L", (30, 90), 128), predictions))
    blue = (drawn == tuple(bytes.fromhex(BLUE[1:]))).all(2)
    top = MARGIN + (SIDE - 2 * ROW) // 2
    for number, prediction in enumerate(predictions):
        assert blue[top + ROW * number + 37].sum() == pytest.approx(PANEL * prediction.probability, abs=2)
    grey = (drawn == 128).all(2)
    assert grey[:, :MARGIN + SIDE].sum() == pytest.approx(SIDE * SIDE // 3, rel=0.02)   # the picture keeps its shape
    assert (drawn[:, -MARGIN:] == 255).all()                                            # no text runs out


# -- saving

def test_saved_models_load_again(tmp_path):
    model = hub.load("resnet18", None, num_classes=3, in_chans=1)
    labels, preprocessing = ["ant", "bee", "cat"], Preprocessing(40, 31, "bicubic", (0.5,), (0.25,), 1)
    folder = hub.save_pretrained(model, tmp_path / "mine", labels=labels, preprocessing=preprocessing, licence="mit",
                                 metrics={"accuracy on my pictures": 0.875}, tag="mine")
    again = hub.load(folder)
    assert again.labels == tuple(labels) and again.preprocess.preprocessing == preprocessing
    assert (again.architecture, again.num_classes) == ("resnet18", 3)
    x = zoo.randn(2, 1, 31, 31)
    with zoo.no_grad():
        np.testing.assert_array_equal(model(x).numpy(), again(x).numpy())
    card = (folder / "README.md").read_text()
    assert "| accuracy on my pictures | 0.875 |" in card and "license: mit" in card and "Not recorded" in card
    assert hub.download(folder).name == "model.safetensors"
    with pytest.raises(ValueError, match="one file of weights"):
        hub.load(folder, "a1_in1k")
    assert abs(hub.load(folder, None).fc.weight.detach().numpy() - model.fc.weight.detach().numpy()).max() > 1e-3


def test_a_card_claims_nothing_that_was_not_measured(tmp_path):
    import safetensors.numpy
    model = hub.load("resnet20_digits")
    folder = hub.save_pretrained(model, tmp_path)
    card = (folder / "README.md").read_text()
    assert "None was measured" in card and "100" not in card.split("## Accuracy")[1]
    assert model.weights.source in card and "license: apache-2.0" in card and "272,186" in card
    stored = safetensors.numpy.load_file(folder / "model.safetensors")
    assert list(stored) and all(np.array_equal(stored[k], v.numpy()) for k, v in model.state_dict().items())


def test_a_fresh_classifier_is_saved_as_it_is(tmp_path):
    model = hub.load("resnet20_digits", num_classes=4)
    folder = hub.save_pretrained(model, tmp_path)
    assert hub.load(folder).num_classes == 4 and hub.load(folder).labels is None
    plain = models.resnet8(num_classes=2)
    with pytest.raises(ValueError, match="wants architecture="):
        hub.save_pretrained(plain, tmp_path)
    with pytest.raises(ValueError, match="resnet14 .* is not this model: layer1"):
        hub.save_pretrained(plain, tmp_path, architecture="resnet14")
    assert hub.load(hub.save_pretrained(plain, tmp_path, architecture="resnet8")).num_classes == 2
    with pytest.raises(TypeError, match="got Linear"):
        hub.save_pretrained(plain.fc, tmp_path)
    odd = hub.load("resnet18", None, norm_layer=zoo.nn.BatchNorm2d)
    with pytest.raises(TypeError, match="model_args that are JSON"):
        hub.save_pretrained(odd, tmp_path / "odd")
    assert not (tmp_path / "odd").exists()
    with pytest.raises(ValueError, match="wants 2 labels, got 1"):
        hub.save_pretrained(plain, tmp_path, architecture="resnet8", labels=["one"])


@pytest.mark.parametrize("row", [r for r in weights_of.rows() if r.preprocessing], ids=lambda row: row.name)
def test_every_rows_preprocessing_survives_config_json(row):
    p = row.preprocessing
    about = config.Config(row.model, row.num_classes, p.channels, {"width_per_group": 64}, p, ("a",) * row.num_classes,
                          row.licence, row.tag)
    assert config.parse(config.render(about, "conv1", "fc"), "config.json") == about


def test_timm_reads_what_is_saved(tmp_path):
    torch = pytest.importorskip("torch")
    import tests.yardsticks.torchvision_shim  # noqa: F401
    timm = pytest.importorskip("timm")
    row = replace(weights_of.get("resnet18").preprocessing, crop=64, resize=67)
    model = hub.load("resnet18", None, num_classes=5)
    folder = hub.save_pretrained(model, tmp_path, preprocessing=row)
    theirs = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    x = np.random.default_rng(0).standard_normal((1, 3, 64, 64), dtype=np.float32)
    with torch.no_grad(), zoo.no_grad():
        ours = model(zoo.from_numpy(x)).numpy()
        np.testing.assert_allclose(ours, theirs(torch.from_numpy(x)).numpy(), atol=1e-4 * abs(ours).max())
    settings_of = timm.data.resolve_model_data_config(theirs)
    assert int(64 / settings_of["crop_pct"]) == 67 and settings_of["interpolation"] == row.interpolation


# -- pushing

class Uploads(BaseHTTPRequestHandler):
    """What the Hub answers to an upload of small files; `self.server.got` keeps what it was sent."""

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.got.append((self.path, self.headers.get("Authorization"), body))
        address = f"http://127.0.0.1:{self.server.server_port}/owner/mine"
        if self.path == "/api/repos/create":
            return self.answer({"url": address, "name": "owner/mine"})
        if self.path.startswith("/api/models/owner/mine/preupload"):
            files = json.loads(body)["files"]
            return self.answer({"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                                          for f in files]})
        if self.path.startswith("/api/models/owner/mine/commit"):
            return self.answer({"success": True, "commitOid": "1" * 40, "commitUrl": f"{address}/commit/{'1' * 40}"})
        if self.path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        return self.answer({}, 404)

    def do_GET(self):
        self.answer({"siblings": [], "id": "owner/mine", "sha": "1" * 40})

    def answer(self, data, status=200):
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_push(tmp_path):
    """Through the real client, in a process whose Hub is a server of ours."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Uploads)
    server.got = []
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    code = """
from zoo import hub
model = hub.load("resnet20_digits")
print(hub.push(model, "owner/mine", token="hf_secret", private=True, metrics={"accuracy": 1.0}))
try:
    hub.push(model, "owner/other", token="hf_secret")
except hub.HubError as error:
    print(type(error).__name__)
"""
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                              env=settings(f"http://127.0.0.1:{server.server_port}", HF_HOME=str(tmp_path)))
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith("/owner/mine/commit/" + "1" * 40) and lines[1].endswith("Error")
    paths = [path for path, _, _ in server.got]
    assert paths[0] == "/api/repos/create" and b"private" in server.got[0][2]
    assert {token for _, token, _ in server.got} == {"Bearer hf_secret"}
    commit = next(body for path, _, body in server.got if "/commit/" in path)
    files = {row["value"]["path"]: base64.b64decode(row["value"]["content"])
             for row in map(json.loads, commit.splitlines()) if row["key"] == "file"}
    assert set(files) == {"README.md", "config.json", "model.safetensors"}
    assert config.parse(files["config.json"], "config.json").architecture == "resnet20_digits"
