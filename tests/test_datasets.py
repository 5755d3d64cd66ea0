"""zoo.data.datasets: torchvision's arguments, files and samples; broken and hostile files are refused."""

import functools
import gzip
import hashlib
import io
import pickle
import struct
import tarfile

import numpy as np
import pytest

import zoo
from zoo.data import DataLoader
from zoo.data import transforms as T  # noqa: N812
from zoo.data.datasets import (
    CIFAR10,
    CIFAR100,
    MNIST,
    CSVDataset,
    DatasetFolder,
    FashionMNIST,
    ImageFolder,
    ParquetImages,
    TextFolder,
    parse_idx,
    pil_loader,
)

SOME = np.random.default_rng(0)


@functools.cache
def torchvision():
    pytest.importorskip("torch")
    import tests.yardsticks.torchvision_shim  # noqa: F401

    return pytest.importorskip("torchvision")


def pixels(count, *shape):
    return SOME.integers(0, 256, (count, *shape), np.uint8)


# -- folders


@pytest.fixture
def pictures(tmp_path):
    """Pictures of several kinds in three classes, and files that are none."""
    from PIL import Image

    kinds = {"b/1.JPG": "RGB", "a/deep/2.png": "RGBA", "a/1.png": "L", "c/x.bmp": "RGB", "c/a.jpeg": "L"}
    for k, (name, mode) in enumerate(kinds.items()):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels(1, 300 + k, 400, 3)[0]).convert(mode).save(path)
    (tmp_path / "a" / "notes.txt").write_text("no picture")
    return tmp_path


@pytest.mark.torch
def test_image_folder_is_torchvisions(pictures):
    theirs = torchvision().datasets.ImageFolder(pictures)
    ours = ImageFolder(pictures)
    assert [str(p) for p, _ in ours.samples] == [p for p, _ in theirs.samples] and ours.targets == theirs.targets
    assert ours.classes == theirs.classes == ["a", "b", "c"] and ours.class_to_idx == theirs.class_to_idx
    for (x, k), (y, n) in zip(ours, theirs, strict=True):
        assert k == n and x.mode == y.mode and x.tobytes() == y.tobytes()


def test_image_folder_in_a_loader(pictures):
    """Random transforms, JPEGs and workers: the same bytes as without workers."""
    transform = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()])
    batches = []
    for workers in (0, 2):
        zoo.manual_seed(4)
        loader = DataLoader(ImageFolder(pictures, transform), 2, shuffle=True, num_workers=workers)
        batches.append([(x.numpy().tobytes(), y.tolist()) for x, y in loader])
    assert batches[0] == batches[1] and len(batches[0]) == 3


def test_draft(pictures):
    assert ImageFolder(pictures, draft=100)[2][0].size == (200, 150)
    full, small = (np.asarray(pil_loader(pictures / "b" / "1.JPG", d).resize((40, 30))) for d in (None, 100))
    assert np.abs(full.astype(int) - small).mean() < 12
    with pytest.raises(ValueError, match="draft"):
        ImageFolder(pictures, loader=str, draft=3)


def test_folder_errors_and_options(pictures, tmp_path):
    ours = DatasetFolder(pictures, str, is_valid_file=lambda p: p.endswith("1.png"), allow_empty=True,
                         target_transform=lambda k: -k)
    assert [(p[-7:], k) for p, k in ours] == [("a/1.png", 0)] and len(ours.classes) == 3
    with pytest.raises(FileNotFoundError, match="none in b, c"):
        DatasetFolder(pictures, str, extensions=(".txt",))
    with pytest.raises(ValueError, match="both or neither"):
        DatasetFolder(pictures, str)
    with pytest.raises(FileNotFoundError, match="a folder for each class"):
        ImageFolder(pictures / "b")


# -- MNIST


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_mnist(folder, packed):
    """Files in MNIST's form with 7 and 3 pictures."""
    folder.mkdir(parents=True)
    arrays = {"train-images-idx3": pixels(7, 28, 28), "train-labels-idx1": pixels(7) % 10,
              "t10k-images-idx3": pixels(3, 28, 28), "t10k-labels-idx1": pixels(3) % 10}
    for name, array in arrays.items():
        data = idx(array)
        (folder / f"{name}-ubyte{'.gz' if packed else ''}").write_bytes(gzip.compress(data) if packed else data)
    return arrays


