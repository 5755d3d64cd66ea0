"""python -m zoo.train text: what it writes, that it goes on bit for bit, its loss against torch's, what it refuses."""
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from itertools import islice

import numpy as np
import pytest

import zoo
from tests.house import ROOT
from zoo import checkpoint, hub
from zoo.data.text import kjv, read_text
from zoo.train import text as text_task
from zoo.train.__main__ import main
from zoo.train.text_batches import TextBatches
from zoo.train.text_config import parse
from zoo.train.text_run import TextRun
from zoo.utils.command_line import UsageError

TINY = ["--hidden", "16", "--embedding", "8", "--limit", "9000", "--batch-size", "8", "--length", "16", "--epochs", "2"]


def run(tmp_path, *options):
    """Exit status, and the folder of the newest run."""
    status = main(["text", *TINY, "--out", str(tmp_path), *options])
    return status, max(tmp_path.iterdir(), key=lambda p: p.stat().st_mtime_ns)


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_run_writes_config_metrics_samples_and_a_model(tmp_path, capsys):
    status, folder = run(tmp_path, "--seed", "3", "--sample", "50")
    out = capsys.readouterr().out
    assert status == 0 and folder.name.endswith("-charlm-3")
    assert json.loads((folder / "config.json").read_text())["hidden"] == 16
    *epochs, last = rows(folder)
    assert [r["epoch"] for r in epochs] == [1, 2] and epochs[0]["bits"] > epochs[1]["bits"] > 0
    assert all(r["loss"] == pytest.approx(r["bits"] * math.log(2)) and r["chars_per_second"] > 0 for r in epochs)
    lines = out.splitlines()
    assert lines[0].startswith("embedding=8 hidden=16") and "8,100 characters to train with, 900 held out" in lines[1]
    assert sum(line.startswith("epoch") for line in lines) == 2 and sum(line.startswith("    ") for line in lines) >= 2
    assert f"{last['held_out_bits']:.3f} bits/char on the held-out 900 characters" in lines[-1]

    model = hub.load("charlm", weights=folder / "charlm.safetensors")
    text = kjv()[:9000]
    assert model.score(text[8100:]) == pytest.approx(last["held_out_bits"], abs=1e-9)
    assert abs(last["held_out_bits"] - epochs[-1]["held_out_bits"]) < 0.5       # in one stream, and in eight
    assert main(["text", "--resume", str(folder)]) == 0
    assert "finished before" in capsys.readouterr().out and len(rows(folder)) == 3


def test_the_same_seed_gives_the_same_weights_and_half_precision_is_stored(tmp_path):
    one, two = (run(tmp_path / name, "--sample", sample, *more)[1] for name, sample, more in (
        ("a", "0", ()), ("b", "20", ("--save-dtype", "float16"))))
    a, b = (checkpoint.read(f / "charlm.safetensors")["state_dict"] for f in (one, two))
    assert {x.dtype for x in b.values()} == {np.dtype(np.float16)}
    for key in a:                              # samples draw nothing from the run's stream
        np.testing.assert_array_equal(a[key].astype(np.float16), b[key])
    assert rows(two)[-1]["dtype"] == "float16"


def test_a_run_that_is_stopped_goes_on_bit_for_bit(tmp_path, monkeypatch, capsys):
    _, whole = run(tmp_path / "whole")
    for number, steps in ((signal.SIGTERM, 3), (signal.SIGINT, 70)):
        out = tmp_path / str(steps)
        step = TextRun.step

        def stopping(self, *batch, number=number, steps=steps, step=step):
            value = step(self, *batch)
            if self.counts.step == steps:
                os.kill(os.getpid(), number)
            return value
        monkeypatch.setattr(TextRun, "step", stopping)
        status, folder = run(out)
        monkeypatch.setattr(TextRun, "step", step)
        assert status == 128 + number and f"--resume {folder} goes on" in capsys.readouterr().err
        assert main(["text", "--resume", str(folder)]) == 0
        assert f"goes on after step {steps}" in capsys.readouterr().out
        assert (folder / "charlm.safetensors").read_bytes() == (whole / "charlm.safetensors").read_bytes()
        same = ("epoch", "loss", "bits", "held_out_bits")
        assert [[r.get(k) for k in same] for r in rows(folder)] == [[r.get(k) for k in same] for r in rows(whole)]


