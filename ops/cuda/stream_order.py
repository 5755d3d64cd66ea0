"""Which work on streams is ordered before which, for the sanitizer: vector clocks, as in torch's CUDA stream sanitizer.

A stream counts epochs, which end where an event is recorded. What waits for the event knows the stream's epochs up to
then, and what that stream knew. The host learns by synchronising, and every launch knows what the host knew.
"""

import bisect
import itertools

HOST = 1
serial = itertools.count(HOST + 1)           # numbers launches, copies and the accesses of kernels, in order

Clock = dict[int, int]                       # stream -> the last of its epochs that is over
epochs: Clock = {}                           # stream -> its present epoch
known: dict[int, Clock] = {}                 # stream -> what its next work comes after
by_host: Clock = {}
starts: list[int] = []                       # from this serial number on, work was of ...
owners: list[tuple[int, int]] = []           # ... this stream and epoch


def merge(into: Clock, other: Clock) -> Clock:
    """The later of both."""
    for key, value in other.items():
        into[key] = max(into.get(key, 0), value)
    return into


def begin(stream: int) -> int:
    """Work begins on a stream. Its serial number."""
    number, owner = next(serial), (stream, epochs.setdefault(stream, 1))
    if not owners or owners[-1] != owner:
        starts.append(number)
        owners.append(owner)
    merge(known.setdefault(stream, {}), by_host)
    return number


def record(stream: int) -> Clock:
    """What an event on the stream stands for."""
    over = epochs.setdefault(stream, 1)
    epochs[stream] = over + 1
    return {**known.setdefault(stream, {}), stream: over}


def wait(stream: int, event: Clock):
    """The stream waits for an event."""
    merge(known.setdefault(stream, {}), event)


def host_waits(event: Clock):
    """The host waits for an event."""
    merge(by_host, event)


def everything() -> Clock:
    """What an event would stand for that all streams had recorded."""
    done: Clock = {}
    for stream in list(epochs):
        merge(done, record(stream))
    return done


def is_unordered(number: int, stream: int) -> bool:
    """Whether the work with that serial number may still be running when the stream's next work begins."""
    k = bisect.bisect_right(starts, number) - 1
    if k < 0:
        return False                         # of the host, or before the sanitizer was on
    owner, epoch = owners[k]
    return owner != stream and epoch > known[stream].get(owner, 0)
