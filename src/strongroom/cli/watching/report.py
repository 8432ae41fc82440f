"""What a running server says of itself, and what of that needs an operator.

Lives here: the facts in the answers of `/.strongroom/health` and `/.strongroom/metrics`, and the
rules by which they become findings. Must not live here: the requests (asking.py), their form on the
terminal (status.py). The names of the metrics are those of servers/telemetry.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

_PREFIX: Final = "strongroom_"
_START: Final = "process_start_time_seconds"


class NotAStrongroom(Exception):
    """The answer comes from another program; the text says what differs."""


class HealthAnswer(msgspec.Struct, frozen=True):
    """The body of `/.strongroom/health`. `disk` is empty, or `full`; `damage` is empty, or
    `found`."""

    status: str
    durable: bool
    version: str
    disk: str = ""
    damage: str = ""


class Measured(msgspec.Struct, frozen=True):
    """The facts of the metrics. A fact that this server does not measure is None.

    A server in memory has none of the disk. `last_backup_s` and `scrubbed_s` are in seconds since
    1970.
    """

    uptime_s: float | None
    connections: int | None
    requests: int | None
    records_bytes: int | None
    log_bytes: int | None
    segments_bytes: int | None
    disk_free_bytes: int | None
    ballast_bytes: int | None
    ballast_whole_bytes: int | None
    damaged_reads: int | None
    last_backup_s: float | None
    scrub_progress: float | None
    scrub_damaged: int | None
    scrubbed_s: float | None
    jobs_running: int | None
    jobs_failing: int | None


class StatusReport(msgspec.Struct, frozen=True):
    """What `strongroom status` found.

    Attributes:
        measured: None = this server does not show its metrics to this machine.
    """

    url: str
    health: HealthAnswer
    measured: Measured | None
    findings: tuple[str, ...]


def health_of(body: bytes) -> HealthAnswer:
    """Return the health that an answer tells. Raises: NotAStrongroom."""
    try:
        return msgspec.json.decode(body, type=HealthAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotAStrongroom(f"its health is not that of a Strongroom server: {error}") from None


def measured_of(text: str, now_s: float) -> Measured:
    """From metrics of Prometheus' format. `now_s` is in seconds since 1970. Raises:
    NotAStrongroom."""
    sums = _sums(text)

    def number(name: str) -> int | None:
        value = sums.get(_PREFIX + name)
        return None if value is None else int(value)

    return Measured(
        uptime_s=_uptime_s(sums.get(_START), now_s),
        connections=number("connections"),
        requests=number("requests_total"),
        records_bytes=number("data_bytes/records"),
        log_bytes=number("data_bytes/log"),
        segments_bytes=number("data_bytes/segments"),
        disk_free_bytes=number("disk_free_bytes"),
        ballast_bytes=number("ballast_bytes"),
        ballast_whole_bytes=number("ballast_whole_bytes"),
        damaged_reads=number("damaged_reads_total"),
        last_backup_s=sums.get(f"{_PREFIX}last_backup_timestamp_seconds"),
        scrub_progress=sums.get(f"{_PREFIX}scrub_progress_ratio"),
        scrub_damaged=number("scrub_damaged"),
        scrubbed_s=sums.get(f"{_PREFIX}scrub_last_completed_timestamp_seconds"),
        jobs_running=number("jobs_running"),
        jobs_failing=number("jobs_failing"),
    )


def findings(
    health: HealthAnswer,
    measured: Measured | None,
    backup_within_s: float | None,
    now_s: float,
) -> Iterator[str]:
    """Yield what needs an operator, a sentence each. `now_s` is in seconds since 1970.

    `backup_within_s` is the age that the last backup may have; None = it is not judged.
    """
    if health.status != "ready":
        yield f"it is not ready: {health.status}"
    if health.disk == "full":
        yield "the disk is full: new data is refused"
    if health.damage == "found":
        yield "the scrub found damage: the log says where, and strongroom doctor names it"
    if measured is not None:
        yield from _measured_findings(measured)
    if backup_within_s is not None:
        yield from _backup_findings(measured, backup_within_s, now_s)


def _measured_findings(measured: Measured) -> Iterator[str]:
    held, whole = measured.ballast_bytes, measured.ballast_whole_bytes
    if held is not None and whole is not None and held < whole:
        yield "the ballast is in use: the disk was full, or is"
    if measured.damaged_reads:
        yield "reads found damaged data: strongroom doctor names it"


def _backup_findings(measured: Measured | None, within_s: float, now_s: float) -> Iterator[str]:
    if measured is None:
        yield "the last backup is not known: the metrics are not shown to this machine"
    elif measured.last_backup_s is None:
        yield "there is no complete backup"
    elif now_s - measured.last_backup_s > within_s:
        yield f"the last backup is {(now_s - measured.last_backup_s) / 3600:.1f} hours old"


def _uptime_s(started_s: float | None, now_s: float) -> float | None:
    return None if started_s is None else max(0.0, now_s - started_s)


def _sums(text: str) -> dict[str, float]:
    """Return the sum of each metric over its labels; for a label `part`, each value by itself."""
    from prometheus_client.parser import text_string_to_metric_families

    sums: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                part = sample.labels.get("part")
                name = sample.name if part is None else f"{sample.name}/{part}"
                sums[name] = sums.get(name, 0.0) + sample.value
    except (ValueError, KeyError, IndexError) as error:
        raise NotAStrongroom(f"its metrics cannot be read: {error}") from None
    return sums
