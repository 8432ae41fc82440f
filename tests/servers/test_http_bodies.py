"""Bodies: the chunked coding compared with llhttp, and the contract of the reader."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strongroom.errors.core import INCOMPLETE_BODY, StorageError
from strongroom.servers.http.body import LINES_IN_A_ROW, ChunkDecoder, EmptyBody, IncomingBody
from strongroom.servers.http.buffers import Share
from tests.servers.loopback import run

chunk_lists = st.lists(st.binary(min_size=1, max_size=40), max_size=6)


def encoded(chunks: list[bytes], extension: bytes = b"", trailers: bytes = b"") -> bytes:
    parts = [b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks]
    return b"".join(parts) + b"0\r\n" + trailers + b"\r\n"


def decode(pieces: list[bytes]) -> tuple[bytes, bytes, bool]:
    decoder = ChunkDecoder()
    body = rest = b""
    for piece in pieces:
        if decoder.done:
            rest += piece
            continue
        data, position = b"#" + piece, 1
        while position < len(data) and not decoder.done:
            found, position = decoder.feed(data, position)
            body += b"".join(found)
        rest += data[position:]
    return body, rest, decoder.done


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if a < b]


@given(chunk_lists, st.lists(st.integers(0, 500), max_size=9), st.booleans(), st.booleans())
def test_pieces_make_no_difference(
    chunks: list[bytes], cuts: list[int], extended: bool, trailed: bool
) -> None:
    data = encoded(chunks, b";a=b" if extended else b"", b"X-Y: z\r\n" if trailed else b"")
    assert decode(cut(data + b"GET /next", cuts)) == (b"".join(chunks), b"GET /next", True)


class Judge:
    """Decodes a chunked body with llhttp."""

    def __init__(self) -> None:
        self.body = b""
        self.ends = 0

    def on_body(self, piece: bytes) -> None:
        self.body += piece

    def on_message_complete(self) -> None:
        self.ends += 1


HEAD = b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKY = st.one_of(
    st.binary(max_size=30),
    st.lists(
        st.sampled_from(
            [b"0", b"1", b"5", b"a", b"\r\n", b"\n", b"\r", b" ", b";", b"x", b"0\r\n\r\n", b"-"]
        ),
        max_size=12,
    ).map(b"".join),
    st.tuples(chunk_lists.map(encoded), st.integers(0, 60), st.binary(max_size=2)).map(
        lambda t: t[0][: t[1]] + t[2] + t[0][t[1] + 1 :]
    ),
)


@given(CHUNKY)
@example(b"1\r\nab\r\n0\r\n\r\n")
@example(b"1 \r\na\r\n0\r\n\r\n")
def test_what_is_accepted_is_read_alike_by_llhttp(data: bytes) -> None:
    try:
        body, rest, done = decode([data])
    except StorageError:
        return  # the code of a refusal is tested below
    if not done:
        return  # a later byte may still be refused
    judge = Judge()
    httptools.HttpRequestParser(judge).feed_data(HEAD + data[: len(data) - len(rest)])
    assert (judge.body, judge.ends) == (body, 1)


def test_one_call_reads_a_bounded_number_of_lines() -> None:
    decoder, position, calls, body = ChunkDecoder(), 0, 0, b""
    data = encoded([b"x"] * LINES_IN_A_ROW)
    while not decoder.done:
        pieces, position = decoder.feed(data, position)
        assert len(pieces) <= LINES_IN_A_ROW
        body += b"".join(pieces)
        calls += 1
    assert (body, position) == (b"x" * LINES_IN_A_ROW, len(data))
    assert calls == 3  # each chunk has two lines; two more end the body


BAD_CHUNKS = {
    "not hexadecimal": b"g\r\n",
    "a sign": b"+1\r\na\r\n",
    "negative": b"-1\r\n",
    "prefix": b"0x1\r\na\r\n",
    "empty": b"\r\n",
    "space": b"1 \r\na\r\n",
    "huge": b"fffffffffffffffff\r\n",
    "bare LF": b"1\na\r\n",
    "bare CR": b"1\ra\r\n",
    "data too long": b"1\r\nab\r\n",
    "LF behind data": b"1\r\na\n0\r\n\r\n",
    "NUL in an extension": b"1;\0\r\na\r\n",
    "a size line without end": b"1;" + b"a" * 5000,
    "a folded trailer": b"0\r\n x\r\n\r\n",
    "a trailer without colon": b"0\r\nx\r\n\r\n",
    "trailers without end": b"0\r\n" + b"x: yyyyyyyy\r\n" * 2000,
}


@pytest.mark.parametrize("name", BAD_CHUNKS)
def test_broken_chunks_are_refused(name: str) -> None:
    with pytest.raises(StorageError) as caught:
        decode([BAD_CHUNKS[name]])
    assert caught.value.row.code == "InvalidInput"


class Source:
    """A double of a connection, which records the body's calls."""

    is_held_back = False

    def __init__(self) -> None:
        self.asked: list[str] = []

    def body_wanted(self) -> None:
        self.asked.append("wanted")

    def pause_body(self) -> None:
        self.asked.append("pause")

    def resume_body(self) -> None:
        self.asked.append("resume")


