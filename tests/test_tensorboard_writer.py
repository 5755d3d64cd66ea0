"""zoo.utils.tensorboard.SummaryWriter, read back with TensorBoard's own reader and beside torch's writer."""
import inspect
import sys

import numpy as np
import pytest

import zoo

pytest.importorskip("tensorboardX")
from zoo.utils.tensorboard import SummaryWriter  # noqa: E402


def write(library, writer):
    """What scripts write, in either library."""
    with writer:
        for step in range(3):
            writer.add_scalar("loss/train", library.tensor(0.5, requires_grad=True) * step, step)
            writer.add_scalars("both", {"a": step, "b": library.tensor(2.0 * step)}, step)
        writer.add_histogram("weights", library.arange(12.0).reshape(3, 4).requires_grad_(), 1)
        writer.add_histogram("halves", library.ones(4, dtype=library.bfloat16), 1)
        writer.add_image("picture", library.linspace(0, 1, 48).reshape(3, 4, 4), 1)
        writer.add_images("pictures", library.zeros(2, 1, 4, 4), 1)
        writer.add_text("note", "**hello**", 0)
        writer.add_pr_curve("curve", library.tensor([0, 1, 1]), library.tensor([0.1, 0.4, 0.9]), 0)
        writer.add_hparams({"lr": 0.1, "name": "x", "big": True}, {"accuracy": library.tensor(0.9)}, run_name="one")
        writer.flush()


def read(folder):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    return reader.EventAccumulator(str(folder), dict.fromkeys((reader.TENSORS, reader.IMAGES, reader.SCALARS,
                                                               reader.HISTOGRAMS), 0)).Reload()


def test_reads_back(tmp_path):
    write(zoo, writer := SummaryWriter(tmp_path / "run", max_queue=5))
    assert writer.get_logdir() == str(tmp_path / "run") == writer.log_dir
    events = read(tmp_path / "run")
    assert [(e.step, e.value) for e in events.Scalars("loss/train")] == [(0, 0.0), (1, 0.5), (2, 1.0)]
    histogram = events.Histograms("weights")[0].histogram_value
    assert (histogram.num, histogram.min, histogram.max, histogram.sum) == (12, 0, 11, 66)
    assert events.Histograms("halves")[0].histogram_value.sum == 4
    image = events.Images("picture")[0]
    assert (image.width, image.height) == (4, 4)
    assert b"hello" in events.Tensors("note/text_summary")[0].tensor_proto.string_val[0]
    assert [e.value for e in read(tmp_path / "run" / "both" / "b").Scalars("both")] == [0, 2, 4]
    assert read(tmp_path / "run" / "one").Scalars("accuracy")[0].value == np.float32(0.9)


def test_tags_equal_torch(tmp_path):
    torch = pytest.importorskip("torch")
    board = pytest.importorskip("torch.utils.tensorboard")
    write(zoo, SummaryWriter(tmp_path / "zoo"))
    write(torch, board.SummaryWriter(tmp_path / "torch"))
    mine, theirs = read(tmp_path / "zoo"), read(tmp_path / "torch")
    assert mine.Tags() == theirs.Tags()
    assert [(e.step, e.value) for e in mine.Scalars("loss/train")] == [
        (e.step, e.value) for e in theirs.Scalars("loss/train")]
    for name in ("add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "add_text",
                 "add_hparams", "add_embedding", "add_pr_curve", "add_video", "add_audio", "add_graph", "__init__"):
        assert [*inspect.signature(getattr(SummaryWriter, name)).parameters] == [
            *inspect.signature(getattr(board.SummaryWriter, name)).parameters], name


def test_what_it_refuses(tmp_path, monkeypatch):
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(NotImplementedError, match="add_graph: zoo runs models as Python programs"):
            writer.add_graph(zoo.nn.Linear(1, 1))
        with pytest.raises(TypeError, match="two dicts"):
            writer.add_hparams([], {})
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'triton-zoo\[tensorboard\]'"):
        SummaryWriter(tmp_path)
