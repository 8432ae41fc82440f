"""The queries of Find Blobs by Tags: grammar, matching, index intervals, markers."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.blob import tag_queries
from strongroom.semantics.blob.tag_queries import Resume, ValueRange
from strongroom.services.blob.tags.find_blobs import interval
from strongroom.store.core import tag_keys
from tests.refusals import OK, outcome

OPERATORS = {
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
REFUSED = "400 InvalidQueryParameterValue"
# A few letters, so that values are often equal, or one is a prefix of another.
VALUES = st.text(" 0a", max_size=3)
KEYS = st.sampled_from(["a", "ab", "b", "AND", "x y"])
COMPARISON = st.tuples(KEYS, st.sampled_from(sorted(OPERATORS)), VALUES)
TAGS = st.dictionaries(KEYS, VALUES, max_size=4)


def is_accepted(comparisons: list[tuple[str, str, str]]) -> bool:
    """Return whether each key has at most one lower and one upper bound."""
    sides = [
        (key, side) for key, sign, _ in comparisons for side in "<>" if sign == "=" or side in sign
    ]
    return len(set(sides)) == len(sides)


def evaluate(comparisons: list[tuple[str, str, str]], tags: dict[str, str]) -> bool:
    """Evaluate the query comparison by comparison."""
    return all(
        key in tags and OPERATORS[sign](tags[key], value) for key, sign, value in comparisons
    )


@given(st.lists(COMPARISON, min_size=1, max_size=4), st.lists(TAGS, min_size=1, max_size=6))
def test_a_query_means_all_its_comparisons(
    comparisons: list[tuple[str, str, str]], blobs: list[dict[str, str]]
) -> None:
    """B-FND-02, B-FND-03."""
    text = " and ".join(f"\"{key}\" {sign} '{value}'" for key, sign, value in comparisons)
    if not is_accepted(comparisons):
        assert outcome(lambda: tag_queries.parse(text)) == REFUSED
        return
    query = tag_queries.parse(text)
    for tags in blobs:
        assert query.matches(tags) is evaluate(comparisons, tags)


@given(COMPARISON, COMPARISON, VALUES, KEYS)
def test_the_interval_of_a_range_has_the_entries_of_its_values(
    one: tuple[str, str, str], other: tuple[str, str, str], value: str, key: str
) -> None:
    """The index interval has exactly the values of the range."""
    comparisons = [one] + ([other] if is_accepted([one, other]) else [])
    text = " AND ".join(f"\"{name}\" {sign} '{bound}'" for name, sign, bound in comparisons)
    ranges = tag_queries.parse(text).ranges
    for name, wanted in ranges.items():
        first, until = interval(name, wanted)
        entry = tag_keys.tag_entry(7, key, value, "name of a blob", 1 << 62).partition.name
        inside = first <= entry < until
        assert inside is (key == name and wanted.holds(value))


@given(st.text("ab'\"=<>@ ()ANDcontainer", max_size=40))
def test_any_text_is_a_query_or_refused(text: str) -> None:
    """B-FND-03."""
    assert outcome(lambda: tag_queries.parse(text)) in (OK, REFUSED)


def test_a_container() -> None:
    """B-FND-05."""
    query = tag_queries.parse("@container = 'box' AND a = '1'")
    assert (query.container, query.ranges) == ("box", {"a": ValueRange("1", False, "1", False)})
    assert outcome(lambda: tag_queries.parse_here("@container='box' AND a='1'")) == REFUSED
    assert tag_queries.parse_here("a = '1'").container is None


@given(st.binary(max_size=3600))
def test_a_marker_gives_its_position_back(entry: bytes) -> None:
    """B-FND-09."""
    resume = Resume("box", entry)
    assert tag_queries.decode_marker(tag_queries.encode_marker(resume)) == resume


def test_no_marker() -> None:
    assert tag_queries.encode_marker(None) == ""
    assert tag_queries.decode_marker("") == tag_queries.START


BAD = ["x", "AQ==", "====", "é", "A" * 9000, tag_queries.encode_marker(Resume("A_B", b""))]
BAD.append(tag_queries.encode_marker(Resume("box", b"x" * 4097)))


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_marker(text: str) -> None:
    """B-FND-09."""
    assert outcome(lambda: tag_queries.decode_marker(text)) == REFUSED


@given(st.text(max_size=60))
def test_any_marker_is_taken_or_refused(text: str) -> None:
    """B-FND-09."""
    assert outcome(lambda: tag_queries.decode_marker(text)) in (OK, REFUSED)
