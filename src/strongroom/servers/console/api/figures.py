"""`overview` and `history`: the samples as documents.

Lives here: the way from samples to documents, for a scope. Must not live here: sampling
(sampler.py), what a viewer may see of a document (marks.py).

The whole server's figures are counted. Those of one account among several are read from the tail of
requests when somebody asks, so that no request pays for them. They go back as far as the tail does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec

from strongroom.auth.accounts import Account
from strongroom.servers.console.api.documents import (
    AccountFigures,
    DiskFigures,
    JobFigures,
    LoggedError,
    Overview,
    SampledHour,
    ServerFigures,
    ServiceFigures,
    ServicePort,
)
from strongroom.servers.console.marks import OWN, SERVER
from strongroom.servers.console.sampler import Sampler
from strongroom.servers.console.samples import STEP_S, IntervalSample, Traffic
from strongroom.servers.console.tail_figures import TailRecord, TailSamples, tail_samples
from strongroom.servers.console.viewers import Viewer
from strongroom.values import StoreFacts, datetime_of

_MEDIAN, _P99 = 0.5, 0.99
Tail = Callable[[int], Iterator[tuple[int, TailRecord]]]
"""Returns the requests that are kept in short, after a number, the oldest first."""


class ServerState(msgspec.Struct, frozen=True):
    """What an operator sees beside counters.

    Attributes:
        data: the data directory; None = in memory.
        connections_max: how many connections there are places for.
        is_ready: whether new requests are accepted.
        last_errors: returns the newest errors of the log, the newest first.
    """

    data: str | None
    connections_max: int
    is_ready: Callable[[], bool]
    last_errors: Callable[[], tuple[LoggedError, ...]]


class Figures(msgspec.Struct, frozen=True):
    """Makes the documents.

    Attributes:
        ports: where clients of the services connect.
        tail: the requests that are kept; None = none are.
    """

    sampler: Sampler
    ports: Callable[[], tuple[ServicePort, ...]]
    accounts: Callable[[], tuple[Account, ...]]
    state: ServerState
    tail: Tail | None = None

    def overview(self, viewer: Viewer) -> Overview:
        sampler = self.sampler
        samples = sampler.ring.all()
        newest = samples[-1] if samples else None
        services: dict[str, Traffic] = sampler.services
        if OWN in viewer.visible and not viewer.is_operator:
            services = self._of_account(viewer.account, 1).services
        return Overview(
            time=_time(sampler.ended or sampler.started),
            interval_s=0.0 if newest is None else round(newest.interval_s, 3),
            scope=viewer.scope,
            services=tuple(_service(one, newest, services.get(one.name)) for one in self.ports()),
            server=self._server(newest) if SERVER in viewer.visible else None,
        )

    def hour(self, viewer: Viewer) -> SampledHour:
        samples = self.sampler.ring.all()
        end = _time(self.sampler.ended or self.sampler.started)
        if not viewer.is_operator:
            own = self._of_account(viewer.account, len(samples))
            return _hour_of_account(end, own.steps)
        return SampledHour(
            end_time=end,
            step_s=STEP_S,
            scope=viewer.scope,
            requests_per_s=_series(samples, lambda one: one.per_s(one.traffic.requests)),
            errors_per_s=_series(samples, lambda one: one.per_s(one.traffic.errors)),
            latency_p50_s=_series(samples, lambda one: one.traffic.latency_s(_MEDIAN)),
            latency_p99_s=_series(samples, lambda one: one.traffic.latency_s(_P99)),
            received_bytes_per_s=_series(samples, lambda one: one.per_s(one.received_bytes)),
            sent_bytes_per_s=_series(samples, lambda one: one.per_s(one.sent_bytes)),
            commits_per_s=_series(samples, lambda one: one.per_s(one.commits)),
            commits_per_sync=_series(samples, _decisions_per_sync),
            disk_free_bytes=_series(samples, lambda one: one.disk_free_bytes),
            memory_bytes=_series(samples, lambda one: one.memory_bytes),
            connections=_series(samples, lambda one: one.connections),
        )

    def _of_account(self, account: str, steps: int) -> TailSamples:
        if self.tail is None:
            return TailSamples((None,) * steps, {})
        ended = self.sampler.ended or self.sampler.gauges.wall_ticks()
        return tail_samples((one for _, one in self.tail(0)), account, ended, steps)

    def _server(self, newest: IntervalSample | None) -> ServerFigures:
        sampler, state = self.sampler, self.state
        counts, store = sampler.gauges.counts(), sampler.gauges.store_facts()
        jobs = sampler.gauges.jobs()
        return ServerFigures(
            started_time=_time(sampler.started),
            data=state.data,
            is_ready=state.is_ready(),
            commits_per_s=None if newest is None else newest.per_s(newest.commits),
            commits_per_sync=None if newest is None else _decisions_per_sync(newest),
            memory_bytes=sampler.gauges.memory_bytes() or None,
            connections=counts.connections,
            connections_max=state.connections_max,
            waiters=counts.waiters,
            disk=None if store is None else _disk(store),
            jobs=JobFigures(running=jobs.running, failing=jobs.failing, done=jobs.done),
            last_errors=state.last_errors(),
            accounts=self._accounts(newest),
        )

    def _accounts(self, newest: IntervalSample | None) -> tuple[AccountFigures, ...]:
        figures = []
        for account in self.accounts():
            (step,) = self._of_account(account.name, 1).steps
            figures.append(
                AccountFigures(
                    name=account.name,
                    keys=len(account.keys),
                    requests_per_s=None if step is None else step.requests / STEP_S,
                    errors_per_s=None if step is None else step.errors / STEP_S,
                )
            )
        return tuple(figures)


def _service(
    port: ServicePort, newest: IntervalSample | None, traffic: Traffic | None
) -> ServiceFigures:
    if newest is None or traffic is None:
        return ServiceFigures(name=port.name, url=port.url, port=port.port)
    return ServiceFigures(
        name=port.name,
        url=port.url,
        port=port.port,
        requests_per_s=newest.per_s(traffic.requests),
        errors_per_s=newest.per_s(traffic.errors),
        latency_p50_s=traffic.latency_s(_MEDIAN),
        latency_p99_s=traffic.latency_s(_P99),
    )


def _hour_of_account(end: str, steps: tuple[Traffic | None, ...]) -> SampledHour:
    def series(value: Callable[[Traffic], float | None]) -> tuple[float | None, ...]:
        return tuple(None if one is None else value(one) for one in steps)

    unknown = (None,) * len(steps)
    return SampledHour(
        end_time=end,
        step_s=STEP_S,
        scope="account",
        requests_per_s=series(lambda one: one.requests / STEP_S),
        errors_per_s=series(lambda one: one.errors / STEP_S),
        latency_p50_s=series(lambda one: one.latency_s(_MEDIAN)),
        latency_p99_s=series(lambda one: one.latency_s(_P99)),
        received_bytes_per_s=unknown,
        sent_bytes_per_s=unknown,
    )


def _series(
    samples: tuple[IntervalSample | None, ...], value: Callable[[IntervalSample], float | None]
) -> tuple[float | None, ...]:
    return tuple(None if one is None else value(one) for one in samples)


def _decisions_per_sync(sample: IntervalSample) -> float | None:
    if not sample.commits or sample.decisions is None:
        return None
    return round(sample.decisions / sample.commits, 2)


def _disk(store: StoreFacts) -> DiskFigures:
    ended_s = store.backup_ended_s
    backup = None if ended_s is None else _text(datetime.fromtimestamp(ended_s, UTC))
    return DiskFigures(
        free_bytes=store.free_bytes,
        is_full=store.is_full,
        reserve_bytes=store.ballast_bytes,
        reserve_whole_bytes=store.ballast_whole_bytes,
        records_bytes=store.records_bytes,
        log_bytes=store.log_bytes,
        segments_bytes=store.segments_bytes,
        live_bytes=store.live_bytes,
        damaged_reads=store.damaged_reads,
        last_backup_time=backup,
    )


def _time(ticks: int) -> str:
    return _text(datetime_of(ticks))


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
