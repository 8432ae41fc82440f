"""Get Blob and Get Blob Properties: rules B-GET-01 to B-GET-10."""

from __future__ import annotations

import base64
import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.answer import RFC1123, expect, expect_names
from tests.conformance.blobs import SHOWN_ONLY_ONCE, block_list, md5, put, snapshot, stage
from tests.conformance.client import HOST, Client
from tests.conformance.running import Running

MIB = 1024 * 1024
DIGITS = b"0123456789"


@pytest.fixture
def digits(client: Client, container: str) -> str:
    """A blob of ten digits."""
    put(client, f"/{container}/digits", DIGITS)
    return f"/{container}/digits"


def test_the_headers_of_a_plain_blob(client: Client, digits: str) -> None:
    """B-GET-01: the answer has these headers, and none for unset properties."""
    read = expect(client.get(digits), 200)
    assert read["Content-Length"] == "10"
    assert read["Content-Type"] == "application/octet-stream"
    assert read["Accept-Ranges"] == "bytes"
    assert RFC1123.fullmatch(read["Last-Modified"])
    assert RFC1123.fullmatch(read["x-ms-creation-time"])
    assert read["x-ms-blob-type"] == "BlockBlob"
    assert read["x-ms-server-encrypted"] == "true"
    assert read["x-ms-lease-status"] == "unlocked"
    assert read["x-ms-lease-state"] == "available"
    assert read.etag == client.head(digits).etag
    unset = {"content-encoding", "content-language", "content-disposition", "cache-control"}
    unset |= {"x-ms-lease-duration", "x-ms-tag-count", "content-range", "x-ms-blob-content-md5"}
    assert not read.names() & unset
    assert not [name for name in read.names() if name.startswith(("x-ms-copy", "x-ms-meta"))]


def test_head_has_the_headers_of_get(client: Client, digits: str) -> None:
    """B-GET-02."""
    got, head = client.get(digits), client.head(digits, {"Range": "bytes=2-3"})
    expect(head, 200)

    def kept(pairs: tuple[tuple[str, str], ...]) -> set[tuple[str, str]]:
        tiers = ("x-ms-access-tier", "x-ms-access-tier-inferred")
        return {(n, v) for n, v in pairs if n.lower() not in (*SHOWN_ONLY_ONCE, *tiers)}

    assert kept(head.headers) == kept(got.headers)
    assert head.body == b""
    assert head["x-ms-access-tier"] == "Hot"


@pytest.mark.parametrize(
    ("headers", "first", "last"),
    [
        ({"Range": "bytes=0-0"}, 0, 0),
        ({"Range": "bytes=2-5"}, 2, 5),
        ({"Range": "bytes=0-9"}, 0, 9),
        ({"Range": "bytes=7-"}, 7, 9),
        ({"Range": "bytes=9-"}, 9, 9),
        ({"Range": "bytes=5-1000000000000"}, 5, 9),
        ({"Range": f"bytes=5-{2**63 - 1}"}, 5, 9),
        ({"x-ms-range": f"bytes=5-{2**64 - 1}"}, 5, 9),
        ({"x-ms-range": "bytes=1-2"}, 1, 2),
        ({"x-ms-range": "bytes=1-2", "Range": "bytes=4-5"}, 1, 2),
        ({"x-ms-range": "bytes=1-2", "Range": "bytes=99-"}, 1, 2),
        ({"x-ms-range": "", "Range": "bytes=4-5"}, 4, 5),
    ],
)
def test_a_range(
    client: Client, digits: str, headers: dict[str, str], first: int, last: int
) -> None:
    """B-GET-03."""
    read = expect(client.get(digits, headers), 206)
    assert read.body == DIGITS[first : last + 1]
    assert read["Content-Range"] == f"bytes {first}-{last}/10"
    assert read["Content-Length"] == str(last + 1 - first)


@pytest.mark.parametrize("first", [10, 11, 10**15, 2**64 - 1])
def test_a_range_past_the_end(client: Client, digits: str, first: int) -> None:
    """B-GET-04."""
    for text in (f"bytes={first}-", f"bytes={first}-{first + 1}"):
        refused = expect(client.get(digits, {"Range": text}), 416, "InvalidRange")
        assert refused["Content-Range"] == "bytes */10"


def test_a_range_of_an_empty_blob(client: Client, container: str) -> None:
    """B-GET-04."""
    put(client, f"/{container}/empty", b"")
    for text in ("bytes=0-", "bytes=0-0"):
        refused = expect(client.get(f"/{container}/empty", {"Range": text}), 416, "InvalidRange")
        assert refused["Content-Range"] == "bytes */0"


@pytest.mark.parametrize(
    "text",
    ["bytes=-3", "bytes=1-2,4-5", "bytes=5-2", "lines=1-2", "bytes=a-b", "bytes", "", "bytes=-"],
)
def test_a_range_that_is_ignored(client: Client, digits: str, text: str) -> None:
    """B-GET-05."""
    read = expect(client.get(digits, {"Range": text}), 200)
    assert read.body == DIGITS
    assert read.get("Content-Range") is None


def test_x_ms_range_wins_though_it_is_ignored(client: Client, digits: str) -> None:
    """B-GET-03, B-GET-05."""
    read = expect(client.get(digits, {"x-ms-range": "nonsense", "Range": "bytes=0-1"}), 200)
    assert read.body == DIGITS


