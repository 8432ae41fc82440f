"""One service, as the path of a request uses it: the address of its URLs, its operations, its
refusals.

Also the addresses that a URL of any service can have. Source: "Naming and referencing containers,
blobs, and metadata", "Naming queues and metadata", "Addressing Table service resources".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from strongroom.auth.request import Service
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.operations.core.implied_errors import common_errors
from strongroom.operations.core.routes import Routes
from strongroom.operations.core.spec import Operation, Resource
from strongroom.wire.core import errors_xml
from strongroom.wire.core.http import Headers, Request
from strongroom.wire.core.path import UrlTarget
from strongroom.wire.core.query import Query


class ResourceAddress(msgspec.Struct, frozen=True):
    """The resource that a URL names, and its kind.

    Attributes:
        target: `container` is the container, queue or table; `blob` a blob, or a message's id.
        entity: PartitionKey and RowKey of a table's entity.
    """

    target: UrlTarget
    resource: Resource
    entity: tuple[str, str] | None = None


class RefusalBody(msgspec.Struct, frozen=True):
    body: bytes
    content_type: str


def xml_refusal(
    error: StorageError, request_id: str, now: int, operation: Operation | None
) -> RefusalBody:
    """The XML document of a refusal by blobs and queues; `now` is wall time in ticks."""
    return RefusalBody(errors_xml.error_body(error, request_id, now), "application/xml")


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """One service.

    Attributes:
        address: returns the resource that a URL names. It raises StorageError InvalidUri and
            similar errors.
        check_names: refuses invalid names; called after the caller is authorized.
        refuse_unserved: raises 501 for headers and parameters that ask for unsupported features.
        check_bearer: checks the other requirements of a request with a bearer token.
        method: returns the verb of a request, which a header may replace.
        refusal: returns the body of a refusal from (error, x-ms-request-id, wall time in ticks, the
            operation if it is known).
        always: headers of every answer.
        implied: returns the errors that follow from a declaration in this service alone.
        needs_holder: whether one gateway at a time carries out an operation: the one that holds the
            place.
    """

    service: Service
    routes: Routes
    address: Callable[[UrlTarget, Query], ResourceAddress]
    check_names: Callable[[ResourceAddress], None]
    refuse_unserved: Callable[[Headers, Query], None] = lambda headers, query: None
    check_bearer: Callable[[Operation, Headers], None] = lambda operation, headers: None
    method: Callable[[Request], str] = lambda request: request.method
    refusal: Callable[[StorageError, str, int, Operation | None], RefusalBody] = xml_refusal
    always: tuple[tuple[str, str], ...] = ()
    implied: Callable[[Operation], frozenset[ErrorCode]] = lambda operation: frozenset()
    needs_holder: Callable[[Operation], bool] = lambda operation: False

    def implied_errors(self, operation: Operation) -> frozenset[ErrorCode]:
        """The errors of an operation that its `fails` need not repeat."""
        return common_errors(operation) | self.implied(operation)

    def declares(self, operation: Operation, row: ErrorCode) -> bool:
        """Whether the operation may answer this error."""
        return row in operation.fails or row in self.implied_errors(operation)
