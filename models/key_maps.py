"""From the names and shapes of a file's arrays to the model's own. Functions of dicts of arrays; nothing is copied."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zoo.ops.dtypes import FLOATS, int64

Arrays = dict[str, Any]

# Where timm's VGG keeps the layers of torchvision's `classifier`: convolutions of 7x7 and 1x1 instead of linear ones.
TIMM_VGG = {"pre_logits.fc1": "classifier.0", "pre_logits.fc2": "classifier.3", "head.fc": "classifier.6"}
MICROSOFT_LAYERS = {"convolution": "conv", "normalization": "bn"}
MICROSOFT_SHORTCUT = {"convolution": "0", "normalization": "1"}


def same(arrays: Arrays) -> Arrays:
    """The keys are the model's: torchvision's files, and timm's ResNets."""
    return dict(arrays)


def timm_vgg(arrays: Arrays) -> Arrays:
    """timm's VGG: its 7x7 and 1x1 convolutions become the linear layers of `classifier`. Torchvision's keys stay.

    Example:
        >>> import numpy as np
        >>> made = timm_vgg({"pre_logits.fc1.weight": np.zeros((4, 2, 7, 7))})
        >>> {key: array.shape for key, array in made.items()}
        {'classifier.0.weight': (4, 98)}

    Source: ConvMlp and _filter_fn in timm/models/vgg.py.
    """
    made = {}
    for key, array in arrays.items():
        layer, _, kind = key.rpartition(".")
        if layer in TIMM_VGG:
            key = f"{TIMM_VGG[layer]}.{kind}"
            array = array.reshape(array.shape[0], -1) if kind == "weight" else array
        made[key] = array
    return made


def microsoft_resnet(arrays: Arrays) -> Arrays:
    """microsoft/resnet-50 and its kin in transformers' layout.

    Example:
        >>> list(microsoft_resnet({"resnet.encoder.stages.1.layers.0.layer.2.normalization.bias": 0,
        ...                        "classifier.1.weight": 0}))
        ['layer2.0.bn3.bias', 'fc.weight']

    Raises:
        ValueError: a key of another layout.

    Source: convert_resnet_to_pytorch.py of transformers.
    """
    return {microsoft_key(key): array for key, array in arrays.items()}


def microsoft_key(key: str) -> str:
    """One key of `microsoft_resnet`."""
    layer, _, kind = key.rpartition(".")
    if layer == "classifier.1":
        return f"fc.{kind}"
    if stem := re.fullmatch(r"resnet\.embedder\.embedder\.(convolution|normalization)", layer):
        return f"{MICROSOFT_LAYERS[stem[1]]}1.{kind}"
    inner = re.fullmatch(
        r"resnet\.encoder\.stages\.(\d+)\.layers\.(\d+)\.(?:layer\.(\d+)|shortcut)\.(convolution|normalization)", layer
    )
    if inner is None:
        raise ValueError(f"microsoft_resnet: wants keys of transformers' ResNet, got {key!r}")
    stage, block, position, role = inner.groups()
    place = f"downsample.{MICROSOFT_SHORTCUT[role]}"
    if position is not None:
        place = f"{MICROSOFT_LAYERS[role]}{int(position) + 1}"
    return f"layer{int(stage) + 1}.{block}.{place}.{kind}"


def stanza_charlm(arrays: Arrays) -> Arrays:
    """Stanza's character model: its LSTM lies in a module, or is made of cells, one for each layer.

    Example:
        >>> list(stanza_charlm({"charlstm.lstm.bias_ih_l0": 0, "charlstm.lstm.cells.1.weight_hh": 0}))
        ['charlstm.bias_ih_l0', 'charlstm.weight_hh_l1']

    Source: stanza/models/common/packed_lstm.py.
    """
    made = {}
    for key, array in arrays.items():
        cell = re.fullmatch(r"charlstm\.lstm\.cells\.(\d+)\.(\w+)", key)
        made[f"charlstm.{cell[2]}_l{cell[1]}" if cell else key.replace("charlstm.lstm.", "charlstm.")] = array
    return made


# Every layer of SpeechBrain's is a module around torch's.
SPEECHBRAIN = {"embedding.Embedding.": "embedding.", "rnn.rnn.": "rnn.", "dnn.linear.w.": "linear.",
               "dnn.norm.norm.": "norm.", "out.w.": "out."}


def speechbrain_rnnlm(arrays: Arrays) -> Arrays:
    """SpeechBrain's RNNLM.

    Example:
        >>> list(speechbrain_rnnlm({"dnn.norm.norm.weight": 0, "out.w.bias": 0}))
        ['norm.weight', 'out.bias']

    Source: speechbrain/lobes/models/RNNLM.py.
    """
    made = {}
    for key, array in arrays.items():
        prefix = next((p for p in SPEECHBRAIN if key.startswith(p)), "")
        made[SPEECHBRAIN.get(prefix, "") + key.removeprefix(prefix)] = array
    return made


KEY_MAPS: dict[str, Callable[[Arrays], Arrays]] = {
    f.__name__: f for f in (same, timm_vgg, microsoft_resnet, stanza_charlm, speechbrain_rnnlm)
}


def apply(name: str, arrays: Arrays, model: Any = None) -> Arrays:
    """The arrays of a file under the model's keys and in its shapes; views, where shapes change.

    Args:
        name: a key map: the `key_map` of a row of weights.
        arrays: ndarrays by the file's keys.
        model: what the arrays are for, so that `complete` can add what older files lack.

    Raises:
        ValueError: no such key map, two keys that become one, or a key that its map does not know.

    Example:
        >>> apply("same", {"fc.bias": 1})
        {'fc.bias': 1}
    """
    if name not in KEY_MAPS:
        raise ValueError(f"key map: wants one of {', '.join(KEY_MAPS)}, got {name!r}")
    made = KEY_MAPS[name](arrays)
    if len(made) != len(arrays):
        raise ValueError(f"key map {name}: two of the {len(arrays)} keys become one")
    return made if model is None else complete(made, model.state_dict())


def complete(arrays: Arrays, own: Mapping[str, Any]) -> Arrays:
    """What older files lack: batch counters start at 0; stored fp16 becomes the parameters' dtype.

    Args:
        arrays: ndarrays by the model's keys.
        own: the model's state_dict, or anything with `dtype` by key.

    Returns:
        `arrays` with a 0 for each missing `num_batches_tracked`, floats cast where their dtype differs.

    Example:
        >>> import numpy as np
        >>> own = {"weight": np.zeros(1, np.float32), "num_batches_tracked": np.zeros((), np.int64)}
        >>> made = complete({"weight": np.ones(1, np.float16)}, own)
        >>> made["weight"].dtype, int(made["num_batches_tracked"])
        (dtype('float32'), 0)
    """
    made = {key: cast(array, own[key].dtype) if key in own else array for key, array in arrays.items()}
    for key in own:
        if key not in made and key.rpartition(".")[2] == "num_batches_tracked":
            made[key] = np.zeros((), int64)
    return made


def cast(array: Any, dtype: np.dtype) -> Any:
    """A floating array in another floating dtype; anything else as it is."""
    return array.astype(dtype) if array.dtype != dtype and array.dtype in FLOATS and dtype in FLOATS else array
