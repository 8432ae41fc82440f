"""The intervals of a $filter's matches: a table, and the check that no match lies outside."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.table import table_filter
from strongroom.semantics.table.table_filter import Expression
from strongroom.semantics.table.table_intervals import (
    ALL,
    START,
    Interval,
    Position,
    by_partition,
    cut,
    from_key,
    intervals,
    through_key,
)
from tests.semantics.table_entities import Entity, entities, expressions, holds, key_text

P, R = "PartitionKey eq 'p'", "RowKey eq 'r'"

INTERVALS: list[tuple[str, list[tuple[Position, Position | None]]]] = [
    (f"{P} and {R}", [((b"p", b"r"), (b"p", b"r\x01"))]),
    (P, [((b"p", b""), (b"p\x01", b""))]),
    (f"{P} and RowKey ge 'r'", [((b"p", b"r"), (b"p\x01", b""))]),
    (f"{P} and RowKey gt 'r'", [((b"p", b"r\x01"), (b"p\x01", b""))]),
    (f"{P} and RowKey lt 'r'", [((b"p", b""), (b"p", b"r"))]),
    (f"{P} and RowKey le 'r'", [((b"p", b""), (b"p", b"r\x01"))]),
    (f"{P} and RowKey ge 'a' and RowKey lt 'b'", [((b"p", b"a"), (b"p", b"b"))]),
    (f"{P} and RowKey ne 'r'", [((b"p", b""), (b"p", b"r")), ((b"p", b"r\x01"), (b"p\x01", b""))]),
    (f"{P} and Size gt 5", [((b"p", b""), (b"p\x01", b""))]),
    (f"{P} and not ({R})", [((b"p", b""), (b"p", b"r")), ((b"p", b"r\x01"), (b"p\x01", b""))]),
    ("PartitionKey ge 'p'", [((b"p", b""), None)]),
    ("PartitionKey gt 'p'", [((b"p\x01", b""), None)]),
    ("PartitionKey lt 'p'", [(START, (b"p", b""))]),
    ("not (PartitionKey lt 'p')", [((b"p", b""), None)]),
    ("PartitionKey ge 'p' and PartitionKey lt 'q'", [((b"p", b""), (b"q", b""))]),
    (
        f"{P} and RowKey gt 'r' or PartitionKey gt 'p'",
        [((b"p", b"r\x01"), None)],
    ),
    (
        f"{P} and {R} or PartitionKey eq 'a' and RowKey eq 'b'",
        [((b"a", b"b"), (b"a", b"b\x01")), ((b"p", b"r"), (b"p", b"r\x01"))],
    ),
    ("PartitionKey eq 'p' and PartitionKey eq 'q'", []),
    ("PartitionKey lt ''", []),
    ("PartitionKey eq ''", [(START, (b"\x01", b""))]),
    ("PartitionKey eq 5", []),
    ("false", []),
    ("true", [(START, None)]),
    ("not true", []),
    ("not false", [(START, None)]),
    (f"{P} and true", [((b"p", b""), (b"p\x01", b""))]),
    (f"{P} or false", [((b"p", b""), (b"p\x01", b""))]),
    (f"{P} and false", []),
    (f"{P} or true", [(START, None)]),
    (f"not ({P} and false)", [(START, None)]),
    (f"not (not ({P}) or false)", [((b"p", b""), (b"p\x01", b""))]),
    ("PartitionKey", []),
    ("not PartitionKey", [(START, None)]),
    ("PartitionKey ne 5", []),
    ("not (PartitionKey ne 5)", [(START, None)]),
    (R, [((b"", b"r"), None)]),
    ("Size gt 5", [(START, None)]),
    (f"{P} or Size gt 5", [(START, None)]),
    ("PartitionKey eq 'é'", [(("é".encode(), b""), ("é\x01".encode(), b""))]),
    ("'p' eq PartitionKey", [((b"p", b""), (b"p\x01", b""))]),
    (f"PartitionKey eq '{'x' * 2049}'", [((b"x" * 2048, b""), (b"x" * 2048 + b"\xff", b""))]),
]


@pytest.mark.parametrize(("text", "expected"), INTERVALS)
def test_the_intervals_of_a_filter(
    text: str, expected: list[tuple[Position, Position | None]]
) -> None:
    assert intervals(table_filter.parse(text)) == tuple(Interval(*one) for one in expected)


def test_without_a_filter_all_is_read() -> None:
    assert intervals(None) == ALL


def either(name: str, numbers: range) -> str:
    return "(" + " or ".join(f"{name} eq '{number}'" for number in numbers) + ")"


def test_filters_with_too_many_alternatives_keep_what_is_around_them() -> None:
    found = intervals(
        table_filter.parse(
            f"{either('PartitionKey', range(10, 60))} and {either('RowKey', range(10, 60))}"
        )
    )
    names = [str(number).encode() for number in range(10, 60)]
    assert found == tuple(Interval((name, b"10"), (name, b"59\x01")) for name in names)
    groups = [
        f"{either('PartitionKey', range(at, at + 8))} and {either('RowKey', range(at, at + 8))}"
        for at in (10, 20, 30)
    ]
    assert len(intervals(table_filter.parse(groups[0]))) == 64
    (around,) = intervals(table_filter.parse(" or ".join(groups)))
    assert around == Interval((b"10", b"10"), (b"37\x01", b""))


def inside(found: tuple[Interval, ...], entity: Entity) -> bool:
    position = (entity.partition_key.encode(), entity.row_key.encode())
    return any(one.first <= position and (one.until is None or position < one.until)
               for one in found)  # fmt: skip


def in_order(found: tuple[Interval, ...]) -> bool:
    whole = all(one.until is None or one.first < one.until for one in found)
    pairs = itertools.pairwise(found)
    return whole and all(a.until is not None and a.until < b.first for a, b in pairs)


@given(expressions, st.lists(entities, max_size=8))
def test_no_match_lies_outside(expression: Expression, found: list[Entity]) -> None:
    where = intervals(expression)
    assert in_order(where)
    for entity in found:
        assert inside(where, entity) or not holds(expression, entity)


@given(expressions)
def test_groups_share_no_partition(expression: Expression) -> None:
    where = intervals(expression)
    groups = by_partition(where)
    assert tuple(one for group in groups for one in group) == where
    for before, behind in itertools.pairwise(groups):
        until = before[-1].until
        assert until is not None and until <= (behind[0].first[0], b"")
    for group in groups:
        for one, other in itertools.pairwise(group):
            assert one.until is not None and one.until[0] == other.first[0] and one.until[1]


POINTS = [
    (f"{P} and {R}", [True]),
    (f"{P} and (RowKey eq 'a' or RowKey eq 'b')", [True, True]),
    (f"{P} and RowKey ge 'a' and RowKey le 'a'", [True]),
    (P, [False]),
    (f"{P} and RowKey ge 'a' and RowKey lt 'b'", [False]),
    ("Size gt 5", [False]),
    (f"{P} and {R} and Size gt 5", [True]),
]


@pytest.mark.parametrize(("text", "expected"), POINTS)
def test_an_interval_of_one_entity_is_a_point(text: str, expected: list[bool]) -> None:
    assert [one.is_point() for one in intervals(table_filter.parse(text))] == expected


KeyPair = tuple[str, str | None]
ends = st.tuples(key_text, st.one_of(st.none(), key_text))


def within(entity: Entity, first: KeyPair, last: KeyPair) -> bool:
    """Return whether an entity lies between two keys; a row key of None means the whole
    partition."""
    partition, row = entity.partition_key.encode(), entity.row_key.encode()
    begin = (first[0].encode(), (first[1] or "").encode())
    if last[1] is None:
        return (partition, row) >= begin and partition <= last[0].encode()
    return begin <= (partition, row) <= (last[0].encode(), last[1].encode())


@given(ends, ends, entities)
def test_a_range_of_keys_holds_exactly_its_keys(
    first: KeyPair, last: KeyPair, entity: Entity
) -> None:
    found = cut(ALL, from_key(*first), through_key(*last))
    assert in_order(found)
    assert inside(found, entity) is within(entity, first, last)


def test_a_cut_goes_on_where_a_page_ended() -> None:
    found = intervals(table_filter.parse("PartitionKey eq 'a' or PartitionKey eq 'c'"))
    assert cut(found, (b"b", b"")) == (Interval((b"c", b""), (b"c\x01", b"")),)
    assert cut(found, (b"a", b"x"))[0] == Interval((b"a", b"x"), (b"a\x01", b""))
    assert cut(found, (b"d", b"")) == ()
    assert cut(found, START, (b"a", b"")) == ()
