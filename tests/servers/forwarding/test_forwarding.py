"""A request that comes to a gateway without its share: the way to the other one, and back."""

from __future__ import annotations

import gc
import http.client
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from strongroom.servers.forwarding.peer_exchange import PeerExchange
from tests.conformance.answer import Answer, expect
from tests.conformance.client import HOST
from tests.conformance.sas import account_sas
from tests.effort import stride
from tests.servers.forwarding.pair import (
    FILE,
    HOLDER,
    MIB,
    OTHER,
    Pair,
    is_held_back,
    put_range,
    sent_bytes,
    until,
)


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def lasting() -> Iterator[Pair]:
    """A pair that keeps its share."""
    made = Pair()
    yield made
    made.stop()


def without_times(answer: Answer) -> list[tuple[str, str]]:
    own = ("date", "x-ms-request-id")
    return [(name, text) for name, text in answer.headers if name.lower() not in own]


def test_the_answer_is_the_holders_answer_in_every_byte(pair: Pair) -> None:
    expect(pair.here.put("/box/f?comp=range", put_range(0, 10), b"0123456789"), 201)
    for target in ("/box/f", "/box/missing", "/box/f?comp=rangelist", "/box?restype=directory"):
        for method in ("GET", "HEAD"):
            right, wrong = (one.send(method, target) for one in (pair.there, pair.here))
            assert (wrong.status, wrong.reason) == (right.status, right.reason)
            assert without_times(wrong) == without_times(right)
            if right.status == 200:
                assert wrong.body == right.body
    # One of them is refused by the gateway that it comes to: there is no such operation.
    assert pair.counts.requests == 8
    assert pair.counts.failures == 0


def test_connections_are_used_again_after_answers_of_every_kind(pair: Pair) -> None:
    for _ in range(3):
        expect(pair.here.get("/box/f"), 200)
        expect(pair.here.head("/box/f"), 200)
        expect(pair.here.get("/box/missing"), 404, "ResourceNotFound")
        etag = pair.here.head("/box/f").etag
        pair.here.get("/box/f", {"If-None-Match": etag})
        expect(pair.here.put("/box/f?comp=range", put_range(0, 5), b"abcde"), 201)
    listener = pair.both[HOLDER].gateway_listener
    assert listener is not None
    assert listener.connection_count == 1


def test_both_logs_have_the_request_with_one_id_and_the_clients_address(pair: Pair) -> None:
    answer = expect(pair.here.get("/box/missing"), 404, "ResourceNotFound")
    until(lambda: all(one.exchanges for one in pair.seen))
    (_, first), (listener, second) = (one.exchanges[-1] for one in reversed(pair.seen))
    assert listener == "gateways"
    for exchange in (first, second):
        assert exchange.request is not None
        assert exchange.response is not None
        ids = [text for name, text in exchange.response.headers if name == "x-ms-request-id"]
        assert ids == [answer["x-ms-request-id"]]
        assert exchange.peer == exchange.request.peer == HOST
        assert not exchange.request.tls, "the client came by http"
        parsed: Any = exchange.response.facts
        assert parsed.operation.name == "Get File"
        assert parsed.outcome.row.code == "ResourceNotFound"
        assert "x-strongroom-forwarded" not in exchange.request.headers


def test_a_client_that_writes_the_header_of_the_hop_is_not_believed(pair: Pair) -> None:
    """At the port for clients the header has no meaning, and it goes no further."""
    forged = {"x-strongroom-forwarded": "eyJwZWVyIjogIjEuMi4zLjQifQ==.00", "x-custom": "kept"}
    for client in (pair.here, pair.there):
        expect(client.get("/box/f", forged), 200)
    reads = [one for one in pair.seen[HOLDER].requests if one.method == "GET"]
    assert len(reads) == 2
    for read in reads:
        assert read.peer == HOST
        assert read.headers.get("x-custom") == "kept"
    assert [one.is_forwarded for one in reads] == [True, False]
    assert "x-strongroom-forwarded" not in reads[0].headers


@pytest.mark.parametrize(
    ("condition", "status"),
    [({"sip": "127.0.0.2"}, 200), ({"sip": HOST}, 403), ({"spr": "https"}, 403)],
)
def test_a_token_judges_the_client_and_not_the_gateway(
    lasting: Pair, condition: dict[str, Any], status: int
) -> None:
    token = account_sas(lasting.credential, ss="f", srt="o", **condition)
    target = f"{lasting.here.prefix}/box/f?{token}"
    for number in (HOLDER, OTHER):
        port = lasting.both[number].ports["file"]
        # From another address of loopback than those of the gateways.
        client = http.client.HTTPConnection(HOST, port, source_address=("127.0.0.2", 0))
        client.request("GET", target)
        assert client.getresponse().status == status
        client.close()


