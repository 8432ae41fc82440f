"""Copy Blob: rules B-CPY-01 to B-CPY-04, B-CPY-09 to B-CPY-12."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.answer import GUID, RFC1123, expect, expect_names, metadata
from tests.conformance.blobs import (
    block_list,
    blocks,
    body,
    commit,
    md5,
    put,
    seen,
    snapshot,
    stage,
)
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import SYNC, copy, ended, held, source_url
from tests.conformance.leasing import Leased
from tests.conformance.running import Running
from tests.conformance.sas import service_sas

MIB = 1024 * 1024
BOTH = pytest.mark.parametrize("kind", [{}, SYNC], ids=["Copy Blob", "From URL"])
PROPERTIES = {
    "x-ms-blob-content-type": "text/own",
    "x-ms-blob-content-encoding": "gzip",
    "x-ms-blob-content-language": "de",
    "x-ms-blob-cache-control": "no-cache",
    "x-ms-blob-content-disposition": "inline",
}
SHOWN = [
    "Content-Type", "Content-Encoding", "Content-Language", "Cache-Control",
    "Content-Disposition", "Content-Length", "Content-MD5",
]  # fmt: skip


@pytest.mark.parametrize("size", [0, 7, 100_000, 16 * MIB])
def test_a_small_copy_is_made_at_once(client: Client, container: str, size: int) -> None:
    """B-CPY-01."""
    content = (b"content" * (size // 7 + 1))[:size]
    put(client, f"/{container}/source", content)
    target = f"/{container}/b"
    made = expect(copy(client, source_url(client, f"/{container}/source"), target), 202)
    assert GUID.fullmatch(made["x-ms-copy-id"])
    assert made["x-ms-copy-status"] == "success"
    assert RFC1123.fullmatch(made["Last-Modified"])
    read = expect(client.get(target), 200)
    assert (read.body, read.etag) == (content, made.etag)


@BOTH
def test_what_is_copied(
    server: Running, client: Client, container: str, kind: dict[str, str]
) -> None:
    """B-CPY-02."""
    source, target = f"/{container}/source", f"/{container}/b"
    for name in ("1", "2"):
        stage(client, source, name, name.encode() * 1000)
    own = {**PROPERTIES, "x-ms-blob-content-md5": md5(b"kept")}
    commit(client, source, ["2", "1"], {**own, "x-ms-meta-a": "1", "x-ms-tags": "k=v"})
    stage(client, source, "3", b"staged")
    snapshot(client, source)
    Leased(server, client, source).acquire()
    expect(copy(client, source_url(client, source), target, kind), 202)
    original, found = client.head(source), client.head(target)
    assert {name: found.get(name) for name in SHOWN} == {n: original.get(n) for n in SHOWN}
    assert metadata(found) == {"a": "1"}
    assert body(client, target) == b"2" * 1000 + b"1" * 1000
    assert blocks(client, target) == (["2", "1"], [])
    assert found.get("x-ms-tag-count") is None
    assert found["x-ms-lease-state"] == "available"
    expect(client.delete(target), 202)


@BOTH
def test_metadata_and_tags_of_the_request(
    client: Client, container: str, kind: dict[str, str]
) -> None:
    """B-CPY-02."""
    source, target = f"/{container}/source", f"/{container}/b"
    put(client, source, b"content", {"x-ms-meta-a": "1", "x-ms-meta-b": "2"})
    given = {**kind, "x-ms-meta-c": "3", "x-ms-tags": "k=v&l=w", "x-ms-access-tier": "Cool"}
    expect(copy(client, source_url(client, source), target, given), 202)
    found = client.head(target)
    assert metadata(found) == {"c": "3"}
    assert (found["x-ms-tag-count"], found["x-ms-access-tier"]) == ("2", "Cool")


def test_what_the_destination_shows(client: Client, container: str) -> None:
    """B-CPY-03."""
    source, target = f"/{container}/source", f"/{container}/b"
    put(client, source, b"content")
    url = source_url(client, source)
    token = service_sas(client.credential, container, "source")
    made = expect(copy(client, f"{url}?{token}", target), 202)
    for send in (client.head, client.get):
        found = expect(send(target), 200)
        assert found["x-ms-copy-id"] == made["x-ms-copy-id"]
        assert found["x-ms-copy-status"] == "success"
        assert found["x-ms-copy-source"] == url
        assert found["x-ms-copy-progress"] == "7/7"
        assert RFC1123.fullmatch(found["x-ms-copy-completion-time"])
        assert "sig=" not in str(found.headers)
    expect(client.put(f"{target}?comp=metadata"), 200)
    assert client.head(target)["x-ms-copy-id"] == made["x-ms-copy-id"]


@pytest.mark.parametrize("by", ["properties", "put", "block list"])
def test_what_removes_it(client: Client, container: str, by: str) -> None:
    """B-CPY-03."""
    source, target = f"/{container}/source", f"/{container}/b"
    put(client, source)
    expect(copy(client, source_url(client, source), target), 202)
    if by == "properties":
        expect(client.put(f"{target}?comp=properties"), 200)
    elif by == "put":
        put(client, target)
    else:
        commit(client, target, [])
    shown = client.head(target).names()
    assert not [name for name in shown if name.startswith("x-ms-copy")]


def test_a_large_copy_that_is_made_later(server: Running, client: Client, container: str) -> None:
    """B-CPY-04: the answer says pending; the ETag changes at the start and at the end."""
    source, target = f"/{container}/source", f"/{container}/b"
    content = bytes(range(256)) * (16 * MIB // 256) + b"1"
    put(client, source, content, {"x-ms-meta-a": "1"})
    before = put(client, target, b"old")
    with held(server):
        made = expect(copy(client, source_url(client, source), f"{target}?timeout=1"), 202)
    assert made["x-ms-copy-status"] == "pending"
    found = ended(client, target)
    assert found["x-ms-copy-status"] == "success"
    assert found["x-ms-copy-id"] == made["x-ms-copy-id"]
    assert found["x-ms-copy-progress"] == f"{len(content)}/{len(content)}"
    assert before.etag < made.etag < found.etag
    assert metadata(found) == {"a": "1"}
    assert body(client, target) == content


@BOTH
def test_a_source_that_is_not_there(
    client: Client, container: str, new_name: Callable[[], str], kind: dict[str, str]
) -> None:
    """B-CPY-09."""
    stage(client, f"/{container}/staged", "1", b"x")
    for target, code in (
        (f"/{container}/none", "BlobNotFound"),
        (f"/{container}/staged", "BlobNotFound"),
        (f"/{container}/staged?snapshot=2020-01-01T00:00:00.0000000Z", "BlobNotFound"),
        (f"/{new_name()}/b", "ContainerNotFound"),
    ):
        answer = copy(client, source_url(client, target), f"/{container}/b", kind)
        expect(answer, 404, "CannotVerifyCopySource")
        assert answer["x-ms-copy-source-status-code"] == "404"
        assert answer["x-ms-copy-source-error-code"] == code
    expect(client.head(f"/{container}/b"), 404, "BlobNotFound")


@BOTH
def test_who_may_read_a_source_of_the_same_account(
    client: Client, container: str, new_name: Callable[[], str], kind: dict[str, str]
) -> None:
    """B-CPY-10."""
    put(client, f"/{container}/source", b"source")
    elsewhere = new_name()
    expect(client.put(f"/{elsewhere}?restype=container"), 201)
    plain = source_url(client, f"/{container}/source")
    expect(copy(client, plain, f"/{container}/b", kind), 202)
    writer = service_sas(client.credential, elsewhere, sp="w")
    reader = service_sas(client.credential, container, "source", sp="r")
    other = service_sas(client.credential, container, "other", sp="r")
    letters = service_sas(client.credential, container, "source", sp="wd")
    target = f"/{elsewhere}/b?{writer}"
    anybody = client.anonymous
    for url, status in ((plain, 401), (f"{plain}?{other}", 403), (f"{plain}?{letters}", 403)):
        refused = expect(copy(anybody, url, target, kind), status, "CannotVerifyCopySource")
        assert refused.reason == anybody.get(url.removeprefix(client.url)).reason
    denied = "This request is not authorized to perform this operation using this permission."
    assert refused.reason.startswith(denied)
    expect(copy(anybody, f"{plain}?{reader}", target, kind), 202)
    acl = f"/{container}?restype=container&comp=acl"
    expect(client.put(acl, {"x-ms-blob-public-access": "blob"}), 200)
    expect(copy(anybody, plain, target, kind), 202)
    anybody.close()


@BOTH
def test_who_may_read_a_source_of_another_account(
    client: Client, account: Client, container: str, kind: dict[str, str]
) -> None:
    """B-CPY-10."""
    expect(account.put("/private?restype=container"), 201)
    put(account, "/private/source", b"theirs")
    url = source_url(account, "/private/source")
    target = f"/{container}/b"
    refused = expect(copy(client, url, target, kind), 401, "CannotVerifyCopySource")
    assert refused["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
    assert b"theirs" not in refused.body
    token = service_sas(account.credential, "private", "source")
    expect(copy(client, f"{url}?{token}", target, kind), 202)
    assert body(client, target) == b"theirs"
    acl = "/private?restype=container&comp=acl"
    expect(account.put(acl, {"x-ms-blob-public-access": "blob"}), 200)
    expect(copy(client, url, target, kind), 202)


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "",
        "b",
        "/container/b",
        "ftp://127.0.0.1/c/b",
        "file:///etc/passwd",
        "http://",
        "http:///c/b",
        "http://127.0.0.1:99999/c/b",
        "http://user:password@127.0.0.1/c/b",
        "http://127.0.0.1/c/a b",
        "http://127.0.0.1/c/" + "b" * 2048,
        "http://[::1/c/b",
    ],
)
def test_a_source_that_is_no_url(
    client: Client, container: str, kind: dict[str, str], text: str
) -> None:
    """B-CPY-11."""
    answer = copy(client, text, f"/{container}/b", kind)
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-copy-source")


@BOTH
def test_a_snapshot_as_source(client: Client, container: str, kind: dict[str, str]) -> None:
    """B-CPY-12."""
    source, target = f"/{container}/source", f"/{container}/b"
    put(client, source, b"old", {"x-ms-meta-a": "1"})
    taken = snapshot(client, source)
    put(client, source, b"new")
    url = source_url(client, f"{source}?snapshot={taken}")
    expect(copy(client, url, target, kind), 202)
    found = expect(client.get(target), 200)
    assert (found.body, metadata(found)) == (b"old", {"a": "1"})
    assert found["x-ms-copy-source"] == url
    # A snapshot may be made the base again.
    expect(copy(client, url, source, kind), 202)
    assert body(client, source) == b"old"


@BOTH
@pytest.mark.parametrize("by_sas", [False, True])
def test_a_version_as_source(
    client: Client, container: str, kind: dict[str, str], by_sas: bool
) -> None:
    """B-VER-06: the copy has the requested version, not the current one."""
    put(client, f"/{container}/a", b"now")
    token = f"&{service_sas(client.credential, container)}" if by_sas else ""
    url = source_url(client, f"/{container}/a?versionid=2020-01-01T00:00:00.0000000Z{token}")
    expect(copy(client, url, f"/{container}/b", kind), 404, "CannotVerifyCopySource")
    wrong = source_url(client, f"/{container}/a?versionid=1{token}")
    refused = expect(copy(client, wrong, f"/{container}/b", kind), 404, "CannotVerifyCopySource")
    assert refused["x-ms-copy-source-error-code"] == "InvalidQueryParameterValue"
    expect(client.head(f"/{container}/b"), 404, "BlobNotFound")


@BOTH
def test_a_blob_onto_itself(client: Client, container: str, kind: dict[str, str]) -> None:
    """B-CPY-12: the blob's snapshots stay, and its uncommitted blocks are removed."""
    target = f"/{container}/b"
    stage(client, target, "1", b"content")
    first = commit(client, target, ["1"], {"x-ms-meta-a": "1"})
    taken = snapshot(client, target)
    at = f"{target}?snapshot={taken}"
    before = seen(client, at)
    stage(client, target, "2", b"staged")
    made = expect(copy(client, source_url(client, target), target, kind), 202)
    assert made.etag > first.etag
    assert body(client, target) == b"content"
    assert blocks(client, target) == (["1"], [])
    assert seen(client, at) == before
    put(client, target, b"other")
    assert body(client, at) == b"content"


def test_over_an_existing_blob(client: Client, container: str) -> None:
    """B-CPY-12."""
    source, target = f"/{container}/source", f"/{container}/b"
    put(client, source, b"source")
    expect(client.put(target, {**PUT_BLOB, **PROPERTIES}, b"old"), 201)
    taken = snapshot(client, target)
    stage(client, target, "1", b"staged")
    expect(copy(client, source_url(client, source), target), 202)
    assert body(client, f"{target}?snapshot={taken}") == b"old"
    assert blocks(client, target) == ([], [])
    gone = client.put(f"{target}?comp=blocklist", {}, block_list("1"))
    expect(gone, 400, "InvalidBlockList")
    assert client.head(target)["Content-Type"] == "application/octet-stream"
    expect(client.delete(target), 409, "SnapshotsPresent")
