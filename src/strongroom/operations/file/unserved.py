"""The features of Azure Files that this server does not serve yet: operations, headers, parameters.

Lives here: declarations without a service function (answered 501 with their name), and the headers
that ask for more than is done. Source: docs/operations/file.md, rows marked
`not yet`.
"""

from __future__ import annotations

from typing import Final

from strongroom.auth.authorize import Permission
from strongroom.operations.core import permissions as may
from strongroom.operations.core.spec import Operation, Resource, When
from strongroom.operations.core.unserved import not_served
from strongroom.wire.core.http import Headers
from strongroom.wire.core.query import Query

_SHARE, _FILE = Resource.SHARE, Resource.FILE


def _later(
    name: str,
    id: str,
    methods: tuple[str, ...],
    resource: Resource,
    permission: Permission,
    *,
    comp: str | None = None,
    when: tuple[When, ...] = (),
    restype: str | None = None,
) -> Operation:
    return Operation(
        name=name,
        id=id,
        methods=methods,
        resource=resource,
        restype=restype,
        comp=comp,
        when=when,
        permission=permission,
    )


_PUT: Final = ("PUT",)

OPERATIONS: Final = (
    _later("Create Symbolic Link", "file_create_symbolic_link", _PUT, _FILE, may.FILE_CREATE,
           restype="symboliclink"),
    _later("Get Symbolic Link", "file_get_symbolic_link", ("GET",), _FILE, may.FILE_READ,
           restype="symboliclink"),
    _later("Create Hard Link", "file_create_hard_link", _PUT, _FILE, may.FILE_CREATE,
           restype="hardlink"),
)  # fmt: skip

_HEADERS: Final = frozenset(
    (
        # Shares for NFS, and links, owners and modes in them.
        *("x-ms-root-squash", "x-ms-enable-snapshot-virtual-directory-access"),
        *("x-ms-owner", "x-ms-group", "x-ms-mode", "x-ms-file-file-type"),
        "x-ms-structured-body",
        # Shares with provisioned throughput.
        *("x-ms-share-provisioned-iops", "x-ms-share-provisioned-bandwidth-mibps"),
        *("x-ms-share-paid-bursting-enabled", "x-ms-share-paid-bursting-max-iops"),
        *("x-ms-share-paid-bursting-max-bandwidth-mibps", "x-ms-enable-smb-directory-lease"),
    )
)


def refuse_unserved(headers: Headers, query: Query) -> None:
    """501 for a header that asks for something that is not served.

    Raises: StorageError NotImplemented that names it.
    """
    if headers.has_none_of(_HEADERS):
        return  # as nearly always
    for name, _ in headers.lowered():
        if name in _HEADERS:
            raise not_served(f"The header {name}")