@pytest.mark.torch
@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST"])
def test_mnist_is_torchvisions(name, tmp_path):
    theirs, ours = getattr(torchvision().datasets, name), {"MNIST": MNIST, "FashionMNIST": FashionMNIST}[name]
    assert dict(theirs.resources) == ours.md5s and theirs.classes == ours.classes
    write_mnist(tmp_path / name / "raw", packed=False)
    for train in (True, False):
        mine, other = ours(tmp_path, train), theirs(tmp_path, train)
        assert len(mine) == len(other) == (7 if train else 3) and mine.class_to_idx == other.class_to_idx
        assert mine.data.numpy().tobytes() == other.data.numpy().tobytes()
        assert mine.targets.tolist() == other.targets.tolist()
        for (x, k), (y, n) in zip((mine[i] for i in range(3)), (other[i] for i in range(3)), strict=True):
            assert k == n and x.mode == y.mode == "L" and x.tobytes() == y.tobytes()


def test_mnist_downloads(tmp_path):
    arrays = write_mnist(tmp_path / "source", packed=True)
    sums = {p.name: hashlib.md5(p.read_bytes()).hexdigest() for p in (tmp_path / "source").iterdir()}
    kind = type("MNIST", (MNIST,), {"url": f"{tmp_path}/source/", "md5s": sums})
    with pytest.raises(FileNotFoundError, match="download=True"):
        kind(tmp_path)
    for _ in range(2):
        data = kind(tmp_path, download=True, transform=T.ToTensor(), target_transform=str)
        assert data[2][0].shape == (1, 28, 28) and data[2][1] == str(arrays["train-labels-idx1"][2])
    wrong = type("MNIST", (MNIST,), {"url": kind.url, "md5s": {n: "0" * 32 for n in sums}})
    with pytest.raises(ValueError, match="md5 0000"):
        wrong(tmp_path, download=True)


def test_idx_errors():
    good = idx(pixels(2, 3))
    assert parse_idx(bytes([0, 0, 11, 1, 0, 0, 0, 1, 1, 2])).tolist() == [258]
    for bad in (b"", b"PK\3\4", good[:-1], good + b"x", good[:7], bytes([0, 0, 7]) + good[3:]):
        with pytest.raises(ValueError, match="parse_idx"):
            parse_idx(bad)


# -- CIFAR


def python2_pickle(items):
    """A dictionary as cPickle of Python 2 wrote it with protocol 2: texts as byte strings, arrays by _reconstruct."""

    def write(x):
        if isinstance(x, np.ndarray):
            dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
            shape = b"(" + b"".join(write(n) for n in x.shape) + b"t"
            data = b"T" + struct.pack("<i", x.nbytes) + x.tobytes()
            return (b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01" + shape + dtype
                    + b"\x89" + data + b"tb")
        if isinstance(x, str):
            return b"U" + bytes([len(x)]) + x.encode()
        if isinstance(x, int):
            return b"J" + struct.pack("<i", x)
        return b"](" + b"".join(write(v) for v in x) + b"e"

    return b"\x80\x02}(" + b"".join(write(k) + write(v) for k, v in items.items()) + b"u."


def write_cifar(root, kind):
    folder = root / kind.base_folder
    folder.mkdir(parents=True)
    classes = [f"class {k}" for k in range(10)]
    (folder / kind.meta_file).write_bytes(python2_pickle({kind.names_key: classes}))
    for k, name in enumerate([*kind.train_files, *kind.test_files]):
        batch = {"data": pixels(4, 3072), kind.label_key: [(k + j) % 10 for j in range(4)], "batch_label": name}
        (folder / name).write_bytes(python2_pickle(batch))


