"""Put Range from URL: rules F-RNG-05 to F-RNG-07."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import pytest
from azure.storage.fileshare import (
    FileSasPermissions,
    ShareFileClient,
    ShareSasPermissions,
    generate_file_sas,
    generate_share_sas,
)

from strongroom.engines.checksum import crc64
from strongroom.values import crc64_text
from tests.conformance.answer import expect
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import readable
from tests.conformance.file.test_file_access import expiry
from tests.conformance.running import Running
from tests.conformance.sources import HOST, Source, Sources

DATA = b"0123456789"
NOT_IT = "CannotVerifyCopySource"
CREATE = {"x-ms-type": "file", "x-ms-content-length": "10"}
UPDATE = {"x-ms-write": "update"}


def asked(source: str, first: int, last: int, **more: str) -> dict[str, str]:
    """Return the headers of a write of these bytes of a source to the bytes 2 to 4."""
    named = {"x-ms-copy-source": source, "x-ms-source-range": f"bytes={first}-{last}"}
    return {**UPDATE, "x-ms-range": "bytes=2-4", **named, **more}


@pytest.fixture
def target(files: Client, share: str) -> str:
    """A new file of ten zeros."""
    expect(files.put(f"/{share}/g", CREATE), 201)
    return f"/{share}/g"


@pytest.fixture
def file(files: Client, share: str) -> str:
    """A new file with ten digits."""
    expect(files.put(f"/{share}/f", CREATE), 201)
    put = {**UPDATE, "x-ms-range": "bytes=0-9"}
    expect(files.put(f"/{share}/f?comp=range", put, DATA), 201)
    return f"/{share}/f"


def test_a_range_comes_from_another_file(files: Client, file: str, target: str) -> None:
    """F-RNG-05, F-RNG-06."""
    source = readable(files, f"{files.url}{file}")
    made = expect(files.put(f"{target}?comp=range", asked(source, 5, 7)), 201)
    assert made["x-ms-content-crc64"] == crc64_text(crc64(b"567"))
    assert made.etag and made["x-ms-file-last-write-time"]
    assert files.get(target).body == bytes(2) + b"567" + bytes(5)
    wide = {"x-ms-range": f"bytes=0-{4 << 20}"}
    refusals = (
        (asked(source, 5, 8), 400, "InvalidHeaderValue"),
        (asked(source, 8, 10), 416, "InvalidRange"),
        (asked(source, 20, 22), 416, "InvalidRange"),
        (asked(readable(files, f"{files.url}{file}x"), 0, 2), 404, "CannotVerifyCopySource"),
        (asked(readable(files, f"{files.url}/nosuchshare/f"), 0, 2), 404, "CannotVerifyCopySource"),
        (asked(files.url, 0, 2), 404, "CannotVerifyCopySource"),
        (asked("http://[", 0, 2), 400, "InvalidHeaderValue"),
        (asked("ftp://a/b", 0, 2), 400, "InvalidHeaderValue"),
        (asked(source, 0, 4 << 20, **wide), 413, "RequestBodyTooLarge"),
        (asked(source, 0, 2, **{"x-ms-source-range": "bytes=0-"}), 400, "InvalidHeaderValue"),
        (asked(source, 0, 2, **{"x-ms-range": "bytes=8-10"}), 416, "InvalidRange"),
        ({**UPDATE, "x-ms-range": "bytes=2-4"}, 400, "InvalidHeaderValue"),
    )
    for headers, status, code in refusals:
        expect(files.put(f"{target}?comp=range", headers), status, code)
    missing = asked(source, 0, 2)
    del missing["x-ms-source-range"]
    expect(files.put(f"{target}?comp=range", missing), 400, "MissingRequiredHeader")
    assert files.get(target).body == bytes(2) + b"567" + bytes(5)


def test_why_a_source_was_not_read_is_told(files: Client, file: str, target: str) -> None:
    """F-RNG-06."""
    put = f"{target}?comp=range"
    missing = expect(
        files.put(put, asked(readable(files, f"{files.url}{file}x"), 0, 2)), 404, NOT_IT
    )
    assert missing["x-ms-copy-source-status-code"] == "404"
    assert missing["x-ms-copy-source-error-code"] == "ResourceNotFound"
    beyond = expect(
        files.put(put, asked(readable(files, f"{files.url}{file}"), 9, 11)), 416, "InvalidRange"
    )
    assert beyond["x-ms-copy-source-status-code"] == "416"
    assert beyond["x-ms-copy-source-error-code"] == "InvalidRange"


def test_a_range_comes_from_a_blob(
    client: Client, container: str, files: Client, target: str
) -> None:
    """F-RNG-05."""
    expect(client.put(f"/{container}/b", PUT_BLOB, DATA), 201)
    source = readable(client, f"{client.url}/{container}/b")
    expect(files.put(f"{target}?comp=range", asked(source, 1, 3)), 201)
    assert files.get(target).body == bytes(2) + b"123" + bytes(5)


def test_digests_and_conditions_on_the_source(files: Client, file: str, target: str) -> None:
    """F-RNG-07."""
    source = readable(files, f"{files.url}{file}")
    right, wrong = crc64_text(crc64(b"567")), crc64_text(crc64(b"568"))
    cases = (
        ("x-ms-source-content-crc64", right, 201, ""),
        ("x-ms-source-content-crc64", wrong, 400, "Crc64Mismatch"),
        ("x-ms-source-content-crc64", "x", 400, "InvalidHeaderValue"),
        ("x-ms-source-if-match-crc64", right, 201, ""),
        ("x-ms-source-if-match-crc64", wrong, 412, "CannotVerifyCopySource"),
        ("x-ms-source-if-none-match-crc64", wrong, 201, ""),
        ("x-ms-source-if-none-match-crc64", right, 412, "CannotVerifyCopySource"),
        (
            "x-ms-source-if-none-match-crc64",
            base64.b64encode(b"short").decode(),
            400,
            "InvalidHeaderValue",
        ),
    )
    for name, value, status, code in cases:
        before = files.head(target).etag
        answer = files.put(f"{target}?comp=range", asked(source, 5, 7, **{name: value}))
        expect(answer, status, code or None)
        assert (files.head(target).etag == before) == (status != 201)


def test_a_token_takes_a_range_of_what_it_may_read(files: Client, share: str, file: str) -> None:
    """F-RNG-05, F-CPY-10."""
    expect(files.put(f"/{share}/g", CREATE), 201)
    key = files.credential.key
    writes = generate_share_sas(
        files.account, share, key, ShareSasPermissions(write=True), expiry=expiry()
    )
    reads = generate_file_sas(
        files.account, share, ["f"], key, FileSasPermissions(read=True), expiry=expiry()
    )
    anonymous, put = files.anonymous, f"/{share}/g?comp=range&{writes}"
    source = f"{files.url}{file}"
    for caller, query in ((anonymous, put), (files, f"/{share}/g?comp=range")):
        refused = expect(caller.put(query, asked(source, 0, 2)), 401, "CannotVerifyCopySource")
        assert refused["x-ms-copy-source-status-code"] == "401"
        assert refused["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
    expect(anonymous.put(put, asked(f"{source}?{writes}", 0, 2)), 403, "CannotVerifyCopySource")
    expect(anonymous.put(put, asked(f"{source}?{reads}", 0, 2)), 201)
    assert files.get(f"/{share}/g").body[:5] == b"\0\x00012"
    anonymous.close()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Sources]:
    """Another server."""
    with Sources() as found:
        yield found


@pytest.fixture(scope="module")
def copying_files() -> Iterator[Client]:
    """A client of the shares of a server that may copy from this machine."""
    running = Running(copy_source_hosts=(HOST,))
    found = running.files()
    yield found
    found.close()
    running.stop()


@pytest.mark.parametrize("ranges", [True, False])
def test_a_range_comes_from_another_server(
    copying_files: Client, elsewhere: Sources, new_name: Callable[[], str], ranges: bool
) -> None:
    """F-RNG-05."""
    files, share = copying_files, new_name()
    expect(files.put(f"/{share}?restype=share"), 201)
    expect(files.put(f"/{share}/g", CREATE), 201)
    source = elsewhere.add(f"/{share}", Source(DATA, ranges=ranges))
    expect(files.put(f"/{share}/g?comp=range", asked(source, 4, 6)), 201)
    assert files.get(f"/{share}/g").body == bytes(2) + b"456" + bytes(5)
    short = asked(source, 8, 10)
    expect(files.put(f"/{share}/g?comp=range", short), 416, "InvalidRange")
    gone = elsewhere.add("/gone", Source(status=410))
    refused = expect(files.put(f"/{share}/g?comp=range", asked(gone, 0, 2)), 404, NOT_IT)
    assert refused["x-ms-copy-source-status-code"] == "410"


def test_the_sdk_uploads_a_range_from_a_url(files: Client, share: str, file: str) -> None:
    """F-RNG-05."""
    expect(files.put(f"/{share}/g", CREATE), 201)
    client = ShareFileClient(files.url, share, "g", credential=files.credential.key, retry_total=0)
    source = readable(files, f"{files.url}{file}")
    client.upload_range_from_url(source, offset=0, length=4, source_offset=6)
    assert client.download_file().readall() == b"6789" + bytes(6)
