"""The coordination view: what it shows, and what a viewer may do there.

Lives here: authorization first, then reading and acting on threads; waiting for a change. Must not
live here: HTTP and the addresses of the API (endpoints.py), records (record_pages.py, acts.py).
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from strongroom.auth.accounts import Account, Accounts
from strongroom.console import acts
from strongroom.console.access import Access
from strongroom.console.held_waits import HeldWaits
from strongroom.console.other_stores import OtherStorePanel
from strongroom.console.own_places import OwnPlaces
from strongroom.console.record_pages import PageOf
from strongroom.coordination import Client
from strongroom.servers.console.api.coordination import (
    BreakAct,
    ContainerRecords,
    Coordination,
    GateAct,
    Kind,
    StoreRecords,
)
from strongroom.servers.console.viewers import ACCOUNT_KEY, OPERATOR_NEEDED

CONTAINERS_SHOWN: Final = 20
_PAUSE_S: Final = (0.3, 0.7)
"""While a viewer waits for a change, the records are read again after a pause within these bounds.

It is longer where reading takes long. A change is still seen within a second."""
_PAUSE_READS: Final = 8
_RENEWALS_S: Final = 2.0
_THREADS: Final = 4
_COUNTDOWNS: Final = re.compile(rb'"left_s":[^,}\]]+')
_RENEWALS: Final = re.compile(rb'"writes":\d+')
T = TypeVar("T")
Answer = TypeVar("Answer", Coordination, StoreRecords)


class NotForViewer(Exception):
    """The viewer may not see or do this. `needs` is the kind of credential that may.

    Nothing was looked at, so that the refusal does not show whether there is such a thing.
    """

    def __init__(self, text: str, needs: str = ACCOUNT_KEY) -> None:
        super().__init__(f"this needs {text}")
        self.needs = needs


class Wanted(NamedTuple):
    """What a viewer asks for: all containers or one, and a page of its records."""

    container: str | None
    page: PageOf


class Seen(NamedTuple):
    """What an act is meant for: in a container, or in a further store; `state` as it was seen."""

    container: str
    store: str | None
    name: str
    state: str | None


class CoordinationView:
    """The view of all viewers. For the event loop; it reads on threads.

    Arguments:
        stores: the further stores, by the names that the operator gave.
    """

    def __init__(
        self,
        places: OwnPlaces,
        waits: HeldWaits,
        accounts: Accounts,
        stores: tuple[OtherStorePanel, ...] = (),
    ) -> None:
        self._places, self._waits, self._accounts = places, waits, accounts
        self._stores = {one.shown.name: one for one in stores}
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="console-coordination")

    # Reading

    async def containers(self, access: Access, wanted: Wanted) -> Coordination:
        """Return the records of this server's containers that the viewer may read.

        Raises: NotForViewer; the toolkit's errors.
        """
        account = self._account(access)
        names = [wanted.container] if wanted.container is not None else None
        if names is not None and not access.may_read(names[0]):
            raise NotForViewer("the right to read this container's blobs")
        self._waits.look()
        if names is None:
            awaited = self._waits.containers(account.name)
            found = await self._on_thread(lambda: self._places.containers(account, awaited))
            names = [name for name in found if access.may_read(name)]
        shown, has_more = names[:CONTAINERS_SHOWN], len(names) > CONTAINERS_SHOWN
        parts = [await self._records(access, account, name, wanted.page) for name in shown]
        if wanted.container is None:
            parts = [one for one in parts if _has_any(one)]
        stores = tuple(one.shown for one in self._stores.values()) if access.is_operator else ()
        return _with_change(Coordination("", tuple(parts), has_more, stores))

    async def store(self, access: Access, name: str, page: PageOf) -> StoreRecords:
        """Return the records of a further store. Raises: as `containers`."""
        panel = self._panel(access, name)
        return _with_change(StoreRecords("", panel.shown, await panel.read(page)))

    async def _records(
        self, access: Access, account: Account, container: str, page: PageOf
    ) -> ContainerRecords:
        place = self._places.place(account, container)
        waits = self._waits.of(account.name, container)
        records = await self._on_thread(lambda: place.read(page, waits))
        return ContainerRecords(container, access.may_act(container), records)

    # Acting

    async def open_gate(self, access: Access, seen: Seen, payload: Any) -> GateAct:
        """Open a gate. Raises: NotForViewer, ChangedSince; the toolkit's other errors."""
        return await self._act(
            access,
            seen,
            "gate",
            lambda client: acts.open_gate(client, seen.name, seen.state, payload),
        )

    async def rearm_gate(self, access: Access, seen: Seen) -> GateAct:
        """Re-arm a gate. Raises: as `open_gate`."""
        return await self._act(
            access, seen, "gate", lambda client: acts.rearm_gate(client, seen.name, seen.state)
        )

    async def break_hold(self, access: Access, seen: Seen, kind: Kind) -> BreakAct:
        """End the hold of a lock. Raises: as `open_gate`."""
        return await self._act(
            access, seen, kind, lambda client: acts.break_hold(client, kind, seen.name, seen.state)
        )

    async def _act(self, access: Access, seen: Seen, kind: str, act: Callable[[Client], T]) -> T:
        if seen.store is not None:
            panel = self._panel(access, seen.store)
            if not panel.shown.may_act:
                raise NotForViewer(
                    "a console that was started with --coordination-acts", OPERATOR_NEEDED
                )
            return await panel.act(act, access.label)
        if not access.may_act(seen.container, kind):
            raise NotForViewer("the right to write this container's blobs")
        place = self._places.place(self._account(access), seen.container)
        return await self._on_thread(lambda: act(place.actor(access.label)))

    def _account(self, access: Access) -> Account:
        account = self._accounts.get(access.account)
        if account is None:
            raise NotForViewer("an account of this server")
        return account

    def _panel(self, access: Access, name: str) -> OtherStorePanel:
        if not access.is_operator:
            raise NotForViewer("an operator", OPERATOR_NEEDED)
        panel = self._stores.get(name)
        if panel is None:
            raise KeyError(name)
        return panel

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def look(self) -> None:
        """Note who waits at this moment, so that it is known since when."""
        self._waits.look()

    def close(self) -> None:
        """End the threads; those that wait for an answer end with it."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for panel in self._stores.values():
            panel.close()


class ChangeAwaited(NamedTuple):
    """What a viewer has seen, and how long the answer may wait for another `change`.

    `is_stopping`: whether no answer waits any more.
    """

    change: str
    wait_s: float
    is_stopping: Callable[[], bool] = bool


async def until_changed(read: Callable[[], Awaitable[Answer]], until: ChangeAwaited) -> Answer:
    """Return what `read` returns, as soon as its `change` is another one or the time is over.

    A mere renewal is told after two seconds: its countdown then begins anew.
    """
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    while True:
        asked_s = loop.time()
        answer = await read()
        now_s = loop.time()
        passed_s = now_s - began_s
        is_other = answer.change.partition(".")[0] != until.change.partition(".")[0]
        is_renewed = answer.change != until.change and passed_s >= _RENEWALS_S
        if is_other or is_renewed or passed_s >= until.wait_s or until.is_stopping():
            return answer
        shortest_s, longest_s = _PAUSE_S
        pause_s = max(shortest_s, min(longest_s, _PAUSE_READS * (now_s - asked_s)))
        await asyncio.sleep(min(pause_s, until.wait_s - passed_s))


def _with_change(answer: Answer) -> Answer:
    """Return the answer with its `change`: a digest of what it says, and one with renewals."""
    text = _COUNTDOWNS.sub(b"", msgspec.json.encode(answer))
    parts = [
        hashlib.blake2b(said, digest_size=9).hexdigest()
        for said in (_RENEWALS.sub(b"", text), text)
    ]
    return msgspec.structs.replace(answer, change=".".join(parts))


def _has_any(part: ContainerRecords) -> bool:
    records = part.records
    return bool(records.gates or records.held or records.barriers or records.groups or records.ids)
