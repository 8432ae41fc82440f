"""The figures of the last hour: a ring of samples, one each five seconds.

Lives here: what a sample has, its differences from counters, quantiles of a histogram. Must not
live here: clocks and timers (sampler.py). A request is not touched: counters that the server has
anyway are read each five seconds. The ring holds 720 samples of about 400 bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from strongroom.servers.telemetry import BUCKETS_S, ExchangeCounts

STEP_S: Final = 5.0
SAMPLES_MAX: Final = 720
_REFUSED_FROM: Final = 400
# What the page itself asks for is no work of clients.
NOT_COUNTED: Final = frozenset({"own endpoint", "console"})

Buckets = tuple[int, ...]
NO_BUCKETS: Final[Buckets] = (0,) * (len(BUCKETS_S) + 1)


class Traffic(msgspec.Struct, frozen=True):
    """The requests of one interval.

    Attributes:
        errors: those answered with a status of 400 or above.
        buckets: how many took as long as each of BUCKETS_S says, and longer.
    """

    requests: int = 0
    errors: int = 0
    buckets: Buckets = NO_BUCKETS

    def __add__(self, other: Traffic) -> Traffic:
        buckets = tuple(map(int.__add__, self.buckets, other.buckets))
        return Traffic(self.requests + other.requests, self.errors + other.errors, buckets)

    def __sub__(self, other: Traffic) -> Traffic:
        buckets = tuple(map(int.__sub__, self.buckets, other.buckets))
        return Traffic(self.requests - other.requests, self.errors - other.errors, buckets)

    def latency_s(self, quantile: float) -> float | None:
        """Interpolated within its bucket; None without requests."""
        total = sum(self.buckets)
        if not total:
            return None
        wanted, below, least_s = quantile * total, 0, 0.0
        for count, most_s in zip(self.buckets, (*BUCKETS_S, BUCKETS_S[-1]), strict=True):
            if below + count >= wanted and count:
                return least_s + (most_s - least_s) * (wanted - below) / count
            below, least_s = below + count, most_s
        return least_s


class IntervalSample(msgspec.Struct, frozen=True):
    """One interval.

    Attributes:
        interval_s: its length.
        traffic: of all services; requests that name none are in it too.
        commits, decisions: of records on the disk; None in memory.
        disk_free_bytes, memory_bytes: at its end; None = unknown.
    """

    interval_s: float
    traffic: Traffic
    received_bytes: int
    sent_bytes: int
    commits: int | None
    decisions: int | None
    disk_free_bytes: int | None
    memory_bytes: int | None
    connections: int

    def per_s(self, count: float | None) -> float | None:
        return None if count is None else round(count / self.interval_s, 3)


class Ring:
    """The samples of the last hour, the newest last; None where one is missing."""

    def __init__(self, samples_max: int = SAMPLES_MAX) -> None:
        self._samples: deque[IntervalSample | None] = deque(maxlen=samples_max)

    def add(self, sample: IntervalSample) -> None:
        """Add a sample. If it took much longer than a step, the steps before it are missing."""
        missing = min(round(sample.interval_s / STEP_S) - 1, self._samples.maxlen or 0)
        self._samples.extend([None] * max(0, missing))
        self._samples.append(sample)

    def all(self) -> tuple[IntervalSample | None, ...]:
        """Return the samples, the oldest first."""
        return tuple(self._samples)


def traffic_of(counts: ExchangeCounts, operations: Sequence[str] | None = None) -> Traffic:
    """Return what was counted so far of some operations, or of all that clients asked for."""
    names = None if operations is None else frozenset(operations)

    def is_wanted(name: str) -> bool:
        return name not in NOT_COUNTED if names is None else name in names

    answers = [(status, n) for (name, status), n in counts.requests.items() if is_wanted(name)]
    buckets = [one for name, one in counts.times.items() if is_wanted(name)]
    return Traffic(
        sum(n for _, n in answers),
        sum(n for status, n in answers if status >= _REFUSED_FROM),
        tuple(map(sum, zip(*buckets, strict=True))) if buckets else NO_BUCKETS,
    )


def by_service(
    counts: ExchangeCounts, operations: Mapping[str, Sequence[str]]
) -> dict[str, Traffic]:
    """Return what was counted so far of each service.

    Arguments:
        operations: the names of each service's operations.
    """
    return {service: traffic_of(counts, names) for service, names in operations.items()}
