"""Heads: exact parsing, refusals, and the same result for any split into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.errors.core import StorageError
from strongroom.servers.http.head import Head, HeadParser
from strongroom.servers.http.settings import HttpSettings

SMALL = HttpSettings(head_bytes_max=600, headers_max=8, target_bytes_max=100)
VALID = (
    b"PUT /acct/c/b%2Fx?comp=block&blockid=QQ%3D%3D HTTP/1.1\r\nHost: localhost:10000\r\n"
    b"x-ms-meta-CaSe: v\xe4lue \r\nX-MS-META-case:two\r\nContent-Length: 3\r\n\r\n"
)
HOST = b"Host: a\r\n"


def parse(data: bytes, settings: HttpSettings = SMALL) -> tuple[Head, bytes]:
    parser = HeadParser(settings)
    end = parser.feed(data)
    assert end > 0
    assert parser.head is not None
    return parser.head, data[end:]


def trickle(data: bytes) -> None:
    """Feed a head byte by byte."""
    parser = HeadParser(SMALL)
    for byte in data:
        parser.feed(bytes([byte]))


def refusal(data: bytes) -> tuple[int, str]:
    parser = HeadParser(SMALL)
    with pytest.raises(StorageError) as caught:
        parser.feed(data)
    return caught.value.row.status, caught.value.row.code


def test_everything_is_kept_as_it_was_sent() -> None:
    head, rest = parse(VALID + b"abc")
    assert head.method == "PUT"
    assert head.target == "/acct/c/b%2Fx?comp=block&blockid=QQ%3D%3D"
    assert head.headers.fields == (
        ("Host", "localhost:10000"),
        ("x-ms-meta-CaSe", "v\xe4lue"),
        ("X-MS-META-case", "two"),
        ("Content-Length", "3"),
    )
    assert "x-ms-meta-case" in head.headers.repeats
    assert (head.size_bytes, head.keep_alive, head.http_1_0) == (3, True, False)
    assert rest == b"abc"


@given(st.lists(st.integers(0, len(VALID)), max_size=8))
def test_pieces_make_no_difference(cuts: list[int]) -> None:
    parser = HeadParser(SMALL)
    edges = [0, *sorted(cuts), len(VALID)]
    pieces = [VALID[a:b] for a, b in pairwise(edges) if a < b]
    ends = [parser.feed(piece) for piece in pieces]
    assert ends == [-1] * (len(pieces) - 1) + [len(pieces[-1])]
    assert parser.head is not None
    assert parser.head.headers.fields == parse(VALID)[0].headers.fields
    assert parser.head.target == parse(VALID)[0].target


def test_one_parser_reads_one_head_after_the_other() -> None:
    parser = HeadParser(SMALL)
    second = b"GET /2 HTTP/1.1\r\n" + HOST + b"\r\n"
    data = VALID + second + second
    first_end = parser.feed(data)
    assert data[first_end:] == second + second
    second_end = parser.feed(data, first_end)
    assert parser.head is not None
    assert parser.head.target == "/2"
    assert parser.feed(data, second_end) == len(data)


def test_empty_lines_before_a_request_are_ignored() -> None:
    parser = HeadParser(SMALL)
    assert parser.feed(b"\r\n") == -1
    assert not parser.started
    assert parser.feed(b"\r\n\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\nX") == 31
    assert parser.head is not None


def test_upgrade_is_ignored_and_hides_no_body() -> None:
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    head, rest = parse(b"POST / HTTP/1.1\r\n" + HOST + offer + b"Content-Length: 2\r\n\r\nab")
    assert (head.size_bytes, rest) == (2, b"ab")


@pytest.mark.parametrize(
    ("version", "connection", "keep_alive"),
    [
        ("1.1", "", True),
        ("1.1", "close", False),
        ("1.1", "Keep-Alive", True),
        ("1.1", "x, CLOSE", False),
        ("1.0", "", False),
        ("1.0", "keep-alive", True),
        ("1.0", "close", False),
    ],
)
def test_what_the_client_asks_of_the_connection(
    version: str, connection: str, keep_alive: bool
) -> None:
    field = f"Connection: {connection}\r\n" if connection else ""
    head, _ = parse(f"GET / HTTP/{version}\r\nHost: a\r\n{field}\r\n".encode())
    assert head.keep_alive is keep_alive


@pytest.mark.parametrize(
    ("expect", "wanted"), [("100-continue", True), ("100-Continue", True), ("other", False)]
)
def test_expectations(expect: str, wanted: bool) -> None:
    head, _ = parse(f"PUT / HTTP/1.1\r\nHost: a\r\nExpect: {expect}\r\n\r\n".encode())
    assert head.expects_continue is wanted


BAD = {
    "bare LF after the request line": b"GET / HTTP/1.1\nHost: a\r\n\r\n",
    "bare LF after a field": b"GET / HTTP/1.1\r\nHost: a\nx: y\r\n\r\n",
    "bare LF at the end": b"GET / HTTP/1.1\r\nHost: a\r\n\n\r\n\r\n",
    "bare CR in a value": b"GET / HTTP/1.1\r\nHost: a\r\nx: a\rb\r\n\r\n",
    "folded field": b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
    "folded with a tab": b"GET / HTTP/1.1\r\nHost: a\r\n\tb\r\n\r\n",
    "space before the colon": b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "space before the first field": b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nHost: a\r\nfoo\r\n\r\n",
    "empty name": b"GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
    "name with a parenthesis": b"GET / HTTP/1.1\r\nHost: a\r\nx(: y\r\n\r\n",
    "NUL in a value": b"GET / HTTP/1.1\r\nHost: a\r\nx: a\0b\r\n\r\n",
    "NUL in a name": b"GET / HTTP/1.1\r\nHost: a\r\nx\0: b\r\n\r\n",
    "no Host": b"GET / HTTP/1.1\r\nx: a\r\n\r\n",
    "two Hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "two lengths": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
    "a list of lengths": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
    "length with a sign": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
    "negative length": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "hexadecimal length": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n",
    "length with an underscore": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1_0\r\n\r\n",
    "empty length": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
    "length beyond 64 bits": b"PUT / HTTP/1.1\r\nHost: a\r\n"
    b"Content-Length: 18446744073709551617\r\n\r\n",
    "length beyond reason": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999999999999\r\n"
    b"\r\n",
    "length and chunks": b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n",
    "chunks and length": b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Length: 1\r\n\r\n",
    "chunks in HTTP/1.0": b"PUT / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "chunked twice": b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n",
    "an unknown version": b"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
    "HTTP/0.9": b"GET / HTTP/0.9\r\nHost: a\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no version": b"GET /\r\nHost: a\r\n\r\n",
    "a space in the target": b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "a control in the target": b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
    "a fragment": b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
    "rubbish": b"\x80\x81\x82\x83",
    "lower-case method": b"get / HTTP/1.1\r\nHost: a\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.mark.parametrize("name", BAD)
def test_malformed_and_ambiguous_heads_are_400(name: str) -> None:
    assert refusal(BAD[name])[0] == 400


@pytest.mark.parametrize("name", BAD)
def test_they_are_refused_in_pieces_too(name: str) -> None:
    with pytest.raises(StorageError) as caught:
        trickle(BAD[name])
    assert caught.value.row.status == 400


@pytest.mark.parametrize("coding", ["gzip, chunked", "chunked, chunked", "xchunked", "chunked;q=1"])
def test_other_codings_are_refused(coding: str) -> None:
    head = f"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {coding}\r\n\r\n".encode()
    assert refusal(head)[0] in (400, 501)


def test_words_that_are_no_method_are_400_and_connect_is_405() -> None:
    assert refusal(b"FROB / HTTP/1.1\r\nHost: a\r\n\r\n") == (400, "InvalidHttpVerb")
    assert refusal(b"get / HTTP/1.1\r\nHost: a\r\n\r\n") == (400, "InvalidHttpVerb")
    assert refusal(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n") == (405, "UnsupportedHttpVerb")


def test_the_bounds() -> None:
    exact = SMALL.target_bytes_max - 1
    head, _ = parse(b"GET /" + b"a" * exact + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    assert len(head.target) == SMALL.target_bytes_max
    too_long = b"GET /" + b"a" * (exact + 1)
    assert refusal(too_long + b" HTTP/1.1\r\n\r\n")[0] == 414
    assert refusal(too_long)[0] == 414, "before the head is complete"
    many = b"".join(b"x%d: y\r\n" % i for i in range(SMALL.headers_max - 1))
    parse(b"GET / HTTP/1.1\r\n" + HOST + many + b"\r\n")
    assert refusal(b"GET / HTTP/1.1\r\n" + HOST + many + b"y: y\r\n\r\n")[0] == 431
    assert refusal(b"GET / HTTP/1.1\r\nx: " + b"y" * SMALL.head_bytes_max)[0] == 431


def test_the_bound_holds_for_bytes_that_trickle() -> None:
    with pytest.raises(StorageError) as caught:
        trickle(b"GET / HTTP/1.1\r\nx: " + b"y" * SMALL.head_bytes_max)
    assert caught.value.row.status == 431


def test_bytes_above_ascii_in_a_target_are_refused() -> None:
    raw = "/c/\u00e4".encode()
    assert refusal(b"GET " + raw + b" HTTP/1.1\r\n" + HOST + b"\r\n") == (
        400,
        "RequestUrlFailedToParse",
    )
