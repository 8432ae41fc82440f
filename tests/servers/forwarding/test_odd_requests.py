"""Requests in unusual forms of HTTP have the same answer at each gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom.limits import REQUEST_HEADERS_MAX
from tests.conformance.client import raw
from tests.conformance.sas import account_sas
from tests.servers.forwarding.pair import HOLDER, OTHER, Pair

_OWN = (
    *(b"date:", b"x-ms-request-id:", b"last-modified:", b"etag:"),
    *(b"x-ms-file-last-write-time:", b"x-ms-file-change-time:"),
)
_VERSION = b"x-ms-version: 2025-11-05\r\n"
_END = b"Connection: close\r\n\r\n"
_RANGE = b"x-ms-write: update\r\nx-ms-range: bytes=0-3\r\n"


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.stop()


def answer(pair: Pair, number: int, request: bytes) -> bytes:
    """Return an answer without what differs between any two."""
    token = account_sas(pair.credential, ss="f", srt="sco").encode()
    filled = request.replace(b"TOKEN", token).replace(b"ACCOUNT", pair.here.prefix.encode())
    received = raw(pair.both[number].ports["file"], filled)
    head, _, body = received.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(_OWN)]
    return b"\n".join(lines) + b"\n\n" + body.partition(b"RequestId:")[0]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET ACCOUNT/box/f?TOKEN HTTP/1.0\r\n" + _VERSION + b"\r\n",
        b"GET ACCOUNT/box/f?TOKEN HTTP/1.0\r\nHost: h\r\n" + _END,
        b"GET http://elsewhere.example.net:1ACCOUNT/box/f?TOKEN HTTP/1.1\r\nHost: h\r\n" + _END,
        b"GET ACCOUNT/box/\xc3\xa4?TOKEN HTTP/1.1\r\nHost: h\r\n" + _END,
        b"GET ACCOUNT/box/%C3%A4%2F..?TOKEN HTTP/1.1\r\nHost: h\r\n" + _END,
        b"GET ACCOUNT/box/f?TOKEN HTTP/1.1\r\nHost:\r\nx-note:  a \xff b \r\n" + _END,
        b"GET ACCOUNT/box/f?TOKEN HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nUpgrade: h2c\r\n"
        b"Connection: Upgrade, x-ms-version, close\r\n" + _VERSION + b"\r\n",
        b"HEAD ACCOUNT/box/f?TOKEN HTTP/1.1\r\nHost: h\r\n" + _END,
        b"HEAD ACCOUNT/box/missing?TOKEN HTTP/1.1\r\nHost: h\r\n" + _END,
        b"GET ACCOUNT/box/f?TOKEN HTTP/1.1\r\nHost: h\r\nx-long: " + b"x" * 15_000 + b"\r\n" + _END,
        b"GET ACCOUNT/box/f?TOKEN HTTP/1.1\r\nHost: h\r\n"
        + b"".join(b"x-%d: 1\r\n" % number for number in range(REQUEST_HEADERS_MAX - 2))
        + _END,
        b"PUT ACCOUNT/box/f?comp=range&TOKEN HTTP/1.1\r\nHost: h\r\n" + _RANGE + _VERSION
        + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n" + _END + b"4\r\nabcd\r\n0\r\n\r\n",
        b"PUT ACCOUNT/box/f?comp=range&TOKEN HTTP/1.1\r\nHost: h\r\n" + _RANGE + _VERSION
        + b"Transfer-Encoding: chunked\r\n" + _END
        + b"2;name=value\r\nab\r\n2\r\ncd\r\n0\r\nTrailer: x\r\n\r\n",
        b"PUT ACCOUNT/box/f?comp=range&TOKEN HTTP/1.1\r\nHost: h\r\n" + _RANGE + _VERSION
        + b"Content-Length: 0004\r\n" + _END + b"abcd",
        b"PUT ACCOUNT/box/f?comp=range&TOKEN HTTP/1.1\r\nHost: h\r\n" + _RANGE + _VERSION
        + b"Content-Length: 4\r\nExpect: 100-Continue\r\n" + _END + b"abcd",
        b"PUT ACCOUNT/box/missing?comp=range&TOKEN HTTP/1.1\r\nHost: h\r\n" + _RANGE + _VERSION
        + b"Content-Length: 4\r\n" + _END + b"abcd",
        b"DELETE ACCOUNT/box/missing?TOKEN HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n" + _END
        + b"abc",
    ],
)  # fmt: skip
def test_the_answer_is_the_same(pair: Pair, request_bytes: bytes) -> None:
    before = pair.counts.requests
    right = answer(pair, HOLDER, request_bytes)
    wrong = answer(pair, OTHER, request_bytes)
    assert wrong == right
    assert right.startswith(b"HTTP/1.1 ")
    # What is no HTTP is refused where it comes.
    assert pair.counts.requests == before + 1 or b" 400 " in right.partition(b"\n")[0]


def test_a_body_that_ends_early_is_refused_as_at_the_holder(pair: Pair) -> None:
    head = b"PUT ACCOUNT/box/f?comp=range&TOKEN HTTP/1.1\r\nHost: h\r\n" + _RANGE + _VERSION
    for framing in (b"Content-Length: 9\r\n", b"Transfer-Encoding: chunked\r\n"):
        body = b"abcd" if framing.startswith(b"C") else b"9\r\nabcd"
        cut = head + framing + _END + body
        token = account_sas(pair.credential, ss="f", srt="sco").encode()
        filled = cut.replace(b"TOKEN", token).replace(b"ACCOUNT", pair.here.prefix.encode())
        answers = [
            raw(pair.both[number].ports["file"], filled, end=True).split(b"\r\n")[0]
            for number in (HOLDER, OTHER)
        ]
        assert answers[0] == answers[1], answers
    assert pair.counts.failures == 0
