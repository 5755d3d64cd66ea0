"""hub.save_pretrained and hub.push: a folder or repository that hub.load reads back, with a card that is true."""

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo.checkpoint.atomic import replacing
from zoo.hub import config
from zoo.hub.errors import from_network
from zoo.models import registry
from zoo.models.base import ImageModel
from zoo.models.language_model import SequenceModel
from zoo.models.weights import Preprocessing, Weights
from zoo.nn.init import skip_init
from zoo.ops.device import fetch
from zoo.serialization import save

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"


def save_pretrained(
    model: ImageModel | SequenceModel, folder: str | os.PathLike, *, architecture: str | None = None,
    model_args: Mapping[str, Any] | None = None, labels: Sequence[str] | None = None,
    preprocessing: Preprocessing | None = None, licence: str | None = None,
    metrics: Mapping[str, float] | None = None, tag: str = "",
) -> Path:
    """Writes model.safetensors, config.json and a model card, so that `hub.load(folder)` gives the model back.

    The card states only what is known here: what the file holds, what it started from, and `metrics`. Without them it
    says that nothing was measured.

    Args:
        model: an image classifier or a model of sequences, from hub.load or zoo.models.
        folder: made if it is not there; files of these names in it are replaced.
        architecture, model_args: the model's name in the registry and its options other than num_classes and in_chans;
            default the ones hub.load built it with. A model of sequences knows its own options.
        labels: names of the classes; default the model's.
        preprocessing: what pictures go through; default that of the model's `preprocess`.
        licence: SPDX name of the weights' licence; default that of the weights the model started from.
        metrics: measured on these weights, name -> number, such as {"CIFAR-10 test accuracy": 0.93}.
        tag: a name for these weights.

    Returns:
        The folder.

    Raises:
        ValueError: architecture and options do not describe the model, or labels do not fit its classes.
        TypeError: no model of these kinds, or options that are not JSON.
        OSError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> from zoo import hub
        >>> folder = hub.save_pretrained(hub.load("resnet20_digits"), tempfile.mkdtemp())
        >>> sorted(p.name for p in folder.iterdir())
        ['README.md', 'config.json', 'model.safetensors']
        >>> hub.load(folder).architecture
        'resnet20_digits'
    """
    if not isinstance(model, ImageModel | SequenceModel):
        raise TypeError(f"save_pretrained: wants a model of zoo.models, got {type(model).__name__}")
    row: Weights | None = getattr(model, "weights", None)
    pictures = isinstance(model, ImageModel)
    about = config.Config(
        architecture or getattr(model, "architecture", ""),
        model.num_classes if pictures else 0,
        model.get_parameter(f"{model.first_conv}.weight").shape[1] if pictures else 0,
        dict(options_of(model) if model_args is None else model_args),
        preprocessing or getattr(getattr(model, "preprocess", None), "preprocessing", None),
        tuple(labels or getattr(model, "labels", None) or ()) or None,
        licence or (row.licence if row else None),
        tag,
    )
    text, contents = rendered(model, about)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save(contents, folder / WEIGHTS)
    replace_text(folder / CONFIG, text)
    replace_text(folder / CARD, card(model, about, row, metrics or {}, folder / WEIGHTS))
    return folder


def rendered(model: ImageModel | SequenceModel, about: config.Config) -> tuple[str, dict[str, Any]]:
    """The text of config.json and what the weights' file holds; raises unless the two belong together."""
    if isinstance(model, SequenceModel):
        return config.render_sequences(about), model.contents()
    check(model, about)
    contents = {key: fetch(value.array) for key, value in model.state_dict().items()}
    return config.render(about, model.first_conv, model.classifier_name), contents


def options_of(model: ImageModel | SequenceModel) -> dict[str, Any]:
    """The options that hub.load built the model with, without those that config.json has a place for."""
    if isinstance(model, SequenceModel):
        return model.options()
    return {k: v for k, v in getattr(model, "model_args", {}).items() if k not in ("num_classes", "in_chans")}


