"""Declarations: operations on shares, in the order of the Azure reference.

Source: "Operations on shares" of the REST reference; docs/operations/file.md, tables "Service" and
"Shares".
"""

from __future__ import annotations

import dataclasses
from typing import Final

from strongroom import limits
from strongroom.errors import file as file_errors
from strongroom.operations.core import permissions
from strongroom.operations.core.answers import XML, metadata
from strongroom.operations.core.fields import METADATA
from strongroom.operations.core.leases import ACTIONS, LeasedKind, declared
from strongroom.operations.core.listing_fields import MAX_RESULTS, PREFIX
from strongroom.operations.core.spec import BodyKind, Operation, Resource
from strongroom.operations.file import file_fields, file_returned
from strongroom.operations.file import share_fields as fields
from strongroom.operations.file import share_returned as give
from strongroom.semantics.core.lease import LeaseUse
from strongroom.semantics.file.permissions import PERMISSION_BYTES_MAX
from strongroom.services.core.calls import ConditionUse, Rule
from strongroom.services.core.place_records import SetPlaceMetadata
from strongroom.services.core.soft_deleted_places import RestorePlace
from strongroom.services.file.names import permissions as file_permissions
from strongroom.services.file.rest import leasing
from strongroom.services.file.shares import list_shares, share_snapshots, shares
from strongroom.values import Purpose
from strongroom.wire.core.signed_identifiers import read_signed_identifiers

PLAIN: Final = Rule(conditions=ConditionUse.IGNORED)
READS: Final = Rule(LeaseUse.READ_SHARE, ConditionUse.IGNORED)
WRITES: Final = Rule(LeaseUse.WRITE_SHARE, ConditionUse.IGNORED)
DELETES: Final = Rule(LeaseUse.WRITE_SHARE, ConditionUse.IGNORED, purpose=Purpose.FREEING)

# The size of a permission whose characters may all be escaped, and of the JSON around it.
_PERMISSION_BODY_BYTES_MAX: Final = 8 * PERMISSION_BYTES_MAX

LIST_SHARES: Final = Operation(
    name="List Shares",
    id="service_list_shares_segment",
    methods=("GET",),
    resource=Resource.SERVICE,
    comp="list",
    permission=permissions.SHARE_LIST,
    rule=PLAIN,
    input=list_shares.ListShares,
    accepts=(PREFIX, fields.MARKER, MAX_RESULTS, fields.SHARE_INCLUDES),
    returns=(XML,),
    content=give.shares,
    run=list_shares.list_shares,
)

CREATE_SHARE: Final = Operation(
    name="Create Share",
    id="share_create",
    methods=("PUT",),
    resource=Resource.SHARE,
    restype="share",
    permission=permissions.SHARE_CREATE,
    rule=PLAIN,
    input=shares.CreateShare,
    accepts=(METADATA, fields.QUOTA, fields.TIER, fields.PROTOCOLS),
    success=201,
    returns=(give.ETAG, give.LAST_MODIFIED),
    fails=(file_errors.SHARE_ALREADY_EXISTS,),
    run=shares.create_share,
)

GET_SHARE_PROPERTIES: Final = Operation(
    name="Get Share Properties",
    id="share_get_properties",
    methods=("GET", "HEAD"),
    resource=Resource.SHARE,
    restype="share",
    permission=permissions.SHARE_READ,
    rule=READS,
    returns=(give.SHARE_ETAG, give.SHARE_LAST_MODIFIED),
    extra_headers=give.share_headers,
    snapshots=fields.share_snapshot,
    fails=(file_errors.SHARE_SNAPSHOT_NOT_FOUND,),
    run=shares.get_share,
)

SET_SHARE_PROPERTIES: Final = Operation(
    name="Set Share Properties",
    id="share_set_properties",
    methods=("PUT",),
    resource=Resource.SHARE,
    restype="share",
    comp="properties",
    permission=permissions.SHARE_WRITE,
    rule=WRITES,
    input=shares.SetShareProperties,
    accepts=(fields.NEW_QUOTA, fields.NEW_TIER),
    returns=(give.ETAG, give.LAST_MODIFIED),
    run=shares.set_properties,
)

GET_SHARE_METADATA: Final = Operation(
    name="Get Share Metadata",
    id="share_get_metadata",
    methods=("GET", "HEAD"),
    resource=Resource.SHARE,
    restype="share",
    comp="metadata",
    permission=permissions.SHARE_READ,
    rule=READS,
    returns=(give.SHARE_ETAG, give.SHARE_LAST_MODIFIED),
    extra_headers=metadata,
    snapshots=fields.share_snapshot,
    fails=(file_errors.SHARE_SNAPSHOT_NOT_FOUND,),
    run=shares.get_share,
)

SET_SHARE_METADATA: Final = Operation(
    name="Set Share Metadata",
    id="share_set_metadata",
    methods=("PUT",),
    resource=Resource.SHARE,
    restype="share",
    comp="metadata",
    permission=permissions.SHARE_WRITE,
    rule=WRITES,
    input=SetPlaceMetadata,
    accepts=(METADATA,),
    returns=(give.ETAG, give.LAST_MODIFIED),
    run=shares.set_metadata,
)

