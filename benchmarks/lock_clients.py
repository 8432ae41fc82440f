"""Processes that acquire and release one lock repeatedly, and report the duration of each cycle.

Each process has its own connection, like the node of a cluster. A pipe sends it the times of begin
and end, so that all run at the same time. The first part of a slice is a warm-up and is not
counted.
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
_LEAD_S: Final = 0.1  # how long before the beginning the processes get its time


@dataclass(frozen=True, slots=True)
class Window:
    """The times of one slice, by the monotonic clock, which all processes share."""

    begins_s: float
    counts_s: float
    ends_s: float


@dataclass(frozen=True, slots=True)
class Cycles:
    """The result of one client in a slice.

    Attributes:
        waits_s: the wait for the lock in each cycle that ended in the counted part.
        all_count: the cycles of the whole slice.
        cpu_s: the CPU time of this client for all cycles.
    """

    waits_s: list[float]
    all_count: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Clients:
    """The kind of clients, and their server.

    Attributes:
        kind: "strongroom" or "etcd".
        url: the URL of the store, or of the etcd member.
        fair: whether the clients queue; etcd's clients always do.
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
    """Run one process: connect, then run a slice on each request, until the pipe ends."""
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


class ClientProcesses:
    """Several processes of one kind.

    Arguments:
        clients: the kind of each process.
        count: the number of processes.

    Raises:
        ServerFailed: a process could not begin.
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
        """Run all processes for a slice, after a warm-up of a quarter of that time."""
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
        """End the processes."""
        for _, pipe in self._members:
            pipe.close()
        for member, _ in self._members:
            member.join(5)
            if member.is_alive():
                member.kill()
                member.join()


@contextmanager
def client_processes(clients: Clients, count: int) -> Iterator[ClientProcesses]:
    """Provide a `ClientProcesses` for a block."""
    found = ClientProcesses(clients, count)
    try:
        yield found
    finally:
        found.close()


def quantile(values: list[float], share: float) -> float:
    """Return the value that the given share of the values does not exceed."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=1000, method="inclusive")[round(share * 1000) - 1]
