"""Op: one differentiable array operation, as a record. It knows no graph, no Tensor and no device."""
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from zoo.ops.dtypes import bfloat16
from zoo.ops.errors import DtypeError

OPS: dict[str, "Op"] = {}
PLAIN: set[type] = {np.ndarray, float, int, bool, complex, type(None), tuple, slice, str, type(Ellipsis), np.dtype,
                   type(bfloat16), *(type(np.dtype(t)) for t in "?bhilqBHILQefdFD")}
ALIASES = {"input": 0, "self": 0, "other": 1}          # torch's keywords for what a formula calls x, or a and b

NUMPY_NAMES = ("axis", "dim"), ("keepdims", "keepdim")  # torch takes NumPy's too


class Both(NamedTuple):
    """Two gradients of one array, whose sum is asked for: a kernel that reads them needs no array of the sum."""
    one: Any
    other: Any


class Spec(NamedTuple):
    """What `check` promises: the shape and dtype of an output."""
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(eq=False, slots=True)
class Plan:
    """What one call has to remember, given which of its inputs want a gradient."""
    op: "Op"
    saved: str               # the tuple of saved values, as text over the parameters' and outputs' names
    edges: str               # the tuple of places where the gradients go, as text likewise
    backward: Callable       # (*gradients of outputs, *saved) -> one gradient per wanted input, through the ops
    arrays: Callable         # the same on ndarrays, straight to the NumPy paths
    bare: Callable           # and on float32 or float64 of one dimension or more: the formulas themselves
    by: Callable             # (citizen type) -> the same on that citizen, straight to its functions
    outputs: tuple           # (position among the saved values, which output) of every saved output
    save: Callable           # (*args, *outputs) -> (saved, edges): the two texts as a function
    holds: bool              # are there saved inputs or outputs, to be freed as backward goes?
    reads: int               # how many values are saved
    written: Callable | None = None         # `arrays` or `bare` on what a node saved; autograd writes it when needed
    on_gpu: Callable | None = None          # likewise, of `by(DeviceArray)`

ITSELF = (lambda dy: dy).__code__.co_code


