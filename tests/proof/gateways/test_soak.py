"""The soak: two gateways serve all services for an hour, and one of them is killed every minute.

The other one lives as long as the soak does, and its memory must not grow. That of the killed one
is compared at equal ages. Nothing acknowledged is lost. Each minute's data are deleted after it. At
the end no record, no job and no body of them is left. STRONGROOM_PROOF_SOAK_MINUTES is another
time.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from strongroom.engines.postgres.assembly import init_bodies
from tests.conformance.blobs import put
from tests.conformance.client import HOST
from tests.conformance.sources import Sources
from tests.effort import scaled
from tests.engines.postgres.patience import until
from tests.engines.postgres.servers import quick_server
from tests.proof.gateways.leases import Leases
from tests.proof.gateways.long_bodies import KINDS, LongBodies
from tests.proof.gateways.messages import Messages
from tests.proof.gateways.results import Result, commit, keep
from tests.proof.gateways.serving import Serving
from tests.proof.gateways.watching import Tables, Watch, left_in, tables, told, unowned
from tests.proof.gateways.ways import Way, Work
from tests.proof.postgres.http_load import ALL_KINDS, HttpLoad
from tests.proof.postgres.http_store import made

PART: Final = "soak"
MINUTES: Final = int(os.environ.get("STRONGROOM_PROOF_SOAK_MINUTES", scaled(60)))
_MINUTE_S: Final = 60.0
_KILLED: Final = 1  # of the two
_KILLED_AFTER_S: Final = (4.0, 20.0)
_LOAD_S: Final = 45.0
_PAUSE_S: Final = 0.15
_KEPT: Final = "5m"
_END_S: Final = 300.0
_LONG_S: Final = 8 * 24 * 3600.0  # messages, and uploads that were given up, have expired
_EQUAL_AGES_S: Final = (15.0, 35.0)
_GROWTH_MAX: Final = 1.1
_SLACK: Final = {
    "memory of the lasting gateway": 8 * 1024 * 1024,
    "memory of the killed gateway": 8 * 1024 * 1024,
    "open files": 16,
}
_DATA: Final = frozenset("abcefglmnqtvj")
"""The keyspaces that are empty once all containers, queues, tables and shares are deleted."""


@contextmanager
def soaked(folder: Path, shared: Path) -> Iterator[tuple[str, Serving]]:
    """Two gateways of one store with bodies apart."""
    with quick_server(folder) as server:
        with Serving([server.url], folder):
            pass  # it has made the store
        asyncio.run(init_bodies(server.url, "strongroom", f"file://{shared}"))
        flags = ["--bodies", f"file://{shared}", "--keep-dropped", _KEPT]
        flags += ["--copy-source-host", HOST]
        with Serving([server.url] * 2, folder, flags=flags) as serving:
            yield server.url, serving


class Minute:
    """The load of one minute, with a container, a queue, a table and a share of its own."""

    def __init__(self, way: Way, sources: Sources, seed: int) -> None:
        self._way, self._name = way.patient(), f"soak{seed}"
        clients = self._way.clients()
        made(clients.blobs.put(f"/{self._name}?restype=container"))
        made(clients.files.put(f"/{self._name}?restype=share"))
        made(clients.queues.put(f"/{self._name}"))
        targets = [f"/{self._name}/leased{one}" for one in range(2)]
        for target in targets:
            put(clients.blobs, target)
        self.bodies = LongBodies(self._name, sources, seed)
        leases, messages = Leases(targets), Messages(self._name)
        strict = self._way.strict()
        acts = [self.bodies.client(kind, 0, strict.clients()) for kind in KINDS]
        acts += [leases.client(one, seed, strict.clients().blobs) for one in range(2)]
        acts += [messages.client(one, seed, strict.clients().queues) for one in range(2)]
        self.load = HttpLoad(self._way, f"l{self._name}", 1, ALL_KINDS, _PAUSE_S)
        self._work = Work(acts, _PAUSE_S)

    def stop(self) -> list[str]:
        """Return what is wrong."""
        self._work.stop(_END_S)
        self.load.stop()
        self.verdict = self.load.verdict(self._way)
        wrong = self.bodies.wrong(self._way.clients())
        return wrong if self.verdict.is_exact else [*wrong, f"not exact: {self.verdict}"]

    def delete(self) -> None:
        """Delete all that was made."""
        clients = self._way.clients()
        for name in (self._name, f"l{self._name}"):
            made(clients.blobs.delete(f"/{name}?restype=container"))
            made(clients.files.delete(f"/{name}?restype=share"))
            made(clients.queues.delete(f"/{name}"))
        made(clients.tables.delete(f"/Tables('l{self._name}')"))


def played(serving: Serving, sources: Sources, seed: int) -> Minute:
    """Play a minute, in which a gateway is killed and started again, and keep its result."""
    began, chance = time.monotonic(), random.Random(seed)
    way = serving.way
    minute = Minute(way, sources, seed)
    time.sleep(chance.uniform(*_KILLED_AFTER_S))
    broke = time.monotonic()
    serving.kill(_KILLED)
    serving.start(_KILLED)
    window_s = time.monotonic() - broke
    time.sleep(max(0.0, began + _LOAD_S - time.monotonic()))
    failures, verdict = minute.stop(), minute.verdict
    keep(
        Result(
            PART,
            commit(),
            seed,
            verdict.acknowledged + minute.bodies.acknowledged,
            time.monotonic() - began,
            failures,
            lost=len(verdict.lost) + len(minute.bodies.damaged),
            twice=len(verdict.twice),
            miscounted=len(verdict.miscounted),
            refused=verdict.refused,
            busy=way.answers.share_busy(lambda one: one.ended < broke),
            window_s=window_s,
            gap_s=minute.load.gap_s(broke),
        )
    )
    assert not failures, failures
    time.sleep(max(0.0, began + _MINUTE_S - time.monotonic()))
    return minute


@pytest.mark.timeout(3 * 3600)
def test_an_hour_leaves_nothing_behind(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    with soaked(tmp_path, shared) as (url, serving), Sources() as sources:
        with Watch(serving) as watch:
            for seed in range(1, MINUTES + 1):
                minute = played(serving, sources, seed)
                if seed < MINUTES:
                    minute.delete()
        status = told("store", "status", url)
        drained(serving)
        whole(url)
        start(serving)
        minute.delete()
        settled(url, serving)
        drained(serving)
        whole(url)
        cleaned(url, serving, shared)
    judged(watch, tables(status))


def judged(watch: Watch, found: Tables) -> None:
    """Keep what was measured, and compare the memory of the last third with that of the middle."""
    for number in range(2):
        print(f"gateway {number}, MiB in each minute: {watch.by_minute(number)}", flush=True)
    for name, size_bytes, live, dead in found:
        print(f"{name}: {size_bytes:,} bytes, {live:,} rows, {dead:,} dead")
    measured = {
        "memory of the lasting gateway": watch.thirds(1 - _KILLED, "memory_bytes"),
        "memory of the killed gateway": watch.thirds(_KILLED, "memory_bytes", _EQUAL_AGES_S),
        "open files": watch.thirds(1 - _KILLED, "files"),
    }
    grown = [
        f"{what} grows from {before} to {after}"
        for what, (before, after) in measured.items()
        if after > before * _GROWTH_MAX + _SLACK[what]
    ]
    more = {f"{what}, middle": before for what, (before, _) in measured.items()}
    more |= {f"{what}, last": after for what, (_, after) in measured.items()}
    more |= {f"dead rows of {name}": float(dead) for name, _, _, dead in found}
    keep(Result(f"{PART}, measured", commit(), MINUTES, 0, MINUTES * _MINUTE_S, grown, more=more))
    assert not grown, grown


def drained(serving: Serving) -> None:
    """Stop all gateways in order."""
    for one in serving.gateways:
        one.stop()
        assert one._process.returncode == 0, one._process.returncode


def start(serving: Serving) -> None:
    for number in range(len(serving.gateways)):
        serving.gateways[number].start()
    until(serving.serve, "they do not serve again")


def whole(url: str) -> None:
    """Ask the doctor."""
    report = told("doctor", url, "--keep-dropped", _KEPT)
    print(report["counts"], report["notes"], flush=True)
    assert report["whole"] and not report["findings"], report


def settled(url: str, serving: Serving) -> None:
    """Let all that was ordered be done: nothing of the data is left then."""
    until_empty(lambda: due(url))
    serving.pass_time(_LONG_S)
    until_empty(lambda: {kind for kind in left_in(url).records if kind in _DATA})


def due(url: str) -> dict[str, int]:
    """Return the jobs that do not wait for their time."""
    waiting = ("EXPIRE_UPLOAD", "EXPIRE_MESSAGES")
    return {name: count for name, count in left_in(url).jobs.items() if name not in waiting}


def cleaned(url: str, serving: Serving, shared: Path) -> None:
    """Let what killed gateways left in the folder be old, and be removed."""
    orphans, owned, dropped, there = unowned(url, shared)
    print(f"folder: {there} bodies, {owned} owned, {dropped} dropped, {len(orphans)} of the killed")
    assert owned == 0
    assert len(orphans) <= MINUTES * len(KINDS)
    for path in orphans:
        os.utime(path, (0, 0))
    start(serving)
    until_empty(lambda: unowned(url, shared)[0])
    drained(serving)
    whole(url)


def until_empty(found: Callable[[], Collection[object]]) -> None:
    end = time.monotonic() + _END_S
    while left := found():
        assert time.monotonic() < end, f"still there: {left}"
        time.sleep(1.0)
