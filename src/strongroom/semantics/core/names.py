"""The names that accounts, containers, blobs and metadata may have.

Source: "Naming and referencing containers, blobs, and metadata".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.values import Metadata

ROOT: Final = "$root"
SPECIAL_CONTAINERS: Final = frozenset((ROOT, "$web", "$logs", "$blobchangefeed"))
_NAME_CHARS: Final = (3, 63)
_LENGTH: Final = "The specified resource name length is not within the permissible limits."
_NAMES_CACHED_MAX: Final = 1024
_CONTAINER: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
# Control characters, halves of surrogate pairs, and the private use area.
_BLOB_ILLEGAL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ue000-\uf8ff]")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
RESERVED_TABLE: Final = "tables"
_METADATA_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")


def is_container_name(name: str) -> bool:
    return is_queue_name(name) or name in SPECIAL_CONTAINERS


def check_container(name: str) -> None:
    """A container's name: 3 to 63 of `[a-z0-9-]`, letter or digit at both ends, no `--`; or a
    special container."""
    if not is_container_name(name):
        check_queue(name)


def is_queue_name(name: str) -> bool:
    least, most = _NAME_CHARS
    return least <= len(name) <= most and _has_form(name)


@lru_cache(_NAMES_CACHED_MAX)
def _has_form(name: str) -> bool:
    """Whether a name of valid length has valid characters. The result is cached: nearly every
    request uses one of a few names."""
    return _CONTAINER.fullmatch(name) is not None


def check_queue(name: str) -> None:
    """A queue's name: 3 to 63 of `[a-z0-9-]`, letter or digit at both ends, no `--`."""
    _check(name, _CONTAINER)


def is_table_name(name: str) -> bool:
    least, most = _NAME_CHARS
    return least <= len(name) <= most and _is_free_table_name(name)


@lru_cache(_NAMES_CACHED_MAX)
def _is_free_table_name(name: str) -> bool:
    """Whether a name of valid length has valid characters, and is not the reserved name."""
    return _TABLE.fullmatch(name) is not None and name.lower() != RESERVED_TABLE


def check_table(name: str) -> None:
    """A table's name: 3 to 63 letters and digits, a letter first; `tables` is reserved, in any
    case."""
    _check(name, _TABLE)
    if name.lower() == RESERVED_TABLE:
        raise StorageError(errors.INVALID_INPUT, f"The table name '{name}' is reserved.")


def _check(name: str, shape: re.Pattern[str]) -> None:
    least, most = _NAME_CHARS
    if not least <= len(name) <= most:
        raise _wrong_length(len(name), least, most)
    if shape.fullmatch(name) is None:
        raise StorageError(errors.INVALID_RESOURCE_NAME)


def _wrong_length(length: int, least: int, most: int) -> StorageError:
    """The service's text, and the limits."""
    message = f"{_LENGTH} It has {length} characters, and {least} to {most} are permitted."
    return StorageError(errors.OUT_OF_RANGE_INPUT, message)


def check_blob(name: str, container: str = "") -> None:
    """A blob's name: 1 to 1,024 UTF-16 characters in at most 254 segments. Control and private
    characters are refused, and so is a slash in the root container."""
    length = _utf16_length(name)
    if not 1 <= length <= limits.BLOB_NAME_CHARS_MAX:
        raise _wrong_length(length, 1, limits.BLOB_NAME_CHARS_MAX)
    too_deep = name.count("/") >= limits.BLOB_NAME_SEGMENTS_MAX
    is_plain = name.isascii() and name.isprintable()
    is_illegal = not is_plain and _BLOB_ILLEGAL.search(name) is not None
    if too_deep or is_illegal or (container == ROOT and "/" in name):
        raise StorageError(errors.INVALID_RESOURCE_NAME)


def check_metadata(pairs: Iterable[tuple[str, str]]) -> Metadata:
    """Return the pairs unchanged. Names are C# identifiers of ASCII, unique regardless of case;
    values are printable ASCII; names and values are at most 8 KiB together."""
    metadata = tuple(pairs)
    seen: set[str] = set()
    for name, value in metadata:
        if not name:
            raise StorageError(errors.EMPTY_METADATA_KEY)
        if not _IDENTIFIER.fullmatch(name) or not _METADATA_VALUE.fullmatch(value):
            raise StorageError(errors.INVALID_METADATA)
        if name.lower() in seen:
            raise StorageError(
                errors.INVALID_METADATA,
                f"The metadata name {name} is specified more than once; case does not count.",
            )
        seen.add(name.lower())
    if sum(len(name) + len(value) for name, value in metadata) > limits.METADATA_BYTES_MAX:
        raise StorageError(errors.METADATA_TOO_LARGE)
    return metadata


def _utf16_length(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text) + sum(char > "\uffff" for char in text)
