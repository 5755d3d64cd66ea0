"""python -m zoo.train survives: killed, stopped or on a full disk, it goes on to the same bits."""

import errno
import io
import json
import os
import random
import signal
import subprocess
import time

import pytest

import zoo
from tests.training import command, outcome, rows, train
from zoo.train.__main__ import main
from zoo.train.flags import parse
from zoo.train.image import ImageTask
from zoo.train.loop import train_batch
from zoo.train.recipe import OPTIMIZERS, SCHEDULES
from zoo.train.run import Run
from zoo.train.stopping import StopSignals

SMALL = ["--width", "2", "--limit", "48", "--batch-size", "8", "--no-report"]
RICH = ["--val-fraction", "0.25", "--ema", "0.8", "--optimizer", "adamw", "--lr", "0.01", "--accumulate", "2",
        "--mixup", "0.3", "--cutmix", "0.5", "--clip", "1", "--schedule", "cosine", "--warmup", "1", "--keep", "3"]
KILLS, INSIDE = 20, 8


def last_step(folder) -> int:
    """The step of the newest whole checkpoint."""
    return max((int(p.stem.split("-")[1]) for p in folder.glob("checkpoints/step-*.safetensors")), default=0)


def kill(process: subprocess.Popen, folder, inside: bool, moment: random.Random) -> None:
    """SIGKILL after some new checkpoints, while another is being written or at a random moment."""
    start = last_step(folder)
    wanted = start + moment.randint(1, 3)
    while last_step(folder) < wanted and process.poll() is None:
        time.sleep(0.001)
    if inside:
        while not stopped_in_a_write(process, folder):
            process.send_signal(signal.SIGCONT)
    else:
        time.sleep(moment.uniform(0, 0.03))
    assert process.poll() is None, "the run ended before it was killed"
    process.kill()
    process.wait()


