"""The classes of held slots that semaphores and read-write locks share.

Lives here: `SlotHoldable` for threads and `AioSlotHoldable` for asyncio.
"""

from __future__ import annotations

from dataclasses import replace

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.effects import Steps
from strongroom.coordination.recipes.holding import AioHoldable, Cancel, Holdable, LockOptions
from strongroom.coordination.recipes.slots.slot_records import check_slot_ttl
from strongroom.coordination.recipes.slots.slots_core import SlotAcquisition, SlotRequest, SlotRule
from strongroom.coordination.recipes.waiting import NotAcquired
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold


def slot_request(
    context: RecipeContext,
    kind: str,
    name: str,
    options: LockOptions,
    rule: SlotRule,
    role: str = "hold",
    intent: str = "",
    limit: int = 0,
    reentrant: bool = False,
) -> SlotRequest:
    """Return the parameters of an acquisition with these options; see `SlotRequest`.

    Raises: Unsupported: the TTL is out of bounds for a slot; BadName: see names.py.
    """
    check_slot_ttl(context, options.ttl_s)
    return SlotRequest(
        kind=kind,
        key=key_of(kind, name),
        name=name,
        role=role,
        rule=rule,
        ttl_s=options.ttl_s,
        wait_s=options.wait_s,
        intent=intent,
        limit=limit,
        margin_s=options.margin_s,
        reentrant=reentrant,
    )


class SlotHoldable(Holdable):
    """A semaphore, or one side of a read-write lock, for threads.

    Arguments:
        driver: of the client.
        request: the parameters of each acquisition.
        options: TTL, waiting time, what happens at a loss; see `LockOptions`.
    """

    def __init__(self, driver: SyncDriver, request: SlotRequest, options: LockOptions) -> None:
        super().__init__(driver, request.name, options)
        self._request = request

    def _steps(self, *, once: bool) -> Steps[Hold | NotAcquired]:
        return _acquisition(self._driver, self._request, once)


class AioSlotHoldable(AioHoldable):
    """A semaphore, or one side of a read-write lock, for asyncio.

    See `SlotHoldable` and `AioHeld`.
    """

    def __init__(
        self,
        driver: AsyncDriver,
        request: SlotRequest,
        options: LockOptions,
        cancel: Cancel = "deadline",
    ) -> None:
        super().__init__(driver, request.name, options, cancel)
        self._request = request

    def _steps(self, *, once: bool) -> Steps[Hold | NotAcquired]:
        return _acquisition(self._driver, self._request, once)


def _acquisition(
    driver: SyncDriver | AsyncDriver, request: SlotRequest, once: bool
) -> Steps[Hold | NotAcquired]:
    request = replace(request, wait_s=0.0) if once else request
    return SlotAcquisition(driver.context, request, driver.caller()).steps()
