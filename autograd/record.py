"""How one op runs on Tensors, written out once per op so that a small op costs about a microsecond.

For `mul(a, b)` the text below becomes a function of the two names a and b: look into each input, run the op on
the arrays, and where an input wants a gradient, make the node. namedtuple and dataclasses are made the same way.
`remember` in tensor.py is the same thing without text, for every other case; a test compares the two.
"""
from collections.abc import Callable
from itertools import combinations

import numpy as np

from zoo.autograd.engine import ForeignNode, Node, pick
from zoo.autograd.mode import MODE, PAUSED, WATCHED, tick
from zoo.ops.cuda.array import DeviceArray
from zoo.ops.dtypes import INEXACT
from zoo.ops.op import PLAIN, Op

INPUT = """
    if type({p}) is Tensor or type({p}) in TENSORS:
        {p}_ = {p}.array
        if type({p}_) is not Array:
            return elsewhere({all}){wish}
    elif type({p}) in PLAIN:
        {p}_ = {p}
    else:
        return elsewhere({all})"""
WISH = """
        if {p}.requires_grad:
            wanted += {bit}"""
CALL = """
def {name}({all}):
    wanted = 0{inputs}
    try:
        y = forward({raw})
    except AttributeError as error:
        raise op.refused(error, ({raw},)) from None
    {out}
    if wanted and (not PAUSED or MODE.recording){inexact}:
        {branches}
        node = Node()
        node.plan = plan
        node.saved = saved
        node.edges = edges
        node.shape = y.shape
        node.dtype = y.dtype
        node.clock = out.clock
        node.hooks = None
        node.seq = tick()
        out.requires_grad = True
        out.node = node
        if WATCHED:
            mark(node)
    else:
        out.requires_grad = False
        out.node = None
    return out
"""
CALL_MANY = """
def {name}({all}):
    wanted = 0{inputs}
    try:
        {outputs} = forward({raw})
    except AttributeError as error:
        raise op.refused(error, ({raw},)) from None
    outs = {wrapped}
    if wanted and (not PAUSED or MODE.recording):
        {branches}
        node = Node()
        node.plan = plan
        node.saved = saved
        node.edges = edges
        node.shape = {shapes}
        node.dtype = {dtypes}
        node.clock = {clocks}
        node.hooks = None
        node.seq = tick()
        if WATCHED:
            mark(node)
        {hang}
    return outs
"""
HANG = """outs[0].requires_grad = True
        outs[0].node = node"""
HANG_MANY = """for k, out in enumerate(outs[:{count}]):
            if out.array.dtype in INEXACT:
                out.requires_grad = True
                out.node = pick(node, k)"""
BRANCH = """if wanted == {wanted}:
            plan, saved, edges = plan{wanted}, {plan.saved}, {plan.edges}
        """
NEW = """out = new_tensor(Tensor)
    out.array = y
    out._grad = out.hooks = None
    out.clock = [0]"""
NEW_VIEW = (
    """out = view_of({first}, y, op, ({rest})) if type({first}) in TENSORS and shares({first}_, y) else wrap(y)"""
)


def shares(x, y) -> bool:
    """Is y a view of x's memory?"""
    if type(y) is np.ndarray:
        base = y.base
        if base is None:
            return y is x
        if base is x or base is x.base or y is x:
            return True
        return np.may_share_memory(x, y)                 # as_strided's base is a dummy
    return y.owner is x.owner


def several(form: str, names: tuple) -> str:
    """The text of a tuple: `form` with each name, and its number."""
    return "(" + "".join(f"{form.format(name, k)}, " for k, name in enumerate(names)) + ")"


def write(op: Op, names: dict, citizen: type = np.ndarray) -> Callable:
    """How op runs on Tensors that hold ndarrays, or DeviceArrays.

    names: what the text needs of tensor.py (Tensor, TENSORS, new_tensor, wrap, view_of, shares, other, mark).
    """
    inputs = op.parameters
    bits = {p: 1 << inputs.index(p) for p in op.differentiable}
    plans = {w: op.plan(w) for n in range(len(bits), 0, -1) for w in map(sum, combinations(bits.values(), n))}
    everything = ", ".join(inputs)
    parts = dict(
        name=op.name.replace(".", "_"),
        all=everything,
        raw=", ".join(f"{p}_" for p in inputs),
        inputs="".join(
            INPUT.format(p=p, all=everything, wish=WISH.format(p=p, bit=bits[p]) if p in bits else "") for p in inputs
        ),
        branches="el".join(BRANCH.format(wanted=w, plan=p) for w, p in plans.items()) or "raise AssertionError",
    )
    if len(op.outputs) > 1:
        def each(form):
            return form.format(op.tracked[0], 0) if len(op.tracked) == 1 else several(form, op.tracked)

        text = CALL_MANY.format(
            outputs=several("{}", op.outputs),
            wrapped=several("wrap({})", op.outputs),
            shapes=each("{}.shape"),
            dtypes=each("{}.dtype"),
            clocks=each("outs[{1}].clock"),
            hang=HANG if len(op.tracked) == 1 else HANG_MANY.format(count=len(op.tracked)),
            **parts,
        )
    else:
        out = NEW_VIEW.format(first=inputs[0], rest="".join(f"{p}, " for p in inputs[1:])) if op.view else NEW
        # Integers have no gradient: only an op with a dtype to choose can make some of inputs that have one.
        inexact = " and y.dtype in INEXACT" if "dtype" in inputs else ""
        text = CALL.format(out=out, inexact=inexact, **parts)
    space = {
        "__name__": __name__,
        **names,
        **{f"plan{w}": p for w, p in plans.items()},
        "forward": op.forward if citizen is np.ndarray else op.handler_of(citizen),
        "Array": citizen,
        "PLAIN": PLAIN,
        "MODE": MODE,
        "PAUSED": PAUSED,
        "WATCHED": WATCHED,
        "Node": Node if citizen is np.ndarray else ForeignNode,
        "tick": tick,
        "op": op,
        "pick": pick,
        "INEXACT": INEXACT,
        "elsewhere": names["other"],                     # torch calls an input `other`
    }
    if citizen is np.ndarray:
        space["elsewhere"] = on_gpu(op, names, space)
    exec(text, space)
    return space[op.name.replace(".", "_")]


def on_gpu(op: Op, names: dict, space: dict) -> Callable:
    """Where a call goes whose tensors are not all on the CPU: written out too once there is one on the GPU."""
    other = names["other"]

    def elsewhere(*args):
        if any(type(getattr(x, "array", None)) is DeviceArray for x in args):
            space["elsewhere"] = written = write(op, names, DeviceArray)
            return written(*args)
        return other(*args)
    return elsewhere