GET_SHARE_ACL: Final = Operation(
    name="Get Share ACL",
    id="share_get_access_policy",
    methods=("GET",),
    resource=Resource.SHARE,
    restype="share",
    comp="acl",
    permission=permissions.SHARE_ACL,
    rule=READS,
    returns=(give.SHARE_ETAG, give.SHARE_LAST_MODIFIED, XML),
    content=give.acl,
    run=shares.get_share,
)

SET_SHARE_ACL: Final = Operation(
    name="Set Share ACL",
    id="share_set_access_policy",
    methods=("PUT",),
    resource=Resource.SHARE,
    restype="share",
    comp="acl",
    permission=permissions.SHARE_ACL,
    rule=WRITES,
    input=shares.SetShareAcl,
    body=BodyKind("policies", read_signed_identifiers, limits.XML_BODY_BYTES_MAX),
    returns=(give.ETAG, give.LAST_MODIFIED),
    run=shares.set_acl,
)

DELETE_SHARE: Final = Operation(
    name="Delete Share",
    id="share_delete",
    methods=("DELETE",),
    resource=Resource.SHARE,
    restype="share",
    permission=permissions.SHARE_DELETE,
    rule=DELETES,
    snapshots=fields.share_snapshot,
    input=share_snapshots.DeleteShare,
    accepts=(fields.DELETE_SNAPSHOTS,),
    success=202,
    fails=(
        file_errors.SHARE_SNAPSHOT_NOT_FOUND,
        file_errors.SHARE_HAS_SNAPSHOTS,
        file_errors.DELETE_SHARE_WHEN_SNAPSHOT_LEASED,
    ),
    run=share_snapshots.delete_share,
)

GET_SHARE_STATS: Final = Operation(
    name="Get Share Stats",
    id="share_get_statistics",
    methods=("GET",),
    resource=Resource.SHARE,
    restype="share",
    comp="stats",
    permission=permissions.SHARE_READ,
    rule=READS,
    returns=(XML,),
    content=file_returned.stats,
    run=shares.get_stats,
)

SNAPSHOT_SHARE: Final = Operation(
    name="Snapshot Share",
    id="share_create_snapshot",
    methods=("PUT",),
    resource=Resource.SHARE,
    restype="share",
    comp="snapshot",
    permission=permissions.SHARE_CREATE,
    rule=PLAIN,
    input=share_snapshots.SnapshotShare,
    accepts=(METADATA,),
    success=201,
    returns=(give.ETAG, give.LAST_MODIFIED, give.SNAPSHOT),
    fails=(file_errors.SHARE_SNAPSHOT_COUNT_EXCEEDED,),
    run=share_snapshots.snapshot_share,
)

RESTORE_SHARE: Final = Operation(
    name="Restore Share",
    id="share_restore",
    methods=("PUT",),
    resource=Resource.SHARE,
    restype="share",
    comp="undelete",
    permission=permissions.SHARE_WRITE,
    rule=PLAIN,
    input=RestorePlace,
    accepts=(fields.DELETED_NAME, fields.DELETED_VERSION),
    success=201,
    returns=(give.ETAG, give.LAST_MODIFIED),
    fails=(file_errors.SHARE_ALREADY_EXISTS,),
    run=shares.restore_share,
)

CREATE_PERMISSION: Final = Operation(
    name="Create Permission",
    id="share_create_permission",
    methods=("PUT",),
    resource=Resource.SHARE,
    restype="share",
    comp="filepermission",
    permission=permissions.PERMISSION_CREATE,
    rule=PLAIN,
    input=file_permissions.CreatePermission,
    body=BodyKind("text", file_fields.read_permission, _PERMISSION_BODY_BYTES_MAX),
    success=201,
    returns=(file_returned.PERMISSION_KEY,),
    fails=(file_errors.FILE_INVALID_PERMISSION,),
    run=file_permissions.create_permission,
)

GET_PERMISSION: Final = Operation(
    name="Get Permission",
    id="share_get_permission",
    methods=("GET",),
    resource=Resource.SHARE,
    restype="share",
    comp="filepermission",
    permission=permissions.PERMISSION_READ,
    rule=PLAIN,
    input=file_permissions.GetPermission,
    accepts=(file_fields.KEY, file_fields.FORMAT),
    returns=(file_returned.JSON,),
    content=file_returned.permission,
    fails=(file_errors.FILE_INVALID_PERMISSION_KEY,),
    run=file_permissions.get_permission,
)

_LEASED: Final = LeasedKind(
    "Share",
    Resource.SHARE,
    "share",
    permission=permissions.SHARE_WRITE,
    breaks=permissions.SHARE_BREAK,
    rule=Rule(conditions=ConditionUse.IGNORED, purpose=Purpose.UPKEEP),
    run=leasing.lease_share,
    fails=(file_errors.SHARE_SNAPSHOT_NOT_FOUND,),
)

OPERATIONS: Final = (
    LIST_SHARES,
    CREATE_SHARE,
    GET_SHARE_PROPERTIES,
    SET_SHARE_PROPERTIES,
    GET_SHARE_METADATA,
    SET_SHARE_METADATA,
    GET_SHARE_ACL,
    SET_SHARE_ACL,
    GET_SHARE_STATS,
    DELETE_SHARE,
    SNAPSHOT_SHARE,
    RESTORE_SHARE,
    CREATE_PERMISSION,
    GET_PERMISSION,
    *(
        dataclasses.replace(declared(_LEASED, action), snapshots=fields.share_snapshot)
        for action in ACTIONS
    ),
)
