"""Text out of a store on a terminal: others wrote it, and it may hold what moves the cursor.

Lives here: the one rule. Must not live here: which text that is. JSON needs no such rule.
"""

from __future__ import annotations


def plain(text: str) -> str:
    """`text` on one line, with an escape for every character that is not to be seen."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def _escape(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")
