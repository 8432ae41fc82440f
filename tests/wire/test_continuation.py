"""Continuation tokens: issued tokens are accepted, and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.wire.core import continuation
from tests.refusals import outcome

TOKENS = [
    (b"Smith", "1!8!U21pdGg-"),
    (b"", "1!0!"),
    (b"\xff\xff\xff", "1!4!____"),
    (b"\xfb\xef\xbe", "1!4!****"),
]


@pytest.mark.parametrize(("position", "token"), TOKENS)
def test_a_token_names_a_position(position: bytes, token: str) -> None:
    assert continuation.encode(position) == token
    assert continuation.decode("NextRowKey", token) == position


@given(st.binary(max_size=2048))
def test_every_position_comes_back(position: bytes) -> None:
    assert continuation.decode("NextRowKey", continuation.encode(position)) == position


FORGED = [
    *("", "x", "1!", "1!8", "1!8!", "1!0", "2!0!", "1!8!U21pdGg", "1!8!U21pdGg=", "1!7!U21pdGg-"),
    *("1!9!U21pdGg-", "1!1!A", "1!2!AB", "1!4!AB--x", "1!4!AB--\n", " 1!0!", "1!0! ", "1!00!"),
    *("1!4!AB--!", "1!4!A-BC", "1!4!AAA/", "1!4!AAA+", "1!4!AAÄ-", "1!-4!AAAA", "1!4!----"),
    "1!4!AAB-",  # bits that no encoder sets
    "1!٤!AAAA",
    f"1!{4 * 700}!" + "AAAA" * 700,
]


@pytest.mark.parametrize("token", FORGED)
def test_other_text_is_refused(token: str) -> None:
    assert outcome(lambda: continuation.decode("NextRowKey", token)) == "400 InvalidInput"


def test_a_position_among_entities_has_two_parts() -> None:
    keys = continuation.decode_keys
    assert keys(None, None) is None
    assert keys("1!8!U21pdGg-", None) == (b"Smith", b"")
    assert keys("1!0!", "1!8!U21pdGg-") == (b"", b"Smith")
    assert outcome(lambda: keys(None, "1!8!U21pdGg-")) == "400 InvalidInput"
    assert outcome(lambda: keys("1!8!U21pdGg-", "Smith")) == "400 InvalidInput"


@given(st.one_of(st.text(), st.from_regex(r"1!\d{1,3}![A-Za-z0-9*_-]*")))
def test_any_text_is_a_token_or_refused(token: str) -> None:
    assert outcome(lambda: continuation.decode("NextTableName", token)) in (
        "ok",
        "400 InvalidInput",
    )
