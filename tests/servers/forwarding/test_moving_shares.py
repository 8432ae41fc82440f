"""A share that moves from one gateway to another while requests come for it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from strongroom.errors.core import StorageError
from strongroom.services.file.handles.opening import connect_share
from strongroom.services.file.opens.open_handle import ShareAccess
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.opens.share_holds import ShareHolds
from strongroom.services.file.opens.share_leaving import IDLE_S, ShareLeaving
from tests.conformance.answer import expect
from tests.servers.forwarding.pair import (
    HOLDER,
    OTHER,
    Gate,
    Pair,
    generation,
    put_range,
    until,
)


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.stop()


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
    held = pair.both[HOLDER].services.held
    leaving = ShareLeaving(held.of(ShareHolds), held.of(Opens))
    share = generation(pair)

    async def idle() -> list[int]:
        assert leaving.release_idle(0.0) == []
        return leaving.release_idle(IDLE_S)

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


def test_a_mount_that_cannot_get_the_share_asks_the_store_a_few_times_only(pair: Pair) -> None:
    """Each question goes the way of the heartbeats."""
    access = pair.call(connect_share(pair.both[HOLDER].services, pair.here.account, "box"))
    services = pair.both[OTHER].services
    gateways: Any = services.store.gateways
    hold, asked = gateways.hold, []

    async def counted(name: bytes) -> Any:
        asked.append(name)
        return await hold(name)

    gateways.hold = counted
    with pytest.raises(StorageError) as refused:
        pair.call(connect_share(services, pair.here.account, "box"))
    assert refused.value.row.code == "ServerBusy"
    assert len(asked) <= 2, "before the other gateway was asked, and after its no"
    assert access.share == "box"


COMMITS = {
    "of bytes": ("PUT", "/box/f?comp=range&timeout=1", put_range(0, 4), b"late"),
    "of a name": ("PUT", "/box/d?restype=directory&timeout=1", {}, b""),
    "of a snapshot": ("PUT", "/box?restype=share&comp=snapshot&timeout=1", {}, b""),
}


@pytest.mark.parametrize("commit", COMMITS)
def test_a_share_is_not_given_up_before_a_commit_whose_request_took_too_long(
    pair: Pair, commit: str
) -> None:
    """The commit is under way. It must not come after what the next gateway does."""
    method, target, headers, body = COMMITS[commit]
    services = pair.both[HOLDER].services
    leaving = ShareLeaving(services.held.of(ShareHolds), services.held.of(Opens))
    with Gate(pair, HOLDER) as gate:
        answer = pair.there.start(method, target, headers, body)
        assert gate.reached.wait(10)
        concurrent.futures.wait([answer], timeout=1.5)
        assert not pair.call(leaving.give_up(generation(pair)))
    expect(answer.result(10), 500, "OperationTimedOut")
