"""Put Page From URL: rules B-URL-20 to B-URL-22, and B-URL-06, B-URL-07, B-URL-09, B-URL-16 for
pages."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from strongroom.engines.checksum import crc64
from strongroom.values import crc64_text
from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.blobs import body, put, snapshot
from tests.conformance.client import Client
from tests.conformance.copying import readable
from tests.conformance.leasing import A, Leased
from tests.conformance.pages import PAGE, create, ranges, write
from tests.conformance.running import Running
from tests.conformance.sources import HOST, Source, Sources

MIB = 1024 * 1024
CONTENT = bytes(range(256)) * 64
NUMBER = "x-ms-blob-sequence-number"
SOURCE_RANGE = "x-ms-source-range"
NONE: Mapping[str, str] = {}


def md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def copy_pages(
    client: Client,
    target: str,
    url: str,
    first: int,
    length: int,
    headers: Mapping[str, str] = NONE,
) -> Answer:
    """Put Page From URL: of the source as many bytes from its beginning, unless `headers` say
    otherwise."""
    own = {
        "x-ms-page-write": "update",
        "x-ms-copy-source": readable(client, url),
        "x-ms-range": f"bytes={first}-{first + length - 1}",
        SOURCE_RANGE: f"bytes=0-{length - 1}",
    }
    return client.put(f"{target}?comp=page", {**own, **headers})


@pytest.fixture
def names(client: Client, container: str) -> tuple[str, str]:
    """The URL of a block blob with CONTENT, and a page blob of 8 MiB with the number 7."""
    put(client, f"/{container}/source", CONTENT)
    create(client, f"/{container}/pages", 8 * MIB, {NUMBER: "7"})
    return f"{client.url}/{container}/source", f"/{container}/pages"


@dataclass
class Apart:
    """A server that may read from this machine, and one that it reads from.

    Attributes:
        target: a page blob of 8 MiB with the number 7.
        sources: the other server.
    """

    server: Running
    client: Client
    container: str
    sources: Sources

    @property
    def target(self) -> str:
        return f"/{self.container}/pages"


@pytest.fixture(scope="module")
def reading_server() -> Iterator[Running]:
    running = Running(copy_source_hosts=(HOST,))
    yield running
    running.stop()


@pytest.fixture
def apart(reading_server: Running, new_name: Callable[[], str]) -> Iterator[Apart]:
    """Both servers."""
    client, container = reading_server.client(), new_name()
    expect(client.put(f"/{container}?restype=container"), 201)
    with Sources() as sources:
        found = Apart(reading_server, client, container, sources)
        create(client, found.target, 8 * MIB, {NUMBER: "7"})
        yield found
    client.close()


def read(client: Client, target: str, first: int, length: int) -> bytes:
    answer = client.get(target, {"x-ms-range": f"bytes={first}-{first + length - 1}"})
    return expect(answer, 206).body


def test_a_range_of_a_source_becomes_pages(client: Client, names: tuple[str, str]) -> None:
    """B-URL-20."""
    url, target = names
    first = expect(copy_pages(client, target, url, 4 * PAGE, 8 * PAGE), 201)
    assert first[NUMBER] == "7"
    assert first["x-ms-content-crc64"] == crc64_text(crc64(CONTENT[: 8 * PAGE]))
    assert first.get("Content-MD5") is None
    assert first["x-ms-request-server-encrypted"] == "true"
    found = client.head(target)
    assert (found.etag, found["Last-Modified"]) == (first.etag, first["Last-Modified"])
    part = CONTENT[7 : 7 + PAGE]
    odd = {SOURCE_RANGE: f"bytes=7-{6 + PAGE}", "x-ms-source-content-md5": md5(part)}
    second = expect(copy_pages(client, target, url, 0, PAGE, odd), 201)
    assert (second["Content-MD5"], second.get("x-ms-content-crc64")) == (md5(part), None)
    assert ranges(client, target) == [("P", 0, PAGE), ("P", 4 * PAGE, 12 * PAGE)]
    assert read(client, target, 0, PAGE) == part
    assert read(client, target, 4 * PAGE, 8 * PAGE) == CONTENT[: 8 * PAGE]


def test_pages_of_the_longest_range(client: Client, container: str) -> None:
    """B-URL-20, B-URL-21: 4 MiB are taken, one page more is not."""
    source, target = f"/{container}/source", f"/{container}/pages"
    data = hashlib.shake_128(b"pages").digest(4 * MIB + PAGE)
    put(client, source, data)
    create(client, target, 16 * MIB)
    expect(copy_pages(client, target, client.url + source, 4 * MIB, 4 * MIB), 201)
    assert read(client, target, 4 * MIB, 4 * MIB) == data[: 4 * MIB]
    longer = copy_pages(client, target, client.url + source, 0, 4 * MIB + PAGE)
    expect(longer, 413, "RequestBodyTooLarge")


def test_the_source_may_be_a_snapshot_or_the_blob_itself(
    client: Client, names: tuple[str, str]
) -> None:
    """B-URL-18, B-URL-20: what is read is the state before, also where both ranges overlap."""
    _, target = names
    write(client, target, 0, CONTENT)
    kept = snapshot(client, target)
    itself = client.url + target
    expect(copy_pages(client, target, itself, 2 * PAGE, 8 * PAGE), 201)
    moved = CONTENT[: 2 * PAGE] + CONTENT[: 8 * PAGE] + CONTENT[10 * PAGE :]
    assert read(client, target, 0, len(CONTENT)) == moved
    holes = {SOURCE_RANGE: f"bytes={4 * MIB}-{4 * MIB + PAGE - 1}"}
    expect(copy_pages(client, target, itself, 0, PAGE, holes), 201)
    assert read(client, target, 0, PAGE) == bytes(PAGE)
    before = f"{itself}?snapshot={kept}"
    expect(copy_pages(client, target, before, 0, len(CONTENT)), 201)
    assert read(client, target, 0, len(CONTENT)) == CONTENT


def test_a_source_on_another_server(apart: Apart) -> None:
    """B-URL-12, B-URL-17, B-URL-20: with ranges and without."""
    client, target, elsewhere = apart.client, apart.target, apart.sources
    for number, ranged in enumerate((True, False)):
        url = elsewhere.add(f"/{ranged}", Source(CONTENT, ranges=ranged))
        part = {SOURCE_RANGE: f"bytes=100-{99 + 2 * PAGE}"}
        expect(copy_pages(client, target, url, number * 2 * PAGE, 2 * PAGE, part), 201)
        assert elsewhere.headers["range"] == part[SOURCE_RANGE]
    assert read(client, target, 0, 4 * PAGE) == CONTENT[100 : 100 + 2 * PAGE] * 2
    short = elsewhere.add("/short", Source(CONTENT[:PAGE], announced=2 * PAGE))
    expect(copy_pages(client, target, short, 0, 2 * PAGE), 404, "CannotVerifyCopySource")


def test_headers_that_are_missing_or_cannot_be_read(client: Client, names: tuple[str, str]) -> None:
    """B-URL-20, B-PAG-07, B-URL-08."""
    url, target = names
    made = client.head(target)
    where = f"{target}?comp=page"
    own = {
        "x-ms-page-write": "update",
        "x-ms-copy-source": readable(client, url),
        SOURCE_RANGE: "bytes=0-511",
    }
    expect_names(client.put(where, own), 400, "MissingRequiredHeader", "x-ms-range")
    expect(client.put(where, {**own, "Range": "bytes=0-511"}), 201)
    del own[SOURCE_RANGE]
    none = client.put(where, {**own, "x-ms-range": "bytes=0-511"})
    expect_names(none, 400, "MissingRequiredHeader", SOURCE_RANGE)
    for text in ("bytes=0-", "bytes=-512", "bytes=511-0", "0-511", "bytes=a-b"):
        refused = copy_pages(client, target, url, 0, PAGE, {SOURCE_RANGE: text})
        expect_names(refused, 400, "InvalidHeaderValue", SOURCE_RANGE)
    for text in ("bytes=0-510", "bytes=1-512", "bytes=0-", f"bytes={8 * MIB}-{8 * MIB + 511}"):
        refused = copy_pages(client, target, url, 0, PAGE, {"x-ms-range": text})
        expect(refused, 416, "InvalidPageRange")
    with_body = client.put(
        where, {**own, SOURCE_RANGE: "bytes=0-511", "Range": "bytes=0-511"}, b"x"
    )
    expect_names(with_body, 400, "InvalidHeaderValue", "Content-Length")
    kept = {
        "x-ms-copy-source": readable(client, url),
        SOURCE_RANGE: "bytes=0-511",
        "x-ms-range": "bytes=0-511",
    }
    expect_names(client.put(where, kept), 400, "MissingRequiredHeader", "x-ms-page-write")
    unread = copy_pages(client, target, "not a URL", 0, PAGE)
    expect_names(unread, 400, "InvalidHeaderValue", "x-ms-copy-source")
    assert client.head(target).etag > made.etag


@pytest.mark.parametrize("source_range", ["bytes=0-510", "bytes=0-1023", "bytes=512-512"])
def test_ranges_of_different_lengths_are_refused_before_blob_and_source(
    client: Client, container: str, source_range: str
) -> None:
    """B-URL-21."""
    url = f"{client.url}/{container}/none"
    refused = copy_pages(client, f"/{container}/no", url, 0, PAGE, {SOURCE_RANGE: source_range})
    expect_names(refused, 400, "InvalidHeaderValue", SOURCE_RANGE)


def test_where_the_pages_cannot_be_written_no_source_is_asked(apart: Apart) -> None:
    """B-URL-16, B-URL-22."""
    client, target = apart.client, apart.target
    blob, missing = f"/{apart.container}/block", f"/{apart.container}/none"
    put(client, blob)
    url = apart.sources.add("/pages", Source(CONTENT))
    prefix = "x-ms-if-sequence-number-"
    for condition in ({"le": "6"}, {"lt": "7"}, {"eq": "8"}):
        own = {prefix + name: value for name, value in condition.items()}
        refused = copy_pages(client, target, url, 0, PAGE, own)
        expect(refused, 412, "SequenceNumberConditionNotMet")
    expect(copy_pages(client, target, url, 8 * MIB, PAGE), 416, "InvalidPageRange")
    unmet = copy_pages(client, target, url, 0, PAGE, {"If-Match": '"0x1"'})
    expect(unmet, 412, "ConditionNotMet")
    unlike = copy_pages(client, target, url, 0, PAGE, {"x-ms-if-tags": "k = 'v'"})
    expect(unlike, 412, "ConditionNotMet")
    expect(copy_pages(client, blob, url, 0, PAGE), 409, "InvalidBlobType")
    expect(copy_pages(client, missing, url, 0, PAGE), 404, "BlobNotFound")
    Leased(apart.server, client, target).acquire()
    expect(copy_pages(client, target, url, 0, PAGE), 412, "LeaseIdMissing")
    assert apart.sources.asked == []
    met = {"x-ms-lease-id": A, prefix + "le": "7", prefix + "lt": "8", prefix + "eq": "7"}
    expect(copy_pages(client, target, url, 0, PAGE, met), 201)


def test_what_the_source_is_refused_for(client: Client, names: tuple[str, str]) -> None:
    """B-URL-06, B-URL-07, B-URL-09, B-URL-13, B-URL-14: nothing is written."""
    url, target = names
    made = client.head(target)
    size = len(CONTENT)
    wrong = {"x-ms-source-content-md5": md5(b"other")}
    expect(copy_pages(client, target, url, 0, PAGE, wrong), 400, "Md5Mismatch")
    wrong = {"x-ms-source-content-crc64": crc64_text(1)}
    expect(copy_pages(client, target, url, 0, PAGE, wrong), 400, "Crc64Mismatch")
    both = {**wrong, "x-ms-source-content-md5": md5(b"")}
    refused = copy_pages(client, target, url, 0, PAGE, both)
    expect(refused, 400, "BothCrc64AndMd5HeaderPresent")
    beyond = {SOURCE_RANGE: f"bytes={size - PAGE + 1}-{size}"}
    expect(copy_pages(client, target, url, 0, PAGE, beyond), 416, "InvalidRange")
    missing = copy_pages(client, target, f"{url}-none", 0, PAGE)
    expect(missing, 404, "CannotVerifyCopySource")
    unmet = copy_pages(client, target, url, 0, PAGE, {"x-ms-source-if-match": '"0x1"'})
    expect(unmet, 412, "CannotVerifyCopySource")
    assert client.head(target).etag == made.etag
    assert ranges(client, target) == []


def test_a_request_whose_body_comes_from_elsewhere_has_no_structured_body(
    client: Client, names: tuple[str, str]
) -> None:
    """B-STR-06, B-URL-20."""
    url, target = names
    framed = {"x-ms-structured-body": "XSM/1.0; properties=crc64"}
    framed["x-ms-structured-content-length"] = "512"
    expect(copy_pages(client, target, url, 0, PAGE, framed), 501, "NotImplemented")
    assert body(client, target)[:PAGE] == bytes(PAGE)
