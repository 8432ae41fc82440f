"""What is kept for an open file goes with its last open: random sequences of several clients."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import astuple, replace
from typing import Any

import pytest

from strongroom.engines.base import Partition
from strongroom.errors.core import StorageError
from strongroom.semantics.file.accesses import Disposition, Use
from strongroom.semantics.file.oplocks import SMB_BREAK_LIMIT_S, CachingKey
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import closing, information, locking, renaming
from strongroom.services.file.handles.model import (
    Handle,
    RequestedDurability,
    RequestedLock,
    RequestedRename,
)
from strongroom.services.file.opens.caches import OpenCounts
from strongroom.services.file.opens.open_node import EMPTY_TABLE
from strongroom.services.file.opens.opens import Opens
from tests.effort import scaled
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import ALL, Mount, R, WaitingRequest, mounted
from tests.services.handles.test_handle_breaks import held, pass_time, waits
from tests.services.service_engine import settle

NAMES = ("f", "g")
Breaks = dict[tuple[Partition, CachingKey], float]
"""The breaks that wait for their holders' answers, and when their time is over."""


class Clients:
    """Clients that do what the seed says, each with requests that may wait.

    Attributes:
        breaks: as a model of the timers, from what the tables say after each step.
        now: seconds that have passed.
    """

    def __init__(self, on: Services, seed: int) -> None:
        self.on = on
        self.opens = on.held.of(Opens)
        self.chance = random.Random(seed)
        self.mounts: dict[str, Mount] = {}
        self.breaks: Breaks = {}
        self.now = 0.0
        self.timed_out = 0
        self._requests: list[tuple[WaitingRequest, asyncio.Task[None]]] = []

    async def connect(self) -> None:
        for name in ("ann", "bob", "carl"):
            self.mounts[name] = await mounted(self.on, name, answers=name == "carl")

    def pick(self) -> Handle | None:
        handles = [one for one in self.opens.handles.values() if one.owner is not None]
        return self.chance.choice(handles) if handles else None

    def request(self, work: Callable[[WaitingRequest], Awaitable[object]]) -> None:
        """Begin what may wait, until it is answered or the client gives up."""
        request = WaitingRequest()
        task = asyncio.ensure_future(_refusable(work(request)))
        self._requests.append((request, task))

    @property
    def waiting(self) -> list[WaitingRequest]:
        self._requests = [one for one in self._requests if not one[1].done()]
        return [one for one, _ in self._requests if not one.cancelled.done()]

    async def step(self) -> None:
        choices = (
            self.open, self.open, self.open, self.close, self.answer, self.give_up, self.lock,
            self.change, self.rest, self.lose, self.pass_time,
        )  # fmt: skip
        await self.chance.choice(choices)()
        await settle()

    async def open(self) -> None:
        name, path = self.chance.choice(list(self.mounts)), self.chance.choice(NAMES)
        more: dict[str, Any] = {"wanted": self.chance.choice(("-", "R", "RH", "RWH"))}
        if self.chance.randrange(2):
            more["lease"] = name + path
        if self.chance.randrange(3) == 0:
            more["durable"] = RequestedDurability()
        more["deletes_on_close"] = self.chance.randrange(6) == 0
        share = self.chance.choice((ALL, ALL, R, Use.NONE))
        disposition = self.chance.choice((Disposition.OPEN_IF, Disposition.OVERWRITE_IF))
        mount = self.mounts[name]
        self.request(
            lambda request: mount.open(
                path, share=share, disposition=disposition, request=request, **more
            )
        )

    async def close(self) -> None:
        handle = self.pick()
        if handle is not None:
            self.request(lambda _: closing.close(self.on, handle))

    async def answer(self) -> None:
        mount = self.mounts[self.chance.choice(("ann", "bob"))]
        if mount.notices:
            with suppress(StorageError):
                mount.answer(*mount.notices.pop(0))

    async def give_up(self) -> None:
        if self.waiting:
            self.chance.choice(self.waiting).cancelled.set_result(None)

    async def lock(self) -> None:
        handle, offset = self.pick(), self.chance.randrange(3)
        if handle is None:
            return
        if self.chance.randrange(2):
            self.request(lambda _: locking.unlock(self.on, handle, [(offset, 2)]))
            return
        wanted = [RequestedLock(offset, 2, is_exclusive=True)]
        self.request(
            lambda request: locking.lock(self.on, handle, wanted, request, fails_immediately=False)
        )

    async def change(self) -> None:
        handle, to = self.pick(), self.chance.choice(NAMES)
        if handle is None:
            return
        works: tuple[Callable[[WaitingRequest], Awaitable[object]], ...] = (
            lambda request: renaming.rename(
                self.on, handle, RequestedRename((to,), replaces=True), request
            ),
            lambda request: renaming.set_disposition(
                self.on, handle, delete=self.chance.randrange(2) > 0, request=request
            ),
            lambda request: information.set_allocation(self.on, handle, 4096, request),
        )
        self.request(self.chance.choice(works))

    async def rest(self) -> None:
        path = self.chance.choice(NAMES)
        works: tuple[Callable[[WaitingRequest], Awaitable[object]], ...] = (
            lambda _: file_calls.write(self.on, path, b"text"),
            lambda _: file_calls.put(self.on, path, 0, b"t"),
            lambda _: file_calls.delete(self.on, path),
        )
        self.request(self.chance.choice(works))

    async def lose(self) -> None:
        """Lose a connection, with all handles that are not durable."""
        name = self.chance.choice(list(self.mounts))
        lost = self.mounts[name]
        self.request(lambda _: lost.leave())
        await settle()
        self.mounts[name] = await mounted(self.on, name, answers=lost.answers)

    async def pass_time(self) -> None:
        seconds = self.chance.choice((10.0, 20.0))
        self.now += seconds
        self.timed_out += sum(over <= self.now for over in self.breaks.values())
        self.on.store.advance(seconds)

    def check(self) -> None:
        opens = self.opens
        handles = list(opens.handles.values())
        assert set(opens._nodes) == {one.partition for one in handles}
        assert all(one.table != EMPTY_TABLE for one in opens._nodes.values())
        keys = {(one.key, one.partition) for one in handles}
        # A file that is to be deleted gives its lease to another one.
        assert opens.leases.items() <= keys
        now_breaking = {
            (file, holder.key)
            for file, node in opens._nodes.items()
            for holder in node.table.holders
            if holder.is_breaking
        }
        timers = {(file, key) for file, node in opens._nodes.items() for key in node.timers._timers}
        assert timers == now_breaking
        for node in opens._nodes.values():
            assert set(node._lock_waits) == {one.id for one in node.table.locks.waiting}
        assert live_timers() == len(timers)
        assert opens.counts.timed_out == self.timed_out

    def model_breaks(self) -> None:
        """Note when each break that has begun in this step is over, and forget those that ended."""
        self.breaks = {
            (file, key): self.breaks.get((file, key), self.now + SMB_BREAK_LIMIT_S)
            for file, node in self.opens._nodes.items()
            for key in node.timers._timers
        }

    async def end(self) -> None:
        """Give up all that waits, and close all handles."""
        for request in self.waiting:
            request.cancelled.set_result(None)
        # Operations over REST wait until their time is over.
        self.on.store.advance(60)
        await settle()
        await closing.close_all(self.on, list(self.opens.handles.values()))
        await self.opens.tasks.wait()
        await settle()


