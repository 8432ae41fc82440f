"""The classes of held slots that semaphores and read-write locks share.

Lives here: `SlotFace` for threads and `AioSlotFace` for asyncio. Must not live here: rules.
"""

from __future__ import annotations

from dataclasses import replace

from strongroom.coordination.context import RecipeContext
from strongroom.coordination.drivers_async import AsyncDriver
from strongroom.coordination.drivers_sync import SyncDriver
from strongroom.coordination.effects import Steps
from strongroom.coordination.handles import Hold
from strongroom.coordination.names import key_of
from strongroom.coordination.recipes.holding import AioHoldable, Cancel, Holdable, LockOptions
from strongroom.coordination.recipes.slots.slot_records import check_slot_ttl
from strongroom.coordination.recipes.slots.slots_core import SlotAcquisition, SlotRule, SlotWanted
from strongroom.coordination.recipes.waiting import Refusal


def wanted_slot(
    context: RecipeContext,
    kind: str,
    name: str,
    options: LockOptions,
    rule: SlotRule,
    role: str = "hold",
    intent: str = "",
    limit: int = 0,
    reentrant: bool = False,
) -> SlotWanted:
    """Return the parameters of an acquisition with these options; see `SlotWanted`.

    Raises:
        Unsupported: the TTL is out of bounds for a slot.
        BadName: see names.py.
    """
    check_slot_ttl(context, options.ttl_s)
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
        early_s=options.early_s,
        reentrant=reentrant,
    )


class SlotFace(Holdable):
    """A semaphore, or one side of a read-write lock, for threads.

    Arguments:
        driver: of the client.
        wanted: the parameters of each acquisition.
        options: TTL, waiting time, what happens at a loss; see `LockOptions`.
    """

    def __init__(self, driver: SyncDriver, wanted: SlotWanted, options: LockOptions) -> None:
        super().__init__(driver, wanted.name, options)
        self._wanted = wanted

    def _steps(self, *, once: bool) -> Steps[Hold | Refusal]:
        return _acquisition(self._driver.context, self._wanted, once)


class AioSlotFace(AioHoldable):
    """A semaphore, or one side of a read-write lock, for asyncio; see `SlotFace` and `AioHeld`."""

    def __init__(
        self,
        driver: AsyncDriver,
        wanted: SlotWanted,
        options: LockOptions,
        cancel: Cancel = "deadline",
    ) -> None:
        super().__init__(driver, wanted.name, options, cancel)
        self._wanted = wanted

    def _steps(self, *, once: bool) -> Steps[Hold | Refusal]:
        return _acquisition(self._driver.context, self._wanted, once)


def _acquisition(context: RecipeContext, wanted: SlotWanted, once: bool) -> Steps[Hold | Refusal]:
    return SlotAcquisition(context, replace(wanted, wait_s=0.0) if once else wanted).steps()
