"""zoo.data.transforms: torchvision v2's functions with the same parameters, random ones by their own stream."""
import inspect

import numpy as np
import pytest
from PIL import Image

import zoo
from zoo.data import transforms as T  # noqa: N812
from zoo.data.seeding import SAMPLE, Streams
from zoo.data.transforms import augment
from zoo.data.transforms import functional as F  # noqa: N812


def photo(width=61, height=47, seed=0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = np.stack([np.sin(x / rng.uniform(3, 20) + y / rng.uniform(3, 20)) for _ in range(3)], -1)
    return np.clip(120 + 90 * waves + rng.normal(0, 20, waves.shape), 0, 255).astype(np.uint8)


PIXELS = photo()
PICTURES = {"RGB": Image.fromarray(PIXELS), "L": Image.fromarray(PIXELS).convert("L")}
BYTES = zoo.from_numpy(PIXELS.transpose(2, 0, 1).copy())
FLOATS = zoo.from_numpy((PIXELS.transpose(2, 0, 1) / 255).astype(np.float32))

# Name, arguments: on PIL images they give torchvision's pixels.
CALLS = [
    ("resize", (20,), {}),
    ("resize", ([30, 10],), {"interpolation": "bicubic"}),
    ("resize", (30,), {"max_size": 35, "interpolation": "lanczos"}),
    ("resize", (90,), {"interpolation": "nearest"}),
    ("resize", (None,), {"max_size": 33}),
    ("crop", (5, 6, 20, 30), {}),
    ("crop", (-3, 40, 60, 30), {}),
    ("center_crop", (30,), {}),
    ("center_crop", ([20, 31],), {}),
    ("center_crop", ([60, 40],), {}),
    ("center_crop", (100,), {}),
    ("resized_crop", (3, 4, 20, 31, [16, 15]), {}),
    ("pad", (3,), {"fill": 9}),
    ("pad", ([3, 5],), {"padding_mode": "edge"}),
    ("pad", ([1, 2, 3, 4],), {"padding_mode": "reflect"}),
    ("pad", ([1, 2, 3, 4],), {"padding_mode": "symmetric"}),
    ("horizontal_flip", (), {}),
    ("vertical_flip", (), {}),
    ("hflip", (), {}),
    ("vflip", (), {}),
    ("rgb_to_grayscale", (), {}),
    ("rgb_to_grayscale", (3,), {}),
    ("rotate", (30,), {}),
    ("rotate", (-100.5,), {"interpolation": "bilinear", "expand": True, "fill": 7}),
    ("rotate", (45,), {"center": [3, 10], "interpolation": "bicubic"}),
    ("affine", (20, [3, -4], 1.3, [10, -5]), {"interpolation": "bilinear", "fill": 5}),
    ("affine", (-70, [0, 2], 0.6, [0, 25]), {"center": [0, 0]}),
    ("adjust_brightness", (1.4,), {}),
    ("adjust_contrast", (0.3,), {}),
    ("adjust_saturation", (1.8,), {}),
    ("adjust_hue", (0.3,), {}),
    ("adjust_hue", (-0.5,), {}),
    ("adjust_sharpness", (1.9,), {}),
    ("adjust_sharpness", (0.0,), {}),
    ("posterize", (3,), {}),
    ("solarize", (100,), {}),
    ("autocontrast", (), {}),
    ("equalize", (), {}),
    ("invert", (), {}),
]
IDS = [f"{name}-{number}" for number, (name, _, _) in enumerate(CALLS)]


@pytest.fixture
def v2(torchvision):
    from torchvision.transforms import v2
    return v2


def options(v2, given: dict) -> dict:
    """With torchvision's own type of interpolations."""
    return {k: v2.InterpolationMode(x) if k == "interpolation" else x for k, x in given.items()}


@pytest.mark.torch
@pytest.mark.parametrize("mode", PICTURES)
@pytest.mark.parametrize("name, args, named", CALLS, ids=IDS)
def test_pictures_equal_torchvisions(name, args, named, mode, v2):
    ours = getattr(F, name)(PICTURES[mode], *args, **named)
    theirs = getattr(v2.functional, name)(PICTURES[mode], *args, **options(v2, named))
    assert ours.mode == theirs.mode and ours.size == theirs.size
    assert (np.asarray(ours) == np.asarray(theirs)).all()


# On tensors torch has no lanczos, its nearest takes other pixels than PIL's, and the rest it computes in its own way:
# only what moves pixels is compared, and resizing to one step of 255.
ON_TENSORS = ("crop", "center_crop", "pad", "horizontal_flip", "vertical_flip", "resize", "resized_crop")
TENSOR_CALLS = [c for c in CALLS if c[0] in ON_TENSORS and c[2].get("interpolation") not in ("nearest", "lanczos")]


@pytest.mark.torch
@pytest.mark.parametrize("given", [BYTES, FLOATS], ids=["uint8", "float32"])
@pytest.mark.parametrize("name, args, named", TENSOR_CALLS)
def test_tensors_equal_torchvisions(name, args, named, given, v2):
    import torch
    ours = getattr(F, name)(given, *args, **named).numpy()
    theirs = getattr(v2.functional, name)(torch.from_numpy(given.numpy()), *args, **options(v2, named)).numpy()
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    most = 0 if "resize" not in name else 1 if given is BYTES else 1e-5       # float32 sums in another order
    assert np.abs(ours.astype(np.float64) - theirs).max() <= most


@pytest.mark.torch
@pytest.mark.parametrize("name, args", [
    ("adjust_brightness", (1.4,)), ("adjust_contrast", (0.3,)), ("adjust_contrast", (2,)), ("adjust_saturation", (2,)),
    ("rgb_to_grayscale", ()), ("rgb_to_grayscale", (3,)),
])
def test_colours_of_floats_equal_torchvisions(name, args, v2):
    import torch
    for given in (FLOATS, FLOATS[:1]):
        ours = getattr(F, name)(given, *args).numpy()
        theirs = getattr(v2.functional, name)(torch.from_numpy(given.numpy().copy()), *args).numpy()
        # torchvision rounds its grey's factors to 4 digits (0.2989, 0.587, 0.114).
        assert ours.shape == theirs.shape and np.abs(ours - theirs).max() <= 2.5e-4


@pytest.mark.parametrize("name, args, named", [c for c in CALLS if c[0] in ("rotate", "affine")])
def test_moved_floats_are_moved_bytes(name, args, named):
    """Each channel is filled with its own number; bytes are rounded, floats are not."""
    for fill in (named.get("fill", 0), [10, 20, 30]):
        bytewise = getattr(F, name)(BYTES, *args, **{**named, "fill": fill}).numpy()
        scaled = [n / 255 for n in fill] if isinstance(fill, list) else fill / 255
        floats = getattr(F, name)(zoo.stack([FLOATS, FLOATS]), *args, **{**named, "fill": scaled}).numpy()
        assert floats.shape == (2, *bytewise.shape) and (floats[0] == floats[1]).all()
        # Bicubic overshoots: bytes are cut off at 0 and 255.
        assert np.abs(np.clip(floats[0], 0, 1) * 255 - bytewise).max() <= 1.001


@pytest.mark.parametrize("name, args, named", CALLS, ids=IDS)
def test_tensors_equal_pictures(name, args, named):
    """On a uint8 tensor every function gives the pixels that it gives on the PIL image."""
    for given, picture in ((BYTES, PICTURES["RGB"]), (F.to_image(PICTURES["L"]), PICTURES["L"])):
        before = given.numpy().copy()
        made = getattr(F, name)(given, *args, **named)
        assert (made.numpy() == F.to_image(getattr(F, name)(picture, *args, **named)).numpy()).all()
        assert (given.numpy() == before).all()


@pytest.mark.torch
def test_dtypes_equal_torchvisions(v2):
    import torch
    rng = np.random.default_rng(0)
    kinds = ("uint8", "int16", "int32", "int64", "float32", "float64")
    for old in kinds:
        made = rng.integers(0, np.iinfo(old).max, (3, 4, 5), endpoint=True) if "int" in old else rng.random((3, 4, 5))
        array = made.astype(old)
        for new in kinds:
            if "float" in old and new in ("int32", "int64"):
                continue                                   # torchvision refuses some: float32 has not so many digits
            for scale in (True, False):
                ours = F.to_dtype(zoo.from_numpy(array), getattr(zoo, new), scale=scale).numpy()
                theirs = v2.functional.to_dtype(torch.from_numpy(array), getattr(torch, new), scale=scale).numpy()
                # torch multiplies by 1 / max where we divide: one rounding more.
                assert ours.dtype == theirs.dtype and np.allclose(ours, theirs, rtol=2e-7, atol=0), (old, new, scale)


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["RGB", "L", "1", "LA", "RGBA", "I;16", "F"])
def test_to_tensor_equals_torchvisions(mode, v2, torchvision):
    to_tensor = torchvision.transforms.functional.to_tensor              # v2's warns
    image = Image.fromarray(PIXELS).convert("L" if mode == "I;16" else mode)
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image).astype(np.uint16) * 255)
    theirs = v2.functional.pil_to_tensor(image).numpy()
    assert (F.pil_to_tensor(image).numpy() == theirs).all()
    if mode != "I;16":                                     # where torchvision reads uint16 as int16
        ours, theirs = F.to_tensor(image).numpy(), to_tensor(image).numpy()
        assert ours.dtype == theirs.dtype and (ours == theirs).all()
        assert (T.ToTensor()(np.asarray(image)).numpy() == ours).all() or mode == "1"
    if mode in ("RGB", "L", "LA", "RGBA"):
        back = F.to_pil_image(F.to_image(image))
        assert back.mode == mode and (np.asarray(back) == np.asarray(image)).all()
        theirs = v2.functional.to_pil_image(to_tensor(image))
        assert (np.asarray(F.to_pil_image(F.to_image(image).float() / 255)) == np.asarray(theirs)).all()


