"""python -m zoo.train: what it writes, that it repeats itself, and what it says when something is wrong."""

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import zoo
from zoo.data import DataLoader, Dataset, Subset, TensorDataset, digits
from zoo.models.resnet_cifar import MODELS, resnet8
from zoo.serialization import load
from zoo.train.__main__ import main
from zoo.train.image import shifted

TINY = ["--epochs", "2", "--limit", "40", "--width", "4", "--batch-size", "16"]


def run(tmp_path, *options):
    """Exit status, and the folder of the run."""
    status = main([*TINY, "--out", str(tmp_path), *options])
    folders = sorted(tmp_path.iterdir(), key=lambda p: p.stat().st_mtime_ns)
    return status, folders[-1]


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_run_writes_config_metrics_and_weights(tmp_path, capsys):
    status, folder = run(tmp_path, "--seed", "3")
    assert status == 0
    assert folder.name.endswith("-resnet8-3")
    config = json.loads((folder / "config.json").read_text())
    assert config["model"] == "resnet8" and config["seed"] == 3 and config["epochs"] == 2 and config["lr"] == 0.1
    *epochs, last = rows(folder)
    assert [r["epoch"] for r in epochs] == [1, 2] and all(r["images_per_second"] > 0 and r["loss"] > 0 for r in epochs)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("model=resnet8 width=4") and "40 images to train with" in lines[1]
    assert [line.split()[0] for line in lines[2:]] == ["epoch", "epoch", "test"] and str(folder) in lines[-1]
    assert f"accuracy {last['test_accuracy']:.2%}" in lines[-1]

    model = resnet8(in_chans=1, width=4)
    model.load_state_dict(load(folder / "last.safetensors"))
    x, y = digits(train=False)[:40]
    with zoo.no_grad():
        right = (model.eval()(x).argmax(1) == y).float().mean().item()
    assert right == pytest.approx(last["test_accuracy"])


def test_the_same_seed_gives_the_same_numbers(tmp_path):
    (_, a), (_, b), (_, c) = (
        run(tmp_path / name, "--seed", seed) for name, seed in (("a", "1"), ("b", "1"), ("c", "2"))
    )
    losses = [[r["loss"] for r in rows(folder)[:-1]] for folder in (a, b, c)]
    assert losses[0] == losses[1] != losses[2]
    assert (
        (a / "last.safetensors").read_bytes()
        == (b / "last.safetensors").read_bytes()
        != (c / "last.safetensors").read_bytes()
    )


@pytest.mark.slow
def test_the_main_job_reads_digits(tmp_path):
    """With the defaults, at least 98% of the test images (five seeds gave 99.2% to 99.7%)."""
    assert main(["--out", str(tmp_path)]) == 0
    assert rows(next(tmp_path.iterdir()))[-1]["test_accuracy"] >= 0.98


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_other_optimizers_learn(tmp_path, optimizer):
    _, folder = run(tmp_path, "--optimizer", optimizer, "--lr", "0.01", "--epochs", "4")
    losses = [r["loss"] for r in rows(folder)[:-1]]
    assert losses[-1] < losses[0]


