"""What an operation makes of a request that says nothing is what its fields read from one."""

from __future__ import annotations

import pytest

from strongroom.operations import blob_service, queue_service, table_service
from strongroom.operations.spec import Operation
from strongroom.servers.http_body import EmptyBody
from strongroom.wire import query
from strongroom.wire.http import Headers, Request

ENDPOINTS = (blob_service.ENDPOINT, queue_service.ENDPOINT, table_service.ENDPOINT)
SILENT = [
    operation
    for endpoint in ENDPOINTS
    for operation in endpoint.routes.operations
    if operation.unsaid is not None
]
SAID = [
    pytest.param(operation, name, id=f"{operation.id}-{name}")
    for operation in SILENT
    for field in operation.accepts
    for name in (*field.headers, *("?" + name for name in field.query))
]


def _request(header: str | None = None) -> Request:
    return Request("GET", "/", Headers([(header.upper(), "1")] if header else []), EmptyBody())


@pytest.mark.parametrize("operation", SILENT, ids=lambda operation: operation.id)
def test_it_is_what_its_fields_read_from_a_request_that_says_nothing(operation: Operation) -> None:
    request, asked = _request(), query.parse("comp=x&other=1")
    assert operation.unsaid is not None and operation.unsaid.holds(request, asked)
    values = {field.name: field.read(request, asked) for field in operation.accepts}
    values.pop("", None)
    assert operation.unsaid.values == values
    has_document = operation.body is not None and operation.body.parse is not None
    assert operation.unsaid.input == (None if has_document else operation.input(**values))


@pytest.mark.parametrize(("operation", "name"), SAID)
def test_whatever_a_field_is_read_from_says_something(operation: Operation, name: str) -> None:
    assert operation.unsaid is not None
    header, parameter = (None, name[1:]) if name.startswith("?") else (name, "other")
    assert not operation.unsaid.holds(_request(header), query.parse(f"{parameter}=1")), name


def test_frequent_operations_are_among_them() -> None:
    names = {operation.name for operation in SILENT}
    assert {"Get Blob", "Get Messages", "Put Message"} <= names
