"""Weights in timm's repositories on the Hub, and microsoft/resnet-50. Licences that forbid commercial use stay out.

Accuracies: timm's results-imagenet.csv; tags: its models/resnet.py and vgg.py. A hash or a commit stands here only if
somebody has seen it; a row without a commit follows the repository's main ("revision unseen"), which loading then pins.
"""

from zoo.models.weights_row import Metric, Preprocessing, Weights
from zoo.models.weights_torchvision import PARAMETERS

UNSEEN = "revision unseen"


def hub_source(repository: str, commit: str | None) -> str:
    """A repository's model.safetensors at a commit; at main where no commit is known."""
    return f"hf://{repository}/model.safetensors@{commit or 'main'}"


def row(model: str, recipe: str, top1: float, top5: float | None = None, *, at: tuple, and_at=None, size_text: str = "",
        sha256=None, sha256_prefix=None, commit=None) -> Weights:
    """One of timm's weights.

    Args:
        recipe: the tag without "_in1k". top1, top5: with pictures `at` (resolution, crop_pct, interpolation), which is
            the preprocessing too. and_at: a second (top1, top5, resolution, crop_pct).
    """
    metrics = [Metric(top1, top5, at[0], at[1])]
    if and_at:
        metrics.append(Metric(*and_at))
    return Weights(
        model,
        f"{recipe}_in1k",
        hub_source(f"timm/{model}.{recipe}_in1k", commit),
        "bsd-3-clause" if recipe.startswith("tv") else "apache-2.0",
        PARAMETERS[model],
        sha256=sha256,
        sha256_prefix=sha256_prefix,
        size_text=size_text,
        metrics=tuple(metrics),
        preprocessing=Preprocessing.timm(*at),
        key_map="timm_vgg" if model.startswith("vgg") else "same",
        note="" if commit else UNSEEN,
    )


TV = (224, 0.875, "bilinear")
TV2 = (224, 0.965, "bilinear")
BICUBIC = (224, 0.875, "bicubic")
WIDE_CROP = (224, 0.95, "bicubic")

