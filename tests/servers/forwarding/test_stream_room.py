"""Clients that send slowly leave room for other requests to the same gateway."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator

import pytest

from strongroom.servers.forwarding import forwarder, peers, stream_room
from tests.conformance.answer import expect
from tests.conformance.client import HOST, Sending
from tests.conformance.sas import account_sas
from tests.servers.forwarding.pair import HOLDER, OTHER, Pair, begun, put_range, until

Limited = Callable[[int, int, int], Pair]


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[Limited]:
    """Makes a pair with limits for all streams, for those of a client, and for uploads."""
    made: list[Pair] = []

    def make(streams: int, of_client: int, uploads: int) -> Pair:
        monkeypatch.setattr(stream_room, "STREAMS_MAX", streams)
        monkeypatch.setattr(stream_room, "CLIENT_STREAMS_MAX", of_client)
        monkeypatch.setattr(stream_room, "UPLOADS_MAX", uploads)
        monkeypatch.setattr(peers, "_ROOM_S", 0.2)
        monkeypatch.setattr(forwarder, "_PATIENCE_S", 0.1)
        made.append(Pair())
        return made[0]

    yield make
    for pair in made:
        pair.stop()


def slow_uploads(pair: Pair, count: int) -> list[Sending]:
    """Begin uploads at the gateway without the share."""
    sending = []
    for _ in range(count):
        sending.append(pair.here.begin("PUT", "/box/f?comp=range", put_range(0, 4), 4))
        sending[-1].send(b"sl")
    until(lambda: len(forwarded(pair)) == count)
    return sending


def forwarded(pair: Pair) -> list[object]:
    return [one for one in begun(pair, HOLDER) if one.is_forwarded]


def test_slow_uploads_leave_room_for_what_has_no_body_to_come(limited: Limited) -> None:
    pair = limited(4, 4, 2)
    slow = slow_uploads(pair, 2)
    refused = pair.here.begin("PUT", "/box/f?comp=range", put_range(0, 4), 4)
    expect(refused.finish(), 503, "ServerBusy")
    for _ in range(3):
        expect(pair.here.get("/box/f"), 200)
    for one in slow:
        expect(one.finish(b"ow"), 201)
    sent = put_range(0, 4)
    expect(pair.here.begin("PUT", "/box/f?comp=range", sent, 4).finish(b"more"), 201)


def status_from(address: str, pair: Pair) -> int:
    """The answer to a client that has this address."""
    token = account_sas(pair.credential, ss="f", srt="o")
    port = pair.both[OTHER].ports["file"]
    client = http.client.HTTPConnection(HOST, port, source_address=(address, 0))
    client.request("GET", f"{pair.here.prefix}/box/f?{token}")
    status = client.getresponse().status
    client.close()
    return status


def test_slow_requests_of_one_client_leave_room_for_other_clients(limited: Limited) -> None:
    pair = limited(3, 2, 3)
    slow = slow_uploads(pair, 2)
    assert status_from(HOST, pair) == 503
    assert status_from("127.0.0.2", pair) == 200
    for one in slow:
        expect(one.finish(b"ow"), 201)
    assert status_from(HOST, pair) == 200
