"""Gates that import the library: docstring examples run, and GPU functions have the parameters of their NumPy twins."""
import doctest
import importlib
import importlib.util
import inspect

import pytest

from tests.house import imports_of, library_files, module_name

GPU_FILES = [p for p in library_files() if p.name.endswith("_gpu.py")]
MODULES = sorted(module_name(p) for p in library_files())
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def load(name: str):
    """A module; those with kernels need Triton, which only Linux has, and others an extra."""
    if name.endswith(("_gpu", "__main__")) or name.startswith("zoo.ops.cuda."):
        if name.endswith("__main__"):
            pytest.skip("a command")
        pytest.importorskip("triton")
    if name.startswith("zoo.ops.compiled."):
        pytest.importorskip("numba")
    if name == "zoo.utils.tensorboard":
        pytest.importorskip("tensorboardX")
    return importlib.import_module(name)


def op_docs(module) -> list[doctest.DocTest]:
    """Ops are records, which doctest's finder passes over: their docstrings are read here."""
    from zoo.ops.op import OPS
    parser = doctest.DocTestParser()
    mine = [op for op in OPS.values() if op.module == module.__name__ and op.__doc__]
    return [parser.get_doctest(op.__doc__, {}, f"{module.__name__}.{op.name}", module.__file__, 0) for op in mine]


def doc_tests(module) -> list[doctest.DocTest]:
    found = [t for t in doctest.DocTestFinder().find(module, module.__name__, extraglobs={}) if t.examples]
    found = [t for t in found if is_of(module, t.name)]
    names = {t.name for t in found}
    return found + [t for t in op_docs(module) if t.examples and t.name not in names]


def is_of(module, name: str) -> bool:
    """False for what users call there and another module documents (autograd/called.py)."""
    public = getattr(module, name.removeprefix(f"{module.__name__}."), None)
    return not hasattr(public, "__wrapped__") or inspect.unwrap(public).__module__ == module.__name__


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name, tmp_path, monkeypatch):
    """In a fresh folder. One that imports zoo is pasted by users, so nothing of its module is in reach of it."""
    module = load(name)
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for test in doc_tests(module):
        pasted = any(e.source.startswith(("import zoo", "from zoo")) for e in test.examples)
        test.globs = {} if pasted else dict(vars(module))
        runner.run(test)
    result = runner.summarize()
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples of {name} fail (see above)"


def test_examples_are_found():
    """Guards the gate above: a finder that finds nothing never fails."""
    count = sum(len(t.examples) for name in MODULES if not name.endswith(("_gpu", "__main__"))
                and not name.startswith(("zoo.ops.cuda.", "zoo.ops.compiled."))
                for t in doc_tests(importlib.import_module(name)))
    assert count > 100


def shared() -> set[tuple[str, str]]:
    """(module, name) of what library files take from each other's *_gpu.py: helpers of launches, which need no twin."""
    return {(found.module, name) for path in library_files() for found in imports_of(path)
            for name in found.names if found.module.endswith("_gpu") and found.module != module_name(path)}


SHARED = shared()


@pytest.mark.parametrize("path", GPU_FILES, ids=lambda p: p.stem)
def test_gpu_functions_have_twins(path):
    """A public function of x_gpu.py that is no kernel: an Op of its name, or a function of x.py, has its parameters.

    Helpers of one file are private (_name); those that several files share are not asked for a twin.
    """
    name = module_name(path)
    module = load(name)
    from zoo.ops.op import OPS
    twin_name = name.removesuffix("_gpu")
    if importlib.util.find_spec(twin_name) is None:
        assert not any(op.module == twin_name for op in OPS.values())
        return                                   # helpers of kernels only: no op's dispatch comes here
    twin_module = importlib.import_module(twin_name)
    for public, function in vars(module).items():
        if public.startswith("_") or not inspect.isfunction(function) or function.__module__ != name:
            continue
        mine = tuple(inspect.signature(function).parameters)
        twin = OPS.get(public) or getattr(twin_module, public, None)
        if twin is None and (name, public) in SHARED:
            continue
        assert twin is not None, f"{name}.{public}{mine} has no twin; is it a helper? Then call it _{public}"
        theirs = twin.parameters if public in OPS else tuple(inspect.signature(twin).parameters)
        assert mine == theirs, f"{name}.{public} takes {mine}, its twin takes {theirs}"
