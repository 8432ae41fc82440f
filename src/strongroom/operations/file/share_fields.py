"""The fields of operations on shares: how each is read.

Source: request headers and parameters of "Operations on shares" and "List Shares".
"""

from __future__ import annotations

from typing import Final

from strongroom.operations.core.fields import header, integer, one_of, parameter
from strongroom.operations.core.spec import Field
from strongroom.semantics.core import listing
from strongroom.semantics.core.snapshot_times import snapshot_time
from strongroom.semantics.file import shares as rules
from strongroom.services.file.shares import list_shares
from strongroom.services.file.shares.share_snapshots import DeletedSnapshots
from strongroom.services.file.snapshots.sweep import DELETED_NAME_HEADER, DELETED_VERSION_HEADER

_QUOTA: Final = "x-ms-share-quota"
_TIER: Final = "x-ms-access-tier"

QUOTA: Final = header(
    "quota_gib", _QUOTA, integer(*rules.QUOTA_GIB), default=rules.DEFAULT_QUOTA_GIB
)
NEW_QUOTA: Final = header("quota_gib", _QUOTA, integer(*rules.QUOTA_GIB))
TIER: Final = header("tier", _TIER, rules.read_tier, default=rules.DEFAULT_TIER)
NEW_TIER: Final = header("tier", _TIER, rules.read_tier)
PROTOCOLS: Final = header("", "x-ms-enabled-protocols", rules.check_protocols)
"""Refuses protocols other than SMB. It sets no field, since every share is for SMB."""


def share_snapshot(text: str) -> int:
    return snapshot_time(text, "sharesnapshot")


def _delete_snapshots(name: str, value: str) -> DeletedSnapshots:
    return DeletedSnapshots(one_of("include", "include-leased")(name, value))


DELETE_SNAPSHOTS: Final = header("snapshots", "x-ms-delete-snapshots", _delete_snapshots)
DELETED_NAME: Final = header("name", DELETED_NAME_HEADER, required=True)
DELETED_VERSION: Final = header("version", DELETED_VERSION_HEADER, required=True)
MARKER: Final = parameter(
    "start", "marker", lambda name, value: listing.decode_marker(value), default=listing.START
)
SHARE_INCLUDES: Final = Field(
    "include",
    lambda request, query: query.comma_list("include", list_shares.INCLUDES),
    query=("include",),
)
