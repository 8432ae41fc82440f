"""The delay of an address before its next logon attempt.

Lives here: the count of failures for each address. Source: smb.md 5.1. The wait depends on the
address alone, never on the name that is tried.
"""

from __future__ import annotations

import ipaddress
from typing import Final

UNDELAYED_FAILURES_MAX: Final = 10
DELAY_PER_FAILURE_S: Final = 6.0
WAIT_MAX_S: Final = 30.0
ADDRESSES_MAX: Final = 4096
# A client with one IPv6 address usually has its whole network of 64 bits.
_IPV6_PREFIX: Final = 64


class LogonDelays:
    """The logon failures of each address, as the time until they are forgotten.

    An address may fail ten times at once, and then once in six seconds. Each attempt counts as a
    failure; one that succeeds takes that back.
    """

    def __init__(self) -> None:
        self._free_at: dict[str, float] = {}  # when an address's failures are forgotten

    def reserve(self, address: str, now: float) -> float | None:
        """Count an attempt as failed until `succeeded` is called. `now` is in seconds of any clock.

        Returns: how long to wait before the attempt; None = too many wait already, so that it must
            be refused.
        """
        key = _network(address)
        free_at = max(self._free_at.get(key, now), now)
        wait = free_at - now - (UNDELAYED_FAILURES_MAX - 1) * DELAY_PER_FAILURE_S
        if wait > WAIT_MAX_S:
            return None
        self._forget(now)
        self._free_at[key] = free_at + DELAY_PER_FAILURE_S
        return max(wait, 0.0)

    def succeeded(self, address: str) -> None:
        """Take back the failure that `reserve` counted for an attempt."""
        key = _network(address)
        if key in self._free_at:
            self._free_at[key] -= DELAY_PER_FAILURE_S

    def _forget(self, now: float) -> None:
        if len(self._free_at) < ADDRESSES_MAX:
            return
        self._free_at = {key: at for key, at in self._free_at.items() if at > now}
        while len(self._free_at) >= ADDRESSES_MAX:
            # Forget the address with the shortest remaining wait.
            del self._free_at[min(self._free_at, key=self._free_at.__getitem__)]


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
    return str(parsed)
