"""README's promises: its Python runs as it stands there, its commands are two and set up what they need."""
import doctest
import re
import subprocess
import sys

import pytest

from tests.house import ROOT

README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_the_taste_learns():
    space: dict = {}
    exec(blocks("python")[0], space)
    assert space["accuracy"] > 0.95


def test_the_taste_is_short():
    assert sum(bool(line.strip()) for line in blocks("python")[0].splitlines()) <= 15


def test_the_new_op_works(tmp_path):
    """In a process of its own: a registry that this test adds to would show the op to other tests."""
    (tmp_path / "row.py").write_text(blocks("python")[1])
    code = ("import numpy as np, zoo; from row import squareplus\n"
            "a = np.array([-2.0, 0.5, 3.0])\n"
            "np.testing.assert_allclose(squareplus(a), (a + np.sqrt(a * a + 4)) / 2)\n"
            "x = zoo.tensor(a, requires_grad=True)\n"
            "assert zoo.autograd.gradcheck(squareplus, (x,)) and zoo.autograd.gradgradcheck(squareplus, (x,))\n")
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=tmp_path,
                   env={"PYTHONPATH": f"{ROOT}:{tmp_path}"})


def test_the_tour_runs():
    """docs/how-it-works.md: its sessions as they stand there."""
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failed, run = doctest.testfile(str(ROOT / "docs/how-it-works.md"), module_relative=False, optionflags=options)
    assert run > 20 and not failed


def test_two_commands_set_up_everything():
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert len(commands) == 2
    assert all(c.startswith("python3 -m venv .venv && .venv/bin/pip install ") for c in commands)
    assert commands[0].endswith("&& .venv/bin/python -m zoo.train")
    assert "pytest" in commands[1]


def test_paths_in_the_documents_exist():
    """A path that a document names in backticks is there."""
    for name in ("README.md", "CONTRIBUTING.md", "docs/how-it-works.md"):
        text = (ROOT / name).read_text()
        for path in re.findall(r"`([\w./-]+\.(?:py|md|npz|toml)|\.ci/run|[\w-]+(?:/[\w-]+)*/)`", text):
            if path not in EXAMPLES:
                assert (ROOT / path).exists(), f"{name} names {path}"


EXAMPLES = {"conv.py", "conv_gpu.py"}           # said relative to the folder that the sentence is about


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_licences_are_there(name):
    text = (ROOT / name).read_text()
    assert {"LICENSE": "Apache License", "NOTICE": "CC BY 4.0"}[name] in text
    assert "Alpaydin" in README and "CC BY 4.0" in README


def test_the_tables_of_speed_are_the_measured_ones():
    """README's numbers are those of the committed results file."""
    sys.path.insert(0, str(ROOT / "scripts" / "bench"))
    try:
        from table import table
    finally:
        sys.path.pop(0)
    assert table() in (ROOT / "README.md").read_text()
