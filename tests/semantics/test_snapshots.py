"""Times of snapshots, and the scope of a delete."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.blob import snapshots
from strongroom.semantics.blob.snapshots import DeleteSnapshots, DeletionScope
from strongroom.semantics.core.snapshot_times import snapshot_time
from strongroom.values import UNIX_EPOCH_TICKS, iso7
from tests.refusals import outcome

INCLUDE, ONLY = DeleteSnapshots.INCLUDE, DeleteSnapshots.ONLY
LAST_TICK = 3_155_378_975_999_999_999  # of the year 9999
QUERY, HEADER = "400 InvalidQueryParameterValue", "400 InvalidHeaderValue"


def test_the_documented_form() -> None:
    text = "2011-03-09T01:42:34.9360000Z"
    assert iso7(snapshot_time(text)) == text


@given(st.integers(UNIX_EPOCH_TICKS, LAST_TICK))
def test_times_come_back(ticks: int) -> None:
    assert snapshot_time(iso7(ticks)) == ticks


BAD_TIMES = [
    *("", "now", "2011-03-09", "2011-03-09T01:42:34Z", "2011-03-09T01:42:34.936Z"),
    *("2011-03-09T01:42:34.9360000", "2011-02-30T01:42:34.9360000Z"),
    *("2011-03-09T25:42:34.9360000Z", "0000-03-09T01:42:34.9360000Z"),
    *("2011-03-09T01:42:34.9360000Z ", "2011-03-09 01:42:34.9360000Z"),
]


@pytest.mark.parametrize("text", BAD_TIMES)
def test_other_forms_are_refused(text: str) -> None:
    assert outcome(lambda: snapshot_time(text)) == QUERY


@given(st.text())
def test_any_text_is_a_time_or_refused(text: str) -> None:
    assert outcome(lambda: snapshot_time(text)) in ("ok", QUERY)


OPTIONS = [(None, None), ("include", INCLUDE), ("only", ONLY), ("Include", INCLUDE)]


@pytest.mark.parametrize(("value", "expected"), OPTIONS)
def test_options(value: str | None, expected: DeleteSnapshots | None) -> None:
    assert snapshots.delete_option(value) is expected


@pytest.mark.parametrize("value", ["", "all", "include,only"])
def test_other_options_are_refused(value: str) -> None:
    assert outcome(lambda: snapshots.delete_option(value)) == HEADER


DELETIONS: list[tuple[DeleteSnapshots | None, bool, DeletionScope | str]] = [
    (None, False, DeletionScope(base=True, snapshots=False)),
    (None, True, "409 SnapshotsPresent"),
    (INCLUDE, False, DeletionScope(base=True, snapshots=False)),
    (INCLUDE, True, DeletionScope(base=True, snapshots=True)),
    (ONLY, False, DeletionScope(base=False, snapshots=False)),
    (ONLY, True, DeletionScope(base=False, snapshots=True)),
]


@pytest.mark.parametrize(("option", "has_snapshots", "expected"), DELETIONS)
def test_deletions(
    option: DeleteSnapshots | None, has_snapshots: bool, expected: DeletionScope | str
) -> None:
    if isinstance(expected, str):
        assert outcome(lambda: snapshots.deletion(option, has_snapshots)) == expected
    else:
        assert snapshots.deletion(option, has_snapshots) == expected


def test_deleting_one_snapshot_says_nothing_about_others() -> None:
    assert outcome(lambda: snapshots.check_delete_target(None, True)) == "ok"
    assert outcome(lambda: snapshots.check_delete_target(INCLUDE, False)) == "ok"
    assert outcome(lambda: snapshots.check_delete_target(ONLY, True)) == QUERY
