"""Names of shares, directories and files: the legal names, and the names that are equal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.file import names
from tests.refusals import OK, outcome, refusal

ILLEGAL = "400 InvalidResourceName"
TOO_LONG = "400 InvalidFileOrDirectoryPathName"
NAME_INVALID = 0xC0000033
SYNTAX_BAD = 0xC000003B

LEGAL = (
    "a", "A b", "a.b", ".a", "a.", "a ", " a", "...", "a~1", "名前", "\U0001f600", "con.txt",
    "com0", "com10", "nul ", "a" * 255, "\U0001f600" * 127, "e\u0301", "\x7f", "$root",
    "a&b", "100%",
)  # fmt: skip
DEVICES = ("con", "PRN", "aux", "Nul", "clock$", "com1", "COM9", "lpt1", "LPT9")
FORBIDDEN = tuple('"\\/:<>|*?') + tuple(map(chr, range(32)))


@pytest.mark.parametrize("name", LEGAL)
def test_a_legal_name(name: str) -> None:
    assert outcome(lambda: names.check_component(name)) == OK


@pytest.mark.parametrize("char", FORBIDDEN, ids=lambda char: f"{ord(char):02x}")
def test_a_forbidden_character_is_refused_wherever_it_stands(char: str) -> None:
    for name in (char, f"{char}a", f"a{char}", f"a{char}b", f"a{char}$DATA"):
        # Binds the loop's value.
        refused = refusal(lambda name=name: names.check_component(name))  # type: ignore[misc]
        assert refused is not None and refused.row.code == "InvalidResourceName"
        assert refused.row.ntstatus == NAME_INVALID


@pytest.mark.parametrize("name", ["", "a\ud800", "\udfff", *DEVICES])
def test_no_name_at_all_half_a_character_and_devices_are_refused(name: str) -> None:
    assert outcome(lambda: names.check_component(name)) == ILLEGAL


@pytest.mark.parametrize("name", [".", ".."])
def test_dot_names_have_an_ntstatus_of_their_own(name: str) -> None:
    refused = refusal(lambda: names.check_component(name))
    assert refused is not None and refused.row.ntstatus == SYNTAX_BAD


@pytest.mark.parametrize(
    ("components", "expected"),
    [
        ((), OK),
        (("a" * 255,), OK),
        (("a" * 256,), TOO_LONG),
        (("\U0001f600" * 128,), TOO_LONG),
        (("a" * 255,) * 8, OK),
        ((*("a" * 255,) * 7, "a" * 255, ""), ILLEGAL),
        ((*("a" * 255,) * 8, "a"), TOO_LONG),
        (("a",) * 250, OK),
        (("a",) * 251, TOO_LONG),
        (("a", "..", "b"), ILLEGAL),
    ],
    ids=range(10),
)
def test_a_path_has_a_length_a_depth_and_legal_components(
    components: tuple[str, ...], expected: str
) -> None:
    assert outcome(lambda: names.check_path(components)) == expected


def test_the_limit_of_a_path_counts_separators() -> None:
    full = ("a" * 255,) * 8
    assert sum(map(len, full)) + 7 == 2047
    assert outcome(lambda: names.check_path(full)) == OK


@pytest.mark.parametrize(
    ("left", "right", "are_same"),
    [
        ("readme.TXT", "ReadMe.txt", True),
        ("é", "É", True),
        ("\u00e9", "e\u0301", False),
        ("straße", "STRASSE", False),
        ("f\u0131le", "file", False),
        ("\u00b5", "\u03bc", False),
        ("\U00010428", "\U00010400", False),
        ("a", "a ", False),
        ("a", "a.", False),
    ],
)
def test_which_names_are_the_same(left: str, right: str, are_same: bool) -> None:
    assert names.same(left, right) is are_same is names.same(right, left)


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_key_keeps_the_length_and_decides_sameness(left: str, right: str) -> None:
    key = names.fold(left)
    assert len(key) == len(left) and names.fold(key) == key
    assert names.same(left, right) == (key == names.fold(right))
    assert names.same(left, key)


@pytest.mark.parametrize(
    ("given_name", "meant"),
    [
        ("a.", "a"),
        ("a...", "a"),
        ("a.b", "a.b"),
        (".a", ".a"),
        ("...", ""),
        (".", "."),
        ("..", ".."),
    ],
)
def test_rest_strips_trailing_dots_unless_told_otherwise(given_name: str, meant: str) -> None:
    assert names.without_trailing_dots(given_name) == meant


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("data", "data"), ("DATA-1", "data-1"), ("IPC$", "ipc$"), ("ab", None), ("a--b", None),
        ("\u212aelvin", None), ("C$", None), ("a" * 64, None), ("", None),
    ],
)  # fmt: skip
def test_a_tree_connect_names_a_share_in_any_case(name: str, share: str | None) -> None:
    assert names.share_of_tree(name) == share


@pytest.mark.parametrize(
    ("name", "expected"),
    [("abc", OK), ("a-1", OK), ("Abc", "400 InvalidResourceName"), ("ab", "400 OutOfRangeInput")],
)
def test_names_of_shares_are_those_of_containers(name: str, expected: str) -> None:
    assert outcome(lambda: names.check_share(name)) == expected
