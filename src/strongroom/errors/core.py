"""The error table: every error that a client can see, with its code, HTTP status and message.

Lives here: the rows that several services share, and the one exception that carries a row.
leases.py and copies.py hold those of leases and copies. The other modules of this folder hold those
that one service answers. No module outside this folder defines a code, a status or a message
text. Must not live here: the rendering of an error (wire/core/errors_xml.py).
Source: "Status and error codes" of the Azure Storage REST reference; rows marked *ours* are for
situations that Azure does not have.
"""

from __future__ import annotations

from typing import Final

import msgspec

Extras = tuple[tuple[str, str], ...]


class ErrorCode(msgspec.Struct, frozen=True):
    """One row of the table.

    Attributes:
        code: its name in the REST protocol.
        status: the HTTP status.
        message: the first line of the text.
        ntstatus: the SMB status of the same situation (MS-ERREF section 2.3); None = no SMB request
            leads to this error.
    """

    code: str
    status: int
    message: str
    ntstatus: int | None = None


class StorageError(Exception):
    """The refusal of a request: a row of the table, and the details of this occurrence.

    Arguments:
        row: the row of the table.
        message: replaces the row's text by a more specific one (what, where, what to do).
        extras: elements that follow `<Message>` in the body, in order (limits-and-errors, section
            2).
        headers: response headers that accompany the refusal (for example `Content-Range` of a 416).
    """

    def __init__(
        self,
        row: ErrorCode,
        message: str | None = None,
        extras: Extras = (),
        headers: Extras = (),
    ) -> None:
        super().__init__(row.code)
        self.row = row
        self.message = row.message if message is None else message
        self.extras = extras
        self.headers = headers


def invalid_header(name: str, value: str, message: str | None = None) -> StorageError:
    """Return 400 InvalidHeaderValue, which names the header and quotes its value."""
    return StorageError(
        INVALID_HEADER_VALUE,
        message,
        (("HeaderName", name), ("HeaderValue", value[:1024])),
    )


def missing_header(name: str) -> StorageError:
    """Return 400 MissingRequiredHeader, which names the header."""
    return StorageError(MISSING_REQUIRED_HEADER, None, (("HeaderName", name),))


def invalid_query(name: str, value: str, reason: str = "") -> StorageError:
    """Return 400 InvalidQueryParameterValue, which names and quotes the parameter and gives the
    reason."""
    extras = (("QueryParameterName", name), ("QueryParameterValue", value[:1024]))
    return StorageError(
        INVALID_QUERY_PARAMETER_VALUE,
        None,
        (*extras, ("Reason", reason)) if reason else extras,
    )


def out_of_range_query(name: str, value: str, minimum: int, maximum: int) -> StorageError:
    """Return 400 OutOfRangeQueryParameterValue with the permitted bounds."""
    return StorageError(
        OUT_OF_RANGE_QUERY_PARAMETER_VALUE,
        None,
        (
            ("QueryParameterName", name),
            ("QueryParameterValue", value[:1024]),
            ("MinimumAllowed", str(minimum)),
            ("MaximumAllowed", str(maximum)),
        ),
    )


def body_too_large(max_bytes: int) -> StorageError:
    """Return 413 RequestBodyTooLarge with the limit."""
    return StorageError(REQUEST_BODY_TOO_LARGE, None, (("MaxLimit", str(max_bytes)),))


def not_served(what: str) -> StorageError:
    """Return 501 NotImplemented with a message that names `what`."""
    return StorageError(NOT_IMPLEMENTED, f"{what} is not implemented by this server.")


_TABLE: Final[list[ErrorCode]] = []
# MS-ERREF section 2.3: severity 3 in the two highest bits.
_NT_ERROR: Final = 0xC000_0000
_NT_LAST: Final = 0xFFFF_FFFF


def row(code: str, status: int, message: str, ntstatus: int | None = None) -> ErrorCode:
    """Add a row to the table and return it. Only the modules of error rows may call it.

    Raises: ValueError for an `ntstatus` that is no error: errors have its two highest bits set.
    """
    if ntstatus is not None and not _NT_ERROR <= ntstatus <= _NT_LAST:
        raise ValueError(f"{ntstatus:#x} is no NTSTATUS of an error ({code})")
    made = ErrorCode(code, status, message, ntstatus)
    _TABLE.append(made)
    return made


def table() -> tuple[ErrorCode, ...]:
    """Return every row, in the order of the reference."""
    return tuple(_TABLE)


