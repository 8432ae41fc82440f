"""Updates: collected, read for, decided, and committed by a few statements at a time.

Lives here: the queue of updates, and what becomes of each batch, also of one whose session was lost
inside its commit. Must not live here: how decisions become units (batches.py), SQL (schema.py).

The stamps of one gateway rise wherever one commit has read what another one writes. So nothing is
decided on a partition that a batch of another lane writes, from the decision of that batch until
its outcome.

An acknowledged commit is one that the server confirmed without a warning. Otherwise the lane opens
a session. That counts the slot's epoch up, so the lost commit can no longer happen, and it tells
which commit of the slot happened last. It returns only when all of that is safe: see lanes.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from strongroom.clock import elapsed_s
from strongroom.engines.adoptions import Adoptions
from strongroom.engines.base import (
    CommitUnknown,
    Decide,
    EngineError,
    Full,
    Partition,
    Record,
    Ref,
    Unavailable,
)
from strongroom.engines.bounds import growth_bytes, purpose_of, values_after
from strongroom.engines.commit_times import CommitTimes
from strongroom.engines.postgres import wire
from strongroom.engines.postgres.batches import Batch, Unit, Update
from strongroom.engines.postgres.lanes import AGAIN_S, PATIENCE_S, Lane, Pool, run_again
from strongroom.engines.postgres.openers import unavailable
from strongroom.engines.postgres.places import LockNumbers, place_of
from strongroom.engines.postgres.schema import COMMIT, READ, SIZES
from strongroom.engines.postgres.session import Away, SessionLost, SqlError
from strongroom.engines.postgres.space import Space
from strongroom.values import Purpose

_UPDATES_MAX: Final = 128
_DEAD: Final = "SR003"
_SUPERSEDED: Final = "SR004"
_UNKNOWN_S: Final = 3600.0
_NOT_TOLD: Final = "the database did not tell the outcome of a commit in time"
_RUN_BITS: Final = 40


class Gate(msgspec.Struct, frozen=True):
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


class Commits:
    """See Engine.update.

    Attributes:
        patience_s: how long a caller waits at most.
        times: how long the statements of commits took.
        before_commit: awaited between a decision and its commit, so that a test can hold it back.
    """

    def __init__(
        self,
        pool: Pool,
        gate: Gate,
        adoptions: Adoptions[int],
        space: Space,
        flights: Flights,
    ) -> None:
        self._pool = pool
        self._gate = gate
        self._adoptions = adoptions
        self._space = space
        self._queue: deque[Update] = deque()
        self._free = list(pool.lanes)
        # By slot: its updates, the partitions that they claim, those that its decided batch writes.
        self._serving: dict[int, list[Update]] = {}
        self._claimed: dict[int, set[int]] = {}
        self._written: dict[int, set[int]] = {}
        self._flights = flights
        # No earlier run of a gateway with this number has used these.
        self._numbers = itertools.count((gate.incarnation << _RUN_BITS) + 1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_scheduled = False
        self.times = CommitTimes()
        self.patience_s = PATIENCE_S
        self.before_commit: Callable[[], Awaitable[None]] | None = None

    def update(
        self, partition: Partition, reads: Sequence[Ref], decide: Decide[Any], purpose: Purpose
    ) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        until_s = loop.time() + self.patience_s
        number_of = self._gate.numbers.of
        home = number_of(partition)
        partitions = frozenset((home, *(number_of(ref.partition) for ref in reads)))
        self._queue.append(Update(home, partitions, reads, decide, purpose, answer, until_s))
        self._schedule()
        return answer

    def expire(self) -> None:
        """Answer those who have waited for `patience_s`. What they wait for goes on, but for what
        is not decided yet."""
        now_s = asyncio.get_running_loop().time()
        away = unavailable(None)
        _fail([update for update in self._queue if update.until_s <= now_s], away)
        for slot, updates in self._serving.items():
            due = [update for update in updates if update.until_s <= now_s]
            _fail(due, CommitUnknown(_NOT_TOLD) if slot in self._written else away)

    async def drain(self, limit_s: float) -> None:
        """Return when every update has its answer. After the limit, those left are unknown."""
        until_s = asyncio.get_running_loop().time() + limit_s
        while self._tasks or self._queue:
            self._start()
            if not self._tasks:
                continue  # what was left in line had lost its callers
            left_s = max(0.0, until_s - asyncio.get_running_loop().time())
            ended = asyncio.FIRST_COMPLETED
            done, _ = await asyncio.wait(self._tasks, timeout=left_s, return_when=ended)
            if not done:
                break
        _fail(list(self._queue), Unavailable("the store is closed"))
        self._queue.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _schedule(self) -> None:
        if not self._is_scheduled and self._free:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        self._is_scheduled = False
        while self._free and (updates := self._taken()):
            lane = self._free.pop()
            self._serving[lane.slot] = updates
            self._claimed[lane.slot] = set().union(*(update.claimed for update in updates))
            task = asyncio.ensure_future(self._serve(lane, updates))
            self._tasks.add(task)
            task.add_done_callback(functools.partial(self._ended, lane))

    def _ended(self, lane: Lane, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        del self._serving[lane.slot], self._claimed[lane.slot]
        self._written.pop(lane.slot, None)
        self._free.append(lane)
        self._start()

    def _taken(self) -> list[Update]:
        """The next updates for one lane. Those that read what another lane writes stay in line."""
        limit = 1 if self._space.is_tight else _UPDATES_MAX
        taken: list[Update] = []
        left: list[Update] = []
        while self._queue and len(taken) < limit:
            update = self._queue.popleft()
            if update.answer.done():
                continue
            is_busy = _meets(update, self._claimed) or _meets(update, self._written)
            if is_busy or (update.is_alone and taken):
                left.append(update)
                continue
            taken.append(update)
            if update.is_alone:
                break
        self._queue.extendleft(reversed(left))
        return taken

    async def _serve(self, lane: Lane, updates: list[Update]) -> None:
        """Whatever happens, each update gets an answer, or is put back into the queue."""
        number = next(self._numbers)
        try:
            await self._gate.ensure_live()
            await self._commit(lane, updates, number)
        except EngineError as error:
            _fail(updates, error)
        except asyncio.CancelledError:
            _fail(updates, CommitUnknown("the store was closed while it committed"))
            raise
        except Exception as error:
            # Before a batch is decided, nothing is changed.
            kind = CommitUnknown if lane.slot in self._written else Unavailable
            _fail(updates, kind(f"the store could not commit: {error!r}"))
            raise
        finally:
            self._flights.end(number)

    async def _commit(self, lane: Lane, updates: list[Update], number: int) -> None:
        batch = Batch(
            await self._read(lane, updates),
            lambda: self._stamp(number),
            self._gate.numbers,
            self._adoptions.check,
        )
        put_off = [update for update in updates if not self._decided(batch, update)]
        updates[:] = [update for update in updates if update not in put_off]
        self._queue.extendleft(reversed(put_off))
        if not batch.units:
            return
        self._written[lane.slot] = batch.written()
        adopted = [content_id for unit in batch.units for content_id in unit.adopt]
        self._adoptions.begin(adopted)
        happened: list[Unit] = []
        try:
            if await self._has_room(lane, batch.units):
                happened = await self._sent(lane, batch, number)
        finally:
            for unit in happened:
                for content_id in unit.adopt:
                    self._adoptions.written.pop(content_id, None)
            self._adoptions.end(adopted)

    def _decided(self, batch: Batch, update: Update) -> bool:
        """Make a decision, unless the batch is full, or another lane writes what it has read."""
        if update.answer.done():
            return True  # its caller has gone
        if batch.is_full:
            return False
        if _meets(update, self._written):
            update.was_put_off = True
            return False
        decided = batch.decide(update)
        if decided is not None:
            decided.deliver()
        return True

    def _stamp(self, number: int) -> int:
        stamp = self._gate.stamp()
        self._flights.begin(number, stamp)
        return stamp

    async def _read(self, lane: Lane, updates: Sequence[Update]) -> dict[Ref, Record | None]:
        refs = dict.fromkeys(ref for update in updates for ref in update.reads)
        records: dict[Ref, Record | None] = dict.fromkeys(refs)
        if refs:
            order = list(refs)
            places = wire.byteas([place_of(ref) for ref in order])
            for at, version, value in (await run_again(lane, READ, places)).rows:
                stamp = wire.number_of(version or b"")
                self._gate.observe(stamp)
                records[order[wire.number_of(at or b"") - 1]] = Record(value or b"", stamp)
        return records

    async def _sent(self, lane: Lane, batch: Batch, number: int) -> list[Unit]:
        """Send a batch, answer the units that happened, and return them."""
        await self._pause()
        units, session = batch.units, await lane.session()
        began_s = elapsed_s()
        try:
            answer = await session.run(COMMIT, *self._arguments(lane, number, batch))
            self.times.note(elapsed_s() - began_s)
            failed_units, newest, grown = answer.rows[0]
            failed = wire.numbers_of(failed_units or b"")
            if answer.warned and len(failed) < len(units):
                await lane.confirm(session)
            self._gate.observe(wire.number_of(newest or b""))
            self._space.add(wire.number_of(grown or b""))
        except SessionLost:
            failed = await self._outcome(lane, batch, number)
        except SqlError as error:
            if error.state == _SUPERSEDED:
                session.close()
            return await self._refused(units, error)
        return self._settled(units, failed)

    async def _pause(self) -> None:
        if self.before_commit is not None:
            await self.before_commit()

    def _arguments(self, lane: Lane, number: int, batch: Batch) -> tuple[bytes, ...]:
        gate = self._gate
        return (
            wire.int4(gate.number),
            wire.int8(gate.incarnation),
            wire.int4(lane.slot),
            wire.int8(lane.epoch),
            wire.int8(number),
            wire.int4(gate.salt),
            *batch.arguments(),
        )

    async def _outcome(self, lane: Lane, batch: Batch, number: int) -> list[int]:
        """Find out which units of a batch failed, whose session was lost inside its commit."""
        while True:
            with contextlib.suppress(Unavailable):
                await lane.session(_UNKNOWN_S)
                break
        if lane.batch == number:
            return lane.failed
        return list(range(1, len(batch.units) + 1))

    async def _refused(self, units: Sequence[Unit], error: SqlError) -> list[Unit]:
        """The server refused the whole batch, and nothing happened."""
        if error.state == _DEAD:
            self._gate.died()
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
            self._gate.committed(changed)
        for unit in happened:
            self.times.decisions += len(unit.members)
            for decided in unit.members:
                decided.deliver()
        return happened

    def _refuse_adoption(self, unit: Unit) -> None:
        if len(unit.members) > 1:
            self._requeue((unit,), alone=True)
            return
        taken = ValueError("a commit adopts contents that were written and not adopted before")
        _fail([unit.members[0].update], taken)

    def _requeue(self, units: Sequence[Unit], *, alone: bool) -> None:
        updates = [decided.update for unit in units for decided in unit.members]
        for update in updates:
            update.is_alone = update.is_alone or alone
        self._queue.extendleft(reversed(updates))

    async def _has_room(self, lane: Lane, units: Sequence[Unit]) -> bool:
        """Judge a decision by its purpose (rule 6 of base.py), if space is tight. Return False if
        the batch has several, which are then decided again, each for itself. Raises: Full."""
        if not self._space.is_tight:
            return True
        members = [one for unit in units for one in unit.members]
        if len(members) > 1:
            self._requeue(units, alone=True)
            return False
        (decided,) = members
        writes = values_after(decided.steps)
        order = list(writes)
        before: dict[Ref, Record] = {}
        answer = await run_again(lane, SIZES, wire.byteas([place_of(ref) for ref in order]))
        for at, version, size in answer.rows:
            record = Record(bytes(wire.number_of(size or b"")), wire.number_of(version or b""))
            before[order[wire.number_of(at or b"") - 1]] = record
        adopts = any(step.adopt for step in decided.steps)
        purpose = purpose_of(decided.update.purpose, adopts, writes, before.get)
        growth = growth_bytes(writes, before.get)
        if growth > 0 and not self._space.has_room(growth, purpose):
            raise Full(purpose)
        return True


def _meets(update: Update, by_slot: Mapping[int, set[int]]) -> bool:
    return any(not update.partitions.isdisjoint(numbers) for numbers in by_slot.values())


def _fail(updates: Sequence[Update], error: Exception) -> None:
    for update in updates:
        if not update.answer.done():
            update.answer.set_exception(error)
            update.answer.exception()  # its caller may have gone
