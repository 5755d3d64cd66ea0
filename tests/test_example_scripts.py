"""The scripts a reader begins with: each is run as a command, and what it says is checked for its meaning."""
import importlib
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import INTERPRETING
from tests.house import ROOT
from zoo import hub
from zoo.data import digits

SCRIPTS = ("custom_op", "finetune_image", "gan_digits", "grad_cam", "linear_probe", "reinforce_cartpole",
           "transfer_digits")


def run(folder, name: str, *arguments) -> str:
    """What the script prints; a warning is an error, and so is any exit status but 0."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if not INTERPRETING:
        environment.pop("ZOO_INTERPRET", None)
    command = [sys.executable, "-W", "error", str(ROOT / "scripts" / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    """What the pattern's only group finds, as numbers."""
    return [float(found) for found in re.findall(pattern, text)]


@pytest.fixture
def script(monkeypatch):
    """script("name") imports a script as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module


# -- all of them

@pytest.mark.parametrize("name", SCRIPTS)
def test_short_and_explained(name, tmp_path):
    text = (ROOT / "scripts" / f"{name}.py").read_text()
    assert len(text.splitlines()) < 120
    help_text = run(tmp_path, name, "--help")
    assert f"python scripts/{name}.py" in help_text and "--device" in help_text and not any(tmp_path.iterdir())


# -- pictures

def test_digit_pictures(tmp_path):
    """The files have the digits' own pixels; as many of each class as asked for; every ink's background is its own."""
    from PIL import Image
    for ink in ("white", "black", "chalk"):
        said = run(tmp_path, "digit_pictures", ink, "--per-class", 3, "--ink", ink)
        assert said == f"wrote 390 pictures to {ink}\n"
    assert [len(list((tmp_path / "white" / "train" / str(c)).iterdir())) for c in range(10)] == [3] * 10
    images, labels = digits(train=False).tensors
    for number in (0, 100, 359):
        place = f"val/{labels[number].item()}/{number:04}.png"
        white, black, chalk = (np.asarray(Image.open(tmp_path / ink / place)) for ink in ("white", "black", "chalk"))
        np.testing.assert_allclose(white / 255, images[number, 0].numpy(), atol=0.5 / 255)
        assert (black == 255 - white).all() and chalk.min() >= 64 and chalk.max() <= 191


def test_finetune_image(tmp_path):
    """Measured: 16% before, 92% after; chance is 10%."""
    said = run(tmp_path, "finetune_image", "--out", "tuned")
    (before,), (after,) = (numbers(rf"{when}: accuracy ([\d.]+)%", said) for when in ("before", "after"))
    losses = numbers(r"loss ([\d.]+)", said)
    assert before < 30 and after > 85 and len(losses) == 10 and losses[-1] < 0.1 * losses[0]
    model = hub.load(tmp_path / "tuned")
    assert model.labels == tuple("0123456789") and model.preprocess is not None
    paper = 1 - digits(train=False).tensors[0]
    accuracy = (model(paper).argmax(1) == digits(train=False).tensors[1]).float().mean().item()
    assert accuracy == pytest.approx(after / 100, abs=0.02)         # files have pixels of 8 bits, these have 17 levels


def test_finetune_image_on_a_folder_of_other_classes(tmp_path):
    """A folder of the user's, with other classes than the model's, and two worker processes."""
    run(tmp_path, "digit_pictures", "all", "--per-class", 4)
    for part in ("train", "val"):
        for c, name in ((3, "three"), (8, "eight")):
            (tmp_path / "own" / part).mkdir(parents=True, exist_ok=True)
            (tmp_path / "all" / part / str(c)).rename(tmp_path / "own" / part / name)
    said = run(tmp_path, "finetune_image", "--data", "own", "--epochs", 2, "--batch-size", 4, "--workers", 2)
    assert "8 pictures of 2 classes" in said and len(numbers(r"after: accuracy ([\d.]+)%", said)) == 1
    assert said == run(tmp_path, "finetune_image", "--data", "own", "--epochs", 2, "--batch-size", 4)


def test_linear_probe(tmp_path):
    """Measured: 68% on untrained features, 95% on pretrained ones."""
    untrained, pretrained = numbers(r"accuracy ([\d.]+)%", run(tmp_path, "linear_probe"))
    assert pretrained > 90 and pretrained > untrained + 15


def test_grad_cam(tmp_path):
    from PIL import Image
    label = digits(train=False).tensors[1][7].item()
    said = run(tmp_path, "grad_cam", "--out", "cam.png")
    assert said.startswith(f"{label}: probability ") and numbers(r"probability ([\d.]+)%", said)[0] > 90
    picture = np.asarray(Image.open(tmp_path / "cam.png")).astype(int)
    plain, overlay = picture[:, :224], picture[:, 224:]
    assert picture.shape == (224, 448, 3) and (plain == plain[..., :1]).all() and np.ptp(overlay, axis=2).max() > 60
    again = run(tmp_path, "grad_cam", tmp_path / "cam.png", "--layer", "layer2", "--class-name", "3", "--out", "3.png")
    assert again.startswith("3: probability ") and "seen in layer2" in again


# -- an own op

def test_custom_op(tmp_path):
    said = run(tmp_path, "custom_op")
    assert said.count("gradcheck True") == 2 and max(numbers(r"by ([\d.e-]+);", said)) < 1e-12


@pytest.mark.cuda
def test_custom_op_on_the_device(tmp_path):
    said = run(tmp_path, "custom_op", "--device", "cuda")
    assert said.count("on cuda:0: ") == 2 and said.count("gradcheck True") == 2


@pytest.mark.cuda
def test_the_own_kernel_beside_numpy(tmp_path):
    """Every float dtype, odd and strided and empty arrays. In a process of its own: the registry drives other tests."""
    code = """
