"""A renewal and a proclamation of one term may run in two threads: neither undoes the other."""

from __future__ import annotations

import threading
from collections.abc import Callable

from strongroom.coordination import Client
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.stores.memory import MemoryStore


class Interrupting(SystemClocks):
    """A clock that lets something else happen when this thread asks it for the time."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self.interruption: Callable[[], object] | None = None

    def boot_s(self) -> float:
        if threading.get_ident() == self._thread and self.interruption is not None:
            interrupted, self.interruption = self.interruption, None
            interrupted()
        return super().boot_s()


def test_a_renewal_keeps_what_was_proclaimed_while_it_began() -> None:
    clock, store = Interrupting(), MemoryStore()
    client, observer = Client(store, clock=clock), Client(store).election("e")
    election = client.election("e", value="old")
    with election.lead() as term:
        proclaimed: list[bool] = []
        clock.interruption = lambda: proclaimed.append(election.proclaim(term, "new"))
        client.driver.run(term._hold.keeper.renew(term._hold))
        assert proclaimed == [True]
        assert observer.leader().leader == "new"
        assert client.driver.run(term._hold.keeper.renew(term._hold))
        assert observer.leader().leader == "new"
