"""Gates: the rules of the house that a machine can check. A broken rule fails here with the file and the line."""
import ast
import os
import subprocess
import sys
import tomllib

import pytest

from tests.house import (
    FACE,
    PACKAGES,
    ROOT,
    all_files,
    floor_of,
    imports_of,
    library_files,
    module_name,
    targets,
    tree_of,
)

MODULES = {module_name(p) for p in library_files()}
FILE_LINES, FUNCTION_LINES, KERNEL_LINES = 500, 60, 80
LONG_FILES: dict[str, str] = {}          # path -> why it may be longer
LONG_FUNCTIONS: dict[str, str] = {}      # path:name -> why it may be longer
IMPORT_SECONDS, NUMPY_SECONDS = 0.25, 0.12
LINKED = [f for f in PACKAGES if f != "zoo"]


def here(path) -> str:
    return str(path.relative_to(ROOT))


def in_folder(path, *folders: str) -> bool:
    return here(path).startswith(folders)


# -- who may import whom

def test_the_house_is_seen():
    """Guards the gates below against passing because they looked at nothing."""
    assert {"zoo", "zoo.ops", "zoo.ops.cuda", "zoo.autograd", "zoo.nn", "zoo.models", "zoo.hub"} <= MODULES
    assert len(MODULES) > 30
    assert {f: os.readlink(ROOT / "zoo" / f) for f in LINKED} == {f: f"../{f}" for f in LINKED}


def test_floors():
    """Each floor imports only what lies on it or below it."""
    broken = []
    for path in library_files():
        mine = FACE if (name := module_name(path)) == "zoo" else floor_of(name)
        for found in imports_of(path):
            for target in targets(found, MODULES):
                if target.split(".")[0] == "zoo" and target != "zoo" and floor_of(target) > mine:
                    theirs = floor_of(target)
                    broken.append(f"{here(path)}:{found.line}: {name} (floor {mine}) imports {target} (floor {theirs})")
    assert not broken, "\n".join(broken)


def test_nothing_inside_imports_the_public_face():
    """Inside, only `from zoo.a.b import c` and `import zoo.a.b as c`; zoo.train, the first user, may use the face."""
    broken = []
    for path in library_files():
        if in_folder(path, "zoo/train/") or module_name(path) == "zoo":
            continue
        for found in imports_of(path):
            face = found.module == "zoo" or found.module.startswith("zoo.") and found.bound == "zoo"
            if face or found.level:
                broken.append(f"{here(path)}:{found.line}: imports {found.module or 'a relative module'}")
    assert not broken, "\n".join(broken)


def test_triton_and_cuda_stay_in_their_places():
    """Triton at import only in *_gpu.py and ops/cuda, inside functions too; cuda only in ops/cuda; torch nowhere."""
    broken = []
    for path in library_files():
        gpu, cuda = path.name.endswith("_gpu.py"), in_folder(path, "ops/cuda/")
        for found in imports_of(path):
            top = found.module.split(".")[0]
            kernels = any(t.endswith("_gpu") for t in targets(found, MODULES))
            wrong = (top == "torch"
                     or top == "triton" and not (gpu or cuda)
                     or top == "cuda" and not cuda
                     or kernels and found.at_import and not (gpu or cuda))
            if wrong:
                broken.append(f"{here(path)}:{found.line}: imports {found.module} {found.names or ''}")
    assert not broken, "\n".join(broken)


def test_package_list_equals_folders():
    """A new sub-package is a row of pyproject.toml, or wheels would lack it."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {module_name(p) for p in library_files() if p.name == "__init__.py"}
    assert set(tools["packages"]) == folders
    assert len(tools["packages"]) == len(folders)
    assert tools["package-dir"] == {name: folder for folder, name in PACKAGES.items()}
    bare = [here(p) for p in library_files() if not (p.parent / "__init__.py").exists()]
    assert not bare, f"modules in folders without __init__.py: {bare}"


# -- import zoo

def child(code: str) -> tuple[str, float]:
    """Output and CPU seconds (user and system) of `python -c code`, run outside the checkout's folder."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name in ("ZOO_INTERPRET", "PYTHONDONTWRITEBYTECODE"):
        env.pop(name, None)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env, cwd="/", text=True) as process:
        assert process.stdout
        out = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{code!r} ended with {process.returncode}"
    return out, used.ru_utime + used.ru_stime


def test_import_loads_no_gpu_library_and_no_torch():
    out, _ = child("import sys, zoo; print(*sys.modules)")
    loaded = set(out.split())
    assert "zoo.ops.op" in loaded
    assert not {m.split(".")[0] for m in loaded} & {"triton", "cuda", "torch", "ops", "autograd", "models", "hub"}
    assert not {m for m in loaded if m.endswith("_gpu")}


def test_import_is_quick():
    """CPU time of the whole child, Python's own start included; the best of 5, as others may use the machine.

    With all its cores busy a machine was seen to need 4 times the CPU time for the same imports, NumPy's included; the
    limit is for a machine that imports NumPy in NUMPY_SECONDS, and longer in proportion where that takes longer.
    """
    child("import zoo")                  # writes the .pyc files
    numpy, zoo = (min(times) for times in zip(*((child("import numpy")[1], child("import zoo")[1]) for _ in range(5)),
                                              strict=True))
    limit = IMPORT_SECONDS * max(1.0, numpy / NUMPY_SECONDS)
    assert zoo < limit, f"import zoo took {zoo:.3f} s of CPU time, import numpy {numpy:.3f}; limit {limit:.3f}"


# -- sizes

def test_file_sizes():
    long = {here(p): n for p in all_files() if (n := len(p.read_text().splitlines())) > FILE_LINES}
    assert not {p: n for p, n in long.items() if p not in LONG_FILES}
    assert LONG_FILES.keys() <= long.keys(), "an exception that nobody needs any more"


def is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = (ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list)
    return any(n.split(".")[-1] == "jit" for n in names)


def test_function_sizes():
    """From `def` to the last line, docstring included."""
    long = {}
    for path in all_files():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > (KERNEL_LINES if is_kernel(node) else FUNCTION_LINES):
                    long[f"{here(path)}:{node.name}"] = lines
    assert not {f: n for f, n in long.items() if f not in LONG_FUNCTIONS}
    assert LONG_FUNCTIONS.keys() <= long.keys(), "an exception that nobody needs any more"


# -- links that a wheel must not depend on are in git as links

def test_links_are_committed():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    rows = subprocess.run(["git", "ls-files", "-s", "zoo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    links = {row.split("\t")[1] for row in rows.splitlines() if row.startswith("120000")}
    assert links == {f"zoo/{f}" for f in LINKED}
