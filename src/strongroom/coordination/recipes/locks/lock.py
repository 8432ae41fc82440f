"""Locks: at most one holder per name, with a fencing token, for threads and for asyncio.

Lives here: `Lock` and `AioLock`. Must not live here: the rules (locks/lock_core.py,
locks/lock_keeper.py), what other recipes share with them (holding.py).
"""

from __future__ import annotations

from dataclasses import replace

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.effects import Steps
from strongroom.coordination.recipes.holding import AioHoldable, Cancel, Holdable, LockOptions
from strongroom.coordination.recipes.locks.lock_core import Acquisition
from strongroom.coordination.recipes.locks.lock_request import HoldRequest
from strongroom.coordination.recipes.waiting import NotAcquired
from strongroom.coordination.schema.names import key_of
from strongroom.coordination.session.context import RecipeContext
from strongroom.coordination.session.handles import Hold


def hold_request(context: RecipeContext, kind: str, name: str, options: LockOptions) -> HoldRequest:
    """Return the parameters of an acquisition with these options.

    Raises:
        Unsupported: the store cannot keep such a TTL, or no fair queue.
        BadName: see names.py.
    """
    context.check_ttl(options.ttl_s)
    if options.fair:
        context.check_fair()
    return HoldRequest(
        key=key_of(kind, name),
        name=name,
        ttl_s=options.ttl_s,
        wait_s=options.wait_s,
        fair=options.fair,
        lock_delay_s=options.lock_delay_s,
        value=options.value,
        margin_s=options.margin_s,
    )


class Lock(Holdable):
    """A lock by name, for threads. Not reentrant: see `AlreadyHeld`.

    Threads and tasks of one client wait in line inside the client, first come, first served.

    Arguments:
        driver: of the client.
        name: any text.
        options: see `LockOptions`.
        kind: the kind of key; locks of two kinds are independent of each other.
    """

    def __init__(
        self, driver: SyncDriver, name: str, options: LockOptions, kind: str = "lock"
    ) -> None:
        super().__init__(driver, name, options)
        self._request = hold_request(driver.context, kind, name, options)

    def _steps(self, *, once: bool) -> Steps[Hold | NotAcquired]:
        return _acquisition(self._driver, self._request, once)


class AioLock(AioHoldable):
    """A lock by name, for asyncio; see `Lock` and `AioHeld`."""

    def __init__(
        self,
        driver: AsyncDriver,
        name: str,
        options: LockOptions,
        cancel: Cancel = "deadline",
        kind: str = "lock",
    ) -> None:
        super().__init__(driver, name, options, cancel)
        self._request = hold_request(driver.context, kind, name, options)

    def _steps(self, *, once: bool) -> Steps[Hold | NotAcquired]:
        return _acquisition(self._driver, self._request, once)


def _acquisition(
    driver: SyncDriver | AsyncDriver, request: HoldRequest, once: bool
) -> Steps[Hold | NotAcquired]:
    request = replace(request, wait_s=0.0) if once else request
    return Acquisition(driver.context, request, driver.caller()).steps()
