"""A request that comes to a gateway without its share: the way to the other one, and back."""

from __future__ import annotations

import asyncio
import gc
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from strongroom.errors.core import StorageError
from strongroom.servers.forwarding import forwarder
from strongroom.servers.forwarding.peer_exchange import PeerExchange
from strongroom.servers.http.settings import Exchange
from strongroom.services.file.handles.opening import connect_share
from strongroom.services.file.opens.open_handle import ShareAccess
from strongroom.services.file.opens.share_holds import IDLE_S, ShareHolds
from strongroom.wire.core.http import Request
from tests.conformance.answer import Answer, expect
from tests.conformance.client import HOST
from tests.conformance.sas import account_sas
from tests.effort import stride
from tests.servers.forwarding.two_servers import Gateway, TwoServers

PATIENCE_S = 20.0
MIB = 1024 * 1024
FILE = {"x-ms-type": "file"}
HOLDER, OTHER = 0, 1


class Seen:
    """What a gateway's access log would be told."""

    def __init__(self) -> None:
        self.exchanges: list[tuple[str, Exchange]] = []
        self.requests: list[Request] = []

    def begin(self, request: Request | None) -> None:
        assert request is not None
        self.requests.append(request)

    def observe(self, exchange: Exchange, listener: str) -> None:
        self.exchanges.append((listener, exchange))

    def observe_smb(self, exchange: Any) -> None:
        pass


class Pair(TwoServers):
    """Two servers, of which the first one has the share `box`."""

    def __init__(self) -> None:
        self.seen = (Seen(), Seen())
        super().__init__(tuple((one,) for one in self.seen))
        self.here, self.there = self.at(OTHER), self.at(HOLDER)
        expect(self.there.put("/box?restype=share"), 201)
        expect(self.there.put("/box/f", {**FILE, "x-ms-content-length": "10"}), 201)

    @property
    def counts(self) -> Any:
        """What the gateway without the share has counted."""
        return self.both[OTHER].forwarding.counts


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


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends, "it does not come true"
        time.sleep(0.005)


def put_range(first: int, size_bytes: int) -> dict[str, str]:
    return {"x-ms-write": "update", "x-ms-range": f"bytes={first}-{first + size_bytes - 1}"}


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
    until(lambda: sent_bytes(lasting) > 0 and is_steady(lambda: sent_bytes(lasting)))
    assert sent_bytes(lasting) < size_bytes // 2, "what nobody reads is not sent"
    response = connection.getresponse()
    got = response.read()
    assert len(got) == size_bytes
    assert got[: 4 * MIB] == got[-4 * MIB :] == piece
    connection.close()


def sent_bytes(pair: Pair) -> int:
    """What the holder has sent to the other gateway."""
    listener: Any = pair.both[HOLDER].gateway_listener
    return sum(one._sender.flushed_bytes() for one in listener._connections)


def is_steady(count: Callable[[], int]) -> bool:
    before = count()
    time.sleep(0.2)
    return count() == before


class Gate:
    """Holds back the commits of a gateway. `requests` are those that the gateway has begun."""

    def __init__(self, pair: Pair, number: int) -> None:
        self._pair = pair
        self._gateway = pair.both[number]
        self._open = asyncio.Event()
        self.reached = threading.Event()

    def __enter__(self) -> Gate:
        self._gateway.store.before_commit = self._wait
        return self

    async def _wait(self) -> None:
        self.reached.set()
        await self._open.wait()

    def __exit__(self, *_: object) -> None:
        self._gateway.store.before_commit = None
        self._pair.call(self._lift())

    async def _lift(self) -> None:
        self._open.set()


def begun(pair: Pair, number: int) -> list[Request]:
    return [one for one in pair.seen[number].requests if one.method == "PUT"]


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


def test_a_holder_that_dies_before_its_answer_is_answered_503_and_not_asked_twice(
    pair: Pair,
) -> None:
    with Gate(pair, HOLDER) as gate:
        answer = pair.here.start("PUT", "/box/f?comp=range", put_range(0, 4), b"lost")
        assert gate.reached.wait(10)
        pair.call(kill(pair.both[HOLDER]))
        refused = expect(answer.result(10), 503, "ServerBusy")
        assert refused["Retry-After"] == "1"
        assert len([one for one in begun(pair, HOLDER) if one.is_forwarded]) == 1
    assert pair.counts.failures == 1


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
        expect(answer.result(10), 503, "ServerBusy")
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