@dataclass(frozen=True, eq=False)
class Op:
    """Made by `elementwise` (binding.py) and `structured`; see CONTRIBUTING.md for the two ways to write one.

    Calling it runs it on whatever citizen the arguments belong to: ndarray, DeviceArray, Tensor, a tracer.
    """
    name: str
    forward: Callable                                               # ndarrays and options in, ndarray (or tuple) out
    derivatives: dict[str, Callable] = field(default_factory=dict)  # input -> f(dy, whatever it reads by name)
    backward: Callable | None = None          # instead: f(dy, what it reads, wanted) -> a gradient per `differentiable`
    differentiable: tuple[str, ...] = ()      # the inputs that have a gradient
    outputs: tuple[str, ...] = ("y",)         # more than one name: forward returns a tuple
    reserve: tuple[str, ...] = ()             # the last of these, if made for the backward pass alone: not tracked
    check: Any = None                         # a Callable: same arguments -> Spec (or a tuple of them), or raises
    decompose: Any = None                     # the same thing said in other ops, for what records or has no kernel
    gpu: Callable | None = None               # launches its kernel on DeviceArrays, if that is not in <module>_gpu
    view: bool = False                        # may the output share memory with the first input?
    idle: bool = False                        # may gradients of outputs that nobody used, but the first, be None?
    adds: bool = False                        # on the GPU its derivative takes the gradient as two summands (Both) too
    samples: Callable = lambda rng: {}        # rng -> {kind: [argument tuples]}, for the tests
    formula: Callable | None = None           # the scalar formula of an elementwise op
    bare: Callable | None = None              # the formula of a derivative on ndarrays, without care for dtypes
    kind: str = ""                            # of an elementwise op: same | float | bool
    dtypes: str = "floats"                    # what the tests run it on: words of `floats ints bool`
    module: str = ""                          # where it was written: its kernels are in the module named <module>_gpu

    def __post_init__(self):
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        names, defaults, variadic = signature(self.forward)
        put("parameters", names)
        put("defaults", defaults)
        put("variadic", variadic)
        put("arity", -1 if self.variadic else len(self.parameters))
        put("differentiable", self.differentiable or tuple(p for p in self.parameters if p in self.derivatives))
        put("tracked", self.outputs[:len(self.outputs) - len(self.reserve)])
        put("plans", {})
        put("handlers", {})
        put("__doc__", self.forward.__doc__)
        put("__name__", self.name)
        if OPS.setdefault(self.name, self) is not self:
            raise ValueError(f"op {self.name!r} exists already")

    def __call__(self, *args: Any, **options: Any) -> Any:
        if options or len(args) != self.arity:
            out = options.pop("out", None)
            if out is not None:
                return into(self(*args, **options), out)
            args = self.bind(args, options)
        handler = self.handlers.get(type(args[0])) or self.handler(args)
        try:
            return handler(*args)
        except AttributeError as error:
            raise self.refused(error, args) from None

    def __repr__(self):
        return f"<op {self.name}({', '.join(self.parameters)})>"

    @property
    def __signature__(self) -> inspect.Signature:
        """What inspect.signature, help and IDEs show: the parameters by torch's names, and out."""
        kinds = [inspect.Parameter.POSITIONAL_OR_KEYWORD] * len(self.parameters)
        if self.variadic:
            kinds[-1] = inspect.Parameter.VAR_POSITIONAL
        of_user = {"x": "input", "a": "input", "b": "other"}
        found = [inspect.Parameter(of_user.get(name, name), kind, default=default)
                 for name, kind, default in zip(self.parameters, kinds, self.defaults, strict=True)]
        out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        return inspect.Signature([*found, out])

    def array_handler(self) -> Callable:
        """Straight to NumPy, if nobody else takes part in the call."""
        space = dict(forward=self.forward, handler=self.handler, PLAIN=PLAIN, __name__=__name__)
        if self.variadic:
            return lambda *args: self.handler(args)(*args)
        call = ", ".join(self.parameters)
        plain = " and ".join(f"type({p}) in PLAIN" for p in self.parameters[1:]) or "True"
        return eval(f"lambda {call}: forward({call}) if {plain} else handler(({call},))({call})", space)

    def handler(self, args: tuple) -> Callable:
        """Who runs this call: of the types that take part, the one of the highest level. Each is asked once per op."""
        owner = max((type(x) for x in args if hasattr(type(x), "__op__")), key=lambda t: t.__op_level__, default=None)
        if owner is None:
            if type(args[0]) is np.ndarray:  # written out on first use: 60 us that importing zoo need not pay
                self.handlers[np.ndarray] = self.array_handler()
            return self.forward
        return self.handler_of(owner)

    def refused(self, error: AttributeError, args: tuple) -> Exception:
        """What is raised where an argument that is no array was asked for its shape: that error names no op."""
        for name, x in zip(self.names(len(args)), args, strict=True):
            if x is error.obj and not hasattr(x, "shape"):
                return TypeError(f"{self.name}: wants a tensor as {name}, got {type(x).__name__}")
        return error

    def handler_of(self, owner: type) -> Callable:
        """The function that runs this op on a citizen of this type."""
        if owner not in self.handlers:
            self.handlers[owner] = owner.__op__(self)
        return self.handlers[owner]

    def bind(self, args: tuple, options: dict) -> tuple:
        """Every call becomes one positional tuple, so that nothing below has to look at names."""
        if self.variadic:
            if options:
                raise TypeError(f"{self.name}: takes no keywords, got {sorted(options)}")
            return args
        for alias, position in ALIASES.items():
            if alias in options and alias not in self.parameters and position < self.arity:
                options[self.parameters[position]] = options.pop(alias)
        for alias, name in NUMPY_NAMES:
            if alias in options and name in self.parameters and name not in options:
                options[name] = options.pop(alias)
        rest = self.parameters[len(args):]
        unknown = options.keys() - set(rest)
        bound = *args, *(options.get(p, d) for p, d in zip(rest, self.defaults[len(args):], strict=False))
        if unknown or len(args) > self.arity or any(x is inspect.Parameter.empty for x in bound):
            raise TypeError(f"{self.name}: wants ({', '.join(self.parameters)}), got {len(args)} arguments"
                            + (f" and {sorted(options)}" if options else ""))
        return bound

    def names(self, count: int) -> tuple[str, ...]:
        """The parameters' names of a call with `count` arguments: *xs becomes xs0, xs1 ..."""
        if not self.variadic:
            return self.parameters
        fixed = self.parameters[:-1]
        return *fixed, *(f"{self.parameters[-1]}{k}" for k in range(count - len(fixed)))

    def plan(self, wanted: int, count: int = 0) -> Plan:
        """Spell out, once, which derivatives run for the inputs whose bits are set in `wanted`, and what they read.

        A derivative's parameter names say it: `dy` the incoming gradient, `y` the output, `x` an input or
        option, `x_shape` only its shape, and a parameter with a default is worked out by the derivative itself.
        """
        key = (wanted, count) if self.variadic else wanted
        if key not in self.plans:
            self.plans[key] = make_plan(self, wanted, self.names(count))
        return self.plans[key]


