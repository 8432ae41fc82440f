"""Incremental Copy Blob: rules B-INC-01 to B-INC-04."""

from __future__ import annotations

from tests.conformance.answer import Answer, expect, texts
from tests.conformance.blobs import put, snapshot
from tests.conformance.client import Client
from tests.conformance.copying import copy, ended, source_url
from tests.conformance.pages import GIB, PAGE, clear, create, ranges, send, write

TIB = 1024 * GIB


def order(client: Client, source: str, target: str) -> Answer:
    url = source_url(client, source)
    return client.put(f"{target}?comp=incrementalcopy", {"x-ms-copy-source": url})


def copied(client: Client, source: str, target: str) -> str:
    """The URL path of the snapshot that a copy has made."""
    begun = expect(order(client, source, target), 202)
    assert begun["x-ms-copy-status"] == "pending"
    found = ended(client, target)
    assert (found["x-ms-copy-status"], found["x-ms-copy-id"]) == ("success", begun["x-ms-copy-id"])
    assert found["x-ms-incremental-copy"] == "true"
    return f"{target}?snapshot={found['x-ms-copy-destination-snapshot']}"


def read(client: Client, target: str, first: int) -> bytes:
    answer = client.get(target, {"x-ms-range": f"bytes={first}-{first + PAGE - 1}"})
    return expect(answer, 206).body


def test_each_copy_makes_a_snapshot_of_what_changed(client: Client, container: str) -> None:
    """B-INC-01, B-INC-02."""
    source, target = f"/{container}/a", f"/{container}/b"
    create(client, source, TIB, {"x-ms-blob-sequence-number": "4"})
    write(client, source, 0, b"1" * (200 * 1024))
    write(client, source, GIB, b"1" * PAGE)
    first = f"{source}?snapshot={snapshot(client, source)}"
    write(client, source, PAGE, b"2" * PAGE)
    expect(clear(client, source, GIB, 20 * GIB), 201)
    write(client, source, TIB - PAGE, b"2" * PAGE)
    second = f"{source}?snapshot={snapshot(client, source)}"
    expect(client.put(f"{source}?comp=properties", {"x-ms-blob-content-length": str(GIB)}), 200)
    third = f"{source}?snapshot={snapshot(client, source)}"

    made = [copied(client, one, target) for one in (first, second, third)]
    for here, there in zip(made, (first, second, third), strict=True):
        seen, wanted = expect(client.head(here), 200), client.head(there)
        assert seen["Content-Length"] == wanted["Content-Length"]
        assert seen["x-ms-blob-sequence-number"] == "4"
        assert ranges(client, here) == ranges(client, there)
        assert read(client, here, PAGE) == read(client, there, PAGE)
    assert read(client, made[0], GIB) == b"1" * PAGE
    assert read(client, made[1], TIB - PAGE) == b"2" * PAGE
    changed = ranges(client, made[1], f"&prevsnapshot={made[0].partition('=')[2]}")
    assert changed == ranges(client, second, f"&prevsnapshot={first.partition('=')[2]}")
    page = client.get(f"/{container}?restype=container&comp=list&include=copy").xml
    assert texts(page, "Blobs/Blob/Properties/IncrementalCopy") == ["true"]
    last = made[2].partition("=")[2]
    assert texts(page, "Blobs/Blob/Properties/CopyDestinationSnapshot") == [last]


def test_a_copy_is_whole_when_the_snapshot_before_is_gone(client: Client, container: str) -> None:
    """B-INC-02."""
    source, target = f"/{container}/a", f"/{container}/b"
    create(client, source, GIB)
    write(client, source, 0, b"1" * PAGE)
    first = f"{source}?snapshot={snapshot(client, source)}"
    made = copied(client, first, target)
    expect(clear(client, source, 0, PAGE), 201)
    write(client, source, 8 * PAGE, b"2" * PAGE)
    second = f"{source}?snapshot={snapshot(client, source)}"
    expect(client.delete(first), 202)
    again = copied(client, second, target)
    assert ranges(client, made) == [("P", 0, PAGE)]
    assert ranges(client, again) == [("P", 8 * PAGE, 9 * PAGE)]
    assert ranges(client, copied(client, second, target)) == [("P", 8 * PAGE, 9 * PAGE)]


def test_what_an_incremental_copy_refuses(client: Client, container: str) -> None:
    """B-INC-03, B-PAG-03."""
    source, target = f"/{container}/a", f"/{container}/b"
    create(client, source, PAGE)
    first = f"{source}?snapshot={snapshot(client, source)}"
    second = f"{source}?snapshot={snapshot(client, source)}"
    block, other = f"/{container}/block", f"/{container}/other"
    put(client, block)
    create(client, other, PAGE)
    expect(order(client, source, target), 409, "IncrementalCopySourceMustBeSnapshot")
    at = f"{block}?snapshot={snapshot(client, block)}"
    expect(order(client, at, target), 409, "InvalidSourceBlobType")
    elsewhere = {"x-ms-copy-source": "http://192.0.2.1/c/b?snapshot=2026-01-02T03:04:05.1234567Z"}
    refused = client.put(f"{target}?comp=incrementalcopy", elsewhere)
    expect(refused, 409, "InvalidSourceBlobUrl")
    expect(order(client, first, block), 409, "InvalidBlobType")
    expect(order(client, first, other), 409, "IncrementalCopyBlobMismatch")
    expect(client.head(target), 404, "BlobNotFound")
    copied(client, second, target)
    earlier = "IncrementalCopyOfEralierVersionSnapshotNotAllowed"
    expect(order(client, first, target), 409, earlier)
    at = f"{other}?snapshot={snapshot(client, other)}"
    expect(order(client, at, target), 409, "IncrementalCopyBlobMismatch")
    missing = f"{source}?snapshot=2020-01-02T03:04:05.1234567Z"
    expect(order(client, missing, target), 404, "CannotVerifyCopySource")


def test_what_the_blob_itself_allows(client: Client, container: str) -> None:
    """B-INC-04."""
    source, target = f"/{container}/a", f"/{container}/b"
    create(client, source, PAGE)
    write(client, source, 0, b"x" * PAGE)
    made = copied(client, f"{source}?snapshot={snapshot(client, source)}", target)
    code = "OperationNotAllowedOnIncrementalCopyBlob"
    number = {"x-ms-sequence-number-action": "increment"}
    for answer in (
        client.get(target),
        client.get(f"{target}?comp=pagelist"),
        send(client, target, 0, b"y" * PAGE),
        clear(client, target, 0, PAGE),
        client.put(f"{target}?comp=properties", {"x-ms-blob-content-type": "a/b"}),
        client.put(f"{target}?comp=properties", number),
        client.put(f"{target}?comp=metadata", {"x-ms-meta-a": "b"}),
        client.put(f"{target}?comp=tier", {"x-ms-access-tier": "P10"}),
        client.put(f"{target}?comp=snapshot"),
        client.put(target, {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}),
        copy(client, source_url(client, source), target),
        copy(client, source_url(client, target), f"/{container}/c"),
    ):
        expect(answer, 409, code)
    assert client.get(made).body == b"x" * PAGE
    expect(copy(client, source_url(client, made), f"/{container}/c"), 202)
    assert ended(client, f"/{container}/c").get("x-ms-incremental-copy") is None
    assert client.get(f"/{container}/c").body == b"x" * PAGE
    expect(client.delete(target), 409, "SnapshotsPresent")
    expect(client.delete(target, {"x-ms-delete-snapshots": "include"}), 202)
