"""Which gateways one process has itself seen silent, by its own clock.

Lives here: `WatchedGateways`. The age of a row alone says too little. A promoted standby's clock
may be ahead. After an outage of the database, no heartbeat is fresh. Must not live here: when a
gateway is late (membership.py).
"""

from __future__ import annotations

from strongroom.engines import membership
from strongroom.engines.gateways import GatewayRun
from strongroom.engines.membership import DEAD_TICKS, LATE_TICKS, MembershipTable


class WatchedGateways:
    """Since when each row is as it is, as far as this process has looked.

    It has to look again and again. What happened in a longer pause it does not know, and begins
    anew.

    Arguments:
        pause_max: in ticks; None for a test, whose clock leaps: a row that is new to it has come
            with the look before.
    """

    def __init__(self, pause_max: int | None = LATE_TICKS) -> None:
        self._pause_max = pause_max
        self._since: dict[tuple[int, int, int], int] = {}
        self._last = 0

    def look(self, table: MembershipTable, at: int) -> None:
        """Take note of the table.

        Arguments:
            at: this process's boot clock before it asked for the table.
        """
        before, since = self._since, at
        if self._pause_max is None:
            since = self._last
        elif at - self._last > self._pause_max:
            before = {}
        rows = table.rows.items()
        keys = [(number, row.incarnation, row.received_at) for number, row in rows]
        self._since = {key: before.get(key, since) for key in keys}
        self._last = max(self._last, at)

    def silent(self, table: MembershipTable, now: int) -> list[GatewayRun]:
        """The gateways of a table that sent nothing for DEAD_TICKS, by the table's clock and by
        what was seen."""
        return [
            GatewayRun(number, row.incarnation)
            for number, row in table.rows.items()
            if now - row.received_at > DEAD_TICKS
            and self._watched(number, row.incarnation, row.received_at) > DEAD_TICKS
        ]

    def without_dead(self, table: MembershipTable, now: int) -> MembershipTable:
        """Declare those gateways dead."""
        for gateway in self.silent(table, now):
            table = membership.leave(table, gateway)
        return table

    def _watched(self, *key: int) -> int:
        number, incarnation, received_at = key
        since = self._since.get((number, incarnation, received_at), self._last)
        return self._last - since
