"""Ordinary PyTorch scripts run when `torch` in their import statements becomes `zoo`, and give torch's results.

The scripts lie in tests/torch_scripts, as users write them. Each has main(fill), where fill gives a module the same
weights in both libraries, and returns what is to be compared.
"""
import re

import numpy as np
import pytest

import zoo
from tests.house import ROOT

SCRIPTS = sorted((ROOT / "tests" / "torch_scripts").glob("*.py"))


def as_zoo(source: str) -> str:
    """The script with its import statements changed, and nothing else."""
    source = re.sub(r"^import torch$", "import zoo as torch", source, flags=re.MULTILINE)
    return re.sub(r"^(import|from) torch\b", r"\1 zoo", source, flags=re.MULTILINE)


def run(source: str, name: str, library):
    """What the script's main returns; fill draws each parameter anew, the n-th always from the same seed."""
    def fill(module):
        with library.no_grad():
            for k, p in enumerate(module.parameters()):
                values = np.random.RandomState(k).uniform(-0.5, 0.5, tuple(p.shape))
                p.copy_(library.from_numpy(values.astype(np.float32)))

    space = {"__name__": name}
    exec(compile(source, name, "exec"), space)
    return space["main"](fill)


def compare(mine, theirs, path: str) -> None:
    """Numbers and arrays within the rounding of a few training steps in float32, everything else equal."""
    if isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs), path
        for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            compare(a, b, f"{path}[{k}]")
    elif isinstance(theirs, (float, np.ndarray)):
        assert np.shape(mine) == np.shape(theirs), path
        assert getattr(mine, "dtype", None) == getattr(theirs, "dtype", None), path
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-5, err_msg=path)
    else:
        assert mine == theirs, path


def test_the_scripts_are_found():
    """Guards the tests below: there are scripts, they import torch, and no `torch` is left in an import statement."""
    assert len(SCRIPTS) >= 15
    for path in SCRIPTS:
        changed = as_zoo(path.read_text())
        assert "import zoo as torch" in changed
        assert not re.search(r"^\s*(from|import) torch", changed, flags=re.MULTILINE), path.name


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_script_runs(path):
    assert run(as_zoo(path.read_text()), path.stem, zoo) is not None


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_script_gives_what_torch_gives(path, monkeypatch):
    torch = pytest.importorskip("torch")
    # Other tests import torch's own test helpers, which forbid scripts to set torch.backends' flags.
    monkeypatch.setitem(torch.backends.flags_frozen.__globals__, "__allow_nonbracketed_mutation_flag", True)
    source = path.read_text()
    compare(run(as_zoo(source), path.stem, zoo), run(source, path.stem, torch), path.stem)
