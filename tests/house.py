"""The house as data, for the gates: its folders, its files and what each file imports."""
import ast
import functools
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"zoo": "zoo", "ops": "zoo.ops", "autograd": "zoo.autograd", "models": "zoo.models", "hub": "zoo.hub"}

# Each imports only from its own floor and from those below it. The longest prefix of a module's name decides.
FLOORS = {
    "zoo.ops": 0,
    "zoo.autograd": 1,
    "zoo": 2,                 # nn, optim, data, file readers and whatever else lies in zoo/
    "zoo.models": 3,
    "zoo.hub": 4,
    "zoo.data.datasets": 5,
    "zoo.train": 5,
}
FACE = 6                      # zoo/__init__.py itself


class Import(NamedTuple):
    """One import statement: the module it names, the names it takes, the line, and whether it runs at import time."""
    module: str
    names: tuple[str, ...]
    bound: str                # what `import a.b.c` or `import a.b.c as d` binds: a or d
    line: int
    at_import: bool
    level: int


def library_files() -> list[Path]:
    """Every real .py file of the library; the links zoo/ops ... are not followed."""
    found = []
    for folder in PACKAGES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(part.is_symlink() for part in path.parents if part != ROOT and ROOT in part.parents):
                found.append(path)
    return found


def all_files() -> list[Path]:
    """The library's files, the tests' and the scripts'. The yardsticks are copies of somebody else's files."""
    others = [p for f in ("tests", "scripts") for p in sorted((ROOT / f).rglob("*.py")) if "yardsticks" not in p.parts]
    return library_files() + others


def module_name(path: Path) -> str:
    """ops/cuda/driver.py -> zoo.ops.cuda.driver."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts[0] = PACKAGES[parts[0]]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def floor_of(module: str) -> int:
    prefix = module
    while prefix not in FLOORS:
        prefix = prefix.rpartition(".")[0]
    return FLOORS[prefix]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def imports_of(path: Path) -> list[Import]:
    """All imports of a file, those inside functions and those by importlib.import_module("constant") as well."""
    tree = tree_of(path)
    late = {id(n) for f in ast.walk(tree) if runs_later(f) for n in ast.walk(f)}
    found = []
    for node in ast.walk(tree):
        now = id(node) not in late
        if isinstance(node, ast.Import):
            for a in node.names:
                found.append(Import(a.name, (), a.asname or a.name.split(".")[0], node.lineno, now, 0))
        elif isinstance(node, ast.ImportFrom):
            names = tuple(a.name for a in node.names)
            found.append(Import(node.module or "", names, "", node.lineno, now, node.level))
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            if node.args and isinstance(node.args[0], ast.Constant):
                found.append(Import(str(node.args[0].value), (), "importlib", node.lineno, now, 0))
    return found


def called(node: ast.Call) -> str:
    """The last part of the function's name: `import_module` of importlib.import_module(...)."""
    return getattr(node.func, "attr", None) or getattr(node.func, "id", "")


def runs_later(node: ast.AST) -> bool:
    """A function's body, or what only a type checker reads."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))


def targets(found: Import, modules: set[str]) -> list[str]:
    """The modules an import reaches: `from zoo.ops import conv` reaches zoo.ops.conv if that is a module."""
    return [t if (t := f"{found.module}.{n}") in modules else found.module for n in found.names] or [found.module]
