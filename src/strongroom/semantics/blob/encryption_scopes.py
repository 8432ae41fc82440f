"""Encryption scopes: which scope a write has, and which a container permits.

Sources: "Encryption scopes for Blob storage", "Create Container"; reference sections 2 and 12. A
scope is a name that a client sets, and that responses repeat; all data is stored in the same way.
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError, invalid_header
from strongroom.values import ACCOUNT_SCOPE, is_encryption_scope

HEADER: Final = "x-ms-encryption-scope"
DEFAULT_HEADER: Final = "x-ms-default-encryption-scope"
DENY_HEADER: Final = "x-ms-deny-encryption-scope-override"


def read_scope(name: str, value: str) -> str:
    """The scope that a header names; "" is the account's own."""
    if value == ACCOUNT_SCOPE:
        return ""
    if not is_encryption_scope(value):
        raise invalid_header(
            name, value, "It must have 3 to 63 letters, digits and single hyphens."
        )
    return value


def scope_of_new(requested: str, default: str, is_denied: bool) -> str:
    """The scope of a blob that is written.

    Arguments:
        requested: the scope that the request names.
        default: the container's default scope; "" = the account's own.
        is_denied: whether the container refuses writes with another scope.
    """
    if requested == default:
        return default
    if is_denied:
        raise StorageError(blob_errors.REQUEST_FORBIDDEN_BY_CONTAINER_ENCRYPTION_POLICY)
    return requested


def require_named(default: str, scope: str) -> None:
    """Refuse a request that names no scope, for a blob that has another one than the container's
    default.

    Arguments:
        default: the container's default scope; "" = the account's own.
        scope: the blob's.
    """
    if scope and scope != default:
        raise StorageError(blob_errors.BLOB_USES_CUSTOMER_SPECIFIED_ENCRYPTION)


def require_same(given: str | None, scope: str) -> None:
    """Refuse a change of a blob under another encryption scope than the blob's."""
    if given is not None and given != scope:
        raise StorageError(blob_errors.BLOB_CUSTOMER_SPECIFIED_ENCRYPTION_MISMATCH)
