"""The figures: differences of counters, quantiles, the ring of an hour, one account's part."""

from __future__ import annotations

import logging
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.servers.console.api.rates import RateLimit
from strongroom.servers.console.log_tail import LINES_MAX, LogTail
from strongroom.servers.console.sampler import Gauges, Sampler
from strongroom.servers.console.samples import (
    NO_BUCKETS,
    SAMPLES_MAX,
    STEP_S,
    IntervalSample,
    Ring,
    Traffic,
)
from strongroom.servers.console.tail_figures import tail_samples
from strongroom.servers.telemetry import BUCKETS_S, ExchangeCounts
from strongroom.values import TICKS_PER_S, JobFacts, StoreFacts

START = 638_000_000_000_000_000


class Counted:
    """A server's counters, which a test moves."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = {}
        self.times: dict[str, list[int]] = {}
        self.bytes = 0
        self.commits = self.decisions = 0
        self.is_disk_gone = False
        self.now = START

    def add(self, operation: str, status: int, bucket: int, count: int = 1) -> None:
        self.requests[operation, status] = self.requests.get((operation, status), 0) + count
        self.times.setdefault(operation, list(NO_BUCKETS))[bucket] += count
        self.bytes += 10 * count

    def counts(self) -> ExchangeCounts:
        times = {name: tuple(one) for name, one in self.times.items()}
        return ExchangeCounts(dict(self.requests), times, self.bytes, 2 * self.bytes, 3, 1)

    def store(self) -> StoreFacts:
        if self.is_disk_gone:
            raise OSError("gone")
        commits = ((0.001, 0), (float("inf"), self.commits))
        return StoreFacts(
            5, False, 1, 1, 1, 1, 1, 1, commits, 0.0, (), 0.0, 0, None, self.decisions
        )

    def sampler(self) -> Sampler:
        names = {"blob": ["Put Blob"], "queue": ["Put Message"]}
        gauges = Gauges(
            self.counts, self.store, lambda: JobFacts(0, 0, 0), lambda: 7, lambda: self.now, names
        )
        return Sampler(gauges)


def test_a_sample_is_what_was_counted_since_the_last() -> None:
    counted = Counted()
    counted.add("Put Blob", 201, 3, 100)
    sampler = counted.sampler()
    sampler.begin(0.0)
    counted.add("Put Blob", 201, 3, 8)
    counted.add("Put Blob", 409, 4, 2)
    counted.add("Put Message", 201, 0, 5)
    counted.add("none", 403, 0, 5)
    counted.add("console", 200, 0, 1000)
    counted.add("own endpoint", 200, 0, 1000)
    counted.commits, counted.decisions = 4, 10
    sampler.take(STEP_S)
    (sample,) = sampler.ring.all()
    assert sample is not None
    assert (sample.traffic.requests, sample.traffic.errors) == (20, 7)
    assert sample.per_s(sample.traffic.requests) == 4.0
    assert (sample.commits, sample.decisions) == (4, 10)
    assert sample.sent_bytes == 2 * sample.received_bytes == 2 * 10 * 2020
    assert (sample.disk_free_bytes, sample.memory_bytes, sample.connections) == (5, 7, 3)
    assert sampler.services["blob"].requests == 10
    assert sampler.services["queue"].errors == 0
    sampler.take(2 * STEP_S)
    assert sampler.ring.all()[-1] == IntervalSample(STEP_S, Traffic(), 0, 0, 0, 0, 5, 7, 3)


def test_a_disk_that_cannot_be_asked_leaves_a_gap() -> None:
    counted = Counted()
    sampler = counted.sampler()
    sampler.begin(0.0)
    counted.is_disk_gone = True
    sampler.take(STEP_S)
    counted.is_disk_gone = False
    sampler.take(2 * STEP_S)
    sampler.take(3 * STEP_S)
    free = [one and (one.disk_free_bytes, one.commits) for one in sampler.ring.all()]
    assert free == [(None, None), (5, None), (5, 0)]


def test_the_ring_is_bounded_and_has_gaps() -> None:
    ring = Ring()
    sample = IntervalSample(STEP_S, Traffic(), 0, 0, None, None, None, None, 0)
    for _ in range(SAMPLES_MAX + 5):
        ring.add(sample)
    assert len(ring.all()) == SAMPLES_MAX
    ring.add(IntervalSample(3 * STEP_S + 0.4, Traffic(), 0, 0, None, None, None, None, 0))
    assert [one is None for one in ring.all()[-4:]] == [False, True, True, False]
    ring.add(IntervalSample(1e9, Traffic(), 0, 0, None, None, None, None, 0))
    assert len(ring.all()) == SAMPLES_MAX
    assert not any(ring.all()[:-1])


@given(st.lists(st.integers(0, 50), min_size=len(NO_BUCKETS), max_size=len(NO_BUCKETS)))
def test_a_quantile_lies_in_its_bucket_and_grows(counts: list[int]) -> None:
    traffic = Traffic(sum(counts), 0, tuple(counts))
    found = [traffic.latency_s(quantile) for quantile in (0.01, 0.5, 0.99, 1.0)]
    if not sum(counts):
        assert found == [None] * 4
        return
    known = [one for one in found if one is not None]
    assert known == sorted(known)
    assert len(known) == 4
    assert 0.0 <= known[0] <= known[-1] <= BUCKETS_S[-1]
    last = max(place for place, count in enumerate(counts) if count)
    assert known[-1] == (*BUCKETS_S, BUCKETS_S[-1])[last]


class Kept(NamedTuple):
    began: int
    account: str = "shop"
    status: int = 200
    seconds: float = 0.001
    service: str = "b"


def test_one_accounts_part_is_read_from_the_tail() -> None:
    ended = START + round(100 * TICKS_PER_S)

    def ago(seconds: float) -> int:
        return ended - round(seconds * TICKS_PER_S)

    kept = [
        Kept(ago(12)),
        Kept(ago(11), account="bank"),
        Kept(ago(4), status=404),
        Kept(ago(3), service="q"),
        Kept(ago(2), account="bank"),
        Kept(ago(1), service=""),
        Kept(ended + TICKS_PER_S),
    ]
    found = tail_samples(kept, "shop", ended, 5)
    counts = [None if one is None else (one.requests, one.errors) for one in found.steps]
    assert counts == [None, None, (1, 0), (0, 0), (3, 1)]
    assert found.services["blob"].requests == 1
    assert found.services["queue"].requests == 1
    assert tail_samples([], "shop", ended, 2).steps == (Traffic(), Traffic())


def test_the_newest_errors_of_the_log_are_kept_while_it_is_open() -> None:
    tail = LogTail()
    logger = logging.getLogger("strongroom.test_console")
    logger.warning("before")
    tail.open()
    try:
        for number in range(LINES_MAX + 3):
            logger.error("number %d %s", number, "x" * 1000)
        logger.info("quiet")
    finally:
        tail.close()
    logger.error("after")
    lines = tail.newest()
    assert len(lines) == LINES_MAX
    assert lines[0].text.startswith(f"number {LINES_MAX + 2} ")
    assert max(len(line.text) for line in lines) == 500
    assert lines[0].level == "error"
    assert lines[0].time.endswith("Z")


@pytest.mark.parametrize("names", [1, 5000])
def test_a_bucket_fills_again_and_there_are_not_too_many(names: int) -> None:
    rates = RateLimit(rate_per_s=10, burst=3)
    assert [rates.permits("a", 0.0) for _ in range(4)] == [True, True, True, False]
    for number in range(names):
        assert rates.permits(f"other {number}", 0.0)
    assert len(rates._buckets) <= 1000
    assert rates.permits("a", 0.1)
