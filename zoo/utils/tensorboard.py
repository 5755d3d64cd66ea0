"""torch.utils.tensorboard: SummaryWriter, through tensorboardX, which needs neither TensorFlow nor torch.

    pip install 'triton-zoo[tensorboard]'
"""
from importlib import import_module
from typing import Any

import numpy as np

from zoo.autograd.tensor import Tensor
from zoo.ops.device import fetch


def plain(value: Any) -> Any:
    """A tensor of any device as an array that TensorBoard knows (halves as float32); so in dicts and lists too."""
    if isinstance(value, Tensor):
        array = fetch(value.detach().array)
        return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    return [plain(x) for x in value] if isinstance(value, (list, tuple)) else value


def number(value: Any) -> Any:
    """A tensor of one element as its Python number; anything else as it is."""
    return value.item() if isinstance(value, (Tensor, np.ndarray, np.generic)) else value


class SummaryWriter:
    """Writes events for TensorBoard: curves, histograms, pictures, texts, hyperparameters.

    Args:
        log_dir: folder of the event files; by default runs/<date>_<host name><comment>.
        comment: ends the name of the default folder.
        purge_step: events of this step and later ones, of an earlier run into the folder, are void.
        max_queue: how many events may wait. flush_secs: how long they may.
        filename_suffix: ends the names of the event files.

    Raises:
        ModuleNotFoundError: tensorboardX is not installed.

    Example:
        >>> import zoo
        >>> from zoo.utils.tensorboard import SummaryWriter
        >>> with SummaryWriter("run") as writer:
        ...     for step in range(3):
        ...         writer.add_scalar("loss", zoo.tensor(1.0 / (step + 1)), step)
    """

    def __init__(self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
                 flush_secs: int = 120, filename_suffix: str = ""):
        try:
            library = import_module("tensorboardX")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("SummaryWriter: wants tensorboardX; pip install 'triton-zoo[tensorboard]'",
                                      name="tensorboardX") from error
        self.writer = library.SummaryWriter(None if log_dir is None else str(log_dir), comment, purge_step, max_queue,
                                            flush_secs, filename_suffix)
        self.log_dir = self.writer.logdir

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False) -> None:
        """A point of the curve `tag`: a number or a tensor of one element, written as float32.

        new_style and double_precision have no effect.
        """
        self.writer.add_scalar(tag, number(scalar_value), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict, global_step: int | None = None,
                    walltime: float | None = None) -> None:
        """Points of several curves, by name, in one chart; each curve has event files in a folder of its own."""
        self.writer.add_scalars(main_tag, {tag: number(x) for tag, x in tag_scalar_dict.items()}, global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:
        """The distribution of the values of a tensor; bins as in numpy.histogram, or "tensorflow"."""
        self.writer.add_histogram(tag, plain(values), global_step, bins, walltime, max_bins)

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:
        """A picture: (3, H, W) or (1, H, W), floats in [0, 1] or uint8; dataformats may be "HWC", "HW" too."""
        self.writer.add_image(tag, plain(img_tensor), global_step, walltime, dataformats)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:
        """Several pictures (N, 3, H, W) side by side; dataformats may be "NHWC" too."""
        self.writer.add_images(tag, plain(img_tensor), global_step, walltime, dataformats)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True,
                   walltime: float | None = None) -> None:
        """A figure of matplotlib, or a list of them, as pictures; close: the figures are closed."""
        self.writer.add_figure(tag, figure, global_step, close, walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None,
                 walltime: float | None = None) -> None:
        """A text in Markdown."""
        self.writer.add_text(tag, text_string, global_step, walltime)

    def add_hparams(self, hparam_dict: dict, metric_dict: dict, hparam_domain_discrete: dict | None = None,
                    run_name: str | None = None, global_step: int | None = None) -> None:
        """A run's hyperparameters (bools, strings, numbers) with the metrics it reached, in a folder `run_name`.

        hparam_domain_discrete has no effect.

        Raises:
            TypeError: not two dicts.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError(f"add_hparams: wants two dicts, got {type(hparam_dict).__name__} and "
                            f"{type(metric_dict).__name__}")
        options, metrics = ({key: number(x) for key, x in d.items()} for d in (hparam_dict, metric_dict))
        self.writer.add_hparams(options, metrics, run_name, global_step)

    def add_embedding(self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: int | None = None,
                      tag: str = "default", metadata_header: Any = None) -> None:
        """Points (N, D) for the projector, with a label (metadata) and a picture (N, C, H, W) each."""
        self.writer.add_embedding(plain(mat), plain(metadata), plain(label_img), global_step, tag, metadata_header)

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: int | None = None,
                     num_thresholds: int = 127, weights: Any = None, walltime: float | None = None) -> None:
        """A precision-recall curve: labels 0 and 1, and the predicted probabilities of 1."""
        self.writer.add_pr_curve(tag, plain(labels), plain(predictions), global_step, num_thresholds, plain(weights),
                                 walltime)

    def add_video(self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4,
                  walltime: float | None = None) -> None:
        """Videos (N, T, C, H, W), floats in [0, 1] or uint8; wants moviepy."""
        self.writer.add_video(tag, plain(vid_tensor), global_step, fps, walltime)

    def add_audio(self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
                  walltime: float | None = None) -> None:
        """A sound (1, L), floats in [-1, 1]; wants soundfile."""
        self.writer.add_audio(tag, plain(snd_tensor), global_step, sample_rate, walltime)

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False,
                  use_strict_trace: bool = True) -> None:
        """Raises NotImplementedError: a model here is a Python program, of which zoo keeps no graph to draw."""
        raise NotImplementedError("add_graph: zoo runs models as Python programs and keeps no graph of them that "
                                  "TensorBoard could draw; print(model) shows the modules")

    def flush(self) -> None:
        """Writes what waits to the disk."""
        self.writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the files."""
        self.writer.close()
