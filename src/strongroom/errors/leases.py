"""The rows of the error table that leases of blobs, containers, files and shares lead to.

Source: "Lease Blob", "Lease Container", "Lease File" and "Lease Share", and "Status and error
codes" of the Azure Storage REST reference.
"""

from __future__ import annotations

from strongroom.errors.core import row

LEASE_ALREADY_BROKEN = row(
    "LeaseAlreadyBroken",
    409,
    "The lease has already been broken and cannot be broken again.",
)
LEASE_ALREADY_PRESENT = row("LeaseAlreadyPresent", 409, "There is already a lease present.")
LEASE_ID_MISMATCH_WITH_BLOB_OPERATION = row(
    "LeaseIdMismatchWithBlobOperation",
    412,
    "The lease ID specified did not match the lease ID for the blob.",
)
LEASE_ID_MISMATCH_WITH_CONTAINER_OPERATION = row(
    "LeaseIdMismatchWithContainerOperation",
    412,
    "The lease ID specified did not match the lease ID for the container.",
)
LEASE_ID_MISMATCH_WITH_FILE_OPERATION = row(
    "LeaseIdMismatchWithFileOperation",
    412,
    "The lease ID specified did not match the lease ID for the file.",
)
LEASE_ID_MISMATCH_WITH_LEASE_OPERATION = row(
    "LeaseIdMismatchWithLeaseOperation",
    409,
    "The lease ID specified did not match the lease ID for the blob/container.",
)
LEASE_ID_MISMATCH_WITH_SHARE_OPERATION = row(
    "LeaseIdMismatchWithShareOperation",
    412,
    "The lease ID specified did not match the lease ID for the file share.",
)
LEASE_ID_MISSING = row(
    "LeaseIdMissing",
    412,
    "There is currently a lease on the blob/container and no lease ID was specified in the "
    "request.",
)
LEASE_IS_BREAKING_AND_CANNOT_BE_ACQUIRED = row(
    "LeaseIsBreakingAndCannotBeAcquired",
    409,
    "The lease ID matched, but the lease is currently in breaking state and cannot be "
    "acquired until it is broken.",
)
LEASE_IS_BREAKING_AND_CANNOT_BE_CHANGED = row(
    "LeaseIsBreakingAndCannotBeChanged",
    409,
    "The lease ID matched, but the lease is currently in breaking state and cannot be changed.",
)
LEASE_IS_BROKEN_AND_CANNOT_BE_RENEWED = row(
    "LeaseIsBrokenAndCannotBeRenewed",
    409,
    "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.",
)
LEASE_LOST = row(
    "LeaseLost",
    412,
    "A lease ID was specified, but the lease for the blob/container has expired.",
)
LEASE_NOT_PRESENT_WITH_BLOB_OPERATION = row(
    "LeaseNotPresentWithBlobOperation",
    412,
    "There is currently no lease on the blob.",
)
LEASE_NOT_PRESENT_WITH_CONTAINER_OPERATION = row(
    "LeaseNotPresentWithContainerOperation",
    412,
    "There is currently no lease on the container.",
)
LEASE_NOT_PRESENT_WITH_FILE_OPERATION = row(
    "LeaseNotPresentWithFileOperation",
    412,
    "There is currently no lease on the file.",
)
LEASE_NOT_PRESENT_WITH_LEASE_OPERATION = row(
    "LeaseNotPresentWithLeaseOperation",
    409,
    "There is currently no lease on the blob/container.",
)
LEASE_NOT_PRESENT_WITH_SHARE_OPERATION = row(
    "LeaseNotPresentWithShareOperation",
    412,
    "There is currently no lease on the file share.",
)
