"""20,000 damaged checkpoints and more: each is read or refused by a FileError, within bounds of memory."""
import io
import tracemalloc
from collections import OrderedDict

import numpy as np
import pytest

import zoo
from tests.checkpoint_files import FIXTURES, legacy
from zoo import checkpoint
from zoo.checkpoint import FileError
from zoo.checkpoint.dtypes import TORCH_DTYPES
from zoo.serialization import load

SEEDS, EACH = 10, 290         # times 8 files: 23,200, of which 20,300 are torch's and safetensors
EVERY = 50                    # one of so many is watched for memory
SLACK = 1 << 18               # the reader's own tables, and the test's
NASTY = np.array([0, 1, 0x2E, 0x28, 0x71, 0x52, 0x7F, 0x80, 0xFE, 0xFF], np.uint8)


def files() -> dict[str, bytes]:
    """One small file of each kind, by torch and by zoo."""
    model = zoo.nn.Sequential(zoo.nn.Conv2d(1, 2, 3), zoo.nn.BatchNorm2d(2), zoo.nn.LSTM(2, 2))
    state = OrderedDict((k, v.detach().numpy()) for k, v in model.state_dict().items())
    tree = {"model": model, "step": 3, "lr": [0.1, (1, None, True)], "name": "run"} | {"model": model.state_dict()}
    arrays = {name: np.ones((2, 2), dtype) for name, dtype in TORCH_DTYPES.items()}
    out = {"zip of torch": (FIXTURES / "torch_zip.pt").read_bytes(),
           "legacy of torch": (FIXTURES / "torch_legacy.pt").read_bytes()}
    for name, obj, kind in (("zip of a tree", tree, 1), ("safetensors of a tree", tree, 0)):
        zoo.save(obj, file := io.BytesIO(), format=checkpoint.writing.FORMATS[kind])
        out[name] = file.getvalue()
    for name, kind, data in (("zip of all dtypes", 1, arrays), ("safetensors of a state_dict", 0, state)):
        checkpoint.write(file := io.BytesIO(), data, format=checkpoint.writing.FORMATS[kind])
        out[name] = file.getvalue()
    np.savez_compressed(file := io.BytesIO(), **{k.replace(".", "_"): v for k, v in state.items()})
    out["npz"] = file.getvalue()
    body = out["legacy of torch"]
    out["legacy with trailing bytes"] = body + bytes(100) + legacy(b"\x80\x02N.")
    return out


FILES = files()


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Bytes changed, cut off, cut out, doubled, or put in at another place."""
    array = np.frombuffer(data, np.uint8).copy()
    kind = rng.integers(8)
    a, b = sorted(rng.integers(0, len(array), 2))
    b = min(b, a + int(rng.integers(1, 64)))
    if kind < 3:                                       # a few bytes become anything
        array[rng.integers(0, len(array), rng.integers(1, 9))] = rng.integers(0, 256)
    elif kind == 3:                                    # ... or what means something
        array[rng.integers(0, len(array), rng.integers(1, 9))] = rng.choice(NASTY)
    elif kind == 4:
        return data[:a]
    elif kind == 5:
        return data[:a] + data[b:]
    elif kind == 6:
        return data[:b] + data[a:b] * int(rng.integers(1, 4)) + data[b:]
    else:
        at = int(rng.integers(0, len(data)))
        return data[:at] + data[a:b] + data[at + (b - a) :]
    return array.tobytes()


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", FILES)
def test_mutated_files(name, seed, tmp_path):
    rng = np.random.default_rng([seed, *name.encode()])
    good = refused = 0
    path = tmp_path / "file"
    for i in range(EACH):
        data = mutated(FILES[name], rng)
        f = io.BytesIO(data)
        if i % 3 == 0:
            path.write_bytes(data)
            f = path
        watched = i % EVERY == 0
        if watched:
            tracemalloc.start()
        try:
            (checkpoint.read, load, checkpoint.read_state_dict)[i % 7 % 3](f)
            good += 1
        except FileError as error:
            assert "\n" not in str(error) and len(str(error)) < 2000
            refused += 1
        finally:
            if watched:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                assert peak < 2 * len(data) + SLACK
    assert good + refused == EACH and refused > EACH // 5


def test_undamaged_files_are_good():
    """Guards the test above: a reader that refuses all never fails."""
    for data in FILES.values():
        checkpoint.read(io.BytesIO(data))
        load(io.BytesIO(data))
