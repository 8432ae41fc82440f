"""The valid names of an entity's property: identifiers of C#.

A name begins with a letter or `_`. Letters, combining marks, digits, connecting and formatting
characters follow. Source: "Understanding the Table service data model", section "Property names";
C# language specification, identifiers.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from typing import Final

from strongroom.errors import table as table_errors
from strongroom.errors.core import ErrorCode

NAME_CHARS_MAX: Final = 255
_FIRST: Final = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nl"))
_FURTHER: Final = _FIRST | {"Mn", "Mc", "Nd", "Pc", "Cf"}


def are_surely_valid(names: Collection[str]) -> bool:
    """Whether all of these names are valid by a fast check; False may still mean valid names. It
    runs at each write: an ASCII identifier of Python is one of C#, and nearly all names are."""
    if max(map(len, names), default=0) > NAME_CHARS_MAX:
        return False
    return "".join(names).isascii() and all(map(str.isidentifier, names))


def name_error(text: str) -> ErrorCode | None:
    """The error in a name of any length; None if it is valid."""
    if _is_too_long(text):
        return table_errors.PROPERTY_NAME_TOO_LONG
    return None if is_name(text) else table_errors.PROPERTY_NAME_INVALID


def is_name(text: str) -> bool:
    """Whether a name is valid, apart from its length."""
    if text.isascii():
        return text.isidentifier()
    kinds = list(map(unicodedata.category, text))
    return (kinds[0] in _FIRST or text[0] == "_") and _FURTHER.issuperset(kinds)


def _is_too_long(text: str) -> bool:
    """More than 255 UTF-16 characters."""
    if len(text) * 2 <= NAME_CHARS_MAX:
        return False
    return len(text) + sum(character > "\uffff" for character in text) > NAME_CHARS_MAX
