"""Whether operations are recorded: no_grad, enable_grad, set_grad_enabled, inference_mode; and the one clock."""
import functools
import inspect
import itertools
import threading
from collections.abc import Generator
from threading import get_ident
from typing import Any

tick = itertools.count(1).__next__  # one clock for nodes and for writes in place: what is later has the higher number


PAUSED: set[int] = set()        # the threads that record nothing: while it is empty, nobody need ask for his own mode


class Mode(threading.local):
    recording = True                    # is set through `grad`
    inference = False
    autocast: "dict | None" = None      # device type -> dtype of its matrix products, inside `autocast`
    casts: Any = None                   # the weights that the block around has cast (casts.Casts)
    packing: tuple = ()                 # (pack, unpack) of the saved_tensors_hooks around, the innermost last

    @property
    def grad(self) -> bool:
        """Whether this thread records operations."""
        return self.recording

    @grad.setter
    def grad(self, on: bool) -> None:
        self.recording = on
        (PAUSED.discard if on else PAUSED.add)(get_ident())


MODE = Mode()
ANOMALY: list[bool] = []        # not empty inside detect_anomaly
WATCHED: list[bool] = []        # not empty where something is done to new nodes: cheap to ask on the hot path


def watch(more: int) -> None:
    """One block more (1) or less (-1) in which watch.mark is called with every new node."""
    WATCHED[:] = [True] * (len(WATCHED) + more)


class _Switch:
    """A context manager and decorator that sets the grad mode."""
    on = True

    def __enter__(self):
        self.outer = MODE.grad
        MODE.grad = self.on

    def __exit__(self, *_):
        MODE.grad = self.outer

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):
            @functools.wraps(function)
            def walking(*args, **options):
                return in_steps(self, function(*args, **options))
            return walking

        @functools.wraps(function)
        def inside(*args, **options):
            with self.copy():
                return function(*args, **options)
        return inside

    def copy(self):
        return type(self)()


def in_steps(switch: _Switch, walker: Generator) -> Generator:
    """A generator that runs inside the switch's block, and is outside of it while it waits."""
    go_on = functools.partial(next, walker)
    while True:
        try:
            with switch.copy():
                value = go_on()
        except StopIteration as end:
            return end.value
        try:
            answer = yield value
        except GeneratorExit:
            walker.close()
            raise
        except BaseException as error:
            go_on = functools.partial(walker.throw, error)
        else:
            go_on = functools.partial(walker.send, answer)


class no_grad(_Switch):  # noqa: N801
    """Nothing inside is recorded: `with no_grad():` or `@no_grad()`.

    Example:
        >>> import zoo
        >>> x = zoo.ones(2, requires_grad=True)
        >>> with zoo.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """
    on = False

    def __new__(cls, function: Any = None) -> Any:          # `@no_grad` without brackets gives the wrapped function
        made = super().__new__(cls)
        return made if function is None else made(function)


class enable_grad(no_grad):  # noqa: N801
    """Records again inside a `no_grad` block."""
    on = True


class set_grad_enabled(_Switch):  # noqa: N801
    """Switches recording on or off, at once or for a `with` block.

    Example:
        >>> import zoo
        >>> with zoo.set_grad_enabled(False):
        ...     zoo.is_grad_enabled()
        False
    """

    def __init__(self, mode: bool):
        self.outer, self.on = MODE.grad, bool(mode)
        MODE.grad = self.on

    def __enter__(self):
        MODE.grad = self.on

    def __call__(self, function):
        MODE.grad = self.outer
        return super().__call__(function)

    def copy(self):
        return set_grad_enabled(self.on)


class inference_mode(_Switch):  # noqa: N801
    """no_grad, and says so: `is_inference_mode_enabled()`. `inference_mode(False)` records again."""

    def __new__(cls, mode: Any = True) -> Any:
        made = super().__new__(cls)
        return inference_mode()(mode) if callable(mode) else made

    def __init__(self, mode: bool = True):
        self.inference, self.on = mode, not mode

    def __enter__(self):
        super().__enter__()
        self.before, MODE.inference = MODE.inference, self.inference

    def __exit__(self, *_):
        MODE.inference = self.before
        super().__exit__()

    def copy(self):
        return inference_mode(self.inference)


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return MODE.grad


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode`."""
    return MODE.inference


class detect_anomaly:  # noqa: N801
    """Inside, every node remembers the line that made it, and a NaN in a gradient raises naming op and line."""

    def __init__(self, check_nan: bool = True):
        self.on = check_nan

    def __enter__(self):
        if self.on:
            ANOMALY.append(True)
            watch(1)

    def __exit__(self, *_):
        if self.on:
            ANOMALY.pop()
            watch(-1)


class set_detect_anomaly:  # noqa: N801
    """Anomaly mode on or off from here on, or for the length of a `with`; see detect_anomaly.

    Example:
        >>> import zoo
        >>> with zoo.autograd.set_detect_anomaly(True):
        ...     zoo.ones(1, requires_grad=True).exp().backward()
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self.before = list(ANOMALY)
        self.become([True] if mode and check_nan else [])

    def become(self, now: list[bool]) -> None:
        """Sets anomaly mode."""
        watch(len(now) - len(ANOMALY))
        ANOMALY[:] = now

    def __enter__(self):
        return None

    def __exit__(self, *_):
        self.become(self.before)
