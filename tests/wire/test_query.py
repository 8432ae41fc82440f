"""Query strings: decoding, look-up, typed values."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.values import PlusSign
from strongroom.wire.core import query
from tests.refusals import outcome

URI = "400 InvalidUri"
BAD = "400 InvalidQueryParameterValue"
RANGE = "400 OutOfRangeQueryParameterValue"

VALUES = [
    ("comp=list", "comp", "list"),
    ("COMP=list", "comp", "list"),
    ("a=1&comp=list&b", "comp", "list"),
    ("comp", "comp", ""),
    ("comp=", "comp", ""),
    ("comp=a=b", "comp", "a=b"),
    ("prefix=%C3%A9%2F", "prefix", "é/"),
    ("prefix=\xc3\xa9", "prefix", "é"),
    ("prefix=a+b", "prefix", "a+b"),
    ("prefix=a%20b%2Bc", "prefix", "a b+c"),
    ("%63omp=list", "comp", "list"),
    ("&&comp=list&", "comp", "list"),
]


@pytest.mark.parametrize(("raw", "name", "expected"), VALUES)
def test_values(raw: str, name: str, expected: str) -> None:
    parsed = query.parse(raw)
    assert parsed.get(name) == expected
    assert name in parsed


def test_what_is_not_there() -> None:
    for raw in (None, "", "a=1"):
        parsed = query.parse(raw)
        assert parsed.get("comp") is None
        assert "comp" not in parsed
        assert outcome(partial(parsed.require, "comp")) == "400 MissingRequiredQueryParameter"
    assert list(query.parse("B=1&a=2")) == ["b", "a"]


@pytest.mark.parametrize(
    "raw", ["a=%", "a=%2", "a=%GG", "a=%FF", "a=%C3", "%ZZ=1", "a=\xff", "a=%ED%A0%80"]
)
def test_bad_escapes(raw: str) -> None:
    assert outcome(lambda: query.parse(raw)) == URI


@pytest.mark.parametrize("second", ["acl", "list"])
def test_a_parameter_that_is_sent_twice(second: str) -> None:
    parsed = query.parse(f"comp=list&Comp={second}&x=1")
    assert outcome(lambda: parsed.get("comp")) == BAD
    assert parsed.get("x") == "1"


INTEGERS = [
    (None, None),
    ("", None),
    ("n=", None),
    ("n=1", 1),
    ("n=5000", 5000),
    ("n=0", RANGE),
    ("n=-1", RANGE),
    ("n=5001", RANGE),
    ("n=x", BAD),
    ("n=1.5", BAD),
    ("n=%D9%A3", BAD),
    ("n=" + "9" * 5000, BAD),
]


@pytest.mark.parametrize(("raw", "expected"), INTEGERS)
def test_integers(raw: str | None, expected: int | str | None) -> None:
    parsed = query.parse(raw)
    if isinstance(expected, str):
        assert outcome(lambda: parsed.integer("n", 1, 5000)) == expected
    else:
        assert parsed.integer("n", 1, 5000) == expected


def test_lists() -> None:
    allowed = frozenset(("metadata", "copy"))
    assert query.parse("include=Metadata,%20copy,").comma_list("include", allowed) == allowed
    assert query.parse("include=metadata&include=copy").comma_list("include", allowed) == allowed
    assert query.parse("include=").comma_list("include", allowed) == frozenset()
    unknown = query.parse("include=metadata,other")
    assert outcome(lambda: unknown.comma_list("include", allowed)) == BAD


PLUS_SIGNS = [
    ("prefix=a+b", "prefix", "a+b", "a b", "a b"),
    ("Prefix=a%2Bb", "prefix", "a+b", "a+b", "a+b"),
    ("%24filter=a+eq+1", "$filter", "a+eq+1", "a eq 1", "a eq 1"),
    ("$select=a,+b", "$select", "a,+b", "a, b", "a, b"),
    ("delimiter=+", "delimiter", "+", " ", "+"),
    ("where=a+b", "where", "a+b", "a b", "a+b"),
    ("blockid=+%2B", "blockid", "++", "++", "++"),
    ("BlockId=+", "blockid", "+", "+", "+"),
    ("marker=a+b", "marker", "a+b", "a+b", "a+b"),
    ("snapshot=+", "snapshot", "+", "+", "+"),
    ("versionid=+", "versionid", "+", "+", "+"),
    ("popreceipt=+", "popreceipt", "+", "+", "+"),
    ("NextRowKey=+", "nextrowkey", "+", "+", "+"),
]


@pytest.mark.parametrize(("raw", "name", "itself", "space", "unsigned"), PLUS_SIGNS)
def test_plus_signs(raw: str, name: str, itself: str, space: str, unsigned: str) -> None:
    """B-SKY-11 B-SKY-12 T-QRY-14."""
    long = f"{raw}&more={'x' * 3000}"  # of which no parse is kept
    for text in (raw, raw, long):
        assert query.parse(text).get(name) == itself
        assert query.parse(text, PlusSign.SPACE).get(name) == space
        assert query.parse(text, PlusSign.UNSIGNED).get(name) == unsigned


LATIN = st.binary().map(lambda raw: raw.decode("latin-1"))
ESCAPES = st.lists(st.sampled_from(["%", "a", "=", "&", "%C3%A9", "+", "F", "\xff"])).map("".join)


@given(LATIN | ESCAPES, st.sampled_from(PlusSign))
def test_any_query_is_read_or_refused(raw: str, plus: PlusSign) -> None:
    literally = outcome(lambda: query.parse(raw))
    assert literally in ("ok", URI)
    assert outcome(lambda: query.parse(raw, plus)) == literally


@given(st.dictionaries(st.text("abc", min_size=1), st.text()))
def test_what_is_encoded_comes_back(values: dict[str, str]) -> None:
    from urllib.parse import quote

    raw = "&".join(
        f"{name}={quote(value.encode('utf-8', 'replace'), safe='')}"
        for name, value in values.items()
    )
    parsed = query.parse(raw)
    for name, value in values.items():
        assert parsed.get(name) == value.encode("utf-8", "replace").decode()
