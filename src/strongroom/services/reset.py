"""The reset: it removes everything that an account has in a service, or all accounts in all.

Lives here: the walk over the places of each service, and the order of checks and removals. Must not
live here: who may ask for it (servers/resets.py), how one place is removed (the wings'
`resetting.py`).

Each place is removed in one commit of its own. So after a crash some places are whole, and the
others are gone. All that was created before the reset began is gone when it ends. What clients
create meanwhile stays. The contents are removed later by the jobs that each commit leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from strongroom.account_switches import Switches
from strongroom.auth.request import Service
from strongroom.engines.base import Key, Partition, Position, Ref
from strongroom.services.blob.containers import resetting as containers
from strongroom.services.core.decisions import UNDECODED, Reads
from strongroom.services.core.resetting import (
    CheckProtection,
    FoundPlace,
    ProtectedMeanwhile,
    RemovalOf,
    RemovePlace,
    RemoveProperties,
    ResetRight,
    nothing_protected,
    removal_of,
)
from strongroom.services.core.runner import Services
from strongroom.services.file.shares import resetting as shares
from strongroom.services.queue.queues import QUEUES
from strongroom.services.table.tables import TABLES
from strongroom.store.core import keys
from strongroom.values import Purpose

# A bound on the commits that wait at once. One flush to the disk serves all of them.
_PAGE_RECORDS: Final = 256


@dataclass(frozen=True, slots=True)
class _Kind:
    """The places of one service.

    Attributes:
        noun: their name, in the plural.
        keyspace: takes the account and returns where their records lie.
        removal_of: see RemovalOf.
        check: refuses to remove what is protected.
    """

    noun: str
    keyspace: Callable[[str], bytes]
    removal_of: RemovalOf
    check: CheckProtection = nothing_protected


_KINDS: Final = {
    Service.BLOB: _Kind("containers", keys.containers, containers.removal_of, containers.check),
    Service.QUEUE: _Kind("queues", keys.queues, partial(removal_of, QUEUES)),
    Service.TABLE: _Kind("tables", keys.tables, partial(removal_of, TABLES)),
    Service.FILE: _Kind("shares", keys.shares, shares.removal_of),
}


class ResetScope(NamedTuple):
    """What a reset removes.

    Attributes:
        accounts: whose places are removed.
        services: in which services.
        protected: all accounts of the store. While a container of any of them has a hold or a
            locked policy, or a blob in it, a durable store is not reset.
        is_durable: whether the store outlives the process.
    """

    accounts: tuple[str, ...]
    services: tuple[Service, ...]
    protected: tuple[str, ...]
    is_durable: bool


async def reset(services: Services, scope: ResetScope) -> dict[str, int]:
    """Remove everything that the accounts have in the services.

    Returns: how many places were removed, by their kind in the plural.
    Raises: ResetRefused, the engine's errors. Some places may be gone then, each of them wholly.
    """
    right = ResetRight(services.store.allows_reset, scope.is_durable)
    right.require()
    if scope.is_durable:
        await _refuse_protected(services, scope.protected)
    began = await services.store.now()
    removed = {}
    for service in scope.services:
        kind = _KINDS[service]
        of_accounts = [
            _AccountReset(services, account, kind, right, began) for account in scope.accounts
        ]
        removed[kind.noun] = sum([await one.remove_all() for one in of_accounts])
        for account in scope.accounts:
            ref, reads = keys.service_properties(account, service.value), Reads()
            properties = reads.add(ref, UNDECODED)
            await services.commit(
                RemoveProperties(ref.partition, reads.refs, Purpose.FREEING, right, properties)
            )
    services.work.set()
    return removed


async def _refuse_protected(services: Services, accounts: Iterable[str]) -> None:
    now = await services.store.now()
    for account in accounts:
        switches = services.switches(account)
        for name in switches.containers:
            containers.check_container(f"{account}/{name}", switches)
        if switches.immutability:
            async for places in _pages(services, account, _KINDS[Service.BLOB]):
                for place in places:
                    await containers.check_blobs(services, place, now)


async def _pages(services: Services, account: str, kind: _Kind) -> AsyncIterator[list[FoundPlace]]:
    keyspace = kind.keyspace(account)
    position: Position | None = Position(b"", b"")
    while position is not None:
        page = await services.store.scan(keyspace, position, None, _PAGE_RECORDS)
        position = page.resume
        yield [
            FoundPlace(
                f"{account}/{face.partition.decode()}",
                Ref(Partition(keyspace, face.partition), Key(False, face.key)),
                face.value,
            )
            for face in page.faces()
        ]


@dataclass(frozen=True, slots=True)
class _AccountReset:
    """The reset of one service of one account; `began` is store time at its beginning."""

    services: Services
    account: str
    kind: _Kind
    right: ResetRight
    began: int

    async def remove_all(self) -> int:
        """Remove all places that were there when the reset began. Return how many they were.

        A place that is restored meanwhile moves, so the walk is repeated until it finds none.
        """
        removed, has_found = 0, True
        while has_found:
            has_found = False
            async for places in _pages(self.services, self.account, self.kind):
                old = [one for one in places if self._is_old(one)]
                has_found |= bool(old)
                removed += sum(await _all_ended(map(self._remove, old)))
                await self._end_handles(old)
        return removed

    def _is_old(self, place: FoundPlace) -> bool:
        removal = self.kind.removal_of(place, self.began)
        return removal is not None and removal.generation <= self.began

    async def _remove(self, place: FoundPlace) -> bool:
        """Returns whether it was there."""
        reads = Reads()
        record = reads.add(place.ref, UNDECODED)
        while True:
            switches = self.services.switches(self.account)
            mark = await self._mark(place, switches)
            removal = RemovePlace(
                place.ref.partition,
                reads.refs,
                Purpose.FREEING,
                place=record,
                name=place.name,
                began=self.began,
                right=self.right,
                switches=switches,
                removal_of=self.kind.removal_of,
                check=self.kind.check,
                mark=mark,
            )
            try:
                return await self.services.commit(removal)
            except ProtectedMeanwhile:
                continue

    async def _mark(self, place: FoundPlace, switches: Switches) -> int:
        is_container = self.kind.check is containers.check
        if not (self.right.is_durable and is_container and containers.needs_mark(place, switches)):
            return 0
        mark = await containers.set_mark(self.services, place, self.right)
        await containers.check_blobs(self.services, place, await self.services.store.now())
        return mark

    async def _end_handles(self, gone: Sequence[FoundPlace]) -> None:
        if self.kind.removal_of is shares.removal_of:
            await shares.close_handles(self.services, {shares.generation_of(one) for one in gone})


async def _all_ended(removals: Iterable[Awaitable[bool]]) -> list[bool]:
    """Return the outcomes of removals once all of them have ended, so that none goes on after a
    reset that is refused. Raises the first error of any."""
    outcomes = await asyncio.gather(*removals, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome is True for outcome in outcomes]
