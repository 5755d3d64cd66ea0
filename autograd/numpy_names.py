"""NumPy's names of two arguments, which torch takes as well: `axis` for `dim`, `keepdims` for `keepdim`."""
import functools

from zoo.ops.op import Op, signature

NAMES = {"axis": "dim", "keepdims": "keepdim"}


def numpy_names(function):
    """The function, taking NumPy's names too if it has a `dim`; an Op translates them itself."""
    code = getattr(function, "__code__", None)
    if isinstance(function, Op) or code is None or "dim" not in signature(function)[0]:
        return function

    @functools.wraps(function)
    def call(*args, **options):
        for name in NAMES.keys() & options.keys() if options else ():
            if NAMES[name] in options:
                raise TypeError(f"{function.__name__}: got both {name} and {NAMES[name]}")
            options[NAMES[name]] = options.pop(name)
        return function(*args, **options)
    return call