def test_the_client_is_asked_for_its_body_when_the_holder_wants_it(lasting: Pair) -> None:
    headers = {**put_range(0, 4), "Expect": "100-continue"}
    sending = lasting.here.begin("PUT", "/box/f?comp=range", headers, 4)
    sending.await_continue()
    expect(sending.finish(b"abcd"), 201)
    refused = lasting.here.begin("PUT", "/box/missing?comp=range", headers, 4)
    first = refused._connection.sock.recv(64, socket.MSG_PEEK)
    assert first.startswith(b"HTTP/1.1 404 "), "without the body, which is not asked for"
    expect(refused.finish(), 404, "ResourceNotFound")
    assert lasting.there.get("/box/f").body[:4] == b"abcd"


def test_bodies_of_every_framing_arrive_whole(lasting: Pair) -> None:
    expect(lasting.there.put("/box/g", {**FILE, "x-ms-content-length": str(4 * MIB)}), 201)
    data = bytes(range(256)) * (4 * MIB // 256)
    expect(lasting.here.put("/box/g?comp=range", put_range(0, 4 * MIB), data), 201)
    got = expect(lasting.here.get("/box/g", {"x-ms-range": f"bytes=0-{4 * MIB - 1}"}), 206)
    assert got.body == data
    # A body that comes in pieces, later than its head.
    sending = lasting.here.begin("PUT", "/box/g?comp=range", put_range(0, MIB), MIB)
    for start in range(0, MIB, MIB // 8):
        sending.send(data[start + 1 : start + 1 + MIB // 8])
    expect(sending.finish(), 201)
    assert lasting.there.get("/box/g").body[:MIB] == data[1 : MIB + 1]


def test_a_client_that_reads_slowly_holds_the_holder_back(lasting: Pair) -> None:
    size_bytes = 64 * MIB
    expect(lasting.there.put("/box/big", {**FILE, "x-ms-content-length": str(size_bytes)}), 201)
    piece = bytes(range(256)) * (4 * MIB // 256)
    for start in (0, size_bytes - 4 * MIB):
        expect(lasting.here.put("/box/big?comp=range", put_range(start, 4 * MIB), piece), 201)
    connection = lasting.here.connect()
    full = f"{lasting.here.prefix}/box/big"
    connection.putrequest("GET", full, skip_host=True, skip_accept_encoding=True)
    for name, text in lasting.here.fields("GET", full, (), b"", "SharedKey"):
        connection.putheader(name, text)
    connection.endheaders()
    until(lambda: is_held_back(lasting))
    assert sent_bytes(lasting) < size_bytes // 2, "what nobody reads is not sent"
    response = connection.getresponse()
    got = response.read()
    assert len(got) == size_bytes
    assert got[: 4 * MIB] == got[-4 * MIB :] == piece
    connection.close()


def test_requests_in_turn_from_several_clients_are_all_answered(lasting: Pair) -> None:
    total, clients = 10_000 if stride() == 1 else 2_000, 4
    statuses: list[int] = []

    def work(number: int) -> None:
        both = [lasting.at(HOLDER), lasting.at(OTHER)]
        for turn in range(total // clients // 2):
            name = f"/box/n{number}-{turn % 7}"
            made = both[turn % 2].put(name, {**FILE, "x-ms-content-length": "4"})
            read = both[(turn + 1) % 2].get(name)
            statuses.extend((made.status, read.status))
        for one in both:
            one.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == total
    assert set(statuses) == {200, 201}


def test_an_ended_exchange_is_freed_at_once(pair: Pair) -> None:
    """Without the collector of cycles: many requests would fill the memory until its next run."""

    def left() -> int:
        return sum(isinstance(one, PeerExchange) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        for target in ("/box/f", "/box/missing", "/box/f"):
            pair.here.get(target)
        sending = pair.here.begin("PUT", "/box/f?comp=range", put_range(0, 4), 4)
        sending.send(b"abcd")
        sending.finish()
        until(lambda: left() == 0)
    finally:
        gc.enable()


def test_what_is_counted_is_shown_as_metrics(pair: Pair) -> None:
    expect(pair.here.get("/box/f"), 200)
    telemetry = pair.both[OTHER].telemetry
    text = telemetry.exposition()[0].decode()
    assert "strongroom_forwarded_request_seconds_count 1.0" in text
    assert "strongroom_forward_failures_total 0.0" in text
