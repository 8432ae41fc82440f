"""The features of Azure Blob Storage that this server does not serve yet: operations, headers and
parameters, by name.

Declarations without a service function are answered 501 with their name, or with the refusal of an
account without hierarchical namespace. By that, clients find out which kind an account is. Headers
and parameters of unsupported features are refused too, so that no request is silently served in
part. Source: docs/operations/blob.md, rows marked `not yet`.
"""

from __future__ import annotations

from typing import Final

from strongroom.auth.authorize import Permission
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import ErrorCode, not_served
from strongroom.operations.core import permissions
from strongroom.operations.core.spec import Operation, Resource, When
from strongroom.wire.core.http import Headers
from strongroom.wire.core.query import Query

_SERVICE, _CONTAINER, _BLOB = Resource.SERVICE, Resource.CONTAINER, Resource.BLOB
# Azure serves these requests under another host name (dfs); here they arrive at the blob port.
_DATA_LAKE: Final = "Data Lake (dfs)"
_METHODS: Final = ("GET", "HEAD", "PUT", "PATCH", "POST", "DELETE")


def _unserved(
    name: str,
    id: str,
    method: str,
    resource: Resource,
    permission: Permission,
    comp: str | None,
    *when: When,
    restype: str | None = None,
    refusal: ErrorCode | None = None,
) -> Operation:
    return Operation(
        name=name,
        id=id,
        methods=(method,),
        resource=resource,
        restype=restype,
        comp=comp,
        when=when,
        permission=permission,
        refusal=refusal,
    )


_W, _R = permissions.WRITE, permissions.READ
_FLAT: Final = blob_errors.HIERARCHICAL_NAMESPACE_NOT_ENABLED
FIRST: Final = (
    _unserved(_DATA_LAKE, "data_lake", "PUT", _BLOB, permissions.ANY_OF_BLOBS, None,
           When("x-ms-rename-source")),
)  # fmt: skip
"""Matched before the served operations on the same URL, since it requires one header more."""

OPERATIONS: Final = (
    _unserved("Rename Container", "container_rename", "PUT", _CONTAINER,
           permissions.CONTAINER_WRITE, "rename", restype="container"),
    _unserved("Set Blob Expiry", "blob_set_expiry", "PUT", _BLOB, _W, "expiry", refusal=_FLAT),
    _unserved("Query Blob Contents", "blob_query", "POST", _BLOB, _R, "query"),
    Operation(name="Get Access Control (dfs)", id="data_lake_get_access_control",
              methods=("GET", "HEAD"), resource=Resource.DATA_LAKE,
              when=(When("?action", "getAccessControl"),),
              permission=permissions.ANY_OF_BLOBS, refusal=_FLAT),
    Operation(name=_DATA_LAKE, id="data_lake", methods=_METHODS, resource=Resource.DATA_LAKE,
              permission=permissions.ANY_OF_BLOBS),
)  # fmt: skip

_HEADERS: Final[dict[str, str | None]] = {
    # header: the value that asks for it (None = any)
    "x-ms-encryption-key": None,
    "x-ms-encryption-key-sha256": None,
    "x-ms-encryption-algorithm": None,
    "x-ms-source-encryption-key": None,
    "x-ms-source-encryption-key-sha256": None,
    "x-ms-source-encryption-algorithm": None,
}
_QUERY: Final[dict[str, str | None]] = {
    "showonly": None,
}
_ASKED_IN_HEADERS: Final = frozenset(_HEADERS)
_ASKED_IN_QUERY: Final = frozenset(_QUERY)


def refuse_unserved(headers: Headers, query: Query) -> None:
    if headers.has_none_of(_ASKED_IN_HEADERS) and query.has_none_of(_ASKED_IN_QUERY):
        return  # the usual case
    for name, value in headers.lowered():
        if name in _HEADERS and _HEADERS[name] in (None, value.lower()):
            raise not_served(f"The header {name}")
    for name in query:
        if name in _QUERY and _QUERY[name] in (None, (query.get(name) or "").lower()):
            raise not_served(f"The query parameter {query.as_sent(name)}")
