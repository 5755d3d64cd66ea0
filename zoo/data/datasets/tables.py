"""Rows of tables and lines of texts: CSV files, folders of texts, and parquet files with pictures."""

import csv
import io
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from zoo.data.dataset import Dataset
from zoo.data.datasets.folder import DatasetFolder


class CSVDataset(Dataset):
    """Rows of a CSV file with names in its first line: (features, target) or, without a target, features.

    Args:
        path: of the file, in UTF-8.
        target: the column of the target; None for none.
        columns: the columns of the features (default: all others).
        transform: of the features, a list of texts. target_transform: of the target, a text.

    Raises:
        ValueError: a column that is not there, or a row with another number of columns.

    Example:
        >>> from zoo.data.datasets import CSVDataset
        >>> with open("iris.csv", "w") as file:
        ...     _ = file.write("length,width,kind\\n5.1,3.5,setosa\\n")
        >>> CSVDataset("iris.csv", "kind", transform=lambda row: [float(x) for x in row])[0]
        ([5.1, 3.5], 'setosa')
    """

    def __init__(self, path: str | os.PathLike, target: str | None = None, columns: Sequence[str] | None = None,
                 transform: Callable | None = None, target_transform: Callable | None = None):
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            header, self.rows = next(reader, []), list(reader)
        self.columns = [name for name in header if name != target] if columns is None else list(columns)
        wanted = self.columns if target is None else [*self.columns, target]
        if unknown := [name for name in wanted if name not in header]:
            raise ValueError(f"CSVDataset: wants the columns {unknown}, {path} has {header}")
        for k, row in enumerate(self.rows):
            if len(row) != len(header):
                raise ValueError(f"CSVDataset: wants {len(header)} columns, row {k} has {len(row)}")
        self.places = [header.index(name) for name in self.columns]
        self.target_place = None if target is None else header.index(target)
        self.transform, self.target_transform = transform, target_transform

    def __getitem__(self, index: int) -> Any:
        row = self.rows[index]
        features = [row[k] for k in self.places]
        features = features if self.transform is None else self.transform(features)
        if self.target_place is None:
            return features
        target = row[self.target_place]
        return features, target if self.target_transform is None else self.target_transform(target)

    def __len__(self) -> int:
        return len(self.rows)


def read_text(path: str | os.PathLike) -> str:
    """The text of a file in UTF-8; a byte that is none becomes U+FFFD."""
    return Path(path).read_text(encoding="utf-8", errors="replace")


class TextFolder(DatasetFolder):
    """root/class/.../name.txt: the text and the number of its class.

    Args:
        root: the folder with a folder for each class.
        transform: of the text. target_transform: of the class's number.
        extensions: of the files to take.

    Raises:
        FileNotFoundError: no folder in root, or no text in one of them.

    Example:
        >>> from pathlib import Path
        >>> from zoo.data.datasets import TextFolder
        >>> Path("reviews/good").mkdir(parents=True)
        >>> _ = Path("reviews/good/1.txt").write_text("I liked it.")
        >>> TextFolder("reviews", transform=str.split)[0]
        (['I', 'liked', 'it.'], 0)
    """

    def __init__(self, root: str | os.PathLike, transform: Callable | None = None,
                 target_transform: Callable | None = None, extensions: Sequence[str] = (".txt",)):
        super().__init__(root, read_text, extensions, transform, target_transform)


class ParquetImages(Dataset):
    """Pictures in parquet files, as data set repositories on the Hub have them. Needs pyarrow (the extra `train`).

    A column of pictures holds files' bytes, or structs with the bytes in a field `bytes`. Of each file one row group
    is in memory at a time: a shuffled order is slow where the groups are large.

    Args:
        sources: the files: paths, or what `hub` fetches ("hf://owner/repo/file@revision", "https://...").
        image: the column of the pictures. label: that of the targets; None for none.
        transform: of the picture in RGB. target_transform: of the target.

    Raises:
        ImportError: no pyarrow. ValueError: a column that is not there.
    """

    def __init__(self, sources: str | os.PathLike | Iterable[str | os.PathLike], image: str = "image",
                 label: str | None = "label", transform: Callable | None = None,
                 target_transform: Callable | None = None):
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]

        from zoo.hub.client import fetch

        listed = [sources] if isinstance(sources, (str, os.PathLike)) else sources
        self.image, self.label = image, label
        self.transform, self.target_transform = transform, target_transform
        self.columns = [image] if label is None else [image, label]
        self.groups: list[tuple[Path, int]] = []
        counts = []
        for source in listed:
            with fetch(source) as fetched, parquet.ParquetFile(fetched.file) as file:
                names = file.schema_arrow.names
                if unknown := [name for name in self.columns if name not in names]:
                    raise ValueError(f"ParquetImages: wants the columns {unknown}, {source} has {names}")
                for k in range(file.num_row_groups):
                    self.groups.append((fetched.path, k))
                    counts.append(file.metadata.row_group(k).num_rows)
        self.ends = list(accumulate(counts))
        self.held: tuple[int, dict[str, list]] | None = None

    def __getitem__(self, index: int) -> Any:
        from PIL import Image

        if not -len(self) <= index < len(self):
            raise IndexError(f"ParquetImages: wants an index in [{-len(self)}, {len(self) - 1}], got {index}")
        index %= len(self)
        which = bisect_right(self.ends, index)
        rows, place = self.group(which), index - (self.ends[which - 1] if which else 0)
        stored = rows[self.image][place]
        with Image.open(io.BytesIO(stored["bytes"] if isinstance(stored, dict) else stored)) as picture:
            image = picture.convert("RGB")
        image = image if self.transform is None else self.transform(image)
        if self.label is None:
            return image
        target = rows[self.label][place]
        return image, target if self.target_transform is None else self.target_transform(target)

    def group(self, which: int) -> dict[str, list]:
        """The rows of one group, by column."""
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]

        if self.held is None or self.held[0] != which:
            path, number = self.groups[which]
            with parquet.ParquetFile(path) as file:
                self.held = which, file.read_row_group(number, columns=self.columns).to_pydict()
        return self.held[1]

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0
