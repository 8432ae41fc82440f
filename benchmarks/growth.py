"""The change of costs, memory and restart times as blobs accumulate."""

import re
import statistics
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.comparison import Slice, measure, median
from benchmarks.endpoint import BLOCK_BLOB, Endpoint, UnexpectedAnswer
from benchmarks.engine import CONNECTION, CYCLE, SCATTERED, Load, Step
from benchmarks.results import Row, ratio_of, row
from benchmarks.sampling import PeakPss, peak_rss_mib, pss_mib
from benchmarks.servers import AZURITE, STRONGROOM, Server
from benchmarks.turns import Turns
from benchmarks.workloads import KIB, make_container, put_blob, upload

PAGE: Final = 5000
FEW: Final = 1000
_CONTAINER: Final = "/many"
_BATCH: Final = 50_000
_RESTARTS: Final = 3
_TRANSFERS: Final = 32
_TRANSFER_LIMIT_S: Final = 900
_MB_OF_MIB: Final = 1.048576


def fill(server: Server, count: int) -> None:
    """Put `count` blobs of 1 KiB into a container of their own."""
    make_container(server.endpoint, _CONTAINER)
    for start in range(0, count, _BATCH):
        size = min(_BATCH, count - start)
        step = put_blob(server.endpoint, f"{_CONTAINER}/b{start:09}-{CYCLE}")
        server.endpoint.fill(step, size, connections=32)


def listing(servers: Sequence[Server], blobs: int, turns: Turns) -> Iterator[Row]:
    """Measure a page of 5,000 of the `blobs` that the servers hold, in alternation."""
    found: dict[str, list[Slice]] = {server.name: [] for server in servers}
    for server in turns.of(servers):
        with server.awake():
            load = page_load(server.endpoint, turns.slice_s)
            found[server.name].append(measure(server, server.endpoint, load, lambda report: 0.0))
    ours, theirs = (found.get(name, []) for name in (STRONGROOM, AZURITE))
    a, b = (median(slices, lambda one: one.p50_ms) for slices in (ours, theirs))
    times = tuple(tuple(one.p50_ms for one in slices) for slices in (ours, theirs))
    notes = [_cpu(name, slices) for name, slices in (("", ours), ("Azurite ", theirs)) if slices]
    yield row(
        "list a page of 5,000", 1, "ms", a, b, ratio=ratio_of(times[1], times[0]),
        slices=(times[0], times[1]),
        note=", ".join([f"of {blobs:,} blobs", *notes]),
    )  # fmt: skip


def page_load(endpoint: Endpoint, slice_s: float) -> Load:
    """Return the load of one client that lists a page of 5,000 again and again."""
    path = f"{_CONTAINER}?restype=container&comp=list&maxresults={PAGE}"
    return Load((endpoint.step("page", "GET", path, 200),), 1, slice_s, slice_s / 4)


def _cpu(name: str, slices: Sequence[Slice]) -> str:
    return f"{name}CPU {median(slices, lambda one: one.cpu_ms):.1f} ms"


def restarts(servers: Sequence[Server], blobs: int) -> Iterator[Row]:
    """Measure the time from exec to the first correct answer after SIGKILL, with `blobs` stored."""
    times: dict[str, tuple[float, ...]] = {}
    for server in servers:
        found = []
        for _ in range(_RESTARTS):
            server.stop(kill=True)
            found.append(round(server.start(), 3))
        server.pause()
        times[server.name] = tuple(found)
    ours, theirs = (times.get(name, ()) for name in (STRONGROOM, AZURITE))
    a, b = (statistics.median(found) if found else None for found in (ours, theirs))
    yield row(
        "restart", 0, "s", a, b, ratio=ratio_of(theirs, ours), slices=(ours, theirs),
        note=f"{blobs:,} blobs, after SIGKILL",
    )  # fmt: skip


def scale(few: Server, many: Server, blobs: int, turns: Turns) -> Iterator[Row]:
    """Measure GET and PUT with 1,000 blobs and with `blobs`, on two servers of one kind in
    alternation.

    The PUT overwrites, so the number of blobs does not change. Ratios are of CPU time per request,
    which the disk's noise does not affect; the times are in the note.
    """
    for server, count in ((few, FEW), (many, blobs)):
        with server.awake():
            fill(server, count)
    for name, make in (("GET", _get), ("PUT", _overwrite)):
        sides = (_Side(few, FEW, []), _Side(many, blobs, []))
        for side in sides:
            side.turn(make, turns.warm_up_s)
        for side in turns.of(sides):
            side.slices.append(side.turn(make, turns.slice_s))
        yield _scale_row(few.name, name, blobs, (sides[0].slices, sides[1].slices))