@pytest.mark.torch
def test_normalize_and_erase_equal_torchvisions(v2):
    import torch
    mean, std = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
    theirs = v2.functional.normalize(torch.from_numpy(FLOATS.numpy()), mean, std).numpy()
    assert np.abs(F.normalize(FLOATS, mean, std).numpy() - theirs).max() <= 1e-6
    written = FLOATS.clone()
    assert F.normalize(written, mean, std, inplace=True) is written and np.abs(written.numpy() - theirs).max() <= 1e-6
    v = torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1)
    for given in (BYTES, FLOATS):
        theirs = v2.functional.erase(torch.from_numpy(given.numpy()), 3, 4, 20, 30, v).numpy()
        assert (F.erase(given, 3, 4, 20, 30, zoo.from_numpy(v.numpy())).numpy() == theirs).all()
    theirs = v2.functional.erase(PICTURES["RGB"], 3, 4, 20, 30, v)
    assert (np.asarray(F.erase(PICTURES["RGB"], 3, 4, 20, 30, v.numpy())) == np.asarray(theirs)).all()


@pytest.mark.torch
@pytest.mark.parametrize("policy", ["RandAugment", "TrivialAugmentWide"])
def test_augmentations_are_torchvisions(policy, v2):
    """The same changes, at all steps the same magnitudes, and at some the same pixels."""
    theirs = getattr(v2, policy)()
    image = PICTURES["RGB"]
    space = augment.TRIVIAL if policy == "TrivialAugmentWide" else augment.rand_augment_space(image.height, image.width)
    assert list(space) == list(theirs._AUGMENTATION_SPACE)
    for name, (magnitudes, signed) in theirs._AUGMENTATION_SPACE.items():
        expected = magnitudes(31, image.height, image.width)
        ours = [augment.strength(space, name, step, 31, False) for step in range(31)]
        assert np.allclose(ours, 0 if expected is None else expected.numpy(), rtol=1e-6, atol=1e-6)
        assert augment.strength(space, name, 30, 31, True) == (-1 if signed else 1) * ours[30]
        for magnitude in [*ours[::10], *([-m for m in ours[::10]] if signed else [])]:
            made = augment.change(image, name, magnitude, "bilinear", 3)
            wanted = theirs._apply_image_or_video_transform(
                image, name, magnitude, v2.InterpolationMode.BILINEAR, {type(image): 3})
            assert (np.asarray(made) == np.asarray(wanted)).all(), (name, magnitude)


