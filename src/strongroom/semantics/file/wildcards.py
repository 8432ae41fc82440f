"""Which names a pattern of QUERY_DIRECTORY matches: `*`, `?`, DOS_STAR, DOS_QM and DOS_DOT.

The matcher's time is bounded by the product of both lengths whatever the pattern. Names of 8.3 do
not exist. Sources: [MS-FSA] section 2.1.4.4 (Algorithm for Determining if a FileName Is in an
Expression); reference smb.md 2.8.
"""

from __future__ import annotations

import re
from typing import Final

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import names

STAR: Final = "*"
"""Matches any run of characters."""
ONE: Final = "?"
"""Matches exactly one character."""
DOS_STAR: Final = "<"
"""Matches any run of characters up to and including the last dot of the name, or any run without a
dot."""
DOS_QM: Final = ">"
"""Matches one character that is no dot. In front of a dot or at the end of the name it matches
nothing."""
DOS_DOT: Final = '"'
"""Matches a dot, or nothing at the end of the name."""

EVERYTHING: Final = "*"
_NOT_IN_PATTERNS: Final = re.compile("[\\\\/:|\x00-\x1f\ud800-\udfff]")


def check_pattern(pattern: str) -> str:
    """The pattern as a handle stores it; an empty one stands for all names ([MS-FSA])."""
    if _NOT_IN_PATTERNS.search(pattern) is not None:
        raise StorageError(file_errors.INVALID_FILE_NAME)
    if names.utf16_units(pattern) > names.COMPONENT_UNITS_MAX:
        raise StorageError(file_errors.INVALID_FILE_OR_DIRECTORY_PATH_NAME)
    return pattern or EVERYTHING


def matches(pattern: str, name: str) -> bool:
    """Names match in any case.

    Each step keeps the set of places in the pattern that may come next, so that no pattern takes
    more than len(pattern) * len(name) steps. The entry `..` of a listing matches as `.` does
    (measured, smb.md 2.8).
    """
    if pattern in (EVERYTHING, "*.*"):
        # Windows reads `*.*` as all names, with a dot or without one ([MS-FSA] 2.1.5.6.3).
        return True
    folded, folded_name = names.fold(pattern), "." if name == ".." else names.fold(name)
    last_dot = folded_name.rfind(".")
    places = _skipped(folded, {0}, folded_name[:1])
    for index, char in enumerate(folded_name):
        places = {
            after for place in places for after in _steps(folded, place, char, index, last_dot)
        }
        places = _skipped(folded, places, folded_name[index + 1 : index + 2])
    return len(folded) in places


def _skipped(pattern: str, places: set[int], following: str) -> set[int]:
    """The places, and those that can be reached without a character of the name.

    Arguments:
        following: the next character of the name, "" at its end.
    """
    reached, open_places = set(places), list(places)
    while open_places:
        place = open_places.pop()
        is_open = place < len(pattern) and place + 1 not in reached
        if is_open and _is_skippable(pattern[place], following):
            reached.add(place + 1)
            open_places.append(place + 1)
    return reached


def _is_skippable(element: str, following: str) -> bool:
    if element in (STAR, DOS_STAR):
        return True
    if element == DOS_QM:
        return following in ("", ".")
    return element == DOS_DOT and following == ""


def _steps(pattern: str, place: int, char: str, index: int, last_dot: int) -> tuple[int, ...]:
    """The places after one character of the name; a star stays where it is."""
    if place == len(pattern):
        return ()
    element = pattern[place]
    if element == STAR:
        return (place,)
    if element == DOS_STAR:
        # It can match the last dot only as the last character of its run.
        return (place + 1,) if index == last_dot else (place,)
    is_met = (
        element in (ONE, char)
        or (element == DOS_QM and char != ".")
        or (element == DOS_DOT and char == ".")
    )
    return (place + 1,) if is_met else ()
