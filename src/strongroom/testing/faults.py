"""Telling a server under test what to do wrong: `server.faults`.

Lives here: the orders as a test gives them. Must not live here: what they do (servers/faults.py).

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
    """The faults of one server.

    Arguments:
        ask: (method, body) -> the answer of the server's faults endpoint.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def order(self, *rules: FaultRule, seed: int = 0) -> None:
        """Follow these rules from now on, and no others; the first that matches a request decides.

        Arguments:
            seed: of the rules' chances; the same seed hits the same requests again.
        """
        self._ask("PUT", msgspec.json.encode(FaultPlan(rules, seed)))

    def clear(self) -> None:
        """No more faults."""
        self._ask("DELETE", b"")

    def counts(self) -> list[RuleCount]:
        """For each rule how many requests matched it since it was ordered, and how many were
        hit."""
        return msgspec.json.decode(self._ask("GET", b""), type=_State).counts
