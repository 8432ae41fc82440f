"""Registers for users, and the book's lock, which is built on a register alone.

Lives here: `Register`, `AioRegister`; and `SimpleLock`, the lock of Burns, Designing Distributed
Systems, chapter 9, under the book's names. Must not live here: the steps (register_core.py).
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.errors import LockLost
from strongroom.coordination.recipes.register_core import (
    KIND,
    RegisterWrite,
    Swap,
    Versioned,
    get_steps,
    wait_steps,
)
from strongroom.coordination.schema.names import key_of


class Absent(Enum):
    """The type of `ABSENT`, the expectation that a register has no value."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


class Register:
    """A shared value with compare-and-swap, for threads.

    Arguments:
        driver: of the client.
        name: any text.
    """

    def __init__(self, driver: SyncDriver, name: str) -> None:
        self._driver, self.name, self._key = driver, name, key_of(KIND, name)

    def get(self) -> Versioned | None:
        """Return the value (JSON) and its version; None if it is absent or its TTL is over.

        A value with a TTL that this client sees for the first time counts as fresh.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        return self._driver.run(get_steps(self._driver.context, self._key))

    def compare_and_swap(
        self, new: Any, expected: Any, version: str | None = None, ttl: float | None = None
    ) -> Swap:
        """Write `new` if the current value is `expected`. Note that `new` is the first argument.

        Arguments:
            new: any JSON value.
            expected: the value that must be there, or `ABSENT`. Only a definite absence, or a value
                whose TTL is over, counts as absent.
            version: if given, the version that must be there too.
            ttl: seconds after which the new value counts as absent.

        Returns:
            (swapped, version); see `Swap`.

        Raises:
            StoreUnavailable: the value was certainly not written.
            OutcomeUnknown: the value may have been written; a later read did not show it.
        """
        swapping = RegisterWrite(self._driver.context, self._key, new, ttl)
        return self._driver.run(swapping.swap(expected, expected is ABSENT, version))

    def put(self, new: Any, ttl: float | None = None) -> Swap:
        """Write `new` unconditionally: the last writer wins. Never use it for locks."""
        return self._driver.run(RegisterWrite(self._driver.context, self._key, new, ttl).put())

    def wait_for_change(
        self, version: str | None, timeout: float | None = None
    ) -> tuple[bool, Versioned | None]:
        """Wait until the version is not `version` any more, or the value's TTL is over.

        Arguments:
            version: the last known version; None: absent.
            timeout: at most so many seconds; None: for ever.

        Returns:
            whether it changed, and the current value.
        """
        return self._driver.run(wait_steps(self._driver.context, self._key, version, timeout))


class AioRegister:
    """A shared value with compare-and-swap, for asyncio. See `Register`."""

    def __init__(self, driver: AsyncDriver, name: str) -> None:
        self._driver, self.name, self._key = driver, name, key_of(KIND, name)

    async def get(self) -> Versioned | None:
        """Return the value (JSON) and its version; None if it is absent or its TTL is over."""
        return await self._driver.run(get_steps(self._driver.context, self._key))

    async def compare_and_swap(
        self, new: Any, expected: Any, version: str | None = None, ttl: float | None = None
    ) -> Swap:
        """Write `new` if the current value is `expected`. Note that `new` is the first argument."""
        swapping = RegisterWrite(self._driver.context, self._key, new, ttl)
        return await self._driver.run(swapping.swap(expected, expected is ABSENT, version))

    async def put(self, new: Any, ttl: float | None = None) -> Swap:
        """Write `new` unconditionally: the last writer wins. Never use it for locks."""
        return await self._driver.run(
            RegisterWrite(self._driver.context, self._key, new, ttl).put()
        )

    async def wait_for_change(
        self,
        version: str | None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> tuple[bool, Versioned | None]:
        """Wait until the version is not `version` any more, or the value's TTL is over."""
        steps = wait_steps(self._driver.context, self._key, version, timeout)
        return await self._driver.run(steps)


class SimpleLock:
    """The book's lock over a register: "0" is free, "1" is held, absent is free.

    Programs should use `client.lock`, which renews by itself and has a fence. This class shows the
    idea. The listings' mistakes are corrected. A renewal keeps the version that it wrote, only a
    success sets the version, and only a definite absence creates the key.

    Arguments:
        register: holds the lock's value.
        ttl: the lock frees itself after so many seconds.
    """

    def __init__(self, register: Register, ttl: float = 15.0) -> None:
        self._register, self._ttl = register, ttl
        self._version: str | None = None

    def simple_lock(self) -> bool:
        """Try once to lock; return whether this object holds the lock now."""
        for expected in ("0", ABSENT):
            swap = self._register.compare_and_swap("1", expected, None, self._ttl)
            if swap.swapped:
                self._version = swap.version
                return True
        return False

    def lock(self, timeout: float | None = None) -> bool:
        """Lock, watching the register while another client holds it; False if a watch timed out."""
        while not self.simple_lock():
            seen = self._register.get()
            if seen is not None and seen.value == "1":
                changed, _ = self._register.wait_for_change(seen.version, timeout)
                if not changed:
                    return False
        return True

    def renew(self) -> None:
        """Extend the lock by another TTL.

        Raises:
            LockLost: this object does not hold the lock any more.
        """
        swap = self._own_swap("1", self._ttl)
        self._version = swap.version

    def unlock(self) -> None:
        """Free the lock, if value and version are still those that this object wrote.

        Raises:
            LockLost: this object does not hold the lock any more.
        """
        self._own_swap("0", None)
        self._version = None

    def _own_swap(self, new: str, ttl: float | None) -> Swap:
        if self._version is None:
            raise LockLost(self._register.name, "it is not locked by us")
        swap = self._register.compare_and_swap(new, "1", self._version, ttl)
        if not swap.swapped:
            self._version = None
            raise LockLost(self._register.name, "somebody else has written it")
        return swap