ACCOUNT_ALREADY_EXISTS = row("AccountAlreadyExists", 409, "The specified account already exists.")
ACCOUNT_BEING_CREATED = row(
    "AccountBeingCreated",
    409,
    "The specified account is in the process of being created.",
)
ACCOUNT_IS_DISABLED = row("AccountIsDisabled", 403, "The specified account is disabled.")
ACCOUNT_REQUIRES_HTTPS = row(
    "AccountRequiresHttps", 400, "The account being accessed does not support http."
)
AUTHENTICATION_FAILED = row(
    "AuthenticationFailed",
    403,
    "Server failed to authenticate the request. Make sure the value of Authorization header "
    "is formed correctly including the signature.",
)
CONDITION_HEADERS_NOT_SUPPORTED = row(
    "ConditionHeadersNotSupported",
    400,
    "Condition headers are not supported.",
)
NOT_MODIFIED = row(
    "ConditionNotMet",
    304,
    "The condition specified using HTTP conditional header(s) is not met.",
)
CONDITION_NOT_MET = row(
    "ConditionNotMet",
    412,
    "The condition specified using HTTP conditional header(s) is not met.",
)
EMPTY_METADATA_KEY = row(
    "EmptyMetadataKey",
    400,
    "The key for one of the metadata key-value pairs is empty.",
)
INSUFFICIENT_ACCOUNT_PERMISSIONS = row(
    "InsufficientAccountPermissions",
    403,
    "Read operations are currently disabled.",
)
INTERNAL_ERROR = row(
    "InternalError",
    500,
    "The server encountered an internal error. Please retry the request.",
)
INVALID_TOKEN = row(
    "InvalidAuthenticationInfo",
    401,
    "Server failed to authenticate the request. Please refer to the information in the www-"
    "authenticate header.",
)
INVALID_AUTHENTICATION_INFO = row(
    "InvalidAuthenticationInfo",
    400,
    "The authentication information was not provided in the correct format. Verify the value "
    "of Authorization header.",
)
INVALID_HEADER_VALUE = row(
    "InvalidHeaderValue",
    400,
    "The value for one of the HTTP headers is not in the correct format.",
)
INVALID_HTTP_VERB = row(
    "InvalidHttpVerb",
    400,
    "The HTTP verb specified was not recognized by the server.",
)
INVALID_INPUT = row("InvalidInput", 400, "One of the request inputs is not valid.")
INVALID_MD5 = row(
    "InvalidMd5",
    400,
    "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and "
    "Base64-encoded.",
)
INVALID_METADATA = row(
    "InvalidMetadata",
    400,
    "The specified metadata is invalid. It includes characters that are not permitted.",
)
INVALID_QUERY_PARAMETER_VALUE = row(
    "InvalidQueryParameterValue",
    400,
    "Value for one of the query parameters specified in the request URI is invalid.",
)
INVALID_RANGE = row(
    "InvalidRange",
    416,
    "The range specified is invalid for the current size of the resource.",
)
INVALID_RESOURCE_NAME = row(
    "InvalidResourceName",
    400,
    "The specified resource name contains invalid characters.",
)
INVALID_URI = row(
    "InvalidUri",
    400,
    "The requested URI does not represent any resource on the server.",
)
INVALID_XML_DOCUMENT = row("InvalidXmlDocument", 400, "XML specified is not syntactically valid.")
INVALID_XML_NODE_VALUE = row(
    "InvalidXmlNodeValue",
    400,
    "The value provided for one of the XML nodes in the request body was not in the correct "
    "format.",
)
MD5_MISMATCH = row(
    "Md5Mismatch",
    400,
    "The MD5 value specified in the request did not match the MD5 value calculated by the server.",
)
METADATA_TOO_LARGE = row(
    "MetadataTooLarge",
    400,
    "The size of the specified metadata exceeds the maximum size permitted.",
)
MISSING_CONTENT_LENGTH_HEADER = row(
    "MissingContentLengthHeader",
    411,
    "The Content-Length header was not specified.",
)
MISSING_REQUIRED_QUERY_PARAMETER = row(
    "MissingRequiredQueryParameter",
    400,
    "A required query parameter was not specified for this request.",
)
MISSING_REQUIRED_HEADER = row(
    "MissingRequiredHeader",
    400,
    "An HTTP header that's mandatory for this request is not specified.",
)
MISSING_REQUIRED_XML_NODE = row(
    "MissingRequiredXmlNode",
    400,
    "A required XML node was not specified in the request body.",
)
MULTIPLE_CONDITION_HEADERS_NOT_SUPPORTED = row(
    "MultipleConditionHeadersNotSupported",
    400,
    "Multiple condition headers are not supported.",
)
OPERATION_TIMED_OUT = row(
    "OperationTimedOut",
    500,
    "The operation could not be completed within the permitted time.",
)
OUT_OF_RANGE_INPUT = row("OutOfRangeInput", 400, "One of the request inputs is out of range.")
OUT_OF_RANGE_QUERY_PARAMETER_VALUE = row(
    "OutOfRangeQueryParameterValue",
    400,
    "One of the query parameters specified in the request URI is outside the permissible range.",
)
REQUEST_BODY_TOO_LARGE = row(
    "RequestBodyTooLarge",
    413,
    "The request body is too large and exceeds the maximum permissible limit.",
)
RESOURCE_TYPE_MISMATCH = row(
    "ResourceTypeMismatch",
    409,
    "The specified resource type does not match the type of the existing resource.",
)
REQUEST_URL_FAILED_TO_PARSE = row(
    "RequestUrlFailedToParse",
    400,
    "The url in the request could not be parsed.",
)
RESOURCE_ALREADY_EXISTS = row(
    "ResourceAlreadyExists",
    409,
    "The specified resource already exists.",
)
RESOURCE_NOT_FOUND = row(
    "ResourceNotFound",
    404,
    "The specified resource does not exist.",
    0xC000_0034,  # OBJECT_NAME_NOT_FOUND
)
SERVER_BUSY = row(
    "ServerBusy",
    503,
    "The server is currently unable to receive requests. Please retry your request.",
    0xC000_022D,  # RETRY
)
UNSUPPORTED_HEADER = row(
    "UnsupportedHeader",
    400,
    "One of the HTTP headers specified in the request is not supported.",
)
UNSUPPORTED_XML_NODE = row(
    "UnsupportedXmlNode",
    400,
    "One of the XML nodes specified in the request body is not supported.",
)
UNSUPPORTED_QUERY_PARAMETER = row(
    "UnsupportedQueryParameter",
    400,
    "One of the query parameters specified in the request URI is not supported.",
)
UNSUPPORTED_HTTP_VERB = row(
    "UnsupportedHttpVerb",
    405,
    "The resource doesn't support the specified HTTP verb.",
)
AUTHORIZATION_FAILURE = row(
    "AuthorizationFailure",
    403,
    "This request is not authorized to perform this operation.",
)
AUTHORIZATION_PERMISSION_MISMATCH = row(
    "AuthorizationPermissionMismatch",
    403,
    "This request is not authorized to perform this operation using this permission.",
)
AUTHORIZATION_PROTOCOL_MISMATCH = row(
    "AuthorizationProtocolMismatch",
    403,
    "This request is not authorized to perform this operation using this protocol.",
)
AUTHORIZATION_SOURCE_IPMISMATCH = row(
    "AuthorizationSourceIPMismatch",
    403,
    "This request is not authorized to perform this operation using this source IP {ip}.",
)
AUTHORIZATION_SERVICE_MISMATCH = row(
    "AuthorizationServiceMismatch",
    403,
    "This request is not authorized to perform this operation using this service.",
)
AUTHORIZATION_RESOURCE_TYPE_MISMATCH = row(
    "AuthorizationResourceTypeMismatch",
    403,
    "This request is not authorized to perform this operation using this resource type.",
)
NO_AUTHENTICATION_INFORMATION = row(
    "NoAuthenticationInformation",
    401,
    "Server failed to authenticate the request. Please refer to the information in the www-"
    "authenticate header.",
)
PUBLIC_ACCESS_NOT_PERMITTED = row(
    "PublicAccessNotPermitted",
    409,
    "Public access is not permitted on this storage account.",
)
CORS_PREFLIGHT_FAILURE = row(
    "CorsPreflightFailure",
    403,
    "CORS not enabled or no matching rule found for this request.",
)
INSUFFICIENT_STORAGE = row(
    "InsufficientStorage",
    507,
    "The disk that holds the data directory is full. Reads and deletes go on; writes work "
    "again when space returns.",
)
NOT_IMPLEMENTED = row(
    "NotImplemented",
    501,
    "The requested operation is not implemented by this server.",
)
REQUEST_TIMEOUT = row("RequestTimeout", 408, "The client took too long to send the request.")
REQUEST_URI_TOO_LONG = row("RequestUriTooLong", 414, "The request target is too long.")
REQUEST_HEADER_FIELDS_TOO_LARGE = row(
    "RequestHeaderFieldsTooLarge",
    431,
    "The request's header fields are too large.",
)
CRC64_MISMATCH = row(
    "Crc64Mismatch",
    400,
    "The CRC64 value specified in the request did not match with the CRC64 value calculated "
    "by server.",
)
BOTH_CRC64_AND_MD5_HEADER_PRESENT = row(
    "BothCrc64AndMd5HeaderPresent",
    400,
    "Both x-ms-content-crc64 header and Content-MD5 header are present.",
)
UNSATISFIABLE_CONDITION = row(
    "UnsatisfiableCondition",
    400,
    "The request includes an unsatisfiable condition for this operation.",
)
INCOMPLETE_BODY = row(
    "IncompleteBody",
    400,
    "The request body ended before the number of bytes that Content-Length announced.",
)
# No container, queue, table or share has the name: one row for each kind of place.
CONTAINER_NOT_FOUND = row("ContainerNotFound", 404, "The specified container does not exist.")
QUEUE_NOT_FOUND = row("QueueNotFound", 404, "The specified queue does not exist.")
TABLE_NOT_FOUND = row("TableNotFound", 404, "The table specified does not exist.")
SHARE_NOT_FOUND = row(
    "ShareNotFound",
    404,
    "The specified share does not exist.",
    0xC000_00CC,  # BAD_NETWORK_NAME
)
