"""Snapshot Blob: rules B-SNP-01 to B-SNP-05."""

from __future__ import annotations

import re

import pytest

from tests.conformance.answer import expect, expect_names, metadata
from tests.conformance.blobs import block_list, blocks, body, commit, put, seen, snapshot, stage
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.leasing import A, Leased
from tests.conformance.running import Running

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z")


def test_what_snapshot_blob_answers(client: Client, container: str) -> None:
    """B-SNP-01."""
    target = f"/{container}/b"
    made = put(client, target)
    times = []
    for _ in range(3):
        taken = expect(client.put(f"{target}?comp=snapshot"), 201)
        assert (taken.etag, taken["Last-Modified"]) == (made.etag, made["Last-Modified"])
        assert TIME.fullmatch(taken["x-ms-snapshot"])
        times.append(taken["x-ms-snapshot"])
    assert times == sorted(set(times))
    assert client.head(target).etag == made.etag


def test_a_snapshot_with_its_own_metadata(server: Running, client: Client, container: str) -> None:
    """B-SNP-02."""
    target = f"/{container}/b"
    made = put(client, target, b"content", {"x-ms-meta-a": "1"})
    server.advance(2)
    taken = expect(client.put(f"{target}?comp=snapshot", {"x-ms-meta-b": "2"}), 201)
    assert taken.etag > made.etag
    assert taken["Last-Modified"] != made["Last-Modified"]
    found = client.head(f"{target}?snapshot={taken['x-ms-snapshot']}")
    assert metadata(found) == {"b": "2"}
    assert (found.etag, found["Last-Modified"]) == (taken.etag, taken["Last-Modified"])
    base = client.head(target)
    assert (base.etag, metadata(base)) == (made.etag, {"a": "1"})


@pytest.mark.parametrize("size", [7, 100_000])
def test_a_snapshot_keeps_the_moment(
    server: Running, client: Client, container: str, size: int
) -> None:
    """B-SNP-03."""
    target = f"/{container}/b"
    content = (b"content" * size)[:size]
    own = {"x-ms-blob-content-type": "text/own", "x-ms-meta-a": "1"}
    stage(client, target, "1", content)
    commit(client, target, ["1"], own)
    Leased(server, client, target).acquire()
    taken = snapshot(client, target)
    at = f"{target}?snapshot={taken}"
    first = seen(client, at)
    held = {"x-ms-lease-id": A}
    expect(client.put(target, {**PUT_BLOB, **held}, b"new"), 201)
    expect(client.put(f"{target}?comp=metadata", {**held, "x-ms-meta-b": "2"}), 200)
    again = {**held, "x-ms-delete-snapshots": "only"}
    assert seen(client, at) == first
    found = expect(client.get(at), 200)
    assert (found.body, found["Content-Type"]) == (content, "text/own")
    assert metadata(client.get(f"{at}&comp=metadata")) == metadata(found) == {"a": "1"}
    assert blocks(client, at) == (["1"], [])
    lease_names = {"x-ms-lease-status", "x-ms-lease-state", "x-ms-lease-duration"}
    assert not found.names() & lease_names
    assert not expect(client.head(at), 200).names() & lease_names
    part = expect(client.get(at, {"Range": "bytes=1-3"}), 206)
    assert part.body == content[1:4]
    expect(client.delete(target, again), 202)
    expect(client.get(at), 404, "BlobNotFound")
    assert body(client, target) == b"new"


def test_a_base_that_is_not_there(client: Client, container: str) -> None:
    """B-SNP-04."""
    expect(client.put(f"/{container}/none?comp=snapshot"), 404, "BlobNotFound")
    stage(client, f"/{container}/staged", "1", b"x")
    expect(client.put(f"/{container}/staged?comp=snapshot"), 404, "BlobNotFound")


WRITES: dict[str, tuple[str, dict[str, str], bytes]] = {
    "Put Blob": ("", PUT_BLOB, b"x"),
    "Put Block": ("&comp=block&blockid=MQ%3D%3D", {}, b"x"),
    "Put Block List": ("&comp=blocklist", {}, block_list()),
    "Set Blob Metadata": ("&comp=metadata", {"x-ms-meta-a": "1"}, b""),
    "Set Blob Properties": ("&comp=properties", {"x-ms-blob-content-type": "a/b"}, b""),
    "Snapshot Blob": ("&comp=snapshot", {}, b""),
    "Acquire": ("&comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}, b""),
    "Renew": ("&comp=lease", {"x-ms-lease-action": "renew", "x-ms-lease-id": A}, b""),
    "Release": ("&comp=lease", {"x-ms-lease-action": "release", "x-ms-lease-id": A}, b""),
    "Break": ("&comp=lease", {"x-ms-lease-action": "break"}, b""),
    "Copy Blob": ("", {"x-ms-copy-source": "http://127.0.0.1:1/a/b"}, b""),
    "Abort Copy": (f"&comp=copy&copyid={A}", {"x-ms-copy-action": "abort"}, b""),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_snapshot_cannot_be_written(client: Client, container: str, write: str) -> None:
    """B-SNP-05."""
    target = f"/{container}/b"
    put(client, target)
    at = f"{target}?snapshot={snapshot(client, target)}"
    before = (seen(client, at), seen(client, target))
    query, headers, data = WRITES[write]
    answer = client.put(at + query, headers, data)
    expect_names(answer, 400, "InvalidQueryParameterValue", "snapshot")
    assert (seen(client, at), seen(client, target)) == before
