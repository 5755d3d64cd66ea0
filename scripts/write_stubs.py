"""Writes the .pyi files, from which editors and type checkers know what zoo puts in place in loops:
Tensor's methods, and the functions of zoo, zoo.linalg, zoo.special and zoo.nn.functional.

    python scripts/write_stubs.py            # writes them; tests/test_stubs.py fails when they are out of date

Names, parameters and defaults are those that inspect.signature sees, a summary is the docstring's first paragraph, and
annotations are the function's own or by the tables below, which tests/test_stubs.py compares with what examples return.
"""
import inspect
import re
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import zoo
from zoo.autograd import autocast, legacy
from zoo.autograd.methods import COMPARISONS, OPERATORS, UNARY
from zoo.ops.op import Op

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 120

# --- what a parameter is, by its name; with a default of None it may be None too --------------------------------------
PARAMETERS = {
    "input": "Tensor", "self": "Tensor", "tensor": "Tensor", "other": "Tensor | Number", "out": "Any",
    "keepdim": "_bool", "dtype": "DType", "device": "Device", "generator": "Generator", "reduction": "_str",
    "dim": "_int | Sequence[_int]", "requires_grad": "_bool", "inplace": "_bool", "mask": "Tensor",
    "weight": "Tensor", "bias": "Tensor", "target": "Tensor", "memory_format": "memory_format", "training": "_bool",
    "running_mean": "Tensor", "running_var": "Tensor", "tensors": "Sequence[Tensor]", "hook": "Callable[..., Any]",
    "mat1": "Tensor", "mat2": "Tensor", "batch1": "Tensor", "batch2": "Tensor", "vec": "Tensor", "vec1": "Tensor",
    "vec2": "Tensor", "alpha": "Number", "beta": "Number", "value": "Tensor | Number", "fill_value": "Number",
    "kernel_size": "_int | Sequence[_int]", "stride": "_int | Sequence[_int]", "dilation": "_int | Sequence[_int]",
    "padding": "_int | Sequence[_int] | _str", "output_padding": "_int | Sequence[_int]", "groups": "_int",
    "query": "Tensor", "key": "Tensor", "normalized_shape": "_int | Sequence[_int]", "x1": "Tensor", "x2": "Tensor",
    "input1": "Tensor", "input2": "Tensor", "anchor": "Tensor", "positive": "Tensor", "negative": "Tensor",
    "p": "_float", "eps": "_float", "momentum": "_float | None", "size_average": "_bool",
    "q": "Tensor | _float",
}
# One name, another meaning: in these functions the parameter may be anything.
UNLIKE = {("clamp", "min"), ("arange", "end"), ("cross", "dim"), ("pad", "value"), ("norm", "p"), ("logit", "eps"),
          ("embedding_bag", "offsets"), ("matrix_norm", "dim"), ("cosine_similarity", "dim"), ("rms_norm", "eps")}

# --- what a function gives: a Tensor, if it is in none of these -------------------------------------------------------
SEVERAL = "tuple[Tensor, ...]"
RESULTS = dict.fromkeys((
    "chunk", "split", "split_with_sizes", "tensor_split", "hsplit", "vsplit", "dsplit", "unbind", "unsafe_chunk",
    "unsafe_split", "unsafe_split_with_sizes", "split_with_sizes_copy", "unbind_copy", "broadcast_tensors", "meshgrid",
    "unravel_index", "std_mean", "var_mean", "lstm_cell", "native_batch_norm", "native_group_norm",
    "native_layer_norm", "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices",
    "qr", "svd", "eigh", "lstsq", "solve_ex", "geqrf",
    ), SEVERAL)
RESULTS |= dict.fromkeys(("sort", "topk", "mode", "kthvalue", "cummax", "cummin"), "ValuesAndIndices")
RESULTS |= dict.fromkeys(("equal", "allclose", "is_nonzero", "is_signed", "is_conj", "is_neg", "is_shared"), "_bool")
RESULTS |= {"gradient": "list[Tensor]", "tolist": "Any", "item": "Any", "numpy": "np.ndarray[Any, Any]",
            "broadcast_shapes": "Size", "result_type": "np.dtype[Any]", "promote_types": "np.dtype[Any]"}
