"""python -m zoo.train on folders of pictures: fine-tuning, evaluation, prediction, what it shows and writes."""

import base64
import io
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import zoo
from tests.training import outcome, rows, train, write_pictures
from zoo import hub
from zoo.train.__main__ import main
from zoo.train.flags import parse
from zoo.train.image import ImageTask
from zoo.train.recipe import layers
from zoo.train.run import Run

TINY = ["--width", "4", "--size", "12", "--batch-size", "16", "--epochs", "2"]


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="session")
def trained(pictures, tmp_path_factory):
    """A run that has learned something: three digits in 12x12 pixels."""
    return train(tmp_path_factory.mktemp("trained"), *TINY, "--data", str(pictures), "--epochs", "8", "--augment",
                 "none", "--lr", "0.05")


def made(pictures, *options):
    """The task and the run that the options ask for, before the first step."""
    zoo.manual_seed(0)
    task = ImageTask(parse([*TINY, "--data", str(pictures), *options]))
    return task, Run(task)


# -- what a run leaves


def test_a_run_validates_tests_and_keeps_the_best(trained):
    *epochs, last = rows(trained)
    assert [r["epoch"] for r in epochs] == list(range(1, 9)) and last["part"] == "test"
    assert epochs[-1]["loss"] < epochs[0]["loss"] and last["test_accuracy"] > 0.5  # chance is 1/3
    assert {p.name for p in trained.iterdir()} == {
        "best.safetensors", "checkpoints", "config.json", "last.safetensors", "metrics.jsonl", "model", "report.html"}
    best = max(epochs, key=lambda r: r["val_accuracy"])
    assert best["val_accuracy"] > 0.5


def test_the_model_folder_is_what_the_hub_loads(trained, pictures, capsys):
    model = hub.load(trained / "model")
    assert model.labels == ("digit0", "digit1", "digit2") and model.preprocess.preprocessing.crop == 12
    assert main(["--model", str(trained / "model"), "--data", str(pictures), "--eval-only"]) == 0
    said = capsys.readouterr().out
    assert f"test accuracy {rows(trained)[-1]['test_accuracy']:.2%}" in said


