"""A long mixed load on one server, which shows whether its memory grows.

Each minute does the same work, whatever the machine's speed. Blobs, entities and messages are read,
overwritten and deleted. 64 MiB are uploaded and downloaded, a container is listed, and uploads are
aborted. The stored data does not grow from minute to minute, so growing memory is a leak.
"""

import socket
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.endpoint import BLOCK_BLOB, HOST, Endpoint
from benchmarks.engine import Load
from benchmarks.results import Row, row
from benchmarks.sampling import anonymous_mib, rss_mib
from benchmarks.servers import Server
from benchmarks.table_workloads import QUEUES, TABLES, insert_and_delete
from benchmarks.workloads import BLOCK_BYTES, CONTAINER, WORKLOADS, Workload

DEFAULT_MINUTES: Final = 60
HEADINGS: Final = ("minute", "requests", "resident MiB", "of it anonymous MiB", "not expected")
_MINUTE_S: Final = 60.0
_LIMIT_S: Final = 600.0
# The server's caches (records, pages, buffers) are full after so many minutes.
_WARM_MINUTES: Final = 5
_ABORTED: Final = 20
_ABORTED_BYTES: Final = 1_100_000


@dataclass(frozen=True, slots=True)
class Minute:
    """The state at the end of a minute; `requests` counts from the start of the run."""

    number: int
    requests: int
    rss_mib: float
    anonymous_mib: float
    bad: int

    def cells(self) -> tuple[str, ...]:
        """Return the state as texts, in the order of the headings."""
        memory = f"{self.rss_mib:.1f}", f"{self.anonymous_mib:.1f}"
        return (str(self.number), f"{self.requests:,}", *memory, str(self.bad))


# (workload, cycles a minute, connections)
_MIX: Final = (
    ("GET 1 KiB", 3000, 32),
    ("PUT 1 KiB", 1000, 32),
    ("lease cycle", 300, 16),
    ("compare-and-swap", 200, 8),
    ("64 MiB down", 4, 2),
    ("64 MiB up", 4, 2),
    ("point query", 3000, 32),
    ("merge entity", 1000, 32),
    ("filter 1,000 of 5,000 entities", 300, 8),
    ("queue cycle", 500, 16),
)


def soak(server: Server, minutes: int, table: Path) -> Iterator[Row]:
    """Load a server, which must be awake, for so many minutes.

    Arguments:
        table: a file for the table. It is rewritten each minute, so that a run that ends early
            leaves its results.
    """
    workloads = {one.name: one for one in (*WORKLOADS, *TABLES, *QUEUES)}
    mix = [(workloads[name], cycles, connections) for name, cycles, connections in _MIX]
    for workload, _, _ in mix:
        workload.prepare(server.endpoint_of(workload.service))
    found: list[Minute] = []
    requests = bad = 0
    begins = time.monotonic()
    for number in range(1, minutes + 1):
        counts = [_done(server, number, *one) for one in mix]
        counts.append(_listed(server.endpoint))
        counts.append(_entities_come_and_go(server.endpoint_of("table"), number))
        _break_off(server.endpoint)
        requests += sum(count for count, _ in counts)
        bad += sum(wrong for _, wrong in counts)
        time.sleep(max(0.0, begins + number * _MINUTE_S - time.monotonic()))
        memory = rss_mib(server.pid), anonymous_mib(server.pid)
        found.append(Minute(number, requests, *memory, bad))
        print(" | ".join(found[-1].cells()), file=sys.stderr, flush=True)
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text(markdown(found))
    yield _row(found)


def markdown(found: Sequence[Minute]) -> str:
    """Return the minutes as a table."""
    lines = [HEADINGS, tuple("---" for _ in HEADINGS), *(one.cells() for one in found)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def growth_mib_per_hour(found: Sequence[Minute]) -> float:
    """Return the slope of the resident size, without the minutes in which caches fill."""
    warm = found[_WARM_MINUTES:]
    if len(warm) < 2:
        return 0.0
    minutes = [float(one.number) for one in warm]
    return statistics.linear_regression(minutes, [one.rss_mib for one in warm]).slope * 60


def _row(found: Sequence[Minute]) -> Row:
    warm = found[min(_WARM_MINUTES, len(found)) - 1]
    last = found[-1]
    return row(
        "memory over time", 0, "last : warm", last.rss_mib / warm.rss_mib, None,
        slices=(tuple(one.rss_mib for one in found), tuple(float(one.requests) for one in found)),
        note=(
            f"{last.number} minutes, {last.requests:,} requests, {last.bad} not expected; "
            f"{warm.rss_mib:.0f} MiB in minute {warm.number}, {last.rss_mib:.0f} in the last; "
            f"slope {growth_mib_per_hour(found):+.1f} MiB an hour"
        ),
    )  # fmt: skip


def _done(
    server: Server, minute: int, workload: Workload, cycles: int, connections: int
) -> tuple[int, int]:
    """Run so many cycles, and return the numbers of requests and of unexpected answers."""
    endpoint = server.endpoint_of(workload.service)
    # Two turn numbers alternate, so each minute overwrites the data of two minutes before.
    load = workload.load(endpoint, minute % 2, connections, 1.0)
    return _run(endpoint, replace(load, measured_s=_LIMIT_S, warm_up_s=0.0, cycles_max=cycles))


def _run(endpoint: Endpoint, load: Load) -> tuple[int, int]:
    report = endpoint.load(load)
    return report.requests, report.bad + report.io_errors


def _listed(endpoint: Endpoint) -> tuple[int, int]:
    status, _ = endpoint.call("GET", f"{CONTAINER}?restype=container&comp=list")
    return 1, int(status != 200)


def _entities_come_and_go(endpoint: Endpoint, minute: int) -> tuple[int, int]:
    endpoint.make("/Tables", {"Content-Type": "application/json"}, b'{"TableName":"soak"}', "POST")
    return _run(endpoint, Load(insert_and_delete(endpoint, "soak", minute), 16, _LIMIT_S, 0.0, 500))


def _break_off(endpoint: Endpoint) -> None:
    """Abort uploads in the middle of a body, all at once."""
    step = endpoint.step(
        "broken", "PUT", f"{CONTAINER}/broken", 201, headers=BLOCK_BLOB, body=bytes(BLOCK_BYTES)
    )
    with ExitStack() as stack:
        for _ in range(_ABORTED):
            one = socket.create_connection((HOST, endpoint.port), timeout=30)
            stack.callback(one.close)
            one.sendall(step.head + step.body[:_ABORTED_BYTES])
