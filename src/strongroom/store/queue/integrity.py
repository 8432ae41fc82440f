"""The check of queues: a queue's messages, their texts, their expiry records and the ledger agree.

Lives here: the check of all queues. Records that belong together are summed up on both sides, and
the sums are compared. So its memory grows with the queues and not with their messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from strongroom.engines.base import Record, Ref
from strongroom.semantics.queue.messages import NEVER
from strongroom.store.core import gateway_keys, keys
from strongroom.store.core.records import Job, JobKind, QueueRecord
from strongroom.store.queue import message_records
from strongroom.store.queue.message_records import Ledger

_NUMBER_BYTES: Final = 8


@dataclass(slots=True)
class _Epoch:
    """The messages of one partition. Each sum adds the records that messages name, and subtracts
    the records found."""

    ledgers: dict[int, Ledger] = field(default_factory=dict)
    messages: int = 0
    expiring: int = 0
    expiries_sum: int = 0
    texts_sum: int = 0


class MessagesCheck:
    """The check of all queues of one snapshot: `take` all records, then call `problems`."""

    def __init__(self) -> None:
        self.queue_count = 0
        self.message_count = 0
        self._alive: dict[int, int] = {}
        self._epochs: dict[tuple[int, int], _Epoch] = {}
        self._swept: set[tuple[int, int]] = set()
        self._expired: set[tuple[int, int]] = set()

    def take_queue(self, queue: QueueRecord) -> None:
        self.queue_count += 1
        self._alive[queue.generation] = queue.epoch

    def take_job(self, partition: bytes, job: Job) -> None:
        """A job of any kind; `partition` names it."""
        due, stamp = keys.job_times(partition)
        if job.kind is JobKind.SWEEP_MESSAGES:
            self._swept |= {(job.generation, job.epoch), (job.generation, stamp)}
        elif job.kind is JobKind.EXPIRE_MESSAGES:
            self._expired.add((job.epoch, due))

    def take(self, ref: Ref, record: Record) -> bool:
        """Return False when the key is unknown."""
        epoch = self._epoch_of(ref)
        if epoch is None or not ref.key.hidden:
            return False
        name = ref.key.name
        kind, size = name[:1], len(name)
        gateway = gateway_keys.ledger_gateway(name)
        if gateway is not None:
            epoch.ledgers[gateway] = message_records.LEDGER.decode(record.value)
        elif kind == keys.MESSAGE and size == 18:
            return self._take_message(epoch, name, record.value)
        elif kind == keys.EXPIRY and size == 17:
            expiry = message_records.EXPIRY.decode(record.value)
            epoch.expiries_sum -= _digest(name, expiry.place, expiry.chunks)
        elif kind == keys.TEXT and size == 10:
            message_records.TEXT.decode(record.value)
            epoch.texts_sum -= _digest(name)
        else:
            return False
        return True

    def _epoch_of(self, ref: Ref) -> _Epoch | None:
        generation, epoch = ref.partition.keyspace[1:], ref.partition.name
        if len(generation) != _NUMBER_BYTES or len(epoch) != _NUMBER_BYTES:
            return None
        number = int.from_bytes(generation, "big"), int.from_bytes(epoch, "big")
        return self._epochs.setdefault(number, _Epoch())

    def _take_message(self, epoch: _Epoch, name: bytes, value: bytes) -> bool:
        record = message_records.MESSAGE.decode(value)
        message = record.message
        epoch.messages += 1
        self.message_count += 1
        for chunk in range(record.chunks):
            epoch.texts_sum += _digest(keys.text(record.number, chunk).name)
        if message.expires != NEVER:
            epoch.expiring += 1
            expiry = keys.expiry(message.expires, record.number).name
            epoch.expiries_sum += _digest(expiry, keys.message_place(name), record.chunks)
        return name[1:9] == keys.number(message.visible)

    def problems(self) -> Iterator[tuple[str, str, Ref]]:
        """(place, problem, a record there), once all records were noted."""
        for generation, alive in self._alive.items():
            epoch = self._epochs.get((generation, alive), _Epoch())
            for problem in self._of_queue(alive, epoch):
                yield f"queue {generation}", problem, _ledger(generation, alive)
        for generation, number in self._epochs:
            ended = self._alive.get(generation) != number
            if ended and (generation, number) not in self._swept:
                place = f"messages {generation}/{number}"
                problem = "their queue is gone or was cleared, and no job cleans up"
                yield place, problem, _ledger(generation, number)

    def _of_queue(self, number: int, epoch: _Epoch) -> Iterator[str]:
        ledger = epoch.ledgers.get(0)
        if ledger is None:
            yield "its ledger is missing"
            return
        if {0, *ledger.others} != set(epoch.ledgers):
            yield "its ledger does not name the ledgers of the gateways"
        count = sum(one.count for one in epoch.ledgers.values())
        if count != epoch.messages:
            yield f"its ledger counts {count} messages, and there are {epoch.messages}"
        if epoch.expiries_sum:
            yield "what expires is not what its messages say"
        if epoch.texts_sum:
            yield "the long texts are not those of its messages"
        due = {one.due for one in epoch.ledgers.values() if one.due}
        if epoch.expiring and not (due and {(number, one) for one in due} <= self._expired):
            yield "messages expire, and no job removes them"


def _ledger(generation: int, epoch: int) -> Ref:
    return Ref(keys.message_partition(generation, epoch), keys.LEDGER_KEY)


def _digest(name: bytes, place: bytes = b"", chunks: int = 0) -> int:
    """A hash of a record's name and content."""
    text = b"%d %b %b" % (chunks, name, place)
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