@pytest.mark.cuda
def test_on_the_gpus_kernels(tmp_path):
    """One step on the interpreter device gives the CPU's loss and, but for rounding, its weights."""
    one = ("--limit", "8", "--batch-size", "8", "--epochs", "1", "--width", "2")
    (status, cpu), (status2, gpu) = (run(tmp_path / d, *one, "--device", d) for d in ("cpu", "cuda"))
    assert status == status2 == 0
    assert rows(gpu)[0]["loss"] == pytest.approx(rows(cpu)[0]["loss"], rel=1e-5)
    ours, wanted = load(gpu / "last.safetensors", map_location="cpu"), load(cpu / "last.safetensors")
    for key, value in wanted.items():
        np.testing.assert_allclose(ours[key].numpy(), value.numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--amp", "fp16", "--accumulate", "2", "--epochs", "2")])
def test_graphs_give_the_same_bits(tmp_path, options):
    """Five batches in all: warmed up, captured, replayed, the last one smaller; beside --graph off."""
    few = ("--limit", "11", "--batch-size", "2", "--epochs", "1", "--width", "1", "--device", "cuda", *options)
    (status, on), (status2, off) = (run(tmp_path / g, *few, "--graph", g) for g in ("on", "off"))
    assert status == status2 == 0
    assert [r.get("loss") for r in rows(on)] == [r.get("loss") for r in rows(off)]
    assert (on / "last.safetensors").read_bytes() == (off / "last.safetensors").read_bytes()


# -- when something is wrong: one line, the right status, no traceback


@pytest.mark.parametrize(
    "options, words",
    [
        (["--epoch", "3"], "no option '--epoch', did you mean '--epochs'?"),
        (["--optimiser=sgd"], "did you mean '--optimizer'?"),
        (["--epochs", "many"], "argument --epochs: invalid int value: 'many'"),
        (["--epochs", "0"], "--epochs: wants at least 1, got 0"),
        (["--lr", "-1"], "--lr: wants a number above 0, got -1.0"),
        (["--lr", "nan"], "--lr: wants a number above 0, got nan"),
        (["--model", "resnet9"], "no model 'resnet9', did you mean 'resnet8'?"),
        (["--optimizer", "sdg"], "no optimizer 'sdg', did you mean 'sgd'?"),
        (["--shift", "-1"], "--shift: wants at least 0"),
        (["--epochs"], "argument --epochs: expected one argument"),
        (["extra"], "no option 'extra'"),
        (["--graph", "on"], "--graph on: wants --device cuda"),
        (["image", "--epochs", "0"], "--epochs: wants at least 1, got 0"),
        (["--model", "resnet18", "--width", "4"], "--width: wants one of resnet8"),
        (["--freeze", "some"], "--freeze: wants none, backbone or a number of layers, got 'some'"),
        (["--freeze", "99"], "--freeze: wants less than the model's 6 layers, got 99"),
        (["--optimizer-options", "betas"], "wants NAME=VALUE, got 'betas'"),
        (["--optimizer-options", "momentun=1"], "no argument 'momentun', did you mean 'momentum'?"),
        (["--optimizer", "adam", "--optimizer-options", "eps=-1"], "--optimizer adam: "),
        (["--schedule-options", "pct_strat=0.1"], "no argument 'pct_strat', did you mean 'pct_start'?"),
        (["--schedule", "cosinus"], "no schedule 'cosinus', did you mean 'cosine'?"),
        (["--schedule", "plateau"], "want --val-fraction above 0"),
        (["--patience", "2"], "want --val-fraction above 0"),
        (["--warmup", "15"], "--warmup: wants fewer epochs than --epochs 15, got 15.0"),
        (["--optimizer", "lbfgs", "--clip", "1"], "--optimizer lbfgs: computes its gradients itself"),
        (["--ema", "1"], "--ema: wants a number of at least 0 and below 1, got 1.0"),
        (["--weights", "nonsense"], "--model resnet8 --weights nonsense: load: resnet8 has no pretrained weights"),
        (["--model", "resnet18", "--weights", "tv3"], "resnet18 has no weights 'tv3'; it has tv_in1k, a1_in1k"),
        (["--tta"], "--tta: wants a folder as --data"),
        (["--erase", "0.1", "--augment", "none", "--data", "."], "--erase: wants another --augment than none"),
        (["--size", "16"], "--size: wants a folder as --data"),
        (["--data", "nowhere"], "--data: wants digits or a folder, got 'nowhere'"),
        (["--resume", "nowhere"], "--resume: no run in nowhere"),
        (["--resume", "nowhere", "--lr", "1"], "--resume: goes on as the run began, without --lr"),
        (["--config", "nowhere.toml"], "nowhere.toml: No such file"),
        (["--predict", "nowhere.png"], "--predict: no pictures at nowhere.png"),
    ],
)
def test_bad_options(options, words, capsys):
    assert main(options) == (1 if "nowhere.toml" in options else 2)
    out, err = capsys.readouterr()
    assert not out and err.startswith("zoo.train: ") and words in err and err.count("\n") == 1


def test_bad_device(capsys, tmp_path):
    assert main(["--device", "gpu", "--out", str(tmp_path)]) == 1
    assert "wants cpu, cuda" in (err := capsys.readouterr().err) and err.count("\n") == 1
    if not zoo.cuda.is_available():
        assert main(["--device", "cuda", "--out", str(tmp_path)]) == 1
        err = capsys.readouterr().err
        assert "no usable NVIDIA GPU" in err and "--device cpu" in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", "/proc/zoo"):
        assert main([*TINY, "--out", str(out)]) == 1
        err = capsys.readouterr().err
        assert str(out) in err and err.count("\n") == 1


FILES = ["config.json", "metrics.jsonl", "last.safetensors", "model.safetensors", "report.html"]


@pytest.mark.parametrize("name", FILES)
def test_a_full_disk(name, tmp_path, capsys, monkeypatch):
    """Opening one of the files for writing fails as on a full disk."""
    real = open

    def failing(path, mode="r", *args, **options):
        if name in str(path) and not mode.startswith("r"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, mode, *args, **options)

    monkeypatch.setattr("builtins.open", failing)
    assert main([*TINY, "--out", str(tmp_path)]) == 1
    err = capsys.readouterr().err.splitlines()
    assert (
        err[-1].endswith("No space left on device") and name in err[-1] and not any("Traceback" in line for line in err)
    )


def start(*options, **streams):
    return subprocess.Popen(
        [sys.executable, "-m", "zoo.train", *TINY, *options], stderr=subprocess.PIPE, text=True, **streams
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_that_cannot_be_written(tmp_path):
    with open("/dev/full", "w") as full, start("--out", str(tmp_path), stdout=full) as process:
        err = process.communicate(timeout=100)[1]
    assert process.returncode == 1 and err.splitlines() == ["zoo.train: No space left on device"]


# -- data


def test_digits():
    (x, y), (z, w) = digits(train=True).tensors, digits(train=False).tensors
    assert x.shape == (1437, 1, 8, 8) and z.shape == (360, 1, 8, 8) and x.dtype == zoo.float32 and y.dtype == zoo.int64
    assert x.min().item() == 0 and x.max().item() == 1 and sorted(set(w.tolist())) == list(range(10))
    seen = {a.tobytes() for a in x.numpy()}
    assert sum(a.tobytes() in seen for a in z.numpy()) == 0


def test_loader():
    data = TensorDataset(zoo.arange(10), zoo.arange(10, 20))
    assert [x.tolist() for x, _ in DataLoader(data, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(DataLoader(data, 4, drop_last=True)) == 2 == len(list(DataLoader(data, 4, drop_last=True)))
    zoo.manual_seed(0)
    loader = DataLoader(data, 5, shuffle=True)
    first, second = ([tuple(x.tolist()) for x, y in loader if (y - x == 10).all()] for _ in range(2))
    assert sorted(sum(first, ())) == sorted(sum(second, ())) == list(range(10)) and first != second

    class Rows(Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, k):
            return {"x": zoo.full((2,), k), "y": (k, float(k))}

    batch, _ = DataLoader(Rows(), 3)
    assert batch["x"].tolist() == [[0, 0], [1, 1], [2, 2]] and [v.tolist() for v in batch["y"]] == [
        [0, 1, 2],
        [0.0, 1.0, 2.0],
    ]
    assert [x.tolist() for x, _ in DataLoader(Subset(data, [7, 1]))] == [[7], [1]]
    with pytest.raises(ValueError, match="batch_size.*0"):
        DataLoader(data, 0)
    with pytest.raises(ValueError, match="one length"):
        TensorDataset(zoo.ones(2), zoo.ones(3))


def test_shifted_images_are_moved_and_padded():
    zoo.manual_seed(0)
    x = zoo.rand(200, 1, 4, 5)
    y = shifted(x, 1).numpy()[:, 0]
    padded = np.pad(x.numpy()[:, 0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (4, 5), axis=(1, 2)).reshape(200, 9, 4, 5)
    hit = (windows == y[:, None]).all((2, 3))
    assert hit.any(1).all() and (np.bincount(hit.argmax(1), minlength=9) > 5).all()
    assert shifted(x, 0) is x


@pytest.mark.torch
@pytest.mark.parametrize("name, layers", [("resnet8", 8), ("resnet20", 20)])
def test_models(name, layers, rng):
    """The depth is what the name says, and the keys are torchvision's."""
    model = MODELS[name](num_classes=10, in_chans=3)
    weights = [k for k, v in model.state_dict().items() if v.ndim in (2, 4) and "downsample" not in k]
    assert len(weights) == layers
    keys = set(model.state_dict())
    assert {
        "conv1.weight",
        "bn1.running_mean",
        "layer1.0.conv1.weight",
        "layer2.0.downsample.0.weight",
        "layer3.0.downsample.1.num_batches_tracked",
        "fc.bias",
    } <= keys
    assert model(zoo.tensor(rng.normal(size=(2, 3, 32, 32)).astype(np.float32))).shape == (2, 10)
