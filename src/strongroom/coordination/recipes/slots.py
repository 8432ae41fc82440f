"""What is held as a slot: the part that semaphores and read-write locks have in common.

Lives here: `SlotFace` for threads and `AioSlotFace` for asyncio. One object may be used by many
threads or tasks at once: each block gives back what it took itself. Must not live here: rules.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from types import TracebackType

from strongroom.coordination.context import Context
from strongroom.coordination.drivers_async import AsyncDriver
from strongroom.coordination.drivers_sync import SyncDriver
from strongroom.coordination.errors import CoordTimeout
from strongroom.coordination.handles import Hold, apart
from strongroom.coordination.names import key_of
from strongroom.coordination.recipes.lock import (
    AioHeld,
    Cancel,
    Held,
    LockOptions,
    OnLost,
    abort_process,
)
from strongroom.coordination.recipes.lock_core import Refusal
from strongroom.coordination.recipes.slot_records import check_slot_ttl
from strongroom.coordination.recipes.slots_core import Rule, SlotAcquisition, SlotWanted

_ABORT_EARLY_S = 0.1


def wanted_slot(
    context: Context,
    kind: str,
    name: str,
    options: LockOptions,
    rule: Rule,
    role: str = "hold",
    intent: str = "",
    limit: int = 0,
    reentrant: bool = False,
) -> SlotWanted:
    """Return what these options ask for; see `SlotWanted`.

    Raises:
        Unsupported: no slot can live so long or so short.
        BadName: see names.py.
    """
    check_slot_ttl(context, options.ttl_s)
    abort = options.on_lost == "abort"
    return SlotWanted(
        kind=kind,
        key=key_of(kind, name),
        name=name,
        role=role,
        rule=rule,
        ttl_s=options.ttl_s,
        wait_s=options.wait_s,
        intent=intent,
        limit=limit,
        early_s=min(_ABORT_EARLY_S, options.ttl_s / 20) if abort else 0.0,
        reentrant=reentrant,
    )


class SlotFace:
    """Something to be held by name, for threads.

    Arguments:
        driver: of the client.
        wanted: what `acquire` asks for.
        options: TTL, waiting time, what happens at a loss; see `LockOptions`.
    """

    def __init__(self, driver: SyncDriver, wanted: SlotWanted, options: LockOptions) -> None:
        self._driver, self._wanted, self.options = driver, wanted, options
        self.name = wanted.name
        self._blocks: dict[int, list[Held]] = {}

    def acquire(self) -> Held:
        """Return it held.

        Raises:
            CoordTimeout: not to be had within `wait`.
            AlreadyHeld: this very client has what stands in the way.
            Unsupported: the store's record was made for other terms.
            StoreUnavailable, StoreRefused: the store.
        """
        outcome = self._acquire(self._wanted)
        if isinstance(outcome, Refusal):
            raise CoordTimeout(self.name, outcome.waited_s, outcome.holder)
        return outcome

    def try_acquire(self) -> Held | None:
        """Return it held, or None if it is not free right now; raises like `acquire`."""
        outcome = self._acquire(replace(self._wanted, wait_s=0.0))
        return None if isinstance(outcome, Refusal) else outcome

    def _acquire(self, wanted: SlotWanted) -> Held | Refusal:
        driver = self._driver
        outcome = driver.run(SlotAcquisition(driver.context, wanted).steps())
        if isinstance(outcome, Refusal):
            return outcome
        arm(outcome, self.options.on_lost)
        driver.adopt(outcome)
        if self.options.alert:
            driver.spawn(outcome.keeper.alert(outcome), "coordination-alert")
        return Held(driver, outcome, self.options.strict)

    def __enter__(self) -> Held:
        held = self.acquire()
        self._blocks.setdefault(threading.get_ident(), []).append(held)
        return held

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        thread = threading.get_ident()
        held = self._blocks[thread].pop()
        if not self._blocks[thread]:
            del self._blocks[thread]
        held.__exit__(kind, error, trace)


class AioSlotFace:
    """Something to be held by name, for asyncio; see `SlotFace` and `AioHeld`."""

    def __init__(
        self,
        driver: AsyncDriver,
        wanted: SlotWanted,
        options: LockOptions,
        cancel: Cancel = "deadline",
    ) -> None:
        self._driver, self._wanted, self.options = driver, wanted, options
        self.name, self._cancel = wanted.name, cancel
        self._blocks: dict[int, list[AioHeld]] = {}

    async def acquire(self) -> AioHeld:
        """See `SlotFace.acquire`."""
        outcome = await self._acquire(self._wanted)
        if isinstance(outcome, Refusal):
            raise CoordTimeout(self.name, outcome.waited_s, outcome.holder)
        return outcome

    async def try_acquire(self) -> AioHeld | None:
        """See `SlotFace.try_acquire`."""
        outcome = await self._acquire(replace(self._wanted, wait_s=0.0))
        return None if isinstance(outcome, Refusal) else outcome

    async def _acquire(self, wanted: SlotWanted) -> AioHeld | Refusal:
        driver = self._driver
        outcome = await driver.run(SlotAcquisition(driver.context, wanted).steps())
        if isinstance(outcome, Refusal):
            return outcome
        arm(outcome, self.options.on_lost)
        driver.adopt(outcome)
        if self.options.alert:
            driver.spawn(outcome.keeper.alert(outcome), "coordination-alert")
        return AioHeld(driver, outcome, self._cancel)

    async def __aenter__(self) -> AioHeld:
        held = await self.acquire()
        self._blocks.setdefault(id(asyncio.current_task()), []).append(held)
        return await held.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task = id(asyncio.current_task())
        held = self._blocks[task].pop()
        if not self._blocks[task]:
            del self._blocks[task]
        await held.__aexit__(kind, error, trace)


def arm(hold: Hold, on_lost: OnLost) -> None:
    """Arrange what is to happen when the hold is lost."""
    if on_lost == "abort":
        hold.on_lost(lambda reason: abort_process(hold.name, reason))
    elif callable(on_lost):
        hold.on_lost(apart(on_lost))
