"""The queries of Find Blobs by Tags: their grammar, whether tags match, and where pages end.

    query       = condition *( "AND" condition )
    condition   = key operator "'" value "'" / "@container" "=" "'" name "'"
    key         = name / DQUOTE characters DQUOTE
    operator    = "=" / ">" / ">=" / "<" / "<="

The index is in store/blob/tag_index.py. Source: "Find Blobs by Tags", "Remarks"; "Manage and find
Azure Blob data with blob index tags". Values are compared as texts, character by character. A blob
matches if it has every tag that the query names, with a value in its range.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from strongroom.errors.core import StorageError, invalid_query
from strongroom.semantics.blob import tags
from strongroom.semantics.core import names
from strongroom.semantics.core.tag_expressions import Tokens

PARAMETER: Final = "where"
_MARKER_VERSION: Final = b"\x01"
_MARKER_CHARS_MAX: Final = 8192
# The maximum of a key, a value, a name of three bytes for each character, and the token.
_ENTRY_BYTES_MAX: Final = 4096


class ValueRange(NamedTuple):
    """The values of one tag that match a query; None is an open end."""

    low: str | None = None
    above_low: bool = False
    high: str | None = None
    below_high: bool = False

    def holds(self, value: str) -> bool:
        low, high = self.low, self.high
        if low is not None and (value <= low if self.above_low else value < low):
            return False
        return high is None or (value < high if self.below_high else value <= high)

    @property
    def is_exact(self) -> bool:
        both = self.low is not None and self.low == self.high
        return both and not (self.above_low or self.below_high)


class TagQuery(msgspec.Struct, frozen=True):
    """`container` None means all containers; `ranges` has at least one tag's key."""

    container: str | None
    ranges: dict[str, ValueRange]

    def matches(self, blob_tags: Mapping[str, str]) -> bool:
        for key, values in self.ranges.items():
            value = blob_tags.get(key)
            if value is None or not values.holds(value):
                return False
        return True


class Resume(NamedTuple):
    """The start of a page: its container, and its entry of the container's index."""

    container: str
    entry: bytes


START: Final = Resume("", b"")


@lru_cache(maxsize=64)
def parse(text: str) -> TagQuery:
    """The query in the parameter `where`, which errors name."""
    reader = _Reader(text)
    while True:
        reader.condition()
        if not reader.tokens.take_keyword("AND"):
            break
    if reader.tokens.kind is not None:
        raise reader.refusal("Only AND joins conditions.")
    if not reader.ranges:
        raise reader.refusal("It must compare at least one tag.")
    return TagQuery(reader.container, reader.ranges)


def parse_here(text: str) -> TagQuery:
    """The query of a search in one container, which its URL names."""
    query = parse(text)
    if query.container is not None:
        raise invalid_query(PARAMETER, text, "@container is for searches of the whole account.")
    return query


class _Reader:
    def __init__(self, text: str) -> None:
        self.container: str | None = None
        self.ranges: dict[str, ValueRange] = {}
        self._text = text
        form = "It must be conditions like \"key\" = 'value', joined by AND."
        self.tokens = Tokens(text, lambda: self.refusal(form))

    def refusal(self, reason: str) -> Exception:
        return invalid_query(PARAMETER, self._text, reason)

    def condition(self) -> None:
        tokens = self.tokens
        if tokens.kind == "at":
            self._container()
            return
        key, operator, value = tokens.take_key(), tokens.take("operator"), tokens.take("value")
        if operator == "<>":
            raise self.refusal("The operator <> is for x-ms-if-tags only.")
        if not tags.is_tag(key, value):
            raise self.refusal(f"No blob can have the tag '{key[:128]}' with this value.")
        self.ranges[key] = self._narrowed(key, operator, value)

    def _container(self) -> None:
        tokens = self.tokens
        if tokens.take("at").lower() != "@container" or tokens.take("operator") != "=":
            raise self.refusal("Behind @ only container is known, compared by =.")
        name = tokens.take("value")
        if self.container is not None or not names.is_container_name(name):
            raise self.refusal("@container must name one container.")
        self.container = name

    def _narrowed(self, key: str, operator: str, value: str) -> ValueRange:
        known = self.ranges.get(key, ValueRange())
        lower, upper = operator in (">", ">=", "="), operator in ("<", "<=", "=")
        if (lower and known.low is not None) or (upper and known.high is not None):
            raise self.refusal(f"The tag '{key}' is bounded twice on the same side.")
        if lower:
            known = known._replace(low=value, above_low=operator == ">")
        if upper:
            known = known._replace(high=value, below_high=operator == "<")
        return known


def encode_marker(resume: Resume | None) -> str:
    """NextMarker: an opaque text for the start of the next page; empty when nothing is left."""
    if resume is None:
        return ""
    packed = msgspec.msgpack.encode(resume)
    return base64.urlsafe_b64encode(_MARKER_VERSION + packed).decode("ascii")


def decode_marker(marker: str) -> Resume:
    """The position in a marker of `encode_marker`; the start for an empty text."""
    if not marker:
        return START
    try:
        if len(marker) > _MARKER_CHARS_MAX:
            raise ValueError(marker)
        raw = base64.b64decode(marker, altchars=b"-_", validate=True)
        if raw[:1] != _MARKER_VERSION:
            raise ValueError(marker)
        resume = msgspec.msgpack.decode(raw[1:], type=Resume)
        if not names.is_container_name(resume.container) or len(resume.entry) > _ENTRY_BYTES_MAX:
            raise ValueError(marker)
    except ValueError:  # also raised by msgspec
        raise foreign_marker(marker) from None
    return resume


def foreign_marker(marker: str) -> StorageError:
    reason = "The value is not a marker that this search has returned."
    return invalid_query("marker", marker, reason)
