"""Who waits at a record: learnt from the long polls that the server holds.

A participant waits at a gate or a lock by one request that the server answers when the record
changes. That request says in its User-Agent who waits. So a waiter is seen although it has written
nothing, and being seen costs it nothing. A long poll ends after some seconds and is repeated at
once. A waiter that is missing for a moment is therefore still counted. Must not live here: the
records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from strongroom.coordination.stores.azure.etag import label_of_agent
from strongroom.errors.core import StorageError
from strongroom.servers.requests.admission import ServiceContext, read
from strongroom.services.core.waiting import Waiting
from strongroom.wire.core.http import Request

SEEN_MAX: Final = 10_000
GRACE_S: Final = 1.0
"""A waiter counts for so long after it was last seen: it may be between two long polls."""


class WaitedRecord(NamedTuple):
    """The record that is waited for: its account, its container and its key."""

    account: str
    container: str
    key: str


class HeldWait(NamedTuple):
    """One participant that waits for one record.

    Attributes:
        first_s: when it was seen first, by the loop's clock.
        who: its label; the address of its machine if it names none.
        first_ticks: as `first_s`, in wall time.
    """

    first_s: float
    who: str
    first_ticks: int


@dataclass(slots=True)
class _Seen:
    wait: HeldWait
    last_s: float


class HeldWaits:
    """The waiters that were seen in the held requests. For the event loop only.

    Arguments:
        waiting: holds the requests.
        context: how the URL of a request to the Blob service is read.
        monotonic_s, wall_ticks: the time.
    """

    def __init__(
        self,
        waiting: Waiting,
        context: ServiceContext,
        monotonic_s: Callable[[], float],
        wall_ticks: Callable[[], int],
    ) -> None:
        self._waiting, self._context = waiting, context
        self._monotonic_s, self._wall_ticks = monotonic_s, wall_ticks
        self._read: dict[int, tuple[Request, WaitedRecord | None]] = {}
        self._seen: dict[WaitedRecord, dict[str, _Seen]] = {}

    def look(self) -> None:
        """Note who waits at this moment."""
        held = self._waiting.clients[:SEEN_MAX]
        now_s = self._monotonic_s()
        before, self._read = self._read, {}
        for request in held:
            if not isinstance(request, Request):
                continue
            number = id(request)
            known = before.get(number)
            if known is None or known[0] is not request:
                known = request, self._subject(request)
            self._read[number] = known
            if known[1] is not None:
                self._note(known[1], _label(request), now_s)
        self._forget(now_s - GRACE_S)

    def _subject(self, request: Request) -> WaitedRecord | None:
        try:
            target = read(self._context, request).addressed.target
        except StorageError:
            return None
        if request.method != "GET" or target.container is None or target.blob is None:
            return None
        return WaitedRecord(target.account, target.container, target.blob)

    def _note(self, subject: WaitedRecord, who: str, now_s: float) -> None:
        waiters = self._seen.setdefault(subject, {})
        seen = waiters.get(who)
        if seen is None:
            waiters[who] = _Seen(HeldWait(now_s, who, self._wall_ticks()), now_s)
        else:
            seen.last_s = now_s

    def _forget(self, before_s: float) -> None:
        for subject in list(self._seen):
            waiters = self._seen[subject]
            for who in [one for one, seen in waiters.items() if seen.last_s < before_s]:
                del waiters[who]
            if not waiters:
                del self._seen[subject]

    def of(self, account: str, container: str) -> dict[str, tuple[HeldWait, ...]]:
        """Return the waiters in a container by the key that they wait for, the first one first."""
        return {
            subject.key: tuple(sorted(one.wait for one in waiters.values()))
            for subject, waiters in self._seen.items()
            if (subject.account, subject.container) == (account, container)
        }

    def containers(self, account: str) -> frozenset[str]:
        """Return the containers of an account in which somebody waits."""
        return frozenset(one.container for one in self._seen if one.account == account)


def _label(request: Request) -> str:
    return label_of_agent(request.headers.get("user-agent") or "") or request.peer
