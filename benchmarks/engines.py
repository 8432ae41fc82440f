"""The engines beside each other: the same server on its embedded engine and over PostgreSQL.

The embedded one is paused in the other's turns. The gateway of PostgreSQL is not, since its
heartbeats would be late; without requests it uses next to nothing. Two gateways beside each other
are compared with one of them alone, by the CPU time of a request.
"""

import itertools
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.apart import bodies_apart
from benchmarks.comparison import Slice, cost, measure, median, rates
from benchmarks.engine import Report
from benchmarks.growth import PAGE, fill, page_load
from benchmarks.postgres import PostgresServer
from benchmarks.results import Row, ratio_of, row
from benchmarks.sampling import cpu_s
from benchmarks.servers import Command, Server, strongroom_command
from benchmarks.table_workloads import TABLES
from benchmarks.turns import Turns
from benchmarks.workloads import WORKLOADS, Workload

EMBEDDED: Final = "embedded"
POSTGRES: Final = "PostgreSQL"
CONNECTIONS: Final = 32
_LISTED: Final = 5_000
_EACH: Final = 16
_MEASURED: Final = ("GET 1 KiB", "PUT 1 KiB", "lease cycle", "insert entity")


class Gateway(Server):
    """A server over a PostgreSQL, which is not paused."""

    def pause(self) -> None:
        """Its heartbeats go on."""

    @contextmanager
    def awake(self) -> Iterator[None]:
        """It always is."""
        yield


def engines(folder: Path, turns: Turns) -> Iterator[Row]:
    """Yield the rows of requests and of a listing, with the cost of each process."""
    database = PostgresServer(folder)
    try:
        embedded = Server(EMBEDDED, strongroom_command, folder / "embedded")
        gateway = Gateway(POSTGRES, _over(database.url), folder / "gateway")
        try:
            gateway.start()
            embedded.start()
            embedded.pause()
            workloads = [one for one in (*WORKLOADS, *TABLES) if one.name in _MEASURED]
            for workload in workloads:
                yield _compared(embedded, gateway, database, workload, turns)
            yield _listed(embedded, gateway, turns)
        finally:
            gateway.discard()
            embedded.discard()
        yield from _beside_each_other(database.url, folder, turns)
        yield from bodies_apart(database.url, folder, turns)
    finally:
        database.stop()


def _over(url: str, *flags: str) -> Command:
    def command(data: Path, ports: list[int]) -> list[str]:
        return [*strongroom_command(data, ports), "--store", url, *flags]

    return command


def _beside_each_other(url: str, folder: Path, turns: Turns) -> Iterator[Row]:
    """Yield what a request costs, at one gateway or at two with as many connections each. With
    fewer connections a gateway has fewer requests in one statement, so each costs more."""
    together = _over(url, "--store-schema", "together", "--store-mode", "active-active")
    both = [Gateway(f"gateway {number}", together, folder / str(number)) for number in (1, 2)]
    try:
        for gateway in both:
            gateway.start()
        for workload in (*WORKLOADS, *TABLES):
            if workload.name in _MEASURED:
                yield _shared_out(both, workload, turns)
    finally:
        for gateway in both:
            gateway.discard()


def _shared_out(both: Sequence[Gateway], workload: Workload, turns: Turns) -> Row:
    numbers = itertools.count(1)
    workload.prepare(both[0].endpoint_of(workload.service))
    ways: tuple[tuple[Gateway, ...], ...] = ((both[0],), tuple(both))
    for gateways in ways:
        _costs(gateways, workload, numbers, turns.warm_up_s)
    found: dict[int, list[float]] = {len(gateways): [] for gateways in ways}
    for gateways in turns.of(ways):
        found[len(gateways)].append(_costs(gateways, workload, numbers, turns.slice_s))
    one, two = found[1], found[2]
    return row(
        f"CPU of {workload.name} over two gateways", _EACH, "ms", statistics.median(two),
        statistics.median(one), ratio=ratio_of(two, one), slices=(tuple(two), tuple(one)),
        other="one gateway",
    )  # fmt: skip


