"""The File service: its operations, and how its URLs are read.

Source: "Naming and referencing shares, directories, files, and metadata"; reference file.md 1 and
8.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.auth.refusals import authentication_failed
from strongroom.auth.request import Service
from strongroom.errors.core import invalid_header, missing_header
from strongroom.operations.core import properties
from strongroom.operations.core.delegation import get_user_delegation_key
from strongroom.operations.core.endpoint import Endpoint, ResourceAddress
from strongroom.operations.core.routes import Routes
from strongroom.operations.core.spec import Operation, Resource
from strongroom.operations.file import (
    copy,
    directory,
    file,
    from_url,
    handle,
    links,
    rename,
    share,
    unserved,
)
from strongroom.semantics.file import names
from strongroom.services.core.calls import UNGUARDED
from strongroom.wire.core.http import Headers
from strongroom.wire.core.path import UrlTarget
from strongroom.wire.core.query import Query
from strongroom.wire.core.service_properties_xml import read_file_properties

INTENT: Final = "x-ms-file-request-intent"
BEARER_SINCE: Final = "2022-11-02"
GET_USER_DELEGATION_KEY: Final = get_user_delegation_key(UNGUARDED)
ROUTES: Final = Routes(
    (
        properties.preflight("File"),
        # The File service has no statistics.
        *properties.properties("File", read_file_properties)[:2],
        GET_USER_DELEGATION_KEY,
        *copy.OPERATIONS,
        *share.OPERATIONS,
        *directory.OPERATIONS,
        *from_url.OPERATIONS,
        *file.OPERATIONS,
        *rename.OPERATIONS,
        *handle.OPERATIONS,
        *links.OPERATIONS,
    )
)
_IN_SHARES: Final = (Resource.DIRECTORY, Resource.FILE)
_OF_HANDLES: Final = ("listhandles", "forceclosehandles")


def _address(target: UrlTarget, query: Query) -> ResourceAddress:
    """The resource that a URL addresses: `/`, `/share` or `/share/path`. The share's root is a
    directory whose path is empty.

    A slash at the end of a path changes nothing.
    """
    if target.container is None:
        return ResourceAddress(target, Resource.SERVICE)
    path = (target.blob or "").removesuffix("/")
    named = msgspec.structs.replace(target, blob=path or None)
    if (query.get("restype") or "").lower() == "directory":
        return ResourceAddress(named, Resource.DIRECTORY)
    if path or (query.get("comp") or "").lower() in _OF_HANDLES:
        return ResourceAddress(named, Resource.FILE)
    return ResourceAddress(named, Resource.SHARE)


def _check_names(addressed: ResourceAddress) -> None:
    target = addressed.target
    if target.container is not None:
        names.check_share(target.container)
    if target.blob is not None:
        names.check_path(tuple(target.blob.split("/")))


def _check_bearer(operation: Operation, headers: Headers) -> None:
    """Require the request intent `backup` of a bearer token. With this intent, the permissions of
    files are not checked."""
    if operation is GET_USER_DELEGATION_KEY:
        return
    if (headers.get("x-ms-version") or "") < BEARER_SINCE:
        detail = f"Bearer tokens for files need x-ms-version {BEARER_SINCE} or later."
        raise authentication_failed(detail)
    value = headers.get(INTENT)
    if value is None:
        raise missing_header(INTENT)
    if value.strip().lower() != "backup":
        raise invalid_header(INTENT, value, "The only intent is backup.")


def _needs_holder(operation: Operation) -> bool:
    """What concerns the share's own record alone is served by every gateway, but for its snapshots.
    Their stamps must have an order with those of the writes."""
    return operation.resource in _IN_SHARES or operation is share.SNAPSHOT_SHARE


ENDPOINT: Final = Endpoint(
    Service.FILE,
    ROUTES,
    _address,
    _check_names,
    refuse_unserved=unserved.refuse_unserved,
    check_bearer=_check_bearer,
    needs_holder=_needs_holder,
)
