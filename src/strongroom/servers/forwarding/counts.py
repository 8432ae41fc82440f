"""How many requests went to another gateway or came from one, as metrics."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from strongroom.servers.telemetry import BUCKETS_S, counter, histogram

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class ForwardCounts:
    """What a gateway has counted since its start.

    Attributes:
        failures: other gateways that could not be asked, or were lost during a request.
        refused: requests that were refused because nobody could be asked.
        received: requests of other gateways.
        unproven: requests at the port for gateways that no gateway has sent.
        given_up: shares that nobody had used for a while.
    """

    def __init__(self) -> None:
        self.failures = self.refused = self.received = self.unproven = self.given_up = 0
        self._times = [0] * (len(BUCKETS_S) + 1)
        self._sum_s = 0.0

    def forwarded(self, seconds: float) -> None:
        """Count a request that another gateway was asked to answer."""
        self._times[bisect.bisect_left(BUCKETS_S, seconds)] += 1
        self._sum_s += seconds

    @property
    def requests(self) -> int:
        """How many requests were forwarded."""
        return sum(self._times)

    def collect(self) -> Iterator[Metric]:
        bounds = (*BUCKETS_S, float("inf"))
        times = tuple(zip(bounds, itertools.accumulate(self._times), strict=True))
        what = "Requests that another gateway answered, up to the last byte of its answer."
        yield histogram("forwarded_request_seconds", what, times, self._sum_s)
        what = "Gateways that could not be asked, or were lost during a request."
        yield counter("forward_failures", what, self.failures)
        what = "Requests refused (503), since the gateway that serves the share is gone."
        yield counter("forward_refusals", what, self.refused)
        yield counter("forwarded_to_this_gateway", "Requests of other gateways.", self.received)
        what = "Requests at the port for gateways that no gateway has sent."
        yield counter("forward_unproven", what, self.unproven)
        yield counter("shares_given_up", "Shares that nobody used for 30 s.", self.given_up)