RESNETS = (
    row("resnet18", "tv", 69.752, 89.082, at=TV, size_text="46.8 MB",
        sha256="694f673df6520a3158624e8a89af086f59923ee4cd7436fe5bc3bc71d295ad81",
        commit="a987fd6b60f845221bfff84b6f0191273ba56ead"),
    row("resnet18", "a1", 71.504, 90.086, at=WIDE_CROP, and_at=(73.164, 91.054, 288, 1.0), size_text="46.8 MB",
        sha256="80c49dee3da4822c009c5a7fe591e9223c5a2cfcf95a4067ca4dfb5a7b89c612",
        commit="b9c542640ca04a6acab6e1ecff124a2d6ef1951d"),
    row("resnet18", "a2", 70.634, at=WIDE_CROP),
    row("resnet18", "a3", 68.250, at=WIDE_CROP,
        sha256="f049dd3c2e08176be8844dd123467fa5714cff1f141dcfe0ab4975e567f9de21"),
    row("resnet18", "gluon", 70.844, at=BICUBIC),
    row("resnet34", "tv", 73.298, 91.422, at=TV, size_text="~87 MB"),
    row("resnet34", "a1", 76.420, 92.896, at=WIDE_CROP, and_at=(77.930, 93.758, 288, 1.0)),
    row("resnet50", "tv", 76.156, 92.866, at=TV, size_text="102 MB",
        sha256="5d061a3c593d795bfe682d9b152bafbcf550579873492def3515b46db1189888",
        commit="aa6c2d36d56bc0209040c02b5a7b7d7bf11d57b8"),
    row("resnet50", "tv2", 80.846, 95.430, at=TV2),
    row("resnet50", "a1", 80.382, 94.598, at=WIDE_CROP, and_at=(81.240, 95.112, 288, 1.0), size_text="102 MB",
        sha256="773525d5821de224f8f30c33377b7a795d7863e08522698200d3217d3f2a41bb",
        commit="93271f4677dbf7b4d7f7e7d9d7811bd66c327e56"),
    row("resnet50", "a2", 79.828, at=WIDE_CROP, sha256_prefix="f531f9ac"),
    row("resnet50", "d", 79.904, at=WIDE_CROP, and_at=(81.012, None, 288, 1.0), sha256_prefix="d8ed2918"),
    row("resnet50", "b1k", 79.564, at=WIDE_CROP, sha256_prefix="cd64707e"),
    row("resnet50", "c1", 79.766, at=WIDE_CROP),
    row("resnet50", "c2", 79.868, at=WIDE_CROP),
    row("resnet50", "ra", 78.820, at=BICUBIC, sha256_prefix="c49195c9"),
    row("resnet50", "ram", 79.034, at=BICUBIC),
    row("resnet50", "am", 79.004, at=BICUBIC),
    row("resnet50", "bt", 78.444, at=BICUBIC),
    row("resnet50", "gluon", 77.580, at=BICUBIC),
    row("resnet101", "tv", 77.404, 93.552, at=TV, size_text="179 MB"),
    row("resnet101", "tv2", 81.906, 95.768, at=TV2, size_text="179 MB"),
    row("resnet101", "a1h", 81.950, 95.760, at=WIDE_CROP, and_at=(82.796, 96.324, 288, 1.0), size_text="179 MB",
        sha256="1a076c0384295e7d3704f201c5711ff245507db934230bab72ff3014a95f90fe",
        commit="21721ac354aff8c4fbc371f3c4e46fa8832d4d68"),
    row("resnet101", "a1", 81.494, 95.164, at=WIDE_CROP, size_text="179 MB",
        sha256="1ba5b660e7c175b3c27c557fc7dc8b2815be830c516815b0155f61b403f27380"),
    row("resnet152", "tv", 78.330, 94.046, at=TV, size_text="241 MB",
        sha256="15897077afdf4d6334dc0c3f8e6fb483afb3faa9298c139f3c6eb29bca6ae5b2"),
    row("resnet152", "tv2", 82.294, 96.000, at=TV2, size_text="241 MB",
        commit="6c03aba8c980980031f286eec039dc10543e01a4"),
    row("resnet152", "a1h", 82.818, 96.124, at=WIDE_CROP, and_at=(83.494, None, 288, 1.0), size_text="241 MB"),
    row("resnet152", "a1", 81.998, 95.294, at=WIDE_CROP, size_text="241 MB",
        commit="449ee9bfaea31586d09a7e686b5932e9d1272ec6"),
)
WIDER_RESNETS = (
    row("resnext50_32x4d", "tv", 77.632, at=TV, size_text="100 MB",
        sha256="c0d85cba49c0e9dedbcf6d4e572e2c5ea5eb68e9d64d0564811fd54d4f72939a",
        commit="ac4eef0c61cc63cb64d8c416bf9b518f757bed1f"),
    row("resnext50_32x4d", "tv2", 81.190, at=TV2, size_text="100 MB"),
    row("resnext50_32x4d", "a1h", 81.140, at=WIDE_CROP, and_at=(82.016, None, 288, 1.0), size_text="100 MB",
        sha256="b952952a7b3e856b16ebf82fb44d2aa8c502e73ec678976c9e3b970fcd530bd5",
        commit="8af8dd95e2a7538fad74714fc76507d9de9de33c"),
    row("resnext101_32x8d", "tv", 79.308, at=TV, size_text="356 MB",
        sha256="71c7427e233904ad828b768b9683876dc71f143876cbadaa26428bfea3560fc3"),
    row("resnext101_32x8d", "tv2", 82.832, at=TV2, size_text="356 MB"),
    row("resnext101_64x4d", "tv", 82.978, at=TV, size_text="335 MB",
        sha256="47528f24e5cd6844249c9e4ea11aed6619431b83a0596afe80efdfffdb369900"),
    row("resnext101_64x4d", "c1", 82.446, at=WIDE_CROP, size_text="335 MB"),
    row("wide_resnet50_2", "tv", 78.486, at=TV, size_text="276 MB",
        sha256="df6fb6c4824769769de18e14088475fd6ee94236849aa4e5d8022ba9d9a9a16c"),
    row("wide_resnet50_2", "tv2", 81.612, at=TV2, size_text="276 MB"),
    row("wide_resnet50_2", "racm", 81.466, at=BICUBIC, and_at=(82.260, None, 288, 0.95), size_text="276 MB"),
    row("wide_resnet101_2", "tv", 78.862, at=TV),
    row("wide_resnet101_2", "tv2", 82.514, at=TV2),
)
VGGS = (
    row("vgg11", "tv", 69.050, 88.630, at=TV, size_text="531 MB",
        sha256="682c023808812148d4e60c76d80ad83dbeaf5d50eb1a952a0b836895003151e5"),
    row("vgg13", "tv", 69.950, 89.262, at=TV, size_text="532 MB"),
    row("vgg16", "tv", 71.594, 90.398, at=TV, size_text="553 MB",
        sha256="57b026918159a6bf9faf8405c3a551903768e7138989d9c6224a14227203fad8",
        commit="3394518cba29aee1ea82a49d971be90d2dd1dab7"),
    row("vgg19", "tv", 72.400, 90.878, at=TV, size_text="575 MB",
        sha256="11aea017b543ff59233749d8f1cf544cda749378f5790d2fedab841fb86b7669"),
    row("vgg11_bn", "tv", 70.374, 89.802, at=TV),
    row("vgg13_bn", "tv", 71.560, 90.372, at=TV, size_text="532 MB",
        sha256="7dae235e35772693cd527e7ac9ef8f6594707a14a8d26aabdb83c0baa6847861",
        commit="ed6e64d6167edbe08697cb4d7ceaef5077972131"),
    row("vgg16_bn", "tv", 73.354, 91.490, at=TV, size_text="554 MB",
        sha256="88bbedbc8e780413736db38ac4efd41b06fc0e93fd5b8879b584bba63a950129",
        commit="e00c01e7cee168262dcba6428dc4a8f41e27e965"),
    row("vgg19_bn", "tv", 74.230, 91.848, at=TV, size_text="575 MB",
        sha256="f8249087e63bae61c6166bb23d7c26efe1b2a43fd9fb5cd60ac6ce00535ba312"),
)
MICROSOFT = Weights(
    "resnet50",
    "microsoft",
    hub_source("microsoft/resnet-50", None),
    "apache-2.0",
    PARAMETERS["resnet50"],
    size_text="102 MB",
    preprocessing=Preprocessing.timm(*BICUBIC),
    key_map="microsoft_resnet",
    note=f"{UNSEEN}; the repository's own preprocessing unseen, so this is timm's for its resnet50",
)
ROWS = (*RESNETS, *WIDER_RESNETS, *VGGS, MICROSOFT)
DEFAULTS = {
    **{f"resnet{n}": "a1_in1k" for n in (18, 34, 50)},
    "resnet101": "a1h_in1k",
    "resnet152": "a1h_in1k",
    "resnext50_32x4d": "a1h_in1k",
    "resnext101_32x8d": "tv2_in1k",
    "resnext101_64x4d": "c1_in1k",
    "wide_resnet50_2": "racm_in1k",
    "wide_resnet101_2": "tv2_in1k",
    **{f"vgg{n}": "tv_in1k" for n in (11, 13, 16, 19)},
    **{f"vgg{n}_bn": "tv_in1k" for n in (11, 13, 16, 19)},
}