# Depends on an option or on how many arguments there are; or named tuples of their own.
RESULTS |= dict.fromkeys((
    "atleast_1d", "atleast_2d", "atleast_3d", "nonzero", "unique", "unique_consecutive", "max_pool1d", "max_pool2d",
    "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "slogdet", "frexp", "histogram",
    "aminmax", "inv_ex", "cholesky_ex", "stride", "size", "histogramdd", "lstm", "gru", "rnn_tanh", "rnn_relu",
    "multi_head_attention_forward", "compile", "load", "fractional_max_pool2d"), "Any")
OF_ALL, OF_DIM = "", "dim: _int, keepdim: _bool = False, *, out: Any = None"
OVERLOADS = {
    **dict.fromkeys(("max", "min"), (("*, out: Any = None", "Tensor"), (OF_DIM, "ValuesAndIndices"),
                                     ("other: Tensor, *, out: Any = None", "Tensor"))),
    **dict.fromkeys(("median", "nanmedian"), ((OF_ALL, "Tensor"), (OF_DIM, "ValuesAndIndices"))),
}
WHERE = {
    False: (("condition: Tensor", SEVERAL),
            ("condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Any = None", "Tensor")),
    True: (("condition: Tensor, other: Tensor | Number", "Tensor"),),
}
ATTRIBUTES = {
    "array": "Any", "node": "Any", "clock": "list[_int]", "hooks": "Any", "grad": "Tensor | None",
    "requires_grad": "_bool", "shape": "Size", "dtype": "np.dtype[Any]", "device": "device", "T": "Tensor",
    "mT": "Tensor", "H": "Tensor", "mH": "Tensor", "is_cpu": "_bool", "is_cuda": "_bool", "is_leaf": "_bool",
    "ndim": "_int", "itemsize": "_int", "nbytes": "_int", "grad_fn": "Any", "retains_grad": "_bool",
}
BUILTINS = "bool", "float", "int", "str"
HEAD = '''"""{about} Written by scripts/write_stubs.py: do not edit."""
# pyright: basic, reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# pyright: reportOverlappingOverload=false, reportMissingModuleSource=false
from builtins import bool as _bool, float as _float, int as _int, str as _str
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias, overload

import numpy as np
'''
TYPES = '''
from zoo.autograd.random import Generator
from zoo.autograd.size import Size
from zoo.autograd.tensor import Tensor
from zoo.ops.device import device
from zoo.ops.memory_format import memory_format

Number: TypeAlias = _bool | _int | _float | complex
DType: TypeAlias = np.dtype[Any] | type[np.generic]
Device: TypeAlias = device | _str | _int

class ValuesAndIndices(NamedTuple):
    values: Tensor
    indices: Tensor
'''
FROM_ATTACHED = '''
from zoo.autograd.attached import Device, DType, Number, ValuesAndIndices
from zoo.autograd.random import Generator{again}
from zoo.autograd.size import Size{again}
from zoo.autograd.tensor import Tensor{again}
from zoo.ops.device import device{again}
from zoo.ops.memory_format import memory_format{again}
'''


