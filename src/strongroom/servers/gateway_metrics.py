"""What an operator watches of a gateway to a store in a database, as metrics.

Lives here: their names and texts. Must not live here: where the facts come from (the engine).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from strongroom.servers.telemetry import counter, gauge, histogram
from strongroom.values import GatewayFacts

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class GatewayMetrics:
    def __init__(self, facts: Callable[[], GatewayFacts]) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        facts = self._facts()
        yield gauge("gateway_number", "The number of this gateway.", facts.number)
        yield gauge("gateways", "Live gateways of the store.", facts.gateways)
        age = "Since the last heartbeat that the store accepted; above 5 all requests get 503."
        yield gauge("gateway_heartbeat_age_seconds", age, facts.heartbeat_age_s)
        ahead = "How far this machine's clock is ahead of the database's."
        yield gauge("gateway_clock_ahead_seconds", ahead, facts.clock_ahead_s)
        yield gauge("store_used_bytes", "Keys, values and bodies.", facts.used_bytes)
        if facts.quota_bytes is not None:
            yield gauge("store_quota_bytes", "Above it, new data gets 507.", facts.quota_bytes)
        doubt = "By how much its time may differ from the database's; above 0.1 it answers 503."
        yield gauge("gateway_clock_doubt_seconds", doubt, facts.clock_doubt_s)
        waits = "1 while the database waits for a standby with each commit."
        yield gauge("database_standby_awaited", waits, facts.awaits_standby)
        if facts.bodies_away is not None:
            away = "1 while the folder or pool of long bodies cannot be used, and they get 503."
            yield gauge("bodies_away", away, facts.bodies_away)
        refused = "How often the database had no connection left."
        yield counter("database_sessions_refused", refused, facts.sessions_refused)
        yield counter("database_sessions", "Connections to the database.", facts.sessions)
        what = "Commits of records, as the database confirms them."
        yield histogram("commit_seconds", what, facts.commits, facts.commits_s)
        yield counter("decisions", "Changes that commits made durable.", facts.decisions)
