"""DataLoader: the same batches whoever loads them, from where it was interrupted, and torch's arguments."""

import json
import os
import random
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import zoo
from tests.house import ROOT
from tests.loader_data import Counting, Noisy, Told, Uneven, add_noise, initialise, list_of_one
from zoo.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    sample_stream,
)


def flat(batch):
    """Everything in a batch as bytes."""
    if isinstance(batch, dict):
        return {k: flat(v) for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [flat(v) for v in batch]
    if isinstance(batch, zoo.Tensor):
        return str(batch.dtype), tuple(batch.shape), batch.numpy().tobytes()
    return batch.tobytes() if isinstance(batch, np.ndarray) else batch


def passes(loader, count=2, seed=3):
    """Some passes over the loader, as bytes."""
    zoo.manual_seed(seed)
    return [[flat(batch) for batch in loader] for _ in range(count)]


# -- the same batches


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_byte_equal_with_any_number_of_workers(shuffle):
    wanted = passes(DataLoader(Noisy(), 4, shuffle=shuffle))
    assert len(wanted[0]) == 6 and wanted[0] != wanted[1]
    for workers in (1, 2, 4, 8) if shuffle else (2,):
        assert passes(DataLoader(Noisy(), 4, shuffle=shuffle, num_workers=workers)) == wanted


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_batches_are_byte_equal_however_workers_start(method):
    loader = DataLoader(Noisy(), 4, shuffle=True, num_workers=2, multiprocessing_context=method)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
        assert passes(loader, 1) == passes(DataLoader(Noisy(), 4, shuffle=True), 1)


def test_kept_workers_give_the_same_batches():
    loader = DataLoader(Noisy(), 4, shuffle=True, num_workers=2, persistent_workers=True)
    zoo.manual_seed(5)
    next(iter(loader))  # left early: what was ordered for this pass must not come in the next
    pids = {w.process.pid for w in loader.kept_pool.workers}
    assert passes(loader, 3) == passes(DataLoader(Noisy(), 4, shuffle=True), 3)
    assert {w.process.pid for w in loader.kept_pool.workers} == pids


@pytest.mark.parametrize("workers", [0, 2])
def test_other_ways_to_load(workers):
    """Without batches, with a batch_sampler, with a collate_fn that draws, whole batches, repeated samples."""
    data = TensorDataset(zoo.arange(10), zoo.rand(10, 2))
    makers = [
        lambda n: DataLoader(Noisy(5), None, num_workers=n),
        lambda n: DataLoader(Noisy(5), batch_sampler=[[0, 3], [1], [4, 4, 4]], num_workers=n),
        lambda n: DataLoader(list(range(9)), 2, collate_fn=add_noise, num_workers=n),
        lambda n: DataLoader(data, 3, shuffle=True, num_workers=n),
        lambda n: DataLoader(Subset(data, [5, 1, 7]), 2, num_workers=n),
        lambda n: DataLoader(Noisy(6), 2, sampler=RandomSampler(range(6), True, 9), num_workers=n),
        lambda n: DataLoader(Noisy(6), 2, sampler=WeightedRandomSampler([0, 1, 1, 0, 2, 1], 5), num_workers=n),
        lambda n: DataLoader(Noisy(6), 2, sampler=DistributedSampler(range(6), 2, 1), num_workers=n),
        lambda n: DataLoader(Noisy(7), 3, drop_last=True, num_workers=n),
    ]
    for make in makers[: None if workers == 0 else 6]:
        loader = make(workers)
        got = passes(loader, 1)
        assert got == passes(make(0), 1) and len(got[0]) == len(loader)
    repeated = passes(makers[1](workers), 1)[0][2]
    assert len(set(np.frombuffer(repeated["python"][2]))) == 3, "one sample taken thrice has three augmentations"


def test_the_global_generators_stay_as_they_are():
    """Loading here must not change what the training draws, or it would depend on num_workers."""
    zoo.manual_seed(1), np.random.seed(1), random.seed(1)
    drawn = []
    for workers in (0, 2):
        zoo.manual_seed(1), np.random.seed(1), random.seed(1)
        for _ in DataLoader(Noisy(), 4, num_workers=workers):
            pass
        drawn.append((zoo.rand(3).tolist(), np.random.rand(3).tolist(), random.random()))
    assert drawn[0] == drawn[1]
    np.random.seed(1), random.seed(1)
    assert drawn[0][1:] == (np.random.rand(3).tolist(), random.random())


def test_streams_of_samples_differ():
    """Every sample has its own numbers, in every pass, from every source."""
    first, second = passes(DataLoader(Noisy(50), 50))
    for read in (lambda b: b["python"][2], lambda b: b["stream"][0][2], lambda b: b["numpy"][2]):
        values = np.concatenate([np.frombuffer(read(run[0])) for run in (first, second)])
        assert len(set(values)) == 100


def test_sample_stream_without_a_loader_is_seeded_by_zoo():
    zoo.manual_seed(7)
    a = [sample_stream().random() for _ in range(2)]
    zoo.manual_seed(7)
    assert a == [sample_stream().random() for _ in range(2)] and a[0] != a[1]


# -- iterable datasets


def test_iterable_datasets_with_workers():
    """torch's order: the workers take turns, and one whose part is over is left out."""
    zoo.manual_seed(0)
    assert [k.tolist() for k, _ in DataLoader(Counting(7), 2)] == [[0, 1], [2, 3], [4, 5], [6]]
    got = [k.tolist() for k, _ in DataLoader(Counting(11), 2, num_workers=3)]
    assert got == [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8]]
    assert [k.tolist() for k, _ in DataLoader(Counting(11), 2, num_workers=3, drop_last=True)] == got[:-1]
    uncut = DataLoader(Counting(5), None, num_workers=2)
    assert [k for k, _ in uncut] == [0, 1, 2, 3, 4]
    assert passes(uncut, 2) == passes(DataLoader(Counting(5), None, num_workers=2, persistent_workers=True), 2)
    with pytest.raises(ValueError, match="IterableDataset"):
        DataLoader(Counting(5), shuffle=True)