@pytest.mark.torch
@pytest.mark.parametrize("kind", [CIFAR10, CIFAR100])
def test_cifar_is_torchvisions(kind, tmp_path, monkeypatch):
    theirs = getattr(torchvision().datasets, kind.__name__)
    assert (theirs.url, theirs.tgz_md5, theirs.base_folder) == (kind.url, kind.md5, kind.base_folder)
    assert [n for n, _ in theirs.train_list] == kind.train_files and [n for n, _ in theirs.test_list] == kind.test_files
    write_cifar(tmp_path, kind)
    monkeypatch.setattr(torchvision().datasets.cifar, "check_integrity", lambda *_: True)
    for train in (True, False):
        mine, other = kind(tmp_path, train), theirs(tmp_path, train)
        assert mine.classes == other.classes and mine.class_to_idx == other.class_to_idx
        assert mine.targets == other.targets and (mine.data == other.data).all()
        assert mine[1][0].tobytes() == other[1][0].tobytes() and mine[1][1] == other[1][1]


def test_cifar_downloads(tmp_path):
    write_cifar(tmp_path / "made", CIFAR10)
    archive = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "made" / CIFAR10.base_folder, CIFAR10.base_folder)
        evil = tarfile.TarInfo("../evil")
        tar.addfile(evil, io.BytesIO())
    md5 = hashlib.md5(archive.read_bytes()).hexdigest()
    kind = type("CIFAR10", (CIFAR10,), {"url": str(archive), "md5": md5})
    for _ in range(2):
        assert len(kind(tmp_path / "root", download=True)) == 20
    assert not (tmp_path / "evil").exists()
    with pytest.raises(FileNotFoundError, match="download=True"):
        CIFAR100(tmp_path / "root")


class Hostile:
    def __reduce__(self):
        return print, ("this file runs code",)


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps({"data": Hostile()}, 2),
        pickle.dumps([1], 2),
        b"\x80\x02}.",
        b"",
        python2_pickle({"data": pixels(1, 3072), "labels": [1]})[:-40],
        python2_pickle({"data": "no array", "labels": [1]}),
        b"\x80\x02}U\x01xK\x01K\x02bs.",
    ],
)
def test_broken_and_hostile_files(data, tmp_path, capsys):
    write_cifar(tmp_path, CIFAR10)
    (tmp_path / CIFAR10.base_folder / "test_batch").write_bytes(data)
    with pytest.raises(ValueError, match="CIFAR"):
        CIFAR10(tmp_path, train=False)
    assert not capsys.readouterr().out


# -- tables and texts


def test_csv(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b,kind\n1,"2,5",x\n3,4,y\n')
    data = CSVDataset(path, "kind", target_transform=str.upper)
    assert len(data) == 2 and data[0] == (["1", "2,5"], "X")
    assert CSVDataset(path, columns=["b"])[1] == ["4"]
    with pytest.raises(ValueError, match="'size'"):
        CSVDataset(path, "size")
    path.write_text("a,b\n1\n")
    with pytest.raises(ValueError, match="row 0 has 1"):
        CSVDataset(path)


def test_text_folder(tmp_path):
    for name, text in (("bad", b"no \xff"), ("good", "ja, schön".encode())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_bytes(text)
    assert list(TextFolder(tmp_path)) == [("no �", 0), ("ja, schön", 1)]


@pytest.mark.parametrize("struct_column", [True, False])
def test_parquet(struct_column, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from PIL import Image
    from pyarrow import parquet  # pyright: ignore[reportMissingImports]

    def png(array):
        buffer = io.BytesIO()
        Image.fromarray(array).save(buffer, "png")
        return buffer.getvalue()

    arrays = pixels(7, 5, 4, 3)
    stored = [{"bytes": png(a), "path": None} if struct_column else png(a) for a in arrays]
    for part in (slice(0, 5), slice(5, 7)):
        table = arrow.table({"image": stored[part], "label": list(range(7))[part]})
        parquet.write_table(table, tmp_path / f"{part.start}.parquet", row_group_size=2)
    data = ParquetImages([tmp_path / "0.parquet", tmp_path / "5.parquet"], transform=np.asarray)
    assert len(data) == 7
    for k in (6, 0, 3, 4, 5, 1, 2, -1):
        assert (data[k][0] == arrays[k]).all() and data[k][1] == k % 7
    assert (ParquetImages(tmp_path / "5.parquet", label=None, transform=np.asarray)[1] == arrays[6]).all()
    with pytest.raises(IndexError, match="got 7"):
        data[7]
    with pytest.raises(ValueError, match="'colour'"):
        ParquetImages(tmp_path / "0.parquet", label="colour")
