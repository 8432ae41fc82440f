"""Services whose consecutive calls go to two gateways of one store in turn.

A test of the services that was written for one gateway holds over two: each gateway continues from
the results of the other. Lives here: the services and the sweeper of such a test. Which tests run
so is decided in conftest.py. Must not live here: gateways that pause or die (gateway_histories.py).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

from strongroom.auth.request import Service
from strongroom.clock import Clock
from strongroom.services.core.copies.sources import (
    CopyHold,
    CopySources,
    Locate,
    OpenLocal,
    RemoteReader,
)
from strongroom.services.core.runner import Services
from strongroom.services.sweeper import Sweeper
from tests.services.service_engine import ServiceEngine

_turns = itertools.count()
# Per task: a call in progress stays at its gateway, whatever other tasks do.
_turn: ContextVar[int] = ContextVar("turn", default=0)


def next_call() -> None:
    """Send the next call of this task to the other gateway."""
    _turn.set(next(_turns))


class Alternating(Services):
    """Two gateways that look like one set of services.

    Arguments:
        store: the first gateway; the second one is made from it.
        clock: as for Services; both share it.
    """

    def __init__(self, store: ServiceEngine, clock: Clock) -> None:
        first = Services(store, clock)
        second = Services(store.second(), clock)
        first_sources = first.held.of(CopySources)
        second.held._objects[CopySources] = _SameSources(first_sources)
        self.both: Final = (first, second)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the present gateway; `both` is this object's own."""
        if name == "both":
            raise AttributeError(name)
        return getattr(self.both[_turn.get() % 2], name)


class _OfTheOther:
    """An attribute that is read and set on another object."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, found: Any, owner: type) -> Any:
        return getattr(found.other, self._name)

    def __set__(self, found: Any, value: object) -> None:
        setattr(found.other, self._name, value)


class _SameSources(CopySources):
    """The copy sources of the second gateway: composed like the first's, with its own open
    sources."""

    locate: Locate | None = _OfTheOther()  # type: ignore[assignment]  # a double
    remote: RemoteReader | None = _OfTheOther()  # type: ignore[assignment]  # a double
    hold: CopyHold | None = _OfTheOther()  # type: ignore[assignment]  # a double
    openers: Mapping[Service, OpenLocal] = _OfTheOther()  # type: ignore[assignment]  # a double

    def __init__(self, other: CopySources) -> None:
        self.other = other
        self._open = {}
        self._pending = {}


class SweeperOfBoth:
    """The sweepers of both gateways as one; each does the jobs that its gateway owns."""

    def __init__(self, services: Alternating, pause_s: float) -> None:
        self._store: Any = services.both[0].store
        self._sweepers = [Sweeper(on, pause_s) for on in services.both]

    async def run(self) -> None:
        """See Sweeper.run."""
        await asyncio.gather(*(one.run() for one in self._sweepers))

    async def run_once(self) -> int:
        """See Sweeper.run_once. A job that waits for readers of the other gateway is done in the
        second pass, after that gateway's heartbeats have reported no readers."""
        finished = idle = 0
        while idle < 2:
            await self._store.beat_all()
            shares = await asyncio.gather(*(one.run_once() for one in self._sweepers))
            finished += sum(shares)
            idle = 0 if any(shares) else idle + 1
        return finished


def sweeper_of(services: Services, pause_s: float = 0.0) -> Sweeper | SweeperOfBoth:
    """Return the sweeper for such a test, in place of Sweeper."""
    if isinstance(services, Alternating):
        return SweeperOfBoth(services, pause_s)
    return Sweeper(services, pause_s)
