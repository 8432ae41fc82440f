"""Declarations: Blob Batch, of an account and of a container.

Lives here: data only. Must not live here: multipart (wire/core/multipart.py), how the parts are
carried out (servers/batches.py). Source: "Blob Batch"; docs/operations/blob.md, table "Service".
"""

from __future__ import annotations

from functools import partial
from typing import Final

from strongroom import blob_errors, limits
from strongroom.auth.authorize import Permission
from strongroom.auth.request import Service
from strongroom.auth.sas import ACCOUNT_LETTERS, PERMISSION_LETTERS
from strongroom.operations.blob.blob import DELETE_BLOB, SET_BLOB_TIER
from strongroom.operations.core import permissions
from strongroom.operations.core.fields import header
from strongroom.operations.core.spec import Body, Operation, Resource
from strongroom.wire.core import multipart

# Each request in a batch is authorized by itself: any token and any role may bring one.
_ANY_ACCOUNT_SAS: Final = ("sco", tuple(ACCOUNT_LETTERS))
_ANY_SAS: Final = tuple(PERMISSION_LETTERS[Service.BLOB])


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
        input=partial(multipart.parse_each, requests_max=limits.BLOB_BATCH_REQUESTS_MAX),
        accepts=(header("content_type", "content-type", default=""),),
        body=Body("body", bytes, limits.BLOB_BATCH_BODY_BYTES_MAX),
        success=202,
        fails=(blob_errors.EXCEEDS_MAX_BATCH_REQUEST_COUNT,),
        parts=(DELETE_BLOB, SET_BLOB_TIER),
    )


_OF_ACCOUNT: Final = Permission(
    _ANY_ACCOUNT_SAS, actions=permissions.ANY_BLOB_ACTION, anywhere=True
)
BLOB_BATCH: Final = _batch(
    "Blob Batch", "service_submit_batch", Resource.SERVICE, None, _OF_ACCOUNT
)
# Some clients send the batch of an account with the `restype` of a container's.
BLOB_BATCH_WITH_RESTYPE: Final = _batch(
    "Blob Batch", "service_submit_batch", Resource.SERVICE, "container", _OF_ACCOUNT
)
BLOB_BATCH_CONTAINER: Final = _batch(
    "Blob Batch (container)",
    "container_submit_batch",
    Resource.CONTAINER,
    "container",
    Permission(_ANY_ACCOUNT_SAS, _ANY_SAS, actions=permissions.ANY_BLOB_ACTION, anywhere=True),
)

OPERATIONS: Final = (BLOB_BATCH_WITH_RESTYPE, BLOB_BATCH, BLOB_BATCH_CONTAINER)
