"""A client or a gateway goes while a request is at another gateway."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from strongroom.servers.forwarding import forwarder, receiving
from strongroom.servers.requests import pipeline
from strongroom.wire.core.http import Request
from tests.conformance.answer import Answer, expect
from tests.servers.forwarding.pair import (
    FILE,
    HOLDER,
    MIB,
    OTHER,
    Gate,
    Pair,
    begun,
    kill,
    put_range,
    until,
)


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.stop()


def test_the_holder_notices_that_the_client_has_gone(pair: Pair) -> None:
    with Gate(pair, HOLDER) as gate:
        sending = pair.here.begin("PUT", "/box/f?comp=range", put_range(0, 4), 4)
        sending.send(b"gone")
        assert gate.reached.wait(10)
        (request,) = (one for one in begun(pair, HOLDER) if one.is_forwarded)
        assert not request.is_disconnected
        sending.abandon()
        until(lambda: request.is_disconnected)
    # As at the holder itself: what has begun is done.
    until(lambda: pair.there.get("/box/f").body[:4] == b"gone")
    assert pair.counts.failures == 0


def test_a_holder_that_dies_before_its_answer_is_not_asked_twice(pair: Pair) -> None:
    """The write may have been carried out, and 503 would say that it was not."""
    with Gate(pair, HOLDER) as gate:
        answer = pair.here.start("PUT", "/box/f?comp=range", put_range(0, 4), b"lost")
        assert gate.reached.wait(10)
        pair.call(kill(pair.both[HOLDER]))
        expect(answer.result(10), 500, "InternalError")
        assert len([one for one in begun(pair, HOLDER) if one.is_forwarded]) == 1
    assert (pair.counts.failures, pair.counts.requests) == (1, 0)


def test_a_read_whose_holder_dies_may_be_sent_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = threading.Event()

    async def never(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    expect(pair.here.get("/box/f"), 200)
    monkeypatch.setattr(pair.both[HOLDER].store, "read", never)
    answer = pair.here.start("GET", "/box/f")
    assert reached.wait(10)
    pair.call(kill(pair.both[HOLDER]))
    assert expect(answer.result(10), 503, "ServerBusy")["Retry-After"] == "1"


def test_a_change_that_does_not_look_at_its_body_may_have_been_carried_out(pair: Pair) -> None:
    """Its holder dies before the body was asked for, and has made the directory."""
    with Gate(pair, HOLDER) as gate:
        upload = pair.here.begin("PUT", "/box/d?restype=directory", {}, 4 * MIB)
        assert gate.reached.wait(10)
        pair.call(kill(pair.both[HOLDER]))
        expect(upload.finish(), 500, "InternalError")


def test_what_may_have_been_done_is_not_sent_again(pair: Pair) -> None:
    """The connection between the gateways ends, and both go on."""
    expect(pair.here.get("/box/f"), 200)
    listener: Any = pair.both[HOLDER].gateway_listener

    async def cut() -> None:
        for connection in listener._connections:
            connection._transport.abort()

    with Gate(pair, HOLDER) as gate:
        answer = pair.here.start("PUT", "/box/f?comp=range", put_range(0, 4), b"once")
        assert gate.reached.wait(10)
        pair.call(cut())
        expect(answer.result(10), 500, "InternalError")
    until(lambda: pair.there.get("/box/f").body[:4] == b"once")
    assert len([one for one in begun(pair, HOLDER) if one.is_forwarded]) == 1


def test_a_kept_connection_that_has_ended_is_replaced(pair: Pair) -> None:
    """A read is sent again; a write finds out before it is sent."""
    listener: Any = pair.both[HOLDER].gateway_listener

    async def end() -> None:
        listener.close_idle()

    for method in ("GET", "PUT"):
        expect(pair.here.get("/box/f"), 200)
        pair.call(end())
        until(lambda: listener.connection_count == 0)
        target = "/box/f" if method == "GET" else "/box/f?comp=range"
        headers = {} if method == "GET" else put_range(0, 4)
        body = b"" if method == "GET" else b"more"
        assert pair.here.send(method, target, headers, body).status in (200, 201)


def test_a_holder_that_dies_within_its_answer_breaks_the_answer(pair: Pair) -> None:
    expect(pair.there.put("/box/big", {**FILE, "x-ms-content-length": str(64 * MIB)}), 201)
    connection = pair.here.connect()
    full = f"{pair.here.prefix}/box/big"
    fields = dict(pair.here.fields("GET", full, (), b"", "SharedKey"))
    connection.request("GET", full, headers=fields)
    response = connection.getresponse()
    assert len(response.read(MIB)) == MIB
    pair.call(kill(pair.both[HOLDER]))
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        response.read()
    connection.close()


def test_a_dead_holder_is_replaced_and_until_then_503_says_when_to_come_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder, "_PATIENCE_S", 0.1)
    pair.call(kill(pair.both[HOLDER]))
    assert expect(pair.here.get("/box/f"), 503, "ServerBusy")["Retry-After"] == "1"
    assert pair.counts.refused == 1
    pair.advance(11)
    expect(pair.here.get("/box/f"), 200)


def answer_of_a_silent_holder(pair: Pair) -> Answer:
    """Send a change to a gateway that then gives no sign of life until it counts as dead."""
    with Gate(pair, HOLDER) as gate:
        answer = pair.here.start("PUT", "/box/f?comp=range", put_range(0, 4), b"lost")
        assert gate.reached.wait(10)
        pair.both[HOLDER].store.gateways.is_beating = False
        pair.advance(11)
        return answer.result(10)


def test_a_silent_holder_is_waited_for_until_it_counts_as_dead(pair: Pair) -> None:
    expect(answer_of_a_silent_holder(pair), 500, "InternalError")
    expect(pair.here.get("/box/f"), 200)


def test_a_client_that_sends_no_more_is_not_told_that_its_change_was_not_done(pair: Pair) -> None:
    """It still reads. The change takes longer than the other gateway waits for it then."""
    with Gate(pair, HOLDER) as gate:
        sending = pair.here.begin("PUT", "/box/f?comp=range", put_range(0, 4), 4)
        sending.send(b"done")
        assert gate.reached.wait(10)
        connection: Any = sending._connection
        connection.sock.shutdown(socket.SHUT_WR)
        (request,) = (one for one in begun(pair, HOLDER) if one.is_forwarded)
        until(lambda: request.is_disconnected)
        expect(sending.finish(), 500, "InternalError")
    until(lambda: pair.there.get("/box/f").body[:4] == b"done")
    assert pair.counts.failures == 0


def test_a_change_whose_answer_is_not_of_it_is_not_sent_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was done, and then neither its answer nor an error could be written."""
    done: list[Request] = []

    async def respond(context: Any, request: Request) -> None:
        await pipeline.respond(context, request)
        done.append(request)
        raise RuntimeError("its answer is odd")

    def refuse(*_: object) -> None:
        raise RuntimeError("the error is odd")

    odd = SimpleNamespace(respond=respond, refuse=refuse)
    monkeypatch.setattr(receiving, "pipeline", odd)
    expect(pair.here.put("/box/f?comp=range", put_range(0, 4), b"once"), 500, "InternalError")
    assert len(done) == 1


def test_an_error_of_the_sweep_lets_no_request_wait_for_a_dead_gateway(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def odd(_: float) -> list[int]:
        raise RuntimeError("a share is odd")

    monkeypatch.setattr(pair.both[OTHER].forwarding._leaving, "release_idle", odd)
    until(lambda: "a share is odd" in caplog.text)
    expect(answer_of_a_silent_holder(pair), 500, "InternalError")
