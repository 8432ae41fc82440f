"""Processes that take and give back one lock over and over, and say how long each cycle took.

Each is a process of its own with its own connection, as nodes are. They are told through a pipe
when to begin and when to end, so that all run at the same time. What lies in a slice's first part
warms up and is not counted.
"""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from benchmarks.etcd import EtcdLock
from benchmarks.servers import ServerFailed
from strongroom import coordination

Release = Callable[[], object]

NAME: Final = "bench"
_READY_S: Final = 120.0
_LEAD_S: Final = 0.1  # so long before the beginning they are told of it


@dataclass(frozen=True, slots=True)
class Window:
    """When one slice is: by the monotonic clock, which all processes share."""

    begins_s: float
    counts_s: float
    ends_s: float


@dataclass(frozen=True, slots=True)
class Cycles:
    """What one client did in a slice.

    Attributes:
        waits_s: for each cycle that ended in the counted part, how long the lock was waited for.
        all_count: cycles of the whole slice.
        cpu_s: of this client, for all of them.
    """

    waits_s: list[float]
    all_count: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Clients:
    """What is started: how many, of which kind, for which server.

    Attributes:
        kind: "strongroom" or "etcd".
        url: of the store, or of the member.
        fair: whether they stand in a queue; etcd's always do.
    """

    kind: str
    url: str
    fair: bool = False


def _strongroom(clients: Clients) -> tuple[Callable[[], None], Callable[[], Release]]:
    client = coordination.connect(clients.url)
    lock = client.lock(NAME, fair=clients.fair)

    def take() -> Release:
        return lock.acquire().release

    return (lambda: None), take


def _etcd(clients: Clients) -> tuple[Callable[[], None], Callable[[], Release]]:
    lock = EtcdLock(clients.url, NAME)

    def take() -> Release:
        lock.acquire()
        return lock.release

    return lock.renew_lease, take


_KINDS: Final = {"strongroom": _strongroom, "etcd": _etcd}


def _serve(clients: Clients, pipe: "Connection[Any, Any]") -> None:
    """The life of one process: connect, then a slice whenever it is told, until the pipe ends."""
    begin, take = _KINDS[clients.kind](clients)
    begin()
    take()()
    pipe.send("ready")
    try:
        while True:
            window: Window = pipe.recv()
            begin()
            pipe.send(_slice(window, take))
    except EOFError:
        return


def _slice(window: Window, take: Callable[[], Release]) -> Cycles:
    time.sleep(max(0.0, window.begins_s - time.monotonic()))
    waits_s, count, cpu_s = [], 0, time.process_time()
    while (began_s := time.monotonic()) < window.ends_s:
        release = take()
        held_s = time.monotonic()
        release()
        count += 1
        if window.counts_s <= time.monotonic() < window.ends_s:
            waits_s.append(held_s - began_s)
    return Cycles(waits_s, count, time.process_time() - cpu_s)


class Crowd:
    """So many processes of one kind.

    Arguments:
        clients: what each is.
        count: how many.

    Raises:
        ServerFailed: one of them could not begin.
    """

    def __init__(self, clients: Clients, count: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self._members = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            member = context.Process(target=_serve, args=(clients, theirs), daemon=True)
            member.start()
            theirs.close()
            self._members.append((member, ours))
        for _, pipe in self._members:
            if not pipe.poll(_READY_S) or pipe.recv() != "ready":
                raise ServerFailed(f"a client of {clients.kind} did not begin")

    def run(self, seconds: float) -> list[Cycles]:
        """Let all of them run, a quarter of the time for warming up before it."""
        begins_s = time.monotonic() + _LEAD_S
        counts_s = begins_s + seconds / 4
        window = Window(begins_s, counts_s, counts_s + seconds)
        for _, pipe in self._members:
            pipe.send(window)
        found: list[Cycles] = []
        for _, pipe in self._members:
            try:
                found.append(pipe.recv())
            except EOFError:
                raise ServerFailed("a client ended by itself; its error stands above") from None
        return found

    def close(self) -> None:
        """End them."""
        for _, pipe in self._members:
            pipe.close()
        for member, _ in self._members:
            member.join(5)
            if member.is_alive():
                member.kill()
                member.join()


@contextmanager
def crowd(clients: Clients, count: int) -> Iterator[Crowd]:
    """A `Crowd` for a block."""
    found = Crowd(clients, count)
    try:
        yield found
    finally:
        found.close()


def quantile(values: list[float], share: float) -> float:
    """The value that so large a share of them does not exceed."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=1000, method="inclusive")[round(share * 1000) - 1]
