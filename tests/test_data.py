"""Datasets, samplers, collate: torch's contracts, and the statistics of what is drawn."""

from collections import Counter, OrderedDict, namedtuple

import numpy as np
import pytest

import zoo
from tests.loader_data import Counting
from zoo.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    random_split,
)

Point = namedtuple("Point", "x y")


def seeded(seed=0):
    return zoo.Generator().manual_seed(seed)


# -- samplers

SHARES = [(10, 3, False), (10, 3, True), (2, 5, False), (12, 4, False), (7, 1, True)]


@pytest.mark.torch
@pytest.mark.parametrize("n, parts, drop_last", SHARES)
def test_distributed_sampler_is_torchs(n, parts, drop_last):
    torch = pytest.importorskip("torch")
    for rank in range(parts):
        ours, theirs = (
            kind(range(n), parts, rank, shuffle=False, drop_last=drop_last)
            for kind in (DistributedSampler, torch.utils.data.DistributedSampler)
        )
        assert list(ours) == list(theirs) and len(ours) == len(theirs)


def test_distributed_sampler_shuffles_alike_in_all_processes():
    def epoch(k):
        samplers = [DistributedSampler(range(11), 3, rank, seed=5) for rank in range(3)]
        for sampler in samplers:
            sampler.set_epoch(k)
        return [list(sampler) for sampler in samplers]

    assert epoch(0) == epoch(0) != epoch(1)
    assert set(sum(epoch(1), [])) == set(range(11))
    with pytest.raises(ValueError, match="rank"):
        DistributedSampler(range(3), 2, 2)


def test_random_sampler():
    assert sorted(RandomSampler(range(100), generator=seeded())) == list(range(100))
    sampler = RandomSampler(range(4), num_samples=10, generator=seeded())
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == 10 and set(Counter(drawn[:8]).values()) == {2}
    drawn = list(RandomSampler(range(4), replacement=True, num_samples=4000, generator=seeded()))
    assert all(abs(c - 1000) < 5 * np.sqrt(4000 * 3 / 16) for c in Counter(drawn).values()) and len(set(drawn)) == 4
    assert list(RandomSampler([])) == []
    first, second = (list(RandomSampler(range(50), generator=g)) for g in (seeded(1), seeded(1)))
    assert first == second != list(RandomSampler(range(50), generator=seeded(2)))
    with pytest.raises(ValueError, match="num_samples"):
        RandomSampler(range(3), num_samples=-1)
    with pytest.raises(TypeError, match="replacement"):
        RandomSampler(range(3), replacement=1)


@pytest.mark.parametrize("replacement", [True, False])
def test_weighted_random_sampler(replacement):
    """Frequencies of the first draw follow the weights, within 5 standard deviations."""
    weights, n, generator = np.array([1.0, 0.0, 3.0, 6.0]), 3000, seeded()
    if replacement:
        drawn = list(WeightedRandomSampler(weights, n, generator=generator))
    else:
        sampler = WeightedRandomSampler(weights, 3, replacement=False, generator=generator)
        runs = [list(sampler) for _ in range(n)]
        assert all(sorted(run) == [0, 2, 3] for run in runs)
        drawn = [run[0] for run in runs]
    p = weights / weights.sum()
    counts = np.bincount(drawn, minlength=4)
    assert (abs(counts - n * p) <= 5 * np.sqrt(n * p * (1 - p))).all()
    with pytest.raises(ValueError, match="at most 3"):
        WeightedRandomSampler(weights, 4, replacement=False)
    with pytest.raises(ValueError, match="weights"):
        WeightedRandomSampler([-1.0, 2.0], 1)


def test_other_samplers():
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    assert sorted(SubsetRandomSampler([4, 2, 9], generator=seeded())) == [2, 4, 9]
    for drop_last, wanted in ((False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])):
        sampler = BatchSampler(SequentialSampler(range(5)), 2, drop_last)
        assert list(sampler) == wanted and len(sampler) == len(wanted)
    with pytest.raises(ValueError, match="batch_size"):
        BatchSampler([], 0, False)
    with pytest.raises(ValueError, match="drop_last"):
        BatchSampler([], 1, 3)


