"""The Blob service: its operations in the order in which they are matched, and the addresses of its
URLs.

If several operations share a URL, one with more headers comes before one with fewer; Routes refuses
a list in which one hides another.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.auth.request import Service
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import ErrorCode
from strongroom.operations.blob import (
    append,
    batch,
    blob,
    block,
    container,
    copy,
    from_url,
    immutability,
    lease,
    page,
    service,
    tag,
    unserved,
)
from strongroom.operations.core.endpoint import Endpoint, ResourceAddress
from strongroom.operations.core.fields import SCOPE_HEADER
from strongroom.operations.core.routes import Routes
from strongroom.operations.core.spec import Operation, Resource
from strongroom.semantics.core import names
from strongroom.services.core.calls import ConditionUse, Existence
from strongroom.wire.core.path import UrlTarget
from strongroom.wire.core.query import Query

ROUTES: Final = Routes(
    (
        *copy.FIRST,
        *from_url.OPERATIONS,
        *unserved.FIRST,
        *copy.OPERATIONS,
        *service.OPERATIONS,
        *batch.OPERATIONS,
        *container.OPERATIONS,
        *immutability.OPERATIONS,
        *lease.OPERATIONS,
        *block.OPERATIONS,
        *append.OPERATIONS,
        *page.OPERATIONS,
        *blob.OPERATIONS,
        *tag.OPERATIONS,
        *unserved.OPERATIONS,
        # Last of the operations on its URL: a plain PUT without its header is refused for that
        # header.
        page.PUT_PAGE_BLOB,
    )
)


# Parameters of the Data Lake service and their values.
_DATA_LAKE: Final = {
    "resource": frozenset(("account", "directory", "file", "filesystem")),
    "action": frozenset(
        (
            *("append", "checkaccess", "flush", "getaccesscontrol", "getstatus"),
            *("setaccesscontrol", "setaccesscontrolrecursive", "setproperties"),
        )
    ),
}


def _is_data_lake(query: Query) -> bool:
    if "comp" in query or "restype" in query:
        return False
    return any((query.get(name) or "").lower() in words for name, words in _DATA_LAKE.items())


def _address(target: UrlTarget, query: Query) -> ResourceAddress:
    """The resource that a URL names.

    A single segment without `restype` is a blob of the root container. A backslash in a blob's name
    becomes a slash, even in the resource of a SAS. So no blob's name contains a backslash.
    """
    if _is_data_lake(query):
        return ResourceAddress(target, Resource.DATA_LAKE)
    if target.container is None:
        return ResourceAddress(target, Resource.SERVICE)
    if target.blob is None and "restype" not in query and query.get("comp") != "list":
        target = target.in_root()
    if target.blob is None:
        return ResourceAddress(target, Resource.CONTAINER)
    if "\\" in target.blob:
        target = msgspec.structs.replace(target, blob=target.blob.replace("\\", "/"))
    return ResourceAddress(target, Resource.BLOB)


def _check_names(addressed: ResourceAddress) -> None:
    target = addressed.target
    if target.container is not None:
        names.check_container(target.container)
    if target.blob is not None:
        names.check_blob(target.blob, target.container or "")


_SCOPES: Final = frozenset(
    {
        blob_errors.BLOB_CUSTOMER_SPECIFIED_ENCRYPTION_MISMATCH,
        blob_errors.REQUEST_FORBIDDEN_BY_CONTAINER_ENCRYPTION_POLICY,
    }
)


def _implied_errors(operation: Operation) -> frozenset[ErrorCode]:
    """What follows for blobs alone from the operation's rule, its resource and its headers."""
    rule = operation.rule
    creates = rule.existence is Existence.CREATES
    implied = frozenset[ErrorCode]()
    if rule.names_scope:
        implied |= {blob_errors.BLOB_USES_CUSTOMER_SPECIFIED_ENCRYPTION}
    if rule.kind is not None:
        implied |= {blob_errors.INVALID_BLOB_TYPE}
    if creates and rule.conditions is ConditionUse.WRITE:
        implied |= {blob_errors.BLOB_ALREADY_EXISTS}
    if not creates and operation.resource is Resource.BLOB:
        implied |= {blob_errors.BLOB_NOT_FOUND}
    if any(SCOPE_HEADER in one.headers for one in operation.accepts):
        implied |= _SCOPES
    return implied


ENDPOINT: Final = Endpoint(
    Service.BLOB,
    ROUTES,
    _address,
    _check_names,
    refuse_unserved=unserved.refuse_unserved,
    implied=_implied_errors,
)
