"""Declarations: blobs' tags, and the searches by them.

Source: "Get Blob Tags", "Set Blob Tags" and "Find Blobs by Tags" of the REST reference;
docs/operations/blob.md, tables "Service" and "Blobs".
"""

from __future__ import annotations

from typing import Final

from strongroom import limits
from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.operations.blob import documents
from strongroom.operations.blob.fields import blob_fields, tag_fields
from strongroom.operations.core import permissions
from strongroom.operations.core.answers import XML
from strongroom.operations.core.listing_fields import MAX_RESULTS
from strongroom.operations.core.spec import BodyKind, Operation, Resource
from strongroom.semantics.blob.snapshots import version_time
from strongroom.semantics.core.lease import LeaseUse
from strongroom.semantics.core.snapshot_times import snapshot_time
from strongroom.services.blob.bodies import intake
from strongroom.services.blob.tags import find_blobs, tagging
from strongroom.services.core.calls import ConditionUse, Rule

GET_BLOB_TAGS: Final = Operation(
    name="Get Blob Tags",
    id="blob_get_tags",
    methods=("GET",),
    resource=Resource.BLOB,
    comp="tags",
    permission=permissions.GET_TAGS,
    rule=Rule(LeaseUse.READ, ConditionUse.BLOB_READ),
    snapshots=snapshot_time,
    versions=version_time,
    returns=(XML,),
    content=documents.tags,
    run=tagging.get_tags,
)

SET_BLOB_TAGS: Final = Operation(
    name="Set Blob Tags",
    id="blob_set_tags",
    methods=("PUT",),
    resource=Resource.BLOB,
    comp="tags",
    permission=permissions.SET_TAGS,
    rule=Rule(LeaseUse.WRITE, ConditionUse.BLOB_WRITE),
    versions=version_time,
    input=tagging.SetTags,
    accepts=(blob_fields.DIGESTS,),
    body=BodyKind(
        "tags", tag_fields.tags, limits.XML_BODY_BYTES_MAX, receipt=intake.document_receipt
    ),
    success=204,
    fails=(
        blob_errors.DUPLICATE_TAG_NAMES,
        blob_errors.EMPTY_TAG_NAME,
        blob_errors.INVALID_TAG,
        blob_errors.TAGS_TOO_LARGE,
        copy_errors.PENDING_COPY_OPERATION,
    ),
    run=tagging.set_tags,
)

FIND_BLOBS: Final = Operation(
    name="Find Blobs by Tags",
    id="service_filter_blobs",
    methods=("GET",),
    resource=Resource.SERVICE,
    comp="blobs",
    permission=permissions.FIND,
    input=find_blobs.FindBlobs,
    accepts=(tag_fields.WHERE, tag_fields.MARKER, MAX_RESULTS, tag_fields.INCLUDES),
    returns=(XML,),
    content=documents.found_blobs,
    run=find_blobs.find_blobs,
)

FIND_BLOBS_CONTAINER: Final = Operation(
    name="Find Blobs by Tags (container)",
    id="container_filter_blobs",
    methods=("GET",),
    resource=Resource.CONTAINER,
    restype="container",
    comp="blobs",
    permission=permissions.FIND_HERE,
    input=find_blobs.FindBlobs,
    accepts=(tag_fields.WHERE_HERE, tag_fields.MARKER, MAX_RESULTS, tag_fields.INCLUDES),
    returns=(XML,),
    content=documents.found_blobs,
    run=find_blobs.find_blobs,
)

OPERATIONS: Final = (GET_BLOB_TAGS, SET_BLOB_TAGS, FIND_BLOBS, FIND_BLOBS_CONTAINER)