def stopped_in_a_write(process: subprocess.Popen, folder) -> bool:
    """Stops the process when a write has begun; was that in time? A write takes milliseconds."""
    while not list(folder.glob("checkpoints/.*.tmp")):
        assert process.poll() is None, "the run ended before it was killed"
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    return bool(list(folder.glob("checkpoints/.*.tmp")))


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_killed_20_times_it_ends_in_the_same_bits(workers, tmp_path):
    """Every kill, 8 of them in a write, is answered by --resume; steps in finished checkpoints are not done again."""
    options = [*SMALL, *RICH, "--epochs", "40", "--save-steps", "1", "--workers", workers]
    whole = train(tmp_path / "whole", *options)
    moment = random.Random(int(workers))
    process = command(*options, "--out", str(tmp_path / "killed"), stdout=subprocess.PIPE)
    while not (found := list((tmp_path / "killed").glob("*/checkpoints"))):
        time.sleep(0.001)
    folder = found[0].parent
    for k in range(KILLS):
        kill(process, folder, k < INSIDE, moment)
        process.stdout.close()
        done = last_step(folder)
        process = command("--resume", str(folder), stdout=subprocess.PIPE)
        while not (said := process.stdout.readline()).startswith("goes on"):
            assert said, "the process ended"
        assert said.startswith(f"goes on after step {done},")
    process.communicate(timeout=100)
    assert process.returncode == 0
    assert outcome(folder) == outcome(whole)
    assert not list(folder.rglob(".*.tmp")) and len(list(folder.glob("checkpoints/*"))) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_says_how_to_go_on(number, tmp_path):
    options = [*SMALL, *RICH, "--epochs", "25"]
    whole = train(tmp_path / "whole", *options)
    with command(*options, "--out", str(tmp_path / "run"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not process.stdout.readline().startswith("epoch"):
            pass
        process.send_signal(number)
        _, err = process.communicate(timeout=100)
    (folder,) = (tmp_path / "run").iterdir()
    assert process.returncode == 128 + number
    place = f"step {last_step(folder)} of epoch {len(rows(folder)) + 1}"
    assert err == f"zoo.train: stopped by {number.name} after {place}; python -m zoo.train --resume {folder} goes on\n"
    assert main(["--resume", str(folder)]) == 0
    assert outcome(folder) == outcome(whole)


def stopped_run(tmp_path, monkeypatch, options, steps, where="compute"):
    """A run that a signal stops in the given step; its folder."""
    from zoo.train import loop

    calls = iter(range(10**6))
    real = loop.train_batch if where == "compute" else loop.evaluate

    def wrapped(*args, **named):
        if next(calls) == steps:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(*args, **named)

    monkeypatch.setattr(loop, real.__name__, wrapped)
    assert main([*options, "--out", str(tmp_path)]) == 128 + signal.SIGTERM
    monkeypatch.setattr(loop, real.__name__, real)
    (folder,) = tmp_path.iterdir()
    return folder


@pytest.mark.parametrize("where, steps", [("compute", 5), ("compute", 11), ("compute", 12), ("evaluation", 1)])
def test_stopped_at_the_edges_of_an_epoch(where, steps, tmp_path, monkeypatch):
    """Six batches an epoch: stopped after the last one, after the first of the next, and inside an evaluation."""
    options = [*SMALL, *RICH, "--epochs", "3"]
    whole = train(tmp_path / "whole", *options)
    folder = stopped_run(tmp_path / "run", monkeypatch, options, steps, where)
    assert main(["--resume", str(folder)]) == 0
    assert outcome(folder) == outcome(whole)


def steps(run, task, count):
    """So many steps of a pass, new or resumed."""
    run.train_mode()
    for loaded in run.batches:
        train_batch(task, run, task.batch(loaded))
        run.counts.batch += 1
        count -= 1
        if not count:
            return


def halves(options):
    """The weights after 8 steps, and those of a run that was saved and read back after 4 of them."""
    results = []
    for saved in (False, True):
        zoo.manual_seed(0)
        task = ImageTask(parse([*SMALL, "--limit", "64", "--epochs", "2", *options]))
        run = Run(task)
        steps(run, task, 4 if saved else 8)
        if saved:
            file = io.BytesIO()
            zoo.save(run.state_dict(), file)
            zoo.manual_seed(5)                             # the new model and loader begin otherwise
            task = ImageTask(task.config)
            run = Run(task)
            run.load_state_dict(zoo.load(io.BytesIO(file.getvalue())))
            steps(run, task, 4)
        results.append({k: v.numpy().tobytes() for k, v in run.model.state_dict().items()})
    return results


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS.keys() - {"muon"}))
def test_every_optimizer_goes_on_bit_for_bit(optimizer):
    one, other = halves(["--optimizer", optimizer, "--lr", "0.01", "--schedule", "constant"])
    assert one == other


def test_muon_is_for_matrices_only(capsys):
    """As torch's; these models have convolutions."""
    assert main([*SMALL, "--optimizer", "muon"]) == 2
    assert "zoo.train: --optimizer muon: " in capsys.readouterr().err


def test_a_second_signal_does_not_wait():
    with StopSignals() as stop, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.caught == signal.SIGINT
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_goes_on_bit_for_bit(schedule):
    warm = [] if schedule == "plateau" else ["--warmup", "0.25"]
    one, other = halves(["--schedule", schedule, *warm, "--val-fraction", "0.1"])
    assert one == other


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_mixed_precision_goes_on_bit_for_bit(amp):
    one, other = halves(["--amp", amp])
    assert one == other


