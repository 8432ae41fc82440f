"""Structured bodies on the wire: uploads and downloads whose bytes carry their own checksums."""

from __future__ import annotations

import asyncio
import io
import random
import struct
from email.utils import formatdate

import pytest
from azure.storage.blob import BlobBlock, BlobServiceClient
from azure.storage.blob._shared.streams import StructuredMessageDecoder
from azure.storage.blob.aio import BlobServiceClient as LaterBlobServiceClient

from strongroom.engines.checksum import crc64
from strongroom.values import crc64_text
from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.appending import append, create
from tests.conformance.blobs import md5
from tests.conformance.client import PUT_BLOB, VERSION, Client, raw
from tests.conformance.pages import PAGE, ranges
from tests.conformance.pages import create as create_pages
from tests.conformance.pages import send as send_pages
from tests.conformance.running import Running
from tests.conformance.signing import authorization

XSM = "XSM/1.0; properties=crc64"
BODY, LENGTH = "x-ms-structured-body", "x-ms-structured-content-length"
MIB = 1 << 20


def message(*segments: bytes) -> bytes:
    """A structured message, by the standard library but for the checksum."""
    data = b"".join(segments)
    parts = [
        struct.pack("<HQ", number, len(segment)) + segment + struct.pack("<Q", crc64(segment))
        for number, segment in enumerate(segments, 1)
    ]
    rest = b"".join(parts) + struct.pack("<Q", crc64(data))
    return struct.pack("<BQHH", 1, 13 + len(rest), 1, len(segments)) + rest


def headers(size: int, **more: str) -> dict[str, str]:
    return {**PUT_BLOB, BODY: XSM, LENGTH: str(size), **more}


def content(answer: Answer) -> bytes:
    """Return the content of a structured answer, by the SDK's decoder."""
    decoder = StructuredMessageDecoder(iter([answer.body]), int(answer["Content-Length"]))
    found: bytes = decoder.read()
    return found


