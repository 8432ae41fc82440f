"""Who waits and who holds, on the picture of the coordination view.

Lives here: participants with names of their own, on threads. Must not live here: what is stored
otherwise (contents.py).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partial

from strongroom.coordination import connect
from strongroom.coordination.client import Client
from strongroom.coordination.errors import CoordinationError

_TERM_S = 60.0
_WAIT_S = 600.0


@contextlib.contextmanager
def participants(store: str) -> Iterator[None]:
    """Let them wait and hold until the end of the block."""
    with contextlib.ExitStack() as ending:

        def client(label: str) -> Client:
            return ending.enter_context(connect(store, label=label))

        main = client("release-7")
        main.gate("maintenance").open({"until": "18:00", "by": "ops"})
        batch = [client("batch-1:4410"), client("batch-2:901")]
        held = batch[0].lock("nightly-report", ttl=_TERM_S).acquire()
        term = client("web-1:3127").election("scheduler", {"url": "http://web-1:8080"}, ttl=_TERM_S)
        term.campaign()
        ending.callback(term.resign)
        for label in ("web-1:3127", "web-2:3127"):
            permit = client(label).semaphore("licences", permits=3, ttl=_TERM_S).acquire()
            ending.callback(permit.release)
        for number, label in enumerate(("worker-1:77", "worker-2:80", "worker-3:61")):
            joined = client(label).members("workers", ttl=_TERM_S).join({"queue": number})
            ending.callback(joined.leave)
        gate = main.gate("go-live")
        for label in ("web-1:3127", "web-2:3127", "web-3:884"):
            _wait(ending, partial(client(label).gate("go-live").wait, _WAIT_S))
        queued = batch[1].lock("nightly-report", ttl=_TERM_S, wait=_WAIT_S, fair=True)
        _wait(ending, lambda: queued.acquire().release())
        try:
            yield
        finally:  # so that the threads end
            held.release()
            gate.open()


def _wait(ending: contextlib.ExitStack, act: Callable[[], object]) -> None:
    def run() -> None:
        with contextlib.suppress(CoordinationError):
            act()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ending.callback(thread.join, 10)
