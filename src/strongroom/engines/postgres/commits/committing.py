"""One batch of updates: read for, decided, committed, and its outcome.

Lives here: `Committing`. Must not live here: which updates make a batch (line.py), how decisions
become units (batches.py), SQL (sql/).

An acknowledged commit is one that the server confirmed without a warning. Otherwise the lane opens
a session. That counts the slot's epoch up, so the lost commit can no longer happen, and it tells
which commit of the slot happened last. It returns only when all of that is safe: see lanes.py.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from strongroom.clock import elapsed_s
from strongroom.engines.adoptions import Adoptions
from strongroom.engines.base import Full, Record, Ref, Unavailable
from strongroom.engines.bounds import growth_bytes, purpose_of, values_after
from strongroom.engines.measured import CommitTimes
from strongroom.engines.postgres.commits.batches import CommitBatch, Unit, Update
from strongroom.engines.postgres.commits.line import UpdateLine, fail
from strongroom.engines.postgres.commits.space import Space
from strongroom.engines.postgres.sessions.lanes import AGAIN_S, Lane, run_again
from strongroom.engines.postgres.sessions.session import Away, SessionLost, StatementRefused
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.places import LockNumbers, place_of
from strongroom.engines.postgres.sql.schema import COMMIT, READ, SIZES

_DEAD: Final = "SR003"
_SUPERSEDED: Final = "SR004"
_UNKNOWN_S: Final = 3600.0


class CommittingGateway(msgspec.Struct, frozen=True):
    """What the commits of a gateway need of it.

    Attributes:
        number: of the gateway.
        incarnation: of the gateway.
        salt: the first number of the locks of gateways.
        stamp: gives the next stamp.
        observe: takes note of a stamp of another gateway.
        ensure_live: raises Unavailable unless the gateway may commit; it may ask the database.
        died: is told when the database says that the gateway was declared dead.
        committed: is told which records have changed.
    """

    number: int
    incarnation: int
    salt: int
    stamp: Callable[[], int]
    observe: Callable[[int], None]
    ensure_live: Callable[[], Awaitable[None]]
    died: Callable[[], None]
    committed: Callable[[Sequence[Ref]], None]
    numbers: LockNumbers


class Flights:
    """The lowest stamp of each batch whose outcome is not known."""

    def __init__(self) -> None:
        self._stamps: dict[int, int] = {}

    def begin(self, batch: int, stamp: int) -> None:
        """The first stamp of a batch counts."""
        self._stamps.setdefault(batch, stamp)

    def end(self, batch: int) -> None:
        self._stamps.pop(batch, None)

    def stamps(self) -> list[int]:
        return list(self._stamps.values())


class CommitHook:
    """Awaited between a decision and its commit, so that a test can hold it back."""

    def __init__(self) -> None:
        self.before_commit: Callable[[], Awaitable[None]] | None = None


class CommitContext(msgspec.Struct, frozen=True):
    """What all batches of a gateway share.

    Attributes:
        times: how long the statements of commits took.
    """

    gateway: CommittingGateway
    line: UpdateLine
    adoptions: Adoptions[bool]
    space: Space
    flights: Flights
    times: CommitTimes
    hook: CommitHook


class Committing:
    """One batch of a lane.

    Arguments:
        updates: those that are put off leave the list.
        number: of the batch; no other one has it.
    """

    def __init__(
        self, context: CommitContext, lane: Lane, updates: list[Update], number: int
    ) -> None:
        self._context = context
        self._lane = lane
        self._updates = updates
        self._number = number

    async def run(self) -> None:
        """Each update gets its answer, or is put back into the line. Raises EngineError."""
        lane, updates, line = self._lane, self._updates, self._context.line
        gateway, adoptions = self._context.gateway, self._context.adoptions
        batch = CommitBatch(await self._read(), self._stamp, gateway.numbers, adoptions.check)
        put_off = [update for update in updates if not self._decided(batch, update)]
        updates[:] = [update for update in updates if update not in put_off]
        line.put_back(put_off)
        if not batch.units:
            return
        line.decided(lane.slot, batch.written())
        adopted = [content_id for unit in batch.units for content_id in unit.adopt]
        adoptions.begin(adopted)
        happened: list[Unit] = []
        try:
            if await self._has_room(batch.units):
                happened = await self._sent(batch)
        finally:
            for unit in happened:
                for content_id in unit.adopt:
                    adoptions.written.pop(content_id, None)
            adoptions.end(adopted)

    def _decided(self, batch: CommitBatch, update: Update) -> bool:
        """Make a decision, unless the batch is full, or another lane writes what it has read."""
        if update.answer.done():
            return True  # its caller has gone
        if batch.is_full:
            return False
        if self._context.line.meets_written(update):
            update.was_put_off = True
            return False
        decided = batch.decide(update)
        if decided is not None:
            decided.deliver()
        return True

    def _stamp(self) -> int:
        stamp = self._context.gateway.stamp()
        self._context.flights.begin(self._number, stamp)
        return stamp

    async def _read(self) -> dict[Ref, Record | None]:
        refs = dict.fromkeys(ref for update in self._updates for ref in update.reads)
        records: dict[Ref, Record | None] = dict.fromkeys(refs)
        if refs:
            order = list(refs)
            places = wire.byteas([place_of(ref) for ref in order])
            for at, version, value in (await run_again(self._lane, READ, places)).rows:
                stamp = wire.number_of(version or b"")
                self._context.gateway.observe(stamp)
                records[order[wire.number_of(at or b"") - 1]] = Record(value or b"", stamp)
        return records

    async def _sent(self, batch: CommitBatch) -> list[Unit]:
        """Send a batch, answer the units that happened, and return them."""
        if (hook := self._context.hook.before_commit) is not None:
            await hook()
        lane, units = self._lane, batch.units
        session = await lane.session()
        began_s = elapsed_s()
        try:
            answer = await session.run(COMMIT, *self._arguments(batch))
            self._context.times.note(elapsed_s() - began_s)
            failed_units, newest, grown, epoch = answer.rows[0]
            lane.epoch = wire.number_of(epoch or b"")
            failed = wire.numbers_of(failed_units or b"")
            if answer.warned and len(failed) < len(units):
                await lane.confirm(session)
            self._context.gateway.observe(wire.number_of(newest or b""))
            self._context.space.add(wire.number_of(grown or b""))
        except SessionLost:
            failed = await self._outcome(batch)
        except StatementRefused as error:
            if error.state == _SUPERSEDED:
                session.close()
            return await self._refused(units, error)
        return self._settled(units, failed)

    def _arguments(self, batch: CommitBatch) -> tuple[bytes, ...]:
        gateway, lane = self._context.gateway, self._lane
        return (
            wire.int4(gateway.number),
            wire.int8(gateway.incarnation),
            wire.int4(lane.slot),
            wire.int8(lane.epoch),
            wire.int8(self._number),
            wire.int4(gateway.salt),
            *batch.arguments(),
        )

    async def _outcome(self, batch: CommitBatch) -> list[int]:
        """Find out which units of a batch failed, whose session was lost inside its commit."""
        while True:
            with contextlib.suppress(Unavailable):
                await self._lane.session(_UNKNOWN_S)
                break
        if self._lane.batch == self._number:
            return self._lane.failed
        return list(range(1, len(batch.units) + 1))

    async def _refused(self, units: Sequence[Unit], error: StatementRefused) -> list[Unit]:
        """The server refused the whole batch, and nothing happened."""
        if error.state == _DEAD:
            self._context.gateway.died()
            raise Away("this gateway was declared dead: nothing was changed")
        if not error.is_transient and error.state != _SUPERSEDED:
            raise error.as_engine_error()
        await asyncio.sleep(AGAIN_S)
        self._requeue(units, alone=False)
        return []

    def _settled(self, units: Sequence[Unit], failed: Sequence[int]) -> list[Unit]:
        stale = {number for number in failed if number > 0}
        unowned = {-number for number in failed if number < 0} - stale
        again, happened = [], []
        for number, unit in enumerate(units, 1):
            if number in stale:
                again.append(unit)
            elif number in unowned:
                self._refuse_adoption(unit)
            else:
                happened.append(unit)
        self._requeue(again, alone=False)
        changed = [ref for unit in happened for ref in unit.writes]
        if changed:
            self._context.gateway.committed(changed)
        for unit in happened:
            self._context.times.decisions += len(unit.members)
            for decided in unit.members:
                decided.deliver()
        return happened

    def _refuse_adoption(self, unit: Unit) -> None:
        if len(unit.members) > 1:
            self._requeue((unit,), alone=True)
            return
        taken = ValueError("a commit adopts contents that were written and not adopted before")
        fail([unit.members[0].update], taken)

    def _requeue(self, units: Sequence[Unit], *, alone: bool) -> None:
        updates = [decided.update for unit in units for decided in unit.members]
        for update in updates:
            update.is_alone = update.is_alone or alone
        self._context.line.put_back(updates)

    async def _has_room(self, units: Sequence[Unit]) -> bool:
        """Judge a decision by its purpose (rule 6 of base.py), if space is tight. Return False if
        the batch has several, which are then decided again, each for itself. Raises: Full."""
        if not self._context.space.is_tight:
            return True
        members = [one for unit in units for one in unit.members]
        if len(members) > 1:
            self._requeue(units, alone=True)
            return False
        (decided,) = members
        writes = values_after(decided.steps)
        order = list(writes)
        before: dict[Ref, Record] = {}
        answer = await run_again(self._lane, SIZES, wire.byteas([place_of(ref) for ref in order]))
        for at, version, size in answer.rows:
            record = Record(bytes(wire.number_of(size or b"")), wire.number_of(version or b""))
            before[order[wire.number_of(at or b"") - 1]] = record
        adopts = any(step.adopt for step in decided.steps)
        purpose = purpose_of(decided.update.purpose, adopts, writes, before.get)
        growth = growth_bytes(writes, before.get)
        if growth > 0 and not self._context.space.has_room(growth, purpose):
            raise Full(purpose)
        return True
