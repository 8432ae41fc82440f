"""Pop receipts: a sealed receipt opens, and no other text does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.queue import pop_receipts
from tests.refusals import refusal

SECRET, OTHER = b"s" * 32, b"o" * 32
places = st.binary(min_size=17, max_size=17)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@given(places)
def test_what_was_sealed_opens(place: bytes) -> None:
    """Q-POP-04."""
    text = pop_receipts.seal(SECRET, place)
    assert len(text) == 44 and set(text) <= set(ALPHABET)
    assert pop_receipts.open_receipt(SECRET, text) == place


@given(places, st.binary(min_size=32, max_size=32))
def test_without_the_secret_there_is_no_receipt(place: bytes, secret: bytes) -> None:
    """Q-POP-03, Q-POP-04: a receipt of another queue names no place here, but is well-formed."""
    text = pop_receipts.seal(secret, place)
    assert pop_receipts.open_receipt(SECRET, text) == (place if secret == SECRET else None)


@given(places, st.integers(0, 43), st.sampled_from(ALPHABET))
def test_an_altered_receipt_is_none(place: bytes, index: int, char: str) -> None:
    """Q-POP-01."""
    text = pop_receipts.seal(SECRET, place)
    altered = text[:index] + char + text[index + 1 :]
    if altered == text:
        return
    found = refusal(lambda: pop_receipts.open_receipt(SECRET, altered))
    assert found is not None and found.row.code == "InvalidQueryParameterValue"
    assert dict(found.extras) == {
        "QueryParameterName": "popreceipt",
        "QueryParameterValue": altered,
        "Reason": "Invalid pop receipt format",
    }


@given(st.text(max_size=100) | st.text(ALPHABET, min_size=44, max_size=44))
def test_any_other_text_is_refused_and_nothing_worse(text: str) -> None:
    """Q-POP-01."""
    found = refusal(lambda: pop_receipts.open_receipt(SECRET, text))
    assert found is None or found.row.status == 400
    if found is None:
        assert pop_receipts.open_receipt(SECRET, text) is None


def test_places_have_receipts_of_their_own() -> None:
    """Q-POP-04."""
    made = {pop_receipts.seal(SECRET, bytes(16) + bytes((n,))) for n in range(256)}
    assert len(made) == 256
    assert pop_receipts.seal(OTHER, bytes(17)) not in made
