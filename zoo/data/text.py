"""Texts to train language models on: the one that comes with the package (KJV.md has its source), and files."""

import os
from importlib.resources import files
from pathlib import Path

NAME = "kjv-genesis-proverbs-ecclesiastes.txt"


def kjv() -> str:
    """Genesis, Proverbs and Ecclesiastes in the King James translation of 1611: 305,153 characters, a verse a line.

    Example:
        >>> from zoo.data.text import kjv
        >>> kjv()[:31], len(kjv())
        ('In the beginning God created th', 305153)
    """
    return (files("zoo.data") / NAME).read_text(encoding="utf-8")


def read_text(path: str | os.PathLike) -> str:
    """A text file, or all *.txt in a folder and its folders, in the order of their paths, a line feed between them.

    Args:
        path: of a file or a folder.

    Returns:
        The text; a line ends with a line feed, whatever it ended with, and a byte order mark is left out.

    Raises:
        ValueError: bytes that are not UTF-8 (the message has file and offset), a folder without *.txt, no characters.
        OSError: a file that is not there or cannot be read.

    Example:
        >>> from pathlib import Path
        >>> from zoo.data.text import read_text
        >>> _ = Path("two.txt").write_text("one\\r\\ntwo")
        >>> read_text("two.txt")
        'one\\ntwo'
    """
    path = Path(path)
    found = sorted(p for p in path.rglob("*.txt") if p.is_file()) if path.is_dir() else [path]
    if not found:
        raise ValueError(f"read_text: the folder {path} has no *.txt")
    text = "\n".join(map(decoded, found))
    if not text:
        raise ValueError(f"read_text: {path} is empty")
    return text


def decoded(path: Path) -> str:
    """One file.

    Raises:
        ValueError: not UTF-8.
    """
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"read_text: {path} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start} ({error.reason})"
        ) from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
