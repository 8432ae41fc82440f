"""Tokens of share snapshots, and the mapping of tokens to snapshots."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import previous_versions as versions
from strongroom.values import TICKS_PER_S, ticks_of

NOON = ticks_of(datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC))
TOKEN = "@GMT-2026.11.23-12.00.00"

STAMPS = st.lists(st.integers(0, 50).map(lambda tenth: NOON + tenth * 1_000_000), unique=True).map(
    sorted
)


def test_a_token_has_the_seconds_of_a_time() -> None:
    assert versions.token(NOON) == versions.token(NOON + TICKS_PER_S - 1) == TOKEN
    assert versions.time_of_token(TOKEN) == NOON


@pytest.mark.parametrize(
    "name",
    [
        "@GMT-2026.13.23-12.00.00",
        "@GMT-2026.02.30-12.00.00",
        "@GMT-2026.11.23-12.00.60",
        "@GMT-2026.11.23-12.00.0",
        "@GMT-0000.01.01-00.00.00",
        "@gmt-2026.11.23-12.00.00",
        f"{TOKEN} ",
        f"x{TOKEN}",
        "@GMT-*",
        "",
    ],
)
def test_what_is_no_time_is_a_plain_name(name: str) -> None:
    assert versions.time_of_token(name) is None
    assert versions.without_token(("a", name)) == (("a", name), None)


def test_snapshots_of_one_second_have_tokens_of_their_own() -> None:
    stamps = [NOON + 1, NOON + 5, NOON + TICKS_PER_S + 3, NOON + 9 * TICKS_PER_S]
    assert versions.tokens(stamps) == [
        "@GMT-2026.11.23-12.00.09",
        "@GMT-2026.11.23-12.00.02",
        "@GMT-2026.11.23-12.00.01",
        TOKEN,
    ]


@given(STAMPS)
def test_each_snapshot_is_found_by_its_token_and_by_its_stamp(stamps: list[int]) -> None:
    tokens = versions.tokens(stamps)
    assert len(set(tokens)) == len(stamps)
    times = [versions.time_of_token(token) for token in reversed(tokens)]
    assert [versions.snapshot_at(stamps, time or 0) for time in times] == stamps
    for stamp in stamps:
        if stamp % TICKS_PER_S:
            assert versions.snapshot_at(stamps, stamp) == stamp


@given(STAMPS, STAMPS)
def test_a_later_snapshot_changes_no_token_of_an_earlier_one(
    before: list[int], later: list[int]
) -> None:
    after = before + [stamp + 60 * TICKS_PER_S for stamp in later]
    assert versions.tokens(after)[len(later) :] == versions.tokens(before)


def test_a_time_between_two_snapshots_names_none() -> None:
    stamps = [NOON + 1, NOON + 60 * TICKS_PER_S]
    assert versions.snapshot_at(stamps, NOON + 2) is None
    assert versions.snapshot_at(stamps, NOON + TICKS_PER_S) is None
    assert versions.snapshot_at([], NOON) is None


@pytest.mark.parametrize("path", [(TOKEN, "d", "f"), ("d", TOKEN, "f"), ("d", "f", TOKEN)])
def test_a_token_may_be_anywhere_in_a_path(path: tuple[str, ...]) -> None:
    assert versions.without_token(path) == (("d", "f"), NOON)


def test_a_path_has_one_token_at_most() -> None:
    with pytest.raises(StorageError) as refused:
        versions.without_token((TOKEN, "d", "@GMT-2026.11.23-12.00.01"))
    assert refused.value.row.ntstatus == file_errors.STATUS_OBJECT_NAME_INVALID