# -- datasets


def test_chain_and_concat():
    both = Counting(2) + Counting(3)
    assert isinstance(both, ChainDataset) and [k for k, _ in both] == [0, 1, 0, 1, 2] and len(both) == 5
    with pytest.raises(TypeError, match="IterableDatasets"):
        ChainDataset([range(3)])
    with pytest.raises(TypeError, match="ChainDataset"):
        ConcatDataset([Counting(3)])
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())


def test_parts_of_a_tensor_dataset_load_as_the_whole():
    """A Subset of a Subset of a TensorDataset is indexed once per batch, with the samples' values."""
    data = TensorDataset(zoo.arange(20), zoo.rand(20, 3))
    part = Subset(random_split(data, [15, 5], generator=seeded())[0], [3, 14, 0, 7])
    got = list(DataLoader(part, 3))
    assert [len(x) for x, _ in got] == [3, 1]
    for k, (x, y) in enumerate((x, y) for xs, ys in got for x, y in zip(xs, ys, strict=True)):
        wanted = part[k]
        assert x.item() == wanted[0].item() and y.tolist() == wanted[1].tolist()


def test_stacked_datasets_load_as_tuples_and_as_dicts():
    numbers, letters = range(4), "abcd"
    pairs, named = StackDataset(numbers, letters), StackDataset(number=numbers, letter=letters)
    assert len(pairs) == len(named) == 4 and pairs[-1] == (3, "d")
    (x, names), _ = DataLoader(pairs, 2)
    assert x.tolist() == [0, 1] and list(names) == ["a", "b"]
    first, _ = DataLoader(named, 2)
    assert first["number"].tolist() == [0, 1] and list(first["letter"]) == ["a", "b"]
    for wrong in (lambda: StackDataset(), lambda: StackDataset(numbers, "abc"),
                  lambda: StackDataset(numbers, x=letters)):
        with pytest.raises(ValueError, match="StackDataset: wants"):
            wrong()


# -- collate


@pytest.mark.torch
@pytest.mark.parametrize(
    "samples",
    [
        [1, 2],
        [1.5, 2.0],
        [True, False],
        [np.float32(1), np.float32(2)],
        [np.arange(3, dtype=np.uint8)] * 2,
        [(1, "a"), (2, "b")],
        [[1, 2.0], [3, 4.0]],
        [{"x": 1, "y": (2, b"c")}, {"x": 3, "y": (4, b"d")}],
        [Point(1, 2.0), Point(3, 4.0)],
        [OrderedDict(a=1), OrderedDict(a=2)],
        ["a", "b"],
    ],
    ids=str,
)
def test_collate_is_torchs(samples):
    torch = pytest.importorskip("torch")

    def plain(x):
        if hasattr(x, "numpy"):
            return "tensor", str(x.numpy().dtype), x.tolist()
        if isinstance(x, dict):
            return type(x).__name__, {k: plain(v) for k, v in x.items()}
        return (type(x).__name__, [plain(v) for v in x]) if isinstance(x, (list, tuple)) else x

    assert plain(default_collate(samples)) == plain(torch.utils.data.default_collate(samples))
    assert plain(default_convert(samples[0])) == plain(torch.utils.data.default_convert(samples[0]))


def test_collate_of_tensors_and_of_what_it_does_not_take():
    x = zoo.rand(2, 3)
    assert default_collate([x, x + 1]).tolist() == [x.tolist(), (x + 1).tolist()]
    leaf = zoo.ones(2, requires_grad=True)
    assert default_collate([leaf * 2, leaf]).requires_grad
    with pytest.raises(TypeError, match="got object"):
        default_collate([object()])
    with pytest.raises(ValueError, match="one length"):
        default_collate([(1, 2), (3,)])
    with pytest.raises(ValueError):
        default_collate([zoo.ones(2), zoo.ones(3)])
