"""Files of data sets: downloaded through the hub's client, checked, and put into the data set's folder."""

import gzip
import hashlib
import os
import shutil
import tarfile
from pathlib import Path
from typing import BinaryIO

from zoo.checkpoint.atomic import replacing


def md5_of(file: BinaryIO) -> str:
    """The md5 of an open file's bytes; these data sets announce no other hash."""
    file.seek(0)
    return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def download(url: str, path: Path, md5: str, progress: bool = True) -> None:
    """The file of a url at a path, unless the right one is there.

    Raises:
        ValueError: the bytes are not those of the md5. HubError: the download fails.
    """
    from zoo.hub.client import fetch  # here: worker processes import data sets, and need no hub

    if path.is_file():
        with open(path, "rb") as file:
            if md5_of(file) == md5:
                return
    with fetch(url, progress=progress) as fetched:
        if (got := md5_of(fetched.file)) != md5:
            raise ValueError(f"download: {url} wants the md5 {md5}, got {got}")
        path.parent.mkdir(parents=True, exist_ok=True)
        fetched.file.seek(0)
        with replacing(path) as file:
            shutil.copyfileobj(fetched.file, file)


def extract(archive: Path, folder: Path, names: list[str]) -> None:
    """The named regular files of a .tar.gz, and nothing else of it, each in one step.

    Raises:
        ValueError: one of them is not in it, or no regular file.
    """
    with tarfile.open(archive, "r:gz") as tar:
        for name in names:
            try:
                member = tar.extractfile(name)
            except KeyError:
                member = None
            if member is None:
                raise ValueError(f"extract: {archive} wants the file {name}, has none")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with member, replacing(folder / name) as file:
                shutil.copyfileobj(member, file)


def read_plain_or_gz(path: Path) -> bytes:
    """The bytes of a file, or of the file beside it with .gz at the end, unpacked.

    Raises:
        FileNotFoundError: neither is there.
    """
    packed = path.with_name(path.name + ".gz")
    if path.exists() or not packed.exists():
        return path.read_bytes()
    with gzip.open(packed) as file:
        return file.read()


def missing(name: str, path: str | os.PathLike) -> FileNotFoundError:
    """What a data set says whose files are not there."""
    return FileNotFoundError(f"{name}: wants {path}, found none; download=True fetches it")
