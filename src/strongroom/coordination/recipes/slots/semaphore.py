"""Semaphores: a limited number of holders of a name at once, each with a fencing token.

    with client.semaphore("gpu", 4) as held: ...

One record holds the slots of all clients. Each slot is renewed, and expires, like a lock of its
own. The fence rises with every holder of the name. All holders agree on the number of permits.
While a permit is held, a caller with another number is refused (`PermitsDiffer`). While none is
held, the next holder's number counts. A client may hold several permits, one per thread for
instance. A thread that waits while it holds all of them waits for itself. There is no queue of
clients: the first that writes after a permit is freed gets it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.errors import Unsupported
from strongroom.coordination.options.arguments import count
from strongroom.coordination.recipes.holding import Cancel, LockOptions
from strongroom.coordination.recipes.slots.inspect_slots import SlotsView, show_slots_steps
from strongroom.coordination.recipes.slots.slot_records import SLOTS_MAX, Slot, SlotRecord
from strongroom.coordination.recipes.slots.slots import AioSlotHoldable, SlotHoldable, slot_request

KIND: Final = "semaphore"


class PermitsDiffer(Unsupported):
    """Other clients hold permits of this semaphore and give another number of them.

    Arguments:
        name: of the semaphore.
        wanted: the number that this client gives.
        found: the number that the holders give.
    """

    def __init__(self, name: str, wanted: int, found: int) -> None:
        self.name, self.wanted, self.found = name, wanted, found
        super().__init__(
            f"{name!r} has {found} permits for those who hold it, not {wanted}; the number can"
            " change while nobody holds one"
        )


@dataclass(frozen=True, slots=True)
class SemaphoreRule:
    """The rule that decides about entering a semaphore.

    Arguments:
        name: for messages.
        permits: the largest number of holders.
    """

    name: str
    permits: int

    def blocking_slots(self, record: SlotRecord, own_nonce: str) -> tuple[Slot, ...]:
        others = record.without(own_nonce).slots
        return others if len(others) >= self.permits else ()

    def fence(self, record: SlotRecord) -> int:
        """Return the next fence: every holder has one of its own."""
        return record.fence + 1

    def check(self, record: SlotRecord) -> None:
        """Raise PermitsDiffer if the living holders give another number of permits."""
        if record.slots and record.limit != self.permits:
            raise PermitsDiffer(self.name, self.permits, record.limit)


def _rule(name: str, permits: int) -> SemaphoreRule:
    if not 1 <= count("permits", permits) <= SLOTS_MAX:
        raise Unsupported(f"a semaphore has 1 to {SLOTS_MAX} permits, not {permits}")
    return SemaphoreRule(name, count("permits", permits))


class Semaphore(SlotHoldable):
    """A semaphore by name, for threads: a context manager, `acquire()`, `try_acquire()`.

    Arguments:
        driver: of the client.
        name: any text.
        permits: how many may hold it at once, 1 to 200.
        options: see `LockOptions`; `fair` and `lock_delay_s` have no effect here.
    """

    def __init__(self, driver: SyncDriver, name: str, permits: int, options: LockOptions) -> None:
        rule = _rule(name, permits)
        wanted = slot_request(
            driver.context, KIND, name, options, rule, limit=rule.permits, reentrant=True
        )
        super().__init__(driver, wanted, options)

    def show(self) -> SlotsView | None:
        """Return the semaphore's view, by one read; None if there never was one."""
        return self._driver.run(show_slots_steps(self._driver.context, KIND, self.name))


class AioSemaphore(AioSlotHoldable):
    """A semaphore by name, for asyncio; see `Semaphore` and `AioHeld`."""

    def __init__(
        self,
        driver: AsyncDriver,
        name: str,
        permits: int,
        options: LockOptions,
        cancel: Cancel = "deadline",
    ) -> None:
        rule = _rule(name, permits)
        wanted = slot_request(
            driver.context, KIND, name, options, rule, limit=rule.permits, reentrant=True
        )
        super().__init__(driver, wanted, options, cancel)

    async def show(self) -> SlotsView | None:
        """Return the semaphore's view, by one read; None if there never was one."""
        return await self._driver.run(show_slots_steps(self._driver.context, KIND, self.name))