def signature(function: Callable) -> tuple[tuple[str, ...], tuple, bool]:
    """(names, defaults, does it end in *xs) of a plain function: inspect.signature, in a tenth of its time.

    A function that stands for another carries that one's as its attribute `takes`."""
    given = getattr(function, "takes", None)
    if given is not None:
        return given
    code = function.__code__
    names = code.co_varnames[:code.co_argcount]
    defaults = (inspect.Parameter.empty,) * (len(names) - len(function.__defaults__ or ())) + (
        function.__defaults__ or ()
    )
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    if variadic:
        names, defaults = (*names, code.co_varnames[code.co_argcount]), (*defaults, inspect.Parameter.empty)
    return names, defaults, variadic


def into(result: Any, out: Any) -> Any:
    """out=: the result is computed, then moved into the memory of `out`, which is given back."""
    if isinstance(result, tuple):
        for r, o in zip(result, out, strict=True):
            into(r, o)
        return out
    if hasattr(out, "__out__"):
        return out.__out__(result)
    np.copyto(out, result, casting="same_kind")
    return out


def memory_of(x: Any) -> Any:
    """The raw array behind x, for what writes into it: whoever keeps account of writes to x takes note."""
    return x.__written__() if hasattr(x, "__written__") else x


def reads_of(derivative: Callable, gradients: tuple) -> list[str]:
    """Which values a derivative reads, beside the gradients of outputs."""
    return [n for n in parameters_of(derivative) if n not in gradients and n != "wanted"]


