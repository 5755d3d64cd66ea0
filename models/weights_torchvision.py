"""The weights of torchvision 0.29.2's classification models.

Each file's name ends in the first 8 hex digits of its sha256; accuracies and sizes are those of torchvision's own
table (https://pytorch.org/vision/stable/models.html). Trained on ImageNet-1k; code and weights are BSD-3-Clause.
"""

from zoo.models.weights_row import Metric, Preprocessing, Weights

URL = "https://download.pytorch.org/models/"
V1, V2 = Preprocessing(resize=256), Preprocessing(resize=232)
PARAMETERS = {
    "alexnet": 61_100_840,
    "vgg11": 132_863_336,
    "vgg11_bn": 132_868_840,
    "vgg13": 133_047_848,
    "vgg13_bn": 133_053_736,
    "vgg16": 138_357_544,
    "vgg16_bn": 138_365_992,
    "vgg19": 143_667_240,
    "vgg19_bn": 143_678_248,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "resnext50_32x4d": 25_028_904,
    "resnext101_32x8d": 88_791_336,
    "resnext101_64x4d": 83_455_272,
    "wide_resnet50_2": 68_883_240,
    "wide_resnet101_2": 126_886_696,
}


def row(model: str, version: str, file: str, top1: float, top5: float, mebibytes: float, preprocessing=None, **more):
    """One of torchvision's weights: file is the name without .pth, and mebibytes torchvision's own count."""
    preprocessing = preprocessing or (V1 if version == "V1" else V2)
    return Weights(
        model,
        f"IMAGENET1K_{version}",
        f"{URL}{file}.pth",
        "bsd-3-clause",
        PARAMETERS[model],
        sha256_prefix=file.rpartition("-")[2],
        size_text=f"{mebibytes} MiB",
        metrics=(Metric(top1, top5, 224, round(224 / preprocessing.resize, 3)),),
        preprocessing=preprocessing,
        **more,
    )


HALF = {"dtype": "float16", "note": "stored as fp16 (told from the file's size)"}
FEATURES = Weights(
    "vgg16",
    "IMAGENET1K_FEATURES",
    f"{URL}vgg16_features-amdegroot-88682ab5.pth",
    "bsd-3-clause",
    PARAMETERS["vgg16"],
    sha256_prefix="88682ab5",
    size_text="527.802 MiB",
    preprocessing=Preprocessing(mean=(0.48235, 0.45882, 0.40784), std=(1 / 255, 1 / 255, 1 / 255)),
    note="for features only: the classifier's numbers are NaN; another mean and std than the other weights",
)
ROWS = (
    row("alexnet", "V1", "alexnet-owt-7be5be79", 56.522, 79.066, 233.087),
    row("vgg11", "V1", "vgg11-8a719046", 69.020, 88.628, 506.84),
    row("vgg11_bn", "V1", "vgg11_bn-6002323d", 70.370, 89.810, 506.881),
    row("vgg13", "V1", "vgg13-19584684", 69.928, 89.246, 507.545),
    row("vgg13_bn", "V1", "vgg13_bn-abd245e5", 71.586, 90.374, 507.59),
    row("vgg16", "V1", "vgg16-397923af", 71.592, 90.382, 527.796),
    FEATURES,
    row("vgg16_bn", "V1", "vgg16_bn-6c64b313", 73.360, 91.516, 527.866),
    row("vgg19", "V1", "vgg19-dcbb9e9d", 72.376, 90.876, 548.051),
    row("vgg19_bn", "V1", "vgg19_bn-c79401a0", 74.218, 91.842, 548.143),
    row("resnet18", "V1", "resnet18-f37072fd", 69.758, 89.078, 44.661),
    row("resnet34", "V1", "resnet34-b627a593", 73.314, 91.420, 83.275),
    row("resnet50", "V1", "resnet50-0676ba61", 76.130, 92.862, 97.781),
    row("resnet50", "V2", "resnet50-11ad3fa6", 80.858, 95.434, 97.79),
    row("resnet101", "V1", "resnet101-63fe2227", 77.374, 93.546, 170.511),
    row("resnet101", "V2", "resnet101-cd907fc2", 81.886, 95.780, 170.53),
    row("resnet152", "V1", "resnet152-394f9c45", 78.312, 94.046, 230.434),
    row("resnet152", "V2", "resnet152-f82ba261", 82.284, 96.002, 230.474),
    row("resnext50_32x4d", "V1", "resnext50_32x4d-7cdf4587", 77.618, 93.698, 95.789),
    row("resnext50_32x4d", "V2", "resnext50_32x4d-1a0047aa", 81.198, 95.340, 95.833),
    row("resnext101_32x8d", "V1", "resnext101_32x8d-8ba56ff5", 79.312, 94.526, 339.586),
    row("resnext101_32x8d", "V2", "resnext101_32x8d-110c445d", 82.834, 96.228, 339.673),
    row("resnext101_64x4d", "V1", "resnext101_64x4d-173b62eb", 83.246, 96.454, 319.318, V2),
    row("wide_resnet50_2", "V1", "wide_resnet50_2-95faca4d", 78.468, 94.086, 131.82, **HALF),
    row("wide_resnet50_2", "V2", "wide_resnet50_2-9ba9bcbe", 81.602, 95.758, 263.124),
    row("wide_resnet101_2", "V1", "wide_resnet101_2-32ee1156", 78.848, 94.284, 242.896, **HALF),
    row("wide_resnet101_2", "V2", "wide_resnet101_2-d733dc28", 82.510, 96.020, 484.747),
)
DEFAULTS = {"alexnet": "IMAGENET1K_V1"}
