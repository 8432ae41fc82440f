"""Naming rules, each with the names that it accepts and the exact error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.core import names
from tests.refusals import outcome

RANGE, RESOURCE = "400 OutOfRangeInput", "400 InvalidResourceName"

CONTAINERS = [
    *[
        (name, "ok")
        for name in ("abc", "a-b", "0-9", "a" * 63, "$root", "$web", "$logs", "$blobchangefeed")
    ],
    *[(name, RANGE) for name in ("", "ab", "a" * 64)],
    *[(name, RESOURCE) for name in ("Abc", "a_b", "-ab", "ab-", "a--b", "a.b", "$abc", "a\nb")],
    *[(name, RESOURCE) for name in ("äbc", "abc\n", "a/b", "...", "a b", "٣٤٥")],
]


@pytest.mark.parametrize(("name", "expected"), CONTAINERS)
def test_containers(name: str, expected: str) -> None:
    assert outcome(lambda: names.check_container(name)) == expected


BLOBS = [
    *[
        (name, "ok")
        for name in ("a", "A/b", "a" * 1024, "é" * 1024, "\U0001f600" * 512, "a ", "..")
    ],
    *[(name, "ok") for name in ("/".join("a" * 254), "a\\b", "a%b", "\ufffe", "trailing.", "dir/")],
    *[(name, RANGE) for name in ("", "a" * 1025, "\U0001f600" * 513)],
    *[
        (name, RESOURCE)
        for name in ("a\x00", "a\x1f", "\x7f", "\x81", "\ue000", "\uf8ff", "\ud800")
    ],
]

BLOBS.append(("/".join("a" * 255), RESOURCE))


@pytest.mark.parametrize(("name", "expected"), BLOBS)
def test_blobs(name: str, expected: str) -> None:
    assert outcome(lambda: names.check_blob(name)) == expected


def test_blobs_of_the_root_container_have_no_slash() -> None:
    assert outcome(lambda: names.check_blob("a", "$root")) == "ok"
    assert outcome(lambda: names.check_blob("a/b", "$root")) == RESOURCE
    assert outcome(lambda: names.check_blob("a/b", "$web")) == "ok"


METADATA = [
    ([], "ok"),
    ([("a", "1"), ("B_2", "x y\t~"), ("_", "")], "ok"),
    ([("", "1")], "400 EmptyMetadataKey"),
    ([("a-b", "1")], "400 InvalidMetadata"),
    ([("1a", "1")], "400 InvalidMetadata"),
    ([("ä", "1")], "400 InvalidMetadata"),
    ([("a", "ä")], "400 InvalidMetadata"),
    ([("a", "\x00")], "400 InvalidMetadata"),
    ([("a", "1"), ("A", "1")], "400 InvalidMetadata"),
    ([("a", "x" * 8191)], "ok"),
    ([("a", "x" * 8192)], "400 MetadataTooLarge"),
    ([(f"k{number}", "x" * 1000) for number in range(9)], "400 MetadataTooLarge"),
]


@pytest.mark.parametrize(("pairs", "expected"), METADATA)
def test_metadata(pairs: list[tuple[str, str]], expected: str) -> None:
    assert outcome(lambda: names.check_metadata(pairs)) == expected
    if expected == "ok":
        assert names.check_metadata(pairs) == tuple(pairs)


@given(st.text(), st.lists(st.tuples(st.text(), st.text())))
def test_anything_is_a_name_or_refused(name: str, pairs: list[tuple[str, str]]) -> None:
    assert outcome(lambda: names.check_container(name)) in ("ok", RANGE, RESOURCE)
    assert outcome(lambda: names.check_blob(name)) in ("ok", RANGE, RESOURCE)
    assert outcome(lambda: names.check_metadata(pairs)).partition(" ")[0] in ("ok", "400")