@pytest.mark.cuda
def test_on_the_gpus_kernels_it_goes_on_bit_for_bit(tmp_path, monkeypatch):
    options = ["--width", "1", "--limit", "8", "--batch-size", "4", "--epochs", "1", "--no-report", "--device", "cuda"]
    whole = train(tmp_path / "whole", *options, "--ema", "0.5")
    folder = stopped_run(tmp_path / "run", monkeypatch, [*options, "--ema", "0.5"], 0)
    assert main(["--resume", str(folder)]) == 0
    assert outcome(folder) == outcome(whole)


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path, monkeypatch, capsys):
    options = [*SMALL, *RICH, "--epochs", "4", "--save-steps", "1"]
    whole = train(tmp_path / "whole", *options)
    real, writes = os.fsync, iter(range(10**6))

    def full(handle):
        if "step-" in os.readlink(f"/proc/self/fd/{handle}") and next(writes) == 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle)

    monkeypatch.setattr(os, "fsync", full)
    assert main([*options, "--out", str(tmp_path / "run")]) == 1
    assert "No space left on device" in capsys.readouterr().err
    monkeypatch.setattr(os, "fsync", real)
    (folder,) = (tmp_path / "run").iterdir()
    assert last_step(folder) == 5 and not list(folder.rglob(".*.tmp"))
    assert main(["--resume", str(folder)]) == 0
    assert outcome(folder) == outcome(whole)


def test_a_corrupt_checkpoint_is_passed_over(tmp_path, monkeypatch, capsys):
    options = [*SMALL, *RICH, "--epochs", "3", "--save-steps", "1"]
    whole = train(tmp_path / "whole", *options)
    folder = stopped_run(tmp_path / "run", monkeypatch, options, 9)
    newest = sorted(folder.glob("checkpoints/*"))[-1]
    newest.write_bytes(newest.read_bytes()[:1000])
    assert main(["--resume", str(folder)]) == 0
    assert "trying the one before" in capsys.readouterr().err
    assert outcome(folder) == outcome(whole)
    for path in folder.glob("checkpoints/*"):
        path.write_bytes(b"nothing")
    assert main(["--resume", str(folder)]) == 1
    assert "none of the checkpoints in" in capsys.readouterr().err


def test_a_finished_run_is_not_done_again(tmp_path, capsys):
    folder = train(tmp_path, *SMALL, "--epochs", "1")
    before = outcome(folder)
    capsys.readouterr()
    assert main(["--resume", str(folder)]) == 0
    assert "finished before: test accuracy" in capsys.readouterr().out and outcome(folder) == before


def test_killed_before_the_first_checkpoint_it_begins_anew(tmp_path):
    options = [*SMALL, "--epochs", "1"]
    whole = train(tmp_path / "whole", *options)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_text((whole / "config.json").read_text())
    (folder / "metrics.jsonl").write_text('{"epoch": 1}\n')
    assert main(["--resume", str(folder)]) == 0
    assert outcome(folder) == outcome(whole)


def test_what_may_change_when_a_run_goes_on(tmp_path, monkeypatch, capsys):
    """Workers may: the numbers do not depend on them. A config of another version is refused."""
    options = [*SMALL, *RICH, "--epochs", "2"]
    whole = train(tmp_path / "whole", *options)
    folder = stopped_run(tmp_path / "run", monkeypatch, options, 3)
    assert main(["--resume", str(folder), "--workers", "1", "--threads", "1"]) == 0
    assert outcome(folder) == outcome(whole)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "epoch": 3}))
    assert main(["--resume", str(folder)]) == 2
    assert "options of another version: epoch" in capsys.readouterr().err


def test_tensorboard_has_every_epoch_once(tmp_path, monkeypatch):
    """Stopped in the third epoch of four."""
    pytest.importorskip("tensorboardX")
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    folder = stopped_run(tmp_path, monkeypatch, [*SMALL, "--epochs", "4", "--tensorboard"], 13)
    assert main(["--resume", str(folder)]) == 0
    events = reader.EventAccumulator(str(folder / "tensorboard")).Reload()
    assert [(e.step, pytest.approx(e.value)) for e in events.Scalars("train/loss")] == [
        (r["epoch"], r["loss"]) for r in rows(folder)[:-1]]


def test_checkpoints_by_time_and_how_many_are_kept(tmp_path):
    folder = train(tmp_path, *SMALL, "--epochs", "2", "--save-minutes", "1e-9", "--keep", "4")
    kept = sorted(p.name for p in folder.glob("checkpoints/*"))
    assert kept == [f"step-{k:09d}.safetensors" for k in (9, 10, 11, 12)]
