"""Block ids, and the blocks that a block list commits."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.blob import blocks
from strongroom.values import BlockListKind
from tests.refusals import outcome


def text(decoded: bytes) -> str:
    return base64.b64encode(decoded).decode()


SOURCES = blocks.block_sources({b"a": "a old", b"b": "b old"}, {b"b": "b new", b"c": "c new"})

LISTS: list[tuple[list[tuple[BlockListKind, str]], list[str] | str]] = [
    ([], []),
    ([("Committed", "a")], ["a old"]),
    ([("Uncommitted", "b")], ["b new"]),
    ([("Latest", "a"), ("Latest", "b"), ("Latest", "c")], ["a old", "b new", "c new"]),
    ([("Committed", "b"), ("Uncommitted", "b"), ("Latest", "b")], ["b old", "b new", "b new"]),
    ([("Latest", "c"), ("Latest", "c")], ["c new", "c new"]),
    ([("Committed", "c")], "400 InvalidBlockList"),
    ([("Uncommitted", "a")], "400 InvalidBlockList"),
    ([("Latest", "a"), ("Latest", "d")], "400 InvalidBlockList"),
]


@pytest.mark.parametrize(("requested", "expected"), LISTS)
def test_lists(requested: list[tuple[BlockListKind, str]], expected: list[str] | str) -> None:
    entries = [(kind, text(name.encode())) for kind, name in requested]
    if isinstance(expected, str):
        assert outcome(lambda: list(blocks.named_blocks(entries, SOURCES))) == expected
    else:
        assert list(blocks.named_blocks(entries, SOURCES)) == expected


@pytest.mark.parametrize("bad", ["", "*", "a", "YQ", text(b"x" * 65), "é"])
def test_an_entry_that_is_no_id_names_no_block(bad: str) -> None:
    seen = outcome(lambda: list(blocks.named_blocks([("Latest", bad)], SOURCES)))
    assert seen == "400 InvalidBlockList"
    assert outcome(lambda: blocks.block_id(bad)) == "400 InvalidQueryParameterValue"


def test_the_longest_list() -> None:
    assert outcome(lambda: blocks.require_list_length(50_000)) == "ok"
    assert outcome(lambda: blocks.require_list_length(50_001)) == "400 BlockListTooLong"


def test_staged_ids_are_of_one_length() -> None:
    assert outcome(lambda: blocks.check_id_length(b"abc", None)) == "ok"
    assert outcome(lambda: blocks.check_id_length(b"abc", 3)) == "ok"
    assert outcome(lambda: blocks.check_id_length(b"abc", 4)) == "400 InvalidBlobOrBlock"


def test_the_number_of_staged_blocks_is_bounded() -> None:
    assert outcome(lambda: blocks.check_staged_count(100_000)) == "ok"
    seen = outcome(lambda: blocks.check_staged_count(100_001))
    assert seen == "409 BlockCountExceedsLimit"


@given(st.dictionaries(st.integers(0, 63), st.integers(-50_000, 50_000), min_size=1))
def test_shares_use_up_the_limit_and_differ_by_one_at_most(counts: dict[int, int]) -> None:
    excess = sum(counts.values()) - 100_000
    counts[min(counts)] -= max(0, excess)
    shares = blocks.shares_of_limit(counts)
    assert shares.keys() == counts.keys() and sum(shares.values()) == 100_000
    free = [shares[gateway] - count for gateway, count in counts.items()]
    assert min(free) >= 0 and max(free) - min(free) <= 1


@given(st.binary(min_size=1, max_size=64))
def test_ids_come_back(decoded: bytes) -> None:
    assert blocks.block_id(blocks.block_id_text(decoded)) == decoded


@given(st.text())
def test_any_text_is_an_id_or_refused(anything: str) -> None:
    seen = outcome(lambda: blocks.block_id(anything))
    assert seen in ("ok", "400 InvalidQueryParameterValue")
