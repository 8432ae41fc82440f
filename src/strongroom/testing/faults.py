"""Fault injection for a server under test: `server.faults`.

Lives here: the client of the faults endpoint. Must not live here: what a fault does
(servers/faults.py).

    server.faults.order(FaultRule(operation="Put Blob", fault=Fault.LOST_REPLY, times=1))
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from strongroom.servers.faults import Fault, FaultPlan, FaultRule, RuleCount

__all__ = ["Fault", "FaultControl", "FaultRule", "RuleCount"]

Ask = Callable[[str, bytes], bytes]


class _State(msgspec.Struct):
    plan: FaultPlan
    counts: list[RuleCount]


class FaultControl:
    """The fault rules of one server.

    Arguments:
        ask: called with (method, body); returns the response of the server's faults endpoint.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def order(self, *rules: FaultRule, seed: int = 0) -> None:
        """Replace all fault rules; for each request, the first matching rule decides.

        Arguments:
            rules: the new rules.
            seed: the seed of the rules' random choices; the same seed hits the same requests.
        """
        self._ask("PUT", msgspec.json.encode(FaultPlan(rules, seed)))

    def clear(self) -> None:
        """Remove all fault rules."""
        self._ask("DELETE", b"")

    def counts(self) -> list[RuleCount]:
        """Return, for each rule, how many requests matched it, and how many of them were hit."""
        return msgspec.json.decode(self._ask("GET", b""), type=_State).counts
