"""Bounds of sizes and times: rules B-LIM-01 to B-LIM-05 and B-LIM-08."""

from __future__ import annotations

import socket
import time

import pytest

from tests.conformance.answer import expect, expect_names, texts
from tests.conformance.client import HOST, PUT_BLOB, Client, raw
from tests.conformance.leasing import A, Leased
from tests.conformance.running import Running

MIB = 1024 * 1024


def head(client: Client, method: str, target: str, headers: dict[str, str | None]) -> bytes:
    """The head of a signed request, up to the empty line."""
    full = client.prefix + target
    fields = client.fields(method, full, headers, b"", client.auth)
    lines = [f"{method} {full} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize(
    ("version", "query", "mib"),
    [
        ("2025-11-05", "", 5000),
        ("2019-12-12", "", 5000),
        ("2019-07-07", "", 256),
        ("2016-05-31", "", 256),
        ("2015-12-11", "", 64),
        ("2025-11-05", "?comp=block&blockid=QQ==", 4000),
        ("2019-07-07", "?comp=block&blockid=QQ==", 100),
        ("2015-12-11", "?comp=block&blockid=QQ==", 4),
    ],
)
def test_the_size_of_a_body(
    client: Client, container: str, version: str, query: str, mib: int
) -> None:
    """B-LIM-01: refused before any of it is sent."""
    headers = {**PUT_BLOB, "x-ms-version": version}
    sending = client.begin("PUT", f"/{container}/b{query}", headers, mib * MIB + 1)
    answer = sending.finish()
    assert (answer.status, answer.error["Code"]) == (413, "RequestBodyTooLarge")
    assert answer.error["MaxLimit"] == str(mib * MIB)


def test_the_size_itself_is_taken(client: Client, container: str) -> None:
    """B-LIM-01: of the smallest bound."""
    headers = {"x-ms-version": "2015-12-11"}
    body = bytes(4 * MIB)
    expect(client.put(f"/{container}/b?comp=block&blockid=QQ==", headers, body), 201)


@pytest.mark.parametrize("target", ["?restype=container&comp=acl", "/b?comp=blocklist"])
def test_the_size_of_a_document(client: Client, container: str, target: str) -> None:
    """B-LIM-02: the document is not XML, and is refused before it is parsed."""
    sending = client.begin("PUT", f"/{container}{target}", {}, 17 * MIB)
    expect(sending.finish(), 413, "RequestBodyTooLarge")


def test_the_size_of_a_chunked_document(client: Client, container: str) -> None:
    """B-LIM-02: there is no length, so the bytes are counted."""
    target = f"/{container}?restype=container&comp=acl"
    chunked: dict[str, str | None] = {"Content-Length": None, "Transfer-Encoding": "chunked"}
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    data = head(client, "PUT", target, {**chunked, "Connection": "close"}) + chunk * 2
    answer = raw(client.port, data + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ") and b"RequestBodyTooLarge" in answer


@pytest.mark.parametrize("count", [300, 3])
def test_headers_over_the_bounds(client: Client, container: str, count: int) -> None:
    """B-LIM-03: too many, too long; the connection is closed."""
    value = "v" if count == 300 else "v" * 40_000
    more = {f"other-{number}": value for number in range(count)}
    answer = raw(client.port, head(client, "GET", f"/{container}/b", {**more}))
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"\r\nconnection: close\r\n" in answer.lower()


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "", "%20", "1e9"])
def test_a_timeout_that_is_none(client: Client, container: str, text: str) -> None:
    """B-LIM-04."""
    answer = client.get(f"/{container}?restype=container&timeout={text}")
    expect_names(answer, 400, "InvalidQueryParameterValue", "timeout")


def test_a_request_that_exceeds_its_time(client: Client, container: str) -> None:
    """B-LIM-04: the request is refused, and changes nothing."""
    expect(client.get(f"/{container}?restype=container&timeout=30"), 200)
    sending = client.begin("PUT", f"/{container}/b?timeout=1", PUT_BLOB, 100_000)
    sending.send(b"x" * 50_000)
    expect(sending.finish(), 500, "OperationTimedOut")
    expect(client.head(f"/{container}/b"), 404, "BlobNotFound")


