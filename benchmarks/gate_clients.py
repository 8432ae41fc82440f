"""Processes that wait: at a gate until it opens, or for a lock that somebody holds.

Each is a process of its own, with a client of its own, and says by the monotonic clock, which all
processes share, when it was let through.
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
    """What each of them does.

    Attributes:
        url: of the store.
        kind: "gate" or "lock".
        name: of the gate or lock.
        bus: of the hints beside the gate; empty without.
        lost_share: of the hints.
        wait_s: at most so long.
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
    """The life of one process: it says that it waits, and then when it was let through."""
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
    """So many of them, all of which wait when this is made.

    Arguments:
        waiting: what each does.
        count: how many.

    Raises:
        ServerFailed: one of them did not come so far.
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
        time.sleep(_SETTLE_S)  # between what they said and their first wait lies a request

    def released_s(self) -> list[float]:
        """When each was let through; those who never were are missing."""
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
        """End them."""
        for member, pipe in self._members:
            pipe.close()
            if member.is_alive():
                member.kill()
            member.join()


@contextmanager
def waiters(waiting: Waiting, count: int) -> Iterator[Waiters]:
    """`Waiters` for a block."""
    found = Waiters(waiting, count)
    try:
        yield found
    finally:
        found.close()