def test_a_run_that_is_killed_goes_on_bit_for_bit(tmp_path):
    """SIGKILL while checkpoints are written at every step."""
    _, whole = run(tmp_path / "whole")
    out = tmp_path / "killed"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "zoo.train", "text", *TINY, "--out", str(out), "--save-steps", "1"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, cwd=tmp_path) as process:
        deadline = time.monotonic() + 60
        while not list(out.glob("*/checkpoints/step-*5.safetensors")):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.005)
        process.kill()
    folder, = out.iterdir()
    assert not (folder / "charlm.safetensors").exists()
    assert main(["text", "--resume", str(folder)]) == 0
    assert (folder / "charlm.safetensors").read_bytes() == (whole / "charlm.safetensors").read_bytes()


@pytest.mark.cuda
def test_graphs_give_the_same_bits(tmp_path):
    """Two epochs, each begun with the learned states: losses and weights are those of --graph off."""
    curves = []
    for graph in ("off", "on"):
        zoo.manual_seed(1)
        run = TextRun(parse(["--hidden", "4", "--embedding", "3", "--limit", "100", "--batch-size", "2", "--length",
                             "4", "--epochs", "2", "--device", "cuda", "--graph", graph]))
        run.model.train()
        for steps in (6, 3):
            curve = [run.step(*batch) for batch in islice(run.batches.since(0), steps)]
            curves.append((curve, [p.detach().cpu().tolist() for p in run.model.parameters()]))
            captured = run.graphed is not None and any(c.graph is not None for c in run.graphed.captures.values())
            assert captured == (graph == "on" and steps == 6), "begun anew in each epoch"
            run.next_epoch({})
    assert curves[:2] == curves[2:] and len(set(curves[0][0])) == 6
    with pytest.raises(UsageError, match="--graph on: wants --device cuda"):
        parse(["--graph", "on"])


@pytest.mark.torch
def test_the_loss_curve_is_torchs(tmp_path):
    """Same initial weights, same batches, same schedule, dropout 0: each step's loss within 1 % of torch's."""
    import torch
    config = parse(["--hidden", "64", "--embedding", "16", "--limit", "60000", "--batch-size", "16", "--length", "32",
                    "--epochs", "1", "--dropout", "0"])
    zoo.manual_seed(1)
    ours = TextRun(config)
    ours.model.train()
    emb = torch.nn.Embedding(len(ours.vocabulary), 16)
    lstm = torch.nn.LSTM(16, 64, batch_first=True)
    decoder = torch.nn.Linear(64, len(ours.vocabulary))
    h0, c0 = (torch.nn.Parameter(torch.zeros(1, 1, 64)) for _ in "hc")
    state = {key: torch.from_numpy(value.numpy().copy()) for key, value in ours.model.state_dict().items()}
    for prefix, layer in (("char_emb.", emb), ("charlstm.", lstm), ("decoder.", decoder)):
        layer.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
    weights = [h0, c0, *emb.parameters(), *lstm.parameters(), *decoder.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=config.lr, weight_decay=config.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.lr, len(ours.batches), pct_start=0.1,
                                                   cycle_momentum=False)
    states, curves = (h0.expand(1, 16, 64).contiguous(), c0.expand(1, 16, 64).contiguous()), []
    for inputs, targets in ours.batches.since(0):
        outputs, states = lstm(emb(torch.from_numpy(inputs.numpy())), states)
        states = tuple(s.detach() for s in states)
        loss = torch.nn.functional.cross_entropy(decoder(outputs).flatten(0, 1), torch.from_numpy(
            np.ascontiguousarray(targets.numpy())).flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, config.clip)
        optimizer.step()
        schedule.step()
        curves.append((ours.step(inputs, targets), loss.item()))
    mine, theirs = np.array(curves).T
    assert len(mine) == 105 and theirs[-10:].mean() < 0.75 * theirs[0]
    assert abs(mine / theirs - 1).max() < 0.01


# -- data

