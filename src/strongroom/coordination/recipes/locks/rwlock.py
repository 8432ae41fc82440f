"""Read-write locks: many readers at once, or one writer alone.

    with client.rwlock("cfg").read() as held: ...
    with client.rwlock("cfg").write() as held: ...

One record holds the slots of all clients. Each slot is renewed, and expires, like a lock of its
own. A waiting writer announces itself with a slot, in order of arrival. From then on no new reader
enters, so that readers cannot starve it. The writer renews that slot while it waits. So a dead
writer blocks the others no longer than a dead holder. Writers that follow each other without a
pause can keep readers out: the lock is meant for few writes. Every writer has a fence of its own. A
reader has the fence of the last writer, whose state it reads. The lock is not reentrant. A thread
or task that would wait for itself, such as a reader that also wants to write, gets `AlreadyHeld` at
once. Must not live here: how slots are taken (slots/slots_core.py).
"""

from __future__ import annotations

from typing import Final

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.recipes.holding import Cancel, LockOptions, check_cancel
from strongroom.coordination.recipes.slots.inspect_slots import SlotsView, show_slots_steps
from strongroom.coordination.recipes.slots.slot_records import Slot, SlotRecord
from strongroom.coordination.recipes.slots.slots import AioSlotHoldable, SlotHoldable, slot_request
from strongroom.coordination.recipes.slots.slots_core import SlotRule

KIND: Final = "rwlock"
READ: Final = "read"
WRITE: Final = "write"
WANTS_WRITE: Final = "wants-write"


class ReadRule:
    """The readers' rule: they wait for writers, and for writers that wait."""

    def blocking_slots(self, record: SlotRecord, own_nonce: str) -> tuple[Slot, ...]:
        return tuple(slot for slot in record.without(own_nonce).slots if slot.role != READ)

    def fence(self, record: SlotRecord) -> int:
        """Return the last writer's fence, since a reader reads what that writer left."""
        return record.fence

    def check(self, record: SlotRecord) -> None:
        """Accept every record."""


class WriteRule:
    """The writers' rule: they wait for all holders, and for writers that have waited longer."""

    def blocking_slots(self, record: SlotRecord, own_nonce: str) -> tuple[Slot, ...]:
        blocking = []
        own_slot_seen = False
        for slot in record.slots:
            if slot.owner == own_nonce:
                own_slot_seen = True
            elif slot.role != WANTS_WRITE or not own_slot_seen:
                blocking.append(slot)
        return tuple(blocking)

    def fence(self, record: SlotRecord) -> int:
        """Return the next fence: every writer has one of its own."""
        return record.fence + 1

    def check(self, record: SlotRecord) -> None:
        """Accept every record."""


_RULES: Final[dict[str, SlotRule]] = {READ: ReadRule(), WRITE: WriteRule()}
_INTENTS: Final = {READ: "", WRITE: WANTS_WRITE}


class RwLock:
    """A read-write lock by name, for threads.

    Arguments:
        driver: of the client.
        name: any text.
        options: see `LockOptions`; `fair` and `lock_delay_s` have no effect here.
    """

    def __init__(self, driver: SyncDriver, name: str, options: LockOptions) -> None:
        self._driver, self.name, self.options = driver, name, options

    def read(self) -> SlotHoldable:
        """Return the readers' side: a context manager, `acquire()`, `try_acquire()`."""
        return self._holdable(READ)

    def write(self) -> SlotHoldable:
        """Return the writers' side: a context manager, `acquire()`, `try_acquire()`."""
        return self._holdable(WRITE)

    def show(self) -> SlotsView | None:
        """Return the lock's view, by one read; None if there never was one."""
        return self._driver.run(show_slots_steps(self._driver.context, KIND, self.name))

    def _holdable(self, role: str) -> SlotHoldable:
        driver, rule, intent = self._driver, _RULES[role], _INTENTS[role]
        request = slot_request(driver.context, KIND, self.name, self.options, rule, role, intent)
        return SlotHoldable(driver, request, self.options)


class AioRwLock:
    """A read-write lock by name, for asyncio; see `RwLock` and `AioHeld`."""

    def __init__(
        self, driver: AsyncDriver, name: str, options: LockOptions, cancel: Cancel = "deadline"
    ) -> None:
        self._driver, self.name, self.options = driver, name, options
        self._cancel = check_cancel(cancel)

    def read(self) -> AioSlotHoldable:
        """Return the readers' side: an async context manager, `acquire()`, `try_acquire()`."""
        return self._holdable(READ)

    def write(self) -> AioSlotHoldable:
        """Return the writers' side: an async context manager, `acquire()`, `try_acquire()`."""
        return self._holdable(WRITE)

    async def show(self) -> SlotsView | None:
        """Return the lock's view, by one read; None if there never was one."""
        return await self._driver.run(show_slots_steps(self._driver.context, KIND, self.name))

    def _holdable(self, role: str) -> AioSlotHoldable:
        driver, rule, intent = self._driver, _RULES[role], _INTENTS[role]
        request = slot_request(driver.context, KIND, self.name, self.options, rule, role, intent)
        return AioSlotHoldable(driver, request, self.options, self._cancel)