def spelled(annotation: Any) -> str:
    """An annotation of the source as the stub writes it: without module paths, builtins by their other names."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:zoo|collections)(?:\.\w+)*\.(\w+)", r"\1", text)
    text = re.sub(r"\b(?:typing\.)(\w+)", r"\1", text).replace("numpy.", "np.")
    text = re.sub(r"\b(bool|float|int|str)\b", r"_\1", text)
    return {"np.dtype": "np.dtype[Any]", "np.ndarray": "np.ndarray[Any, Any]", "dict": "dict[Any, Any]",
            "tuple": "tuple[Any, ...]", "list": "list[Any]"}.get(text, text)


def written(value: Any) -> str:
    """A default as the stub writes it."""
    return repr(value) if type(value) in (bool, int, float, str, type(None), tuple) else "..."


def annotation_of(function: str, parameter: inspect.Parameter) -> str:
    """The type of a parameter: its own, that of its name in the table, that of its default, or Any."""
    name, default = parameter.name, parameter.default
    if parameter.annotation is not parameter.empty:
        return spelled(parameter.annotation)
    if (function.strip("_"), name) in UNLIKE or parameter.kind is parameter.VAR_KEYWORD:
        return "Any"
    if parameter.kind is parameter.VAR_POSITIONAL:
        return "Tensor" if name == "tensors" else "Any"
    if name in PARAMETERS:
        kind = PARAMETERS[name]
    else:
        kind = {bool: "_bool", float: "_float", str: "_str"}.get(type(default), "Any")
    return f"{kind} | None" if default is None and kind != "Any" else kind


def parameters_of(name: str, function: Any, method: bool) -> list[str]:
    """The parameters as text, with the markers * and /. A method's first one is self; nothing in place takes out."""
    found, after_star = [], False
    parameters = list(inspect.signature(function).parameters.values())
    if method:
        found, parameters = ["self"], parameters[1:]
    for p in parameters:
        if p.name.startswith("_") or p.name == "out" and name.endswith("_"):
            continue
        if p.kind is p.KEYWORD_ONLY and not after_star:
            found.append("*")
        after_star |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f" = {written(p.default)}"
        found.append(f"{star}{p.name}: {annotation_of(name, p)}{default}")
    return found


def result_of(name: str, function: Any, method: bool) -> str:
    """The type of what a function gives."""
    if name in RESULTS:
        return RESULTS[name]
    given = getattr(function, "__annotations__", {}).get("return", "Tensor")
    if method and name.endswith("_") and not name.startswith("_"):
        return "Self"
    return "Tensor" if isinstance(function, Op) or given is zoo.Tensor else "None" if given is None else spelled(given)


def summary(function: Any) -> str:
    """The first paragraph of the docstring on one line."""
    text = (inspect.getdoc(function) or "").split("\n\n")[0]
    return " ".join(text.replace("\\", "\\\\").replace('"""', "'''").split())


def definition(name: str, parameters: list[str], result: str, doc: str, above: str = "") -> list[str]:
    """def name(...) -> result, with its docstring, in lines that are not too long."""
    line = f"def {name}({', '.join(parameters)}) -> {result}:"
    if len(line) > WIDTH - 4:
        rows = [""]
        for parameter in parameters:
            if len(rows[-1]) + len(parameter) > WIDTH - 10:
                rows.append("")
            rows[-1] += f" {parameter},"
        line = "\n   ".join([f"def {name}(", *rows]) + f"\n) -> {result}:"
    body = [f'    """{doc}"""', "    ..."] if doc else ["    ..."]
    return [*([above] if above else []), *line.split("\n"), *body]


def function_lines(name: str, function: Any, method: bool) -> list[str]:
    """A function or method with its overloads, if it has any."""
    doc = summary(function)
    overloads = WHERE[method] if name == "where" else OVERLOADS.get(name, ())
    if not overloads:
        parameters = parameters_of(name, function, method)
        return definition(name, parameters, result_of(name, function, method), doc)
    lines = []
    first = ["self"] if method else ["input: Tensor"] if name != "where" else []
    for parameters, result in overloads:
        above = "@overload" if len(overloads) > 1 else ""
        lines += definition(name, [*first, *([parameters] if parameters else [])], result, doc, above)
    return lines


def is_function(value: Any) -> bool:
    return isinstance(value, Op) or inspect.isfunction(value) or inspect.ismethod(value)


def attached() -> dict[str, Any]:
    """Tensor's public methods that its class body does not hold."""
    def written_in_class(f: Any) -> bool:
        return getattr(f, "__qualname__", "").startswith("Tensor.") and f.__module__ == "zoo.autograd.tensor"
    return {name: f for name, f in sorted(vars(zoo.Tensor).items())
            if not name.startswith("_") and is_function(f) and not written_in_class(f)}


