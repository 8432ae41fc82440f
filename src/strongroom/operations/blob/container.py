"""Declarations: operations on containers, in the order of the Azure reference.

Source: "Operations on containers" of the REST reference; docs/operations/blob.md, table
"Containers".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors import blob as blob_errors
from strongroom.operations.blob import listings
from strongroom.operations.blob.fields import container_fields as fields
from strongroom.operations.blob.fields import container_returned as container
from strongroom.operations.blob.fields import returned as give
from strongroom.operations.core import permissions
from strongroom.operations.core.answers import XML, metadata
from strongroom.operations.core.fields import METADATA
from strongroom.operations.core.listing_fields import DELIMITER, MAX_RESULTS, PREFIX
from strongroom.operations.core.spec import BodyKind, Operation, Resource, When
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.blob import list_blobs
from strongroom.services.blob.containers import containers
from strongroom.services.core.calls import ConditionUse, Rule
from strongroom.services.core.place_records import SetPlaceMetadata
from strongroom.services.core.soft_deleted_places import RestorePlace
from strongroom.values import Purpose
from strongroom.wire.core.signed_identifiers import read_signed_identifiers

READS: Final = Rule(LeaseUse.READ_CONTAINER, ConditionUse.REFUSED)

CREATE_CONTAINER: Final = Operation(
    name="Create Container",
    id="container_create",
    methods=("PUT",),
    resource=Resource.CONTAINER,
    restype="container",
    permission=permissions.CONTAINER_CREATE,
    input=containers.CreateContainer,
    accepts=(METADATA, fields.PUBLIC_ACCESS, fields.DEFAULT_SCOPE, fields.DENIES_SCOPES),
    success=201,
    returns=(give.ETAG, give.LAST_MODIFIED),
    fails=(blob_errors.CONTAINER_ALREADY_EXISTS,),
    run=containers.create_container,
)

GET_CONTAINER_PROPERTIES: Final = Operation(
    name="Get Container Properties",
    id="container_get_properties",
    methods=("GET", "HEAD"),
    resource=Resource.CONTAINER,
    restype="container",
    permission=permissions.CONTAINER_READ,
    rule=READS,
    waits=True,
    returns=(container.CONTAINER_ETAG, container.CONTAINER_LAST_MODIFIED),
    extra_headers=container.container_headers,
    run=containers.get_container,
)

GET_CONTAINER_METADATA: Final = Operation(
    name="Get Container Metadata",
    id="container_get_metadata",
    methods=("GET", "HEAD"),
    resource=Resource.CONTAINER,
    restype="container",
    comp="metadata",
    permission=permissions.CONTAINER_READ,
    rule=READS,
    waits=True,
    returns=(container.CONTAINER_ETAG, container.CONTAINER_LAST_MODIFIED),
    extra_headers=metadata,
    run=containers.get_container,
)

SET_CONTAINER_METADATA: Final = Operation(
    name="Set Container Metadata",
    id="container_set_metadata",
    methods=("PUT",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="metadata",
    permission=permissions.CONTAINER_WRITE,
    rule=Rule(LeaseUse.READ_CONTAINER, ConditionUse.MODIFIED_SINCE),
    input=SetPlaceMetadata,
    accepts=(METADATA,),
    returns=(give.ETAG, give.LAST_MODIFIED),
    run=containers.set_metadata,
)

GET_CONTAINER_ACL: Final = Operation(
    name="Get Container ACL",
    id="container_get_access_policy",
    methods=("GET", "HEAD"),
    resource=Resource.CONTAINER,
    restype="container",
    comp="acl",
    permission=permissions.GET_ACL,
    rule=READS,
    waits=True,
    returns=(
        container.CONTAINER_ETAG,
        container.CONTAINER_LAST_MODIFIED,
        container.PUBLIC_ACCESS,
        XML,
    ),
    content=listings.acl,
    run=containers.get_container,
)

SET_CONTAINER_ACL: Final = Operation(
    name="Set Container ACL",
    id="container_set_access_policy",
    methods=("PUT",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="acl",
    permission=permissions.SET_ACL,
    rule=Rule(LeaseUse.READ_CONTAINER, ConditionUse.DATES),
    input=containers.SetContainerAcl,
    accepts=(fields.PUBLIC_ACCESS,),
    body=BodyKind("policies", read_signed_identifiers, limits.XML_BODY_BYTES_MAX),
    returns=(give.ETAG, give.LAST_MODIFIED),
    run=containers.set_acl,
)

DELETE_CONTAINER: Final = Operation(
    name="Delete Container",
    id="container_delete",
    methods=("DELETE",),
    resource=Resource.CONTAINER,
    restype="container",
    permission=permissions.CONTAINER_DELETE,
    rule=Rule(LeaseUse.DELETE_CONTAINER, ConditionUse.DATES, purpose=Purpose.FREEING),
    success=202,
    fails=(
        blob_errors.CONTAINER_PROTECTED_FROM_DELETION,
        blob_errors.CONTAINER_IMMUTABILITY_POLICY_LOCKED,
        blob_errors.CONTAINER_HAS_LEGAL_HOLD,
    ),
    run=containers.delete_container,
)

RESTORE_CONTAINER: Final = Operation(
    name="Restore Container",
    id="container_restore",
    methods=("PUT",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="undelete",
    permission=permissions.CONTAINER_WRITE,
    input=RestorePlace,
    accepts=(fields.DELETED_NAME, fields.DELETED_VERSION),
    success=201,
    fails=(blob_errors.CONTAINER_ALREADY_EXISTS,),
    run=containers.restore_container,
)

LIST_BLOBS_HIERARCHY: Final = Operation(
    name="List Blobs (hierarchy)",
    id="container_list_blob_hierarchy_segment",
    methods=("GET",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="list",
    when=(When("?delimiter"),),
    permission=permissions.LIST,
    input=list_blobs.ListBlobs,
    accepts=(
        PREFIX,
        DELIMITER,
        fields.MARKER,
        fields.START_FROM,
        MAX_RESULTS,
        fields.BLOB_INCLUDES,
    ),
    returns=(XML,),
    content=listings.blobs,
    run=list_blobs.list_blobs,
)

LIST_BLOBS: Final = Operation(
    name="List Blobs",
    id="container_list_blob_flat_segment",
    methods=("GET",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="list",
    permission=permissions.LIST,
    input=list_blobs.ListBlobs,
    accepts=(PREFIX, fields.MARKER, fields.START_FROM, MAX_RESULTS, fields.BLOB_INCLUDES),
    returns=(XML,),
    content=listings.blobs,
    run=list_blobs.list_blobs,
)

OPERATIONS: Final = (
    CREATE_CONTAINER,
    GET_CONTAINER_PROPERTIES,
    GET_CONTAINER_METADATA,
    SET_CONTAINER_METADATA,
    GET_CONTAINER_ACL,
    SET_CONTAINER_ACL,
    DELETE_CONTAINER,
    RESTORE_CONTAINER,
    LIST_BLOBS_HIERARCHY,
    LIST_BLOBS,
)
