"""`read`: a file of any known format, told by its content."""
from typing import Any

from zoo.checkpoint.builder import Builder
from zoo.checkpoint.errors import FileError
from zoo.checkpoint.numpy_file import MAGIC as NUMPY
from zoo.checkpoint.numpy_file import read_npy, read_npz
from zoo.checkpoint.safetensors_file import read_safetensors
from zoo.checkpoint.source import Source, opened
from zoo.checkpoint.torch_file import LEGACY, read_legacy, read_zip, root_of
from zoo.checkpoint.tree import KEY, read_tree
from zoo.checkpoint.zip_file import directory

ZIP, PICKLE, HEAD = b"PK\3\4", b"\x80", 512
OTHERS = (                    # (where, bytes there, what the file is and what to do)
    (0, b"<", "is a web page, not a checkpoint: the download gave a page instead of the file; fetch it again"),
    (0, b"version https://git-lfs", "is a pointer of Git LFS, not the file itself; run `git lfs pull`"),
    (0, b"\x1f\x8b", "is packed by gzip; run gunzip first"),
    (0, b"PK\5\6", "is an empty zip archive"),
    (0, b"\x89HDF", "is an HDF5 file; zoo reads safetensors, torch's files and .npz"),
    (0, b"GGUF", "is a GGUF file; zoo reads safetensors, torch's files and .npz"),
    (257, b"ustar", "is a tar archive, perhaps of torch before 0.1.10; unpack it, or load and save it with torch"),
)


def read(f: Any, *, mmap: bool = True) -> Any:
    """Reads a checkpoint without torch and without running anything in it.

    safetensors (bfloat16 and 8-bit floats as ml_dtypes has them), what torch.save writes (zip and legacy), .npz and
    .npy. The format is told by the content, not by the suffix. At most twice the file's size of memory is taken, and
    64 MB. Tensors that share memory in the file share it here; strides are kept.

    Args:
        f: a path, or an open binary file.
        mmap: arrays of a file on disk are its pages, private (what is written into them is not written back), loaded
            when touched, and their checksums in a zip archive are not compared. False: all is read at once and, where
            the archive has checksums, compared.

    Returns:
        What was saved, with np.ndarray for tensors: a dict of arrays by name for safetensors and .npz.

    Raises:
        FileError (ValueError, RuntimeError): truncated, corrupt, hostile, or of another format. OSError: not readable.

    Example:
        >>> import numpy as np
        >>> from zoo import checkpoint
        >>> checkpoint.write("w.pt", {"w": np.ones(2, np.float32)})
        >>> checkpoint.read("w.pt")
        {'w': array([1., 1.], dtype=float32)}
    """
    with opened(f, mmap) as source:
        return read_source(source, Builder())


def read_source(source: Source, builder: Builder) -> Any:
    """What an open file holds, its tensors made by `builder`."""
    head = source.read(0, min(HEAD, source.size))
    if head.startswith(ZIP):
        return read_archive(source, builder)
    if head.startswith(PICKLE) and head[8:9] != b"{":      # the length of a safetensors header may be 0x80 as well
        if LEGACY in head[:32]:
            return read_legacy(source, builder)
        raise FileError("is a pickle, but not of torch.save; zoo never runs pickles: save it as safetensors or .npz")
    if head.startswith(NUMPY):
        return builder.tensor(read_npy(source), "cpu", False)
    if head[8:9] != b"{":
        for where, magic, what in OTHERS:
            if head[where:].lstrip(b" \t\r\n\xef\xbb\xbf").startswith(magic):
                raise FileError(what)
        if len(head) > 8:
            raise FileError(f"is not a checkpoint of any format that zoo knows: it starts with {head[:8]!r}")
    arrays, metadata = read_safetensors(source)
    if type(text := metadata.get(KEY)) is str:
        return read_tree(text, arrays, builder)
    return {name: builder.tensor(array, "cpu", False) for name, array in arrays.items()}


def read_archive(source: Source, builder: Builder) -> Any:
    """A zip archive of torch or of NumPy."""
    members = directory(source)
    if (root := root_of(members)) is not None:
        return read_zip(source, members, root, builder)
    if members and all(name.endswith(".npy") for name in members):
        return {name: builder.tensor(array, "cpu", False) for name, array in read_npz(source, members).items()}
    raise FileError(f"is a zip archive of other things ({', '.join(members)[:80]}); unpack it and load the file inside")
