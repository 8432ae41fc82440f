"""Patterns of QUERY_DIRECTORY: the measured table, and a naive matcher for all others."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.file import names, wildcards
from tests.refusals import OK, outcome

NAMES = (".", "..", "a", "ab", "a.b", "a.b.c", "abc.txt")

# Measured on smbd 4.17 (smb.md 2.8).
MEASURED = {
    "<": ". .. a ab",
    "<.b": "a.b",
    '<"c': "a.b.c",
    "a>": "a ab",
    "a>>>": "a ab",
    "a?": "ab",
    'a"': "a",
    '*"': ". .. a ab a.b a.b.c abc.txt",
    "?": ". .. a",
    ">.>": ". .. a.b",
    "a.": "",
}
# Derived from the definitions.
DERIVED = {
    "*": ". .. a ab a.b a.b.c abc.txt",
    "A.B": "a.b",
    "<.>": ". .. a.b a.b.c",
    "a*": "a ab a.b a.b.c abc.txt",
    "*b": "ab a.b",
    "*.TXT": "abc.txt",
    "": "",
}


@pytest.mark.parametrize("pattern", [*MEASURED, *DERIVED])
def test_which_names_a_pattern_finds(pattern: str) -> None:
    found = [name for name in NAMES if wildcards.matches(pattern, name)]
    assert found == {**MEASURED, **DERIVED}[pattern].split()


def test_windows_reads_star_dot_star_as_all_names() -> None:
    assert all(wildcards.matches("*.*", name) for name in NAMES)


def naive(pattern: str, name: str) -> bool:
    """The definition of [MS-FSA] 2.1.4.4 as a recursion."""
    last = name.rfind(".")

    @cache
    def rest(at: int, index: int) -> bool:
        if at == len(pattern):
            return index == len(name)
        wanted, char = pattern[at], name[index : index + 1]
        if wanted == "*":
            return any(rest(at + 1, to) for to in range(index, len(name) + 1))
        if wanted == "<":
            end = last + 1 if index <= last else len(name)
            return any(rest(at + 1, to) for to in range(index, end + 1))
        if wanted == ">" and char in ("", "."):
            return rest(at + 1, index)
        if wanted == '"' and not char:
            return rest(at + 1, index)
        is_met = wanted in ("?", ">") or wanted == char or (wanted == '"' and char == ".")
        return bool(char) and is_met and rest(at + 1, index + 1)

    return rest(0, 0)


@given(st.text('ab.*?<>"', max_size=7), st.text("ab.", min_size=1, max_size=7))
def test_every_pattern_matches_what_its_definition_says(pattern: str, name: str) -> None:
    if pattern != "*.*" and name != "..":
        assert wildcards.matches(pattern, name) == naive(names.fold(pattern), names.fold(name))


def test_a_hostile_pattern_takes_no_more_steps_than_places_times_characters() -> None:
    pattern, name = "*a" * 127 + "b", "a" * 255
    assert not wildcards.matches(pattern, name)
    assert wildcards.matches("*a" * 127, name)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*", OK), ("<.>", OK), ('a?"', OK), ("a" * 255, OK),
        ("a\\b", "400 InvalidResourceName"), ("a/b", "400 InvalidResourceName"),
        ("a:b", "400 InvalidResourceName"), ("\ud800", "400 InvalidResourceName"),
        ("a" * 256, "400 InvalidFileOrDirectoryPathName"),
    ],
    ids=range(9),
)  # fmt: skip
def test_which_patterns_are_refused(pattern: str, expected: str) -> None:
    assert outcome(lambda: wildcards.check_pattern(pattern)) == expected


def test_no_pattern_stands_for_all_names() -> None:
    assert wildcards.check_pattern("") == wildcards.EVERYTHING
