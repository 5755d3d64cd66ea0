"""The training loop, to be read from top to bottom."""

import dataclasses
import math
import time
from typing import Any

import zoo
from zoo.hub import save_pretrained
from zoo.ops.cuda import CaptureError, OutOfMemoryError
from zoo.serialization import load, save
from zoo.train import memory
from zoo.train.ahead import Ahead
from zoo.train.board import Board
from zoo.train.console import progress, say, warn
from zoo.train.diagnosis import first_bad_module
from zoo.train.errors import Stopped, TrainingError
from zoo.train.evaluation import Result, evaluate
from zoo.train.folder import RunFolder
from zoo.train.graphed import GraphedBatch
from zoo.train.lint import Lint
from zoo.train.report import write_report
from zoo.train.run import Run
from zoo.train.stopping import StopSignals


def train(task: Any) -> float:
    """Trains as the task's config says; see `python -m zoo.train --help`.

    Args:
        task: an ImageTask, or what else has its methods.

    Returns:
        The accuracy on the test pictures; on the validation pictures where there is no test.

    Raises:
        Stopped: by a signal; a checkpoint is there. TrainingError: the run cannot go on. OSError: a full disk, say.
    """
    config, run, folder = task.config, Run(task), RunFolder(task.config)
    introduce(task, run, folder.restore(run))
    lint = Lint(run.model, run.optimizer, warn)
    with StopSignals() as stop, Board(folder.path, config, run.counts.epoch) as board:
        while not run.over and not run.counts.finished:
            row = train_epoch(task, run, folder, stop)
            if "val" in task.datasets:
                result = evaluate(task, run.weights, "val", run.autocast, lambda b: after_batch(run, folder, stop, b))
                row |= {"val_loss": result.loss, "val_accuracy": result.accuracy}
                if run.improved(result.accuracy):
                    save(run.weights.state_dict(), folder.path / "best.safetensors")
                if config.schedule == "plateau":
                    run.schedule.step(result.loss)
                board.errors(task, result, run.counts.epoch)
            run.next_epoch(row)
            folder.add_row(row)
            board.epoch(row, run)
            say(line_of(row))
        lint.close()
        return finish(task, run, folder, board)


def train_epoch(task: Any, run: Run, folder: RunFolder, stop: StopSignals) -> dict[str, Any]:
    """The rest of an epoch, which is all of it unless a checkpoint was taken in its middle; its row of metrics."""
    counts, total = run.counts, len(run.batches)
    run.train_mode()
    begin, seen_before, speed = time.perf_counter(), counts.seen, 0.0
    left = run.batches if counts.batch < total else ()
    ahead = run.ahead = Ahead(left, task.batch, run.config.device.startswith("cuda"))
    with progress(ahead, f"epoch {counts.epoch}/{run.config.epochs}", counts.batch, total) as bar:
        for batch in bar:
            loss, hits = train_batch(task, run, batch)
            counts.seen += len(batch.labels)
            counts.total += loss * len(batch.labels)
            counts.correct += hits
            counts.batch += 1

            speed = (counts.seen - seen_before) / (time.perf_counter() - begin)
            bar.set_postfix_str(epoch_text(counts, speed), refresh=False)
            at_step = run.first_of_step or counts.batch == total  # between steps no gradients have to be kept
            if at_step and folder.due(counts.step):
                folder.save(run)
            after_batch(run, folder, stop, batch.broken, at_step)
    seen = max(1, counts.seen)
    return {"epoch": counts.epoch, "loss": counts.total / seen, "accuracy": counts.correct / seen,
            "images_per_second": round(speed, 1)}


def train_batch(task: Any, run: Run, batch: Any) -> tuple[float, int]:
    """Forward, backward, and where the batch is the last one of a step, the step. Returns the loss and the hits.

    A batch of which no picture could be read adds nothing to its step.
    """
    images, targets = (None, None) if batch.images is None else task.training_pair(batch)
    try:
        if run.graphed is not None and images is not None:
            return replay_batch(run, run.graphed, images, targets, batch.labels)
        return compute_batch(task, run, images, targets, batch.labels)
    except CaptureError as error:
        if run.config.graph == "on":
            raise TrainingError(f"--graph on: {error}") from None
        warn(f"goes on without a CUDA graph: {error}")
        run.graphed = None
        return compute_batch(task, run, images, targets, batch.labels)
    except (OutOfMemoryError, MemoryError) as error:
        raise TrainingError(memory.explain(run.model, run.optimizer, images, error)) from None


def compute_batch(task: Any, run: Run, images: Any, targets: Any, labels: Any) -> tuple[float, int]:
    """train_batch, one operation at a time."""
    first: list[tuple[float, int]] = []

    def compute() -> Any:
        if run.first_of_step:
            run.optimizer.zero_grad()
        if images is None:
            first.append((0.0, 0))
            return 0.0
        with run.autocast():
            logits = run.model(images)
            loss = task.loss(logits, targets)
        value = finite(run, loss.item(), images)
        first.append((value, hits(logits, labels)))
        run.scaler.scale(loss if run.share == 1 else loss * run.share).backward()
        return loss

    run.step(compute)
    return first[0]


