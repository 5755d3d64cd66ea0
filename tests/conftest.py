"""What every test shares: threads, markers that need a machine or a library, and random numbers."""
import functools
import gc
import os

# Before NumPy is imported: the tests run side by side, and a BLAS that takes all cores in each makes them wait.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# Tests start Python anew 200 times in all: each would compile the whole library (0.6 s) where no bytecode is kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import importlib  # noqa: E402
import importlib.util  # noqa: E402
import signal  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402

INTERPRETING = os.environ.get("ZOO_INTERPRET", "") not in ("", "0")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:        # as a shell starts what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)
HAS_TORCH = importlib.util.find_spec("torch") is not None


def pytest_collection_modifyitems(items):
    """Skips what needs a machine or a library that is not here; pyproject.toml says what the markers mean.

    A test that skips itself (importorskip("torch"), skipif(..., reason="... ZOO_INTERPRET=1")) gets its marker here,
    so that `-m torch` and `-m cuda` select all of them.
    """
    for item in items:
        code = getattr(getattr(item, "function", None), "__code__", None)
        if code and "torch" in (*code.co_names, *code.co_consts):
            item.add_marker(pytest.mark.torch)
        if any("ZOO_INTERPRET" in mark.kwargs.get("reason", "") for mark in item.iter_markers("skipif")):
            item.add_marker(pytest.mark.cuda)
        if item.get_closest_marker("interpret") and not INTERPRETING:
            item.add_marker(pytest.mark.skip(reason="needs ZOO_INTERPRET=1"))
        if item.get_closest_marker("gpu") and (INTERPRETING or not has_device()):
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))
        if item.get_closest_marker("cuda") and not has_device():
            item.add_marker(pytest.mark.skip(reason="needs a GPU or ZOO_INTERPRET=1"))
        if item.get_closest_marker("torch") and not HAS_TORCH:
            item.add_marker(pytest.mark.skip(reason="needs torch"))


def pytest_collection_finish():
    """What was collected lives to the end: gc.collect() in a test need not look at it, for half a second each time."""
    gc.collect()
    gc.freeze()


@functools.cache
def has_device() -> bool:
    import zoo
    return zoo.cuda.is_available()


@pytest.fixture
def rng() -> np.random.Generator:
    """The same numbers in every run."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def torchvision():
    """torchvision beside torch's CPU build; timm can be imported after it. Tests that take it are marked `torch`."""
    pytest.importorskip("torch")
    importlib.import_module("tests.yardsticks.torchvision_shim")
    return pytest.importorskip("torchvision")


@pytest.fixture(scope="module")
def running():
    """A Hub of our own on the loopback, and a process in which the library asks it (tests/hub_server.py)."""
    from tests.hub_server import Client, HubServer
    server = HubServer()
    client = Client(server.url)
    yield server, client
    client.close()
    server.close()


@pytest.fixture(params=[1, 2, 3])
def count(request):
    """With so many threads; before and after, those that the tests have."""
    from zoo.ops import threads
    before = threads.get_num_threads()
    threads.set_num_threads(request.param)
    yield request.param
    threads.set_num_threads(before)
