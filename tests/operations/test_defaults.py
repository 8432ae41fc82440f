"""The cached defaults of an operation equal the fields of a request that sends none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strongroom.operations.blob import endpoint as blob_service
from strongroom.operations.core.defaults import values
from strongroom.operations.core.spec import Operation
from strongroom.operations.file import endpoint as file_service
from strongroom.operations.queue import endpoint as queue_service
from strongroom.operations.table import endpoint as table_service
from strongroom.servers.http.body import EmptyBody
from strongroom.wire.core import query
from strongroom.wire.core.http import Headers, Request

ENDPOINTS = (
    blob_service.ENDPOINT,
    queue_service.ENDPOINT,
    table_service.ENDPOINT,
    file_service.ENDPOINT,
)
WITH_DEFAULTS = [
    operation
    for endpoint in ENDPOINTS
    for operation in endpoint.routes.operations
    if operation.defaults is not None
]
SAID = [
    pytest.param(operation, name, id=f"{operation.id}-{name}")
    for operation in WITH_DEFAULTS
    for field in operation.accepts
    for name in (*sorted(field.headers), *("?" + name for name in sorted(field.query)))
]


def _request(header: str | None = None) -> Request:
    return Request("GET", "/", Headers([(header.upper(), "1")] if header else []), EmptyBody())


def _holds(operation: Operation, request: Request, asked: query.Query) -> bool:
    """Whether a request says nothing, as codec.decode asks."""
    defaults = operation.defaults
    assert defaults is not None
    return request.headers.has_none_of(defaults.headers) and asked.has_none_of(defaults.query)


@pytest.mark.parametrize("operation", WITH_DEFAULTS, ids=lambda operation: operation.id)
def test_it_is_what_its_fields_read_from_a_request_that_says_nothing(operation: Operation) -> None:
    request, asked = _request(), query.parse("comp=x&other=1")
    assert operation.defaults is not None and _holds(operation, request, asked)
    values = {field.name: field.read(request, asked) for field in operation.accepts}
    values.pop("", None)
    assert operation.defaults.values == values
    has_document = operation.body is not None and operation.body.parse is not None
    assert operation.defaults.input == (None if has_document else operation.input(**values))


@pytest.mark.parametrize(("operation", "name"), SAID)
def test_whatever_a_field_is_read_from_says_something(operation: Operation, name: str) -> None:
    header, parameter = (None, name[1:]) if name.startswith("?") else (name, "other")
    assert not _holds(operation, _request(header), query.parse(f"{parameter}=1")), name


Read = Callable[[Request, query.Query], Any]
MORE: dict[str, Read] = {
    "another header": lambda request, _: request.headers.get("b"),
    "another header, in a set": lambda request, _: request.headers.has_none_of(("a", "b")),
    "whether another header is there": lambda request, _: "b" in request.headers,
    "parts of names": lambda request, _: request.headers.any_name_holds("a"),
    "all headers": lambda request, _: tuple(request.headers.lowered()),
    "the fields": lambda request, _: request.headers.fields,
    "another parameter": lambda _, asked: asked.get("b"),
    "another parameter's number": lambda _, asked: asked.integer("b", 0, 1),
    "whether another parameter is there": lambda _, asked: "b" in asked,
    "all parameters": lambda _, asked: tuple(asked),
    "the method": lambda request, _: request.method,
    "what must be there": lambda _, asked: asked.require("a"),
}


@pytest.mark.parametrize("name", MORE)
def test_a_field_that_looks_at_more_than_it_names_is_read_each_time(name: str) -> None:
    assert values([("field", MORE[name])], frozenset("a"), frozenset("a")) is None


def test_a_field_that_looks_at_what_it_names_is_read_once() -> None:
    def both(request: Request, asked: query.Query) -> tuple[object, ...]:
        assert "a" not in request.headers and "a" not in asked
        return request.headers.get("a"), asked.integer("a", 0, 1), asked.get("a")

    reads: list[tuple[str, Read]] = [("field", both), ("", lambda *_: "refuses nothing")]
    assert values(reads, frozenset("a"), frozenset("a")) == {"field": (None, None, None)}


def test_frequent_operations_are_among_them() -> None:
    names = {operation.name for operation in WITH_DEFAULTS}
    assert {"Get Blob", "Get Messages", "Put Message"} <= names
