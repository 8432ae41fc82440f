"""x-ms-if-tags: the grammar, the operators, and invalid texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.core import tag_expressions as tags
from tests.refusals import outcome

TAGS = {"project": "apollo", "n": "20", "a b": "c d", "AND": "yes"}

MATCHES = [
    ("\"project\" = 'apollo'", True),
    ("project='apollo'", True),
    ("project = 'Apollo'", False),
    ("Project = 'apollo'", False),
    ("project <> 'apollo'", False),
    ("project <> 'gemini'", True),
    ("missing <> 'gemini'", False),
    ("missing = ''", False),
    ("n > '1'", True),
    ("n > '20'", False),
    ("n >= '20'", True),
    ("n < '3'", True),  # ordinal, not numeric
    ("n <= '20'", True),
    ("n < '20'", False),
    ("\"a b\" = 'c d'", True),
    ("\"AND\" = 'yes'", True),
    ("project = 'apollo' AND n = '20'", True),
    ("project = 'apollo' and n = '21'", False),
    ("project = 'x' OR n = '20'", True),
    ("project = 'x' OR n = '20' AND n = '21'", False),
    ("(project = 'x' OR n = '20') AND n = '20'", True),
    ("project = 'apollo' OR (n = '1' AND n = '2')", True),
    ("((((project='apollo'))))", True),
]


@pytest.mark.parametrize(("text", "expected"), MATCHES)
def test_matches(text: str, expected: bool) -> None:
    assert tags.matches(tags.parse(text), TAGS) is expected


BAD = [
    *("", " ", "a", "a =", "a = b", "= 'b'", "'a' = 'b'", "a = 'b", "a == 'b'", "a != 'b'"),
    *("a = 'b' AND", "AND a = 'b'", "a = 'b' c = 'd'", "(a = 'b'", "a = 'b')", "()", "\"\" = 'b'"),
    "a = 'b' XOR c = 'd'",
    "(" * 17 + "a='b'" + ")" * 17,
    "a='" + "b" * 9000 + "'",
]


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_expression(text: str) -> None:
    assert outcome(lambda: tags.parse(text)) == "400 InvalidHeaderValue"


def test_a_blob_without_tags_fails_every_test() -> None:
    for sign in ("=", "<>", ">", ">=", "<", "<="):
        assert not tags.matches(tags.parse(f"a {sign} 'b'"), {})


PIECES = st.lists(st.sampled_from(["a", "AND", "OR", "(", ")", "=", "<>", "'x'", '"k"', " ", "'"]))


@given(st.text() | PIECES.map(" ".join) | PIECES.map("".join))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    assert outcome(lambda: tags.parse(text)) in ("ok", "400 InvalidHeaderValue")
