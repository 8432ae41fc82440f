"""Delete Blob: rules B-DEL-01 to B-DEL-05."""

from __future__ import annotations

import pytest

from tests.conformance.answer import expect, expect_names, metadata, texts
from tests.conformance.blobs import blocks, body, put, snapshot, stage
from tests.conformance.client import Client

OPTION = "x-ms-delete-snapshots"


def test_nothing_of_a_deleted_blob_is_left(client: Client, container: str) -> None:
    """B-DEL-01."""
    target = f"/{container}/b"
    rich = {"x-ms-meta-a": "1", "x-ms-tags": "k=v", "x-ms-blob-content-type": "text/own"}
    first = put(client, target, b"old", {**rich, "x-ms-access-tier": "Cool"})
    stage(client, target, "1", b"staged")
    gone = expect(client.delete(target), 202)
    assert gone["x-ms-delete-type-permanent"] == "true"
    assert gone.get("ETag") is None
    for comp in ("", "?comp=metadata", "?comp=blocklist&blocklisttype=all"):
        expect(client.get(target + comp), 404, "BlobNotFound")
    second = put(client, target, b"new")
    assert second.etag > first.etag
    found = client.head(target)
    assert metadata(found) == {}
    assert found["Content-Type"] == "application/octet-stream"
    assert found.get("x-ms-tag-count") is None
    assert found["x-ms-access-tier-inferred"] == "true"
    assert blocks(client, target) == ([], [])


def test_a_base_with_snapshots_is_kept(client: Client, container: str) -> None:
    """B-DEL-02."""
    target = f"/{container}/b"
    made = put(client, target)
    taken = snapshot(client, target)
    expect(client.delete(target), 409, "SnapshotsPresent")
    assert client.head(target).etag == made.etag
    expect(client.head(f"{target}?snapshot={taken}"), 200)
    expect(client.delete(f"{target}?snapshot={taken}"), 202)
    expect(client.delete(target), 202)


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("word", ["include", "only"])
def test_base_and_snapshots(client: Client, container: str, word: str, count: int) -> None:
    """B-DEL-03."""
    target = f"/{container}/b"
    made = put(client, target)
    taken = [snapshot(client, target) for _ in range(count)]
    expect(client.delete(target, {OPTION: word}), 202)
    for time in taken:
        expect(client.get(f"{target}?snapshot={time}"), 404, "BlobNotFound")
    if word == "include":
        expect(client.get(target), 404, "BlobNotFound")
    else:
        assert client.head(target).etag == made.etag
        expect(client.delete(target), 202)


@pytest.mark.parametrize("word", ["", "all", "include,only"])
def test_another_word(client: Client, container: str, word: str) -> None:
    """B-DEL-03."""
    put(client, f"/{container}/b")
    answer = client.delete(f"/{container}/b", {OPTION: word})
    expect_names(answer, 400, "InvalidHeaderValue", OPTION)
    assert body(client, f"/{container}/b") == b"content"


def test_one_snapshot(client: Client, container: str) -> None:
    """B-DEL-04."""
    target = f"/{container}/b"
    put(client, target)
    first, second = snapshot(client, target), snapshot(client, target)
    for word in ("include", "only"):
        answer = client.delete(f"{target}?snapshot={first}", {OPTION: word})
        expect(answer, 400, "InvalidQueryParameterValue")
    expect(client.delete(f"{target}?snapshot={first}"), 202)
    expect(client.get(f"{target}?snapshot={first}"), 404, "BlobNotFound")
    assert body(client, f"{target}?snapshot={second}") == body(client, target) == b"content"
    page = client.get(f"/{container}?restype=container&comp=list&include=snapshots")
    assert texts(page.xml, "Blobs/Blob/Snapshot") == [second]


def test_what_is_not_there(client: Client, container: str) -> None:
    """B-DEL-05."""
    target = f"/{container}/b"
    expect(client.delete(target), 404, "BlobNotFound")
    expect(client.delete(target, {OPTION: "include"}), 404, "BlobNotFound")
    stage(client, target, "1", b"x")
    expect(client.delete(target), 404, "BlobNotFound")
    assert blocks(client, target) == ([], ["1"])
    put(client, target)
    taken = snapshot(client, target)
    expect(client.delete(f"{target}?snapshot={taken}"), 202)
    expect(client.delete(f"{target}?snapshot={taken}"), 404, "BlobNotFound")
    expect(client.delete(target), 202)
    expect(client.delete(target), 404, "BlobNotFound")


def test_many_snapshots_go_at_once(client: Client, container: str) -> None:
    """B-DEL-03: more than one commit takes."""
    target = f"/{container}/b"
    put(client, target)
    for _ in range(205):
        snapshot(client, target)
    expect(client.delete(target), 409, "SnapshotsPresent")
    expect(client.delete(target, {OPTION: "include"}), 202)
    page = client.get(f"/{container}?restype=container&comp=list&include=snapshots")
    assert texts(page.xml, "Blobs/Blob/Name") == []
