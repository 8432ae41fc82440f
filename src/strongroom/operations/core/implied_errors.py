"""The errors that follow from an operation's declaration, so that no declaration lists them.

They hold for every service. What follows for blobs alone: operations/blob/endpoint.py.
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import core as errors
from strongroom.errors.core import ErrorCode
from strongroom.operations.core.spec import Operation, Resource
from strongroom.semantics.core.lease import GUARDS, LeaseUse
from strongroom.services.core.calls import ConditionUse

_ALWAYS: Final = frozenset(
    {
        errors.AUTHENTICATION_FAILED,
        errors.AUTHORIZATION_FAILURE,
        errors.AUTHORIZATION_PERMISSION_MISMATCH,
        errors.AUTHORIZATION_PROTOCOL_MISMATCH,
        errors.AUTHORIZATION_SOURCE_IPMISMATCH,
        errors.AUTHORIZATION_SERVICE_MISMATCH,
        errors.AUTHORIZATION_RESOURCE_TYPE_MISMATCH,
        errors.CONDITION_HEADERS_NOT_SUPPORTED,
        errors.INCOMPLETE_BODY,
        errors.INSUFFICIENT_ACCOUNT_PERMISSIONS,
        errors.INSUFFICIENT_STORAGE,
        errors.INTERNAL_ERROR,
        errors.INVALID_AUTHENTICATION_INFO,
        errors.INVALID_HEADER_VALUE,
        errors.INVALID_INPUT,
        errors.INVALID_QUERY_PARAMETER_VALUE,
        errors.INVALID_RESOURCE_NAME,
        errors.INVALID_TOKEN,
        errors.INVALID_URI,
        errors.MISSING_REQUIRED_HEADER,
        errors.MISSING_REQUIRED_QUERY_PARAMETER,
        errors.NO_AUTHENTICATION_INFORMATION,
        errors.NOT_IMPLEMENTED,
        errors.OPERATION_TIMED_OUT,
        errors.OUT_OF_RANGE_INPUT,
        errors.OUT_OF_RANGE_QUERY_PARAMETER_VALUE,
        errors.PUBLIC_ACCESS_NOT_PERMITTED,
        errors.REQUEST_TIMEOUT,
        errors.RESOURCE_NOT_FOUND,
        errors.SERVER_BUSY,
        errors.UNSUPPORTED_HEADER,
    }
)
_METADATA: Final = frozenset(
    {errors.EMPTY_METADATA_KEY, errors.INVALID_METADATA, errors.METADATA_TOO_LARGE}
)
_DOCUMENT: Final = frozenset(
    {
        errors.INVALID_XML_DOCUMENT,
        errors.INVALID_XML_NODE_VALUE,
        errors.MISSING_REQUIRED_XML_NODE,
        errors.UNSUPPORTED_XML_NODE,
        errors.REQUEST_BODY_TOO_LARGE,
        errors.MISSING_CONTENT_LENGTH_HEADER,
    }
)
_DIGESTS: Final = frozenset(
    {
        errors.INVALID_MD5,
        errors.MD5_MISMATCH,
        errors.CRC64_MISMATCH,
        errors.BOTH_CRC64_AND_MD5_HEADER_PRESENT,
    }
)
# The errors of the lease check, by the way in which an operation uses the lease.
_LEASES: Final = {
    use: frozenset(row for (_, asked, _), row in GUARDS.items() if asked is use and row is not None)
    for use in LeaseUse
}
_READ_CONDITIONS: Final = frozenset(
    {errors.NOT_MODIFIED, errors.CONDITION_NOT_MET, errors.UNSATISFIABLE_CONDITION}
)
_WRITE_CONDITIONS: Final = frozenset(
    {errors.CONDITION_NOT_MET, errors.MULTIPLE_CONDITION_HEADERS_NOT_SUPPORTED}
)
_CONDITIONS: Final[dict[ConditionUse, frozenset[ErrorCode]]] = {
    ConditionUse.NONE: frozenset(),
    ConditionUse.IGNORED: frozenset(),
    ConditionUse.READ: _READ_CONDITIONS,
    ConditionUse.BLOB_READ: _READ_CONDITIONS,
    ConditionUse.WRITE: _WRITE_CONDITIONS,
    ConditionUse.BLOB_WRITE: _WRITE_CONDITIONS,
    ConditionUse.TAGS: _WRITE_CONDITIONS,
    ConditionUse.REFUSED: _WRITE_CONDITIONS,
    ConditionUse.DATES: _WRITE_CONDITIONS,
    ConditionUse.MODIFIED_SINCE: _WRITE_CONDITIONS,
    ConditionUse.UNMODIFIED_SINCE: _WRITE_CONDITIONS,
}
_MISSING_PLACE: Final = {
    Resource.CONTAINER: errors.CONTAINER_NOT_FOUND,
    Resource.BLOB: errors.CONTAINER_NOT_FOUND,
    Resource.DATA_LAKE: errors.CONTAINER_NOT_FOUND,
    Resource.QUEUE: errors.QUEUE_NOT_FOUND,
    Resource.MESSAGES: errors.QUEUE_NOT_FOUND,
    Resource.MESSAGE: errors.QUEUE_NOT_FOUND,
    Resource.TABLE: errors.TABLE_NOT_FOUND,
    Resource.ENTITY: errors.TABLE_NOT_FOUND,
    Resource.BATCH: errors.TABLE_NOT_FOUND,
    Resource.SHARE: errors.SHARE_NOT_FOUND,
    Resource.DIRECTORY: errors.SHARE_NOT_FOUND,
    Resource.FILE: errors.SHARE_NOT_FOUND,
}


def common_errors(operation: Operation) -> frozenset[ErrorCode]:
    rule = operation.rule
    implied = _ALWAYS | _LEASES[rule.lease] | _CONDITIONS[rule.conditions]
    place = _MISSING_PLACE.get(operation.resource)
    if place is not None:
        implied |= {place}
    if operation.refusal is not None:
        implied |= {operation.refusal}
    if operation.waits:
        implied |= {errors.NOT_MODIFIED}
    if operation.body is not None and operation.body.parse is not None:
        implied |= _DOCUMENT
    for one in operation.accepts:
        implied |= _METADATA if "x-ms-meta" in one.headers else frozenset()
        implied |= _DIGESTS if "content-md5" in one.headers else frozenset()
    return implied
