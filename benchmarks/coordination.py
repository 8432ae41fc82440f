"""The coordination toolkit: lock cycles, a fair queue, ids, gates, and the cost of waiting.

Strongroom is durable and on loopback, with its defaults. The lock of etcd runs in alternation with
it, and each is paused while the other is measured. Without etcd on the machine only the ratios are
missing, and a message says so.
"""

import asyncio
import contextlib
import itertools
import os
import signal
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from benchmarks.endpoint import ACCOUNT, HOST
from benchmarks.etcd import ETCD, MISSING, EtcdServer, etcd_version
from benchmarks.gate_clients import Waiting, waiters
from benchmarks.lock_clients import ClientProcesses, Clients, Cycles, client_processes, quantile
from benchmarks.results import Row, ratio_of, row
from benchmarks.sampling import cpu_s
from benchmarks.servers import Server, ServerFailed
from benchmarks.turns import Turns
from strongroom import coordination
from strongroom.coordination.hints import multicast

_CONTENDERS: Final = 16
_WAITERS: Final = 50
_LOST_SHARE: Final = 0.1
_RANGE: Final = 1_000_000
_TAKEN: Final = 1000
_IDLE_S: Final = 52.0  # about ten renewals of a lock with the default TTL
_BATCH: Final = 200
# Each of sixteen queued clients needs some dozens of cycles. With fewer, one cycle more or less
# would be a large share.
_CONTENDED: Final = Turns(slice_s=5.0, count=3, warm_up_s=1.0)
_WRITE: Final = "Put Blob"
_READ: Final = "Get Blob"
_METRIC: Final = "strongroom_requests_total"


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of all clients in one slice.

    Attributes:
        counts: the cycles of each client in the counted part.
        waits_s: the waits of all clients.
        server_cpu_ms, client_cpu_ms: per cycle.
    """

    counts: tuple[int, ...]
    waits_s: list[float]
    server_cpu_ms: float
    client_cpu_ms: float


def rows(strongroom: Server, folder: Path, turns: Turns) -> Iterator[Row]:
    """Yield every row of this part, measured on a running Strongroom without data.

    Arguments:
        strongroom: it is paused and woken, and left awake at the end.
        folder: for etcd's data.
        turns: the turns of each measure; they are fewer and longer if clients are queued.
    """
    yield from _in_memory(turns)
    with ExitStack() as stack:
        servers: dict[str, Server | EtcdServer] = {"strongroom": strongroom}
        if etcd_version() is None:
            print(MISSING, file=sys.stderr)
        else:
            etcd = servers[ETCD] = EtcdServer(folder / "etcd")
            stack.callback(etcd.stop)
        yield from _cycles(servers, 1, turns)
        yield from _cycles(servers, _CONTENDERS, turns)
    yield from _ids(strongroom, turns)
    yield from _gates(strongroom)
    yield _idle(strongroom)


def store_url(server: Server, **more: str) -> str:
    """Return the URL by which `coordination.connect` connects to a Strongroom of the benchmarks."""
    endpoint = quote(f"http://{HOST}:{server.ports[0]}/{ACCOUNT}", safe="")
    options = "".join(f"&{name}={value}" for name, value in more.items())
    return f"azure://{ACCOUNT}/bench?endpoint={endpoint}{options}"


# Memory


def _in_memory(turns: Turns) -> Iterator[Row]:
    for name, measure in (("", _sync_cycles), (", asyncio", _aio_cycles)):
        found = [measure(turns.slice_s) for _ in range(turns.count)]
        yield row(
            f"lock cycle in memory{name}", 1, "cycles/s",
            statistics.median(rate for rate, _ in found), None,
            slices=(tuple(round(rate) for rate, _ in found), ()),
            note=f"CPU {statistics.median(cpu for _, cpu in found):.4f} ms a cycle",
        )  # fmt: skip


def _sync_cycles(seconds: float) -> tuple[float, float]:
    """Return cycles per second, and CPU ms of each."""
    with coordination.connect("memory://") as client:
        lock = client.lock("bench")

        def some() -> None:
            for _ in range(_BATCH):
                lock.acquire().release()

        return _rate(some, seconds)


def _aio_cycles(seconds: float) -> tuple[float, float]:
    with coordination.connect("memory://") as client, asyncio.Runner() as runner:
        lock = client.aio.lock("bench")

        async def some() -> None:
            for _ in range(_BATCH):
                await (await lock.acquire()).release()

        found = _rate(lambda: runner.run(some()), seconds)
        runner.run(client.aio.close())
        return found


def _rate(some: Callable[[], object], seconds: float, each: int = _BATCH) -> tuple[float, float]:
    """Return how often per second the work of `some` is done, and its CPU time in ms.

    One call of `some` does the work `each` times.
    """
    some()
    began_s, cpu_began_s, count = time.monotonic(), time.process_time(), 0
    while (now_s := time.monotonic()) < began_s + seconds:
        some()
        count += each
    return count / (now_s - began_s), 1000 * (time.process_time() - cpu_began_s) / count


# Locks over the network


def _cycles(servers: dict[str, Server | EtcdServer], count: int, turns: Turns) -> Iterator[Row]:
    """Yield the rows of `count` clients; several clients wait in the queue."""
    if count > 1:
        turns = _CONTENDED
    names, seconds = tuple(servers), turns.slice_s
    with ExitStack() as stack:
        processes: dict[str, ClientProcesses] = {}
        for kind, server in servers.items():
            url = server.url if isinstance(server, EtcdServer) else store_url(server)
            clients = Clients(kind, url, fair=count > 1)
            processes[kind] = stack.enter_context(client_processes(clients, count))
        stack.callback(_wake, servers)
        for server in servers.values():
            server.pause()
        found: dict[str, list[Turn]] = {kind: [] for kind in servers}
        for kind in names:
            _turn(servers[kind], processes[kind], turns.warm_up_s)
        for kind in turns.of(names):
            found[kind].append(_turn(servers[kind], processes[kind], seconds))
    ours, theirs = found["strongroom"], found.get(ETCD, [])
    yield _rate_row(count, seconds, ours, theirs)
    if count > 1:
        a, b = _share(ours), _share(theirs)
        yield row(
            "fair lock, max : min share", count, "", a, b, other=ETCD,
            note=f"most and fewest cycles of a client: {_extremes(ours)}"
            + (f", {ETCD} {_extremes(theirs)}" if theirs else ""),
        )  # fmt: skip
        a, b = _wait_ms(ours, 0.99), _wait_ms(theirs, 0.99)
        medians = f"median {_wait_ms(ours, 0.5):.3g} ms"
        if theirs:
            medians += f", {ETCD} {_wait_ms(theirs, 0.5):.3g} ms"
        each = ([_wait_ms([one], 0.99) or 0.0 for one in side] for side in (theirs, ours))
        yield row(
            "fair lock, wait (p99)", count, "ms", a, b, ratio=ratio_of(*each), other=ETCD,
            note=medians,
        )  # fmt: skip


def _wake(servers: dict[str, Server | EtcdServer]) -> None:
    for server in servers.values():
        with contextlib.suppress(ServerFailed):
            os.kill(server.pid, signal.SIGCONT)


def _turn(server: Server | EtcdServer, members: ClientProcesses, seconds: float) -> Turn:
    with server.awake():
        before_s = cpu_s(server.pid)
        found: list[Cycles] = members.run(seconds)
        server_cpu_s = cpu_s(server.pid) - before_s
    all_count = max(1, sum(one.all_count for one in found))
    return Turn(
        counts=tuple(len(one.waits_s) for one in found),
        waits_s=list(itertools.chain.from_iterable(one.waits_s for one in found)),
        server_cpu_ms=1000 * server_cpu_s / all_count,
        client_cpu_ms=1000 * sum(one.cpu_s for one in found) / all_count,
    )


def _rate_row(count: int, seconds: float, ours: list[Turn], theirs: list[Turn]) -> Row:
    a, b = ([sum(one.counts) / seconds for one in turns] for turns in (ours, theirs))
    middle = statistics.median(a)
    other = statistics.median(b) if b else None
    notes = [
        f"{name}p50/p99 {_wait_ms(turns, 0.5):.2f}/{_wait_ms(turns, 0.99):.2f} ms, CPU a cycle: "
        f"server {statistics.median(one.server_cpu_ms for one in turns):.3f} ms, "
        f"clients {statistics.median(one.client_cpu_ms for one in turns):.3f} ms"
        for name, turns in (("acquire ", ours), (f"{ETCD} ", theirs)) if turns
    ]  # fmt: skip
    slices = tuple(round(rate, 1) for rate in a), tuple(round(rate, 1) for rate in b)
    return row(
        "lock cycle" if count == 1 else "fair lock cycle", count, "cycles/s", middle, other,
        ratio=ratio_of(a, b), slices=slices, note="; ".join(notes), other=ETCD,
    )  # fmt: skip


def _each(turns: list[Turn]) -> list[int]:
    """Return how many cycles each client had, in all turns."""
    return [sum(counts) for counts in zip(*(one.counts for one in turns), strict=True)]


def _share(turns: list[Turn]) -> float | None:
    each = _each(turns)
    return max(each) / max(1, min(each)) if each else None


def _extremes(turns: list[Turn]) -> str:
    each = _each(turns)
    return f"{max(each)} and {min(each)}"


def _wait_ms(turns: list[Turn], share: float) -> float | None:
    waits_s = [wait for one in turns for wait in one.waits_s]
    return 1000 * quantile(waits_s, share) if waits_s else None


# Ids


def _ids(server: Server, turns: Turns) -> Iterator[Row]:
    with coordination.connect(store_url(server)) as client:
        for name, each in (("take(1000)", _TAKEN), ("next_id()", 1)):
            ids = client.ids(f"bench-{each}", batch=_RANGE)
            taken, before = 0, _requests(server, _WRITE)

            def some() -> None:
                nonlocal taken
                for _ in range(_BATCH):
                    ids.take(each) if each > 1 else ids.next_id()  # noqa: B023 - run at once
                taken += _BATCH * each  # noqa: B023

            found = [_rate(some, turns.slice_s, _BATCH * each) for _ in range(turns.count)]
            writes, needed = round(_requests(server, _WRITE) - before), -(-taken // _RANGE)
            yield row(
                f"ids, {name}", 1, "ids/s", statistics.median(rate for rate, _ in found), None,
                slices=(tuple(round(rate) for rate, _ in found), ()),
                note=f"{taken:,} ids, {writes} writes for ceil(ids / range) = {needed}"
                + ("" if writes == needed else ", BAD"),
            )  # fmt: skip


def _requests(server: Server, operation: str) -> float:
    """Return how many requests of one operation the server has answered, by its own metric."""
    url = f"http://{HOST}:{server.ports[0]}/.strongroom/metrics"
    with urllib.request.urlopen(url) as answer:
        lines = answer.read().decode().splitlines()
    wanted = f'{_METRIC}{{operation="{operation}"'
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(wanted))


# Waiting


def _gates(server: Server) -> Iterator[Row]:
    """Yield the time from `open` until a waiting process proceeds: by the store's watch, and by
    lossy hints."""
    found_ms = _opened_ms(server, Waiting(store_url(server), "gate", "watched"))
    yield _gate_row("gate, open to let through", found_ms)
    polled = store_url(server, wait="0")
    lossy = Waiting(polled, "gate", "hinted", bus=store_url(server), lost_share=_LOST_SHARE)
    found_ms = _opened_ms(server, lossy)
    yield _gate_row("gate, 10 % of hints lost", found_ms)
    yield row(
        "gate, 10 % of hints lost: stranded", _WAITERS, "processes",
        _WAITERS - len(found_ms), None,
        note="the flag lies in a store that is polled, each listener misses a tenth of the hints",
    )  # fmt: skip


def _opened_ms(server: Server, waiting: Waiting) -> list[float]:
    with (
        waiters(waiting, _WAITERS) as crowd_of_waiters,
        coordination.connect(waiting.url) as client,
    ):
        hints = multicast(waiting.bus) if waiting.bus else None
        gate = client.gate(waiting.name, hints)
        gate.show()  # connects
        opened_s = time.monotonic()
        gate.open()
        return [1000 * (when_s - opened_s) for when_s in crowd_of_waiters.released_s()]


def _gate_row(name: str, found_ms: list[float]) -> Row:
    note = f"p99 {quantile(found_ms, 0.99):.1f} ms, {len(found_ms)} of {_WAITERS} processes"
    return row(name, _WAITERS, "ms", quantile(found_ms, 0.5), None, note=note)


def _idle(server: Server) -> Row:
    """Measure the cost of processes that wait for a lock while its holder renews it."""
    with coordination.connect(store_url(server)) as client, client.lock("idle"):
        waiting = Waiting(store_url(server), "lock", "idle", wait_s=2 * _IDLE_S)
        with waiters(waiting, _CONTENDERS):
            before, cpu_before_s = _requests(server, _READ), cpu_s(server.pid)
            time.sleep(_IDLE_S)
            rate = (_requests(server, _READ) - before) / _IDLE_S / _CONTENDERS
            cpu_share = (cpu_s(server.pid) - cpu_before_s) / _IDLE_S
    note = f"TTL 15 s, each renewal wakes them; server {cpu_share:.2%} of a core"
    return row("idle waiter", _CONTENDERS, "req/s", rate, None, note=note)
