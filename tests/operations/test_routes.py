"""The route table, tried with the example requests of the transcript (B-ADR-04 to B-ADR-08)."""

from __future__ import annotations

import dataclasses

import pytest

from strongroom.errors.core import StorageError
from strongroom.operations.blob import endpoint as blob_service
from strongroom.operations.blob.blob import GET_BLOB
from strongroom.operations.blob.endpoint import ROUTES
from strongroom.operations.core.endpoint import Endpoint
from strongroom.operations.core.routes import Ambiguous, Routes
from strongroom.operations.core.spec import When
from strongroom.operations.file import endpoint as file_service
from strongroom.operations.queue import endpoint as queue_service
from strongroom.operations.table import endpoint as table_service
from strongroom.wire.core import path, query
from strongroom.wire.core.http import Headers
from tests.operations.transcript import Example, examples


def matched(endpoint: Endpoint, example: Example) -> str:
    """The operation of a request, or how it is refused."""
    raw_path, _, raw_query = example.target.partition("?")
    asked = query.parse(raw_query or None)
    try:
        addressed = endpoint.address(path.parse("/account" + raw_path, None), asked)
        assert addressed.target.account == "account"
        headers = Headers(example.headers)
        return endpoint.routes.match(example.method, addressed.resource, asked, headers).name
    except StorageError as error:
        return f"{error.row.status} {error.row.code}"


@pytest.mark.parametrize("example", examples("blob"), ids=lambda e: f"{e.method} {e.target}")
def test_every_example_of_the_transcript_is_matched(example: Example) -> None:
    assert matched(blob_service.ENDPOINT, example) == example.outcome


@pytest.mark.parametrize("example", examples("queue"), ids=lambda e: f"{e.method} {e.target}")
def test_every_example_of_queues_is_matched(example: Example) -> None:
    """Q-ADR-01, Q-ADR-05, Q-PEK-02."""
    assert matched(queue_service.ENDPOINT, example) == example.outcome


@pytest.mark.parametrize("example", examples("table"), ids=lambda e: f"{e.method} {e.target}")
def test_every_example_of_tables_is_matched(example: Example) -> None:
    """T-ADR-01, T-ADR-02, T-ADR-08."""
    assert matched(table_service.ENDPOINT, example) == example.outcome


@pytest.mark.parametrize("example", examples("file"), ids=lambda e: f"{e.method} {e.target}")
def test_every_example_of_files_is_matched(example: Example) -> None:
    """F-ADR-01."""
    assert matched(file_service.ENDPOINT, example) == example.outcome


def test_a_hidden_declaration_is_refused() -> None:
    with pytest.raises(Ambiguous, match="hides"):
        Routes((GET_BLOB, dataclasses.replace(GET_BLOB, name="Other", when=(When("x"),))))


def test_more_headers_first_is_no_ambiguity() -> None:
    special = dataclasses.replace(GET_BLOB, name="Special", when=(When("x-special"),))
    routes = Routes((special, GET_BLOB))
    asked = query.parse(None)
    plain = routes.match("GET", GET_BLOB.resource, asked, Headers(()))
    assert plain is GET_BLOB
    assert routes.match("GET", GET_BLOB.resource, asked, Headers((("X-Special", "1"),))) is special


def test_the_allow_header_of_405_lists_the_methods() -> None:
    with pytest.raises(StorageError) as refusal:
        ROUTES.match("POST", GET_BLOB.resource, query.parse(None), Headers(()))
    allow = dict(refusal.value.headers)["Allow"].split(", ")
    assert {"GET", "HEAD", "PUT"} <= set(allow)
