"""Programs that wait for each other, in the interpreter: a thread each, of which one runs at a time.

The turn goes on at every atomic, so that a barrier over the grid is passed, and in the same order in every run.
"""

import threading
from collections import deque
from collections.abc import Callable

import numpy as np

PATIENCE = 100  # atomics in a row, for each waiting program, that change nothing: nobody is left who would


class Stopped(BaseException):
    """Ends the programs that wait when one has failed."""


class Turns:
    """Runs `run(k)` for each k below count; `pass_on` within lets the others run first."""

    def __init__(self, run: Callable[[int], None], resume: Callable[[int], None], count: int):
        self.run, self.resume = run, resume
        self.gates = [threading.Semaphore(0) for _ in range(count)]
        self.waiting = deque(range(count))
        self.running = 0
        self.idle = 0
        self.error: BaseException | None = None

    def play(self):
        """Runs all to their ends. Raises the first error of any."""
        threads = [threading.Thread(target=self.program, args=(k,)) for k in range(len(self.gates))]
        for thread in threads:
            thread.start()
        self.hand_over()
        for thread in threads:
            thread.join()
        if self.error is not None:
            raise self.error

    def program(self, k: int):
        """One thread."""
        try:
            self.wait(k)
            with np.errstate(all="ignore"):
                self.run(k)
        except Stopped:
            pass
        except BaseException as e:
            self.error = e
        self.hand_over()

    def pass_on(self, changed: bool):
        """Lets the others run, after an atomic. Raises RuntimeError if all wait for what nobody does."""
        self.idle = 0 if changed else self.idle + 1
        if self.idle > PATIENCE * (len(self.waiting) + 1):
            raise RuntimeError(f"{len(self.waiting) + 1} programs wait for ever")
        k = self.running
        self.waiting.append(k)
        self.hand_over()
        self.wait(k)

    def hand_over(self):
        """The next one's turn, if there is one."""
        if self.waiting:
            self.gates[self.waiting.popleft()].release()

    def wait(self, k: int):
        """Until it is the turn of program k."""
        self.gates[k].acquire()
        if self.error is not None:
            raise Stopped
        self.running = k
        self.resume(k)
