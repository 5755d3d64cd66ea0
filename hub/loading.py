"""hub.load: a model with pretrained weights in one line, verified, memory-mapped, in eval mode."""

import logging
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

from zoo.autograd.tensor import wrap
from zoo.checkpoint import read_state_dict
from zoo.hub.client import Fetched, fetch
from zoo.hub.errors import NotFoundError
from zoo.hub.resolving import Plan, default_labels, resolve
from zoo.models import key_maps, registry
from zoo.models.base import FeaturePyramid, ImageModel, adapt_in_chans
from zoo.models.charlm import read_charlm
from zoo.models.crnn import read_crnn
from zoo.models.preprocess import Preprocess
from zoo.models.rnn import read_rnnlm
from zoo.models.weights import Preprocessing
from zoo.nn.init import skip_init
from zoo.nn.module import Module
from zoo.ops.device import default_device
from zoo.ops.device import device as device_class

LOG = logging.getLogger("zoo.hub")
# By family: what reads a file that says more than its arrays.
READERS = {"charlm": read_charlm, "crnn": read_crnn, "rnn": read_rnnlm}
# By the beginning of a key: the key map of a file that nothing is known of.
LAYOUTS = {"resnet.embedder.": "microsoft_resnet", "pre_logits.": "timm_vgg", "charlstm.lstm.": "stanza_charlm",
           "dnn.linear.w.": "speechbrain_rnnlm"}


def load(
    name: str, weights: Any = "default", *, num_classes: int | None = None, in_chans: int | None = None,
    device: Any = None, dtype: Any = None, strict: bool = True, progress: bool = True, offline: bool | None = None,
    cache_dir: Any = None, token: str | bool | None = None, **options: Any,
) -> Module:
    """Builds a model and fills it with pretrained weights, in eval mode.

    Every file's hash is computed at every load: bytes that are not the expected ones are never returned. Nothing in a
    file is executed. Files come from the cache without a request where the version is known, as it is after the
    first load.

    Args:
        name: a model ("resnet50"), a model and its weights ("resnet50.tv2_in1k"), a repository of the Hub
            ("timm/resnet50.a1_in1k", "owner/name@revision") or a folder that hub.save_pretrained wrote.
        weights: "default"; a tag ("a1_in1k", "tv", "IMAGENET1K_V2"); a path; "hf://owner/name/file@revision";
            "https://host/file"; a row of zoo.models.weights; None for fresh weights.
        num_classes: of the model. If the file has another number, the classifier is fresh, and a line says so.
        in_chans: channels of the pictures. If the file has another number, the first convolution is adapted: the sum
            over R, G and B for 1, else repeated and scaled by 3 / in_chans.
        device: where the weights go; default zoo's default device.
        dtype: of the floating weights; default float32, whatever the file has.
        strict: raise if the file has not exactly the model's keys. Without it, what is missing is fresh.
        progress: show a bar while downloading.
        offline: True: use only the cache. None: as HF_HUB_OFFLINE says.
        cache_dir: folder of the cache; default the Hub's own. token: of the Hub; default the one of HF_TOKEN.
        options: further arguments of the model's builder.

    Returns:
        The model, with `.weights` (its row, or None), `.preprocess` (picture -> tensor, or None), `.labels` (names of
        the classes, or None), `.architecture` (its name in the model registry) and `.model_args` (its options).

    Raises:
        ValueError: no such model or tag, or options that do not fit; the message has the nearest names.
        HubError: the file is not to be had, or not what it should be.
        FileError (ValueError, RuntimeError): the file cannot be read.
        StateDictError (ValueError, RuntimeError): its keys or shapes are not the model's.

    Example:
        >>> import zoo
        >>> from zoo import hub
        >>> model = hub.load("resnet20_digits")
        >>> model(zoo.zeros(1, 1, 8, 8)).shape, model.weights.licence
        ((1, 10), 'apache-2.0')
    """
    access = {"progress": progress, "offline": offline, "cache_dir": cache_dir, "token": token}
    plan = resolve(name, weights, access)
    options = plan.options | options | ({} if in_chans is None else {"in_chans": in_chans})
    pyramid = {key: options.pop(key) for key in ("features_only", "out_indices") if key in options}
    if plan.sources:
        model = pretrained(plan, options, strict, access)
        renew_classifier(model, num_classes)
    else:
        model = create(plan, options | ({} if num_classes is None else {"num_classes": num_classes}))
    describe(model, plan, options)
    if pyramid.get("features_only"):
        model = carrying_over(FeaturePyramid(model, pyramid.get("out_indices")), model)
    place = default_device() if device is None else device_class(device)
    return (model if place.type == "cpu" and dtype is None else model.to(device=place, dtype=dtype)).eval()


