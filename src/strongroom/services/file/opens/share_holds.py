"""The shares that this gateway serves; one gateway at a time keeps the table of opens of a share.

Lives here: the holds of shares, and the answer to a request for a share that another gateway
serves. Must not live here: when a share is given up (share_leaving.py), when a gateway counts as
dead (engines/membership.py).

A gateway takes a share with the first request in it, and keeps it until it stops or dies. Every
commit checks that its gateway is alive. So a gateway that was paused, and whose shares others have
taken over, commits nothing more. No decision here needs a guard of its own for that.

A gateway among others may give a share up (share_leaving.py). A request that uses it counts by its
task: whatever it commits, it commits before its task ends. So a request that was slow between two
steps cannot commit after another gateway's lock.

A gateway that takes a share over gives stamps above all those of the gateway before. So the rule of
snapshots holds too: a commit with a later stamp happened later.

On an engine that one process has to itself, the hold is always granted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container
from typing import Final
from weakref import WeakSet, WeakValueDictionary

from strongroom.engines.gateways import ExclusiveRight
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.services.core.runner import Services

RETRY_AFTER_S: Final = 1
"""The Retry-After of an error. Another gateway may serve the share, or this one may get it soon."""
YIELD_S: Final = 1.0
"""So long a gateway waits for requests under way, and so long for those that came meanwhile. It
then leaves the share to the one that has asked, for as long."""
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
        self._withheld: dict[int, float] = {}
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
        if self._is_withheld(generation) and (held is None or id(task) not in held.users):
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

    # For share_leaving.py.

    def generations(self) -> list[int]:
        return list(self._shares)

    def may_be_held(self, generation: int) -> bool:
        """Whether this gateway has the share, or takes it."""
        return generation in self._shares

    def is_mounted(self, generation: int) -> bool:
        held = self._shares.get(generation)
        return held is not None and held.is_mounted()

    def is_free(self, generation: int) -> bool:
        """Whether no request and no connection uses the share."""
        held = self._shares.get(generation)
        return held is None or not (generation in self._taking or held.is_used())

    def requests(self, generation: int) -> WeakSet[asyncio.Task[object]]:
        """Return the tasks that use the share now."""
        held = self._shares.get(generation)
        users = () if held is None else held.users.values()
        return WeakSet(one for one in users if isinstance(one, asyncio.Task))

    def note_unused(self, unused: Container[int], now_s: float, idle_s: float) -> list[int]:
        """Note which shares nobody uses now. Return those that nobody has used for `idle_s`."""
        for generation, held in self._shares.items():
            if generation not in unused:
                held.idle_since = None
            elif held.idle_since is None:
                held.idle_since = now_s
        return [one for one, held in self._shares.items() if held.idle_s(now_s) >= idle_s]

    def withhold(self, generation: int, until_s: float) -> None:
        """Let new requests not have a share until a time of the event loop."""
        self._withheld[generation] = until_s

    def end_withheld(self, now_s: float) -> None:
        """Forget what is withheld no more."""
        self._withheld = {one: until for one, until in self._withheld.items() if until > now_s}

    def stop(self) -> None:
        """Take no share any more."""
        self._is_stopping = True

    def _is_withheld(self, generation: int) -> bool:
        """Whether it is being given up to another gateway, or was just now."""
        if self._is_stopping:
            return True
        until = self._withheld.get(generation)
        return until is not None and asyncio.get_running_loop().time() <= until

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
