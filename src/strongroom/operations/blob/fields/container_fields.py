"""The fields of operations on containers, lists and the account, and their parsers.

Source: request headers and parameters of "Operations on containers", "List Blobs".
"""

from __future__ import annotations

from typing import Final

from strongroom.errors.core import missing_header
from strongroom.operations.core.fields import flag, header, parameter
from strongroom.operations.core.listing_fields import includes
from strongroom.operations.core.spec import Field
from strongroom.semantics.blob import encryption_scopes
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


DELETED_NAME: Final = header("name", DELETED_NAME_HEADER, required=True)
DELETED_VERSION: Final = header("version", DELETED_VERSION_HEADER, required=True)
PUBLIC_ACCESS: Final = header(
    "public_access", "x-ms-blob-public-access", _public_access, default=PublicAccess.NONE
)
DEFAULT_SCOPE: Final = header(
    "scope", encryption_scopes.DEFAULT_HEADER, encryption_scopes.read_scope, default=""
)


def _denies_scopes(request: Request, query: Query) -> bool:
    """Whether other encryption scopes than the default are denied."""
    value = request.headers.get(encryption_scopes.DENY_HEADER)
    if value is None:
        return False
    if request.headers.get(encryption_scopes.DEFAULT_HEADER) is None:
        raise missing_header(encryption_scopes.DEFAULT_HEADER)
    return flag(encryption_scopes.DENY_HEADER, value)


DENIES_SCOPES: Final = Field(
    "denies_scopes",
    _denies_scopes,
    headers=(encryption_scopes.DENY_HEADER, encryption_scopes.DEFAULT_HEADER),
)


MARKER: Final = parameter(
    "start", "marker", lambda name, value: listing.decode_marker(value), default=listing.START
)
START_FROM: Final = parameter("start_from", "startfrom", default="")
BLOB_INCLUDES: Final = includes(list_blobs.INCLUDES)
CONTAINER_INCLUDES: Final = includes(list_containers.INCLUDES)