@pytest.mark.parametrize("size", [0, 1, 511, 513, 8192, 8193, 3 * MIB])
def test_put_blob_and_get_blob(client: Client, container: str, size: int) -> None:
    """B-STR-01, B-STR-02."""
    data = random.Random(size).randbytes(size)
    target = f"/{container}/b"
    sent = message(data[: size // 3], data[size // 3 : size // 2], data[size // 2 :])
    made = expect(client.put(target, headers(size), sent), 201)
    assert made[BODY] == XSM
    plain = expect(client.get(target), 200)
    assert plain.body == data and plain.get(BODY) is None
    framed = expect(client.get(target, {BODY: XSM}), 200)
    assert framed[BODY] == XSM and framed[LENGTH] == str(size)
    assert framed["Content-Length"] == str(len(framed.body))
    assert content(framed) == data
    assert framed.get("Content-MD5") == plain.get("Content-MD5")


def test_put_block_and_ranges(client: Client, container: str) -> None:
    """B-STR-01, B-STR-02."""
    target, data = f"/{container}/b", random.Random(2).randbytes(100_000)
    staged = client.put(f"{target}?comp=block&blockid=AAAA", headers(100_000), message(data))
    assert expect(staged, 201)[BODY] == XSM
    blocks = b"<BlockList><Latest>AAAA</Latest></BlockList>"
    expect(client.put(f"{target}?comp=blocklist", {}, blocks), 201)
    part = client.get(target, {BODY: XSM, "Range": "bytes=10-70000"})
    assert expect(part, 206)["Content-Range"] == "bytes 10-70000/100000"
    assert part[LENGTH] == "69991" and content(part) == data[10:70_001]
    expect(client.get(target, {BODY: XSM, "Range": "bytes=100000-"}), 416, "InvalidRange")


def test_append_block(client: Client, container: str) -> None:
    """B-STR-01, B-STR-04."""
    target, data = f"/{container}/b", random.Random(3).randbytes(20_000)
    create(client, target)
    for number in range(2):
        answer = expect(append(client, target, message(data), headers(len(data))), 201)
        assert answer[BODY] == XSM
        assert answer["x-ms-blob-append-offset"] == str(number * len(data))
    refused = append(client, target, _flipped(message(data), 40), headers(len(data)))
    expect(refused, 400, "Crc64Mismatch")
    assert expect(client.get(target), 200).body == data * 2


def test_put_page(client: Client, container: str) -> None:
    """B-STR-01, B-STR-04, B-STR-05, B-PAG-07: the range has the length of the content."""
    target, data = f"/{container}/b", random.Random(4).randbytes(200 * PAGE)
    create_pages(client, target, 400 * PAGE)
    for size in (PAGE, len(data)):
        sent, first = data[:size], 100 * PAGE
        own = {**headers(size), "x-ms-range": f"bytes={first}-{first + size - 1}"}
        segments = message(sent[:7], b"", sent[7:])
        made = expect(send_pages(client, target, 0, segments, own), 201)
        assert made[BODY] == XSM
        assert made["x-ms-content-crc64"] == crc64_text(crc64(sent))
        read = client.get(target, {"Range": own["x-ms-range"], BODY: XSM})
        assert content(expect(read, 206)) == sent
        both = {**own, "Content-MD5": md5(segments)}
        expect(send_pages(client, target, 0, segments, both), 400, "Md5Mismatch")
        both["Content-MD5"] = md5(sent)
        assert expect(send_pages(client, target, 0, segments, both), 201)["Content-MD5"] == md5(
            sent
        )
    written = ranges(client, target)
    damaged = _flipped(message(data), 40)
    expect(send_pages(client, target, 0, damaged, own), 400, "Crc64Mismatch")
    expect(send_pages(client, target, 0, message(data)[:-1], own), 400, "InvalidInput")
    longer = {**headers(len(data)), "x-ms-range": f"bytes=0-{len(data) + PAGE - 1}"}
    refused = send_pages(client, target, 0, message(data), longer)
    expect_names(refused, 400, "InvalidHeaderValue", "Content-Length")
    clear = {"x-ms-page-write": "clear", "x-ms-range": "bytes=0-511", BODY: XSM, LENGTH: "0"}
    expect(client.put(f"{target}?comp=page", clear), 501, "NotImplemented")
    assert ranges(client, target) == written
    assert expect(client.get(target), 200).body[100 * PAGE : 300 * PAGE] == data


def test_a_chunked_upload(client: Client, container: str, server: Running) -> None:
    """B-STR-01: there is no Content-Length with the message's length."""
    full = f"{client.prefix}/{container}/b"
    for end, status in ((b"", b"201"), (b"x", b"400")):
        body = message(b"abc", b"", b"def") + end
        fields = [
            ("Host", f"127.0.0.1:{server.port}"),
            ("x-ms-version", VERSION),
            ("x-ms-date", formatdate(usegmt=True)),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "close"),
            *headers(6).items(),
        ]
        account, key = client.credential.account, client.credential.key
        fields.append(
            ("Authorization", authorization("SharedKey", account, key, "PUT", full, fields))
        )
        head = f"PUT {full} HTTP/1.1\r\n" + "".join(f"{a}: {b}\r\n" for a, b in fields) + "\r\n"
        sent = head.encode() + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        assert raw(server.port, sent).split()[1] == status
    assert expect(client.get(f"/{container}/b"), 200).body == b"abcdef"


@pytest.mark.parametrize("value", ["", "XSM/2.0; properties=crc64", "XSM/1.0", "crc64", "x" * 900])
def test_another_format(client: Client, container: str, value: str) -> None:
    """B-STR-03."""
    sent = {**headers(3), BODY: value}
    expect_names(
        client.put(f"/{container}/b", sent, message(b"abc")), 400, "InvalidHeaderValue", BODY
    )
    expect(client.put(f"/{container}/b", PUT_BLOB, b"abc"), 201)
    expect_names(client.get(f"/{container}/b", {BODY: value}), 400, "InvalidHeaderValue", BODY)


@pytest.mark.parametrize("value", ["", "-1", "three", "1" * 40, str(1 << 63)])
def test_a_length_that_is_none(client: Client, container: str, value: str) -> None:
    """B-STR-03."""
    sent = {**headers(3), LENGTH: value}
    refused = client.put(f"/{container}/b", sent, message(b"abc"))
    expect_names(refused, 400, "InvalidHeaderValue", LENGTH)
    del sent[LENGTH]
    refused = client.put(f"/{container}/b", sent, message(b"abc"))
    expect_names(refused, 400, "MissingRequiredHeader", LENGTH)


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("size", [3, 20_000])
def test_a_body_that_was_damaged_changes_nothing(client: Client, container: str, size: int) -> None:
    """B-STR-04."""
    target, data = f"/{container}/b", b"x" * size
    expect(client.put(target, PUT_BLOB, b"before"), 201)
    good = message(data)
    for at in (30, len(good) - 16, len(good) - 1):
        bad = _flipped(good, at)
        answer = expect(client.put(target, headers(size), bad), 400, "Crc64Mismatch")
        assert answer.error["UserSpecifiedCrc64"] != answer.error["ServerCalculatedCrc64"]
    assert expect(client.get(target), 200).body == b"before"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"abc",
        message(b"abc")[:-1],
        message(b"abc") + b"x",
        message(b"abcd"),
        b"\x02" + message(b"abc")[1:],
        random.Random(1).randbytes(100),
    ],
)
def test_a_body_that_is_no_such_message(client: Client, container: str, sent: bytes) -> None:
    """B-STR-05."""
    answer = expect(client.put(f"/{container}/b", headers(3), sent), 400, "InvalidInput")
    assert "structured message" in answer.error["Message"]
    block = f"/{container}/b?comp=block&blockid=AAAA"
    expect(client.put(block, headers(3), sent), 400, "InvalidInput")
    expect(client.head(f"/{container}/b"), 404, "BlobNotFound")