def new_body(size_bytes: int | None) -> tuple[IncomingBody, Source]:
    source = Source()
    return IncomingBody(size_bytes, source, Share(1000, 300)), source


def finish_at_once(body: IncomingBody, max_bytes: int) -> bytes:
    """Return the result of read_all, which must not suspend."""
    with pytest.raises(StopIteration) as stop:
        body.read_all(max_bytes).send(None)
    value = stop.value.value
    assert isinstance(value, bytes)
    return value


def test_a_body_that_is_here_is_read_without_waiting() -> None:
    body, source = new_body(6)
    assert body.receive(b"__abcdefGET", 2) == 8
    assert body.ended
    assert finish_at_once(body, 6) == b"abcdef"
    assert source.asked == []


def test_reading_pauses_above_the_bound_and_goes_on_below() -> None:
    async def scenario() -> None:
        body, source = new_body(10_000)
        body.receive(b"a" * 600)
        assert source.asked == []
        body.receive(b"b" * 600)
        assert source.asked == ["pause"]
        assert await anext(body) == b"a" * 600
        assert source.asked == ["pause"]
        assert await anext(body) == b"b" * 600
        assert source.asked == ["pause", "resume"]

    run(scenario())


def test_many_tiny_pieces_count_for_more_than_their_bytes() -> None:
    body, source = new_body(10_000)
    for _ in range(100):
        body.receive(b"x")
    assert source.asked == ["pause"]


def test_too_large_is_told_before_anything_is_read() -> None:
    body, source = new_body(100)
    with pytest.raises(StorageError) as caught:
        body.read_all(99).send(None)
    assert caught.value.row.status == 413
    assert source.asked == []


def test_a_chunked_body_is_cut_off_at_the_bound() -> None:
    body, _ = new_body(None)
    body.receive(encoded([b"a" * 50, b"b" * 50]))
    with pytest.raises(StorageError) as caught:
        body.read_all(99).send(None)
    assert caught.value.row.status == 413
    body, _ = new_body(None)
    body.receive(encoded([b"a" * 50, b"b" * 50]))
    assert finish_at_once(body, 100) == b"a" * 50 + b"b" * 50


def test_an_early_end_reaches_the_reader_behind_what_arrived() -> None:
    async def scenario() -> None:
        body, _ = new_body(10)
        body.receive(b"abc")
        body.fail(StorageError(INCOMPLETE_BODY))
        assert await anext(body) == b"abc"
        with pytest.raises(StorageError):
            await anext(body)

    run(scenario())


def test_nothing_behind_an_error_is_taken_for_a_body() -> None:
    body, _ = new_body(None)
    assert body.receive(b"zz\r\n") == 4
    assert body.left_bytes is None
    assert body.receive(b"0\r\n\r\nGET / HTTP/1.1\r\n") == 21
    assert not body.ended


def test_a_waiting_reader_is_woken() -> None:
    async def scenario() -> list[bytes]:
        body, source = new_body(4)
        reading = asyncio.create_task(body.read_all(4))
        await asyncio.sleep(0)
        assert body.waiting
        assert source.asked == ["wanted"]
        body.receive(b"ab")
        await asyncio.sleep(0)
        body.receive(b"cd")
        return [await reading]

    assert run(scenario()) == [b"abcd"]


def test_the_empty_body() -> None:
    async def scenario() -> tuple[bytes, list[bytes]]:
        return await EmptyBody().read_all(0), [chunk async for chunk in EmptyBody()]

    assert run(scenario()) == (b"", [])
