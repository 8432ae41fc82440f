"""Every rule about time, as pure functions in one place: how long each party may rely on a hold.

The assumption: every node's clock runs at a rate within [1 - e, 1 + e] of true time. Nothing is
assumed about offsets, delays, pauses or losses. The proof: a holder's write takes effect at tw, and
it was SENT no later than tw. So TTL, counted from the sending, ends before tw + TTL / (1 - e). An
observer RECEIVES a read that shows this write at tr >= tw. So TTL * (1 + e) / (1 - e), counted from
the receipt, ends after tw + TTL / (1 - e). The compare-and-swap then proves that no renewal came in
between. If either start is swapped, or the factor left out, two nodes can hold at once. The
simulator tests those wrong rules as mutants.
"""

from __future__ import annotations

from dataclasses import dataclass

from strongroom.coordination.errors import Unsupported
from strongroom.coordination.options.arguments import number

TTL_MIN_S = 0.1


@dataclass(frozen=True, slots=True)
class ClockRules:
    """The rules for one bound on the clocks' rates.

    Arguments:
        rate_error: e, the fraction by which any clock may run too fast or too slow; 0 <= e < 1.
    """

    rate_error: float = 0.05

    def __post_init__(self) -> None:
        """Validate the bound.

        Raises:
            Unsupported: with such a bound the rules would call a held name free.
        """
        if not 0 <= number("rate_error", self.rate_error) < 1:
            raise Unsupported(f"rate_error is a share, 0 or more and below 1: {self.rate_error!r}")

    def holder_deadline_s(
        self, sent_s: float, received_s: float, ttl_s: float, server_clock: bool
    ) -> float:
        """Return when a hold ends for its holder, by the holder's boot clock.

        Arguments:
            sent_s: when the successful write was sent.
            received_s: when its response came. No correct rule uses it; a mutant does.
            ttl_s: the TTL that was written.
            server_clock: whether the store ends the hold by its own clock after `ttl_s`. That clock
                may be fast and the holder's slow, so the hold ends earlier.
        """
        e = self.rate_error
        return sent_s + (ttl_s * (1 - e) / (1 + e) if server_clock else ttl_s)

    def observer_start_s(self, sent_s: float, received_s: float) -> float:
        """Return when an observer starts to count, by its monotonic clock.

        Arguments:
            sent_s: when the read was sent. No correct rule uses it; a mutant does.
            received_s: when the response came.
        """
        return received_s

    def observer_wait_s(self, ttl_s: float) -> float:
        """Return how long an observer must see the same holder and sequence number unchanged."""
        e = self.rate_error
        return ttl_s * (1 + e) / (1 - e)

    def attempt_timeout_s(self, ttl_s: float) -> float:
        """Return the timeout of one request: a hung request must not cost the hold."""
        return min(ttl_s / 10, 1.5)

    def renew_after_s(self, ttl_s: float, jitter: float) -> float:
        """Return the delay from a successful write to the next renewal: a third of the TTL.

        Arguments:
            ttl_s: the TTL.
            jitter: a random number in [0, 1). It delays the renewal by up to 10 %, so that many
                holders do not renew in step. It is never earlier, since each renewal wakes the
                waiters.
        """
        return ttl_s / 3 * (1 + jitter / 10)

    def retry_after_s(self, ttl_s: float, jitter: float) -> float:
        """Return the delay from a failed renewal to the next attempt."""
        return min(ttl_s / 20, 0.5) * (0.5 + jitter)
