"""A batch: decisions of many partitions that are committed by one statement.

Lives here: how decisions are made on what was read, and how those that belong together become a
unit. No IO: `commits.py` reads before, and sends the units afterwards.

A decision sees the writes of earlier decisions of its batch. It then stands or falls with them, so
they are one unit. Decisions that write to the same partition, or adopt the same content, are one
unit too. The database accepts or refuses each unit by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from strongroom.engines.base import Decide, Partition, Record, Ref, Step
from strongroom.engines.bounds import check_steps
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.places import LockNumbers, place_of
from strongroom.values import Purpose

LOCKS_MAX: Final = 256
_SINGLE_LOCKS_MAX: Final = 512
"""A batch with more locks takes the store's own in place of them: PostgreSQL has room for some
thousands in all sessions together."""
BYTES_MAX: Final = 8 * 1024 * 1024


class Update(msgspec.Struct, eq=False):
    """A decision that waits for its commit.

    Attributes:
        home: the number of its partition.
        partitions: the numbers of its partition and of those that it reads.
        until_s: until then its caller waits, by the loop's clock.
        was_put_off: whether another lane wrote what it read, so that it had to wait.
        is_alone: whether it must be the only one of its batch.
    """

    home: int
    partitions: frozenset[int]
    reads: Sequence[Ref]
    decide: Decide[Any]
    purpose: Purpose
    answer: asyncio.Future[Any]
    until_s: float
    was_put_off: bool = False
    is_alone: bool = False

    @property
    def claimed(self) -> frozenset[int]:
        """What no other lane may take up meanwhile: its own partition. The second time it claims
        all of them, so that it is not put off for ever."""
        return self.partitions if self.was_put_off else frozenset((self.home,))


class Decided(msgspec.Struct, frozen=True):
    """What a decision came to: a result or an error, and its steps."""

    update: Update
    result: object
    error: Exception | None
    steps: tuple[Step, ...]

    def deliver(self) -> None:
        answer = self.update.answer
        if answer.done():
            return  # its caller was cancelled
        if self.error is not None:
            answer.set_exception(self.error)
        else:
            answer.set_result(self.result)


class Unit:
    """Decisions that are committed together, or not at all.

    Attributes:
        partitions: the lowest and the highest stamp of each partition that is written, by number.
        guards: the versions of records that were read; None = there was none.
        writes: the last value of each record, and the stamp of the decision that wrote it.
    """

    def __init__(self) -> None:
        self.members: list[Decided] = []
        self.partitions: dict[int, tuple[int, int]] = {}
        self.guards: dict[Ref, int | None] = {}
        self.writes: dict[Ref, tuple[bytes | None, int]] = {}
        self.adopt: list[int] = []
        self.drop: list[tuple[int, int]] = []

    def absorb(self, other: Unit) -> None:
        self.members += other.members
        self.partitions |= other.partitions
        self.guards |= other.guards
        self.writes |= other.writes
        self.adopt += other.adopt
        self.drop += other.drop

    def add_steps(
        self, steps: Sequence[Step], stamp: int, number_of: Callable[[Partition], int]
    ) -> None:
        for step in steps:
            number = number_of(step.partition)
            self.partitions[number] = (self.partitions.get(number, (stamp, 0))[0], stamp)
            for key, value in step.writes:
                self.writes[Ref(step.partition, key)] = (value, stamp)
            self.adopt += step.adopt
            self.drop += [(content_id, stamp) for content_id in step.drop]


class CommitBatch:
    """The decisions of a batch, made one after the other.

    Arguments:
        records: what was read, by address.
        stamp: gives the next stamp.
        check_adoptions: raises ValueError if a content is not free to be adopted.
    """

    def __init__(
        self,
        records: Mapping[Ref, Record | None],
        stamp: Callable[[], int],
        numbers: LockNumbers,
        check_adoptions: Callable[[Sequence[Step]], None],
    ) -> None:
        self._records = records
        self._stamp = stamp
        self._numbers = numbers
        self._number_of = numbers.of
        self._check_adoptions = check_adoptions
        self._written: dict[Ref, Record | None] = {}
        self._by_partition: dict[int, Unit] = {}
        self._by_content: dict[int, Unit] = {}
        self._shared: set[int] = set()
        self.units: list[Unit] = []
        self.size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether no more decisions should be added."""
        locks = len(self._by_partition) + len(self._by_content) + len(self._shared)
        return locks >= LOCKS_MAX or self.size_bytes >= BYTES_MAX

    def decide(self, update: Update) -> Decided | None:
        """Make a decision. Return it if it can be answered at once: it changes nothing, and has
        read nothing that is not committed yet."""
        reads, written = update.reads, self._written
        seen = [written[ref] if ref in written else self._records[ref] for ref in reads]
        stamp = self._stamp()
        decided = self._decided(update, seen, stamp)
        touched = [self._by_partition[self._number_of(r.partition)] for r in reads if r in written]
        if not decided.steps and not touched:
            return decided
        unit = self._unit_of(decided.steps, touched)
        unit.members.append(decided)
        for ref, record in zip(reads, seen, strict=True):
            if ref not in written:
                unit.guards.setdefault(ref, None if record is None else record.version)
                self._shared.add(self._number_of(ref.partition))
        self._apply(unit, decided.steps, stamp)
        return None

    def _decided(self, update: Update, seen: Sequence[Record | None], stamp: int) -> Decided:
        try:
            commit = update.decide(seen, stamp)
            self.size_bytes += check_steps(commit.steps).size_bytes
            self._check_adoptions(commit.steps)
        except StopIteration as refusal:  # a future cannot carry it
            return Decided(update, None, RuntimeError(repr(refusal)), ())
        except Exception as refusal:
            return Decided(update, None, refusal, ())
        adopted = [content_id for step in commit.steps for content_id in step.adopt]
        if any(one in self._by_content for one in adopted):
            taken = ValueError("a content is adopted twice")
            return Decided(update, None, taken, ())
        return Decided(update, commit.result, None, commit.steps)

    def _unit_of(self, steps: Sequence[Step], touched: Sequence[Unit]) -> Unit:
        """The unit to which a decision belongs; units that it connects become one."""
        units = {id(one): one for one in touched}
        for step in steps:
            one = self._by_partition.get(self._number_of(step.partition))
            if one is not None:
                units[id(one)] = one
        if not units:
            unit = Unit()
            self.units.append(unit)
            return unit
        first, *others = sorted(units.values(), key=self.units.index)
        for other in others:
            first.absorb(other)
            self.units.remove(other)
            self._by_partition |= dict.fromkeys(other.partitions, first)
            self._by_content |= dict.fromkeys(other.adopt, first)
        return first

    def _apply(self, unit: Unit, steps: Sequence[Step], stamp: int) -> None:
        unit.add_steps(steps, stamp, self._number_of)
        for step in steps:
            self._by_partition[self._number_of(step.partition)] = unit
            self._by_content |= dict.fromkeys(step.adopt, unit)
            for key, value in step.writes:
                record = None if value is None else Record(value, stamp)
                self._written[Ref(step.partition, key)] = record

    def written(self) -> set[int]:
        """The numbers of the partitions that its units write."""
        return set(self._by_partition)

    def arguments(self) -> tuple[bytes, ...]:
        """The arrays of `commit_`, in its order: units are counted from 1."""
        units = list(enumerate(self.units, 1))
        locks, exclusive = self._locks()
        partitions = [(n, id_, *stamps) for n, u in units for id_, stamps in u.partitions.items()]
        guards = [(n, place_of(ref), was) for n, u in units for ref, was in u.guards.items()]
        writes = [
            (n, place_of(ref), stamp, value)
            for n, u in units
            for ref, (value, stamp) in u.writes.items()
        ]
        adopted = [(n, content_id) for n, u in units for content_id in u.adopt]
        dropped = [(n, *pair) for n, u in units for pair in u.drop]
        return (
            wire.int8s(locks),
            wire.bools([lock in exclusive for lock in locks]),
            *_columns(partitions, wire.int8s, wire.int8s, wire.int8s, wire.int8s),
            *_columns(guards, wire.int8s, wire.byteas, wire.int8s),
            *_columns(writes, wire.int8s, wire.byteas, wire.int8s, wire.byteas),
            *_columns(adopted, wire.int8s, wire.int8s),
            *_columns(dropped, wire.int8s, wire.int8s, wire.int8s),
        )

    def _locks(self) -> tuple[list[int], set[int]]:
        """All locks in ascending order, and those of them that exclude readers of a partition.

        Each batch shares the lock of the store, unless it takes that alone.
        """
        exclusive = {*self._by_partition, *self._by_content}
        locks = exclusive | self._shared
        if len(locks) > _SINGLE_LOCKS_MAX:
            return [self._numbers.store], {self._numbers.store}
        # The first of all, so that no two batches wait for each other.
        return [self._numbers.store, *sorted(locks)], exclusive


def _columns(
    rows: Sequence[tuple[Any, ...]], *encodings: Callable[[Sequence[Any]], bytes]
) -> list[bytes]:
    columns: Sequence[Sequence[Any]] = (
        list(zip(*rows, strict=True)) if rows else [()] * len(encodings)
    )
    return [encode(column) for encode, column in zip(encodings, columns, strict=True)]