def test_own_files_and_folders(tmp_path):
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "b.txt").write_bytes("\ufeffsecond\r\nline".encode())
    (folder / "deep" / "c.txt").write_text("é", encoding="utf-8")
    (folder / "a.txt").write_text("first")
    (folder / "other.md").write_text("not this")
    assert read_text(folder) == "first\nsecond\nline\né" and read_text(folder / "a.txt") == "first"
    (folder / "a.txt").write_text(kjv()[:6000])
    status, out = run(tmp_path / "runs", "--data", str(folder), "--epochs", "1", "--sample", "0")
    assert status == 0 and "é" in hub.load("charlm", weights=out / "charlm.safetensors").vocabulary.numbers


@pytest.mark.parametrize(("make", "words"), [
    (lambda p: (p / "bad.txt").write_bytes(b"good \xff bad"), r"bad\.txt is not UTF-8: byte 0xff at offset 5"),
    (lambda p: (p / "bad.txt").write_bytes(b"cut \xc3"), r"bad\.txt is not UTF-8: byte 0xc3 at offset 4"),
    (lambda p: (p / "empty.txt").write_bytes(b""), "is empty"),
    (lambda p: (p / "short.txt").write_text("a b c"), "8 streams of 16 . 1 tokens want 136 tokens, got 4"),
    (lambda p: None, r"has no \*\.txt"),
])
def test_bad_texts_are_named(make, words, tmp_path, capsys):
    make(tmp_path)
    assert main(["text", *TINY, "--data", str(tmp_path), "--out", str(tmp_path / "runs")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert re.search(words, err), err
    assert not (tmp_path / "runs").exists()


def test_batches_go_on_where_the_last_ones_ended():
    tokens = np.arange(1000)
    batches = TextBatches(tokens, 4, 10)
    steps = list(batches.since(0))
    assert len(steps) == len(batches) == 24
    inputs, targets = (np.concatenate([s[k].numpy() for s in steps], 1) for k in range(2))
    np.testing.assert_array_equal(targets, inputs + 1)
    for row in range(4):
        np.testing.assert_array_equal(inputs[row], np.arange(250 * row, 250 * row + 240))
    for a, b in zip(batches.since(5), steps[5:], strict=True):
        np.testing.assert_array_equal(a[0].numpy(), b[0].numpy())


# -- refusals

@pytest.mark.parametrize(("options", "words"), [
    (["--hiden", "3"], "no option '--hiden', did you mean '--hidden'?"),
    (["--hidden", "0"], "--hidden: wants at least 1, got 0"),
    (["--dropout", "1"], "--dropout: wants a number of at least 0 and below 1"),
    (["--lr", "nan"], "--lr: wants a number above 0"),
    (["--save-dtype", "float61"], "--save-dtype: no save_dtype 'float61', did you mean 'float16'?"),
    (["--hidden", "many"], "--hidden"),
    (["--resume", "nowhere"], "no run in nowhere"),
    (["--resume", "nowhere", "--lr", "1"], "without --lr"),
])
def test_wrong_options(options, words):
    with pytest.raises(UsageError) as error:
        parse(options)
    assert words in str(error.value)


def test_files_that_are_not_there(tmp_path, capsys):
    assert main(["text", "--data", str(tmp_path / "no.txt")]) == 1
    assert "no.txt" in capsys.readouterr().err


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(TextRun, "test", lambda self: 0.0)
    monkeypatch.setattr(text_task, "show_sample", lambda run: None)
    status, _ = run(tmp_path, "--lr", "1e30", "--clip", "0")
    assert status == 1 and "the loss of step" in capsys.readouterr().err


# -- scripts/finetune_text.py

def test_a_character_model_becomes_a_classifier(tmp_path):
    """Two classes of texts in files of their own, told apart by their words."""
    script = ROOT / "scripts/finetune_text.py"
    assert len(script.read_text().splitlines()) < 100
    rng = np.random.default_rng(0)
    for name, words in (("sea", ("ship", "wave", "salt", "sail")), ("land", ("tree", "hill", "corn", "wolf"))):
        (tmp_path / f"{name}.txt").write_text("\n".join(" ".join(rng.choice(words, 4)) for _ in range(60)))
    command = [sys.executable, str(script), "--data", str(tmp_path), "--epochs", "3"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert "96 texts of land, sea; 24 held out" in out
    before, after = (float(re.search(rf"{word}: accuracy ([\d.]+)%", out)[1]) for word in ("before", "after"))
    assert after >= 95 > before
