"""The fields of operations on containers, leases, lists and the account: how each is read.

Must not live here: what the values mean (services/, semantics/), fields that blobs have too
(fields.py). Source: request headers and parameters of "Operations on containers", "Lease Blob",
"List Blobs".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors import missing_header
from strongroom.operations.core.fields import LEASE_ID_HEADER, filled, header, integer, parameter
from strongroom.operations.core.listing_fields import ANY_INTEGER, includes
from strongroom.operations.core.spec import Field
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core import listing
from strongroom.services.blob import list_blobs
from strongroom.services.blob.containers import list_containers
from strongroom.services.blob.containers.containers import (
    DELETED_NAME_HEADER,
    DELETED_VERSION_HEADER,
)
from strongroom.values import PublicAccess
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query


def _public_access(name: str, value: str) -> PublicAccess:
    return PublicAccess(wire.one_of(name, value, ("container", "blob")))


def _duration_s(name: str, value: str) -> int:
    return leases.require_duration(wire.integer(name, value, -ANY_INTEGER, ANY_INTEGER))


DELETED_NAME: Final = header("name", DELETED_NAME_HEADER, required=True)
DELETED_VERSION: Final = header("version", DELETED_VERSION_HEADER, required=True)
PUBLIC_ACCESS: Final = header(
    "public_access", "x-ms-blob-public-access", _public_access, default=PublicAccess.NONE
)
DURATION: Final = header("duration_s", "x-ms-lease-duration", _duration_s, required=True)
PROPOSED_ID: Final = header("proposed_id", "x-ms-proposed-lease-id", wire.guid)
NEW_ID: Final = header("proposed_id", "x-ms-proposed-lease-id", wire.guid, required=True)
BREAK_PERIOD: Final = header(
    "period_s", "x-ms-lease-break-period", integer(*limits.LEASE_BREAK_PERIOD_S)
)


def _held_id(request: Request, query: Query) -> None:
    if filled(request, LEASE_ID_HEADER) is None:
        raise missing_header(LEASE_ID_HEADER)


HELD_ID: Final = Field("", _held_id, headers=(LEASE_ID_HEADER,))
"""Sees to it that the lease's id was sent; it is in the call already, so this fills nothing."""


MARKER: Final = parameter(
    "start", "marker", lambda name, value: listing.decode_marker(value), default=listing.START
)
START_FROM: Final = parameter("start_from", "startfrom", default="")
BLOB_INCLUDES: Final = includes(list_blobs.INCLUDES)
CONTAINER_INCLUDES: Final = includes(list_containers.INCLUDES)
