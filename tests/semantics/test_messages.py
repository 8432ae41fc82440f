"""Messages: the effect of each verb on one, when it is visible and when it has expired."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors import queue as queue_errors
from strongroom.semantics.queue import messages
from strongroom.semantics.queue.messages import INFINITE, NEVER, Message
from strongroom.values import LATEST_TICKS, TICKS_PER_S, rfc1123
from tests.refusals import refusal

NOW = 638_000_000_000_000_000
WEEK_S = 7 * 24 * 3600
NEW, OLD = "2017-07-29", "2017-04-17"


def at(seconds: float) -> int:
    return NOW + round(seconds * TICKS_PER_S)


@pytest.mark.parametrize(
    ("visibility_s", "ttl_s", "version", "code"),
    [
        (0, 1, NEW, None),
        (0, INFINITE, NEW, None),
        (WEEK_S, INFINITE, NEW, None),
        (WEEK_S, WEEK_S + 1, NEW, None),
        (0, 2**31 - 1, NEW, None),
        (0, 2**31, NEW, None),
        (0, 10**18 - 1, NEW, None),
        (0, 0, NEW, "OutOfRangeQueryParameterValue"),
        (0, -2, NEW, "OutOfRangeQueryParameterValue"),
        (5, 5, NEW, "InvalidQueryParameterValue"),
        (6, 5, NEW, "InvalidQueryParameterValue"),
        (4, 5, NEW, None),
        (0, WEEK_S, OLD, None),
        (0, WEEK_S + 1, OLD, "OutOfRangeQueryParameterValue"),
        (0, INFINITE, OLD, "OutOfRangeQueryParameterValue"),
    ],
)
def test_a_message_must_be_seen_before_it_expires(
    visibility_s: int, ttl_s: int, version: str, code: str | None
) -> None:
    """Q-PUT-04, Q-PUT-05."""
    found = refusal(lambda: messages.require_lifetime(visibility_s, ttl_s, version))
    assert (None if found is None else found.row.code) == code


def test_a_bad_lifetime_names_its_parameter() -> None:
    """Q-PUT-04, Q-PUT-05."""
    found = refusal(lambda: messages.require_lifetime(9, 5, NEW))
    assert found is not None
    assert dict(found.extras) == {
        "QueryParameterName": "visibilitytimeout",
        "QueryParameterValue": "9",
        "Reason": "messagettl must be greater than visibilitytimeout",
    }
    found = refusal(lambda: messages.require_lifetime(0, 0, NEW))
    assert found is not None and dict(found.extras)["QueryParameterName"] == "messagettl"


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("x" * 65536, True),
        ("x" * 65537, False),
        ("é" * 32768, True),
        ("é" * 32768 + "x", False),
        ("😀" * 16384, True),
        ("😀" * 16384 + "x", False),
    ],
)
def test_a_text_is_measured_in_utf_8(text: str, fits: bool) -> None:
    """Q-PUT-08."""
    found = refusal(lambda: messages.require_text(text))
    assert (found is None) is fits
    assert found is None or found.row is errors.REQUEST_BODY_TOO_LARGE


def test_a_message_is_seen_from_its_visibility_to_its_expiry() -> None:
    """Q-PUT-03, Q-GET-06: each limit belongs to the state after it."""
    made = messages.put("id", 10, 60, NOW)
    assert (made.visible, made.expires) == (at(10), at(60))
    assert not messages.is_expired(made, at(59.9999999))
    assert messages.is_expired(made, at(60))


def test_without_expiry_a_message_stays() -> None:
    """Q-PUT-04."""
    made = messages.put("id", 0, INFINITE, NOW)
    assert made.expires == NEVER
    assert not messages.is_expired(made, at(10**9))


def test_an_expiry_after_the_last_year_is_none() -> None:
    """Q-PUT-04."""
    left_s = (LATEST_TICKS - NOW) // TICKS_PER_S
    last = messages.put("id", 0, left_s, NOW)
    assert rfc1123(last.expires) == "Fri, 31 Dec 9999 23:59:59 GMT"
    for ttl_s in (left_s + 1, 10**18 - 1):
        assert messages.put("id", 0, ttl_s, NOW).expires == NEVER


def test_a_retrieval_counts_and_hides_beyond_the_expiry_too() -> None:
    """Q-GET-02, Q-GET-04."""
    made = messages.put("id", 0, 60, NOW)
    got = messages.get(made, WEEK_S, at(1))
    assert (got.dequeued, got.visible, got.expires) == (1, at(1 + WEEK_S), at(60))
    assert messages.get(got, 5, at(2)).dequeued == 2


def test_an_update_moves_the_visibility_and_counts_nothing() -> None:
    """Q-UPD-01."""
    got = messages.get(messages.put("id", 0, 60, NOW), 30, NOW)
    assert messages.update(got, 0, at(5)).visible == at(5)
    assert messages.update(got, 55, at(5)).visible == at(60)
    assert messages.update(got, 5, at(5)).dequeued == got.dequeued


def test_an_update_cannot_hide_a_message_beyond_its_expiry() -> None:
    """Q-UPD-04."""
    made = messages.put("id", 0, 60, NOW)
    found = refusal(lambda: messages.update(made, 56, at(5)))
    assert found is not None and found.row.code == "OutOfRangeQueryParameterValue"
    assert dict(found.extras)["MaximumAllowed"] == "55"
    forever = messages.put("id", 0, INFINITE, NOW)
    assert messages.update(forever, WEEK_S, NOW).visible == at(WEEK_S)


def test_a_receipt_holds_for_its_own_message_only() -> None:
    """Q-POP-02, Q-POP-03: the error of a stale receipt is defined in one place."""
    made = messages.put("id", 0, 60, NOW)
    assert messages.message_of_receipt(made, "id", at(59)) is made
    for found, asked, now in ((None, "id", 0), (made, "other", 0), (made, "id", 60)):
        refused = refusal(partial(messages.message_of_receipt, found, asked, at(now)))
        assert refused is not None and refused.row is queue_errors.MESSAGE_NOT_FOUND
    assert messages.stale_receipt_error().row is messages.STALE_RECEIPT


steps = st.lists(
    st.tuples(
        st.sampled_from(["get", "update"]),
        st.integers(*limits.GET_VISIBILITY_S),
        st.integers(0, 10**7),
    ),
    max_size=30,
)


@given(steps, st.sampled_from([INFINITE, 10, 10**6, 2**31 - 1]))
def test_whatever_happens_a_message_keeps_its_identity(
    taken: list[tuple[str, int, int]], ttl_s: int
) -> None:
    made = messages.put("id", 0, ttl_s, NOW)
    found, now, count = made, NOW, 0
    for verb, seconds, later in taken:
        now += later
        if verb == "get":
            found, count = messages.get(found, seconds, now), count + 1
        elif found.expires and now + seconds * TICKS_PER_S > found.expires:
            assert refusal(partial(messages.update, found, seconds, now)) is not None
            continue
        else:
            found = messages.update(found, seconds, now)
        assert found.visible == now + seconds * TICKS_PER_S
    assert found == Message("id", NOW, made.expires, found.visible, count)
