"""The .pyi files: written from what is there now, right about what functions give, and seen by a user's script."""
import doctest
import importlib
import inspect
import pkgutil
import runpy
import sys
from collections import defaultdict

import pytest

import zoo
import zoo.ops.face
from tests.house import ROOT
from tests.test_docs_and_twins import OPTIONS, doc_tests
from zoo.nn import functional

sys.path.insert(0, str(ROOT / "scripts"))
import write_stubs  # noqa: E402

STUBS = write_stubs.stubs()
EXAMPLES = ("zoo.autograd.creation", "zoo.autograd.random", "zoo.autograd.tensor", "zoo.autograd.convert",
            *(f"zoo.ops.face.{module.name}" for module in pkgutil.iter_modules(zoo.ops.face.__path__)))
KINDS = {"Tensor": zoo.Tensor, "Self": zoo.Tensor, "_bool": bool, "tuple[Tensor, ...]": tuple, "list[Tensor]": list,
         "ValuesAndIndices": tuple, "Size": tuple, "Generator": zoo.Generator, "None": type(None)}


@pytest.mark.parametrize("path", STUBS, ids=lambda p: "/".join(p.parts[-2:]))
def test_stub_is_current(path):
    assert path.read_text() == STUBS[path], f"{path.name} is out of date: python scripts/write_stubs.py"


def test_every_public_name_of_zoo_is_in_its_stub():
    text = STUBS[ROOT / "zoo" / "__init__.pyi"]
    names = [name for name in dir(zoo) if not name.startswith("_")
             and (name in zoo._MODULES or not inspect.ismodule(getattr(zoo, name)))]
    missing = [name for name in names if not any(f"{before}{name}{after}" in text for before, after in (
        ("def ", "("), ("as ", "\n"), ("\n", ":"), ("class ", "(")))]
    assert len(names) > 400 and not missing


def results_of_examples(monkeypatch) -> dict:
    """(place, name) -> what the functions and methods gave while the examples of their modules ran."""
    seen = defaultdict(list)

    def watched(key, function):
        def call(*args, **options):
            result = function(*args, **options)
            seen[key].append(result)
            return result
        return call

    tests = [test for name in EXAMPLES for test in doc_tests(importlib.import_module(name))]
    for place in (zoo, functional, zoo.Tensor):
        for name, function in list(vars(place).items()):
            if not name.startswith("_") and write_stubs.is_function(function):
                monkeypatch.setattr(place, name, watched((place, name), function))
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for test in tests:
        if any("import zoo" in example.source for example in test.examples):
            test.globs = {}
            runner.run(test)
    return seen


def test_results_are_what_the_stubs_say(monkeypatch):
    """Each function that an example calls gives the type that its stub names."""
    functions = {(place, name): f for place in (zoo, functional) for name, f in vars(place).items()}
    functions |= {(zoo.Tensor, name): f for name, f in write_stubs.attached().items()}
    seen, compared, wrong = results_of_examples(monkeypatch), 0, []
    for (place, name), results in seen.items():
        if (place, name) not in functions or name in write_stubs.OVERLOADS or name == "where":
            continue
        said = write_stubs.result_of(name, functions[place, name], place is zoo.Tensor)
        if said in KINDS:
            compared += 1
            wrong += [(name, said, type(r)) for r in results if not isinstance(r, KINDS[said])]
    assert not wrong and compared > 200, (wrong, compared)


@pytest.mark.parametrize("function, wanted", [
    (zoo.Tensor.sum, "(input, dim=None, keepdim=False, dtype=None, out=None)"),
    (zoo.sin, "(input, *, out=None)"), (zoo.Tensor.sin, "(input, *, out=None)"),
    (zoo.mul, "(input, other, *, out=None)"), (zoo.Tensor.add_, "(input, other, *, alpha=1, out=None)"),
    (zoo.Tensor.unsqueeze_, "(input, dim)"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_signatures(function, wanted):
    assert str(inspect.signature(function)) == wanted


def test_a_typed_script_runs():
    """basedpyright checks this very file (pyproject.toml); here it is seen to be a program that works."""
    assert 0 <= runpy.run_path(str(ROOT / "tests" / "typed" / "user_script.py"))["main"]() <= 1


def test_attributes_of_the_stub_exist():
    assert not [name for name in write_stubs.ATTRIBUTES if not hasattr(zoo.ones(2, 2), name)]
