"""Numbers of things in words: `1 problem`, `2 problems`.

Lives here: the one rule.
"""

from __future__ import annotations


def counted(count: int, plural: str) -> str:
    """Return the number with its noun, whose plural is given."""
    return f"{count} {_singular(plural) if count == 1 else plural}"


def _singular(plural: str) -> str:
    return f"{plural[:-3]}y" if plural.endswith("ies") else plural.removesuffix("s")
