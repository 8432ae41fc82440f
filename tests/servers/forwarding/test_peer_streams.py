"""The connections to another gateway, and one exchange on them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from strongroom.servers.forwarding.announcements import decoded
from strongroom.servers.forwarding.peer_exchange import PeerExchange, PeerStream
from strongroom.servers.forwarding.peers import Peer, PeerUnreachable
from strongroom.servers.http.body import WholeBody
from strongroom.testing.ports import HOST
from strongroom.wire.core.http import Headers, Request
from tests.servers.forwarding.pair import HOLDER, Pair


@pytest.fixture(scope="module")
def lasting() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.stop()


def peer_of(pair: Pair) -> Peer:
    gateways = pair.both[HOLDER].store.gateways
    announced = decoded(gateways.announced(gateways.run))
    assert announced is not None
    return Peer(gateways.run, announced, asyncio.get_running_loop().time)


def test_a_gateway_that_is_gone_gets_no_new_connection(lasting: Pair) -> None:
    async def late() -> None:
        peer = peer_of(lasting)
        peer.abort()
        with pytest.raises(PeerUnreachable, match="gone"):
            await peer.stream(HOST, is_upload=False)

    lasting.call(late())


def test_a_gateway_that_goes_while_it_is_connected_to_gets_no_request(lasting: Pair) -> None:
    async def meanwhile() -> None:
        peer = peer_of(lasting)
        connecting = asyncio.ensure_future(peer.stream(HOST, is_upload=False))
        await asyncio.sleep(0)
        peer.abort()
        with pytest.raises(PeerUnreachable, match="gone"):
            await connecting
        assert not peer._open

    lasting.call(meanwhile())


async def answered_with(interim: bytes) -> int:
    """Return the status of a request with a body, to a server that wants to see the body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(interim)
        assert await reader.readexactly(4) == b"body"
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, HOST, 0) as server:
        address = server.sockets[0].getsockname()
        stream = PeerStream(*await asyncio.open_connection(*address[:2]))
        request = Request("PUT", "/a/b", Headers((("Host", "h"),)), WholeBody(b"body"))
        exchange = PeerExchange(stream, request)
        async with asyncio.timeout(10):
            await exchange.begin("proof", None)
        exchange.end()
        stream.abort()
        return exchange.status


@pytest.mark.parametrize(
    "interim",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
    ],
)
def test_a_body_is_sent_once_it_was_asked_for(interim: bytes) -> None:
    assert asyncio.run(answered_with(interim)) == 201
