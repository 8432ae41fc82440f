"""The waiters for each record: one registry for the engine of one process.

Lives here: how waiters are registered, woken and timed out, and the part of `Engine` that answers
for it. A waiter costs memory only.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from strongroom.engines.base import Record, Ref
from strongroom.engines.bounds import check_reads
from strongroom.slices import SliceTurns


class Watchers:
    """The waiters by record; used on one event loop only.

    Attributes:
        wakes: how often all waiters were woken at once. A caller compares it before and after it
            reads a record. A difference means that it missed such a wake.
    """

    def __init__(self) -> None:
        self._by_ref: dict[Ref, set[asyncio.Future[None]]] = {}
        self._stopped = False
        self.wakes = 0

    def __len__(self) -> int:
        return sum(len(waiting) for waiting in self._by_ref.values())

    def register(self, ref: Ref) -> asyncio.Future[None]:
        """Return a future that the next change of `ref` completes; pass it to `sleep`, or to
        `forget`.

        Register before you read the record: then no change in between is missed.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._by_ref.setdefault(ref, set()).add(future)
        return future

    def forget(self, ref: Ref, future: asyncio.Future[None]) -> None:
        """Cancel a registration. Idempotent."""
        future.cancel()
        waiting = self._by_ref.get(ref)
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                del self._by_ref[ref]

    async def sleep(self, ref: Ref, future: asyncio.Future[None], timeout_s: float) -> None:
        """Return when `future` is completed or after `timeout_s`, whichever is first."""
        try:
            if self._stopped:
                await asyncio.sleep(0)  # a caller that waits again and again must not block others
            elif not future.done():
                await asyncio.wait((future,), timeout=max(0.0, timeout_s))
        finally:
            self.forget(ref, future)

    def notify(self, refs: Iterable[Ref]) -> None:
        """Wake the waiters for `refs`: a change of these records is durable."""
        if not self._by_ref:
            return
        for ref in refs:
            for future in self._by_ref.pop(ref, ()):
                if not future.done():
                    future.set_result(None)

    def wake_all(self) -> None:
        """Wake all waiters: the clock was moved, or the engine stops."""
        self.wakes += 1
        self.notify(list(self._by_ref))

    def stop(self) -> None:
        """Wake all waiters; from now on `sleep` returns at once. Idempotent."""
        self._stopped = True
        self.wake_all()


class WaitingEngine(ABC):
    """The waiting part of `Engine`, common to every engine that reads without suspending.

    Attributes:
        watchers: the registered waiters.
        turns: see Engine.turns.
        allows_reset: see Engine.allows_reset.
    """

    allows_reset = False

    def __init__(self, watchers: Watchers, turns: SliceTurns) -> None:
        self.watchers = watchers
        self.turns = turns

    @abstractmethod
    async def read(self, reads: Sequence[Ref]) -> list[Record | None]: ...

    @property
    def wakes(self) -> int:
        return self.watchers.wakes

    async def wait(self, ref: Ref, version: int | None, timeout_s: float) -> None:
        check_reads((ref,))
        future = self.watchers.register(ref)
        try:
            (record,) = await self.read((ref,))
        except BaseException:
            self.watchers.forget(ref, future)
            raise
        if (record.version if record else None) != version:
            self.watchers.forget(ref, future)
            return
        await self.watchers.sleep(ref, future, timeout_s)

    def watching(self) -> int:
        return len(self.watchers)

    def stop_waiting(self) -> None:
        self.watchers.stop()
