"""The weights that ship in the package, trained by our own command."""

from zoo.models.weights_row import Metric, Preprocessing, Weights

DIGITS = Weights(
    "resnet20_digits",
    "zoo",
    "package://zoo.models/resnet20_digits.safetensors",
    "apache-2.0",
    272_186,
    sha256="16fc01d5edcbc1cac7c39edc86161ddb99a5e4cff5ea67adcd625e678b849017",
    size=558_540,
    metrics=(Metric(100.0, None, 8, dataset="the 360 test digits of zoo.data.digits"),),
    preprocessing=Preprocessing(8, 8, "bicubic", mean=(0.0,), std=(1.0,), channels=1),
    dtype="float16",
    num_classes=10,
    labels="digits",
    note="white digits on black. Trained by `python -m zoo.train --model resnet20 --epochs 60`, then stored by "
    "`python -m zoo.hub convert last.safetensors resnet20_digits.safetensors --dtype float16`; the accuracy is that of "
    "this file on the digits' own 8x8 pixels; enlarged to 64x64 they come out at 98.6 %. Data: E. Alpaydin and "
    "C. Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998, CC BY 4.0",
)
CHARLM = Weights(
    "charlm_kjv",
    "zoo",
    "package://zoo.models/charlm_kjv.safetensors",
    "apache-2.0",
    351_426,
    sha256="7008a0ffc728f6853fd4917b9ac1f7ef4c7beb898f410548a1757140c26e7845",
    size=705_940,
    key_map="stanza_charlm",
    dtype="float16",
    num_classes=66,
    labels=None,
    note="trained by `python -m zoo.train text --epochs 12 --save-dtype float16` on nine tenths of Genesis, Proverbs "
    "and Ecclesiastes (King James translation, public domain); the bits per character are those of this file on the "
    "last tenth",
    bits_per_character=1.909,
)
ROWS = (DIGITS, CHARLM)
