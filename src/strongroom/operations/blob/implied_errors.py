"""The errors that follow from the declaration of an operation on blobs, beside the common ones."""

from __future__ import annotations

from typing import Final

from strongroom.errors import blob as blob_errors
from strongroom.errors.core import ErrorCode
from strongroom.operations.core.fields import SCOPE_HEADER
from strongroom.operations.core.spec import Operation, Resource
from strongroom.services.core.calls import ConditionUse, Existence

_SCOPES: Final = frozenset(
    {
        blob_errors.BLOB_CUSTOMER_SPECIFIED_ENCRYPTION_MISMATCH,
        blob_errors.REQUEST_FORBIDDEN_BY_CONTAINER_ENCRYPTION_POLICY,
    }
)


def implied_errors(operation: Operation) -> frozenset[ErrorCode]:
    """Return the errors that follow from the operation's rule, its resource and its headers."""
    rule = operation.rule
    creates = rule.existence is Existence.CREATES
    found = frozenset[ErrorCode]()
    if rule.names_scope:
        found |= {blob_errors.BLOB_USES_CUSTOMER_SPECIFIED_ENCRYPTION}
    if rule.kind is not None:
        found |= {blob_errors.INVALID_BLOB_TYPE}
    if creates and rule.conditions is ConditionUse.WRITE:
        found |= {blob_errors.BLOB_ALREADY_EXISTS}
    if not creates and operation.resource is Resource.BLOB:
        found |= {blob_errors.BLOB_NOT_FOUND}
    if any(SCOPE_HEADER in one.headers for one in operation.accepts):
        found |= _SCOPES
    return found
