"""The fields of Copy Blob and its like: the source, its conditions, the copy's id.

Lives here: one named field per header of the reference. Must not live here: what the values mean
(services/). Source: request headers of "Copy Blob", "Copy Blob From URL", "Abort Copy Blob".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.operations.core.fields import (
    condition_headers,
    conditions,
    header,
    one_of,
    parameter,
)
from strongroom.operations.core.spec import Field
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

COPY_SOURCE: Final = header("source", "x-ms-copy-source", required=True)
COPY_ID: Final = parameter("copy_id", "copyid", required=True)
SOURCE_MD5: Final = header(
    "source_md5",
    "x-ms-source-content-md5",
    lambda _, value: wire.md5(value),
    may_be_empty=True,
)
SOURCE_TAGS: Final = header(
    "source_tags",
    "x-ms-copy-source-tag-option",
    lambda name, value: wire.one_of(name, value, ("COPY", "REPLACE")) == "COPY",
    default=False,
)
NO_SOURCE_TAGS: Final = header("", "x-ms-copy-source-tag-option", one_of("REPLACE"))
"""Refuses COPY, which Copy Blob does not have; fills nothing."""
SOURCE_CONDITIONS: Final = Field(
    "source_conditions",
    lambda request, query: conditions(request, "x-ms-source-"),
    headers=condition_headers("x-ms-source-"),
)


def _copy_wait_s(request: Request, query: Query) -> float:
    """At most three quarters of `timeout`: the rest is left for sending the answer in time."""
    text = query.get("timeout")
    return limits.COPY_WAIT_S if text is None else min(limits.COPY_WAIT_S, int(text[:9]) * 0.75)


COPY_WAIT: Final = Field("wait_s", _copy_wait_s, query=("timeout",))
