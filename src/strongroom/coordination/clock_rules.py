"""Every rule about time, in one place, as pure functions: how long each party may rely on a hold.

The assumption: every node's clock runs at a rate within [1 - e, 1 + e] of true time. Nothing is
assumed about offsets, delays, pauses or losses. The argument: a holder's write takes effect at tw,
and it was SENT not later. So TTL counted from the sending ends before tw + TTL / (1 - e). An
observer RECEIVED a read that shows this write at tr >= tw. So TTL * (1 + e) / (1 - e) counted from
the receiving ends after tw + TTL / (1 - e). The compare-and-swap then proves that no renewal came
between. Turn round either end, or leave out the factor, and two nodes believe at once: the
simulator keeps those wrong rules as mutants. Must not live here: clocks, waiting, IO.
"""

from __future__ import annotations

from dataclasses import dataclass

from strongroom.coordination.arguments import number
from strongroom.coordination.errors import Unsupported

TTL_MIN_S = 0.1


@dataclass(frozen=True, slots=True)
class ClockRules:
    """The rules for one bound on the clocks' rates.

    Arguments:
        rate_error: e, the share by which any clock may run too fast or too slow; 0 <= e < 1.
    """

    rate_error: float = 0.05

    def __post_init__(self) -> None:
        """Raises Unsupported: with such a bound the rules would say "free" of what is held."""
        if not 0 <= number("rate_error", self.rate_error) < 1:
            raise Unsupported(f"rate_error is a share, 0 or more and below 1: {self.rate_error!r}")

    def holder_deadline_s(
        self, sent_s: float, received_s: float, ttl_s: float, server_clock: bool
    ) -> float:
        """Return when a holder must stop to believe, on its own boot clock.

        Arguments:
            sent_s: when the write that succeeded was sent.
            received_s: when its answer came; no right rule uses it.
            ttl_s: what was written.
            server_clock: whether the store itself ends the hold by its own clock after `ttl_s`.
                That clock may be fast and the holder's slow, so a part is given up.
        """
        e = self.rate_error
        return sent_s + (ttl_s * (1 - e) / (1 + e) if server_clock else ttl_s)

    def observer_start_s(self, sent_s: float, received_s: float) -> float:
        """Return from when an observer counts, on its own monotonic clock.

        Arguments:
            sent_s: when the read was sent; no right rule uses it.
            received_s: when the answer came.
        """
        return received_s

    def observer_wait_s(self, ttl_s: float) -> float:
        """Return how long an observer must see the same holder and sequence number."""
        e = self.rate_error
        return ttl_s * (1 + e) / (1 - e)

    def attempt_timeout_s(self, ttl_s: float) -> float:
        """Return after how long one request is given up: a hung one must not cost the hold."""
        return min(ttl_s / 10, 1.5)

    def renew_after_s(self, ttl_s: float, chance: float) -> float:
        """Return how long after a successful write the next renewal starts: a third of the TTL.

        Arguments:
            ttl_s: the TTL.
            chance: in [0, 1); up to 10 % later, so that many holders do not renew in step. Not
                earlier: whoever waits is woken by each renewal.
        """
        return ttl_s / 3 * (1 + chance / 10)

    def retry_after_s(self, ttl_s: float, chance: float) -> float:
        """Return how long after a renewal that did not succeed the next one starts."""
        return min(ttl_s / 20, 0.5) * (0.5 + chance)
