"""The line on which a key of a TOML file stands, for errors.

Lives here: the search for it. Must not live here: what keys there may be (document.py).

The standard library's parser gives no lines. But a file can be cut after any line, and whatever can
be parsed then shows which keys have come. So the search needs no second parser. It cuts only before
lines that look like a key or a header, and stops after a bounded work.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any, Final

Path = Sequence[str | int]
"""The keys and indexes that lead to a value."""

_KEY: Final = r"""(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_STATEMENT: Final = re.compile(rf"\s*(?:\[|{_KEY}(?:\s*\.\s*{_KEY})*\s*=)")
# A search that reaches it ends at an earlier line. The file has been refused already.
_PARSED_CHARS_MAX: Final = 8 * 1024 * 1024


def line_of(text: str, path: Path) -> int:
    """Return the line, from 1, on which the value at this path begins. A path that does not exist
    counts as its nearest parent that does."""
    whole = tomllib.loads(text)
    while path and not _has(whole, path):
        path = path[:-1]
    if not path:
        return 1
    lines = text.splitlines(keepends=True)
    cuts = [number for number, line in enumerate(lines) if _STATEMENT.match(line)]
    begin, low, high, left = 0, 0, len(cuts), _PARSED_CHARS_MAX
    while low < high and left > 0:
        at = middle = (low + high) // 2
        parsed = None
        while parsed is None and at < high and left > 0:
            part = "".join(lines[: cuts[at]])
            left -= len(part)
            parsed = _parsed(part)  # None inside of an array or a text of several lines
            at += 1
        if parsed is None or _has(parsed, path):
            high = middle
        else:
            begin, low = cuts[at - 1], at
    return begin + 1


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _has(value: Any, path: Path) -> bool:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
