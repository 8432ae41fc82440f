"""Sweeping expired messages, and the messages of queues that were cleared or deleted.

Lives here: the work of the two jobs. Everything that is swept here is invisible: an expired message
is not returned, and an epoch that has ended is not read. When a job begins, no commit that was
decided before the end of the epoch is still under way (rule 2 of sweeper.py).
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Sequence
from typing import Final, NamedTuple

from strongroom import limits
from strongroom.engines.base import Commit, Item, Key, Partition, Ref
from strongroom.services.core.background import RemovalBatch
from strongroom.services.core.decisions import Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.queue import ledgers
from strongroom.services.queue.ledgers import StoredLedger
from strongroom.services.queue.message_changes import SWEEP_PAUSE_TICKS, MessagesChange, expiry_job
from strongroom.store.core import gateway_keys, keys, records
from strongroom.store.core.records import Job
from strongroom.store.queue import message_records
from strongroom.store.queue.message_records import Expiry, Ledger
from strongroom.values import Purpose

_PAGE_RECORDS: Final = 200
# How often a search is repeated because of a concurrent Put Message, before a later job does it.
_REPEATED_READS_MAX: Final = 4


async def sweep_messages(services: Services, removal: RemovalBatch, job: Job, stamp: int) -> None:
    """Remove the messages of epochs that ended with a clearing or deletion, or that never began.
    The commit `stamp` scheduled the job, and may have begun an epoch too."""
    (record,) = await services.store.read([keys.queue(*job.token.split("/"))])
    queue = records.QUEUE.of(record)
    alive = queue is not None and queue.generation == job.generation
    for epoch in (job.epoch, stamp):
        if epoch and not (alive and queue is not None and queue.epoch == epoch):
            await _sweep_epoch(services, removal, job.generation, epoch)


async def _sweep_epoch(
    services: Services, removal: RemovalBatch, generation: int, epoch: int
) -> None:
    """Remove all records of an epoch in one pass, since no message is put or moved there any
    more."""
    partition = keys.message_partition(generation, epoch)
    first = b""
    while True:
        page = await services.store.read_range(partition, True, first, None, _PAGE_RECORDS)
        for item in page:
            await _remove_expiry_job(removal, epoch, item)
            await removal.add(partition, (Key(True, item.name),))
        if len(page) < _PAGE_RECORDS:
            break
        first = page[-1].name + b"\0"
        await asyncio.sleep(0)
    await removal.commit()


async def _remove_expiry_job(removal: RemovalBatch, epoch: int, item: Item) -> None:
    """Remove the job that would sweep the epoch's expired messages, together with its ledger."""
    if gateway_keys.ledger_gateway(item.name) is None:
        return
    due = message_records.LEDGER.decode(item.value).due
    if due:
        job = expiry_job(epoch, due)
        await removal.add(job.partition, (job.key,))


class _Outcome(enum.Enum):
    DONE = "done"
    MORE = "there is more to remove"
    CONCURRENT_PUT = "something was put meanwhile"


class _Expired(NamedTuple):
    """One read of an epoch's expiry entries.

    Attributes:
        items: the entries to remove.
        next_due: when the next message expires; 0 = none is left.
        ledgers: those that name the job, as they were before the read.
        more: the next message has expired already.
    """

    items: Sequence[Item]
    next_due: int
    ledgers: Sequence[StoredLedger]
    more: bool


async def expire_messages(services: Services, job: Job, due: int, pause_s: float) -> None:
    """Remove expired messages, and schedule the job for the next expiry. `due` is when this job
    fell due; for ledgers with another time, another job does the work."""
    partition = keys.message_partition(job.generation, job.epoch)
    concurrent_puts = 0
    while True:
        expired = await _read_expired(services, partition, due)
        if not expired.ledgers:
            return
        outcome = await _remove(
            services, job, partition, expired, due, concurrent_puts < _REPEATED_READS_MAX
        )
        if outcome is _Outcome.DONE:
            return
        concurrent_puts += outcome is _Outcome.CONCURRENT_PUT
        await asyncio.sleep(pause_s)


async def _read_expired(services: Services, partition: Partition, due: int) -> _Expired:
    counted = [one for one in await ledgers.read_all(services, partition) if one.value.due == due]
    if not counted:
        return _Expired((), 0, (), False)
    now = await services.store.now()
    most = limits.EXPIRED_PER_COMMIT_MAX
    page = await services.store.read_range(partition, True, *keys.expiry_range(), most + 1)
    expired = [item for item in page[:most] if keys.expires_at(item.name) <= now]
    following = page[len(expired) : len(expired) + 1]
    next_due = keys.expires_at(following[0].name) if following else 0
    return _Expired(expired, next_due, counted, 0 < next_due <= now)


async def _remove(
    services: Services,
    job: Job,
    partition: Partition,
    expired: _Expired,
    due: int,
    may_look_again: bool,
) -> _Outcome:
    """Remove the messages that a read has found, and schedule the next job when these were all."""
    reads = Reads()
    ledger = ledgers.add_own(services, reads, partition)
    naming = reads.add_all([one.ref for one in expired.ledgers], message_records.LEDGER)
    entries = reads.add_all(
        [Ref(partition, Key(True, item.name)) for item in expired.items], message_records.EXPIRY
    )
    return await ledgers.commit(
        services,
        _Expire(
            partition,
            reads.refs,
            Purpose.FREEING,
            job=job,
            ledger=ledger,
            naming=naming,
            entries=entries,
            expired=expired,
            due=due,
            may_look_again=may_look_again,
        ),
    )


class _Expire(Decision[_Outcome], frozen=True):
    """`ledger` counts what is removed here; `naming` are the ledgers of `expired`."""

    job: Job
    ledger: ReadOne[Ledger]
    naming: ReadAll[Ledger]
    entries: ReadAll[Expiry]
    expired: _Expired
    due: int
    may_look_again: bool

    def decide(self, found: Found, stamp: int) -> Commit[_Outcome]:
        job, expired, read = self.job, self.expired, self.ledger
        naming = [
            (ref.key, ledger)
            for ref, ledger in zip(self.naming.refs, found[self.naming], strict=True)
            if ledger is not None and ledger.due == self.due
        ]
        if not naming:
            return Commit(_Outcome.DONE)
        ledger = ledgers.own(found, read)
        change = MessagesChange(job.generation, job.epoch, stamp, ledger, read.ref.key)
        for ref, entry in zip(self.entries.refs, found[self.entries], strict=True):
            # A moved message has another place, which is read here; a removed one has no entry.
            if entry is not None:
                change.remove_expired(ref.key, entry)
        outcome = _Outcome.MORE if expired.more else _Outcome.DONE
        # A message that was put since the read may expire before those that the read has seen.
        records = found.records(self.naming)
        versions = [None if one is None else one.version for one in records]
        was_put_since = versions != [one.version for one in expired.ledgers]
        soon = stamp + SWEEP_PAUSE_TICKS
        if not expired.more and was_put_since and self.may_look_again:
            outcome = _Outcome.CONCURRENT_PUT
        elif not expired.more and was_put_since:
            change.sweep_all_at(soon, naming)
        elif not expired.more:
            change.sweep_all_at(expired.next_due and max(expired.next_due, soon), naming)
        return Commit(outcome, change.steps())