def operator_lines() -> list[str]:
    """The operators, which all take a Tensor or a number."""
    lines = []
    for name in UNARY:
        lines.append(f"def __{name}__(self) -> Tensor: ...")
    for name in OPERATORS:
        for form, result in ((name, "Tensor"), (f"r{name}", "Tensor"), (f"i{name}", "Self")):
            lines.append(f"def __{form}__(self, other: Any) -> {result}: ...")
    for name in COMPARISONS:
        lines.append(f"def __{name}__(self, other: Any) -> Tensor: ...")
    return lines + ["def __getitem__(self, index: Any) -> Tensor: ...",
                    "def __setitem__(self, index: Any, value: Any) -> None: ...",
                    "def __contains__(self, value: Any) -> _bool: ...",
                    "def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]: ...",
                    *(f"def __{name}__(self) -> {kind}: ..." for name, kind in
                      (("bool", "_bool"), ("float", "_float"), ("int", "_int"), ("index", "_int"),
                       ("complex", "complex")))]


def methods_stub() -> str:
    """autograd/attached.pyi: a class from which Tensor descends in a type checker's eyes only."""
    lines = [f"{name}: {kind}" for name, kind in ATTRIBUTES.items()] + operator_lines()
    for name, function in attached().items():
        lines += function_lines(name, function, method=True)
    about = "Tensor's methods, operators and attributes that autograd/methods.py puts there."
    return HEAD.format(about=about) + TYPES + "\nclass Attached:\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def functions_stub(module: ModuleType, about: str, again: bool = False, extra: str = "", skip: tuple = ()) -> str:
    """The public functions of a module, and `extra`."""
    lines = []
    for name, function in sorted(vars(module).items()):
        if not name.startswith("_") and is_function(function) and name not in skip:
            lines += function_lines(name, function, method=False)
    imports = re.sub(r"\{again\}", "", FROM_ATTACHED)
    if again:
        imports = re.sub(r"import (\w+)\{again\}", r"import \1 as \1", FROM_ATTACHED)
    return HEAD.format(about=about) + imports + extra + "\n" + "\n".join(lines) + "\n"


def face_extra() -> str:
    """What zoo/__init__.py holds besides functions: its own import statements, the dtypes' names, constants, types."""
    source = (ROOT / "zoo" / "__init__.py").read_text()
    imported = re.findall(r"^ *(from [\w.]+ import (\w+) as \2)$", source, flags=re.MULTILINE)
    kept = [line for line, name in imported if not is_function(getattr(zoo, name)) and f"import {name} " not in
            "import Tensor import Size import device import memory_format"]
    lines = [line for line in kept if "zoo.ops.dtypes" not in line]
    lines += [f"{name}: np.dtype[Any]" for name, value in sorted(vars(zoo).items())
              if isinstance(value, np.dtype) and not name.startswith("_")]
    lines += [f"{name}: _float" for name in ("e", "inf", "nan", "pi")]
    lines.append("newaxis: None")
    lines += [f"from {kind.__module__} import {name} as {name}" for name, kind in autocast.FUNCTIONS.items()
              if isinstance(kind, type)]
    lines += [f"class {name}(Tensor): ..." for name in sorted(legacy.TYPES)]
    return "\n" + "\n".join(lines) + "\n"


def stubs() -> dict[Path, str]:
    """Every stub's path and text."""
    from zoo import linalg, special
    from zoo.nn import functional
    for late in zoo._LATE:
        getattr(zoo, late)                                   # becomes an attribute once it is asked for
    return {
        ROOT / "autograd" / "attached.pyi": methods_stub(),
        ROOT / "zoo" / "__init__.pyi": functions_stub(zoo, "zoo's functions.", again=True, extra=face_extra()),
        ROOT / "zoo" / "linalg.pyi": functions_stub(linalg, "zoo.linalg's functions."),
        ROOT / "zoo" / "special.pyi": functions_stub(special, "zoo.special's functions."),
        ROOT / "zoo" / "nn" / "functional.pyi": functions_stub(functional, "zoo.nn.functional's functions."),
    }


def main():
    for path, text in stubs().items():
        path.write_text(text)
        print(f"{path.relative_to(ROOT)}: {text.count('def ')} functions")


if __name__ == "__main__":
    main()
