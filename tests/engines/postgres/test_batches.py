"""Decisions of a batch become units that stand or fall by themselves."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections.abc import Mapping, Sequence

import pytest

from strongroom.engines.base import Commit, Decide, Key, Partition, Record, Ref, Step, Write
from strongroom.engines.postgres.commits.batches import CommitBatch, Decided, Unit, Update
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.places import LockNumbers
from strongroom.values import Purpose

_PARTITIONS = 5
_KEYS = 3
_ROUNDS = 300
_numbers = LockNumbers(b"salt")

State = dict[Ref, Record | None]


def _ref(random_: random.Random) -> Ref:
    name = b"%d" % random_.randrange(_PARTITIONS)
    return Ref(Partition(b"k", name), Key(False, b"%d" % random_.randrange(_KEYS)))


def _decision(reads: Sequence[Ref], writes: Sequence[Ref], deletes: bool) -> Decide[object]:
    """A decision whose writes depend on all that it has read."""

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[object]:
        seen = b",".join(b"-" if one is None else one.value for one in records)[:40]
        if seen.startswith(b"refuse"):
            raise KeyError(seen)
        value = None if deletes else b"%d(%b)" % (stamp % 1000, seen)
        steps = tuple(Step(ref.partition, (Write(ref.key, value),)) for ref in writes)
        return Commit(seen, steps)

    return decide


def _update(
    reads: Sequence[Ref], decide: Decide[object], loop: asyncio.AbstractEventLoop
) -> Update:
    return Update(
        home=0,
        partitions=frozenset((0,)),
        reads=reads,
        decide=decide,
        purpose=Purpose.GROWTH,
        answer=loop.create_future(),
        until_s=math.inf,
    )


def _updates(random_: random.Random, loop: asyncio.AbstractEventLoop) -> list[Update]:
    made = []
    for _ in range(random_.randrange(1, 12)):
        reads = [_ref(random_) for _ in range(random_.randrange(3))]
        writes = [_ref(random_) for _ in range(random_.randrange(3))]
        decide = _decision(reads, writes, random_.random() < 0.2)
        made.append(_update(reads, decide, loop))
    return made


def _batch(
    records: Mapping[Ref, Record | None], updates: Sequence[Update]
) -> tuple[CommitBatch, list[Decided], dict[int, int]]:
    stamps = itertools.count(1000)
    given: dict[int, int] = {}
    last = [0]

    def stamp() -> int:
        last[0] = next(stamps)
        return last[0]

    batch = CommitBatch(records, stamp, _numbers, lambda steps: None)
    at_once = []
    for update in updates:
        decided = batch.decide(update)
        given[id(update)] = last[0]
        if decided is not None:
            at_once.append(decided)
    return batch, at_once, given


def _applied(records: State, units: Sequence[Unit]) -> State:
    state = dict(records)
    for unit in units:
        for ref, version in unit.guards.items():
            present = records.get(ref)
            assert (None if present is None else present.version) == version
        for ref, (value, stamp) in unit.writes.items():
            state[ref] = None if value is None else Record(value, stamp)
    return {ref: record for ref, record in state.items() if record is not None}


def _alone(records: State, updates: Sequence[Update], stamps: Mapping[int, int]) -> State:
    """The state after these decisions, one after the other, without any others."""
    state = dict(records)
    for update in updates:
        try:
            commit = update.decide([state.get(ref) for ref in update.reads], stamps[id(update)])
        except KeyError:
            continue
        for step in commit.steps:
            for key, value in step.writes:
                ref = Ref(step.partition, key)
                state[ref] = None if value is None else Record(value, stamps[id(update)])
    return {ref: record for ref, record in state.items() if record is not None}


@pytest.mark.parametrize("seed", range(4))
def test_units_that_happen_leave_what_their_decisions_alone_would(seed: int) -> None:
    random_ = random.Random(seed)
    loop = asyncio.new_event_loop()
    try:
        for _ in range(_ROUNDS):
            everything = [
                Ref(Partition(b"k", b"%d" % at), Key(False, b"%d" % key))
                for at in range(_PARTITIONS)
                for key in range(_KEYS)
            ]
            records: State = {
                ref: Record(random_.choice((b"refuse", b"a", b"b")), number)
                for number, ref in enumerate(everything)
                if random_.random() < 0.5
            }
            updates = _updates(random_, loop)
            batch, at_once, stamps = _batch({ref: records.get(ref) for ref in everything}, updates)
            kept = [unit for unit in batch.units if random_.random() < 0.6]
            members = {id(one.update) for unit in kept for one in unit.members}
            ran = [update for update in updates if id(update) in members]
            assert _applied(records, kept) == _alone(records, ran, stamps)
            counted = len(at_once) + sum(len(unit.members) for unit in batch.units)
            assert counted == len(updates), "a decision was lost, or is in two units"
            partitions = [number for unit in batch.units for number in unit.partitions]
            assert len(set(partitions)) == len(partitions), "two units write to one partition"
    finally:
        loop.close()


def test_a_batch_with_many_partitions_takes_the_lock_of_the_store_alone() -> None:
    loop = asyncio.new_event_loop()
    try:
        for count, locks in ((10, 11), (2000, 1)):
            refs = [Ref(Partition(b"k", b"%d" % at), Key(False, b"")) for at in range(count)]
            update = _update((), _decision((), refs, deletes=False), loop)
            batch, _, _ = _batch({}, [update])
            assert len(wire.numbers_of(batch.arguments()[0])) == locks
    finally:
        loop.close()