def check(model: ImageModel, about: config.Config) -> None:
    """Raises ValueError unless a model built from `about` has the model's keys and shapes."""
    if not about.architecture:
        raise ValueError("save_pretrained: wants architecture=, the model's name in the registry (hub.list() has them)")
    if about.labels is not None and len(about.labels) != about.num_classes:
        raise ValueError(f"save_pretrained: wants {about.num_classes} labels, got {len(about.labels)}")
    with skip_init():
        twin = registry.create(
            about.architecture, num_classes=about.num_classes, in_chans=about.in_chans, **about.model_args
        )
    shapes, wanted = ({k: v.shape for k, v in m.state_dict().items()} for m in (model, twin))
    if shapes != wanted:
        key = next(k for k in (*shapes, *wanted) if shapes.get(k) != wanted.get(k))
        raise ValueError(
            f"save_pretrained: {about.architecture} with {about.model_args} is not this model: {key} is "
            f"{shapes.get(key, 'not there')} here, {wanted.get(key, 'not there')} there"
        )


def replace_text(path: Path, text: str) -> None:
    """Writes a file in one step: a crash leaves the old one or the new one."""
    with replacing(path) as file:
        file.write(text.encode())


def card(
    model: ImageModel | SequenceModel, about: config.Config, row: Weights | None, metrics: Mapping[str, float],
    file: Path,
) -> str:
    """The model card: README.md with the Hub's metadata on top (https://huggingface.co/docs/hub/model-cards)."""
    pictures = isinstance(model, ImageModel)
    front = ["library_name: zoo", *(["pipeline_tag: image-classification", "tags: [image-classification, zoo]"]
                                    if pictures else ["tags: [zoo]"])]
    front += [f"license: {about.licence}"] if about.licence else []
    with open(file, "rb") as opened:
        sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
    dtypes = sorted({str(p.dtype) for p in model.parameters()})
    facts = [
        f"Architecture: `{about.architecture}`" + (f" with `{about.model_args}`" if about.model_args else ""),
        f"Parameters: {sum(p.numel() for p in model.parameters()):,} ({', '.join(dtypes)})",
        *([f"Classes: {about.num_classes}; channels of the pictures: {about.in_chans}"] if pictures else []),
        f"`{WEIGHTS}`: {file.stat().st_size:,} bytes, sha256 `{sha256}`",
        f"Licence: {about.licence or 'not stated'}",
    ]
    return "\n".join([
        "---", *front, "---", "", f"# {about.architecture}{'.' + about.tag if about.tag else ''}", "",
        f"{'An image classifier' if pictures else 'A model of sequences'}, saved by `zoo.hub.save_pretrained`.", "",
        *(f"- {fact}" for fact in facts), "",
        "## Origin", "", origin(row), "", "## Accuracy", "", accuracy(metrics), "", "## Use", "", "```python",
        "from zoo import hub", 'model = hub.load("path/to/this/folder")        # or "owner/name" on the Hub',
        *(['hub.predict(model, "photo.jpg")'] if pictures else []), "```", "",
    ])


def origin(row: Weights | None) -> str:
    """What the weights started from, as far as is known here."""
    if row is None:
        return "Not recorded."
    return (f"Loaded from `{row.source}` (`{row.name}`, {row.licence}). Whether they were trained further since then "
            "is not recorded here.")


def accuracy(metrics: Mapping[str, float]) -> str:
    """A table of what was measured on these weights, or the statement that nothing was."""
    if not metrics:
        return "None was measured on these weights when they were saved."
    rows = (f"| {name} | {value:g} |" for name, value in metrics.items())
    return "\n".join(["| measured | value |", "|---|---|", *rows])


def push(
    model: ImageModel | SequenceModel, repo: str, *, private: bool = False, token: str | bool | None = None,
    message: str = "Upload model", **options: Any,
) -> str:
    """Uploads a model to the Hub, where `hub.load(repo)` finds it.

    Args:
        model: as hub.save_pretrained takes it.
        repo: "owner/name"; made if it is not there.
        private: make it private. token: of the Hub, with the right to write; default the one of HF_TOKEN.
        message: of the commit.
        options: further arguments of hub.save_pretrained (metrics, licence, labels ...).

    Returns:
        The commit's address.

    Raises:
        ValueError: as hub.save_pretrained. HubError: the Hub refuses, or cannot be reached.
    """
    from huggingface_hub import HfApi

    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(model, folder, **options)
        try:
            api = HfApi(token=token)
            api.create_repo(repo, private=private, exist_ok=True)
            commit = api.upload_folder(repo_id=repo, folder_path=folder, commit_message=message)
        except Exception as error:  # noqa: BLE001  the client's classes differ between its versions
            raise from_network(error, f"hf://{repo}") from error
    return str(commit.commit_url)
