"""The line on which a key of a TOML file stands, for errors.

Lives here: the search for it. Must not live here: what keys there may be (document.py).

The standard library's parser gives no lines. But a file can be cut after any line, and whatever can
be parsed then shows which keys have come. So the search needs no second parser.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

Path = Sequence[str | int]
"""The keys and indexes that lead to a value."""


def line_of(text: str, path: Path) -> int:
    """Return the line, from 1, on which the value at this path begins. A path that does not exist
    counts as its nearest parent that does."""
    lines = text.splitlines(keepends=True)
    whole = tomllib.loads(text)
    while path and not _has(whole, path):
        path = path[:-1]
    if not path:
        return 1
    first, last = 0, len(lines)  # cut after `first` lines, it is not there; after `last`, it is
    while last - first > 1:
        middle = _parsable(lines, (first + last) // 2)
        if middle <= first:
            middle = _parsable_after(lines, (first + last) // 2, last)
            if middle == last:
                break
        found = tomllib.loads("".join(lines[:middle]))
        first, last = (first, middle) if _has(found, path) else (middle, last)
    return first + 1


def _parsable(lines: Sequence[str], most: int) -> int:
    """Return how many of the first `most` lines can be parsed as a file."""
    while most and not _can_parse(lines[:most]):
        most -= 1
    return most


def _parsable_after(lines: Sequence[str], least: int, most: int) -> int:
    while least < most and not _can_parse(lines[:least]):
        least += 1
    return least


def _can_parse(lines: Sequence[str]) -> bool:
    try:
        tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError:
        return False
    return True


def _has(value: Any, path: Path) -> bool:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
