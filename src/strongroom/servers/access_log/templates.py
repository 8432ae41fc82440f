"""Lines that are put together from pieces of a line that was encoded before.

Lives here: the template of a line, and its slots. Must not live here: the fields (record.py), their
values (exchanges.py). Most requests differ from earlier ones in a few values only, and a template
costs less than encoding a record.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from strongroom.servers.access_log.record import AccessRecord, line_of

# Values that no record has. Each stands for a slot.
_TEXT: Final = "\x01"
_ENCODED_TEXT: Final = "\x02"
_ETAG: Final = '"\x01"'
_NUMBER: Final = 9_007_199_254_740_991
_SLOT: Final = re.compile(rf'\\u0001|"\\u0002"|{_NUMBER}(?:\.0)?')

Slots = tuple[str, float, str, str, str, str, str, float, int, int, int]
"""Time, durationMs, correlationId; uri and objectKey in JSON; the ETag without quotes,
clientRequestId; engineMs, requestBodySize, responseHeaderSize, responseBodySize. Texts that are not
in JSON have no character that JSON escapes."""


def template_of(record: AccessRecord) -> str:
    """Return the format of all lines that differ from a record's in the slots only."""
    marked = msgspec.structs.replace(
        record,
        time=_TEXT,
        duration_ms=float(_NUMBER),
        correlation_id=_TEXT,
        uri=_ENCODED_TEXT,
        properties=msgspec.structs.replace(
            record.properties,
            object_key=_ENCODED_TEXT,
            etag=_ETAG,
            client_request_id=_TEXT,
            engine_ms=float(_NUMBER),
            request_body_size=_NUMBER,
            response_header_size=_NUMBER,
            response_body_size=_NUMBER,
        ),
    )
    pieces = _SLOT.split(line_of(marked).decode("ascii"))
    return "%s".join([piece.replace("%", "%%") for piece in pieces])


def filled(template: str, slots: Slots) -> bytes:
    """Return the line of a template with these values."""
    return (template % slots).encode("ascii")