def _costs(
    gateways: Sequence[Gateway], workload: Workload, numbers: Iterator[int], slice_s: float
) -> float:
    """Return the CPU time of all gateways for one request, in milliseconds."""
    loads = [
        (gateway, workload.load(
            gateway.endpoint_of(workload.service), next(numbers), _EACH, slice_s
        ))
        for gateway in gateways
    ]  # fmt: skip
    before = [cpu_s(gateway.pid) for gateway in gateways]
    with ThreadPoolExecutor() as threads:
        reports = list(
            threads.map(lambda one: one[0].endpoint_of(workload.service).load(one[1]), loads)
        )
    used_s = sum(cpu_s(gateway.pid) for gateway in gateways) - sum(before)
    return used_s * 1000 / max(sum(report.requests for report in reports), 1)


def _compared(
    embedded: Server, gateway: Server, database: PostgresServer, workload: Workload, turns: Turns
) -> Row:
    numbers = itertools.count(1)
    found: dict[str, list[Slice]] = {EMBEDDED: [], POSTGRES: []}
    database_ms: list[float] = []
    for server in (embedded, gateway):
        with server.awake():
            workload.prepare(server.endpoint_of(workload.service))
            _turn(server, workload, next(numbers), turns.warm_up_s)
    for server in turns.of((embedded, gateway)):
        before = cpu_s(database.pid)
        one, requests = _turn(server, workload, next(numbers), turns.slice_s)
        found[server.name].append(one)
        if server is gateway:
            database_ms.append((cpu_s(database.pid) - before) * 1000 / max(requests, 1))
    return _row(workload, found, sorted(database_ms)[len(database_ms) // 2])


def _turn(server: Server, workload: Workload, number: int, slice_s: float) -> tuple[Slice, int]:
    with server.awake():
        endpoint = server.endpoint_of(workload.service)
        counted = 0

        def rate(report: Report) -> float:
            nonlocal counted
            counted = report.requests
            return workload.rate(report)

        load = workload.load(endpoint, number, CONNECTIONS, slice_s)
        return measure(server, endpoint, load, rate), counted


def _row(workload: Workload, found: dict[str, list[Slice]], database_ms: float) -> Row:
    ours, theirs = found[POSTGRES], found[EMBEDDED]
    ratio = ratio_of([one.rate for one in ours], [one.rate for one in theirs])
    note = f"{cost('', ours)}, the database {database_ms:.3f} ms, {cost('embedded ', theirs)}"
    return row(
        f"{workload.name} over PostgreSQL", CONNECTIONS, workload.unit,
        median(ours, lambda one: one.rate), median(theirs, lambda one: one.rate),
        ratio=ratio, slices=(rates(ours), rates(theirs)), note=note, other=EMBEDDED,
    )  # fmt: skip


def _listed(embedded: Server, gateway: Server, turns: Turns) -> Row:
    """The time of a page of 5,000 over PostgreSQL, as a multiple of the embedded engine's."""
    found: dict[str, list[float]] = {EMBEDDED: [], POSTGRES: []}
    for server in (embedded, gateway):
        with server.awake():
            fill(server, _LISTED)
    for server in turns.of((embedded, gateway)):
        with server.awake():
            load = page_load(server.endpoint, turns.slice_s)
            one = measure(server, server.endpoint, load, lambda report: 0.0)
            found[server.name].append(one.p50_ms)
    ours, theirs = (sorted(found[name]) for name in (POSTGRES, EMBEDDED))
    return row(
        f"list a page of {PAGE:,} over PostgreSQL", 1, "ms", ours[len(ours) // 2],
        theirs[len(theirs) // 2], ratio=ratio_of(found[POSTGRES], found[EMBEDDED]),
        slices=(tuple(found[POSTGRES]), tuple(found[EMBEDDED])), other=EMBEDDED,
    )  # fmt: skip
