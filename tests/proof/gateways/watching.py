"""What gateways take and leave behind over a long time: memory, jobs, bodies, tables.

Lives here: measurements of processes by /proc, and of a store by `store status` and `doctor`. Must
not live here: the load, and what is asserted.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from strongroom.database import DEFAULT_SCHEMA
from strongroom.engines.postgres.inspection import StoreInspection
from strongroom.store.core import keys, records
from tests.proof.gateways.serving import PROGRAM, Serving

Tables = Sequence[tuple[str, int, int, int]]
"""(name, bytes, live rows, dead rows) of each."""
_EVERY_S: Final = 2.0
_MIB: Final = 1024 * 1024
_KIB: Final = 1024


class Seen(msgspec.Struct, frozen=True):
    """What a process took at one time.

    Attributes:
        gateway: its number among those of the test.
        process: its id, a new one after each start.
        at_s: since the watch began.
        age_s: since the process was seen first.
    """

    gateway: int
    process: int
    at_s: float
    age_s: float
    memory_bytes: int
    files: int


class Watch:
    """Looks at the gateways every two seconds, in a thread; a context manager that ends it."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._began = time.monotonic()
        self._first: dict[int, float] = {}
        self._stopping = threading.Event()
        self.seen: list[Seen] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY_S):
            for number, gateway in enumerate(self._serving.gateways):
                try:
                    self._look(number, gateway._process.pid)
                except OSError:
                    continue  # it has just ended

    def _look(self, number: int, process: int) -> None:
        now = time.monotonic()
        of = Path(f"/proc/{process}")
        lines = (of / "status").read_text().splitlines()
        sizes = [int(one.split()[1]) for one in lines if one.startswith("VmRSS:")]
        if not sizes:
            return  # it has ended, and nobody has waited for it yet
        first = self._first.setdefault(process, now)
        files = len(os.listdir(of / "fd"))
        at_s, age_s = now - self._began, now - first
        self.seen.append(Seen(number, process, at_s, age_s, sizes[0] * _KIB, files))

    def by_minute(self, gateway: int) -> list[int]:
        """Return the median of a gateway's memory in each minute, in MiB."""
        of: dict[int, list[int]] = {}
        for one in self.seen:
            if one.gateway == gateway:
                of.setdefault(int(one.at_s // 60), []).append(one.memory_bytes)
        return [round(statistics.median(found) / _MIB) for _, found in sorted(of.items())]

    def thirds(
        self, gateway: int, what: str, ages_s: tuple[float, float] = (0.0, float("inf"))
    ) -> tuple[float, float]:
        """Return the medians of something in the middle and in the last third of the time.

        Arguments:
            ages_s: which ages of the processes count. One that was just started takes less.
        """
        whole_s = max(one.at_s for one in self.seen)
        found: tuple[list[float], list[float]] = ([], [])
        for one in self.seen:
            third = int(one.at_s * 3 / whole_s)
            if one.gateway == gateway and third and ages_s[0] <= one.age_s <= ages_s[1]:
                found[min(third, 2) - 1].append(getattr(one, what))
        middle, last = map(statistics.median, found)
        return middle, last


class Left(msgspec.Struct, frozen=True):
    """What a store has, by its records.

    Attributes:
        jobs: by their kind.
        records: by the first byte of their keyspace.
    """

    jobs: dict[str, int]
    records: dict[str, int]


def left_in(url: str) -> Left:
    """Look at all records."""
    jobs: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    with StoreInspection(url, DEFAULT_SCHEMA, 0.0) as inspection:
        for ref, record in inspection.records():
            assert record is not None
            keyspace = ref.partition.keyspace
            kinds[chr(keyspace[0])] += 1
            if keyspace == keys.JOBS:
                jobs[records.JOB.decode(record.value).kind.name] += 1
    return Left(dict(jobs), dict(kinds))


def unowned(url: str, folder: Path) -> tuple[list[Path], int, int, int]:
    """Return the bodies in the folder that have no row, and how many are owned, dropped and
    there."""
    import psycopg

    there = {int(one.name, 16): one for one in folder.glob("bodies/*/*")}
    with psycopg.connect(url) as session:
        owned, dropped = (
            {one for (one,) in session.execute(f"SELECT id FROM strongroom.{table} WHERE is_apart")}
            for table in ("contents", "dropped")
        )
    rows = owned | dropped
    missing = sorted(rows - set(there))
    assert not missing, f"bodies are missing: {missing[:10]}"
    orphans = [path for content, path in there.items() if content not in rows]
    return orphans, len(owned), len(dropped), len(there)


def told(*words: str) -> Any:
    """Return what a command says in JSON. Its exit code must be 0."""
    ran = subprocess.run([*PROGRAM, *words, "--json"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (ran.returncode, ran.stdout[-3000:], ran.stderr[-3000:])
    return json.loads(ran.stdout)


def tables(status: Any) -> Tables:
    """Return the tables that `store status` reports."""
    return [
        (one["name"], one["size_bytes"], one["live_rows"], one["dead_rows"])
        for one in status["status"]["tables"]
    ]