@pytest.mark.torch
@pytest.mark.parametrize("workers, batch", [(2, 3), (3, 2), (4, 1)])
def test_iterable_order_is_torchs(workers, batch):
    torch = pytest.importorskip("torch")

    class Theirs(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            return iter(range(info.id, 11, info.num_workers * (info.id + 1)))

    class Ours(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            return iter(range(info.id, 11, info.num_workers * (info.id + 1)))

    got, wanted = (
        [x.tolist() for x in kind(data, batch, num_workers=workers, multiprocessing_context="fork")]
        for kind, data in ((DataLoader, Ours()), (torch.utils.data.DataLoader, Theirs()))
    )
    assert got == wanted


# -- going on after an interruption


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("own", [False, True], ids=["global generator", "own generator"])
def test_state_dict_goes_on_exactly(workers, own, tmp_path):
    """Interrupted after any batch, saved to a file, loaded by a new loader: this pass and the next are the same."""

    def make(n):
        generator = zoo.Generator().manual_seed(11) if own else None
        return DataLoader(Noisy(9), 2, shuffle=True, num_workers=n, generator=generator, persistent_workers=n > 0)

    wanted = passes(make(0), 2)
    for stop in (0, 1, 3, 5):
        zoo.manual_seed(3)
        loader = make(workers)
        batches = iter(loader)
        head = [flat(next(batches)) for _ in range(stop)]
        zoo.save({"loader": loader.state_dict(), "rng": zoo.get_rng_state()}, tmp_path / "state.safetensors")
        del batches, loader
        zoo.manual_seed(99)
        saved = zoo.load(tmp_path / "state.safetensors")
        loader = make(2 - workers)
        loader.load_state_dict(saved["loader"])
        zoo.set_rng_state(saved["rng"])
        assert head + [flat(b) for b in loader] == wanted[0]
        assert [flat(b) for b in loader] == wanted[1]


@pytest.mark.parametrize("workers", [0, 2])
def test_state_dict_of_iterable_datasets(workers):
    def make():
        return DataLoader(Counting(13), 2, num_workers=workers)

    wanted = passes(make(), 1)[0]
    zoo.manual_seed(3)
    loader = make()
    batches = iter(loader)
    head = [flat(next(batches)) for _ in range(3)]
    again = make()
    again.load_state_dict(loader.state_dict())
    assert head + [flat(b) for b in again] == wanted


def test_state_dict_between_passes_and_of_another_loader():
    loader = DataLoader(Noisy(4), 2, generator=zoo.Generator())
    list(loader)
    state = loader.state_dict()
    assert state["batches"] == 0 and state["begin"] is None
    with pytest.raises(ValueError, match="0 generators, got 1"):
        DataLoader(Noisy(4), 2).load_state_dict(state)
    unordered = DataLoader(Noisy(4), 2, num_workers=1, in_order=False)
    with pytest.raises(ValueError, match="in_order"):
        unordered.state_dict()


# -- torch's arguments


def test_in_order():
    ordered, free = (
        [x.item() for x in DataLoader(Uneven(), num_workers=2, in_order=o, prefetch_factor=1)] for o in (True, False)
    )
    assert ordered == list(range(8)) and sorted(free) == ordered and free != ordered


def test_worker_init_fn_and_worker_info():
    got = list(DataLoader(Told(), None, num_workers=2, worker_init_fn=initialise))
    assert {row[0] for row in got} == {"0 of 2", "1 of 2"} and len({row[1] for row in got}) == 2
    assert {row[2] for row in got} == {4} and get_worker_info() is None


def test_unusual_values_cross_the_process():
    """Texts, None, empty and Fortran-ordered arrays, bfloat16, large and growing batches."""
    values = [
        ("text", None, zoo.zeros(0, 3)),
        (np.asfortranarray(np.arange(6.0).reshape(2, 3)), b"bytes", 1 + 2j),
        zoo.rand(5).to(zoo.bfloat16),
        {"a": [zoo.tensor(True)], "b": np.float16(2)},
        zoo.rand(300, 1000),
        zoo.rand(3),
    ]
    got = list(DataLoader(values, None, num_workers=1, collate_fn=list_of_one))
    assert [flat(x[0]) for x in got] == [flat(x) for x in values]
    assert got[1][0][0].flags.f_contiguous and got[0][0][2].array.flags.writeable


def test_batches_that_are_kept_stay_as_they_are():
    """Also more of them than there is shared memory for, and after the workers are gone; and they can be written to."""
    batches = list(DataLoader(TensorDataset(zoo.arange(4000).view(100, 40)), 2, num_workers=2))
    for k, (x,) in enumerate(batches):
        assert x.tolist() == zoo.arange(80 * k, 80 * (k + 1)).view(2, 40).tolist()
        x += 1
    files = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    assert files < 100


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")     # Python 3.12's own
def test_a_dataset_that_cannot_be_pickled_is_forked():
    class Local(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return index

    with pytest.warns(UserWarning, match="forked, as pickle fails"):
        assert [x.item() for x in DataLoader(Local(), num_workers=2)] == [0, 1, 2]
    with pytest.raises(TypeError, match="pickle"):
        iter(DataLoader(Local(), num_workers=2, multiprocessing_context="spawn"))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"num_workers": -1}, "num_workers of at least 0, got -1"),
        ({"num_workers": 1.5}, "num_workers"),
        ({"batch_size": 0}, "batch_size of at least 1, got 0"),
        ({"timeout": -1}, "timeout"),
        ({"prefetch_factor": 2}, "num_workers of at least 1"),
        ({"persistent_workers": True}, "num_workers of at least 1"),
        ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor"),
        ({"num_workers": 1, "multiprocessing_context": "threads"}, "'threads'"),
        ({"shuffle": True, "sampler": [0]}, "got both"),
        ({"batch_sampler": [[0]], "drop_last": True}, "batch_sampler"),
        ({"batch_size": None, "drop_last": True}, "batch_size"),
    ],
)
def test_bad_arguments(options, words):
    with pytest.raises(ValueError, match=words):
        DataLoader(Noisy(), **options)