def create(plan: Plan, options: dict[str, Any]) -> Module:
    """The plan's model with fresh weights.

    Raises:
        ValueError, TypeError: options that the builder does not take.
    """
    try:
        return registry.create(plan.model, **options)
    except TypeError as error:
        raise TypeError(f"load: {plan.model}: {error}") from None


def pretrained(plan: Plan, options: dict[str, Any], strict: bool, access: dict[str, Any]) -> Module:
    """The plan's model with the file's weights and classifier; arrays of the right dtype are the mapped file itself."""
    reader = READERS.get(registry.entry(plan.model).family)
    with fetch_first(plan, access) as found:
        told, arrays = reader(found.file) if reader else ({}, read_state_dict(found.file))
    with skip_init() if strict else nullcontext():
        model = create(plan, told | options)
        arrays = key_maps.apply(plan.key_map or layout(arrays), arrays, model)
        if isinstance(model, ImageModel):
            fit_classifier(model, arrays.get(f"{model.classifier_name}.weight"))
    state = {key: wrap(array) for key, array in arrays.items()}
    if isinstance(model, ImageModel):
        fit_first_conv(model, state)
    model.load_state_dict(state, strict, assign=True)
    return model


def fit_classifier(model: ImageModel, weight: Any) -> None:
    """Gives the model a classifier of as many classes as the file's weight (classes, features) has."""
    if weight is not None and weight.ndim == 2 and len(weight) != model.num_classes:
        model.reset_classifier(len(weight))


def fit_first_conv(model: ImageModel, state: dict[str, Any]) -> None:
    """Adapts the file's first convolution on RGB to the model's channels."""
    first = f"{model.first_conv}.weight"
    in_chans = model.get_parameter(first).shape[1]
    if first in state and state[first].shape[1:2] == (3,) != (in_chans,):
        state[first] = adapt_in_chans(state[first], in_chans)


def layout(keys: Iterable[str]) -> str:
    """The name of the key map for a file that nothing is known of, from its keys."""
    found = (name for prefix, name in LAYOUTS.items() if any(key.startswith(prefix) for key in keys))
    return next(found, "same")


def fetch_first(plan: Plan, access: dict[str, Any]) -> Fetched:
    """The first of the plan's files that there is, open, after its hash was found right; the caller closes it."""
    *others, last = plan.sources
    for source in others:
        with suppress(NotFoundError):
            return fetch(source, **plan.expected, **access)
    return fetch(last, **plan.expected, **access)


def renew_classifier(model: Module, num_classes: int | None) -> None:
    """Gives the model a fresh classifier, and says so, if it has not num_classes."""
    if num_classes is None:
        return
    if not isinstance(model, ImageModel):
        raise ValueError(f"load: num_classes belongs to image classifiers; {type(model).__name__} is none")
    if num_classes == model.num_classes:
        return
    LOG.warning(
        "hub.load: the weights have %d classes, %d were asked for: %s is fresh, to be trained",
        model.num_classes, num_classes, model.classifier_name,
    )
    model.reset_classifier(num_classes)


def describe(model: Module, plan: Plan, options: dict[str, Any]) -> None:
    """Puts the attributes on the model that hub.load promises; names of classes only as long as they fit in number."""
    model.weights, model.architecture, model.model_args = plan.row, plan.model, options
    model.labels, model.preprocess = plan.labels, None
    if not isinstance(model, ImageModel):
        return
    labels = plan.labels or (default_labels(model.num_classes) if plan.sources else None)
    preprocessing = plan.preprocessing and for_channels(plan.preprocessing, options.get("in_chans"))
    model.labels = labels if labels and len(labels) == model.num_classes else None
    model.preprocess = Preprocess(preprocessing) if preprocessing else None


def carrying_over(pyramid: FeaturePyramid, model: Module) -> FeaturePyramid:
    """The pyramid with the model's attributes that hub.load promises."""
    for name in ("weights", "architecture", "model_args", "labels", "preprocess"):
        setattr(pyramid, name, getattr(model, name))
    return pyramid


def for_channels(preprocessing: Preprocessing, in_chans: int | None) -> Preprocessing | None:
    """The preprocessing for pictures of so many channels: grey ones get the average mean and std; else None."""
    if in_chans in (None, preprocessing.channels):
        return preprocessing
    if in_chans != 1:
        return None
    mean, std = (sum(values) / len(values) for values in (preprocessing.mean, preprocessing.std))
    return replace(preprocessing, channels=1, mean=(mean,), std=(std,))
