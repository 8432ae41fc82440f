"""Metadata of blobs, and its checks everywhere: rules B-MET-01 to B-MET-06."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.answer import Answer, expect, metadata
from tests.conformance.blobs import block_list, body, put, snapshot, stage
from tests.conformance.client import PUT_BLOB, Client, Fields
from tests.conformance.copying import readable
from tests.conformance.running import Running
from tests.conformance.sas import account_sas

Pairs = list[tuple[str, str]]
TWICE: Pairs = [("x-ms-meta-a", "1"), ("x-ms-meta-A", "2")]


class BySas(Client):
    """A client with an account SAS: SharedKey refuses any signed header that is sent twice."""

    def send(
        self,
        method: str,
        target: str,
        headers: Fields = (),
        body: bytes = b"",
        auth: str | None = "",
    ) -> Answer:
        separator = "&" if "?" in target else "?"
        token = account_sas(self.credential)
        return super().send(method, f"{target}{separator}{token}", headers, body, None)


def by_sas(client: Client) -> Client:
    """The same account by a SAS that allows everything."""
    return BySas(client.port, client.credential)


def test_metadata_is_replaced_as_a_whole(server: Running, client: Client, container: str) -> None:
    """B-MET-01."""
    target = f"/{container}/b"
    first = put(client, target, b"content", {"x-ms-meta-a": "1", "x-ms-meta-b": "2"})
    server.advance(2)
    second = expect(client.put(f"{target}?comp=metadata", {"x-ms-meta-c": "3"}), 200)
    assert second.etag > first.etag
    assert second["Last-Modified"] != first["Last-Modified"]
    found = client.head(target)
    assert metadata(found) == {"c": "3"}
    assert (found.etag, found["Last-Modified"]) == (second.etag, second["Last-Modified"])
    third = expect(client.put(f"{target}?comp=metadata"), 200)
    assert third.etag > second.etag
    assert metadata(client.head(target)) == {}
    assert body(client, target) == b"content"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_get_blob_metadata_gives(client: Client, container: str, method: str) -> None:
    """B-MET-02."""
    target = f"/{container}/b"
    pairs = {"x-ms-meta-Some": "text, more", "x-ms-meta-other_2": ""}
    made = put(client, target, b"content", pairs)
    read = expect(client.send(method, f"{target}?comp=metadata"), 200)
    assert (read.etag, read["Last-Modified"], read.body) == (made.etag, made["Last-Modified"], b"")
    assert metadata(read) == {"Some": "text, more", "other_2": ""}
    taken = snapshot(client, target)
    expect(client.put(f"{target}?comp=metadata"), 200)
    read = expect(client.send(method, f"{target}?comp=metadata&snapshot={taken}"), 200)
    assert metadata(read) == {"Some": "text, more", "other_2": ""}
    expect(client.send(method, f"/{container}/none?comp=metadata"), 404, "BlobNotFound")


def test_the_same_name_in_another_case(client: Client, container: str) -> None:
    """B-MET-03."""
    target = f"/{container}/b"
    put(client, target, b"content", {"x-ms-meta-Name": "1"})
    twice = by_sas(client).put(f"{target}?comp=metadata", TWICE)
    expect(twice, 400, "InvalidMetadata")
    assert metadata(client.head(target)) == {"Name": "1"}


BAD: dict[str, tuple[Pairs, str]] = {
    "no name": ([("x-ms-meta-", "1")], "EmptyMetadataKey"),
    "a digit first": ([("x-ms-meta-1a", "1")], "InvalidMetadata"),
    "a hyphen": ([("x-ms-meta-a-b", "1")], "InvalidMetadata"),
    "a letter with an accent": ([("x-ms-meta-a", "é")], "InvalidMetadata"),
    "twice": (TWICE, "InvalidMetadata"),
    "too large": ([("x-ms-meta-a", "v" * 8192)], "MetadataTooLarge"),
    "too large together": (
        [(f"x-ms-meta-{letter}", "v" * 4096) for letter in "ab"],
        "MetadataTooLarge",
    ),
}
Write = Callable[[Client, str, Pairs], Answer]


def _set_metadata(client: Client, container: str, pairs: Pairs) -> Answer:
    return client.put(f"/{container}/b?comp=metadata", pairs)


def _put_blob(client: Client, container: str, pairs: Pairs) -> Answer:
    return client.put(f"/{container}/new", [*PUT_BLOB.items(), *pairs], b"x")


def _put_block_list(client: Client, container: str, pairs: Pairs) -> Answer:
    stage(client, f"/{container}/new", "1", b"x")
    return client.put(f"/{container}/new?comp=blocklist", pairs, block_list("1"))


def _snapshot(client: Client, container: str, pairs: Pairs) -> Answer:
    return client.put(f"/{container}/b?comp=snapshot", pairs)


def _copy(client: Client, container: str, pairs: Pairs) -> Answer:
    source = ("x-ms-copy-source", readable(client, f"{client.url}/{container}/b"))
    return client.put(f"/{container}/new", [source, *pairs])


def _copy_from_url(client: Client, container: str, pairs: Pairs) -> Answer:
    return _copy(client, container, [("x-ms-requires-sync", "true"), *pairs])


def _put_blob_from_url(client: Client, container: str, pairs: Pairs) -> Answer:
    return _copy(client, container, [("x-ms-blob-type", "BlockBlob"), *pairs])


def _create_container(client: Client, container: str, pairs: Pairs) -> Answer:
    return client.put(f"/{container}-2?restype=container", pairs)


WRITES: list[Write] = [
    _set_metadata, _put_blob, _put_block_list, _snapshot, _copy, _copy_from_url,
    _put_blob_from_url, _create_container,
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("write", WRITES)
def test_metadata_that_is_refused(client: Client, container: str, write: Write, bad: str) -> None:
    """B-MET-04 B-MET-05 B-MET-06."""
    made = put(client, f"/{container}/b", b"content", {"x-ms-meta-kept": "1"})
    pairs, code = BAD[bad]
    expect(write(by_sas(client), container, pairs), 400, code)
    found = client.head(f"/{container}/b")
    assert (found.etag, metadata(found)) == (made.etag, {"kept": "1"})
    expect(client.head(f"/{container}/new"), 404, "BlobNotFound")
    expect(client.head(f"/{container}-2?restype=container"), 404, "ContainerNotFound")


@pytest.mark.parametrize("write", WRITES)
def test_metadata_of_exactly_8_kib(client: Client, container: str, write: Write) -> None:
    """B-MET-05 B-MET-06."""
    put(client, f"/{container}/b")
    pairs = [("x-ms-meta-a", "v" * 4095), ("x-ms-meta-_B", "w" * 4094)]
    assert sum(len(name.removeprefix("x-ms-meta-") + value) for name, value in pairs) == 8192
    answer = write(client, container, pairs)
    assert answer.status in (200, 201, 202), answer
