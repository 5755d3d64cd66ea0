"""python -m zoo.train text: the training loop of a character model, to be read from top to bottom."""

import dataclasses
import time
from typing import Any

from zoo import hub
from zoo.models.charlm import stanza_dict
from zoo.serialization import save
from zoo.train.console import progress, say
from zoo.train.errors import Stopped
from zoo.train.folder import RunFolder
from zoo.train.stopping import StopSignals
from zoo.train.text_config import TextConfig
from zoo.train.text_run import BIT, TextRun

WEIGHTS = "charlm.safetensors"


def train(config: TextConfig) -> float:
    """Trains as config says; see `python -m zoo.train text --help`.

    Returns:
        Bits per character on the last tenth of the text, of the weights as they are stored.

    Raises:
        Stopped: by a signal; a checkpoint is there. TrainingError: the loss is not finite.
        UsageError: no text to train with. OSError: a file cannot be written.
    """
    run = TextRun(config)
    folder = RunFolder(config)
    introduce(run, folder.restore(run))
    with StopSignals() as stop:
        while not run.over:
            row = train_epoch(run, folder, stop)
            row["held_out_bits"] = run.test()
            run.next_epoch(row)
            folder.add_row(row)
            folder.save(run)
            say(line_of(row))
            show_sample(run)
    return finish(run, folder)


def train_epoch(run: TextRun, folder: RunFolder, stop: StopSignals) -> dict[str, Any]:
    """The rest of an epoch, which is all of it unless a checkpoint was taken in its middle; its row of metrics."""
    counts, total, speed = run.counts, len(run.batches), 0.0
    begin, before = time.perf_counter(), counts.batch
    run.model.train()
    left = run.batches.since(counts.batch)
    with progress(left, f"epoch {counts.epoch}/{run.config.epochs}", counts.batch, total) as bar:
        for inputs, targets in bar:
            run.step(inputs, targets)
            speed = (counts.batch - before) * targets.numel() / (time.perf_counter() - begin)
            bar.set_postfix_str(f"loss {run.bits * BIT:.4f}, {run.bits:.3f} bits/char, {speed:,.0f} chars/s",
                                refresh=False)
            if stop.caught or folder.due(counts.step):
                folder.save(run)
            if stop.caught:
                raise Stopped(stop.caught, f"after step {counts.step} of epoch {counts.epoch}; "
                                           f"python -m zoo.train text --resume {folder.path} goes on")
    return {"epoch": counts.epoch, "loss": run.bits * BIT, "bits": run.bits, "chars_per_second": round(speed, 1)}


def finish(run: TextRun, folder: RunFolder) -> float:
    """The weights as they stay, and their score."""
    counts, config = run.counts, run.config
    if counts.finished:
        say(f"finished before: {counts.rows[-1]['held_out_bits']:.3f} bits/char on the held-out text; {folder.path}")
        return counts.rows[-1]["held_out_bits"]
    path = folder.path / WEIGHTS
    save(stanza_dict(run.model, config.save_dtype), path)
    bits = hub.load("charlm", weights=path).score(run.held_out)
    row = {"held_out_bits": bits, "characters": len(run.held_out), "dtype": config.save_dtype,
           "seconds": round(run.seconds, 2)}
    counts.rows.append(row)
    folder.add_row(row)
    counts.finished = True
    folder.save(run)
    say(f"{bits:.3f} bits/char on the held-out {len(run.held_out):,} characters after {row['seconds']:.1f} s; {path}")
    return bits


def introduce(run: TextRun, resumed: bool) -> None:
    """What the run is made of."""
    say(" ".join(f"{name}={value}" for name, value in dataclasses.asdict(run.config).items()))
    say(f"{sum(p.numel() for p in run.model.parameters()):,} parameters, {len(run.vocabulary)} symbols, "
        f"{run.characters:,} characters to train with, {len(run.held_out):,} held out")
    if resumed and not run.counts.finished:
        say(f"goes on after step {run.counts.step}, in epoch {run.counts.epoch} after batch {run.counts.batch}")


def show_sample(run: TextRun) -> None:
    """What the model writes now; the same text after the same steps."""
    if not run.config.sample:
        return
    run.model.eval()
    text = run.model.generate("", run.config.sample, temperature=0.7, seed=run.config.seed + run.counts.epoch)
    say("".join(f"    {line}\n" for line in text.splitlines()).rstrip("\n"))


def line_of(row: dict[str, Any]) -> str:
    """A row of metrics as one line for people."""
    return (f"epoch {row['epoch']:3d}  loss {row['loss']:.4f}  {row['bits']:.3f} bits/char  held out "
            f"{row['held_out_bits']:.3f}  {row['chars_per_second']:8,.0f} chars/s")
