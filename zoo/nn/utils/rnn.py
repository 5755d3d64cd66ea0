"""Sequences of different lengths: padded, packed, or as a list; torch.nn.utils.rnn, and the detaching of states."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from zoo.autograd.creation import from_numpy, full
from zoo.autograd.tensor import Tensor
from zoo.ops.device import fetch
from zoo.ops.errors import ArgumentError, ShapeError
from zoo.ops.face.join import cat


class Packed(NamedTuple):
    """The fields of a PackedSequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(Packed):
    """Sequences without padding: the rows of their first steps, then those of their second steps, ...

    Attributes:
        data: (sum of the lengths, *).
        batch_sizes: (T,), int64, on the CPU: how many sequences have a t-th step.
        sorted_indices: (B,), int64, the place each packed sequence had; None if they were sorted by length.
        unsorted_indices: (B,), int64, its inverse.

    Example:
        >>> import zoo
        >>> from zoo.nn.utils.rnn import pack_sequence
        >>> packed = pack_sequence([zoo.tensor([1, 2, 3]), zoo.tensor([4, 5])])
        >>> packed.data.tolist(), packed.batch_sizes.tolist()
        ([1, 4, 2, 5, 3], [2, 2, 1])
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            raise ValueError("PackedSequence: wants batch_sizes, got None")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """As Tensor.to of the data; the indices go to the same device."""
        data = self.data.to(*args, **kwargs)
        order = self.sorted_indices if self.sorted_indices is None else self.sorted_indices.to(data.device)
        return self if data is self.data else type(self)(data, self.batch_sizes, order)

    def cpu(self) -> "PackedSequence":
        return self.to("cpu")

    def cuda(self) -> "PackedSequence":
        return self.to("cuda")

    def double(self) -> "PackedSequence":
        return self.to(np.dtype(np.float64))

    def float(self) -> "PackedSequence":
        return self.to(np.dtype(np.float32))

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The indices that undo those of a permutation (B,); None stays None."""
    if permutation is None:
        return None
    return on_device_of(permutation, np.argsort(fetch(permutation.array), kind="stable"))


def on_device_of(like: Tensor, index: np.ndarray) -> Tensor:
    """An index array as a tensor beside `like`."""
    return from_numpy(index).to(like.device)


def lengths_of(name: str, lengths: Any, batch: int, steps: int) -> np.ndarray:
    """Lengths (batch,) as int64 in NumPy; raises unless each is in [1, steps]."""
    found = np.asarray(fetch(lengths.array) if isinstance(lengths, Tensor) else list(lengths))
    if found.ndim != 1 or len(found) != batch or found.size and found.dtype.kind not in "iu":
        raise ArgumentError(f"{name}: wants lengths ({batch},), integers, got {found.dtype} {found.shape}")
    if found.size and (found.min() < 1 or found.max() > steps):
        raise ArgumentError(f"{name}: wants lengths in [1, {steps}], got {found.tolist()}")
    return found.astype(np.int64)


