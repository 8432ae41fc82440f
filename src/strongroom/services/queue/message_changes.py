"""The writes of a commit on a queue's messages.

Lives here: keeping consistent the message, the entry of its expiry, its long text, the ledger, and
the job that sweeps expired messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from strongroom.engines.base import Key, Ref, Step, Write
from strongroom.semantics.queue.messages import NEVER, Message
from strongroom.services.core.place_records import written
from strongroom.store.core import keys, records
from strongroom.store.core.records import Job, JobKind
from strongroom.store.queue import message_records
from strongroom.store.queue.message_records import Expiry, Ledger, MessageRecord
from strongroom.values import TICKS_PER_S

# The pause lets one job remove many messages that expire shortly after one another.
SWEEP_PAUSE_TICKS: Final = TICKS_PER_S


class MessagesChange:
    """The writes of one decision on the messages of a queue's epoch.

    Arguments:
        ledger: that of the gateway, as the decision reads it; None when the change does not need
            it.
        ledger_key: of that ledger.
    """

    def __init__(
        self,
        generation: int,
        epoch: int,
        stamp: int,
        ledger: Ledger | None = None,
        ledger_key: Key = keys.LEDGER_KEY,
    ) -> None:
        self.partition = keys.message_partition(generation, epoch)
        self._generation = generation
        self._epoch = epoch
        self._stamp = stamp
        self._ledger = ledger
        self._ledger_key = ledger_key
        self._is_ledger_changed = False
        self._writes: list[Write] = []
        self._jobs: list[Step] = []
        self._placed = 0

    def put(self, message: Message, text: str) -> bytes:
        """Count the new message too. Return its place."""
        assert self._ledger is not None
        self._change_ledger(+1)
        place = self._place(self._texted(MessageRecord(message, self._stamp), text))
        due = self._ledger.due
        if message.expires != NEVER and (not due or message.expires < due):
            self.sweep_at(message.expires)
        return place

    def move(
        self, old: Key, record: MessageRecord, message: Message, text: str | None = None
    ) -> bytes:
        """Return the new place. `text` None = its text does not change."""
        self._writes.append(Write(old, None))
        moved = MessageRecord(message, record.number, record.text, record.chunks)
        return self._place(moved if text is None else self._texted(moved, text))

    def remove(self, old: Key, record: MessageRecord) -> None:
        self._writes.append(Write(old, None))
        self._drop_chunks(record.number, 0, record.chunks)
        expires = record.message.expires
        if expires != NEVER:
            self._writes.append(Write(keys.expiry(expires, record.number), None))
        self._change_ledger(-1)

    def remove_expired(self, expiry: Key, entry: Expiry) -> None:
        number = keys.expiry_number(expiry.name)
        self._writes += (Write(expiry, None), Write(keys.message_at(entry.place), None))
        self._drop_chunks(number, 0, entry.chunks)
        self._change_ledger(-1)

    def wake_watchers(self) -> None:
        """Write the ledger unchanged, to wake the requests that watch it."""
        self._change_ledger(0)

    def sweep_at(self, due: int) -> None:
        """Schedule the sweep of expired messages; 0 = no message will expire."""
        self._change_ledger(0, due)
        self._order_sweep(due)

    def sweep_all_at(self, due: int, ledgers: Iterable[tuple[Key, Ledger]]) -> None:
        """As `sweep_at`, for the ledgers of several gateways."""
        for key, ledger in ledgers:
            if key == self._ledger_key:
                self._change_ledger(0, due)
            else:
                changed = msgspec.structs.replace(ledger, due=due)
                self._writes.append(Write(key, message_records.LEDGER.encode(changed)))
        self._order_sweep(due)

    def _order_sweep(self, due: int) -> None:
        if due:
            job = Job(JobKind.EXPIRE_MESSAGES, self._generation, epoch=self._epoch)
            self._jobs.append(written(expiry_job(self._epoch, due), records.JOB, job))

    def steps(self) -> tuple[Step, ...]:
        """The job comes first: without its message it finds nothing to do."""
        writes = list(self._writes)
        if self._is_ledger_changed and self._ledger is not None:
            writes.append(Write(self._ledger_key, message_records.LEDGER.encode(self._ledger)))
        return (*self._jobs, Step(self.partition, tuple(writes))) if writes else ()

    def _change_ledger(self, more: int, due: int | None = None) -> None:
        assert self._ledger is not None
        self._is_ledger_changed = True
        count, due = self._ledger.count + more, self._ledger.due if due is None else due
        self._ledger = Ledger(count, due, self._ledger.others)

    def _place(self, record: MessageRecord) -> bytes:
        message = record.message
        key = keys.message(message.visible, self._stamp, self._placed)
        self._placed += 1
        place = keys.message_place(key.name)
        self._writes.append(Write(key, message_records.MESSAGE.encode(record)))
        if message.expires != NEVER:
            value = message_records.EXPIRY.encode(Expiry(place, record.chunks))
            self._writes.append(Write(keys.expiry(message.expires, record.number), value))
        return place

    def _texted(self, record: MessageRecord, text: str) -> MessageRecord:
        """Return the record with another text. The chunks of a long text are written here."""
        chunks = message_records.chunks_of(text)
        for index, chunk in enumerate(chunks):
            key = keys.text(record.number, index)
            self._writes.append(Write(key, message_records.TEXT.encode(chunk)))
        self._drop_chunks(record.number, len(chunks), record.chunks)
        inline = "" if chunks else text
        return MessageRecord(record.message, record.number, inline, len(chunks))

    def _drop_chunks(self, number: int, first: int, until: int) -> None:
        for index in range(first, until):
            self._writes.append(Write(keys.text(number, index), None))


def expiry_job(epoch: int, due: int) -> Ref:
    """There is one job for each due time, however many commits schedule it."""
    return keys.job(due, epoch, JobKind.EXPIRE_MESSAGES)


def new_epoch(name: str, generation: int, before: int, stamp: int) -> tuple[Step, ...]:
    """The steps that start a new epoch of a queue; the write of the queue's record follows.

    The job sweeps whichever of the epochs `before` (0 = none) and `stamp` is not the queue's. If a
    crash prevents the write of the queue's record, that is the new one.

    Arguments:
        name: account/queue.
    """
    ledger = Write(keys.LEDGER_KEY, message_records.LEDGER.encode(Ledger()))
    begun = Step(keys.message_partition(generation, stamp), (ledger,))
    job = Job(JobKind.SWEEP_MESSAGES, generation, token=name, epoch=before)
    return written(keys.job(stamp, stamp, job.kind), records.JOB, job), begun
