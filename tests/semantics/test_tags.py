"""The rules for a tag: B-PUT-12, B-TAG-03, B-TAG-04."""

from __future__ import annotations

import string
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.blob import tags
from tests.refusals import OK, outcome

ALLOWED = string.ascii_letters + string.digits + " +-./:=_"
TEXTS = st.text(ALLOWED, max_size=256)
KEYS = st.text(ALLOWED, min_size=1, max_size=128)

CASES: list[tuple[list[tuple[str, str]], str | None]] = [
    ([], None),
    ([("k", "")], None),
    ([("k" * 128, "v" * 256)], None),
    ([(f"k{number}", "v") for number in range(10)], None),
    ([(f"k{number}", "v") for number in range(11)], "TagsTooLarge"),
    ([("k" * 129, "v")], "TagsTooLarge"),
    ([("k", "v" * 257)], "TagsTooLarge"),
    ([("", "v")], "EmptyTagName"),
    ([("k", "v"), ("k", "w")], "DuplicateTagNames"),
    ([("k", "v"), ("K", "v")], None),
    ([("k;", "v")], "InvalidTag"),
    ([("k", "v'")], "InvalidTag"),
    ([("k", "v\n")], "InvalidTag"),
    ([("k\0", "v")], "InvalidTag"),
    ([("k", "\u0661")], "InvalidTag"),
]


@pytest.mark.parametrize(("pairs", "code"), CASES)
def test_rules_of_tags(pairs: list[tuple[str, str]], code: str | None) -> None:
    found = tags.violation(pairs)
    assert (None if found is None else found.code) == code
    header = urlencode(pairs)
    if code is None:
        assert tags.check(pairs) == tags.from_header(header) == tuple(sorted(pairs))
    else:
        assert outcome(lambda: tags.check(pairs)) == f"400 {code}"
        assert outcome(lambda: tags.from_header(header)) == "400 InvalidHeaderValue"


@given(st.dictionaries(KEYS, TEXTS, max_size=10))
def test_the_header_and_the_document_agree(pairs: dict[str, str]) -> None:
    wanted = tuple(sorted(pairs.items()))
    assert tags.from_header(urlencode(pairs)) == tags.check(list(pairs.items())) == wanted


@given(st.text(max_size=300))
def test_any_header_is_taken_or_refused(text: str) -> None:
    assert outcome(lambda: tags.from_header(text)) in (OK, "400 InvalidHeaderValue")