def pack_padded_sequence(
    input: Tensor,  # noqa: A002
    lengths: Any,
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Packs a padded batch (T, B, *), with batch_first (B, T, *); steps beyond the lengths are left out.

    Args:
        input: any dtype.
        lengths: (B,), a tensor or a list of integers in [1, T].
        batch_first: the batch is the first dimension.
        enforce_sorted: raises unless the lengths never grow; False sorts by length, longest first.

    Returns:
        A PackedSequence.

    Raises:
        ArgumentError (ValueError, RuntimeError): a length of 0 or above T, or not sorted.

    Example:
        >>> import zoo
        >>> packed = zoo.nn.utils.rnn.pack_padded_sequence(zoo.tensor([[1, 3], [2, 0]]), [2, 1])
        >>> packed.data.tolist(), packed.batch_sizes.tolist()
        ([1, 3, 2], [2, 1])
    """
    if input.ndim < 2:
        raise ShapeError(f"pack_padded_sequence: wants (T, B, *), got {tuple(input.shape)}")
    steps, batch = input.shape[:2][::-1] if batch_first else input.shape[:2]
    if not batch:
        raise ArgumentError(f"pack_padded_sequence: wants at least one sequence, got {tuple(input.shape)}")
    found = lengths_of("pack_padded_sequence", lengths, batch, steps)
    order = np.argsort(-found, kind="stable")
    if enforce_sorted and (np.diff(found) > 0).any():
        raise ArgumentError(
            "pack_padded_sequence: wants lengths in decreasing order when enforce_sorted is True, got "
            f"{found.tolist()}; enforce_sorted=False sorts them"
        )
    step, place = np.nonzero(np.arange(found.max())[:, None] < found[order])
    rows = order[place] * steps + step if batch_first else step * batch + order[place]
    data = input.reshape(steps * batch, *input.shape[2:]).index_select(0, on_device_of(input, rows))
    sorted_indices = None if enforce_sorted else on_device_of(input, order)
    return PackedSequence(data, from_numpy(np.bincount(step)), sorted_indices)


def lengths_and_rows(sequence: PackedSequence) -> tuple[np.ndarray, np.ndarray]:
    """The length of each sequence in its original order (B,), and for each step and sequence its row, or N: (T, B)."""
    sizes = sequence.batch_sizes.numpy()
    starts, place = np.cumsum(sizes) - sizes, np.arange(sizes[0] if len(sizes) else 0)
    if sequence.unsorted_indices is not None:
        place = fetch(sequence.unsorted_indices.array)
    inside = place < sizes[:, None]
    return inside.sum(0), np.where(inside, starts[:, None] + place, sizes.sum())


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The inverse of `pack_padded_sequence`: the padded batch (T, B, *) or (B, T, *), and the lengths (B,), int64.

    Args:
        sequence: a PackedSequence.
        batch_first: the batch is the first dimension of the result.
        padding_value: what stands beyond the lengths.
        total_length: T; the longest length if left out.

    Raises:
        ValueError: total_length is less than the longest length.

    Example:
        >>> import zoo
        >>> from zoo.nn.utils.rnn import pack_sequence, pad_packed_sequence
        >>> padded, lengths = pad_packed_sequence(pack_sequence([zoo.tensor([1, 2]), zoo.tensor([3])]), True)
        >>> padded.tolist(), lengths.tolist()
        ([[1, 2], [3, 0]], [2, 1])
    """
    data, steps = sequence.data, len(sequence.batch_sizes)
    if total_length is not None and total_length < steps:
        raise ValueError(f"pad_packed_sequence: wants total_length of at least {steps}, got {total_length}")
    lengths, rows = lengths_and_rows(sequence)
    if total_length is not None:
        rows = np.pad(rows, ((0, total_length - steps), (0, 0)), constant_values=len(data))
    rows = rows.T if batch_first else rows
    filler = full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded = cat([data, filler]).index_select(0, on_device_of(data, np.ascontiguousarray(rows).ravel()))
    return padded.reshape(*rows.shape, *data.shape[1:]), from_numpy(lengths)


def pad_sequence(
    sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Tensors (T_i, *) as one batch (T, B, *), or (B, T, *) with batch_first, filled up on one side.

    Args:
        sequences: tensors of one dtype and the same further dimensions.
        batch_first: the batch is the first dimension of the result.
        padding_value: what fills up.
        padding_side: "right" or "left".

    Raises:
        ArgumentError (ValueError, RuntimeError): no sequences, or another padding_side.
        ShapeError (ValueError, RuntimeError): further dimensions that differ.

    Example:
        >>> import zoo
        >>> zoo.nn.utils.rnn.pad_sequence([zoo.tensor([1, 2]), zoo.tensor([3])], batch_first=True).tolist()
        [[1, 2], [3, 0]]
    """
    sequences = listed("pad_sequence", sequences)
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"pad_sequence: wants padding_side left or right, got {padding_side!r}")
    first, steps = sequences[0], max(len(s) for s in sequences)
    filler = full((1, *first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
    rows, start, total = [], 0, sum(len(s) for s in sequences)
    for s in sequences:
        gap = steps - len(s)
        rows.append(np.pad(np.arange(start, start + len(s)), (0, gap) if padding_side == "right" else (gap, 0),
                           constant_values=total))
        start += len(s)
    index = np.stack(rows, 0 if batch_first else 1)
    padded = cat([*sequences, filler]).index_select(0, on_device_of(first, index.ravel()))
    return padded.reshape(*index.shape, *first.shape[1:])


def listed(name: str, sequences: Iterable[Tensor]) -> list[Tensor]:
    """A non-empty list of tensors (T_i, *) that differ in their lengths alone."""
    if not isinstance(sequences, Iterable):
        raise ArgumentError(f"{name}: wants an iterable of tensors, got {type(sequences).__name__}")
    found = list(sequences)
    if not found or not all(isinstance(s, Tensor) and s.ndim for s in found):
        raise ArgumentError(f"{name}: wants at least one tensor, each of 1 dimension or more, got {found!r:.80}")
    if any(s.shape[1:] != found[0].shape[1:] for s in found):
        raise ShapeError(f"{name}: wants equal sizes after the first, got {[tuple(s.shape) for s in found]}")
    return found


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The inverse of `pad_sequence`: a list of tensors (T_i, *), of a batch (T, B, *) or (B, T, *) and its lengths.

    Example:
        >>> import zoo
        >>> rows = zoo.nn.utils.rnn.unpad_sequence(zoo.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
        >>> [r.tolist() for r in rows]
        [[1, 2], [3]]
    """
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(batch, lengths, strict=True)]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of tensors (T_i, *).

    Args:
        sequences: tensors of one dtype and the same further dimensions.
        enforce_sorted: raises unless the lengths never grow; False sorts by length, longest first.

    Raises:
        ArgumentError (ValueError, RuntimeError): no sequences, one of length 0, or not sorted.

    Example:
        >>> import zoo
        >>> zoo.nn.utils.rnn.pack_sequence([zoo.tensor([1]), zoo.tensor([2, 3])], False).data.tolist()
        [2, 1, 3]
    """
    sequences = listed("pack_sequence", sequences)
    if not all(len(s) for s in sequences):
        raise ArgumentError(f"pack_sequence: wants lengths of at least 1, got {[len(s) for s in sequences]}")
    return pack_padded_sequence(pad_sequence(sequences), [len(s) for s in sequences], False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The inverse of `pack_sequence`: a list of tensors (T_i, *) in the original order.

    Example:
        >>> import zoo
        >>> from zoo.nn.utils.rnn import pack_sequence, unpack_sequence
        >>> [s.tolist() for s in unpack_sequence(pack_sequence([zoo.tensor([1, 2]), zoo.tensor([3])]))]
        [[1, 2], [3]]
    """
    lengths, rows = lengths_and_rows(packed_sequences)
    data = packed_sequences.data
    return [data.index_select(0, on_device_of(data, rows[:n, k].copy())) for k, n in enumerate(lengths)]


def detach_states(states: Any) -> Any:
    """The same states without their history, for truncated backpropagation through time: a tensor, or any nesting.

    Args:
        states: a Tensor, None, or a tuple or list of states.

    Returns:
        The same structure of detached tensors.

    Source: P. J. Werbos, "Backpropagation through time: what it does and how to do it", 1990.

    Example:
        >>> import zoo
        >>> lstm, states = zoo.nn.LSTM(2, 3), None
        >>> for chunk in zoo.ones(8, 1, 2).split(4):
        ...     y, states = lstm(chunk, states)
        ...     y.sum().backward()
        ...     states = zoo.nn.utils.rnn.detach_states(states)
        >>> states[0].requires_grad
        False
    """
    if states is None or isinstance(states, Tensor):
        return states if states is None else states.detach()
    return type(states)(map(detach_states, states))
