"""The rows of the error table that only files use, and the NTSTATUS values that SMB answers.

A REST error code may have several rows, one for each NTSTATUS that SMB answers in its place. Must
not live here: rows that several services share (core.py). Sources: "File service error codes" and
"Managing file locks" of the Azure Storage REST reference; [MS-ERREF] section 2.3.1.

Where Microsoft's pages contradict each other (smb.md 4.6), each row says which page it follows.
"""

from __future__ import annotations

from typing import Final

from strongroom.errors.core import row

STATUS_UNSUCCESSFUL: Final = 0xC000_0001
STATUS_INVALID_PARAMETER: Final = 0xC000_000D
STATUS_INVALID_DEVICE_REQUEST: Final = 0xC000_0010
STATUS_END_OF_FILE: Final = 0xC000_0011
STATUS_ACCESS_DENIED: Final = 0xC000_0022
STATUS_OBJECT_NAME_INVALID: Final = 0xC000_0033
STATUS_OBJECT_NAME_NOT_FOUND: Final = 0xC000_0034
STATUS_OBJECT_NAME_COLLISION: Final = 0xC000_0035
STATUS_OBJECT_PATH_NOT_FOUND: Final = 0xC000_003A
STATUS_OBJECT_PATH_SYNTAX_BAD: Final = 0xC000_003B
STATUS_SHARING_VIOLATION: Final = 0xC000_0043
STATUS_EAS_NOT_SUPPORTED: Final = 0xC000_004F
STATUS_FILE_LOCK_CONFLICT: Final = 0xC000_0054
STATUS_LOCK_NOT_GRANTED: Final = 0xC000_0055
STATUS_DELETE_PENDING: Final = 0xC000_0056
STATUS_PRIVILEGE_NOT_HELD: Final = 0xC000_0061
STATUS_INVALID_SECURITY_DESCR: Final = 0xC000_0079
STATUS_RANGE_NOT_LOCKED: Final = 0xC000_007E
STATUS_DISK_FULL: Final = 0xC000_007F
STATUS_INSUFFICIENT_RESOURCES: Final = 0xC000_009A
STATUS_FILE_IS_A_DIRECTORY: Final = 0xC000_00BA
STATUS_NETWORK_NAME_DELETED: Final = 0xC000_00C9
STATUS_BAD_NETWORK_NAME: Final = 0xC000_00CC
STATUS_REQUEST_NOT_ACCEPTED: Final = 0xC000_00D0
STATUS_INVALID_OPLOCK_PROTOCOL: Final = 0xC000_00E3
STATUS_DIRECTORY_NOT_EMPTY: Final = 0xC000_0101
STATUS_NOT_A_DIRECTORY: Final = 0xC000_0103
STATUS_MEDIA_WRITE_PROTECTED: Final = 0xC000_00A2
STATUS_CANCELLED: Final = 0xC000_0120
STATUS_CANNOT_DELETE: Final = 0xC000_0121
STATUS_FILE_CLOSED: Final = 0xC000_0128
STATUS_INVALID_DEVICE_STATE: Final = 0xC000_0184
STATUS_INVALID_LOCK_RANGE: Final = 0xC000_01A1
STATUS_DUPLICATE_OBJECTID: Final = 0xC000_022A
STATUS_FILE_NOT_AVAILABLE: Final = 0xC000_0467

