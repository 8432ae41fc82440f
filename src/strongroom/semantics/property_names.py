"""What a property of an entity may be called: an identifier of C#.

Must not live here: which of them a request names. Source: "Understanding the Table service data
model", section "Property names"; C# language specification, identifiers: a letter or `_`, then
letters, combining marks, digits, connecting and formatting characters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

NAME_CHARS_MAX: Final = 255
_ASCII: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIRST: Final = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nl"))
_FURTHER: Final = _FIRST | {"Mn", "Mc", "Nd", "Pc", "Cf"}


def is_name(text: str) -> bool:
    """Whether a property can be called so, however long the text is."""
    if text.isascii():
        return _ASCII.fullmatch(text) is not None
    kinds = list(map(unicodedata.category, text))
    return (kinds[0] in _FIRST or text[0] == "_") and _FURTHER.issuperset(kinds)


def is_too_long(text: str) -> bool:
    """Whether a name has more than 255 UTF-16 characters."""
    if len(text) * 2 <= NAME_CHARS_MAX:
        return False
    return len(text) + sum(character > "\uffff" for character in text) > NAME_CHARS_MAX
