"""Conditions as SQL: SQLite returns the records that satisfy them, slice by slice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.engines.base import SCAN_EXAMINED_MAX, Key, Page, Partition, Position, Record, Ref
from strongroom.engines.conditions import (
    AllOf,
    AnyOf,
    BytesWithin,
    Condition,
    Contains,
    LongerThan,
    NumberWithin,
    holds,
)
from strongroom.engines.embedded.records.condition_sql import expression_of as sql_of
from strongroom.engines.embedded.records.face_scan import _SLICE_EXAMINED_RECORDS, ScanRequest
from strongroom.engines.embedded.records.sqlite import Reader, Writer
from strongroom.slices import run_to_completion

NUMBERS = (
    *("0", "-0.0", "1", "0.1", "1e300", "-1.7976931348623157e308", "5e-324", "9007199254740993"),
    *("9223372036854775807", "123456789.12345679", "0.30000000000000004", "x", '"7"', ""),
)
VALUES = [b"head" + b'"N":' + one.encode() + b',"T":"zz"' for one in NUMBERS]
VALUES += [b"", b"N", b'"N":', b'"T":"', b"\0\xff", b"x" * 5000]
bounds = st.sampled_from([float(one) for one in NUMBERS[:11]] + [float("inf"), float("-inf")])
skips = st.sampled_from([0, 4, 9000])
leaves = st.one_of(
    st.builds(Contains, st.sampled_from([b"N", b'"T":"z', b"\0", b"no"])),
    st.builds(NumberWithin, st.just(b'"N":'), bounds, bounds, skips),
    st.builds(BytesWithin, st.sampled_from([b"", b'"T":"']), st.sampled_from([b"", b"h", b"zz"]),
        st.sampled_from([b"\xff", b"zz#", b"z"]), skips),
    st.builds(LongerThan, st.sampled_from([0, 20, 4999])),
)  # fmt: skip
conditions: st.SearchStrategy[Condition] = st.recursive(
    leaves,
    lambda parts: st.one_of(
        st.builds(AllOf, st.lists(parts, min_size=1, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(parts, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    path: Path = tmp_path_factory.mktemp("conditions") / "records"
    writer = Writer(str(path), None, create=True)
    writer.begin()
    writer.put_all({_ref(b"p", at): Record(value, 1) for at, value in enumerate(VALUES)})
    # Partitions that are shorter and longer than a slice.
    for partition, count in ((b"q", 1300), (b"r", 3), (b"s", 1023), (b"t", 1024), (b"u", 3000)):
        rows = {_ref(partition, at): Record(b'"N":%d,' % at, at) for at in range(count)}
        writer.put_all(rows)
    writer.commit()
    reader = Reader(str(path), None, scanning=True)
    yield reader
    reader.close()
    writer.close()


def _ref(partition: bytes, at: int) -> Ref:
    return Ref(Partition(b"k", partition), Key(False, b"%05d" % at))


def _pages(
    reader: Reader, where: Condition, ends: tuple[Position, Position | None], most: int
) -> Sequence[Page]:
    first, until = ends
    pages = []
    while True:
        page = run_to_completion(reader.scan(ScanRequest(b"k", first, until, most, 1 << 22, where)))
        pages.append(page)
        if page.resume is None:
            return pages
        assert page.resume > first
        first = page.resume


@given(conditions)
def test_what_satisfies_a_condition_is_returned(database: Reader, condition: Condition) -> None:
    ends = Position(b"p", b""), Position(b"p", b"\xff")
    (page,) = _pages(database, condition, ends, 1000)
    assert {value for value in VALUES if holds(condition, value)} <= set(page.values)


@pytest.mark.parametrize(
    "first", [Position(b"", b""), Position(b"q", b"00100"), Position(b"r", b"")]
)
@pytest.mark.parametrize(
    "until", [None, Position(b"t", b""), Position(b"u", b"01500"), Position(b"q", b"01150")]
)
@pytest.mark.parametrize("most", [1, 7, 5000])
def test_slices_join_without_a_gap(
    database: Reader, first: Position, until: Position | None, most: int
) -> None:
    where = NumberWithin(b'"N":', 1000.0, 1050.0)
    found = [
        pair
        for page in _pages(database, where, (first, until), most)
        for pair in zip(page.partitions, page.keys, strict=True)
        if pair[0] != b"p"
    ]
    counts = {b"q": 1300, b"s": 1023, b"t": 1024, b"u": 3000}
    expected = [
        (partition, b"%05d" % at)
        for partition, count in counts.items()
        for at in range(1000, min(count, 1051))
        if first <= (partition, b"%05d" % at)
        and (until is None or (partition, b"%05d" % at) < until)
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("low", "high", "compared"),
    [(-math.inf, 5.0, 1), (5.0, math.inf, 1), (4.0, 5.0, 2), (-math.inf, math.inf, 1)],
)
def test_no_number_is_compared_with_a_bound_that_all_satisfy(
    database: Reader, low: float, high: float, compared: int
) -> None:
    where = NumberWithin(b'"N":', low, high)
    expression = sql_of(where)
    assert expression is not None
    assert sum(isinstance(value, float) for value in expression.values) == compared
    (page,) = _pages(database, where, (Position(b"r", b""), Position(b"t", b"")), 5000)
    rows = [*range(3), *range(1023)]
    assert page.versions == [row for row in rows if low <= row <= high]


def test_a_condition_that_nothing_satisfies_pauses_while_it_looks(database: Reader) -> None:
    reading = database.scan(
        ScanRequest(b"k", Position(b"", b""), None, 5000, 1 << 22, Contains(b"nothing has it"))
    )
    pauses = sum(1 for _ in reading)
    assert 3000 / _SLICE_EXAMINED_RECORDS < pauses <= SCAN_EXAMINED_MAX / _SLICE_EXAMINED_RECORDS


def test_a_condition_of_too_many_parts_is_not_used(database: Reader) -> None:
    where = AnyOf(tuple(Contains(b"no %d" % one) for one in range(40)))
    assert sql_of(where) is None
    page = run_to_completion(
        database.scan(ScanRequest(b"k", Position(b"", b""), None, 5000, 1 << 22, where))
    )
    assert len(page.values) > 3000
