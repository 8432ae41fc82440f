"""The shared context of all services, and the lookup of a request's place.

Lives here: `Services` with the store, the clock, the waiters, and in-memory state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from strongroom import limits
from strongroom.account_switches import DEFAULT_SWITCHES, Switches
from strongroom.auth.request import Service
from strongroom.clock import Clock
from strongroom.engines.base import StorageEngine
from strongroom.errors.core import StorageError
from strongroom.services.core.calls import Call, Place, RequestClient
from strongroom.services.core.decisions import Decision, Found, Reads
from strongroom.services.core.places import PLACES, check_place, place_ref
from strongroom.services.core.process_state import ProcessState
from strongroom.services.core.turns import InTurn, Turn
from strongroom.services.core.waiting import MustWait, Waiting

T = TypeVar("T")


class Services:
    """The shared context of every service function: the store, time, readers, waiters.

    Arguments:
        store: an engine that keeps all three contracts.
        clock: for randomness (lease and copy ids); store time comes from the store.
        switches: returns an account's present switches. Decisions take them as a field.
        given: objects of `held` that the program was composed with, such as CopySources.

    Attributes:
        held: authoritative state that ends with the process: readers, copies in flight.
        turns: the event loop's time slices, for long work.
        disposable: caches and queues of waiters. It may be cleared at any time.
    """

    def __init__(
        self,
        store: StorageEngine,
        clock: Clock,
        switches: Callable[[str], Switches] = lambda account: DEFAULT_SWITCHES,
        given: Iterable[object] = (),
    ) -> None:
        self.store = store
        self.clock = clock
        self.switches = switches
        self.held = ProcessState(given)
        self.disposable = ProcessState()
        self.work = asyncio.Event()
        self.listings = asyncio.Semaphore(limits.LISTINGS_AT_ONCE_MAX)
        self.turns = store.turns
        self.waiting = Waiting(store, self.disposable)

    def commit(self, decision: Decision[T], turn: Turn | None = None) -> Awaitable[T]:
        """Let the engine run a decision and commit it durably.

        The engine may begin, and may raise, at the call itself: await it right there.

        Arguments:
            turn: what the decision grants is waited for, and this is the first waiter's turn.
        """
        if turn is not None:
            decision = InTurn.of(decision, turn)
        return self.store.update(decision.partition, decision.reads, decision.run, decision.purpose)

    async def read(self, reads: Reads) -> Found:
        """Return the committed, durable records."""
        return Found(await self.store.read(reads.refs))

    async def place(self, service: Service, account: str, name: str) -> Place | None:
        """None if it is missing or its name invalid."""
        kind = PLACES[service]
        if not kind.is_name(name):
            return None
        (record,) = await self.store.read([kind.ref(account, name)])
        return None if record is None else kind.read(record)

    async def await_place(
        self,
        service: Service,
        account: str,
        name: str,
        wait_s: int,
        client: RequestClient | None = None,
    ) -> Place | None:
        """As `place`, after waiting up to `wait_s` for a place that does not exist yet."""
        kind = PLACES[service]
        if not kind.is_name(name):
            return None
        ref = kind.ref(account, name)

        async def attempt() -> Place:
            place = await self.place(service, account, name)
            if place is None:
                raise MustWait(StorageError(kind.missing), [(ref, None)])
            return place

        try:
            return await self.waiting.until_answered(wait_s, attempt, client)
        except StorageError:
            return None

    async def check_place(self, call: Call[Any]) -> None:
        """Operations that read more than one record call it."""
        (record,) = await self.store.read([place_ref(call)])
        check_place(call, record)
