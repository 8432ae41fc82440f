"""Get and Set Container Metadata: rules B-MET-01 to B-MET-06 as they hold for containers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.answer import Answer, expect, metadata
from tests.conformance.client import Client, Fields
from tests.conformance.sas import account_sas

KIB = 1024


@pytest.fixture(params=["create", "set"])
def write(
    request: pytest.FixtureRequest, client: Client, container: str, new_name: Callable[[], str]
) -> Callable[[Fields], Answer]:
    """Sends metadata with Create Container or with Set Container Metadata, by an account SAS."""
    token = account_sas(client.credential)

    def send(headers: Fields) -> Answer:
        name = f"/{new_name()}?restype=container"
        if request.param == "set":
            name = f"/{container}?restype=container&comp=metadata"
        return client.put(f"{name}&{token}", headers, auth=None)

    return send


def test_all_pairs_are_replaced(client: Client, container: str) -> None:
    """B-MET-01."""
    target = f"/{container}?restype=container&comp=metadata"
    first = expect(client.put(target, {"x-ms-meta-a": "1", "x-ms-meta-b": "2"}), 200)
    assert first.body == b""
    assert metadata(client.get(target)) == {"a": "1", "b": "2"}
    second = expect(client.put(target, {"x-ms-meta-c": "3"}), 200)
    assert second.etag > first.etag
    read = expect(client.get(target), 200)
    assert metadata(read) == {"c": "3"}
    assert (read.etag, read["Last-Modified"]) == (second.etag, second["Last-Modified"])
    third = expect(client.put(target), 200)
    assert third.etag > second.etag
    assert metadata(client.get(target)) == {}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reading(client: Client, container: str, method: str) -> None:
    """B-MET-02."""
    target = f"/{container}?restype=container&comp=metadata"
    made = expect(client.put(target, {"x-ms-meta-a": "1"}), 200)
    read = expect(client.send(method, target), 200)
    assert read.body == b""
    assert (read.etag, read["Last-Modified"]) == (made.etag, made["Last-Modified"])
    assert metadata(read) == {"a": "1"}
    assert "x-ms-lease-state" not in read.names()


def test_names_keep_their_case(client: Client, container: str) -> None:
    """B-MET-03."""
    target = f"/{container}?restype=container&comp=metadata"
    expect(client.put(target, {"x-ms-meta-CamelCase": "1", "X-MS-META-lower": "2"}), 200)
    assert metadata(client.get(target)) == {"CamelCase": "1", "lower": "2"}


def test_a_name_twice(write: Callable[[Fields], Answer]) -> None:
    """B-MET-03 B-MET-06. By a SAS: SharedKey refuses a signed header that is sent twice."""
    expect(write([("x-ms-meta-a", "1"), ("x-ms-meta-A", "1")]), 400, "InvalidMetadata")


@pytest.mark.parametrize(
    ("header", "value", "code"),
    [
        ("x-ms-meta-", "1", "EmptyMetadataKey"),
        ("x-ms-meta-1a", "1", "InvalidMetadata"),
        ("x-ms-meta-a-b", "1", "InvalidMetadata"),
        ("x-ms-meta-a.b", "1", "InvalidMetadata"),
        ("x-ms-meta-a", "\u00e9", "InvalidMetadata"),
    ],
)
def test_names_and_values_that_are_none(
    write: Callable[[Fields], Answer], header: str, value: str, code: str
) -> None:
    """B-MET-04 B-MET-06."""
    expect(write({header: value}), 400, code)


@pytest.mark.parametrize("name", ["a", "_", "_1", "A1", "a_b"])
def test_names_that_are_identifiers(write: Callable[[Fields], Answer], name: str) -> None:
    """B-MET-04."""
    assert write({f"x-ms-meta-{name}": '~ value; with="signs"'}).status in (200, 201)


@pytest.mark.parametrize("pairs", [1, 2])
def test_the_size_of_all_together(write: Callable[[Fields], Answer], pairs: int) -> None:
    """B-MET-05 B-MET-06: 8 KiB of names and values are taken, one byte more is not."""
    size = 8 * KIB // pairs - 4
    exact = {f"x-ms-meta-key{number}": "v" * size for number in range(pairs)}
    assert write(exact).status in (200, 201)
    expect(write({**exact, "x-ms-meta-key0": "v" * (size + 1)}), 400, "MetadataTooLarge")