import numpy as np, zoo
from custom_op import cuda, unit_kernel, unit_rows
launched, prepare = [], cuda.prepare
cuda.prepare = lambda kernel, **constants: launched.append(kernel is unit_kernel) or prepare(kernel, **constants)
for dtype, tolerance in ((zoo.float64, 1e-14), (zoo.float32, 1e-6), (zoo.float16, 1e-3), (zoo.bfloat16, 8e-3)):
    x = zoo.tensor(np.random.default_rng(0).normal(size=(5, 13)), dtype=dtype)
    for here in (x, x.t(), x[0], x[:0], x[:, ::3]):
        y, expected = unit_rows(here.cuda()), unit_rows(here)
        assert y.is_cuda and y.dtype == dtype and y.shape == expected.shape
        np.testing.assert_allclose(y.cpu().double().numpy(), expected.double().numpy(), rtol=tolerance)
assert sum(launched) == 20
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=tmp_path,
                   env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'scripts'}"})


# -- longer ones

def test_gan_digits(tmp_path):
    """Seeds 0 to 4 after 8 epochs: 84% to 88%, all 10 digits. An untrained generator writes one digit, 1,000 times."""
    from PIL import Image
    said = run(tmp_path, "gan_digits", "--epochs", 8, "--out", "gan.png")
    (sure,), (kinds,) = numbers(r"mean probability ([\d.]+)%", said), numbers(r"(\d+) of 10 digits", said)
    with Image.open(tmp_path / "gan.png") as picture:
        assert picture.size == (400, 400)
    assert sure > 75 and kinds >= 9


def test_cart_pole_moves_as_it_should(script):
    """The first step from rest, worked out by hand from the paper's equations, and an episode's end."""
    cart_pole = script("reinforce_cartpole")
    poles = cart_pole.CartPole(2, np.random.default_rng(0))
    poles.state[:] = 0
    poles.step(np.array([1, 0]))
    turn = -(10 / 1.1) / (0.5 * (4 / 3 - 0.1 / 1.1))
    speed = 0.02 * (10 / 1.1 - 0.1 * 0.5 * turn / 1.1)
    np.testing.assert_allclose(poles.state, [[0, speed, 0, 0.02 * turn], [0, -speed, 0, -0.02 * turn]], rtol=1e-12)
    assert speed == pytest.approx(0.19512, abs=1e-5)                # what Gymnasium's CartPole-v1 gives
    poles.state[:] = [[0, 0, 0.2, 3], [2.39, 1, 0, 0]]              # one falls, the other rolls off the track
    assert not poles.step(np.array([1, 1])).any()
    fallen = poles.state.copy()
    assert not poles.step(np.array([0, 0])).any() and (poles.state == fallen).all()
    alive = np.array([[1, 1], [1, 1], [1, 0]], bool)
    assert cart_pole.returns(alive, 0.5).tolist() == [[1.75, 1.5], [1.5, 1.0], [1.0, 0.0]]


