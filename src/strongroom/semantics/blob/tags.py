"""Blob index tags: the format of x-ms-tags, and the rules for a tag.

Expressions over tags: semantics/core/tag_expressions.py; queries: tag_queries.py. Source: "Set Blob
Tags" and "Put Blob", header x-ms-tags; reference section 10.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote_plus

from strongroom.errors import blob as blob_errors
from strongroom.errors.core import ErrorCode, StorageError, invalid_header
from strongroom.values import Metadata

TAGS_MAX: Final = 10
KEY_CHARS_MAX: Final = 128
VALUE_CHARS_MAX: Final = 256
_TEXT: Final = re.compile(r"[A-Za-z0-9 +\-./:=_]*")


def from_header(value: str) -> Metadata:
    """The tags of `k=v&k2=v2`, percent-encoded, sorted by key. Bad ones are an invalid header, not
    an invalid document."""
    pairs = []
    for pair in value.split("&") if value else ():
        key, _, text = pair.partition("=")
        pairs.append((unquote_plus(key), unquote_plus(text)))
    if violation(pairs) is not None:
        raise invalid_header("x-ms-tags", value)
    return tuple(sorted(pairs))


def check(pairs: Sequence[tuple[str, str]]) -> Metadata:
    """The tags of a document, sorted by key."""
    broken = violation(pairs)
    if broken is not None:
        raise StorageError(broken)
    return tuple(sorted(pairs))


def violation(pairs: Sequence[tuple[str, str]]) -> ErrorCode | None:
    """The first rule that a blob's tags would break, None when they break none."""
    if len(pairs) > TAGS_MAX:
        return blob_errors.TAGS_TOO_LARGE
    for key, value in pairs:
        if not key:
            return blob_errors.EMPTY_TAG_NAME
        if len(key) > KEY_CHARS_MAX or len(value) > VALUE_CHARS_MAX:
            return blob_errors.TAGS_TOO_LARGE
        if not is_tag(key, value):
            return blob_errors.INVALID_TAG
    if len({key for key, _ in pairs}) < len(pairs):
        return blob_errors.DUPLICATE_TAG_NAMES
    return None


def is_tag(key: str, value: str) -> bool:
    return (
        1 <= len(key) <= KEY_CHARS_MAX
        and len(value) <= VALUE_CHARS_MAX
        and _TEXT.fullmatch(key) is not None
        and _TEXT.fullmatch(value) is not None
    )
