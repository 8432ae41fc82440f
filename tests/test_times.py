"""Times as text, in both directions: one strict parser for headers, signatures and policies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth.policies import resolve
from strongroom.auth.sas import Sas
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.times import parse_iso8601, parse_rfc1123
from strongroom.values import TICKS_PER_S, UNIX_EPOCH_TICKS, iso7, rfc1123
from strongroom.wire.core.signed_identifiers import read_signed_identifiers

# Years of four digits without a leading zero, since no token has another year.
TICKS = st.integers(min_value=316_000_000_000_000_000, max_value=3_155_378_975_999_999_999)


@given(TICKS)
def test_rfc1123_both_ways(ticks: int) -> None:
    assert parse_rfc1123(rfc1123(ticks)) == ticks - ticks % TICKS_PER_S


def test_rfc1123_of_a_known_moment() -> None:
    ticks = UNIX_EPOCH_TICKS + 1_435_361_952 * TICKS_PER_S
    assert rfc1123(ticks + 5) == "Fri, 26 Jun 2015 23:39:12 GMT"
    assert parse_rfc1123("Fri, 26 Jun 2015 23:39:12 GMT") == ticks


BAD_RFC1123 = [
    *("", "now", "Thu, 26 Jun 2015 23:39:12 GMT", "Fri, 26 Jun 2015 23:39:12 UTC"),
    *("fri, 26 jun 2015 23:39:12 gmt", "Fri, 26 Jun 2015 23:39:12", "26 Jun 2015 23:39:12 GMT"),
    *("Fri, 26 Jun 15 23:39:12 GMT", "Fri, 31 Jun 2015 23:39:12 GMT", "2015-06-26T23:39:12Z"),
    *("Fri, 26 Jun 2015 24:39:12 GMT", "Fri, 26 Jun 2015 23:39:60 GMT", "Fri Jun 26 23:39:12 2015"),
    *("Fri, 26 Foo 2015 23:39:12 GMT", "Fri, 26 Jun 0000 23:39:12 GMT", " Fri, 26 Jun 2015"),
    *("Fry, 26 Jun 2015 23:39:12 GMT", "Friday, 26-Jun-15 23:39:12 GMT", "F" * 100_000),
    "Fri, 26 Jun 2015 23:39:12 GMT ",
]


@pytest.mark.parametrize("text", BAD_RFC1123)
def test_other_dates_are_refused(text: str) -> None:
    assert parse_rfc1123(text) is None


@given(TICKS)
def test_iso8601_reads_what_is_written(ticks: int) -> None:
    assert parse_iso8601(iso7(ticks)) == ticks


DAY = UNIX_EPOCH_TICKS + 16_612 * 86_400 * TICKS_PER_S  # 2015-06-26
ISO = [
    ("2015-06-26", DAY),
    ("2015-06-26T01:02Z", DAY + 3720 * TICKS_PER_S),
    ("2015-06-26T01:02:03Z", DAY + 3723 * TICKS_PER_S),
    ("2015-06-26T01:02:03.1234567Z", DAY + 3723 * TICKS_PER_S + 1_234_567),
    ("2015-06-26T01:02:03.5Z", DAY + 3723 * TICKS_PER_S + 5_000_000),
]


@pytest.mark.parametrize(("text", "ticks"), ISO)
def test_every_form_of_iso8601(text: str, ticks: int) -> None:
    assert parse_iso8601(text) == ticks


BAD_ISO = [
    *("", "2015", "2015-06", "2015-6-26", "2015-06-26T01Z", "2015-06-26T01:02", "2015-06-31"),
    *("2015-06-26T01:02:03.12345678Z", "2015-06-26 01:02Z", "2015-06-26T24:00Z", "2015-06-26Z"),
    *("2015-06-26T01:02:03+01:00", "2015-06-26T23:39:12+00:00", "2015-06-25T23:00-01:30"),
    *("0000-01-01", "2015-06-26T", "2015-06-26\n", "\u0662\u0660\u0661\u0665-06-26"),
    *("2015-06-26T23:39:12", "2" * 100_000),
]


@pytest.mark.parametrize("text", BAD_ISO)
def test_other_iso_times_are_refused(text: str) -> None:
    assert parse_iso8601(text) is None


SHAPED = st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2}))?")


@given(st.text() | SHAPED)
def test_any_text_is_a_time_or_none(text: str) -> None:
    for parse in (parse_rfc1123, parse_iso8601):
        ticks = parse(text)
        assert ticks is None or ticks >= 0


def policy(expiry: str) -> bytes:
    access = f"<AccessPolicy><Expiry>{expiry}</Expiry><Permission>r</Permission></AccessPolicy>"
    one = f"<SignedIdentifier><Id>x</Id>{access}</SignedIdentifier>"
    return f"<SignedIdentifiers>{one}</SignedIdentifiers>".encode()


@pytest.mark.parametrize(("text", "ticks"), ISO)
def test_a_policy_that_is_stored_can_be_used(text: str, ticks: int) -> None:
    policies = read_signed_identifiers(policy(text))
    assert resolve(Sas(sv="2021-12-02", si="x"), policies).expiry == ticks


@pytest.mark.parametrize("text", ["2015-06-26T01:02:03+01:00", "2015-06-26T01:02-00:00"])
def test_a_policy_that_could_not_be_used_is_not_stored(text: str) -> None:
    with pytest.raises(StorageError) as refused:
        read_signed_identifiers(policy(text))
    assert refused.value.row is errors.INVALID_XML_NODE_VALUE
