"""Compares Strongroom with Azurite in alternation; each is paused while the other is measured."""

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks import disk
from benchmarks.endpoint import Endpoint
from benchmarks.engine import Load, Report
from benchmarks.results import UPLOAD_SHARE_OF_DISK, Row, ratio_of, row
from benchmarks.sampling import cpu_s
from benchmarks.servers import AZURITE, STRONGROOM, Server
from benchmarks.turns import Turns
from benchmarks.workloads import Workload


@dataclass(frozen=True, slots=True)
class Slice:
    """The result of one turn of one server: the rate, and the cost of a request to server and
    client."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    bad: int


def measure(
    server: Server, endpoint: Endpoint, load: Load, rate: Callable[[Report], float]
) -> Slice:
    """Measure one turn of a server that is awake."""
    cpu_before = cpu_s(server.pid)
    report = endpoint.load(load)
    cpu_ms = (cpu_s(server.pid) - cpu_before) * 1000 / max(report.requests, 1)
    return Slice(
        rate=rate(report) / report.window_s,
        p50_ms=max(step.p50_ms for step in report.steps),
        p99_ms=max(step.p99_ms for step in report.steps),
        cpu_ms=cpu_ms,
        bad=report.bad + report.io_errors,
    )


def median(slices: Sequence[Slice], field: Callable[[Slice], float]) -> float | None:
    """Return the median over the turns; None if there are none."""
    return statistics.median(map(field, slices)) if slices else None


def throughput(
    servers: Sequence[Server],
    workloads: Sequence[Workload],
    folder: Path,
    turns: Turns,
    connections: Sequence[int],
) -> Iterator[Row]:
    """Yield the rows of workloads; the uploads are also compared with the disk alone."""
    numbers = itertools.count(1)
    for workload in workloads:
        for server in servers:
            with server.awake():
                workload.prepare(server.endpoint_of(workload.service))
        for count in connections:
            for server in servers:
                _turn(server, workload, next(numbers), count, turns.warm_up_s)
            raw: list[float] = []
            found: dict[str, list[Slice]] = {server.name: [] for server in servers}
            slice_s = turns.slice_s * workload.slice_factor
            for server in turns.of(servers):
                if workload.unit == "MB/s":
                    raw.append(disk.append_and_sync_mb_s(folder, slice_s / 4))
                one = _turn(server, workload, next(numbers), count, slice_s)
                found[server.name].append(one)
            yield _throughput_row(workload, count, found, raw)


def _turn(
    server: Server, workload: Workload, number: int, connections: int, slice_s: float
) -> Slice:
    with server.awake():
        endpoint = server.endpoint_of(workload.service)
        load = workload.load(endpoint, number, connections, slice_s)
        return measure(server, endpoint, load, workload.rate)


def _throughput_row(
    workload: Workload,
    connections: int,
    found: dict[str, list[Slice]],
    raw: Sequence[float],
) -> Row:
    ours, theirs = (found.get(name, []) for name in (STRONGROOM, AZURITE))
    a, b = (median(slices, lambda one: one.rate) for slices in (ours, theirs))
    notes = [cost(name, slices) for name, slices in (("", ours), ("Azurite ", theirs)) if slices]
    is_upload = workload.name.endswith("up")
    share = a / statistics.median(raw) if a and raw and is_upload else None
    if raw and is_upload:
        notes.append(f"disk {statistics.median(raw):.0f} MB/s")
    if share is not None:
        notes.append(f"{share:.0%} of it")
    made = row(
        workload.name, connections, workload.unit, a, b,
        ratio=ratio_of([one.rate for one in ours], [one.rate for one in theirs]),
        slices=(rates(ours), rates(theirs)), note=", ".join(notes),
    )  # fmt: skip
    if share is not None and share >= UPLOAD_SHARE_OF_DISK:
        made = msgspec.structs.replace(made, reached=True)
    return made


def rates(slices: Sequence[Slice]) -> tuple[float, ...]:
    """Return the rate of each turn."""
    return tuple(round(one.rate, 2) for one in slices)


def cost(name: str, slices: Sequence[Slice]) -> str:
    """Return the cost of a request as a note, which marks unexpected answers."""
    p50, p99 = median(slices, lambda one: one.p50_ms), median(slices, lambda one: one.p99_ms)
    cpu, bad = median(slices, lambda one: one.cpu_ms), sum(one.bad for one in slices)
    text = f"{name}p50/p99 {p50:.2f}/{p99:.2f} ms, CPU {cpu:.3f} ms"
    return f"{text}, {bad} BAD" if bad else text
