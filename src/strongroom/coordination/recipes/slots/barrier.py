"""Barriers: no party continues before all have arrived, phase after phase.

    client.barrier("phase-1", parties=16).wait(timeout=60)

Once all parties are there, `wait` returns in each of them. The barrier is then closed again for the
next generation, and later calls of `wait` belong to that one. A party that gives up, by its timeout
or a cancellation, withdraws its arrival. A party that dies loses its place when its TTL is over,
and the others wait for a replacement. So a barrier is never broken for parties that wait.
`BarrierBroken` is for a party that was away for longer than its TTL while its generation went on
without it. A party that died within the last TTL before the barrier trips is still counted, since
its death cannot be known yet. Must not live here: the record (slots/barrier_core.py).
"""

from __future__ import annotations

from strongroom.coordination.drivers.event_loop import AsyncDriver
from strongroom.coordination.drivers.threads import SyncDriver
from strongroom.coordination.options.arguments import number
from strongroom.coordination.recipes.slots.barrier_core import KIND, Arrival, check_parties
from strongroom.coordination.recipes.slots.inspect_slots import BarrierView, show_barrier_steps
from strongroom.coordination.recipes.slots.slot_records import check_slot_ttl
from strongroom.coordination.schema.names import key_of


class Barrier:
    """A barrier by name, for threads; each call of `wait` is one party.

    Arguments:
        driver: of the client.
        name: any text.
        parties: how many must arrive, 1 to 200; all parties must give the same number.
        ttl_s: a waiting party that is not renewed for so many seconds loses its place.

    Raises:
        Unsupported: the number of parties or the TTL is out of bounds.
        BadName: see names.py.
    """

    def __init__(self, driver: SyncDriver, name: str, parties: int, ttl_s: float = 15.0) -> None:
        self.parties, self._ttl_s = check_parties(parties), number("ttl", ttl_s)
        check_slot_ttl(driver.context, self._ttl_s)
        self._driver, self.name = driver, name
        self._key = key_of(KIND, name)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until all parties are there; return this party's place in order of arrival, from 0.

        Arguments:
            timeout: at most so many seconds; None = for ever. The wait goes on while the store does
                not answer.

        Raises:
            CoordTimeout: not all parties came in time; this party's place is free again.
            BarrierBroken: the others went on without this party, which had been away too long.
            PartiesDiffer: the waiting parties give another number of parties.
            StoreRefused, CorruptRecord: another try does not help.
        """
        arrival = Arrival(self._driver.context, self._key, self.name, self.parties, self._ttl_s)
        return self._driver.run(arrival.steps(timeout))

    def show(self) -> BarrierView | None:
        """Return the barrier's view, by one read; None if no party ever came."""
        return self._driver.run(show_barrier_steps(self._driver.context, self.name))


class AioBarrier:
    """A barrier by name, for asyncio; see `Barrier`. A cancelled `wait` withdraws its arrival."""

    def __init__(self, driver: AsyncDriver, name: str, parties: int, ttl_s: float = 15.0) -> None:
        self.parties, self._ttl_s = check_parties(parties), number("ttl", ttl_s)
        check_slot_ttl(driver.context, self._ttl_s)
        self._driver, self.name = driver, name
        self._key = key_of(KIND, name)

    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - as of Barrier
    ) -> int:
        """Wait until all parties are there; return this party's place, from 0."""
        arrival = Arrival(self._driver.context, self._key, self.name, self.parties, self._ttl_s)
        return await self._driver.run(arrival.steps(timeout))

    async def show(self) -> BarrierView | None:
        """Return the barrier's view, by one read; None if no party ever came."""
        return await self._driver.run(show_barrier_steps(self._driver.context, self.name))
