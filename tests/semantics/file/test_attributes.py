"""Attributes and times: every bit with its name, and every change with its times."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.file import attributes
from strongroom.semantics.file.attributes import Attribute, FileTimes, TimeField, Touch
from strongroom.times import parse_iso8601
from strongroom.values import iso7
from tests.refusals import OK, outcome

INVALID = "400 InvalidHeaderValue"
BITS = {
    "ReadOnly": 0x1, "Hidden": 0x2, "System": 0x4, "Directory": 0x10, "Archive": 0x20,
    "Temporary": 0x100, "Offline": 0x1000, "NotContentIndexed": 0x2000, "NoScrubData": 0x20000,
}  # fmt: skip
NOW = parse_iso8601("2026-01-02T03:04:05.6789012Z") or 0
OLD = parse_iso8601("2001-01-01T00:00:00Z") or 0


def read_as(text: str, is_directory: bool) -> str:
    return outcome(lambda: attributes.parse(text, is_directory=is_directory))


def test_every_set_of_names_is_read_and_written_alike() -> None:
    for count in range(len(BITS) + 1):
        for names in combinations(BITS, count):
            for is_directory in (False, True):
                bits = sum(BITS[name] for name in names)
                text = " | ".join(names) or "None"
                illegal = bits & (0x100 if is_directory else 0x10)
                found = read_as(text, is_directory)
                assert found == (INVALID if illegal else OK), text
                if not illegal:
                    read = attributes.parse(text.upper(), is_directory=is_directory)
                    assert read == bits | (0x10 if is_directory else 0)
                assert attributes.text(bits) == text


@pytest.mark.parametrize(
    "text", ["", "Readonly,Hidden", "None | Archive", "Archive | Archive", "Normal", "|", "32"]
)
def test_other_texts_are_refused(text: str) -> None:
    assert outcome(lambda: attributes.parse(text, is_directory=False)) == INVALID


def test_spaces_around_names_do_not_count() -> None:
    assert attributes.parse("ReadOnly|Hidden", is_directory=False) == 3
    assert attributes.parse("  ReadOnly  |  Hidden ", is_directory=False) == 3


@pytest.mark.parametrize("bit", range(32))
@pytest.mark.parametrize("is_directory", [False, True])
def test_each_bit_that_smb_sends(bit: int, is_directory: bool) -> None:
    value = 1 << bit
    refused = value & 0xFFFF8048 or (is_directory and value == 0x100)
    found = outcome(lambda: attributes.check_smb(value, is_directory=is_directory))
    assert found == (INVALID if refused else OK)
    if not refused:
        assert attributes.check_smb(value, is_directory=is_directory) == value & 0x3127


@pytest.mark.parametrize(
    ("bits", "is_directory", "stored"),
    [(0, False, 0x20), (0x1, False, 0x21), (0x80, False, 0x20), (0, True, 0x10), (0x2, True, 0x12),
     (0x10, False, 0x20), (0x120, True, 0x30)],
)  # fmt: skip
def test_what_a_new_file_has(bits: int, is_directory: bool, stored: int) -> None:
    assert attributes.created(bits, is_directory=is_directory) == stored


def test_normal_stands_for_no_attribute_over_smb() -> None:
    assert (attributes.smb_bits(0), attributes.smb_bits(0x21)) == (0x80, 0x21)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1970-01-01T00:00:00Z", 116444736000000000),
        ("1601-01-01T00:00:00.0000001Z", 1),
        ("2009-07-25T23:00:00Z", 128930364000000000),
    ],
)
def test_filetime_counts_from_1601(text: str, value: int) -> None:
    ticks = parse_iso8601(text)
    assert ticks is not None
    assert attributes.filetime(ticks) == value
    assert attributes.ticks_of_filetime(value) == ticks


@pytest.mark.parametrize("value", [0, -1, -2, -3, attributes.FILETIME_MAX + 1, 2**63 - 1])
def test_what_is_no_filetime(value: int) -> None:
    assert outcome(lambda: attributes.ticks_of_filetime(value)) == INVALID


@given(st.integers(1, attributes.FILETIME_MAX))
def test_a_time_is_the_same_over_smb_and_rest(value: int) -> None:
    ticks = attributes.ticks_of_filetime(value)
    assert attributes.rest_time(iso7(ticks), NOW, OLD) == ticks
    assert attributes.filetime(ticks) == value


@pytest.mark.parametrize(
    ("given_text", "stored", "expected"),
    [
        (None, None, NOW), (None, OLD, OLD), ("now", OLD, NOW), ("now", None, NOW),
        ("preserve", OLD, OLD), ("Preserve", OLD, OLD), ("2001-01-01T00:00:00.0000000Z", NOW, OLD),
    ],
)  # fmt: skip
def test_what_a_time_header_means(
    given_text: str | None, stored: int | None, expected: int
) -> None:
    assert attributes.rest_time(given_text, NOW, stored) == expected


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("preserve", None), ("", OLD), ("None", OLD), ("2001-01-01", OLD), ("yesterday", OLD),
        ("1600-12-31T23:59:59.0000000Z", OLD), ("2001-13-01T00:00:00Z", OLD), ("0", OLD),
    ],
)  # fmt: skip
def test_which_time_headers_are_refused(given_text: str, stored: int | None) -> None:
    assert outcome(lambda: attributes.rest_time(given_text, NOW, stored)) == INVALID


FIELDS = (TimeField.CREATION, TimeField.ACCESS, TimeField.WRITE, TimeField.CHANGE)
# Creation, last access, last write, change (smb.md 3.8), and whether Archive is set (3.3).
DOCUMENTED = {
    Touch.CREATE: "xxxx a",
    Touch.OVERWRITE: ".xxx a",
    Touch.WRITE: ".xxx a",
    Touch.RESIZE: ".xxx a",
    Touch.READ: ".... .",
    Touch.SET_PROPERTIES: "...x .",
    Touch.SET_METADATA: "...x .",
    Touch.RENAME: "...x a",
    Touch.CHILD: ".xxx .",
}


@pytest.mark.parametrize("touch", Touch, ids=lambda touch: touch.name)
def test_which_times_each_touch_moves(touch: Touch) -> None:
    for count in range(5):
        for frozen in combinations(FIELDS, count):
            after = attributes.touched(FileTimes(1, 2, 3, 4), touch, 9, frozen)
            found = (after.creation, after.access, after.write, after.change)
            marks = zip(DOCUMENTED[touch], FIELDS, (1, 2, 3, 4), strict=False)
            assert found == tuple(
                9 if mark == "x" and field not in frozen else before
                for mark, field, before in marks
            )
    archives = DOCUMENTED[touch].endswith("a")
    assert bool(attributes.archived(0, touch) & Attribute.ARCHIVE) is archives
    assert attributes.archived(0x10, touch) == 0x10