async def kill(gateway: Gateway) -> None:
    gateway.kill()


def test_a_dead_holder_is_replaced_and_until_then_503_says_when_to_come_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder, "_PATIENCE_S", 0.1)
    pair.call(kill(pair.both[HOLDER]))
    assert expect(pair.here.get("/box/f"), 503, "ServerBusy")["Retry-After"] == "1"
    assert pair.counts.refused == 1
    pair.advance(11)
    expect(pair.here.get("/box/f"), 200)


def test_a_silent_holder_is_waited_for_until_it_counts_as_dead(pair: Pair) -> None:
    with Gate(pair, HOLDER) as gate:
        answer = pair.here.start("PUT", "/box/f?comp=range", put_range(0, 4), b"lost")
        assert gate.reached.wait(10)
        pair.both[HOLDER].store.gateways.is_beating = False
        pair.advance(11)
        expect(answer.result(10), 503, "ServerBusy")
    expect(pair.here.get("/box/f"), 200)


def generation(pair: Pair) -> int:
    (found,) = pair.both[HOLDER].services.held.of(ShareHolds)._shares
    return found


def test_a_share_that_has_moved_on_is_looked_for_again(pair: Pair) -> None:
    """The gateway that was asked has lost the share to a third one, which gives it back."""
    share, holder = generation(pair), pair.both[HOLDER]

    async def moved() -> Any:
        holder.services.held.of(ShareHolds).release(share)
        third = holder.store.second()
        hold = await third.gateways.hold(b"share/%d" % share)
        assert hold is not None
        return hold

    hold = pair.call(moved())
    stale = holder.store.gateways.run
    gateways: Any = pair.both[OTHER].store.gateways
    seen = gateways.holder
    gateways.holder = lambda name: stale
    answer = pair.here.start("PUT", "/box/f?comp=range", put_range(0, 4), b"late")
    until(lambda: holder.forwarding.counts.received > 0)
    gateways.holder = seen
    assert not answer.done()

    async def give_back() -> None:
        hold.release()

    pair.call(give_back())
    expect(answer.result(10), 201)
    assert pair.there.get("/box/f").body[:4] == b"late"
    assert holder.forwarding.counts.requests == 1, "no request goes two hops: this one was a read"


def test_a_share_that_nobody_uses_moves_to_the_next_request(pair: Pair) -> None:
    holds = pair.both[HOLDER].services.held.of(ShareHolds)
    share = generation(pair)

    async def idle() -> list[int]:
        assert holds.release_idle(0.0, lambda _: False) == []
        return holds.release_idle(IDLE_S, lambda _: False)

    assert pair.call(idle()) == [share]
    expect(pair.here.get("/box/f"), 200)
    assert pair.counts.requests == 0
    expect(pair.there.get("/box/f"), 200)
    assert pair.both[HOLDER].forwarding.counts.requests == 1


def test_a_gateway_that_closes_gives_its_shares_up_before_it_ends(pair: Pair) -> None:
    pair.call(pair.both[HOLDER].forwarding.close())
    expect(pair.here.get("/box/f"), 200)
    assert pair.counts.requests == 0


def test_a_mount_gets_a_share_that_the_other_gateway_serves_over_rest_alone(pair: Pair) -> None:
    """Requests over REST can be forwarded, and clients of SMB cannot."""
    services = pair.both[OTHER].services

    async def mount() -> ShareAccess:
        return await asyncio.ensure_future(connect_share(services, pair.here.account, "box"))

    stop = threading.Event()
    statuses: set[int] = set()

    def read() -> None:
        client = pair.at(HOLDER)
        while not stop.is_set():
            statuses.add(client.get("/box/f").status)
        client.close()

    reading = threading.Thread(target=read)
    reading.start()
    until(lambda: bool(statuses))
    access = pair.call(mount())
    until(lambda: pair.both[HOLDER].forwarding.counts.requests > 5)
    stop.set()
    reading.join()
    assert statuses == {200}, "nobody noticed"
    holder = pair.both[HOLDER].services
    with pytest.raises(StorageError) as refused:
        pair.call(connect_share(holder, pair.here.account, "box"))
    assert refused.value.row.code == "ServerBusy", "a mounted share stays"
    assert access.share == "box"


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
