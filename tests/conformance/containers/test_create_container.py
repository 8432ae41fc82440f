"""Create Container: rules B-CON-01, B-CON-02, and the rules for a container's metadata."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.answer import RFC1123, expect, expect_names, metadata
from tests.conformance.client import PUT_BLOB, Client

NewName = Callable[[], str]


def test_a_new_container_has_what_was_given(client: Client, new_name: NewName) -> None:
    """B-CON-01."""
    target = f"/{new_name()}?restype=container"
    headers = {"x-ms-meta-Owner": "Ann", "x-ms-meta-x": "1", "x-ms-blob-public-access": "blob"}
    made = expect(client.put(target, headers), 201)
    assert made.body == b"" and RFC1123.fullmatch(made["Last-Modified"])
    read = expect(client.get(target), 200)
    assert read.etag == made.etag
    assert read["Last-Modified"] == made["Last-Modified"]
    assert metadata(read) == {"Owner": "Ann", "x": "1"}
    assert read["x-ms-blob-public-access"] == "blob"


def test_a_name_that_is_taken(client: Client, new_name: NewName) -> None:
    """B-CON-01: 409, and nothing changes."""
    name = new_name()
    target = f"/{name}?restype=container"
    made = expect(client.put(target, {"x-ms-meta-owner": "ann"}), 201)
    expect(client.put(f"/{name}/b", PUT_BLOB, b"x"), 201)
    again = {"x-ms-meta-owner": "bob", "x-ms-blob-public-access": "container"}
    expect(client.put(target, again), 409, "ContainerAlreadyExists")
    read = expect(client.get(target), 200)
    assert read.etag == made.etag
    assert metadata(read) == {"owner": "ann"}
    assert read.get("x-ms-blob-public-access") is None
    assert expect(client.get(f"/{name}/b"), 200).body == b"x"


def test_of_several_creators_one_succeeds(client: Client, new_name: NewName) -> None:
    """B-CON-01."""
    target = f"/{new_name()}?restype=container"
    answers = [client.start("PUT", target) for _ in range(8)]
    found = sorted((answer.result().status, answer.result().code) for answer in answers)
    assert found == [(201, None), *[(409, "ContainerAlreadyExists")] * 7]


@pytest.mark.parametrize("word", ["", "true", "private", "blobs", "off"])
@pytest.mark.parametrize("comp", ["", "&comp=acl"])
def test_another_public_access(
    client: Client, container: str, new_name: NewName, word: str, comp: str
) -> None:
    """B-CON-02: here and in Set Container ACL."""
    name = container if comp else new_name()
    answer = client.put(f"/{name}?restype=container{comp}", {"x-ms-blob-public-access": word})
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-blob-public-access")
    assert answer.error["HeaderValue"] == word
    if not comp:
        missing = client.head(f"/{name}?restype=container")
        expect(missing, 404, "ContainerNotFound")


@pytest.mark.parametrize("word", ["container", "blob", "Blob", "CONTAINER"])
def test_public_access_is_reported(client: Client, new_name: NewName, word: str) -> None:
    """B-CON-02: both words are taken."""
    target = f"/{new_name()}?restype=container"
    expect(client.put(target, {"x-ms-blob-public-access": word}), 201)
    assert expect(client.head(target), 200)["x-ms-blob-public-access"] == word.lower()
