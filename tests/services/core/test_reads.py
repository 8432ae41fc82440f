"""Named reads: `Reads` collects what a decision reads, `Found` returns it under the same names."""

from __future__ import annotations

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import Commit, Key, Partition, Record, Ref, Step, Write
from strongroom.errors.core import QUEUE_NOT_FOUND, StorageError
from strongroom.services.core.decisions import (
    UNDECODED,
    Decision,
    Found,
    ReadAll,
    ReadOne,
    Reads,
)
from strongroom.services.core.runner import Services
from strongroom.store.core import records
from strongroom.store.core.records import DamagedRecord, QueueRecord, TableRecord
from strongroom.values import Purpose
from tests.services.container_calls import run
from tests.services.service_engine import ServiceEngine

PLACE = Partition(b"places", b"one")
QUEUE, TABLE = QueueRecord(1, 2, b"secret"), TableRecord(3, "Things")


def ref(name: bytes) -> Ref:
    return Ref(PLACE, Key(False, name))


def stored(value: bytes, version: int = 7) -> Record:
    return Record(value, version)


class Counting:
    """A codec that counts how often it decodes."""

    def __init__(self) -> None:
        self.decoded: list[bytes] = []

    def decode(self, data: bytes, /) -> int:
        self.decoded.append(data)
        return len(data)


def test_each_read_returns_its_own_record_decoded_as_its_own_type() -> None:
    reads = Reads()
    table = reads.add(ref(b"t"), records.TABLE)
    queue = reads.add(ref(b"q"), records.QUEUE)
    assert reads.refs == [ref(b"t"), ref(b"q")] == [table.ref, queue.ref]
    found = Found([stored(records.TABLE.encode(TABLE)), stored(records.QUEUE.encode(QUEUE))])
    assert found[queue] == QUEUE
    assert found[table] == TABLE


def test_an_absent_record_is_none_and_has_no_version() -> None:
    reads = Reads()
    queue = reads.add(ref(b"q"), records.QUEUE)
    found = Found([None])
    assert found[queue] is None
    assert found.record(queue) is None
    assert found.version(queue) is None


def test_a_record_is_there_with_its_version_without_being_decoded() -> None:
    reads, codec = Reads(), Counting()
    read = reads.add(ref(b"q"), codec)
    found = Found([stored(b"bytes", 9)])
    assert found.record(read) == stored(b"bytes", 9)
    assert found.version(read) == 9
    assert codec.decoded == []


def test_a_record_is_decoded_once_and_only_when_it_is_asked_for() -> None:
    reads, codec = Reads(), Counting()
    first, second = reads.add(ref(b"1"), codec), reads.add(ref(b"2"), codec)
    found = Found([stored(b"a"), stored(b"bc")])
    assert (found[second], found[second]) == (2, 2)
    assert codec.decoded == [b"bc"]
    assert found[first] == 1


def test_a_required_record_that_is_absent_is_the_services_error() -> None:
    reads = Reads()
    queue, other = reads.add(ref(b"q"), records.QUEUE), reads.add(ref(b"o"), records.QUEUE)
    found = Found([None, stored(records.QUEUE.encode(QUEUE))])
    with pytest.raises(StorageError) as refused:
        found.require(queue, QUEUE_NOT_FOUND)
    assert refused.value.row is QUEUE_NOT_FOUND
    assert found.require(other, QUEUE_NOT_FOUND) == QUEUE


def test_a_damaged_record_is_reported_when_it_is_asked_for() -> None:
    reads = Reads()
    queue, table = reads.add(ref(b"q"), records.QUEUE), reads.add(ref(b"t"), records.TABLE)
    found = Found([stored(b"\xff"), stored(records.TABLE.encode(TABLE))])
    assert found[table] == TABLE
    with pytest.raises(DamagedRecord):
        found[queue]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_several_reads_return_their_records_in_order_wherever_they_stand(count: int) -> None:
    reads = Reads()
    first = reads.add(ref(b"first"), UNDECODED)
    several = reads.add_all([ref(b"%d" % one) for one in range(count)], Counting())
    last = reads.add(ref(b"last"), UNDECODED)
    rows = [stored(b"x" * one) for one in range(count)]
    found = Found([stored(b"a"), *rows, stored(b"z")])
    assert found[several] == tuple(range(count))
    assert list(found.records(several)) == rows
    assert (found[first], found[last]) == (b"a", b"z")
    assert several.refs == tuple(ref(b"%d" % one) for one in range(count))


def test_several_reads_have_none_where_a_record_is_absent() -> None:
    reads = Reads()
    several = reads.add_all([ref(b"1"), ref(b"2")], UNDECODED)
    assert Found([None, stored(b"there")])[several] == (None, b"there")


def test_reads_that_begin_with_others_leave_these_as_they_are() -> None:
    before = Reads()
    first = before.add(ref(b"1"), UNDECODED)
    reads = Reads(before.refs)
    second = reads.add(ref(b"2"), UNDECODED)
    found = Found([stored(b"a"), stored(b"b")])
    assert (found[first], found[second]) == (b"a", b"b")
    assert before.refs == [ref(b"1")]


def test_all_records_are_there_by_their_addresses() -> None:
    reads = Reads()
    reads.add_all([ref(b"1"), ref(b"2")], UNDECODED)
    assert Found([None, stored(b"b")]).by_ref(reads.refs) == {
        ref(b"1"): None,
        ref(b"2"): stored(b"b"),
    }


class Renamed(Decision[str], frozen=True):
    """A decision that writes what it has read at another key."""

    source: ReadOne[TableRecord]
    others: ReadAll[bytes]
    target: Ref

    def decide(self, found: Found, stamp: int) -> Commit[str]:
        table = found.require(self.source, QUEUE_NOT_FOUND)
        moved = Write(self.target.key, records.TABLE.encode(table))
        gone = [Write(one.key, None) for one in (self.source.ref, *self.others.refs)]
        return Commit(table.name, (Step(self.partition, (moved, *gone)),))


def test_a_decision_gets_its_records_from_the_engine_under_its_names() -> None:
    async def test() -> None:
        on = Services(ServiceEngine(ManualClock()), ManualClock())
        given = Step(
            PLACE,
            (
                Write(ref(b"a").key, records.TABLE.encode(TABLE)),
                Write(ref(b"b").key, b"other"),
            ),
        )
        await on.store.update(PLACE, [], lambda rows, stamp: Commit(None, (given,)))
        reads = Reads()
        others = reads.add_all([ref(b"b")], UNDECODED)
        source = reads.add(ref(b"a"), records.TABLE)
        decision = Renamed(PLACE, reads.refs, Purpose.GROWTH, source, others, ref(b"c"))
        assert await on.commit(decision) == TABLE.name
        after = Reads()
        old, new = after.add(ref(b"a"), records.TABLE), after.add(ref(b"c"), records.TABLE)
        found = await on.read(after)
        assert (found[old], found[new]) == (None, TABLE)
        with pytest.raises(StorageError):
            await on.commit(decision)

    run(test)
