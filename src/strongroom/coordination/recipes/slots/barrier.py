"""Barriers: nobody goes on before all have arrived, phase after phase.

    client.barrier("phase-1", parties=16).wait(timeout=60)

Once all parties are there, `wait` returns in each of them. The barrier is then closed again for the
next generation. Whoever calls `wait` again takes part in that one. A party that gives up, by its
timeout or a cancellation, takes its place with it. A party that dies loses its place when its TTL
is over. The others go on waiting for another one. So a barrier is never broken for those who wait.
It is for a party that was away for longer than its TTL and whose generation has gone on without it:
`BarrierBroken`. A party that died within the last TTL before the barrier trips is still counted:
nobody can know better. Must not live here: the record (slots/barrier_core.py).
"""

from __future__ import annotations

from strongroom.coordination.arguments import number
from strongroom.coordination.drivers_async import AsyncDriver
from strongroom.coordination.drivers_sync import SyncDriver
from strongroom.coordination.names import key_of
from strongroom.coordination.recipes.slots.barrier_core import KIND, Arrival, check_parties
from strongroom.coordination.recipes.slots.inspect_slots import BarrierView, show_barrier_steps
from strongroom.coordination.recipes.slots.slot_records import check_slot_ttl


class Barrier:
    """A barrier by name, for threads; each call of `wait` is one party.

    Arguments:
        driver: of the client.
        name: any text.
        parties: how many must be there, 1 to 200; all who wait must count the same.
        ttl_s: a party that is not heard of for so long loses its place.

    Raises:
        Unsupported: a number of parties or a TTL that cannot be.
        BadName: see names.py.
    """

    def __init__(self, driver: SyncDriver, name: str, parties: int, ttl_s: float = 15.0) -> None:
        self.parties, self._ttl_s = check_parties(parties), number("ttl", ttl_s)
        check_slot_ttl(driver.context, self._ttl_s)
        self._driver, self.name = driver, name
        self._key = key_of(KIND, name)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until all are there; return one's place in the order of arrival, from 0.

        Arguments:
            timeout: at most so many seconds; None = for ever. A store that does not answer is
                waited for as well.

        Raises:
            CoordTimeout: not all came in time; this party's place is free again.
            BarrierBroken: the others went on without this party, which had been away too long.
            PartiesDiffer: those who wait count another number of parties.
            StoreRefused, CorruptRecord: as they say.
        """
        arrival = Arrival(self._driver.context, self._key, self.name, self.parties, self._ttl_s)
        return self._driver.run(arrival.steps(timeout))

    def show(self) -> BarrierView | None:
        """Return how it looks to others, by one read; None if nobody ever came."""
        return self._driver.run(show_barrier_steps(self._driver.context, self.name))


class AioBarrier:
    """A barrier by name, for asyncio; see `Barrier`. A cancelled `wait` gives its place up."""

    def __init__(self, driver: AsyncDriver, name: str, parties: int, ttl_s: float = 15.0) -> None:
        self.parties, self._ttl_s = check_parties(parties), number("ttl", ttl_s)
        check_slot_ttl(driver.context, self._ttl_s)
        self._driver, self.name = driver, name
        self._key = key_of(KIND, name)

    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - as of Barrier
    ) -> int:
        """See `Barrier.wait`."""
        arrival = Arrival(self._driver.context, self._key, self.name, self.parties, self._ttl_s)
        return await self._driver.run(arrival.steps(timeout))

    async def show(self) -> BarrierView | None:
        """See `Barrier.show`."""
        return await self._driver.run(show_barrier_steps(self._driver.context, self.name))
