"""The single store of a simulated world: its registers, its clock, and its outages.

Lives here: the store's answers. Must not live here: the network between it and the nodes
(world.py), how registers change (stores/registers.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strongroom.coordination.effects import Cas, Delete, Effect, Get, ListKeys, Watch
from strongroom.coordination.store import Promises
from strongroom.coordination.stores.registers import Registers

Reply = Callable[..., None]
"""reply(outcome, error=None)"""


class SimulatedStore:
    """A store whose registers survive an outage, but whose watches do not.

    Arguments:
        server_lease: whether it keeps a lease clock of its own.
        rate: the rate of that clock relative to true time.
        watch: whether it supports watches.
    """

    def __init__(self, server_lease: bool, rate: float, watch: bool) -> None:
        self.registers = Registers(server_lease)
        self.promises = Promises(
            store="the simulated store",
            mutual_exclusion="server-clock" if server_lease else "clock-rate",
            assumption="clock rates within the bound",
            fencing="durable",
            watch="push" if watch else "poll",
            durable=True,
            scope="network",
            server_lease=server_lease,
            poll_min_s=0.05,
            poll_max_s=0.5,
        )
        self._rate = rate
        self._offset_s = 0.0
        self._down_until_s = 0.0
        self._watchers: dict[str, list[Callable[[], None]]] = {}

    def is_down(self, now_s: float) -> bool:
        """Return whether the store is unreachable at a true time."""
        return now_s < self._down_until_s

    def go_down(self, until_s: float) -> None:
        """Make the store unreachable until a true time, and drop all watches."""
        self._down_until_s = until_s
        self._watchers = {}

    def set_back(self, seconds: float) -> None:
        self._offset_s -= seconds

    def clock_s(self, now_s: float) -> float:
        """Return the reading of the store's clock at a true time."""
        return now_s * self._rate + self._offset_s

    def apply(self, effect: Effect, now_s: float) -> Any:
        """Return the outcome of a read or a write at a true time."""
        store_s = self.clock_s(now_s)
        if isinstance(effect, Get):
            return self.registers.get(effect.key, store_s)
        if isinstance(effect, ListKeys):
            return self.registers.list_keys(effect.prefix)
        if isinstance(effect, Delete):
            outcome = self.registers.delete(effect.key, effect.expected)
        else:
            assert isinstance(effect, Cas)
            outcome = self.registers.cas(
                effect.key, effect.expected, effect.value, effect.lease, effect.note, store_s
            )
        for wake in self._watchers.pop(effect.key, []):
            wake()
        return outcome

    def watch(self, effect: Watch, true_s: Callable[[], float], reply: Reply) -> None:
        """Reply once the register's version differs from the caller's: now, or after a write.

        Arguments:
            effect: the watch of the caller.
            true_s: returns the true time.
            reply: called with the register's entry.
        """

        def reply_now() -> None:
            reply(self.registers.get(effect.key, self.clock_s(true_s())))

        if self.registers.version(effect.key) != effect.version:
            reply_now()
        else:
            self._watchers.setdefault(effect.key, []).append(reply_now)