@pytest.mark.slow
def test_reinforce_cartpole(tmp_path):
    """Seeds 0 to 7 reached 436 to 498 of 500; a random policy has 22."""
    (reached,) = numbers(r"mean reward ([\d.]+) over 100 new episodes", run(tmp_path, "reinforce_cartpole"))
    assert reached >= 400


# -- the experiment

def test_transfer_digits_keeps_the_test_digits_out(script):
    """No test digit is trained on; no 5 to 9 is in the pretraining; what is learned from does not choose the rate."""
    transfer = script("transfer_digits")
    images, labels = digits(train=True).tensors
    base, pool, test = (transfer.part(*which, "cpu") for which in ((True, 0), (True, 5), (False, 5)))
    rows = {part: [x.tobytes() for x in data.tensors[0].numpy()] for part, data in
            (("base", base), ("pool", pool), ("test", test))}
    assert len(base) + len(pool) == len(images) == 1437 and len(test) == (digits(train=False).tensors[1] >= 5).sum()
    assert sorted(rows["base"]) == sorted(x.tobytes() for x in images[labels < 5].numpy())
    assert not set(rows["test"]) & {*rows["base"], *rows["pool"]}
    few, others = transfer.split(pool, 10, seed=3)
    assert np.bincount(few.tensors[1].numpy()).tolist() == [10] * 5 and len(few) + len(others) == len(pool)
    together = [x.tobytes() for part in (few, others) for x in part.tensors[0].numpy()]
    assert sorted(together) == sorted(rows["pool"])


def test_transfer_digits_in_small(tmp_path):
    """The rate that is taken is the one that was best on the other training digits; the start matters at once."""
    said = run(tmp_path, "transfer_digits", "--seeds", 1, "--rates", 0.03, 0.1, "--epochs", 3, "--out", "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    tuned, fresh = found["results"]
    assert (tuned["way"], fresh["way"]) == ("fine-tuned", "from scratch") and "178 test digits" in said
    assert tuned["mean"] > fresh["mean"]
    for row in (tuned, fresh):
        tried = {lr: accuracies for way, _, lr, accuracies in found["choice"] if way == row["way"]}
        assert row["lr"] == max(tried, key=lambda lr: np.mean(tried[lr])) and len(row["accuracies"]) == 1


def test_transfer_digits_turns_pictures(script):
    images = np.arange(12, dtype=np.float32).reshape(2, 1, 2, 3)[..., :2].copy()
    transfer = script("transfer_digits")
    data = transfer.turned(transfer.TensorDataset(transfer.zoo.from_numpy(images), transfer.zoo.tensor([1, 4])))
    expected = np.concatenate([np.rot90(images, k, (2, 3)) for k in range(4)])
    assert (data.tensors[0].numpy() == expected).all()
    assert data.tensors[1].tolist() == [1, 4, 6, 9, 11, 14, 16, 19]


def test_transfer_digits_result():
    """The figures in README are those of this file: fine-tuning is ahead at every budget."""
    found = json.loads((ROOT / "scripts" / "bench" / "results" / "transfer_digits.json").read_text())
    assert found["settings"]["per_class"] == 10 and len(found["results"]) == 6
    for tuned, fresh in zip(found["results"][::2], found["results"][1::2], strict=True):
        assert tuned["epochs"] == fresh["epochs"] and tuned["mean"] > fresh["mean"]
        assert all(len(r["accuracies"]) == 5 and r["mean"] == np.mean(r["accuracies"]) for r in (tuned, fresh))
