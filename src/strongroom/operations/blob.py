"""Declarations: operations on a blob as a whole, in the order of the Azure reference.

Lives here: data only. Must not live here: functions. Source: "Operations on Blobs" of the REST
reference; docs/operations/blob.md, table "Blobs".
"""

from __future__ import annotations

from typing import Final

from strongroom import errors
from strongroom.operations import documents, fields, permissions
from strongroom.operations import returned as give
from strongroom.operations.spec import STREAM, Operation, Resource, When
from strongroom.semantics.lease import LeaseUse
from strongroom.services import blobs
from strongroom.services.calls import ConditionUse, Existence, Rule

READS: Final = Rule(LeaseUse.READ, ConditionUse.READ)
WRITES: Final = Rule(LeaseUse.WRITE, ConditionUse.WRITE)
CREATES: Final = Rule(LeaseUse.WRITE, ConditionUse.WRITE, Existence.CREATES)

PUT_BLOB: Final = Operation(
    name="Put Blob",
    id="blockblob_upload",
    methods=("PUT",),
    resource=Resource.BLOB,
    when=(When("x-ms-blob-type", "BlockBlob"),),
    permission=permissions.CREATE,
    rule=CREATES,
    input=blobs.PutBlob,
    accepts=(
        fields.NO_PAGE_HEADERS,
        fields.BODY_PROPERTIES,
        fields.METADATA,
        fields.DIGESTS,
        fields.TIER,
        fields.TAGS,
    ),
    body=STREAM,
    success=201,
    returns=(give.ETAG, give.LAST_MODIFIED, give.BODY_MD5, give.BODY_CRC64, give.ENCRYPTED),
    fails=(
        errors.MISSING_CONTENT_LENGTH_HEADER,
        errors.REQUEST_BODY_TOO_LARGE,
        errors.UNAUTHORIZED_BLOB_OVERWRITE,
        errors.PENDING_COPY_OPERATION,
    ),
    run=blobs.put_blob,
)

GET_BLOB: Final = Operation(
    name="Get Blob",
    id="blob_download",
    methods=("GET",),
    resource=Resource.BLOB,
    permission=permissions.READ,
    rule=READS,
    snapshots=True,
    waits=True,
    input=blobs.GetBlob,
    accepts=(fields.RANGE, fields.RANGE_MD5, fields.RANGE_CRC64),
    success=documents.download_status,
    spreads=give.blob_headers,
    content=documents.download,
    fails=(
        errors.INVALID_RANGE,
        errors.OUT_OF_RANGE_INPUT,
        errors.BOTH_CRC64_AND_MD5_HEADER_PRESENT,
    ),
    run=blobs.get_blob,
)

GET_BLOB_PROPERTIES: Final = Operation(
    name="Get Blob Properties",
    id="blob_get_properties",
    methods=("HEAD",),
    resource=Resource.BLOB,
    permission=permissions.READ,
    rule=READS,
    snapshots=True,
    waits=True,
    spreads=give.blob_headers,
    content=documents.head_only,
    run=blobs.get_properties,
)

GET_BLOB_METADATA: Final = Operation(
    name="Get Blob Metadata",
    id="blob_get_metadata",
    methods=("GET", "HEAD"),
    resource=Resource.BLOB,
    comp="metadata",
    permission=permissions.READ,
    rule=READS,
    snapshots=True,
    waits=True,
    returns=(give.BLOB_ETAG, give.BLOB_LAST_MODIFIED),
    spreads=give.blob_metadata,
    run=blobs.get_properties,
)

OPERATIONS: Final = (PUT_BLOB, GET_BLOB, GET_BLOB_PROPERTIES, GET_BLOB_METADATA)
