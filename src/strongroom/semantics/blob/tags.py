"""Blob index tags: how x-ms-tags is written, and what a tag may be.

Must not live here: expressions over tags (tag_expressions.py). Source: "Set Blob Tags" and "Put
Blob", header x-ms-tags; reference section 10.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus

from strongroom.errors import invalid_header
from strongroom.values import Metadata

TAGS_MAX: Final = 10
_TEXT: Final = re.compile(r"[A-Za-z0-9 +\-./:=_]*")


def from_header(value: str) -> Metadata:
    """The tags of `k=v&k2=v2`, percent-encoded, sorted by key.

    Raises: StorageError InvalidHeaderValue for more than 10, a key of other than 1..128 characters,
        a value over 256, a character outside `[A-Za-z0-9 +-./:=_]`, or a key given twice.
    """
    found: dict[str, str] = {}
    for pair in value.split("&") if value else ():
        raw_key, _, raw_value = pair.partition("=")
        key, text = unquote_plus(raw_key), unquote_plus(raw_value)
        if not is_tag(key, text) or key in found:
            raise invalid_header("x-ms-tags", value)
        found[key] = text
    if len(found) > TAGS_MAX:
        raise invalid_header("x-ms-tags", value)
    return tuple(sorted(found.items()))


def is_tag(key: str, value: str) -> bool:
    """Whether a key and a value may make a tag."""
    return (
        1 <= len(key) <= 128
        and len(value) <= 256
        and _TEXT.fullmatch(key) is not None
        and _TEXT.fullmatch(value) is not None
    )