# Only handles of SMB can cause the next errors; each code is the nearest one of REST.
ACCESS_DENIED_TO_HANDLE = row(
    "InsufficientAccountPermissions",
    403,
    "The handle was not opened with the access that the operation needs.",
    STATUS_ACCESS_DENIED,
)
DELETE_ON_CLOSE_WITHOUT_DELETE = row(
    "InvalidInput",
    400,
    "An open with delete-on-close must ask for the access DELETE.",
    STATUS_INVALID_PARAMETER,
)
ACCESS_DENIED_TO_OPEN = row(
    "InsufficientAccountPermissions",
    403,
    "The open asks for no access, or for access that nobody can be granted.",
    STATUS_ACCESS_DENIED,
)
ATTRIBUTES_NOT_REPEATED = row(
    "InsufficientAccountPermissions",
    403,
    "The file is hidden or a system file, and the open that overwrites it does not say so.",
    STATUS_ACCESS_DENIED,
)
BREAK_NOT_UNDER_WAY = row(
    "InvalidOperation", 400, "The lease is not being broken.", STATUS_UNSUCCESSFUL
)
BREAK_STATE_REFUSED = row(
    "InvalidOperation",
    400,
    "The lease was asked to keep less than the answer says.",
    STATUS_REQUEST_NOT_ACCEPTED,
)
LEASE_UNKNOWN = row(
    "ResourceNotFound",
    404,
    "The client has no lease of this key.",
    STATUS_OBJECT_NAME_NOT_FOUND,
)
LEASE_OF_OTHER_FILE = row(
    "InvalidInput",
    400,
    "The client has a lease of this key on another file.",
    STATUS_INVALID_PARAMETER,
)
OPLOCK_ANSWER_REFUSED = row(
    "InvalidOperation",
    400,
    "The answer to the break of an oplock names a level that cannot be kept.",
    STATUS_INVALID_OPLOCK_PROTOCOL,
)
OPLOCK_LEVEL_INVALID = row(
    "InvalidInput", 400, "An oplock is not answered for as a lease.", STATUS_INVALID_PARAMETER
)
OPLOCK_NOT_BREAKING = row(
    "InvalidOperation", 400, "The oplock is not being broken.", STATUS_INVALID_DEVICE_STATE
)
CANNOT_OVERWRITE_ROOT = row(
    "InsufficientAccountPermissions",
    403,
    "The share's root cannot be overwritten.",
    STATUS_ACCESS_DENIED,
)
CANCELLED = row("OperationTimedOut", 500, "The client has cancelled the request.", STATUS_CANCELLED)
DISK_FULL = row(
    "ShareSizeLimitReached",
    413,
    "The file would be larger than a file, the share's quota or the disk allows.",
    STATUS_DISK_FULL,
)
END_OF_FILE = row(
    "InvalidRange", 416, "The range begins behind the end of the file.", STATUS_END_OF_FILE
)
EXTENDED_ATTRIBUTES_REFUSED = row(
    "FeatureNotSupported",
    400,
    "Files have no extended attributes.",
    STATUS_EAS_NOT_SUPPORTED,
)
HANDLE_CLOSED = row("ResourceNotFound", 404, "The handle is closed.", STATUS_FILE_CLOSED)
HANDLE_OF_OTHER_USER = row(
    "InsufficientAccountPermissions",
    403,
    "The handle belongs to another user, or has another lease.",
    STATUS_ACCESS_DENIED,
)
CREATE_REPEATED = row(
    "InvalidInput",
    400,
    "An open with this CreateGuid exists, and the request does not say that it is repeated.",
    STATUS_DUPLICATE_OBJECTID,
)
CREATE_UNDER_WAY = row(
    "InvalidOperation",
    400,
    "The open with this CreateGuid is still under way; send the request again later.",
    STATUS_FILE_NOT_AVAILABLE,
)
INVALID_OPEN = row(
    "InvalidInput",
    400,
    "The options of the open contradict each other, or a number is out of its range.",
    STATUS_INVALID_PARAMETER,
)
IS_A_DIRECTORY = row(
    "ResourceTypeMismatch", 409, "The name is that of a directory.", STATUS_FILE_IS_A_DIRECTORY
)
NOT_A_DIRECTORY = row(
    "ResourceTypeMismatch", 409, "The name is that of a file.", STATUS_NOT_A_DIRECTORY
)
NOT_FOR_DIRECTORIES = row(
    "ResourceTypeMismatch",
    409,
    "A directory has no bytes to read or write.",
    STATUS_INVALID_DEVICE_REQUEST,
)
PRIVILEGE_NOT_HELD = row(
    "InsufficientAccountPermissions",
    403,
    "Nobody is granted access to system ACLs.",
    STATUS_PRIVILEGE_NOT_HELD,
)
SHARE_GONE = row(
    "ShareNotFound",
    404,
    "The share that the tree was connected to has been deleted.",
    STATUS_NETWORK_NAME_DELETED,
)
# The handles of a deleted snapshot are closed, and their tree stays ([MS-SMB2] 3.3.4.17).
SNAPSHOT_GONE = row(
    "ShareSnapshotNotFound",
    404,
    "The snapshot of the share that the handle was opened in has been deleted.",
    STATUS_FILE_CLOSED,
)
SNAPSHOT_UNKNOWN = row(
    "ShareSnapshotNotFound",
    404,
    "The share has no snapshot of this time. List its snapshots and use one of their times.",
    STATUS_OBJECT_NAME_NOT_FOUND,
)
SNAPSHOT_READ_ONLY = row(
    "ShareSnapshotOperationNotSupported",
    400,
    "A snapshot of a share cannot be changed. Open the file in the share itself.",
    STATUS_MEDIA_WRITE_PROTECTED,
)
TOO_MANY_HANDLES = row(
    "HandleLimitExceeded",
    400,
    "The file has as many handles as it may have. Close some of them.",
    STATUS_INSUFFICIENT_RESOURCES,
)
TOO_MANY_OPENS = row(
    "HandleLimitExceeded",
    400,
    "The server has as many handles of SMB as it may have. Close some of them.",
    STATUS_INSUFFICIENT_RESOURCES,
)
TOO_MANY_LOCKS = row(
    "HandleLimitExceeded",
    400,
    "The file, or the server, has as many byte-range locks as it may have. Free some of them.",
    STATUS_INSUFFICIENT_RESOURCES,
)
TOO_MANY_WATCHES = row(
    "HandleLimitExceeded",
    400,
    "The server has as many watched directories as it may have. Close some of them.",
    STATUS_INSUFFICIENT_RESOURCES,
)
CANNOT_DELETE = row(
    "CannotDeleteFileOrDirectory",
    409,
    "The file or directory cannot be deleted: it is the share's root, or it is read-only.",
    STATUS_CANNOT_DELETE,
)
# 408 as "Managing file locks" writes it; the page of error codes says 500. A client may repeat the
# request after a 408, and here a retry can succeed.
CLIENT_CACHE_FLUSH_DELAY = row(
    "ClientCacheFlushDelay",
    408,
    "An SMB client did not give up its cached state of the file in time. Repeat the request.",
    STATUS_SHARING_VIOLATION,
)
DIRECTORY_NOT_EMPTY = row(
    "DirectoryNotEmpty",
    409,
    "The specified directory is not empty.",
    STATUS_DIRECTORY_NOT_EMPTY,
)
FILE_ALREADY_EXISTS = row(
    "ResourceAlreadyExists",
    409,
    "The specified resource already exists.",
    STATUS_OBJECT_NAME_COLLISION,
)
FILE_INVALID_PERMISSION = row(
    "FileInvalidPermission",
    400,
    "The file permission is no valid SDDL with an owner, a group and a DACL.",
    STATUS_INVALID_SECURITY_DESCR,
)
FILE_INVALID_PERMISSION_KEY = row(
    "FileInvalidPermissionKey",
    400,
    "The file permission key is not valid. Create a permission and use the key of the answer.",
)
FILE_LOCK_CONFLICT = row(
    "FileLockConflict",
    409,
    "A portion of the file is locked by an SMB client.",
    STATUS_FILE_LOCK_CONFLICT,
)
LOCK_NOT_GRANTED = row(
    "FileLockConflict",
    409,
    "A portion of the range is locked by another handle.",
    STATUS_LOCK_NOT_GRANTED,
)
RANGE_NOT_LOCKED = row(
    "FileLockConflict",
    409,
    "The range is not locked by this handle.",
    STATUS_RANGE_NOT_LOCKED,
)
INVALID_LOCK_RANGE = row(
    "InvalidRange",
    416,
    "The range of the lock ends beyond 2^64 bytes.",
    STATUS_INVALID_LOCK_RANGE,
)
INVALID_FILE_ATTRIBUTES = row(
    "InvalidHeaderValue",
    400,
    "The file attributes are not valid for this kind of resource.",
    STATUS_INVALID_PARAMETER,
)
INVALID_FILE_TIME = row(
    "InvalidHeaderValue",
    400,
    "The time is neither 'now' nor 'preserve', nor one in ISO 8601 from 1601 to 9999.",
    STATUS_INVALID_PARAMETER,
)
INVALID_FILE_NAME = row(
    "InvalidResourceName",
    400,
    "The name contains characters that are not allowed, or is a reserved name.",
    STATUS_OBJECT_NAME_INVALID,
)
DOT_NAME = row(
    "InvalidResourceName",
    400,
    "A component of the path is '.' or '..'. Give the path without it.",
    STATUS_OBJECT_PATH_SYNTAX_BAD,
)
INVALID_FILE_OR_DIRECTORY_PATH_NAME = row(
    "InvalidFileOrDirectoryPathName",
    400,
    "A name has more than 255 characters, or the path more than 2,048, or 250 components.",
    STATUS_OBJECT_NAME_INVALID,
)
PARENT_NOT_FOUND = row(
    "ParentNotFound",
    404,
    "The specified parent path does not exist.",
    STATUS_OBJECT_PATH_NOT_FOUND,
)
# 412 as "Managing file locks" writes it; the page of error codes says 409. The attribute is a
# condition of the resource that the request did not meet.
READ_ONLY_ATTRIBUTE = row(
    "ReadOnlyAttribute",
    412,
    "The file has the attribute ReadOnly. Clear it by Set File Properties first.",
    STATUS_ACCESS_DENIED,
)
SHARING_VIOLATION = row(
    "SharingViolation",
    409,
    "The specified resource may be in use by an SMB client.",
    STATUS_SHARING_VIOLATION,
)
# The code as the pages on concurrency and on file locks write it. The page of error codes and the
# SDKs call it DeletePending.
SMB_DELETE_PENDING = row(
    "SMBDeletePending",
    409,
    "The specified resource is marked for deletion by an SMB client.",
    STATUS_DELETE_PENDING,
)
# No page says what a share for SMB answers; the code is the nearest one that all services have.
LINKS_REFUSED = row(
    "UnsupportedQueryParameter",
    400,
    "Links are for shares of the protocol NFS, and the shares of this server are for SMB.",
)
SHARE_ALREADY_EXISTS = row(
    "ShareAlreadyExists", 409, "The specified share already exists.", STATUS_OBJECT_NAME_COLLISION
)
SHARE_SNAPSHOT_NOT_FOUND = row(
    "ShareSnapshotNotFound",
    404,
    "The specified share snapshot does not exist.",
    STATUS_BAD_NETWORK_NAME,
)
SHARE_SNAPSHOT_COUNT_EXCEEDED = row(
    "ShareSnapshotCountExceeded",
    409,
    "The share has 200 snapshots, which is the limit. Delete some of them first.",
)
SHARE_HAS_SNAPSHOTS = row(
    "ShareHasSnapshots",
    409,
    "The share has snapshots. Send x-ms-delete-snapshots to delete them with it.",
)
DELETE_SHARE_WHEN_SNAPSHOT_LEASED = row(
    "DeleteShareWhenSnapshotLeased",
    409,
    "A snapshot of the share is leased. Send x-ms-delete-snapshots: include-leased.",
)
FILE_GENERATION_MISMATCH = row(
    "FileGenerationMismatch",
    409,
    "The file is not the one that the previous snapshot has under this name.",
)
# 403 as recorded answers of the cloud service have it; no page lists the code.
SHARE_SIZE_LIMIT_REACHED = row(
    "ShareSizeLimitReached",
    403,
    "The files would exceed the quota of the share. Delete files, or set a larger quota.",
    STATUS_DISK_FULL,
)
# SMB's answer to a rename of a file that is marked for deletion ([MS-FSA] 2.1.5.15.12).
RENAME_OF_PENDING = row(
    "SMBDeletePending",
    409,
    "The source of the rename is marked for deletion by an SMB client.",
    STATUS_ACCESS_DENIED,
)
TARGET_IN_USE = row(
    "SharingViolation",
    409,
    "The target of the rename is open by an SMB client.",
    STATUS_ACCESS_DENIED,
)
TARGET_IS_DIRECTORY = row(
    "ResourceTypeMismatch",
    409,
    "The target of the rename is a directory, which a rename cannot replace.",
    STATUS_ACCESS_DENIED,
)
DIRECTORY_IN_USE = row(
    "SharingViolation",
    409,
    "The directory contains files that are open by an SMB client.",
    STATUS_ACCESS_DENIED,
)