def test_predict_names_classes_and_broken_pictures(trained, pictures, tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(b"no picture")
    good = next((pictures / "test" / "digit0").iterdir())
    (tmp_path / "b.png").write_bytes(good.read_bytes())
    assert main(["--model", str(trained / "model"), "--predict", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    assert re.fullmatch(rf"{tmp_path}/b.png: digit\d [\d.]+%, digit\d [\d.]+%, digit\d [\d.]+%", line)
    assert "broken picture skipped" in err and "a.png" in err
    expected = hub.predict(hub.load(trained / "model"), str(good), topk=1)[0]
    assert line.split(": ")[1].startswith(f"{expected.label} {expected.probability:.1%}")


def test_test_time_augmentation_averages_the_mirror_image(trained, pictures):
    task = ImageTask(parse(["--model", str(trained / "model"), "--data", str(pictures), "--tta", "--eval-only"]))
    x = zoo.randn(2, 3, 12, 12)
    with zoo.no_grad():
        wanted = (task.model(x) + task.model(x.flip(-1))) / 2
        np.testing.assert_array_equal(task.evaluated(task.model, x).numpy(), wanted.numpy())


# -- fine-tuning


def test_pretrained_weights_get_a_classifier_for_the_folder(trained, pictures, tmp_path):
    two = write_pictures(tmp_path / "two", 16, 6, classes=2)
    task = ImageTask(parse([*TINY[2:], "--model", str(trained / "model"), "--data", str(two)]))
    assert task.config.weights == "default" and task.config.lr == 0.01
    assert task.model.get_classifier().weight.shape == (2, 16)
    stem = hub.load(trained / "model").conv1.weight
    np.testing.assert_array_equal(task.model.conv1.weight.detach().numpy(), stem.detach().numpy())


@pytest.mark.parametrize("what, trainable", [("backbone", {"fc"}), ("4", {"layer3.0", "fc"}), ("none", None)])
def test_frozen_layers_stay_as_they_are(what, trainable, pictures, tmp_path):
    """Weights and running statistics of frozen layers keep their bits; the others move."""
    options = ["--freeze", what, "--data", str(pictures)]
    _, run = made(pictures, *options)
    before = {k: v.numpy().copy() for k, v in run.model.state_dict().items()}
    after = zoo.load(train(tmp_path, *TINY, *options, "--val-fraction", "0", "--ema", "0") / "last.safetensors")
    names = [name for name, _ in layers(run.model)]
    moving = set(names) if trainable is None else trainable
    for name in names:
        same = [np.array_equal(before[k], after[k].numpy()) for k in before if k.startswith(f"{name}.")]
        assert not any(same) if name in moving else all(same), name
    assert {id(p) for g in run.optimizer.param_groups for p in g["params"]} == {
        id(p) for p in run.model.parameters() if p.requires_grad}


def test_layer_wise_decay(pictures):
    _, run = made(pictures, "--layer-decay", "0.5", "--lr", "0.08", "--schedule", "constant")
    names = [name for name, _ in layers(run.model)]
    assert names == ["conv1", "bn1", "layer1.0", "layer2.0", "layer3.0", "fc"]
    rates = {id(p): g["lr"] for g in run.optimizer.param_groups for p in g["params"]}
    for depth, (_, layer) in enumerate(reversed(list(layers(run.model)))):
        assert {rates[id(p)] for p in layer.parameters()} == {0.08 * 0.5**depth}


def test_class_weights_and_smoothing_are_in_the_loss(pictures, rng):
    task, _ = made(pictures, "--class-weights", "balanced", "--label-smoothing", "0.1")
    counts = np.bincount(task.labels("train"))
    np.testing.assert_allclose(task.weight.numpy(), counts.sum() / (3 * counts), rtol=1e-6)
    x, y = zoo.tensor(rng.normal(size=(5, 3))), zoo.tensor([0, 1, 2, 1, 0])
    scores = x.numpy() - np.log(np.exp(x.numpy()).sum(1, keepdims=True))
    weight = task.weight.numpy().astype(float)
    own = -(0.9 * weight[y.numpy()] * scores[np.arange(5), y.numpy()]).sum() - (0.1 / 3 * scores * weight).sum()
    assert task.loss(x, y).item() == pytest.approx(own / weight[y.numpy()].sum(), rel=1e-5)


def test_mixed_pictures_have_mixed_targets(pictures):
    task, run = made(pictures, "--mixup", "0.4", "--cutmix", "1")
    seen = set()
    for _ in range(8):
        batch = task.batch(next(iter(run.batches)))
        images, targets = task.training_pair(batch)
        assert images.shape == batch.images.shape and targets.shape == (len(batch.labels), 3)
        np.testing.assert_allclose(targets.numpy().sum(1), 1, rtol=1e-5)
        seen.add(bool(np.isin(images.numpy(), batch.images.numpy()).all()))
    assert seen == {True, False}                           # cutmix moves pixels, mixup makes new ones


def test_accumulation_is_one_large_batch(pictures):
    """Without batch norm's statistics in the way: eval mode; three batches of 16 against one of 48."""
    from zoo.train.loop import train_batch

    results = []
    for size, accumulate in ((48, 1), (16, 3)):
        task, run = made(pictures, "--batch-size", str(size), "--accumulate", str(accumulate), "--augment", "none")
        run.model.eval()
        for loaded in run.batches:
            train_batch(task, run, task.batch(loaded))
            run.counts.batch += 1
        assert run.counts.step == 1
        results.append(run.model.fc.weight.detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-6)


def test_clipping_bounds_the_gradient(pictures):
    from zoo.train.loop import train_batch

    task, run = made(pictures, "--clip", "0.001")
    run.train_mode()
    train_batch(task, run, task.batch(next(iter(run.batches))))
    norm = math.sqrt(sum(float((p.grad * p.grad).sum()) for p in run.model.parameters()))
    assert norm == pytest.approx(0.001, rel=1e-3)


def test_the_average_is_what_is_evaluated_and_kept(pictures, tmp_path):
    folder = train(tmp_path, *TINY, "--data", str(pictures), "--ema", "0.9", "--val-fraction", "0")
    last, model = zoo.load(folder / "last.safetensors"), hub.load(folder / "model")
    assert not np.array_equal(last["fc.weight"].numpy(), model.fc.weight.detach().numpy())
    best = zoo.load(folder / "best.safetensors")
    np.testing.assert_array_equal(best["fc.weight"].numpy(), model.fc.weight.detach().numpy())


def test_early_stopping(pictures, tmp_path):
    """At a learning rate of next to nothing no epoch is better than the first."""
    folder = train(tmp_path, *TINY, "--data", str(pictures), "--epochs", "20", "--lr", "1e-12", "--patience", "3",
                   "--schedule", "constant", "--ema", "0.999999")
    assert [r["epoch"] for r in rows(folder)[:-1]] == [1, 2, 3, 4]


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_mixed_precision_learns(amp, pictures, tmp_path):
    folder = train(tmp_path, *TINY, "--data", str(pictures), "--amp", amp, "--epochs", "4", "--augment", "none")
    losses = [r["loss"] for r in rows(folder)[:-1]]
    assert losses[-1] < losses[0]


def test_workers_change_nothing(pictures, tmp_path):
    options = [*TINY, "--data", str(pictures), "--augment", "ta_wide", "--erase", "0.3", "--mixup", "0.2"]
    one, other = (train(tmp_path / w, *options, "--workers", w) for w in ("0", "2"))
    assert outcome(one) == outcome(other)


# -- data


def test_without_val_a_part_is_held_out(pictures):
    task = ImageTask(parse([*TINY, "--data", str(pictures / "train"), "--val-fraction", "0.25"]))
    learned, held = (set(task.datasets[part].numbers.tolist()) for part in ("train", "val"))
    assert len(held) == 12 and len(learned) == 36 and not learned & held and "test" not in task.datasets


def test_parts_with_other_classes_are_refused(tmp_path, capsys):
    root = write_pictures(tmp_path)
    (root / "val" / "digit2").rename(root / "val" / "other")
    assert main([*TINY, "--data", str(root)]) == 2
    assert "has other classes than train: digit2, other" in capsys.readouterr().err


def test_broken_pictures_are_named_skipped_counted_and_limited(tmp_path, capsys):
    root = write_pictures(tmp_path / "pictures")
    bad = [root / "train" / "digit0" / name for name in ("a.png", "b.png")] + [root / "test" / "digit1" / "c.png"]
    whole = next((root / "train" / "digit1").iterdir()).read_bytes()
    for path, content in zip(bad, (b"junk", whole[: len(whole) // 2], b""), strict=True):
        path.write_bytes(content)
    for workers in ("0", "1"):
        folder = train(tmp_path / "runs", *TINY, "--data", str(root), "--workers", workers)
        err = capsys.readouterr().err
        assert [err.count(str(path)) for path in bad] == [1, 1, 1] and "not a picture" in err
        assert "3 broken pictures were skipped" in (folder / "report.html").read_text()
    assert main([*TINY, "--data", str(root), "--out", str(tmp_path / "runs"), "--max-broken", "1"]) == 1
    err = capsys.readouterr().err.splitlines()
    assert err[-1].startswith("zoo.train: 2 broken pictures, --max-broken 1 are allowed; the last is ")
    assert main(["--data", str(root), "--size", "12", "--eval-only", "--max-broken", "0"]) == 1


def test_a_batch_of_broken_pictures_only(tmp_path):
    root = write_pictures(tmp_path / "pictures", 12, 12)
    for path in list((root / "train").glob("*/*"))[:11]:
        path.write_bytes(b"junk")
    for optimizer in ("sgd", "lbfgs"):
        more = [] if optimizer == "lbfgs" else ["--accumulate", "4", "--clip", "1"]
        folder = train(tmp_path / optimizer, *TINY, "--data", str(root), "--batch-size", "2", "--augment", "none",
                       "--freeze", "backbone", "--optimizer", optimizer, "--lr", "0.1", *more)
        steps = 12 if optimizer == "lbfgs" else 4              # two epochs of six batches
        assert [p.name for p in folder.glob("checkpoints/*")] == [f"step-{steps:09d}.safetensors"]
        assert all(math.isfinite(row["loss"]) for row in rows(folder)[:-1])


# -- the config


def test_a_config_file_and_flags(tmp_path, pictures):
    file = tmp_path / "run.toml"
    file.write_text('epochs = 7\nlr = 1\nbatch-size = 5\nreport = false\n[optimizer_options]\nmomentum = 0.5\n')
    config = parse(["--config", str(file), "--epochs", "3", "--data", str(pictures)])
    assert (config.epochs, config.lr, config.batch_size, config.report) == (3, 1.0, 5, False)
    assert config.optimizer_options == {"momentum": 0.5}
    _, run = made(pictures, "--config", str(file))
    assert run.optimizer.param_groups[0]["momentum"] == 0.5


@pytest.mark.parametrize("text, words", [
    ("epoch = 3", "no option 'epoch', did you mean 'epochs'?"),
    ("epochs = '3'", "epochs wants int, got '3'"),
    ("lr = true", "lr wants float, got True"),
    ("epochs 3", "Expected '=' after a key"),
    ("lr = -1", "--lr: wants a number above 0"),
])
def test_bad_config_files(text, words, tmp_path, capsys):
    (tmp_path / "run.toml").write_text(text)
    assert main(["--config", str(tmp_path / "run.toml")]) == 2
    err = capsys.readouterr().err
    assert words in err and err.count("\n") == 1


def test_help_has_every_option_in_its_group(capsys):
    from dataclasses import fields

    from zoo.train.config import Config, flag

    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    groups = re.split(r"\n(?=[a-z ]+:\n)", text)
    for f in fields(Config):
        (group,) = [g for g in groups if g.startswith(f"{f.metadata['group']}:")]
        assert re.search(rf"^  {flag(f.name)}\b", group, re.M), f.name


def test_the_resolved_config_is_printed_and_saved(trained, capsys, pictures, tmp_path):
    config = json.loads((trained / "config.json").read_text())
    assert config["weights"] == "none" and config["lr"] == 0.05 and config["size"] == 12
    folder = train(tmp_path, *TINY, "--data", str(pictures), "--no-report")
    first = capsys.readouterr().out.splitlines()[0]
    saved = json.loads((folder / "config.json").read_text())
    assert all(f"{k}={v}" in first for k, v in saved.items())


# -- the report and TensorBoard


class Page(HTMLParser):
    """The tags of a page, their attributes, and what is open at the end."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "line", "polyline", "circle"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_whole_and_needs_nothing_else(trained):
    from PIL import Image

    text = (trained / "report.html").read_text()
    page = Page(text)
    assert not page.open
    outside = [v for _, attrs in page.tags for k, v in attrs.items() if k in ("src", "href", "srcset", "data")
               if not v.startswith("data:image/png;base64,")]
    assert not outside and "@import" not in text and "url(" not in text and "<script" not in text
    assert [tag for tag, _ in page.tags].count("svg") == 2
    lines = [attrs for tag, attrs in page.tags if tag == "polyline"]
    assert [len(a["points"].split()) for a in lines] == [8, 8, 8, 8]
    images = [attrs for tag, attrs in page.tags if tag == "img"]
    for attrs in images:
        picture = Image.open(io.BytesIO(base64.b64decode(attrs["src"].split(",")[1])))
        assert (str(picture.width), str(picture.height)) == (attrs["width"], attrs["height"])
    misses = 16 - round(rows(trained)[-1]["test_accuracy"] * 16)
    assert len(images) == 1 + 2 * min(misses, 12) and misses
    assert len(re.findall(r"taken for digit\d \(\d+\.\d%\)</figcaption>", text)) == min(misses, 12)


def test_tensorboard_reads_the_events(pictures, tmp_path):
    pytest.importorskip("tensorboardX")
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    folder = train(tmp_path, *TINY, "--data", str(pictures), "--tensorboard", "--no-report")
    events = reader.EventAccumulator(str(folder / "tensorboard"), {reader.TENSORS: 0, reader.IMAGES: 0}).Reload()
    written = rows(folder)
    for tag, key in (("train/loss", "loss"), ("val/accuracy", "val_accuracy")):
        assert [(e.step, pytest.approx(e.value, rel=1e-6)) for e in events.Scalars(tag)] == [
            (r["epoch"], r[key]) for r in written[:-1]]
    assert "conv1.weight" in events.Tags()["histograms"] and {"val/confusion", "val/errors"} <= set(
        events.Tags()["images"])
    last = zoo.load(folder / "last.safetensors")["fc.bias"].numpy()
    histogram = events.Histograms("fc.bias")[-1].histogram_value
    assert histogram.num == 3 and histogram.sum == pytest.approx(last.sum(), rel=1e-4)
    summary = reader.EventAccumulator(str(folder / "tensorboard" / "hparams")).Reload()
    assert summary.Scalars("test/accuracy")[0].value == pytest.approx(written[-1]["test_accuracy"])


def test_tensorboard_that_is_not_installed(capsys, monkeypatch, tmp_path):
    from zoo.train import board

    monkeypatch.setattr(board, "find_spec", lambda name: None)
    assert main(["--tensorboard", "--out", str(tmp_path)]) == 2
    assert "pip install 'triton-zoo[tensorboard]'" in capsys.readouterr().err


def test_quiet_when_not_a_terminal(pictures, tmp_path, capsys):
    train(tmp_path, *TINY, "--data", str(pictures), "--no-report")
    out, err = capsys.readouterr()
    assert not err and [line.split()[0] for line in out.splitlines()[2:]] == ["epoch", "epoch", "test"]
