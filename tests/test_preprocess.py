"""zoo.models.preprocess: torchvision's and timm's eval transforms on pictures of every kind, and what else it takes."""
import io

import numpy as np
import pytest
from PIL import Image

import zoo
from zoo.models import weights
from zoo.models.preprocess import Preprocess
from zoo.models.weights import Preprocessing

# One step of 8 bits; results are normalised, so it is divided by the smallest std.
STEP = 1 / 255 / min(weights.IMAGENET_STD)
SIZES = ((640, 480), (481, 641), (224, 224), (256, 256), (223, 500), (100, 90), (37, 51), (1, 1), (1500, 40), (4, 700))
MODES = ("RGB", "L", "RGBA", "P", "LA", "1", "CMYK", "I;16", "exif", "transparent")


def photo(size: tuple[int, int], seed: int) -> np.ndarray:
    """Smooth colours with edges and noise, (H, W, 3) uint8."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0 : size[1], 0 : size[0]]
    waves = [np.sin(x / rng.uniform(3, 60) + y / rng.uniform(3, 60) + rng.uniform(0, 6)) for _ in range(3)]
    pixels = 110 + 80 * np.stack(waves, -1) + 40 * ((x // 20 + y // 15) % 2)[..., None]
    return np.clip(pixels + rng.normal(0, 12, pixels.shape), 0, 255).astype(np.uint8)


def picture(kind: str, size: tuple[int, int], seed: int) -> Image.Image:
    rgb = Image.fromarray(photo(size, seed))
    if kind == "I;16":
        return Image.fromarray(np.asarray(rgb.convert("L")).astype(np.uint16) * 257)
    if kind == "exif":
        exif = Image.Exif()
        exif[0x0112] = 6                              # the camera was held upright
        return reopened(rgb, "JPEG", exif=exif, quality=95)
    if kind == "transparent":
        return reopened(rgb.quantize(32), "PNG", transparency=bytes(range(0, 256, 8)))
    if kind in ("RGBA", "LA"):
        rgb.putalpha(Image.linear_gradient("L").resize(size))
    return rgb.convert(kind)


def reopened(image: Image.Image, form: str, **options) -> Image.Image:
    return Image.open(io.BytesIO(encoded(image, form, **options)))


def encoded(image: Image.Image, form: str = "PNG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


# 50 of the 100 combinations; every size and every kind five times.
PICTURES = [(kind, size) for i, kind in enumerate(MODES) for j, size in enumerate(SIZES) if (i + j) % 2 == 0]


def as_rgb(kind: str, image: Image.Image) -> Image.Image:
    """What users of torchvision do before its transform; 16 bits, which PIL's convert would cut off, are scaled."""
    if kind == "I;16":
        return Image.fromarray((np.asarray(image) // 257).astype(np.uint8)).convert("RGB")
    return (image.convert("RGBA") if kind == "transparent" else image).convert("RGB")


def test_there_are_fifty_pictures():
    assert len(PICTURES) == 50
    assert {kind for kind, _ in PICTURES} == set(MODES) and {size for _, size in PICTURES} == set(SIZES)


@pytest.mark.torch
@pytest.mark.parametrize("number", range(len(PICTURES)))
def test_equals_torchvision(number, torchvision):
    """Both of torchvision's sizes, bilinear and bicubic, its own preset as the reference."""
    from torchvision.transforms._presets import ImageClassification
    kind, size = PICTURES[number]
    image = picture(kind, size, number)
    for resize, interpolation in ((256, "bilinear"), (232, "bicubic")):
        theirs = torchvision.transforms.InterpolationMode(interpolation)
        reference = ImageClassification(crop_size=224, resize_size=resize, interpolation=theirs)
        expected = reference(as_rgb(kind, image)).numpy()
        got = Preprocess(Preprocessing(resize, 224, interpolation))(image)
        assert got.dtype == zoo.float32 and got.shape == (3, 224, 224)
        assert np.abs(got.numpy() - expected).max() <= 1e-6          # the same pixels


@pytest.mark.torch
def test_every_row_equals_timms_transform(torchvision):
    """The transform that timm itself builds for a row, at the resolution of the row's first accuracy."""
    from timm import get_pretrained_cfg
    from timm.data import create_transform, resolve_data_config
    image = Image.fromarray(photo((500, 375), 1))
    made: dict = {}
    for row in weights.rows("*_in1k"):
        config = get_pretrained_cfg(row.name).to_dict()
        # Trained small, tested at 224: there timm's config has the size of the accuracies as test_input_size.
        data = resolve_data_config({}, pretrained_cfg=config, use_test_size=config["input_size"][-1] < 224)
        settings = (data["input_size"], data["crop_pct"], data["interpolation"], data["mean"], data["std"])
        key = row.preprocessing, settings
        if key not in made:
            made[key] = Preprocess(row.preprocessing)(image).numpy() - create_transform(**data)(image).numpy()
        assert np.abs(made[key]).max() <= 1e-6, row.name
        assert row.licence == config["license"], row.name
    assert len(made) == 4


def test_sources_of_one_picture(tmp_path):
    """A PIL image, a path, bytes, an open file, arrays and tensors of the same picture give the same numbers."""
    image = Image.fromarray(photo((300, 260), 2))
    preprocess = Preprocess(Preprocessing())
    expected = preprocess(image).numpy()
    path = tmp_path / "photo.png"
    image.save(path)
    with open(path, "rb") as file:
        for source in (path, str(path), path.read_bytes(), bytearray(path.read_bytes()), file):
            assert (preprocess(source).numpy() == expected).all()
    pixels = np.asarray(image)
    for source in (pixels, zoo.from_numpy(pixels.transpose(2, 0, 1).copy())):
        assert (preprocess(source).numpy() == expected).all()
    # Floats are resized as floats: up to half a step from the rounded bytes, in each of PIL's two passes.
    for floats in (pixels / 255, pixels.astype(np.float32) / 255, (pixels.astype(np.uint16) * 257)):
        assert np.abs(preprocess(floats).numpy() - expected).max() <= STEP * 1.001
    moving = tmp_path / "two.gif"
    image.save(moving, save_all=True, append_images=[image.rotate(180)])
    assert (preprocess(moving).numpy() == preprocess(Image.open(io.BytesIO(moving.read_bytes()))).numpy()).all()
    batch = preprocess([image, path, pixels])
    assert batch.shape == (3, 3, 224, 224) and (batch.numpy() == expected).all()


def test_alpha_and_grey_of_arrays():
    rgb = photo((240, 230), 3)
    alpha, grey = np.full((230, 240, 1), 7, np.uint8), np.asarray(Image.fromarray(rgb).convert("L"))
    preprocess = Preprocess(Preprocessing())
    as_grey = Preprocess(Preprocessing(8, 8, mean=(0.0,), std=(1.0,), channels=1))
    with_alpha = np.concatenate([rgb, alpha], 2)
    assert (preprocess(with_alpha).numpy() == preprocess(rgb).numpy()).all()
    assert np.abs(preprocess(with_alpha / 255).numpy() - preprocess(rgb).numpy()).max() <= STEP * 1.001
    assert (preprocess(grey).numpy() == preprocess(grey[..., None]).numpy()).all()
    assert (preprocess(np.stack([grey, alpha[..., 0]], 2)).numpy() == preprocess(grey).numpy()).all()
    assert as_grey(rgb).shape == (1, 8, 8) and (as_grey(rgb).numpy() == as_grey(grey).numpy()).all()
    assert np.abs(as_grey(rgb / 255).numpy() - as_grey(grey).numpy()).max() <= 1.001 / 255
    bitmap = grey > 128
    assert np.abs(preprocess(bitmap).numpy() - preprocess(bitmap * np.uint8(255)).numpy()).max() <= STEP * 1.001


def test_orientation_only_on_request():
    image = picture("exif", (300, 260), 4)
    preprocess = Preprocess(Preprocessing())
    file = encoded(image, "JPEG", exif=image.getexif(), quality=100)
    upright = Image.open(io.BytesIO(file)).transpose(Image.Transpose.ROTATE_270)
    assert (preprocess(file, apply_exif_orientation=True).numpy() == preprocess(upright).numpy()).all()
    assert not (preprocess(file).numpy() == preprocess(upright).numpy()).all()


def test_sixteen_bits_are_scaled():
    wide = np.linspace(0, 65535, 256 * 256).astype(np.uint16).reshape(256, 256)
    preprocess = Preprocess(Preprocessing(256, 256, mean=(0.0,) * 3, std=(1.0,) * 3))
    for image in (Image.fromarray(wide), Image.fromarray(wide.astype(np.int32)), encoded(Image.fromarray(wide))):
        assert np.abs(preprocess(image).numpy() - wide / 65535).max() <= 0.501 / 255
    assert np.abs(preprocess(wide).numpy() - wide / 65535).max() <= 1e-6


def test_a_very_long_picture_needs_little_memory():
    """torchvision's way would make 256 x 2,560,000 pixels, 2 GB, of this one."""
    import tracemalloc
    image = Image.new("RGB", (20000, 2), (255, 0, 0))
    tracemalloc.start()
    made = Preprocess(Preprocessing(mean=(0.0,) * 3, std=(1.0,) * 3))(image)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    assert (made.numpy() == np.array([1, 0, 0]).reshape(3, 1, 1)).all()


@pytest.mark.parametrize("size", [(900, 700), (37, 51), (1500, 40), (4, 700)])
def test_the_box_of_a_very_long_picture(size, monkeypatch):
    image, preprocess = Image.fromarray(photo(size, 6)), Preprocess(Preprocessing(235, 224, "bicubic"))
    whole = preprocess(image).numpy()
    monkeypatch.setattr("zoo.data.transforms.geometry.LARGEST", 0)
    assert np.abs(preprocess(image).numpy() - whole).max() <= 2.001 * STEP


@pytest.mark.parametrize("wrong, error, words", [
    (3, TypeError, "wants a PIL image, a path"),
    (b"no picture", ValueError, "a picture that PIL reads, got 10 bytes"),
    ([], ValueError, "at least one picture"),
    (np.zeros((4, 4, 5), np.uint8), ValueError, r"1 to 4 channels, got shape \(4, 4, 5\)"),
    (np.zeros((0, 4), np.uint8), ValueError, "1 to 4 channels"),
    (np.zeros((2, 3, 4, 4)), ValueError, r"\(H, W\) or \(H, W, C\)"),
    (np.full((4, 4), 200.0), ValueError, r"floats in \[0, 1\], got 200.0"),
    (np.full((4, 4), np.nan), ValueError, r"floats in \[0, 1\], got nan"),
    (np.zeros((4, 4), np.int64), TypeError, "wants uint8, uint16, bool or floats"),
    ("/nowhere/photo.jpg", FileNotFoundError, "photo.jpg"),
])
def test_wrong_pictures(wrong, error, words):
    with pytest.raises(error, match=words):
        Preprocess(Preprocessing())(wrong)


def test_broken_files(tmp_path):
    whole = encoded(Image.fromarray(photo((300, 260), 5)), "JPEG")
    for data in (whole[: len(whole) // 2], encoded(Image.fromarray(photo((300, 260), 5)))[:2000]):
        with pytest.raises(ValueError, match="cannot decode the picture in .*bytes"):
            Preprocess(Preprocessing())(data)
    image = Image.new("1", (20000, 20000))                # PIL's limit against files that unpack to gigabytes
    with pytest.raises(ValueError, match="decompression bomb"):
        Preprocess(Preprocessing())(encoded(image, compress_level=1))
    with pytest.raises(ValueError, match="1 or 3 channels, got 2"):
        Preprocess(Preprocessing(channels=2))
