"""Processes that wait: at a gate until it opens, or for a lock that another client holds.

Each process has a client of its own, and reports when its wait ended. The time is that of the
monotonic clock, which all processes share.
"""

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from benchmarks.servers import ServerFailed
from strongroom import coordination
from strongroom.coordination.hints import multicast
from strongroom.coordination.hints.memory import Losing

_BEGIN_S: Final = 120.0
_SETTLE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """The task of each process.

    Attributes:
        url: the URL of the store.
        kind: "gate" or "lock".
        name: the name of the gate or lock.
        bus: the URL of the hints beside the gate; empty without hints.
        lost_share: the share of hints that are lost.
        wait_s: the maximum wait.
    """

    url: str
    kind: str
    name: str
    bus: str = ""
    lost_share: float = 0.0
    wait_s: float = 60.0


def _wait_at_gate(waiting: Waiting, began: threading.Event) -> None:
    client = coordination.connect(waiting.url)
    hints = Losing(multicast(waiting.bus), waiting.lost_share) if waiting.bus else None
    gate = client.gate(waiting.name, hints)
    gate.show()
    began.set()
    gate.wait(waiting.wait_s)


def _wait_for_lock(waiting: Waiting, began: threading.Event) -> None:
    client = coordination.connect(waiting.url)
    client.show(waiting.name)
    began.set()
    client.lock(waiting.name, wait=waiting.wait_s).acquire().release()


_KINDS: Final = {"gate": _wait_at_gate, "lock": _wait_for_lock}


def _serve(waiting: Waiting, pipe: "Connection[Any, Any]") -> None:
    """Run one process: it reports that it waits, and then when its wait ended."""
    began = threading.Event()

    def tell() -> None:
        began.wait()
        pipe.send("waits")

    threading.Thread(target=tell, daemon=True).start()
    try:
        _KINDS[waiting.kind](waiting, began)
    except coordination.CoordTimeout:
        pipe.send(None)
    else:
        pipe.send(time.monotonic())


class Waiters:
    """Processes that all wait when this object has been created.

    Arguments:
        waiting: the task of each process.
        count: the number of processes.

    Raises:
        ServerFailed: a process did not begin to wait.
    """

    def __init__(self, waiting: Waiting, count: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["benchmarks.lock_clients", __name__])
        self._wait_s, self._members = waiting.wait_s, []
        for _ in range(count):
            ours, theirs = context.Pipe()
            member = context.Process(target=_serve, args=(waiting, theirs), daemon=True)
            member.start()
            theirs.close()
            self._members.append((member, ours))
        for _, pipe in self._members:
            if not pipe.poll(_BEGIN_S) or pipe.recv() != "waits":
                raise ServerFailed(f"a process that waits for a {waiting.kind} did not begin")
        time.sleep(_SETTLE_S)  # they send a request between their report and their first wait

    def released_s(self) -> list[float]:
        """Return when each wait ended, without the processes that still wait."""
        found = []
        for _, pipe in self._members:
            try:
                when_s = pipe.recv() if pipe.poll(self._wait_s) else None
            except EOFError:
                when_s = None
            if when_s is not None:
                found.append(when_s)
        return found

    def close(self) -> None:
        """End the processes."""
        for member, pipe in self._members:
            pipe.close()
            if member.is_alive():
                member.kill()
            member.join()


@contextmanager
def waiters(waiting: Waiting, count: int) -> Iterator[Waiters]:
    """Provide `Waiters` for a block."""
    found = Waiters(waiting, count)
    try:
        yield found
    finally:
        found.close()
