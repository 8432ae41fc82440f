"""The rows of the error table that only the Blob service uses.

Must not live here: rows that several services share (core.py), of leases or of copies. Source:
"Blob service error codes" of the Azure Storage REST reference.
"""

from __future__ import annotations

from strongroom.errors.core import row

ACCESS_TIER_NOT_SUPPORTED_FOR_BLOB_TYPE = row(
    "AccessTierNotSupportedForBlobType",
    400,
    "The access tier is not supported for this blob type.",
)
APPEND_POSITION_CONDITION_NOT_MET = row(
    "AppendPositionConditionNotMet",
    412,
    "The append position condition specified was not met.",
)
BLOB_ALREADY_EXISTS = row("BlobAlreadyExists", 409, "The specified blob already exists.")
BLOB_NOT_FOUND = row("BlobNotFound", 404, "The specified blob does not exist.")
BLOB_OVERWRITTEN = row(
    "BlobOverwritten",
    409,
    "The blob has been recreated since the previous snapshot was taken.",
)
BLOB_TIER_INADEQUATE_FOR_CONTENT_LENGTH = row(
    "BlobTierInadequateForContentLength",
    409,
    "The specified blob tier size limit cannot be less than content length.",
)
BLOCK_COUNT_EXCEEDS_LIMIT = row(
    "BlockCountExceedsLimit",
    409,
    "The committed block count cannot exceed the maximum limit of 50,000 blocks.",
)
BLOCK_LIST_TOO_LONG = row(
    "BlockListTooLong",
    400,
    "The block list may not contain more than 50,000 blocks.",
)
CANNOT_CHANGE_TO_LOWER_TIER = row(
    "CannotChangeToLowerTier",
    409,
    "A higher blob tier has already been explicitly set.",
)
CONTAINER_ALREADY_EXISTS = row(
    "ContainerAlreadyExists",
    409,
    "The specified container already exists.",
)
CONTAINER_BEING_DELETED = row(
    "ContainerBeingDeleted",
    409,
    "The specified container is being deleted.",
)
CONTAINER_DISABLED = row(
    "ContainerDisabled",
    409,
    "The specified container has been disabled by the administrator.",
)
CONTENT_LENGTH_LARGER_THAN_TIER_LIMIT = row(
    "ContentLengthLargerThanTierLimit",
    409,
    "The blob's content length cannot exceed its tier limit.",
)
COPY_ACROSS_ACCOUNTS_NOT_SUPPORTED = row(
    "CopyAcrossAccountsNotSupported",
    400,
    "The copy source account and destination account must be the same.",
)
FEATURE_VERSION_MISMATCH = row(
    "FeatureVersionMismatch",
    409,
    "The operation for AppendBlob requires at least version 2015-02-21.",
)
HIERARCHICAL_NAMESPACE_NOT_ENABLED = row(
    "HierarchicalNamespaceNotEnabled",
    400,
    "This operation is only supported on a hierarchical namespace account.",
)
INCREMENTAL_COPY_BLOB_MISMATCH = row(
    "IncrementalCopyBlobMismatch",
    409,
    "The specified source blob is different than the copy source of the existing incremental "
    "copy blob.",
)
INCREMENTAL_COPY_OF_ERALIER_VERSION_SNAPSHOT_NOT_ALLOWED = row(
    "IncrementalCopyOfEralierVersionSnapshotNotAllowed",
    409,
    "The specified snapshot is earlier than the last snapshot copied into the incremental "
    "copy blob.",
)
INCREMENTAL_COPY_SOURCE_MUST_BE_SNAPSHOT = row(
    "IncrementalCopySourceMustBeSnapshot",
    409,
    "The source for incremental copy request must be a snapshot.",
)
INFINITE_LEASE_DURATION_REQUIRED = row(
    "InfiniteLeaseDurationRequired",
    412,
    "The lease ID matched, but the specified lease must be an infinite-duration lease.",
)
INVALID_BLOB_OR_BLOCK = row(
    "InvalidBlobOrBlock",
    400,
    "The specified blob or block content is invalid.",
)
INVALID_BLOB_TIER = row("InvalidBlobTier", 400, "The specified blob tier is invalid.")
INVALID_BLOB_TYPE = row("InvalidBlobType", 409, "The blob type is invalid for this operation.")
INVALID_BLOCK_ID = row(
    "InvalidBlockId",
    400,
    "The specified block ID is invalid. The block ID must be Base64-encoded.",
)
INVALID_BLOCK_LIST = row("InvalidBlockList", 400, "The specified block list is invalid.")
INVALID_OPERATION = row("InvalidOperation", 400, "Invalid operation against a blob snapshot.")
INVALID_PAGE_RANGE = row("InvalidPageRange", 416, "The page range specified is invalid.")
INVALID_SOURCE_BLOB_TYPE = row(
    "InvalidSourceBlobType",
    409,
    "The copy source blob type is invalid for this operation.",
)
INVALID_SOURCE_BLOB_URL = row(
    "InvalidSourceBlobUrl",
    409,
    "The source URL for incremental copy request must be valid Azure Storage blob URL.",
)
INVALID_VERSION_FOR_PAGE_BLOB_OPERATION = row(
    "InvalidVersionForPageBlobOperation",
    400,
    "All operations on page blobs require at least version 2009-09-19.",
)
MAX_BLOB_SIZE_CONDITION_NOT_MET = row(
    "MaxBlobSizeConditionNotMet",
    412,
    "The max blob size condition specified was not met.",
)
OPERATION_NOT_ALLOWED_ON_INCREMENTAL_COPY_BLOB = row(
    "OperationNotAllowedOnIncrementalCopyBlob",
    409,
    "The specified operation is not allowed on an incremental copy blob.",
)
OPERATION_NOT_ALLOWED_ON_ROOT_BLOB = row(
    "OperationNotAllowedOnRootBlob",
    403,
    "The current version cannot be deleted by its id. Delete the blob without versionid; the"
    " version then becomes a previous one, which can be deleted.",
)
PREVIOUS_SNAPSHOT_CANNOT_BE_NEWER = row(
    "PreviousSnapshotCannotBeNewer",
    400,
    "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.",
)
PREVIOUS_SNAPSHOT_NOT_FOUND = row(
    "PreviousSnapshotNotFound",
    409,
    "The previous snapshot is not found.",
)
PREVIOUS_SNAPSHOT_OPERATION_NOT_SUPPORTED = row(
    "PreviousSnapshotOperationNotSupported",
    409,
    "Differential Get Page Ranges is not supported on the previous snapshot.",
)
SEQUENCE_NUMBER_CONDITION_NOT_MET = row(
    "SequenceNumberConditionNotMet",
    412,
    "The sequence number condition specified was not met.",
)
SEQUENCE_NUMBER_INCREMENT_TOO_LARGE = row(
    "SequenceNumberIncrementTooLarge",
    409,
    "The sequence number increment cannot be performed because it would result in overflow of"
    " the sequence number.",
)
SNAPSHOT_COUNT_EXCEEDED = row(
    "SnapshotCountExceeded",
    409,
    "The snapshot count against this blob has been exceeded.",
)
SNAPHOT_OPERATION_RATE_EXCEEDED = row(
    "SnaphotOperationRateExceeded",
    409,
    "The rate of snapshot operations against this blob has been exceeded.",
)
SNAPSHOTS_PRESENT = row(
    "SnapshotsPresent",
    409,
    "This operation is not permitted because the blob has snapshots.",
)
SYSTEM_IN_USE = row("SystemInUse", 409, "This blob is in use by the system.")
TARGET_CONDITION_NOT_MET = row(
    "TargetConditionNotMet",
    412,
    "The target condition specified using HTTP conditional header(s) is not met.",
)
UNAUTHORIZED_BLOB_OVERWRITE = row(
    "UnauthorizedBlobOverwrite",
    403,
    "This request is not authorized to perform blob overwrites.",
)
BLOB_BEING_REHYDRATED = row(
    "BlobBeingRehydrated",
    409,
    "This operation is not permitted because the blob is being rehydrated.",
)
EXCEEDS_MAX_BATCH_REQUEST_COUNT = row(
    "ExceedsMaxBatchRequestCount",
    400,
    "The batch operation exceeds the maximum number of 256 allowed subrequests.",
)
BLOB_NOT_ARCHIVED = row(
    "BlobNotArchived",
    409,
    "This blob is currently not in the archived state.",
)
BLOB_IS_SEALED = row(
    "BlobIsSealed",
    409,
    "The specified blob is sealed, and its contents can't be modified unless the blob is "
    "re-created after a delete.",
)
BLOB_USES_CUSTOMER_SPECIFIED_ENCRYPTION = row(
    "BlobUsesCustomerSpecifiedEncryption",
    409,
    "The blob is encrypted with customer specified encryption, but it was not provided in the "
    "request.",
)
BLOB_OPERATION_NOT_SUPPORTED = row(
    "BlobOperationNotSupported",
    409,
    "PutBlock on a DFS-created blob",
)
BLOB_CUSTOMER_SPECIFIED_ENCRYPTION_MISMATCH = row(
    "BlobCustomerSpecifiedEncryptionMismatch",
    409,
    "The given customer specified encryption does not match the encryption used to encrypt the "
    "blob.",
)
REQUEST_FORBIDDEN_BY_CONTAINER_ENCRYPTION_POLICY = row(
    "RequestForbiddenByContainerEncryptionPolicy",
    403,
    "The request is forbidden by the container encryption policy.",
)
BLOB_IMMUTABLE_DUE_TO_POLICY = row(
    "BlobImmutableDueToPolicy",
    409,
    "This operation is not permitted as the blob is immutable due to a policy.",
)
BLOB_IMMUTABLE_DUE_TO_LEGAL_HOLD = row(
    "BlobImmutableDueToLegalHold",
    409,
    "This operation is not permitted as the blob is immutable due to one or more legal holds.",
)
IMMUTABILITY_NOT_ENABLED = row(
    "ImmutableStorageWithVersioningNotEnabled",
    409,
    "Version-level immutability is not enabled for the account: switch it on with "
    "'strongroom account set NAME --immutability on'.",
)
CONTAINER_PROTECTED_FROM_DELETION = row(
    "ContainerProtectedFromDeletion",
    409,
    "This operation is not permitted on a container with version-level immutability, or with an "
    "immutability policy, that is not empty: delete its blobs first.",
)
CONTAINER_IMMUTABILITY_POLICY_LOCKED = row(
    "ContainerImmutabilityPolicyLocked",
    409,
    "This operation is not permitted on a container with a locked immutability policy that is not "
    "empty: delete its blobs when the policy permits it.",
)
CONTAINER_HAS_LEGAL_HOLD = row(
    "ContainerHasLegalHold",
    409,
    "This operation is not permitted on a container that has a legal hold.",
)
DUPLICATE_TAG_NAMES = row(
    "DuplicateTagNames",
    400,
    "The tags specified contain duplicate names.",
)
EMPTY_TAG_NAME = row(
    "EmptyTagName",
    400,
    "The name of one of the tag key-value pairs is empty.",
)
INVALID_TAG = row(
    "InvalidTag",
    400,
    "The tags specified are invalid: a key or value contains characters that are not permitted.",
)
TAGS_TOO_LARGE = row(
    "TagsTooLarge",
    400,
    "The tags specified exceed the limits: 10 tags, keys of 128 and values of 256 characters.",
)
BOTH_TAGS_AND_SOURCE_TAGS = row(
    "BothUserTagsAndSourceTagsCopyPresentException",
    400,
    "x-ms-tags must not be present with x-ms-copy-source-tag-option: COPY.",
)
