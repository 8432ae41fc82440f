"""Two gateways, of which one has a share, and what happens to them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from strongroom.servers.http.settings import Exchange
from strongroom.services.file.opens.share_holds import ShareHolds
from strongroom.wire.core.http import Request
from tests.conformance.answer import expect
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


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends, "it does not come true"
        time.sleep(0.005)


def put_range(first: int, size_bytes: int) -> dict[str, str]:
    return {"x-ms-write": "update", "x-ms-range": f"bytes={first}-{first + size_bytes - 1}"}


def sent_bytes(pair: Pair) -> int:
    """What the holder has sent to the other gateway."""
    listener: Any = pair.both[HOLDER].gateway_listener
    return sum(one._sender.flushed_bytes() for one in listener._connections)


def is_held_back(pair: Pair) -> bool:
    """Whether the connection to the other gateway takes nothing more from the holder, though the
    servers' loop goes round."""

    async def takes_nothing() -> bool:
        listener: Any = pair.both[HOLDER].gateway_listener
        before = sent_bytes(pair)
        for _ in range(100):
            if not any(one._sender.congested for one in listener._connections):
                return False
            await asyncio.sleep(0.001)
        return sent_bytes(pair) == before

    return pair.call(takes_nothing())


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


async def kill(gateway: Gateway) -> None:
    gateway.kill()


def generation(pair: Pair) -> int:
    (found,) = pair.both[HOLDER].services.held.of(ShareHolds)._shares
    return found