@pytest.mark.parametrize(
    "fields",
    [
        "Content-Length: 4\r\nContent-Length: 4\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4, 4\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 4\n",
        "Content-Length: 4\r\nbare: line\nfeed: here\r\n",
        "Content-Length : 4\r\n",
    ],
)
def test_ambiguous_lengths(client: Client, container: str, fields: str) -> None:
    """B-LIM-05."""
    target = f"/{container}/b"
    absent: dict[str, str | None] = {**PUT_BLOB, "Content-Length": None}
    start = head(client, "PUT", target, absent).removesuffix(b"\r\n")
    data = start + fields.encode() + b"\r\ntext"
    # The following bytes must not be parsed as another request.
    answer = raw(client.port, data + head(client, "DELETE", f"/{container}?restype=container", {}))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n" in answer.lower()
    expect(client.head(target), 404, "BlobNotFound")
    expect(client.head(f"/{container}?restype=container"), 200)


@pytest.mark.parametrize("query", ["", "?comp=block&blockid=QQ=="])
def test_a_body_that_is_cut_short(client: Client, container: str, query: str) -> None:
    """B-LIM-05: nothing is done, the connection is closed."""
    target = f"/{container}/b{query}"
    length: dict[str, str | None] = {**PUT_BLOB, "Content-Length": "100000"}
    data = head(client, "PUT", target, length) + b"x" * 60_000
    assert not raw(client.port, data, end=True).startswith(b"HTTP/1.1 2")
    listed = client.get(f"/{container}?restype=container&comp=list&include=uncommittedblobs")
    assert texts(expect(listed, 200).xml, ".//Name") == []


def until_answered(client: Client, data: bytes) -> bytes:
    """Return the server's answer to a head without a body."""
    with socket.create_connection((HOST, client.port), timeout=10) as connection:
        connection.sendall(data)
        return connection.recv(65536)


@pytest.mark.parametrize("size", ["1", "5000000"])
@pytest.mark.parametrize(
    ("headers", "query", "start"),
    [
        ({"Authorization": "SharedKey a:b"}, "", b"HTTP/1.1 403 "),
        ({"x-ms-blob-type": "Nothing"}, "", b"HTTP/1.1 400 "),
        ({"x-ms-lease-id": "nothing"}, "", b"HTTP/1.1 400 "),
        ({}, "", b"HTTP/1.1 412 "),
        ({"x-ms-lease-id": A, "If-Match": '"0x8D0000000000000"'}, "", b"HTTP/1.1 412 "),
        ({"x-ms-lease-id": A, "If-None-Match": "*"}, "", b"HTTP/1.1 100 "),
        ({}, "?comp=block&blockid=QQ==", b"HTTP/1.1 412 "),
        ({"x-ms-lease-id": A}, "", b"HTTP/1.1 100 "),
        ({"x-ms-lease-id": A}, "?comp=block&blockid=QQ==", b"HTTP/1.1 100 "),
    ],
)
def test_expect_100_continue(
    server: Running,
    client: Client,
    container: str,
    headers: dict[str, str],
    query: str,
    start: bytes,
    size: str,
) -> None:
    """B-LIM-08: what can be refused already is refused without the body."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"leased"), 201)
    Leased(server, client, f"/{container}/b").acquire(duration_s=-1)
    expecting: dict[str, str | None] = {"Expect": "100-continue", "Content-Length": size}
    data = head(client, "PUT", f"/{container}/b{query}", {**PUT_BLOB, **expecting, **headers})
    before = time.monotonic()
    assert until_answered(client, data).startswith(start)
    assert time.monotonic() - before < 8
    assert expect(client.get(f"/{container}/b"), 200).body == b"leased"


def test_after_100_the_body_is_taken(client: Client, container: str) -> None:
    """B-LIM-08."""
    headers: dict[str, str | None] = {**PUT_BLOB, "Expect": "100-continue", "Content-Length": "4"}
    with socket.create_connection((HOST, client.port), timeout=10) as connection:
        connection.sendall(head(client, "PUT", f"/{container}/b", headers))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"text")
        assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")
    assert expect(client.get(f"/{container}/b"), 200).body == b"text"
