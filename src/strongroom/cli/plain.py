"""The escaping of others' texts on a terminal: they may have control codes.

Lives here: the one rule of the commands. JSON needs no such rule.
"""

from __future__ import annotations


def plain(text: str) -> str:
    """Return `text` on one line, with an escape for every character that is not printable."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def _escape(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")
