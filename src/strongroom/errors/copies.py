"""The rows of the error table that copies lead to, between blobs and files of any service.

Source: "Copy Blob", "Copy File", "Put Block From URL" and their neighbours, and "Status and error
codes" of the Azure Storage REST reference.
"""

from __future__ import annotations

from strongroom.errors.core import row

CANNOT_VERIFY_COPY_SOURCE = row("CannotVerifyCopySource", 404, "Could not verify the copy source.")
COPY_SOURCE_FORBIDDEN = row(
    "CannotVerifyCopySource",
    403,
    "This request is not authorized to read the copy source.",
)
COPY_SOURCE_UNAUTHENTICATED = row(
    "CannotVerifyCopySource",
    401,
    "The copy source needs authorization: a SAS in its URL, or x-ms-copy-source-authorization.",
)
COPY_SOURCE_CONDITION_NOT_MET = row(
    "CannotVerifyCopySource",
    412,
    "The condition specified using HTTP conditional header(s) is not met.",
)
COPY_SOURCE_NOT_MODIFIED = row(
    "CannotVerifyCopySource",
    304,
    "The condition specified using HTTP conditional header(s) is not met.",
)
SOURCE_CONDITION_NOT_MET = row(
    "SourceConditionNotMet",
    412,
    "The source condition specified using HTTP conditional header(s) is not met.",
)
NO_PENDING_COPY_OPERATION = row(
    "NoPendingCopyOperation",
    409,
    "There is currently no pending copy operation.",
)
COPY_ID_MISMATCH = row(
    "CopyIdMismatch",
    409,
    "The specified copy ID did not match the copy ID for the pending copy operation.",
)
PENDING_COPY_OPERATION = row(
    "PendingCopyOperation",
    409,
    "There is currently a pending copy operation.",
)
BLOB_ARCHIVED = row("BlobArchived", 409, "This operation is not permitted on an archived blob.")
