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

# Values that no record has. Each stands for a slot; the last one for a slot without its field.
_TEXT: Final = "\x01"
_ENCODED_TEXT: Final = "\x02"
_ABSENT: Final = "\x03"
_NUMBER: Final = 9_007_199_254_740_991
_SLOT: Final = re.compile(rf'\\u0001|"\\u0002"|"\w+":"\\u0003",|{_NUMBER}(?:\.0)?')

Template = tuple[str, ...]
"""The text between the slots: one piece more than there are slots."""

Slots = tuple[str, float, str, str, str, str, str, float, int, int, int]
"""Time, durationMs, correlationId; uri, objectKey, etag and clientRequestId in JSON; engineMs,
requestBodySize, responseHeaderSize, responseBodySize. The texts that are not in JSON have no
character that JSON escapes. The value of `etag` or `clientRequestId` is "" if the template has no
such field."""


def template_of(record: AccessRecord) -> Template:
    """Return the pieces of all lines that differ from a record's in the slots only."""
    properties = record.properties
    marked = msgspec.structs.replace(
        record,
        time=_TEXT,
        duration_ms=float(_NUMBER),
        correlation_id=_TEXT,
        uri=_ENCODED_TEXT,
        properties=msgspec.structs.replace(
            properties,
            object_key=_ENCODED_TEXT,
            etag=_ENCODED_TEXT if properties.etag else _ABSENT,
            client_request_id=_ENCODED_TEXT if properties.client_request_id else _ABSENT,
            engine_ms=float(_NUMBER),
            request_body_size=_NUMBER,
            response_header_size=_NUMBER,
            response_body_size=_NUMBER,
        ),
    )
    return tuple(_SLOT.split(line_of(marked).decode("ascii")))


def filled(template: Template, slots: Slots) -> bytes:
    # One formatted string is the quickest way to join them.
    t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11 = template
    s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10 = slots
    return (
        f"{t0}{s0}{t1}{s1}{t2}{s2}{t3}{s3}{t4}{s4}{t5}{s5}{t6}{s6}{t7}{s7}{t8}{s8}{t9}{s9}{t10}"
        f"{s10}{t11}"
    ).encode("ascii")
