"""Names of properties: identifiers of C#, in any script."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors import table as table_errors
from strongroom.semantics.table import property_names, table_filter
from strongroom.semantics.table.table_filter import Comparison
from tests.refusals import outcome

NAMES = [
    *("a", "_", "A1", "__class__", "é", "日本", "\U00020000", "ª", "Ⅷ"),
    # Combining marks, digits of any script, connectors and formatting characters, but not first.
    *("a\u0301", "नाम", "ชื่อ", "x\u0661", "a\u203fb", "a\u200d"),
]
NO_NAMES = [
    *("", " ", "a b", "a-b", "a.b", "a@b", "a:b", "1a", "$a", "a\x00", "a\nb", "\u0301a"),
    *("\u0661x", "\u200da", "²a", "a²", "½", "😀", "a😀", "\ud800", "a\ud800", "a\u2028b"),
    "\ufffe",
]


@pytest.mark.parametrize("text", NAMES)
def test_names(text: str) -> None:
    """T-KEY-05."""
    assert property_names.is_name(text) and property_names.name_error(text) is None
    found = table_filter.parse(f"{text} eq 1")
    assert isinstance(found, Comparison) and found.name == text


@pytest.mark.parametrize("text", NO_NAMES, ids=repr)
def test_what_is_no_name(text: str) -> None:
    """T-KEY-05, T-QRY-04."""
    assert not property_names.is_name(text) and not property_names.are_surely_valid([text])
    assert property_names.name_error(text) is table_errors.PROPERTY_NAME_INVALID
    assert outcome(lambda: table_filter.parse(f"{text} eq 1")) == "400 InvalidInput"


@pytest.mark.parametrize(
    ("text", "is_too_long"),
    [
        ("a" * 255, False),
        ("a" * 256, True),
        ("\U00020000" * 127 + "a", False),
        ("\U00020000" * 128, True),
    ],
)
def test_names_have_up_to_255_utf_16_characters(text: str, is_too_long: bool) -> None:
    """T-KEY-05."""
    too_long = table_errors.PROPERTY_NAME_TOO_LONG
    assert property_names.name_error(text) is (too_long if is_too_long else None)
    assert property_names.are_surely_valid(["A", text]) is (text.isascii() and not is_too_long)


@given(st.text(st.characters(max_codepoint=127)))
def test_an_ascii_name_is_what_the_expression_says(text: str) -> None:
    expected = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is not None
    assert property_names.is_name(text) is expected
