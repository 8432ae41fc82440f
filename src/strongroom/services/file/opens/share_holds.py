"""The shares that this gateway serves; one gateway at a time keeps the table of opens of a share.

Lives here: the holds of shares, and the answer to a request for a share that another gateway
serves. Must not live here: when a gateway counts as dead (engines/membership.py).

A gateway takes a share with the first request in it, and keeps it until it stops or dies. Every
commit checks that its gateway is alive. So a gateway that was paused, and whose shares others have
taken over, commits nothing more. No decision here needs a guard of its own for that.

A gateway among others gives a share up that it has not used for a while. The next request then
decides anew which gateway has it. Nothing of this process may rely on the share then: no handle, no
lock, no request under way. A request counts by its task: whatever it commits, it commits before its
task ends. So a request that was slow between two steps cannot commit after another gateway's lock.

Requests over REST can be forwarded, and clients of SMB cannot. So a gateway to which such a client
comes asks the one that has the share to give it up. That one does so if it can do without it.

A gateway that takes a share over gives stamps above all those of the gateway before. So the rule of
snapshots holds too: a commit with a later stamp happened later.

On an engine that one process has to itself, the hold is always granted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakValueDictionary

from strongroom.engines.gateways import ExclusiveRight
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.services.core.runner import Services

RETRY_AFTER_S: Final = 1
"""The Retry-After of an error. Another gateway may serve the share, or this one may get it soon."""
IDLE_S: Final = 30.0
"""A share that was not used for so long is given up, if other gateways may serve it."""
YIELD_S: Final = 1.0
"""So long a gateway lets requests under way end, and so long it then leaves the share to the one
that has asked for it."""
_LOOK_EVERY_S: Final = 0.01
_BUSY: Final = "Another gateway serves this share at present. Retry your request, also elsewhere."


class _Held:
    """A share that this gateway has, or takes.

    Attributes:
        users: tasks, and connections of SMB trees, by their ids. Nobody has to sign off: what ends
            is gone from here.
        idle_since: of the event loop's clock; None = it was used after the last look.
    """

    __slots__ = ("idle_since", "right", "users")

    def __init__(self) -> None:
        self.right: ExclusiveRight | None = None
        self.users: WeakValueDictionary[int, object] = WeakValueDictionary()
        self.idle_since: float | None = None

    def use(self, user: object) -> None:
        self.users[id(user)] = user
        self.idle_since = None

    def idle_s(self, now_s: float) -> float:
        return 0.0 if self.idle_since is None else now_s - self.idle_since

    def is_used(self) -> bool:
        return any(
            not (isinstance(one, asyncio.Task) and one.done()) for one in self.users.values()
        )

    def is_mounted(self) -> bool:
        return any(not isinstance(one, asyncio.Task) for one in self.users.values())


def share_name(generation: int) -> bytes:
    """The name of the right to serve a share."""
    return b"share/%d" % generation


class ShareHolds:
    """By their generations.

    Attributes:
        ask: asks the gateway that has a share to give it up, and waits until it has. None = no
            other gateway can be asked.
    """

    def __init__(self) -> None:
        self._shares: dict[int, _Held] = {}
        self._taking: dict[int, asyncio.Task[bool]] = {}
        self._yielding: dict[int, float] = {}
        self._is_stopping = False
        self.ask: Callable[[int], Awaitable[None]] | None = None

    def has(self, generation: int) -> bool:
        """Whether this gateway has the share now, as far as it can know."""
        held = self._shares.get(generation)
        return held is not None and held.right is not None and held.right.is_held

    def check(self, generation: int) -> None:
        """Check that this gateway still has the share, before it grants something from memory
        alone. Raises: ServerBusy."""
        if not self.has(generation):
            raise served_elsewhere()

    async def take(self, services: Services, generation: int) -> bool:
        """Take a share, unless this gateway has it already. Returns whether it has it. Until the
        caller's task ends, the share is not given up. Raises: Unavailable when this gateway is late
        or dead."""
        held = self._shares.get(generation)
        if held is not None and held.right is not None and services.store.gateways.is_alone:
            return held.right.is_held  # nobody else wants it, so its users do not count
        task = asyncio.current_task()
        if self._is_yielded(generation) and (held is None or id(task) not in held.users):
            return False
        if held is None:
            held = self._shares[generation] = _Held()
        if task is not None:
            held.use(task)
        if held.right is not None:
            return held.right.is_held
        taking = self._taking.get(generation)
        if taking is None:
            taking = asyncio.ensure_future(self._take(services, generation))
            self._taking[generation] = taking
            taking.add_done_callback(lambda done: self._taken(generation, done))
        # Concurrent callers share one attempt. It continues if the first caller is cancelled.
        try:
            return await asyncio.shield(taking)
        finally:
            # The traceback of an error has this frame, and the task has the error: a cycle.
            del taking

    def keep_for(self, generation: int, user: object) -> None:
        """Do not give a share up as long as an object exists."""
        held = self._shares.get(generation)
        if held is not None:
            held.use(user)

    def release(self, generation: int) -> None:
        """It was deleted for good."""
        held = self._shares.pop(generation, None)
        if held is not None and held.right is not None:
            held.right.release()

    def release_idle(self, now_s: float, has_opens: Callable[[int], bool]) -> list[int]:
        """Give up the shares that nobody has used for IDLE_S, and return them. It must be called
        more often than that.

        Arguments:
            now_s: of a monotonic clock.
            has_opens: whether a share has handles, or operations in the table of opens.
        """
        unused = self._unused(has_opens)
        for generation, held in self._shares.items():
            if generation not in unused:
                held.idle_since = None
            elif held.idle_since is None:
                held.idle_since = now_s
        idle = [
            generation for generation in unused if self._shares[generation].idle_s(now_s) >= IDLE_S
        ]
        for generation in idle:
            self.release(generation)
        return idle

    async def give_up(self, generation: int, has_opens: Callable[[int], bool]) -> bool:
        """Give a share up to a gateway that asks for it, unless it is needed here. Requests under
        way end before, and new ones wait. Return whether this gateway has it no more.

        Arguments:
            has_opens: as for release_idle.
        """
        loop = asyncio.get_running_loop()
        ends = loop.time() + YIELD_S
        self._yielding[generation] = ends
        while (held := self._shares.get(generation)) is not None:
            if held.is_mounted() or loop.time() > ends:
                self._yielding.pop(generation, None)
                return False
            if generation in self._unused(has_opens):
                self.release(generation)
                break
            await asyncio.sleep(_LOOK_EVERY_S)
        self._yielding[generation] = loop.time() + YIELD_S
        return True

    def _is_yielded(self, generation: int) -> bool:
        """Whether it is being given up to another gateway, or was just now."""
        if self._is_stopping:
            return True
        until = self._yielding.get(generation)
        if until is None:
            return False
        if asyncio.get_running_loop().time() <= until:
            return True
        del self._yielding[generation]
        return False

    def release_unused(self, has_opens: Callable[[int], bool]) -> None:
        """Give up the shares that nobody uses now, and take no more: this server stops.
        `has_opens`: as for release_idle."""
        self._is_stopping = True
        for generation in self._unused(has_opens):
            self.release(generation)

    def _unused(self, has_opens: Callable[[int], bool]) -> list[int]:
        return [
            generation
            for generation, held in self._shares.items()
            if not (generation in self._taking or held.is_used() or has_opens(generation))
        ]

    async def _take(self, services: Services, generation: int) -> bool:
        right = await services.store.gateways.hold(share_name(generation))
        if right is None:
            return False
        self._shares.setdefault(generation, _Held()).right = right
        return True

    def _taken(self, generation: int, done: asyncio.Task[bool]) -> None:
        del self._taking[generation]
        held = self._shares.get(generation)
        if held is not None and held.right is None:
            del self._shares[generation]
        if not done.cancelled():
            done.exception()  # The callers may have been cancelled.


def served_elsewhere() -> StorageError:
    """503 ServerBusy, with Retry-After."""
    headers = (("Retry-After", str(RETRY_AFTER_S)),)
    return StorageError(errors.SERVER_BUSY, _BUSY, headers=headers)


async def demand_share(services: Services, generation: int) -> None:
    """As require_share, for a client that cannot go to another gateway."""
    holds = services.held.of(ShareHolds)
    if holds.ask is not None and not await holds.take(services, generation):
        await holds.ask(generation)
    await require_share(services, generation)


async def require_share(services: Services, generation: int) -> None:
    """Take the share, so that its files may be read and changed here. ServerBusy when another
    gateway has it."""
    if not await services.held.of(ShareHolds).take(services, generation):
        raise served_elsewhere()