async def _refusable(work: Awaitable[object]) -> None:
    with suppress(StorageError):
        await work


def live_timers() -> int:
    """Return how many timers of breaks run in this loop."""
    return sum("_end_break" in repr(one.get_coro()) for one in asyncio.all_tasks())


async def sequence(seed: int) -> OpenCounts:
    """Run one sequence. Return how its breaks have ended."""
    clients = Clients(await file_calls.services(), seed)
    await clients.connect()
    for _ in range(100):
        await clients.step()
        clients.check()
        clients.model_breaks()
    counts = replace(clients.opens.counts)
    await clients.end()
    assert do.nothing_is_left(clients.on) and live_timers() == 0
    assert clients.opens.counts.locks == 0
    assert file_calls.problems(clients.on) == []
    return counts


@pytest.mark.parametrize("seed", range(scaled(200)))
def test_nothing_is_kept_for_a_file_that_is_not_open(seed: int) -> None:
    given.run(lambda: sequence(seed))


def test_breaks_of_the_sequences_end_in_every_way() -> None:
    async def scenario() -> None:
        ended = [await sequence(seed) for seed in range(10)]
        assert all(sum(one) for one in zip(*map(astuple, ended), strict=True))
        left = [one.asked - one.acknowledged - one.timed_out for one in ended]
        assert any(left), "a holder closes its handle instead"

    given.run(scenario)


def test_the_timer_of_a_closed_file_does_not_end_a_later_break() -> None:
    """The later break is of the same lease and file."""

    async def scenario() -> None:
        on = await file_calls.services()
        counts = on.held.of(Opens).counts
        ann, first = await held(on, "RWH")
        bob = await mounted(on, "bob")
        request = WaitingRequest()
        opening = await waits(bob.open("f", request=request), request.has_waited)
        await pass_time(on, 20)
        await ann.close(first.handle)
        await bob.close((await opening).handle)
        assert on.held.of(Opens)._nodes == {}
        _, again = await held(on, "RWH")
        assert again.handle.key == first.handle.key
        request = WaitingRequest()
        opening = await waits(bob.open("f", request=request), request.has_waited)
        await pass_time(on, 20)
        assert not opening.done() and counts.timed_out == 0
        await pass_time(on, 16)
        await opening
        assert counts.timed_out == 1

    given.run(scenario)


def test_after_a_disconnected_handle_was_closed_others_wait_for_the_next_change() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, carl = await mounted(on, "ann"), await mounted(on, "carl", answers=False)
        lost = await ann.create("f", lease="a", wanted="RH", durable=RequestedDurability())
        await carl.handle("f", lease="c", wanted="RH")
        await ann.leave()
        bob, request = await mounted(on, "bob"), WaitingRequest()
        opening = await waits(bob.open("f", share=R, request=request), request.has_waited)
        await settle()
        assert lost.is_closed and not opening.done()
        assert not on.held.of(Opens).node(lost.partition).change().done()
        carl.answer(*carl.notices[0])
        request.cancelled.set_result(None)
        await _refusable(opening)

    given.run(scenario)
