"""The features of Azure Files that this server does not serve yet: headers.

Source: docs/operations/file.md, F-ADR-06.
"""

from __future__ import annotations

from typing import Final

from strongroom.errors.core import not_served
from strongroom.wire.core.http import Headers
from strongroom.wire.core.query import Query

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
    if headers.has_none_of(_HEADERS):
        return  # as nearly always
    for name, _ in headers.lowered():
        if name in _HEADERS:
            raise not_served(f"The header {name}")
