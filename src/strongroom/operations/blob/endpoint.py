"""The Blob service: its operations in the order in which they are matched, and the addresses of its
URLs.

Lives here: the list. If several operations share a URL, one with more headers comes before one with
fewer; Routes refuses a list in which one hides another.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.auth.request import Service
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
from strongroom.operations.blob.implied_errors import implied_errors
from strongroom.operations.core.endpoint import Endpoint, ResourceAddress
from strongroom.operations.core.routes import Routes
from strongroom.operations.core.spec import Resource
from strongroom.semantics.core import names
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


def _is_data_lake(asked: Query) -> bool:
    if "comp" in asked or "restype" in asked:
        return False
    return any((asked.get(name) or "").lower() in words for name, words in _DATA_LAKE.items())


def _address(target: UrlTarget, asked: Query) -> ResourceAddress:
    """Return the resource that a URL names.

    A single segment without `restype` is a blob of the root container. A backslash in a blob's name
    becomes a slash, even in the resource of a SAS. So no blob's name contains a backslash.
    """
    if _is_data_lake(asked):
        return ResourceAddress(target, Resource.DATA_LAKE)
    if target.container is None:
        return ResourceAddress(target, Resource.SERVICE)
    if target.blob is None and "restype" not in asked and asked.get("comp") != "list":
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


ENDPOINT: Final = Endpoint(
    Service.BLOB,
    ROUTES,
    _address,
    _check_names,
    refuse_unserved=unserved.refuse_unserved,
    implied=implied_errors,
)
