"""Sweeping messages: those that have expired, and those of queues that were cleared or deleted.

Lives here: the work of the two jobs. Must not live here: when they run (sweeper.py), when a message
has expired (semantics/queue/messages.py). Nobody sees what is swept here: an expired message is not
returned, and an epoch that has ended is not looked at. When a job begins, nothing is under way any
more that was decided while the epoch had not ended (rule 2 of sweeper.py).
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Sequence
from typing import Final, NamedTuple

from strongroom import limits
from strongroom.engines.base import Commit, Item, Key, Partition, Record, Ref
from strongroom.services.core.background import RemovalBatch
from strongroom.services.core.decisions import Decision
from strongroom.services.core.runner import Services
from strongroom.services.queue.message_changes import SWEEP_PAUSE_TICKS, MessagesChange, expiry_job
from strongroom.store.core import keys, records
from strongroom.store.core.records import Job
from strongroom.store.queue import message_records
from strongroom.values import Purpose

_PAGE_RECORDS: Final = 200
# How often a look is made again because something was put meanwhile, before it is left for later.
_OVERTAKEN_MAX: Final = 4


async def sweep_messages(services: Services, removal: RemovalBatch, job: Job, stamp: int) -> None:
    """Remove the messages of the epochs that ended with a clearing or deletion, or that never
    began.

    Arguments:
        stamp: of the commit that ordered the job; it may have begun an epoch too.
    """
    (found,) = await services.store.read([keys.queue(*job.token.split("/"))])
    queue = records.QUEUE.of(found)
    alive = queue is not None and queue.generation == job.generation
    for epoch in (job.epoch, stamp):
        if epoch and not (alive and queue is not None and queue.epoch == epoch):
            await _sweep_epoch(services, removal, job.generation, epoch)


async def _sweep_epoch(
    services: Services, removal: RemovalBatch, generation: int, epoch: int
) -> None:
    """Nothing is put or moved here any more, so one walk meets everything."""
    partition = keys.message_partition(generation, epoch)
    first = b""
    while True:
        page = await services.store.read_range(partition, True, first, None, _PAGE_RECORDS)
        for item in page:
            await _forget_job(removal, epoch, item)
            await removal.add(partition, (Key(True, item.name),))
        if len(page) < _PAGE_RECORDS:
            break
        first = page[-1].name + b"\0"
        await asyncio.sleep(0)
    await removal.commit()


async def _forget_job(removal: RemovalBatch, epoch: int, item: Item) -> None:
    """With its ledger an epoch loses the job that would have swept it message by message."""
    if item.name != keys.LEDGER_KEY.name:
        return
    due = message_records.LEDGER.decode(item.value).due
    if due:
        job = expiry_job(epoch, due)
        await removal.add(job.partition, (job.key,))


class _Outcome(enum.Enum):
    """How one commit of removals went."""

    DONE = "done"
    MORE = "there is more to remove"
    OVERTAKEN = "something was put meanwhile"


class _Expired(NamedTuple):
    """One look at an epoch's expiries.

    Attributes:
        items: what is to go.
        next_due: when the next one is due; 0 = none is left.
        ledger_version: the ledger's version before the look.
        more: the next one is due already.
    """

    items: Sequence[Item]
    next_due: int
    ledger_version: int
    more: bool


async def expire_messages(services: Services, job: Job, due: int, pause_s: float) -> None:
    """Remove what has expired, and order the job for what expires next.

    Arguments:
        due: when this job fell due; if the ledger names another time, another job does the work.
        pause_s: how long requests go first after each commit.
    """
    partition = keys.message_partition(job.generation, job.epoch)
    overtaken = 0
    while True:
        look = await _look(services, partition)
        if look is None:
            return
        outcome = await _remove(services, job, partition, look, due, overtaken < _OVERTAKEN_MAX)
        if outcome is _Outcome.DONE:
            return
        overtaken += outcome is _Outcome.OVERTAKEN
        await asyncio.sleep(pause_s)


async def _look(services: Services, partition: Partition) -> _Expired | None:
    (ledger,) = await services.store.read([Ref(partition, keys.LEDGER_KEY)])
    if ledger is None:
        return None
    now = await services.store.now()
    most = limits.EXPIRED_PER_COMMIT_MAX
    page = await services.store.read_range(partition, True, *keys.expiry_range(), most + 1)
    expired = [item for item in page[:most] if keys.expires_at(item.name) <= now]
    following = page[len(expired) : len(expired) + 1]
    next_due = keys.expires_at(following[0].name) if following else 0
    return _Expired(expired, next_due, ledger.version, 0 < next_due <= now)


async def _remove(
    services: Services,
    job: Job,
    partition: Partition,
    look: _Expired,
    due: int,
    may_look_again: bool,
) -> _Outcome:
    """Remove what a look has found, and order the next job when that was all."""
    reads = [Ref(partition, keys.LEDGER_KEY)]
    reads += [Ref(partition, Key(True, item.name)) for item in look.items]
    expire = _Expire(partition, reads, Purpose.FREEING, job, look, due, may_look_again)
    return await services.commit(expire)


class _Expire(Decision[_Outcome], frozen=True):
    """Remove the messages of a look that have expired; see `_remove`."""

    job: Job
    look: _Expired
    due: int
    may_look_again: bool

    def decide(self, found: Sequence[Record | None], stamp: int) -> Commit[_Outcome]:
        """See Decision.decide."""
        job, look = self.job, self.look
        ledger = message_records.LEDGER.of(found[0])
        if ledger is None or found[0] is None or ledger.due != self.due:
            return Commit(_Outcome.DONE)
        change = MessagesChange(job.generation, job.epoch, stamp, ledger)
        for item, record in zip(look.items, found[1:], strict=True):
            # One that was moved meanwhile has another place, read here; one that is gone, none.
            if record is not None:
                expiry = message_records.EXPIRY.decode(record.value)
                change.remove_expired(Key(True, item.name), expiry)
        outcome = _Outcome.MORE if look.more else _Outcome.DONE
        # What was put since the look may expire before what the look has seen.
        overtaken = found[0].version != look.ledger_version
        soon = stamp + SWEEP_PAUSE_TICKS
        if not look.more and overtaken and self.may_look_again:
            outcome = _Outcome.OVERTAKEN
        elif not look.more and overtaken:
            change.sweep_at(soon)
        elif not look.more:
            change.sweep_at(look.next_due and max(look.next_due, soon))
        return Commit(outcome, change.steps())