@pytest.mark.parametrize("size", [10, 100_000, 5 * MIB])
def test_digests_of_a_range(client: Client, container: str, size: int) -> None:
    """B-GET-06."""
    content = (b"123456789" * (size // 9 + 1))[:size]
    put(client, f"/{container}/b", content)
    asked = {"Range": "bytes=0-8"}
    read = client.get(f"/{container}/b", {**asked, "x-ms-range-get-content-md5": "true"})
    assert expect(read, 206)["Content-MD5"] == md5(b"123456789")
    read = client.get(f"/{container}/b", {**asked, "x-ms-range-get-content-crc64": "true"})
    assert expect(read, 206)["x-ms-content-crc64"] == "iJh5CoYUi64="
    assert (read.get("Content-MD5"), read.body) == (None, b"123456789")


MD5_WANTED = {"x-ms-range-get-content-md5": "true"}
CRC64_WANTED = {"x-ms-range-get-content-crc64": "true"}


@pytest.mark.parametrize("wanted", [MD5_WANTED, CRC64_WANTED])
def test_digests_that_are_refused(client: Client, container: str, wanted: dict[str, str]) -> None:
    """B-GET-07."""
    target = f"/{container}/b"
    put(client, target, bytes(4 * MIB + 2))
    expect_names(client.get(target, wanted), 400, "InvalidHeaderValue", next(iter(wanted)))
    much = {**wanted, "Range": f"bytes=0-{4 * MIB}"}
    expect(client.get(target, much), 400, "OutOfRangeInput")
    enough = {**wanted, "Range": f"bytes=0-{4 * MIB - 1}"}
    expect(client.get(target, enough), 206)
    both = {**MD5_WANTED, **CRC64_WANTED, "Range": "bytes=0-1"}
    expect(client.get(target, both), 400, "BothCrc64AndMd5HeaderPresent")


def test_the_md5_of_the_whole_in_a_partial_read(client: Client, digits: str) -> None:
    """B-GET-08."""
    read = expect(client.get(digits, {"Range": "bytes=0-3"}), 206)
    assert read["x-ms-blob-content-md5"] == md5(DIGITS)
    assert read.get("Content-MD5") is None
    whole = client.get(digits)
    assert (whole["Content-MD5"], whole.get("x-ms-blob-content-md5")) == (md5(DIGITS), None)


def test_what_is_missing(client: Client, digits: str, new_name: Callable[[], str]) -> None:
    """B-GET-09."""
    container = digits.split("/")[1]
    taken = snapshot(client, digits)
    expect(client.delete(f"{digits}?snapshot={taken}"), 202)
    for send in (client.get, client.head):
        expect(send(f"/{container}/other"), 404, "BlobNotFound")
        expect(send(f"/{new_name()}/b"), 404, "ContainerNotFound")
        expect(send(f"{digits}?snapshot={taken}"), 404, "BlobNotFound")
        expect(send(f"{digits}?snapshot=2020-01-01T00:00:00.0000000Z"), 404, "BlobNotFound")


@pytest.mark.parametrize(
    "text", ["", "x", "2020-01-01", "2020-01-01T00:00:00Z", "2020-13-01T00:00:00.0000000Z"]
)
def test_a_snapshot_that_is_no_time(client: Client, digits: str, text: str) -> None:
    """B-GET-09."""
    answer = client.get(f"{digits}?snapshot={text}")
    expect_names(answer, 400, "InvalidQueryParameterValue", "snapshot")


@pytest.fixture(scope="module")
def durable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a server with a data directory."""
    path: Path = tmp_path_factory.mktemp("reads")
    running = Running(path / "data")
    found = running.client()
    expect(found.put("/downloads?restype=container"), 201)
    yield found
    found.close()
    running.stop()


@pytest.mark.parametrize("fate", ["replaced", "replaced by blocks", "deleted"])
@pytest.mark.parametrize("made_of", ["one body", "blocks"])
@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_a_download_ends_with_what_it_began_with(
    client: Client, durable: Client, container: str, engine: str, made_of: str, fate: str
) -> None:
    """B-GET-10."""
    used, target = client, f"/{container}/b"
    if engine == "embedded":
        used, target = durable, f"/downloads/{made_of}-{fate}".replace(" ", "-")
    old = b"old!" * (4 * MIB)
    etag = _put_as(used, target, made_of, old)
    connection, response = _begin_download(used, target)
    assert (response.getheader("ETag"), response.getheader("Content-Length")) == (
        etag,
        str(len(old)),
    )
    begun = response.read(1000)
    if fate == "deleted":
        expect(used.delete(target), 202)
        expect(used.get(target), 404, "BlobNotFound")
    else:
        _put_as(used, target, "blocks" if "blocks" in fate else "one body", b"new!" * 1000)
        assert used.get(target).body == b"new!" * 1000
    assert begun + response.read() == old
    connection.close()


def _put_as(client: Client, target: str, made_of: str, content: bytes) -> str:
    if made_of == "one body":
        return put(client, target, content).etag
    half = len(content) // 2
    stage(client, target, "1", content[:half])
    stage(client, target, "2", content[half:])
    made = client.put(f"{target}?comp=blocklist", {}, block_list("1", "2"))
    return expect(made, 201).etag


def _begin_download(
    client: Client, target: str
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """Get Blob, of which only the head has been read."""
    full = client.prefix + target
    connection = http.client.HTTPConnection(HOST, client.port, timeout=20)
    connection.putrequest("GET", full, skip_host=True, skip_accept_encoding=True)
    for name, value in client.fields("GET", full, (), b"", "SharedKey"):
        connection.putheader(name, value)
    connection.endheaders()
    return connection, connection.getresponse()


def test_a_checksum_stands_for_the_bytes(client: Client, digits: str) -> None:
    """B-GET-06: base64 of 16 and of 8 bytes."""
    read = client.get(digits, {**MD5_WANTED, "Range": "bytes=1-"})
    assert base64.b64decode(read["Content-MD5"], validate=True) != b""
    assert len(base64.b64decode(read["Content-MD5"])) == 16
