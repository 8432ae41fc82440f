"""The OData 3.0 JSON protocol of the Table service: formats, entity tags, errors.

Entities are parsed by odata_entities.py; odata_documents.py writes documents. Source: "Payload
format for Table service operations", "Table service error codes", "Specifying conditional headers";
reference sections 2 and 8.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

import msgspec

from strongroom.errors import core as errors
from strongroom.errors import table as table_errors
from strongroom.errors.core import StorageError
from strongroom.times import parse_iso8601
from strongroom.values import iso7

ANY: Final = "*"
_JSON: Final = "application/json"
_ATOM: Final = ("application/atom+xml", "application/xml", "text/xml")
_TAG: Final = re.compile(r"W/\"datetime'([^']{1,64})'\"")
_WEAK_TAG: Final = re.compile(r'W/"[^"]*"')
NO_TIMESTAMP: Final = 0
"""Stands for no Timestamp; no entity has this one."""
_QUALITY: Final = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")


class Metadata(enum.Enum):
    """The amount of metadata in an answer; the value is the word in Content-Type."""

    NONE = "nometadata"
    MINIMAL = "minimalmetadata"
    FULL = "fullmetadata"

    @property
    def content_type(self) -> str:
        return f"{_JSON};odata={self.value};streaming=true;charset=utf-8"


_WORDS: Final = {level.value: level for level in Metadata}


@lru_cache(maxsize=128)
def negotiate(accept: str | None, requested_format: str | None) -> Metadata:
    """The level of metadata that a request wants.

    Arguments:
        accept: the Accept header; without one, or with `*/*`, metadata is minimal. The best range
            counts, by `q` and then by order; `q=0` excludes a range.
        requested_format: `$format`, which overrides Accept; empty = not given.
    """
    requested = (
        requested_format if requested_format is not None and requested_format.strip() else accept
    )
    if requested is None or not requested.strip():
        return Metadata.MINIMAL
    ranges = sorted(requested.split(","), key=_quality, reverse=True)
    refusal: StorageError | None = None
    for one in ranges:
        if not _quality(one):
            break
        try:
            return _level(one)
        except StorageError as error:
            refusal = refusal or error
    raise refusal or StorageError(table_errors.MEDIA_TYPE_NOT_SUPPORTED)


def _quality(media_range: str) -> float:
    """The weight of a media range; a malformed weight counts as 1, the default."""
    for parameter in media_range.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q" and _QUALITY.fullmatch(value.strip()):
            return float(value.strip())
    return 1.0


@lru_cache(maxsize=128)
def _level(media_range: str) -> Metadata:
    media_type, *parameters = (part.strip().lower() for part in media_range.split(";"))
    if media_type in ("*/*", "application/*"):
        return Metadata.MINIMAL
    if media_type in _ATOM or media_type == "atom":
        raise StorageError(table_errors.ATOM_FORMAT_NOT_SUPPORTED)
    if media_type not in (_JSON, "json"):
        raise StorageError(table_errors.MEDIA_TYPE_NOT_SUPPORTED)
    for parameter in parameters:
        name, _, word = parameter.partition("=")
        if name.strip() == "odata":
            word = word.strip().strip('"')
            if word == "verbose":
                raise StorageError(table_errors.JSON_VERBOSE_FORMAT_NOT_SUPPORTED)
            if word not in _WORDS:
                raise StorageError(table_errors.MEDIA_TYPE_NOT_SUPPORTED)
            return _WORDS[word]
    return Metadata.MINIMAL


def check_content_type(content_type: str | None) -> None:
    if content_type is not None and content_type.strip():
        _level(content_type)


def etag_text(timestamp: int) -> str:
    """The entity tag of a Timestamp in ticks: `W/"datetime'2013-08-09T18%3A55%3A48.3402073Z'"`."""
    moment = iso7(timestamp).replace(":", "%3A")  # no other character needs an escape
    return f"W/\"datetime'{moment}'\""


def read_match(text: str) -> int | None:
    """The Timestamp in If-Match; None for `*`, NO_TIMESTAMP for a weak tag of another form. A text
    that is not a weak tag is refused."""
    tag = text.strip()
    if tag == ANY:
        return None
    match = _TAG.fullmatch(tag)
    ticks = None if match is None else parse_iso8601(unquote(match[1]))
    if ticks is None and _WEAK_TAG.fullmatch(tag):
        return NO_TIMESTAMP
    if ticks is None:
        message = f"{errors.INVALID_INPUT.message} The entity tag in If-Match is malformed."
        raise StorageError(errors.INVALID_INPUT, message)
    return ticks


_DETAIL: Final = "AuthenticationErrorDetail"


def error_body(error: StorageError, request_id: str, now: int) -> bytes:
    """`request_id` is x-ms-request-id of the response; `now` is wall time in ticks."""
    # The other services have an element of its own for it.
    detail = "".join(f" {value}" for name, value in error.extras if name == _DETAIL)
    text = f"{error.message}{detail}\nRequestId:{request_id}\nTime:{iso7(now)}"
    message = {"lang": "en-US", "value": text.encode("utf-8", "replace").decode()}
    return msgspec.json.encode({"odata.error": {"code": error.row.code, "message": message}})