def test_a_content_that_is_too_large_is_refused_unread(client: Client, container: str) -> None:
    """B-STR-05: the content's length is judged, before the body is read."""
    sent = headers(5001 * MIB)
    expect(client.put(f"/{container}/b", sent, b"x"), 413, "RequestBodyTooLarge")


@pytest.mark.parametrize(
    ("method", "query"),
    [("HEAD", ""), ("PUT", "?comp=metadata"), ("PUT", "?comp=blocklist"), ("DELETE", "")],
)
def test_other_operations_have_no_such_body(
    client: Client, container: str, method: str, query: str
) -> None:
    """B-STR-06, B-ADR-10."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"abc"), 201)
    answer = client.send(method, f"/{container}/b{query}", {BODY: XSM, LENGTH: "3"})
    expect(answer, 501, "NotImplemented")
    assert expect(client.get(f"/{container}/b"), 200).body == b"abc"


@pytest.mark.parametrize("size", [0, 9000, 5 * MIB, 9 * MIB + 7])
def test_the_sdk_validates_content(server: Running, container: str, size: int) -> None:
    """B-STR-01, B-STR-02."""
    data = random.Random(size).randbytes(size)
    with BlobServiceClient.from_connection_string(
        server.server.connection_string,
        max_single_put_size=4 * MIB,
        max_block_size=3 * MIB,
        max_single_get_size=6 * MIB,
        max_chunk_get_size=4 * MIB,
    ) as service:
        blob = service.get_blob_client(container, "b")
        blob.upload_blob(io.BytesIO(data), length=size, validate_content="crc64")
        assert blob.download_blob(validate_content="crc64").readall() == data
        if size:
            part = blob.download_blob(7, size - 9, validate_content="crc64")
            assert part.readall() == data[7 : size - 2]
        blob.stage_block("block", io.BytesIO(data or b"x"), validate_content="crc64")
        blob.commit_block_list([BlobBlock("block")])
        assert blob.download_blob().readall() == (data or b"x")


def test_the_asyncio_sdk_validates_content(server: Running, container: str) -> None:
    """B-STR-01, B-STR-02."""
    data = random.Random(3).randbytes(MIB)

    async def run() -> None:
        service = LaterBlobServiceClient.from_connection_string(server.server.connection_string)
        async with service, service.get_blob_client(container, "b") as blob:
            await blob.upload_blob(io.BytesIO(data), length=MIB, validate_content="crc64")
            found = await blob.download_blob(validate_content="crc64")
            assert await found.readall() == data

    asyncio.run(run())
