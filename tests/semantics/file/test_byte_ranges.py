"""Byte-range locks: the table of conflicts, and histories beside a naive map of bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from strongroom.errors import file as file_errors
from strongroom.semantics.file import byte_ranges
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.byte_ranges import (
    CONFLICTS,
    LockQueued,
    LocksGranted,
    LocksRefused,
    LockTable,
    LockUse,
    RangeLock,
)

OWN, OTHER = 1, 2
TOP = 1 << 64


def held(offset: int, length: int, exclusive: bool = True, owner: int = OWN) -> LockTable:
    return LockTable((RangeLock(offset, length, exclusive, owner),))


# smb.md 3.5, row by row: shared own, shared other, exclusive own, exclusive other; x = conflict.
DOCUMENTED = {
    LockUse.LOCK_SHARED: "...x",
    LockUse.LOCK_EXCLUSIVE: "xxxx",
    LockUse.READ: "...x",
    LockUse.WRITE: "xx.x",
}


@pytest.mark.parametrize("use", LockUse, ids=lambda use: use.name)
def test_every_use_beside_every_lock(use: LockUse) -> None:
    found = ""
    for exclusive in (False, True):
        for owner in (OWN, OTHER):
            table = held(10, 5, exclusive, owner)
            if use in (LockUse.READ, LockUse.WRITE):
                is_refused = byte_ranges.conflict(table, use, 12, 1, OWN) is not None
            else:
                wanted = RangeLock(12, 1, use is LockUse.LOCK_EXCLUSIVE, OWN)
                is_refused = isinstance(byte_ranges.lock(table, [wanted]), LocksRefused)
            found += "x" if is_refused else "."
            assert CONFLICTS[use, exclusive, owner == OWN] is is_refused
    assert found == DOCUMENTED[use]


@pytest.mark.parametrize("use", LockUse, ids=lambda use: use.name)
def test_what_does_not_overlap_does_not_conflict(use: LockUse) -> None:
    for offset, length in ((9, 1), (15, 1), (0, 10), (15, TOP - 15)):
        asked = RangeLock(offset, length, use is LockUse.LOCK_EXCLUSIVE, OTHER)
        assert isinstance(byte_ranges.lock(held(10, 5), [asked]), LocksGranted)
        assert byte_ranges.conflict(held(10, 5), use, offset, length, OTHER) is None


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ((10, 0), (9, 2), True), ((10, 0), (9, 3), True), ((10, 0), (10, 1), False),
        ((10, 0), (10, 9), False), ((10, 0), (9, 1), False), ((10, 0), (10, 0), False),
        ((10, 0), (11, 1), False), ((0, 0), (0, 0), False), ((0, 0), (0, TOP), False),
        ((TOP - 1, 1), (0, TOP), True), ((TOP - 1, 1), (TOP - 2, 1), False),
    ],
)  # fmt: skip
def test_a_lock_of_no_bytes_lies_between_two(
    one: tuple[int, int], other: tuple[int, int], overlap: bool
) -> None:
    left, right = RangeLock(*one, True, OWN), RangeLock(*other, True, OTHER)
    assert left.overlaps(right) is overlap is right.overlaps(left)


@pytest.mark.parametrize(
    ("offset", "length", "is_legal"),
    [
        (0, 0, True), (TOP - 1, 0, True), (TOP - 1, 1, True), (TOP - 1, 2, False), (0, TOP, True),
        (1, TOP, False), (TOP, 0, False), (-1, 1, False), (0, -1, False),
    ],
)  # fmt: skip
def test_a_range_ends_within_64_bits(offset: int, length: int, is_legal: bool) -> None:
    result = byte_ranges.lock(LockTable(), [RangeLock(offset, length, True, OWN)])
    if is_legal:
        assert isinstance(result, LocksGranted)
    else:
        assert result == LocksRefused(file_errors.INVALID_LOCK_RANGE)


def test_zero_bytes_are_read_and_written_under_any_lock() -> None:
    for use in (LockUse.READ, LockUse.WRITE):
        assert byte_ranges.conflict(held(0, 100), use, 5, 0, OTHER) is None


def test_a_series_is_taken_whole_or_not_at_all_and_conflicts_with_itself() -> None:
    table = held(20, 5, owner=OTHER)
    free, taken = RangeLock(0, 5, True, OWN), RangeLock(22, 1, True, OWN)
    assert byte_ranges.lock(table, [free, taken]) == LocksRefused(file_errors.LOCK_NOT_GRANTED)
    assert isinstance(byte_ranges.lock(LockTable(), [free, free]), LocksRefused)


def test_an_unlock_takes_an_exclusive_lock_first_and_one_lock_at_a_time() -> None:
    table = LockTable()
    for exclusive in (True, False, False):
        granted = byte_ranges.lock(table, [RangeLock(0, 5, exclusive, OWN)])
        assert isinstance(granted, LocksGranted)
        table = granted.table
    kinds = []
    for _ in range(3):
        freed = byte_ranges.unlock(table, OWN, [(0, 5)])
        assert freed.row is None
        table = freed.table
        kinds.append([one.is_exclusive for one in table.locks])
    assert kinds == [[False, False], [False], []]
    assert byte_ranges.unlock(table, OWN, [(0, 5)]).row is file_errors.RANGE_NOT_LOCKED


@pytest.mark.parametrize("asked", [(0, 4), (1, 5), (0, 6)])
def test_an_unlock_must_match_exactly_and_keeps_what_a_series_has_freed(
    asked: tuple[int, int],
) -> None:
    table = LockTable((RangeLock(0, 5, True, OWN), RangeLock(9, 1, True, OWN)))
    freed = byte_ranges.unlock(table, OWN, [(9, 1), asked, (0, 5)])
    assert (freed.row, freed.table) == (file_errors.RANGE_NOT_LOCKED, held(0, 5))
    assert byte_ranges.unlock(table, OTHER, [(0, 5)]).row is file_errors.RANGE_NOT_LOCKED


def test_who_waits_is_served_in_order_and_holds_up_nobody_who_need_not_wait() -> None:
    table = LockTable((RangeLock(0, 1, True, OTHER), RangeLock(5, 1, True, OTHER)))
    for wait_id, (offset, length) in enumerate([(0, 9), (0, 1), (5, 1)]):
        queued = byte_ranges.lock(table, [RangeLock(offset, length, True, OWN)], wait_id)
        assert isinstance(queued, LockQueued)
        table = queued.table
    assert isinstance(byte_ranges.lock(table, [RangeLock(7, 1, True, 3)]), LocksGranted)
    freed = byte_ranges.unlock(table, OTHER, [(5, 1)])
    assert freed.granted == (2,)
    freed = byte_ranges.unlock(freed.table, OTHER, [(0, 1)])
    assert freed.granted == (1,) and [one.id for one in freed.table.waiting] == [0]
    assert byte_ranges.cancelled(freed.table, 0).waiting == ()
    assert byte_ranges.released(freed.table, OWN).table == LockTable()


# smb.md 4.4, by inference: the effect of an exclusive and a shared lock of a handle on REST.
@pytest.mark.parametrize("operation", FileOperation, ids=lambda operation: operation.name)
def test_rest_beside_the_locks_of_handles(operation: FileOperation) -> None:
    use = byte_ranges.REST_LOCK_USES.get(operation)
    reads = {FileOperation.GET_FILE, FileOperation.COPY_SOURCE}
    writes = {
        FileOperation.PUT_RANGE, FileOperation.CREATE_FILE, FileOperation.COPY_DESTINATION,
        FileOperation.RENAME_TARGET,
    }  # fmt: skip
    assert (use is not None) == (operation in reads | writes)
    if use is None:
        return
    for exclusive in (False, True):
        row = byte_ranges.conflict(held(7, 1, exclusive), use, *byte_ranges.WHOLE_FILE)
        is_stopped = exclusive or operation in writes
        assert row is (file_errors.FILE_LOCK_CONFLICT if is_stopped else None)


def points(offset: int, length: int) -> set[int]:
    """Return the points of a range: bytes are even points, and the gap between two bytes is odd."""
    return set(range(2 * offset, 2 * (offset + length) - 1)) if length else {2 * offset - 1}


small = st.tuples(st.integers(0, 6), st.integers(0, 4))


@given(small, small)
def test_overlap_is_that_of_a_map_of_bytes(one: tuple[int, int], other: tuple[int, int]) -> None:
    expected = bool(points(*one) & points(*other)) and bool(one[1] or other[1])
    assert RangeLock(*one, True, 1).overlaps(RangeLock(*other, True, 2)) is expected


class LockHistories(RuleBasedStateMachine):
    """Three owners lock, wait, unlock, cancel and close, compared with a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.table = LockTable()
        self.next_id = 0
        self.asked: dict[int, RangeLock] = {}

    @rule(place=small, exclusive=st.booleans(), owner=st.integers(1, 3), waits=st.booleans())
    def ask(self, place: tuple[int, int], exclusive: bool, owner: int, waits: bool) -> None:
        wanted = RangeLock(*place, exclusive, owner)
        blocked = any(self.excludes(wanted, one) for one in self.table.locks)
        self.next_id += 1
        result = byte_ranges.lock(self.table, [wanted], self.next_id if waits else None)
        if isinstance(result, LocksRefused):
            assert blocked and not waits
            return
        assert isinstance(result, LockQueued) is blocked
        if blocked:
            self.asked[self.next_id] = wanted
        self.table = result.table

    @rule(index=st.integers(0, 20))
    def free(self, index: int) -> None:
        if self.table.locks:
            one = self.table.locks[index % len(self.table.locks)]
            self.freed(byte_ranges.unlock(self.table, one.owner, [(one.offset, one.length)]))

    @rule(owner=st.integers(1, 3))
    def close(self, owner: int) -> None:
        self.asked = {key: one for key, one in self.asked.items() if one.owner != owner}
        self.freed(byte_ranges.released(self.table, owner))
        assert not any(one.owner == owner for one in self.table.locks)

    @rule(index=st.integers(0, 20))
    def cancel(self, index: int) -> None:
        if self.asked:
            wait_id = sorted(self.asked)[index % len(self.asked)]
            del self.asked[wait_id]
            self.table = byte_ranges.cancelled(self.table, wait_id)

    def freed(self, result: byte_ranges.LocksFreed) -> None:
        assert result.row is None and list(result.granted) == sorted(result.granted)
        for wait_id in result.granted:
            assert self.asked.pop(wait_id) in result.table.locks
        self.table = result.table

    @staticmethod
    def excludes(one: RangeLock, other: RangeLock) -> bool:
        common = points(one.offset, one.length) & points(other.offset, other.length)
        own = one.owner == other.owner
        return bool(common and (one.length or other.length)) and (
            one.is_exclusive or (other.is_exclusive and not own)
        )

    @invariant()
    def no_two_owners_hold_what_one_holds_exclusively(self) -> None:
        locks = self.table.locks
        for index, one in enumerate(locks):
            assert not any(
                self.excludes(one, two) or self.excludes(two, one)
                for two in locks[:index]
                if two.owner != one.owner
            )

    @invariant()
    def nobody_waits_who_could_have_the_lock(self) -> None:
        assert {one.id for one in self.table.waiting} == set(self.asked)
        for one in self.table.waiting:
            assert any(self.excludes(one.lock, two) for two in self.table.locks)


TestLockHistories = LockHistories.TestCase