# -- random transforms

RANDOM = [
    T.RandomResizedCrop(16), T.RandomResizedCrop((9, 30), scale=(0.5, 0.6), ratio=(0.9, 1.1)), T.RandomHorizontalFlip(),
    T.RandomVerticalFlip(0.3), T.RandomCrop(20), T.RandomCrop((50, 70), padding=2, pad_if_needed=True, fill=5),
    T.RandomRotation(30), T.RandomRotation((10, 20), "bilinear", True), T.RandomGrayscale(0.5),
    T.ColorJitter(0.4, 0.4, (0.2, 0.9), 0.1), T.RandomErasing(1.0), T.RandomErasing(0.5, value="random"),
    T.RandomApply([T.RandomCrop(20), T.RandomRotation(9)], 0.6), T.RandAugment(), T.TrivialAugmentWide(),
]


def draws(transform, given, times: int, seed=0, offset=0) -> list[np.ndarray]:
    """Results for the samples 0, 1, ... of one pass."""
    made, streams = [], Streams(seed, offset)
    with streams.installed():
        for index in range(times):
            streams.begin(SAMPLE, place=index, index=index)
            made.append(np.asarray(F.to_image(transform(given)).numpy()))
    return made


def equal(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(x.shape == y.shape and (x == y).all() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("transform", RANDOM, ids=repr)
def test_the_samples_stream_decides(transform):
    """The same pass and sample give the same picture; others give others; the tensor gives the picture's pixels."""
    image = PICTURES["RGB"]
    first = draws(transform, image, 12)
    assert equal(first, draws(transform, image, 12)) and equal(first, draws(transform, BYTES, 12))
    assert not equal(first, draws(transform, image, 12, offset=1))
    assert not equal(first, draws(transform, image, 12, seed=1))
    assert len({(x.shape, x.tobytes()) for x in first}) > 1
    zoo.manual_seed(5)
    alone = transform(BYTES).numpy()
    zoo.manual_seed(5)
    assert (transform(BYTES).numpy() == alone).all()


@pytest.mark.torch
@pytest.mark.parametrize("transform", RANDOM[:2] + RANDOM[4:8] + RANDOM[9:12], ids=repr)
def test_parameters_through_torchvisions_transforms(transform, v2):
    """What torchvision's class makes of the parameters that ours drew."""
    import torch
    image = PICTURES["RGB"]
    settings = {k: v for k, v in vars(transform).items() if k not in ("antialias", "interpolation", "padding")}
    if "interpolation" in vars(transform):
        settings["interpolation"] = v2.InterpolationMode(transform.interpolation)
    theirs = getattr(v2, type(transform).__name__)(**settings)
    stream = np.random.default_rng(3)
    for _ in range(5):
        params = transform.make_params(image, stream)
        ours = transform.transform(image, **params)
        if isinstance(transform, T.ColorJitter):
            order = [("brightness", "contrast", "saturation", "hue").index(name) for name in params]
            params = {"fn_idx": order, **{f"{name}_factor": factor for name, factor in params.items()}}
        elif isinstance(transform, T.RandomResizedCrop):
            assert 0 <= params["top"] <= image.height - params["height"] and params["left"] >= 0
        elif isinstance(transform, T.RandomCrop):
            padding = list(params.pop("padding"))
            params |= dict(zip(("height", "width"), transform.size, strict=True))
            params |= {"needs_pad": any(padding), "padding": padding, "needs_crop": True}
        elif isinstance(transform, T.RandomErasing):
            params["v"] = torch.from_numpy(np.asarray(params["v"], np.float32))
        assert (np.asarray(ours) == np.asarray(theirs.transform(image, params))).all()


def test_crops_cover_what_they_promise():
    """Shares, ratios and places over 2,000 draws; a picture that no ratio fits gives its middle."""
    crop, stream = T.RandomResizedCrop(8, scale=(0.2, 0.5), ratio=(0.5, 2.0)), np.random.default_rng(0)
    given = zoo.zeros(3, 300, 400)
    found = [crop.make_params(given, stream) for _ in range(2000)]
    shares = np.array([p["height"] * p["width"] / 120000 for p in found])
    ratios = np.log2([p["width"] / p["height"] for p in found])
    assert 0.198 < shares.min() < 0.21 and 0.49 < shares.max() < 0.502 and abs(shares.mean() - 0.35) < 0.01
    assert -1.02 < ratios.min() < -0.95 and 0.95 < ratios.max() < 1.02 and abs(ratios.mean()) < 0.06
    assert min(p["left"] for p in found) == 0 and max(p["left"] + p["width"] for p in found) == 400
    long = T.RandomResizedCrop(8, scale=(1.0, 1.0), ratio=(0.9, 1.0))
    assert long.make_params(zoo.zeros(1, 10, 100), stream) == {"top": 0, "left": 45, "height": 10, "width": 10}
    assert long.make_params(zoo.zeros(1, 100, 9), stream) == {"top": 45, "left": 0, "height": 10, "width": 9}


def test_probabilities():
    marked = zoo.from_numpy(np.array([[[0, 1], [2, 3]]], np.uint8))
    for transform, expected in ((T.RandomHorizontalFlip(0.2), 0.2), (T.RandomVerticalFlip(0.8), 0.8),
                                (T.RandomApply([T.Lambda(F.invert)], 0.5), 0.5)):
        changed = [not (x == marked.numpy()).all() for x in draws(transform, marked, 2000)]
        assert abs(np.mean(changed) - expected) < 0.035          # 3 standard deviations
    assert equal(draws(T.RandomHorizontalFlip(0.0), marked, 20), [marked.numpy()] * 20)
    assert equal(draws(T.RandomHorizontalFlip(1.0), marked, 20), [marked.numpy()[..., ::-1]] * 20)


# -- batches

@pytest.mark.torch
@pytest.mark.parametrize("kind", ["MixUp", "CutMix"])
def test_mixed_batches_equal_torchvisions(kind, v2):
    import torch
    rng = np.random.default_rng(0)
    images, labels = rng.random((5, 3, 12, 10)).astype(np.float32), np.array([0, 3, 1, 2, 3])
    theirs = getattr(v2, kind)(num_classes=4)
    for seed in range(4):
        zoo.manual_seed(seed)
        ours, targets = getattr(T, kind)(num_classes=4)(zoo.from_numpy(images), zoo.from_numpy(labels))
        mixed = lone_draws(kind, seed, (12, 10))
        x, y = torch.from_numpy(images), torch.from_numpy(labels)
        params = {"labels": y, "batch_size": 5, **mixed}
        assert np.abs(ours.numpy() - theirs.transform(x, params).numpy()).max() <= 1e-6
        assert np.abs(targets.numpy() - theirs.transform(y, params).numpy()).max() <= 1e-6
        assert targets.shape == (5, 4) and np.allclose(targets.numpy().sum(1), 1)
        zoo.manual_seed(seed)
        soft = getattr(T, kind)()(zoo.from_numpy(images), zoo.nn.functional.one_hot(zoo.from_numpy(labels), 4))[1]
        assert (soft.numpy() == targets.numpy()).all()


def lone_draws(kind: str, seed: int, size: tuple[int, int]) -> dict:
    """What torchvision would have drawn, from the numbers that ours drew."""
    from zoo.data.seeding import sample_stream
    zoo.manual_seed(seed)
    stream = sample_stream()
    lam = float(stream.beta(1.0, 1.0))
    if kind == "MixUp":
        return {"lam": lam}
    y, x = int(stream.integers(size[0])), int(stream.integers(size[1]))
    dy, dx = (int(0.5 * np.sqrt(1 - lam) * side) for side in size)
    box = max(x - dx, 0), max(y - dy, 0), min(x + dx, size[1]), min(y + dy, size[0])
    return {"box": box, "lam_adjusted": 1 - (box[2] - box[0]) * (box[3] - box[1]) / (size[0] * size[1])}


# -- the whole, and what is refused

def test_compose_and_labels_pass_through():
    steps = [T.Resize(20), T.CenterCrop(16), T.ToImage(), T.ToDtype(zoo.float32, scale=True)]
    chain = T.Compose([*steps, lambda x: 2 * x])
    with pytest.raises(TypeError):
        chain(PICTURES["RGB"], 3)                            # a plain function takes a picture alone
    alone = chain(PICTURES["RGB"])
    assert alone.shape == (3, 16, 16) and alone.dtype == zoo.float32
    made, label = T.Compose(steps)(PICTURES["RGB"], 3)
    assert label == 3 and (2 * made == alone).all()
    assert repr(chain).startswith("Compose(\n    Resize(size=20, interpolation=bilinear, max_size=None")
    batch = T.Compose([T.MixUp(num_classes=3)])(zoo.rand(2, 3, 4, 4), zoo.tensor([0, 2]))
    assert [tuple(x.shape) for x in batch] == [(2, 3, 4, 4), (2, 3)]


def test_train_preset():
    for policy in (None, "ra", "ta_wide"):
        preset = T.ClassificationPresetTrain(crop_size=24, auto_augment_policy=policy, random_erase_prob=0.5)
        made = draws(preset, PICTURES["RGB"], 6)
        assert {x.shape for x in made} == {(3, 24, 24)} and {x.dtype.name for x in made} == {"float32"}
        assert equal(made, draws(preset, PICTURES["RGB"], 6)) and not equal(made[:1], made[1:2])


@pytest.mark.torch
def test_arguments_have_torchvisions_names(v2):
    """Same parameters in the same order and with the same defaults, up to types."""
    plain = (int, float, bool, str, type(None))
    names = """Resize CenterCrop Pad RandomResizedCrop RandomCrop RandomRotation RandomHorizontalFlip RandomVerticalFlip
        ColorJitter Grayscale RandomGrayscale RandomErasing RandAugment TrivialAugmentWide Normalize Lambda Compose
        ToDtype MixUp CutMix ToPILImage"""
    for name in names.split():
        ours, theirs = (inspect.signature(getattr(m, name)).parameters for m in (T, v2))
        assert list(ours) == [p for p in theirs if p not in ("types", "labels_getter")], name
        for key, parameter in ours.items():
            other = theirs[key].default
            if isinstance(other, plain) and isinstance(parameter.default, plain):
                assert parameter.default == getattr(other, "value", other), (name, key)
    for name in dict.fromkeys(name for name, _, _ in CALLS):
        ours, theirs = (list(inspect.signature(getattr(m, name)).parameters) for m in (F, v2.functional))
        assert ours == theirs[:len(ours)], name


@pytest.mark.parametrize("call, error, words", [
    (lambda: F.resize(BYTES, 0), ValueError, "resize: wants a size of at least 1"),
    (lambda: F.resize(BYTES, [1, 2, 3]), ValueError, "resize: wants a size"),
    (lambda: F.resize(BYTES, 2.5), ValueError, "resize: wants a size .*got 2.5"),
    (lambda: F.resize(BYTES, None), ValueError, "resize: wants size or max_size"),
    (lambda: F.resize(zoo.zeros(3, 0, 4), 5), ValueError, "at least one pixel, got 0 x 4"),
    (lambda: F.resize(BYTES, 5, "spline"), ValueError, "wants an interpolation of nearest, .*got 'spline'"),
    (lambda: F.resize(BYTES, 5, antialias=False), ValueError, "antialias=False is not offered"),
    (lambda: F.resize(BYTES, 5, max_size=4), ValueError, "wants max_size above size, got 4 and 5"),
    (lambda: F.resize(BYTES, [5, 5], max_size=9), ValueError, "max_size only with a size of one number"),
    (lambda: F.resize("photo.jpg", 5), TypeError, "get_size: wants a PIL image or a tensor on the CPU, got str"),
    (lambda: F.pad(BYTES, [1, 2, 3]), ValueError, "pad: wants 1, 2 or 4 margins"),
    (lambda: F.pad(BYTES, 1, padding_mode="wrap"), ValueError, "pad: wants padding_mode constant, .*'wrap'"),
    (lambda: F.affine(BYTES, 0, [0, 0], 0, [0, 0]), ValueError, "affine: wants a scale above 0"),
    (lambda: F.adjust_hue(BYTES, 0.6), ValueError, r"hue_factor in \[-0.5, 0.5\], got 0.6"),
    (lambda: F.adjust_contrast(BYTES, -1), ValueError, "adjust_contrast: wants a factor of at least 0"),
    (lambda: F.rotate(FLOATS > 1, 3), TypeError, "rotate: wants integers or floats, got bool"),
    (lambda: F.rgb_to_grayscale(zoo.zeros(4, 2, 2)), ValueError, "wants 1 or 3 channels"),
    (lambda: F.invert(FLOATS), TypeError, "invert: wants a PIL image or a uint8 tensor .*put it before ToTensor"),
    (lambda: F.normalize(BYTES, [0], [1]), TypeError, "normalize: wants a floating tensor, got uint8"),
    (lambda: F.normalize(FLOATS, [0, 0], [1, 1]), ValueError, "mean and std for each of 3 channels, got 2 and 2"),
    (lambda: F.normalize(FLOATS, [0], [0]), ValueError, "wants std other than 0"),
    (lambda: F.to_tensor(FLOATS), TypeError, "to_tensor: wants a PIL image or an ndarray, got Tensor"),
    (lambda: F.to_image(np.zeros(3)), ValueError, r"to_image: wants an ndarray \(H, W\)"),
    (lambda: F.to_image(3), TypeError, "to_image: wants a PIL image, an ndarray or a tensor, got int"),
    (lambda: F.pil_to_tensor(3), TypeError, "pil_to_tensor: wants a PIL image, got int"),
    (lambda: F.to_pil_image(zoo.zeros(5, 2, 2)), ValueError, "to_pil_image: wants .* got shape"),
    (lambda: T.Compose(T.ToTensor()), TypeError, "Compose: wants a sequence of functions"),
    (lambda: T.RandomCrop(100)(BYTES), ValueError, r"RandomCrop: wants at least \(100, 100\) pixels"),
    (lambda: T.RandomHorizontalFlip(1.5), ValueError, r"p in \[0, 1\], got 1.5"),
    (lambda: T.RandomErasing(value="zeros"), ValueError, "numbers or 'random', got 'zeros'"),
    (lambda: T.RandomErasing(1.0, value=[1, 2])(FLOATS), ValueError, "wants 1 or 3 values"),
    (lambda: T.ColorJitter(hue=0.7), ValueError, r"ColorJitter: wants hue .*\[-0.5, 0.5\]"),
    (lambda: T.ColorJitter(brightness=-1), ValueError, "wants brightness of at least 0"),
    (lambda: T.RandomResizedCrop(5, scale=(1, 0.5)), ValueError, "wants scale as two numbers in order"),
    (lambda: T.RandAugment(magnitude=31), ValueError, "a magnitude below num_magnitude_bins"),
    (lambda: T.MixUp()(zoo.zeros(2, 1, 1, 1), zoo.tensor([0, 1])), ValueError, "MixUp: wants num_classes"),
    (lambda: T.CutMix(num_classes=2)(zoo.zeros(2, 1, 1, 1), zoo.tensor([0])), ValueError, "CutMix: wants images"),
    (lambda: T.MixUp(alpha=0.0), ValueError, "wants alpha above 0"),
    (lambda: T.ClassificationPresetTrain(crop_size=8, auto_augment_policy="aa"), ValueError, "got 'aa'"),
])
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()