def replay_batch(run: Run, graphed: GraphedBatch, images: Any, targets: Any, labels: Any) -> tuple[float, int]:
    """train_batch as a CUDA graph."""
    loss, right = graphed(images, targets, labels)
    if run.ahead is not None:
        run.ahead.prepare()                                # while the GPU computes
    value = finite(run, loss.item(), images)
    if run.last_of_step:
        run.end_step()
    return value, int(right.item())


def finite(run: Run, loss: float, images: Any) -> float:
    """The loss of the step that now begins. Raises TrainingError if it is no number, and names the module."""
    if not math.isfinite(loss):
        raise TrainingError(f"the loss of step {run.counts.step + 1} is {loss}: "
                            f"{first_bad_module(run.model, images, run.autocast)}")
    return loss


def after_batch(run: Run, folder: RunFolder, stop: StopSignals, broken: list[str], at_step: bool = True) -> None:
    """Names broken pictures, and ends the run where there are too many of them or a signal asks for it."""
    counts = run.counts
    name_broken(run, broken)
    if stop.caught and at_step:
        folder.save(run)
        raise Stopped(stop.caught, f"after step {counts.step} of epoch {counts.epoch}; "
                                   f"python -m zoo.train --resume {folder.path} goes on")


def name_broken(run: Run, broken: list[str]) -> None:
    """Names pictures that could not be read, each once; too many of them end the run."""
    counts = run.counts
    for name in broken:
        if name not in counts.broken:
            counts.broken.append(name)
            warn(f"broken picture skipped: {name}")
    if len(counts.broken) > run.config.max_broken:
        raise TrainingError(f"{len(counts.broken)} broken pictures, --max-broken {run.config.max_broken} are allowed; "
                            f"the last is {counts.broken[-1]}")


def finish(task: Any, run: Run, folder: RunFolder, board: Board) -> float:
    """The test with the best weights, the files that stay, and the report."""
    counts, config = run.counts, run.config
    if counts.finished:
        say(f"finished before: {line_of(counts.rows[-1])}; {folder.path}")
        return counts.rows[-1]["test_accuracy"]
    save(run.model.state_dict(), folder.path / "last.safetensors")
    if counts.best_epoch:
        run.weights.load_state_dict(load(folder.path / "best.safetensors", map_location=config.device))
    part = "test" if "test" in task.datasets else "val" if "val" in task.datasets else "train"
    result = evaluate(task, run.weights, part, run.autocast, lambda broken: name_broken(run, broken))
    row = {"test_accuracy": result.accuracy, "part": part, "seconds": round(run.seconds, 2)}
    save_pretrained(run.weights, folder.path / "model", labels=task.classes, preprocessing=task.preprocessing,
                    metrics={f"accuracy on {part} of {config.data}": result.accuracy})
    counts.rows.append(row)
    folder.add_row(row)
    board.end(row)
    if config.report:
        write_report(folder.path / "report.html", task, run.weights, counts, result)
    counts.finished = True
    folder.save(run)
    say(f"{result_text(result)} after {row['seconds']:.1f} s; {folder.path}")
    return result.accuracy


def introduce(task: Any, run: Run, resumed: bool) -> None:
    """What the run is made of."""
    say(" ".join(f"{k}={v}" for k, v in dataclasses.asdict(task.config).items()))
    sizes = [f"{len(task.datasets[part]):,} {purpose}" for part, purpose in (
        ("train", "images to train with"), ("val", "to validate with"), ("test", "to test with"))
        if part in task.datasets]
    say(f"{sum(p.numel() for p in run.model.parameters()):,} parameters, {', '.join(sizes)}")
    if resumed and not run.counts.finished:
        say(f"goes on after step {run.counts.step}, in epoch {run.counts.epoch} after batch {run.counts.batch}")


def epoch_text(counts: Any, speed: float) -> str:
    """What the bar shows."""
    seen = max(1, counts.seen)
    return f"loss {counts.total / seen:.4f}, accuracy {counts.correct / seen:.2%}, {speed:,.0f} images/s"


def line_of(row: dict[str, Any]) -> str:
    """A row of metrics as one line for people."""
    if "epoch" not in row:
        return f"{row['part']} accuracy {row['test_accuracy']:.2%}"
    text = (f"epoch {row['epoch']:3d}  loss {row['loss']:.4f}  accuracy {row['accuracy']:7.2%}  "
            f"{row['images_per_second']:8,.0f} images/s")
    return text + (f"  validation {row['val_accuracy']:.2%}" if "val_accuracy" in row else "")


def result_text(result: Result) -> str:
    """An evaluation as one line for people."""
    return f"{result.part} accuracy {result.accuracy:.2%} ({result.hits} of {result.count})"


def hits(logits: zoo.Tensor, labels: zoo.Tensor) -> int:
    """How many of the greatest logits are at the label."""
    return int((logits.detach().argmax(1) == labels).sum().item())