@dataclass(frozen=True, slots=True)
class _Side:
    """A server, the number of its blobs, and its measurements."""

    server: Server
    blobs: int
    slices: list[Slice]

    def turn(self, make: Callable[[Endpoint], Step], slice_s: float) -> Slice:
        endpoint = self.server.endpoint
        modulo = min(self.blobs, _BATCH)
        load = Load((make(endpoint),), 1, slice_s, slice_s / 4, modulo=modulo)
        with self.server.awake():
            return measure(self.server, endpoint, load, lambda report: report.steps[0].count)


def _scale_row(server: str, name: str, blobs: int, found: tuple[list[Slice], list[Slice]]) -> Row:
    costs = tuple(tuple(round(one.cpu_ms, 4) for one in slices) for slices in found)
    small, large = (statistics.median(each) for each in costs)
    p50 = [median(slices, lambda one: one.p50_ms) for slices in reversed(found)]
    rate = [median(slices, lambda one: one.rate) for slices in reversed(found)]
    note = (
        f"{blobs:,} : {FEW:,} blobs; CPU {large:.3f} : {small:.3f} ms, "
        f"p50 {p50[0]:.3f} : {p50[1]:.3f} ms, {rate[0]:.0f} : {rate[1]:.0f} req/s"
    )
    values = (large, None) if server == STRONGROOM else (None, large)
    return row(
        f"{name}, many blobs : few", 1, "CPU ms/req", *values,
        ratio=ratio_of(costs[1], costs[0]), slices=(costs[1], costs[0]), note=note,
    )  # fmt: skip


def _get(endpoint: Endpoint) -> Step:
    return endpoint.step("get", "GET", f"{_CONTAINER}/b{0:09}-0000{SCATTERED}", 200)


def _overwrite(endpoint: Endpoint) -> Step:
    path = f"{_CONTAINER}/b{0:09}-0000{SCATTERED}"
    return endpoint.step("put", "PUT", path, 201, headers=BLOCK_BLOB, body=KIB)


def memory(server: Server, blobs: int) -> Iterator[Row]:
    """Measure the peak memory of a new server that is filled, listed completely, and moves 32 x 64
    MiB.

    It must be awake.
    """
    with PeakPss(server.pid) as peak:
        fill(server, blobs)
        filled = pss_mib(server.pid)
        pages, names = _walk(server.endpoint)
        if names < blobs:
            raise UnexpectedAnswer(f"the listing shows {names} of {blobs} blobs")
        listed = pss_mib(server.pid)
        _transfer(server.endpoint, upload(server.endpoint, f"{_CONTAINER}/u{CONNECTION}"))
        uploaded = pss_mib(server.pid)
        download = server.endpoint.step("get", "GET", f"{_CONTAINER}/u{CONNECTION}", 200)
        _transfer(server.endpoint, (download,))
    highest = peak_rss_mib(server.pid) * _MB_OF_MIB
    values = (highest, None) if server.name == STRONGROOM else (None, highest)
    yield row(
        "peak memory", 0, "MB", *values,
        note=(
            f"VmHWM; {blobs:,} blobs, listing of {pages} pages, {_TRANSFERS} x 64 MiB up and "
            f"down; highest Pss {peak.mib:.0f} MiB, filled {filled:.0f}, listed {listed:.0f}, "
            f"uploaded {uploaded:.0f}"
        ),
    )  # fmt: skip


def _transfer(endpoint: Endpoint, steps: tuple[Step, ...]) -> None:
    """Run the steps once on each of 32 connections, all at once."""
    load = Load(steps, _TRANSFERS, _TRANSFER_LIMIT_S, cycles_max=_TRANSFERS)
    report = endpoint.load(load)
    if report.bad or report.io_errors or report.cycles != _TRANSFERS:
        raise UnexpectedAnswer(f"{report.cycles} of {_TRANSFERS} transfers, {report.bad} bad")


def _walk(endpoint: Endpoint) -> tuple[int, int]:
    """List the whole container, and return the number of pages and of blobs."""
    pages, names, marker = 0, 0, ""
    while pages == 0 or marker:
        path = f"{_CONTAINER}?restype=container&comp=list&maxresults={PAGE}"
        if marker:
            path += f"&marker={urllib.parse.quote(marker, safe='')}"
        status, body = endpoint.call("GET", path)
        if status != 200:
            raise UnexpectedAnswer(f"listing: {status} {body[:200]!r}")
        pages, names = pages + 1, names + body.count(b"<Name>")
        found = re.search(rb"<NextMarker>([^<]+)</NextMarker>", body)
        marker = found.group(1).decode() if found else ""
    return pages, names
