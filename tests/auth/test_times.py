"""Times in signatures: each form is read to the tick, everything else is no time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth.times import parse_iso8601, parse_rfc1123
from strongroom.values import TICKS_PER_S, iso7, rfc1123

# Years of four digits without a leading zero: no token was ever meant for the others.
TICKS = st.integers(min_value=316_000_000_000_000_000, max_value=3_155_378_975_999_999_999)


@given(TICKS)
def test_rfc1123_reads_what_is_written(ticks: int) -> None:
    assert parse_rfc1123(rfc1123(ticks)) == ticks - ticks % TICKS_PER_S


@given(TICKS)
def test_iso8601_reads_what_is_written(ticks: int) -> None:
    assert parse_iso8601(iso7(ticks)) == ticks


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2015-06-26", "2015-06-26T00:00:00.0000000Z"),
        ("2015-06-26T23:39Z", "2015-06-26T23:39:00.0000000Z"),
        ("2015-06-26T23:39:12Z", "2015-06-26T23:39:12.0000000Z"),
        ("2015-06-26T23:39:12.5Z", "2015-06-26T23:39:12.5000000Z"),
        ("2015-06-26T23:39:12.1234567Z", "2015-06-26T23:39:12.1234567Z"),
    ],
)
def test_every_form_of_iso8601(text: str, same: str) -> None:
    ticks = parse_iso8601(text)
    assert ticks is not None
    assert iso7(ticks) == same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2015",
        "2015-6-26",
        "2015-02-30",
        "0000-01-01",
        "2015-06-26T24:00Z",
        "2015-06-26T23:39:12",
        "2015-06-26T23:39:12+00:00",
        "2015-06-26T23:39:12.12345678Z",
        "2015-06-26 23:39Z",
        "2015-06-26\n",
        "\u0662\u0660\u0661\u0665-06-26",
    ],
)
def test_no_iso8601(text: str) -> None:
    assert parse_iso8601(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Fri, 26 Jun 2015 23:39:12 UTC",
        "Fri, 26 Jun 2015 25:39:12 GMT",
        "Fri, 31 Jun 2015 23:39:12 GMT",
        "Fry, 26 Jun 2015 23:39:12 GMT",
        "Fri, 26 Jum 2015 23:39:12 GMT",
        "Friday, 26-Jun-15 23:39:12 GMT",
        "Fri Jun 26 23:39:12 2015",
        "2015-06-26T23:39:12Z",
        "Fri, 26 Jun 2015 23:39:12 GMT ",
        "F" * 100_000,
    ],
)
def test_no_rfc1123(text: str) -> None:
    assert parse_rfc1123(text) is None
