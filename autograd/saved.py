"""What a Node saved, read back for its derivatives: whole, or an error that says who wrote to it.

For a backward pass on ndarrays, and for one on DeviceArrays, this is written out once per plan, as calls are in
record.py: `read` is the same thing without text, for every other case; a test compares the two.
"""
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zoo.ops.cuda.array import DeviceArray
from zoo.ops.dtypes import float32, float64
from zoo.ops.errors import GradError
from zoo.ops.op import Plan

if TYPE_CHECKING:
    # A stub without a source: all that methods.py puts onto Tensor.
    from zoo.autograd.attached import Attached  # pyright: ignore[reportMissingModuleSource]
else:
    Attached = object

GRADIENTS = """
def gradients(node, retain, {heads}):
    if node.saved is None:
        raise freed(node)
    {unpacked}{reads}{outputs}{letting_go}{choice}
    return arrays({heads}, {names})
"""
# float32 and float64 of one dimension or more need no care: NumPy computes in them as they are.
CHOICE = """
    if ({first}.dtype is float32 or {first}.dtype is float64) and {first}.ndim:
        return bare({heads}, {names})"""
READ = """
    if isinstance({x}, Variable):
        if {x}.clock[0] > node.seq:
            raise overwritten(node, f"an input of shape {{{x}.shape}}")
        {x} = {x}.array"""
READ_SEVERAL = """
    {x} = read(node, {x}, False)"""
OUTPUT = """
    if node.clock{which}[0] > node.seq:
        raise overwritten(node, f"its output of shape {{node.shape}}")"""
LETTING_GO = """
    if not retain:
        node.saved = None"""


class Variable(Attached):
    """What the engine sees of a Tensor."""
    __slots__ = ("array", "requires_grad", "node", "_grad", "clock", "hooks", "turned", "__weakref__")

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)


def freed(node: Any) -> GradError:
    """The error of a second pass through a graph whose values the first one let go."""
    return GradError(f"backward: the saved values of {node.name} were freed by an earlier backward; "
                     "call that with retain_graph=True to go through the graph again")


def overwritten(node: Any, what: str) -> GradError:
    """The error of a pass that needs a value as it was before a write in place."""
    line = getattr(node, "line", None)
    return GradError(f"backward: {node.name} needs {what}, which was changed in place by an inplace operation since"
                     + (f"; {node.name} was called at {line}" if line
                        else "; autograd.detect_anomaly() names the line"))


def read(node: Any, x: Any, as_tensor: bool) -> Any:
    """One saved value: of a Tensor its array, or the Tensor itself; of a tuple of them likewise."""
    if type(x) is tuple and x and isinstance(x[0], Variable):
        return tuple(read(node, v, as_tensor) for v in x)
    if not isinstance(x, Variable):
        return x
    if x.clock[0] > node.seq:
        raise overwritten(node, f"an input of shape {x.shape}")
    return x if as_tensor else x.array


def write_gradients(plan: Plan) -> Callable:
    """The function (node, retain, *gradients of outputs) -> a gradient per edge, on ndarrays; kept in the plan."""
    plan.written = written = write(plan, CHOICE, plan.arrays)
    return written


def write_gpu_gradients(plan: Plan) -> Callable:
    """The same on DeviceArrays."""
    plan.on_gpu = written = write(plan, "", plan.by(DeviceArray))
    return written


def write(plan: Plan, choice: str, arrays: Callable) -> Callable:
    """The text of this plan, as a function; `arrays` works the gradients out."""
    op, several = plan.op, len(plan.op.tracked) > 1
    heads = [f"d{y}" for y in op.tracked]
    names = [f"saved{k}" for k in range(plan.reads)]
    text = GRADIENTS.format(
        heads=", ".join(heads), first=heads[0], names=", ".join(names),
        unpacked=f"{', '.join(names)}, = node.saved" if names else "",
        reads="".join((READ_SEVERAL if op.variadic else READ).format(x=n) for n in names),
        outputs="".join(OUTPUT.format(which=f"[{which}]" if several else "") for _, which in plan.outputs),
        letting_go=LETTING_GO if plan.holds else "",
        choice=choice.format(heads=", ".join(heads), first=heads[0], names=", ".join(names)))
    space: dict[str, Any] = dict(Variable=Variable, read=read, freed=freed, overwritten=overwritten,
                                 bare=plan.bare, arrays=arrays, float32=float32, float64=float64, __name__=__name__)
    exec(text, space)
    return space["gradients"]
