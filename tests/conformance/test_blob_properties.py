"""Set Blob Properties: rules B-PRP-01 to B-PRP-04."""

from __future__ import annotations

import base64

import pytest

from tests.conformance.answer import expect, metadata
from tests.conformance.blobs import body, md5, put, snapshot, stage
from tests.conformance.client import Client
from tests.conformance.running import Running

# The header that sets a property -> the one that shows it, and a value.
SIX = {
    "x-ms-blob-cache-control": ("Cache-Control", "no-cache"),
    "x-ms-blob-content-type": ("Content-Type", "text/plain"),
    "x-ms-blob-content-md5": ("Content-MD5", md5(b"anything")),
    "x-ms-blob-content-encoding": ("Content-Encoding", "gzip"),
    "x-ms-blob-content-language": ("Content-Language", "de"),
    "x-ms-blob-content-disposition": ("Content-Disposition", "inline"),
}
ALL = {name: value for name, (_, value) in SIX.items()}


@pytest.mark.parametrize("given", SIX)
def test_one_of_the_six_clears_the_others(
    server: Running, client: Client, container: str, given: str
) -> None:
    """B-PRP-01."""
    target = f"/{container}/b"
    put(client, target)
    first = expect(client.put(f"{target}?comp=properties", ALL), 200)
    found = client.head(target)
    assert {found[shown] for shown, _ in SIX.values()} == set(ALL.values())
    server.advance(2)
    second = expect(client.put(f"{target}?comp=properties", {given: ALL[given]}), 200)
    assert second.body == b""
    assert second.etag > first.etag
    assert second["Last-Modified"] != first["Last-Modified"]
    found = client.head(target)
    assert (found.etag, found["Last-Modified"]) == (second.etag, second["Last-Modified"])
    for name, (shown, value) in SIX.items():
        cleared = "application/octet-stream" if shown == "Content-Type" else None
        assert found.get(shown) == (value if name == given else cleared)


def test_none_of_the_six(client: Client, container: str) -> None:
    """B-PRP-02."""
    target = f"/{container}/b"
    put(client, target)
    first = expect(client.put(f"{target}?comp=properties", ALL), 200)
    standard = {"Content-Type": "text/other", "Cache-Control": "other", "Content-Language": "fr"}
    second = expect(client.put(f"{target}?comp=properties", standard), 200)
    assert second.etag > first.etag
    found = client.head(target)
    assert {found[shown] for shown, _ in SIX.values()} == set(ALL.values())


def test_the_md5_is_stored_unchecked(client: Client, container: str) -> None:
    """B-PRP-03."""
    target = f"/{container}/b"
    put(client, target, b"content")
    set_md5 = {"x-ms-blob-content-md5": md5(b"something else")}
    expect(client.put(f"{target}?comp=properties", set_md5), 200)
    assert client.head(target)["Content-MD5"] == md5(b"something else")
    for text in ("no base64!", base64.b64encode(b"short").decode()):
        answer = client.put(f"{target}?comp=properties", {"x-ms-blob-content-md5": text})
        expect(answer, 400, "InvalidMd5")
    assert client.head(target)["Content-MD5"] == md5(b"something else")


def test_everything_else_stays(server: Running, client: Client, container: str) -> None:
    """B-PRP-04."""
    target = f"/{container}/b"
    rich = {"x-ms-meta-a": "1", "x-ms-tags": "k=v", "x-ms-access-tier": "Cool"}
    put(client, target, b"content", rich)
    taken = snapshot(client, target)
    before = client.head(target)
    server.advance(2)
    expect(client.put(f"{target}?comp=properties", ALL), 200)
    after = client.head(target)
    assert metadata(after) == {"a": "1"}
    for name in ("x-ms-creation-time", "x-ms-access-tier", "x-ms-tag-count", "Content-Length"):
        assert after[name] == before[name]
    assert body(client, target) == body(client, f"{target}?snapshot={taken}") == b"content"
    assert client.head(f"{target}?snapshot={taken}").get("Cache-Control") is None


def test_a_blob_that_is_not_there(client: Client, container: str) -> None:
    """B-PRP-04."""
    expect(client.put(f"/{container}/none?comp=properties", ALL), 404, "BlobNotFound")
    stage(client, f"/{container}/staged", "1", b"x")
    expect(client.put(f"/{container}/staged?comp=properties", ALL), 404, "BlobNotFound")
