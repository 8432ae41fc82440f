"""Declarations: Blob Batch, of an account and of a container.

servers/requests/batches.py runs the parts. Source: "Blob Batch"; docs/operations/blob.md, table
"Service".
"""

from __future__ import annotations

from functools import partial
from typing import Final

from strongroom import limits
from strongroom.auth.authorize import Permission
from strongroom.errors import blob as blob_errors
from strongroom.operations.blob.blob import (
    DELETE_BLOB,
    DELETE_PERMANENTLY,
    DELETE_VERSION,
    SET_BLOB_TIER,
)
from strongroom.operations.core import permissions
from strongroom.operations.core.fields import header
from strongroom.operations.core.spec import BodyKind, Operation, Resource
from strongroom.wire.core import multipart


def _batch(
    name: str, id: str, resource: Resource, restype: str | None, permission: Permission
) -> Operation:
    return Operation(
        name=name,
        id=id,
        methods=("POST",),
        resource=resource,
        restype=restype,
        comp="batch",
        permission=permission,
        input=partial(multipart.parse_independent, requests_max=limits.BLOB_BATCH_REQUESTS_MAX),
        accepts=(header("content_type", "content-type", default=""),),
        body=BodyKind("body", bytes, limits.BLOB_BATCH_BODY_BYTES_MAX),
        success=202,
        fails=(blob_errors.EXCEEDS_MAX_BATCH_REQUEST_COUNT,),
        parts=(DELETE_BLOB, DELETE_VERSION, DELETE_PERMANENTLY, SET_BLOB_TIER),
    )


BLOB_BATCH: Final = _batch(
    "Blob Batch", "service_submit_batch", Resource.SERVICE, None, permissions.ANY_OF_ACCOUNT
)
# Some clients send the batch of an account with the `restype` of a container's.
BLOB_BATCH_WITH_RESTYPE: Final = _batch(
    "Blob Batch", "service_submit_batch", Resource.SERVICE, "container", permissions.ANY_OF_ACCOUNT
)
BLOB_BATCH_CONTAINER: Final = _batch(
    "Blob Batch (container)",
    "container_submit_batch",
    Resource.CONTAINER,
    "container",
    permissions.ANY_OF_BLOBS,
)

OPERATIONS: Final = (BLOB_BATCH_WITH_RESTYPE, BLOB_BATCH, BLOB_BATCH_CONTAINER)
