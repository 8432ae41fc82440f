"""The port for the other gateways: who is believed there, and what everybody else gets."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from strongroom.engines.gateways import GatewayRun
from strongroom.servers.forwarding import forwarder, questions
from strongroom.servers.forwarding.announcements import decoded, encoded
from strongroom.servers.forwarding.certificate import client_context
from strongroom.servers.forwarding.peers import Peer
from strongroom.servers.forwarding.proofs import HEADER, Hop, Proofs, restore
from strongroom.servers.http.body import EmptyBody
from strongroom.services.core.copies.sources import LocalSource, SourceRequest
from strongroom.wire.core.http import Headers, Request
from tests.conformance.answer import expect
from tests.conformance.client import HOST
from tests.servers.forwarding.pair import HOLDER, OTHER, Pair

RUNS = GatewayRun(0, 1), GatewayRun(1, 2)
HOP = Hop(RUNS[0], RUNS[1], "10.1.2.3", False, "", "the-id", True)
PRINT = b"p" * 32


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    monkeypatch.setattr(forwarder, "_PATIENCE_S", 0.1)
    made = Pair()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def lasting() -> Iterator[Pair]:
    """A pair for tests that leave it as it is."""
    made = Pair()
    yield made
    made.stop()


def request(target: str = "/a/b", method: str = "GET", **fields: str) -> Request:
    named = ((name.replace("_", "-"), text) for name, text in fields.items())
    return Request(method, target, Headers((("Host", "h"), *named)), EmptyBody())


def proven(text: str, **change: Any) -> Hop | None:
    given: dict[str, Any] = {
        "target": "/a/b",
        "method": "GET",
        "own": RUNS[1],
        "fingerprint": PRINT,
    } | change
    received = request(given["target"], given["method"], **{HEADER: text})
    secret = change.get("secret", b"s" * 32)
    return Proofs(secret).proven(received, given["own"], given["fingerprint"])


def test_a_proof_is_for_one_request_to_one_run_with_one_certificate() -> None:
    text = Proofs(b"s" * 32).header(request(), HOP, PRINT)
    assert proven(text) == HOP
    for change in (
        {"target": "/a/c"},
        {"method": "PUT"},
        {"own": GatewayRun(1, 3)},
        {"own": RUNS[0]},
        {"fingerprint": b"q" * 32},
        {"secret": b"t" * 32},
    ):
        assert proven(text, **change) is None, change


@pytest.mark.parametrize("secret", [b"", b"short"])
def test_a_store_without_a_secret_proves_nothing(secret: bytes) -> None:
    with pytest.raises(ValueError, match="no secret"):
        Proofs(secret)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"),
        lambda text: "A" + text[1:],
        lambda text: text.partition(".")[0],
        lambda text: text + "." + text,
        lambda text: "\xff" * 40,
        lambda text: text.upper(),
    ],
)
def test_a_header_that_differs_proves_nothing(change: Callable[[str], str]) -> None:
    text = Proofs(b"s" * 32).header(request(), HOP, PRINT)
    assert proven(change(text)) is None


def test_a_header_that_comes_twice_proves_nothing() -> None:
    text = Proofs(b"s" * 32).header(request(), HOP, PRINT)
    twice = Headers(((HEADER, text), (HEADER, text)))
    received = Request("GET", "/a/b", twice, EmptyBody())
    assert Proofs(b"s" * 32).proven(received, RUNS[1], PRINT) is None


def test_a_restored_request_is_the_one_that_the_client_sent() -> None:
    received = request(x_ms_version="1", X_Strongroom_Forwarded="proof")
    received.peer, received.tls = "10.0.0.9", True
    restore(received, msgspec.structs.replace(HOP, mount="/file", has_host=False))
    assert received.headers.fields == (("x-ms-version", "1"),)
    assert (received.peer, received.tls, received.mount) == ("10.1.2.3", False, "/file")
    assert (received.request_id, received.is_forwarded) == ("the-id", True)


def test_a_question_for_a_source_is_the_same_on_the_other_side() -> None:
    source = LocalSource("acct", "box", 7, "d/f", snapshot=9, trailing_dots=True)
    asked = questions.for_source(source, SourceRequest(authorization="Bearer x"))
    assert asked == questions.ReadSource(source, SourceRequest()), "no token leaves the gateway"
    for question in (asked, questions.GiveUp(7)):
        assert questions.decoded(questions.encoded(question)) == question


def exchanged(port: int, data: bytes, tls: bool = True) -> bytes:
    """Return all that comes back until the connection ends."""
    with socket.create_connection((HOST, port), timeout=10) as plain:
        stream: socket.socket = client_context().wrap_socket(plain) if tls else plain
        stream.sendall(data)
        received = b""
        try:
            while piece := stream.recv(65536):
                received += piece
        except (ConnectionError, ssl.SSLError):
            pass
        return received


@pytest.mark.parametrize(
    ("data", "tls"),
    [
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: h\r\nx-strongroom-forwarded: a.b\r\n\r\n", True),
        (b"PUT /a/b HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nxxxx", True),
        (b"GET / HTTP/1.1\r\n\r\n", True),
        (b"\x00\x01\x02\r\n\r\n", True),
        (b"GET /.strongroom/metrics HTTP/1.1\r\nHost: h\r\n\r\n", True),
    ],
)
def test_who_proves_nothing_gets_403_without_a_word(lasting: Pair, data: bytes, tls: bool) -> None:
    received = exchanged(lasting.both[HOLDER].gateway_port, data, tls)
    assert received.startswith(b"HTTP/1.1 403 "), received
    head, _, body = received.partition(b"\r\n\r\n")
    assert body == b""
    assert {line.partition(b":")[0] for line in head.split(b"\r\n")[1:]} == {
        b"Content-Length",
        b"Connection",
    }


def captured(pair: Pair, path: str = "/box/f") -> bytes:
    """Return the head of a request that a gateway has sent to the holder, as a thief would have
    it."""
    kept: list[bytes] = []
    write = Peer.stream

    async def kept_stream(self: Peer, client: str, **wanted: bool) -> Any:
        stream: Any = await write(self, client, **wanted)
        send = stream.writer.write

        def keep(data: bytes) -> None:
            kept.append(bytes(data))
            send(data)

        stream.writer.write = keep
        return stream

    Peer.stream = kept_stream  # type: ignore[method-assign]  # a double
    try:
        expect(pair.here.get(path), 200)
    finally:
        Peer.stream = write  # type: ignore[method-assign]
    return kept[0]


def test_a_stolen_request_is_worth_nothing_elsewhere(lasting: Pair) -> None:
    head = captured(lasting)
    assert exchanged(lasting.both[OTHER].gateway_port, head).startswith(b"HTTP/1.1 403 ")
    assert exchanged(lasting.both[HOLDER].gateway_port, head, tls=False).startswith(
        b"HTTP/1.1 403 "
    )
    other_file = head.replace(b"/box/f ", b"/box/g ")
    assert other_file != head
    assert exchanged(lasting.both[HOLDER].gateway_port, other_file).startswith(b"HTTP/1.1 403 ")


def test_unproven_requests_are_counted_and_seldom_logged(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    holder = pair.both[HOLDER]
    with caplog.at_level(logging.WARNING, "strongroom.servers.forwarding"):
        for _ in range(5):
            exchanged(holder.gateway_port, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert holder.forwarding.counts.unproven == 5
    assert holder.forwarding.counts.received == 0
    lines = [one.getMessage() for one in caplog.records]
    assert [HOST in line for line in lines] == [True], lines
    assert pair.seen[HOLDER].exchanges[0][0] != "gateways"


def test_a_gateway_with_another_secret_is_refused_and_answers_503(pair: Pair) -> None:
    answer: Any = pair.both[OTHER].forwarding.answer
    answer.__self__._proofs = Proofs(b"x" * 32)
    expect(pair.here.get("/box/f"), 503, "ServerBusy")
    assert pair.both[HOLDER].forwarding.counts.received == 0
    assert pair.both[HOLDER].forwarding.counts.unproven > 0


def test_a_server_without_the_announced_certificate_is_told_nothing(pair: Pair) -> None:
    """Somebody else listens at the address, and would see signed requests."""
    gateways = pair.both[HOLDER].store.gateways
    announced = decoded(gateways.announced(gateways.run))
    assert announced is not None
    false = msgspec.structs.replace(announced, fingerprint=b"f" * 32)
    pair.call(gateways.announce(encoded(false)))
    expect(pair.here.get("/box/f"), 503, "ServerBusy")
    assert pair.both[HOLDER].forwarding.counts.unproven == 0
    assert pair.counts.failures > 0


def test_gateways_of_another_protocol_do_not_forward_to_each_other(pair: Pair) -> None:
    gateways = pair.both[HOLDER].store.gateways
    announced = decoded(gateways.announced(gateways.run))
    assert announced is not None
    newer = encoded(msgspec.structs.replace(announced, protocol=announced.protocol + 1))
    assert decoded(newer) is decoded(b"nonsense") is decoded(None) is None
    pair.call(gateways.announce(newer))
    expect(pair.here.get("/box/f"), 503, "ServerBusy")