def test_classes_of_a_prompt_work():
    """A notebook's classes cannot be imported by another process: the workers are forked, without a word."""
    script = """
import zoo
from zoo.data import DataLoader, Dataset
class Prompt(Dataset):
    def __len__(self): return 3
    def __getitem__(self, index): return index
loader = DataLoader(Prompt(), num_workers=2)
print([x.item() for x in loader])
"""
    run = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert run.stdout == "[0, 1, 2]\n" and not run.stderr


def test_pinned_batches(monkeypatch):
    """The structure stays, the tensors are copied into page-locked memory (here a stand-in for it); by a thread of its
    own where workers load, one batch ahead of the loop.
    """
    from zoo.data import loader, worker_batches
    from zoo.ops.cuda import pool

    made, threads = [], set()

    def pinned_empty(shape, dtype):
        made.append(np.empty(shape, dtype))
        threads.add(threading.current_thread().name)
        return made[-1]

    assert flat(next(iter(DataLoader(Noisy(), 2, pin_memory=True))))["index"][1] == (2,)  # without a GPU: as it is
    monkeypatch.setattr(pool, "pinned_empty", pinned_empty)
    for module in (loader, worker_batches):
        monkeypatch.setattr(module, "can_pin", lambda: True)
    for workers in (0, 1):
        made.clear()
        threads.clear()
        got = passes(DataLoader(Noisy(4), 4, pin_memory=True, num_workers=workers), 1)
        assert got == passes(DataLoader(Noisy(4), 4), 1) and len(made) == 6
        assert {name.startswith("zoo.data pin") for name in threads} == {workers == 1}
    late = iter(DataLoader(Noisy(4), 1, pin_memory=True, num_workers=1))
    made.clear()
    next(late)
    while len(made) < 6 * 2:                               # the second is copied while the loop has the first
        if late.pool.waiting():
            late.receive()
    assert late.run.progress.used == 1


@pytest.mark.torch
@pytest.mark.slow
def test_benchmark_runs(tmp_path):
    command = [sys.executable, "scripts/bench/loader.py", "--pictures", "20", "--rounds", "1", "--workers", "0,1"]
    out = tmp_path / "loader.json"
    run = subprocess.run([*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert run.returncode in (0, 1), run.stderr          # 1: slower than torch, which 20 pictures do not tell
    rows = json.loads(out.read_text())["rows"]
    assert [r["workers"] for r in rows] == [0, 1] and all(r["torch_pictures_per_s"] > 0 for r in rows)


def test_the_fork_server_imports_what_the_script_imports(monkeypatch):
    """Else each worker would: 2 s where a script imports torch."""
    from zoo.data.worker_pool import modules_to_preload

    monkeypatch.setattr(sys.modules["__main__"], "an_import", json, raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "a_class", zoo.nn.Linear, raising=False)
    wanted = {"json", zoo.nn.Linear.__module__, "zoo.data.worker", "tests.loader_data"}
    assert wanted <= set(modules_to_preload(Noisy()))
    assert "__main__" not in modules_to_preload([])