def make_plan(op: Op, wanted: int, names: tuple[str, ...]) -> Plan:
    gradients = tuple(f"d{y}" for y in op.tracked)
    star = op.parameters[-1] if op.variadic else None
    fixed = len(op.parameters) - 1 if star else len(names)
    chosen = [i for i in range(len(names)) if wanted >> i & 1]
    flags = tuple(p in op.differentiable and bool(wanted >> i & 1) for i, p in enumerate(op.parameters))
    slots: list[int] = []                            # of a derivative that gives several gradients, the wanted ones
    if op.backward:
        rows = {"joint": op.backward}
        slots = [op.differentiable.index(op.parameters[i]) for i in chosen]
    else:
        rows = {p: op.derivatives[p] for p in dict.fromkeys(op.parameters[min(i, fixed)] for i in chosen)}
    calls, bare_calls, table, reads = [], [], {}, {}
    for k, (p, d) in enumerate(rows.items()):
        reads.update(dict.fromkeys(reads_of(d, gradients)))
        table[f"d{k}"] = d
        call = f"d{k}({', '.join(parameters_of(d))})"
        if p == star:
            slots = [i - fixed for i in chosen if i >= fixed]
        calls.append(f"*pick({call}), " if p in ("joint", star) else f"{call}, ")
        bare_calls.append("dy, " if passes(d) else calls[-1])
    space = {"wanted": tuple(f for f, p in zip(flags, op.parameters, strict=True) if p in op.differentiable),
             "pick": lambda gs: [gs[i] for i in slots],
             "__name__": __name__}       # NumPy's warnings inside are those of a module of zoo: not shown
    head = ", ".join((*gradients, *reads))
    body = f"lambda {head}: ({''.join(calls)})"
    bare_body = f"lambda {head}: ({''.join(bare_calls)})"
    backward = eval(body, {**space, **table})
    arrays = eval(body, {**space, **{k: d.forward if isinstance(d, Op) else d for k, d in table.items()}})
    bare = eval(bare_body,
                {**space, **{k: getattr(d, "bare", None) or getattr(d, "forward", d) for k, d in table.items()}})

    def by(citizen: type) -> Callable:
        return eval(bare_body, {**space, **{k: d.handler_of(citizen) if isinstance(d, Op) else d
                                            for k, d in table.items()}})
    optional = {p for p, d in zip(op.parameters, op.defaults, strict=True) if d is None}
    saved = "(" + "".join(f"{spell(n, star, names, fixed, optional)}, " for n in reads) + ")"
    edges = "(" + "".join(f"{names[i]}.node or {names[i]}, " for i in chosen) + ")"
    outputs = tuple((k, op.tracked.index(n)) for k, n in enumerate(reads) if n in op.tracked)
    arguments = ", ".join((*names, *(y for y in op.outputs if y not in names)))
    save = eval(f"lambda {arguments}: ({saved}, {edges})")
    holds = any(n in op.outputs or n in op.differentiable for n in reads)
    return Plan(op, saved, edges, backward, arrays, bare, by, outputs, save, holds, len(reads))


def passes(derivative: Callable) -> bool:
    """Is it `dy` itself, as in a sum? Then a plan's `bare` need not call it: 0.15 us of the 2 that a node takes."""
    formula = getattr(derivative, "formula", None)
    return formula is not None and formula.__code__.co_varnames == ("dy",) and formula.__code__.co_code == ITSELF


def parameters_of(derivative: Callable) -> tuple[str, ...]:
    if isinstance(derivative, Op):
        return derivative.parameters
    names, defaults, _ = signature(derivative)
    return tuple(n for n, d in zip(names, defaults, strict=True) if d is inspect.Parameter.empty)


def spell(name: str, star: str | None, names: tuple[str, ...], fixed: int, optional: set[str]) -> str:
    """How a saved value is written: `x`, the shape of x (or None) for `x_shape`, and for *xs the tuple of them."""
    shape = name.endswith("_shape") and name not in names          # layer_norm has an option normalized_shape
    base = name[:-6] if shape else name
    if base == star:
        return "(" + "".join(f"{n}.shape, " if shape else f"{n}, " for n in names[fixed:]) + ")"
    if shape and base in optional:
        return f"(None if {base} is None else {base}.shape)"
    return f"{base}.shape" if shape else name


def structured(rows: type) -> Op:
    """Class body -> Op: `forward` in NumPy, and for an input `x` its derivative `dx` written in ops.

    Names in the body: forward, check, samples, view, outputs, idle, reserve, decompose, gpu, dtypes, and either
    d<input> for each differentiable input, or backward(dy, ..., wanted) with `differentiable = ("x", "weight")`.
    """
    body = dict(vars(rows))
    forward = body["forward"]
    names = signature(forward)[0]
    derivatives = {n: body[f"d{n}"] for n in names if f"d{n}" in body}
    forward.__doc__ = rows.__doc__
    options = {
        k: body[k]
        for k in ("check", "samples", "view", "idle", "adds", "outputs", "reserve", "decompose", "gpu", "dtypes",
                  "backward", "differentiable")
        if k in body
    }
    return Op(rows.__name__, forward, derivatives, module=rows.__module__, **options)


def need_float(op: str, *xs) -> None:
    """Raises DtypeError unless all arrays are floating."""
    from zoo.ops.dtypes import INEXACT
    for x in xs:
        if x is not None and x.dtype not in INEXACT:
            raise DtypeError(f"{op}: wants floating dtypes, got {', '.join(str(x.dtype) for x in xs if x is not None)}")
