"""Times as text, both ways, strictly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.values import TICKS_PER_S, UNIX_EPOCH_TICKS, rfc1123
from strongroom.wire import dates

LAST_SECOND = 315_537_897_599  # of the year 9999
EPOCH_S = UNIX_EPOCH_TICKS // TICKS_PER_S


@given(st.integers(EPOCH_S, LAST_SECOND))
def test_rfc1123_both_ways(second: int) -> None:
    text = dates.format_rfc1123(second * TICKS_PER_S + 5)
    assert dates.parse_rfc1123(text) == second * TICKS_PER_S
    assert text == rfc1123(second * TICKS_PER_S)


def test_rfc1123_of_a_known_moment() -> None:
    ticks = UNIX_EPOCH_TICKS + 1_435_361_952 * TICKS_PER_S
    assert dates.format_rfc1123(ticks) == "Fri, 26 Jun 2015 23:39:12 GMT"
    assert dates.parse_rfc1123("Fri, 26 Jun 2015 23:39:12 GMT") == ticks


BAD_RFC1123 = [
    *("", "now", "Thu, 26 Jun 2015 23:39:12 GMT", "Fri, 26 Jun 2015 23:39:12 UTC"),
    *("fri, 26 jun 2015 23:39:12 gmt", "Fri, 26 Jun 2015 23:39:12", "26 Jun 2015 23:39:12 GMT"),
    *("Fri, 26 Jun 15 23:39:12 GMT", "Fri, 31 Jun 2015 23:39:12 GMT", "2015-06-26T23:39:12Z"),
    *("Fri, 26 Jun 2015 24:39:12 GMT", "Fri, 26 Jun 2015 23:39:60 GMT", "Fri Jun 26 23:39:12 2015"),
    *("Fri, 26 Foo 2015 23:39:12 GMT", "Fri, 26 Jun 0000 23:39:12 GMT", " Fri, 26 Jun 2015"),
]


@pytest.mark.parametrize("text", BAD_RFC1123)
def test_other_dates_are_refused(text: str) -> None:
    assert dates.parse_rfc1123(text) is None


DAY = UNIX_EPOCH_TICKS + 16_612 * 86_400 * TICKS_PER_S  # 2015-06-26
ISO = [
    ("2015-06-26", DAY),
    ("2015-06-26T01:02Z", DAY + 3720 * TICKS_PER_S),
    ("2015-06-26T01:02:03Z", DAY + 3723 * TICKS_PER_S),
    ("2015-06-26T01:02:03.1234567Z", DAY + 3723 * TICKS_PER_S + 1_234_567),
    ("2015-06-26T01:02:03.5Z", DAY + 3723 * TICKS_PER_S + 5_000_000),
    ("2015-06-26T01:02:03+01:00", DAY + 123 * TICKS_PER_S),
    ("2015-06-25T23:00-01:30", DAY + 1800 * TICKS_PER_S),
]


@pytest.mark.parametrize(("text", "ticks"), ISO)
def test_iso8601(text: str, ticks: int) -> None:
    assert dates.parse_iso8601(text) == ticks


BAD_ISO = [
    *("", "2015", "2015-06", "2015-6-26", "2015-06-26T01Z", "2015-06-26T01:02", "2015-06-31"),
    *("2015-06-26T01:02:03.12345678Z", "2015-06-26 01:02Z", "2015-06-26T24:00Z", "2015-06-26Z"),
    *("2015-06-26T01:02+15:00", "2015-06-26T01:02+01:60", "0001-01-01T00:00+01:00", "2015-06-26T"),
    "9999-12-31T23:59-01:00",
]


@pytest.mark.parametrize("text", BAD_ISO)
def test_other_iso_times_are_refused(text: str) -> None:
    assert dates.parse_iso8601(text) is None


SHAPED = st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2}))?")


@given(st.text() | SHAPED)
def test_any_text_is_a_time_or_none(text: str) -> None:
    for parse in (dates.parse_rfc1123, dates.parse_iso8601):
        ticks = parse(text)
        assert ticks is None or ticks >= 0
