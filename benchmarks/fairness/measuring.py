"""For each kind of long work: the longest turn of the loop, and a small GET's p99 beside it.

The server runs on a thread of this process. A turn is measured in CPU time of that thread, so that
other programs on the machine do not count. Other processes generate the load.
"""

import asyncio
import gc
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.endpoint import ACCOUNT, ACCOUNT_KEY, Endpoint, account_sas
from benchmarks.engine import Load, StepReport
from benchmarks.fairness.contents import BLOB_CONTENTS
from benchmarks.fairness.entities import ENTITIES
from benchmarks.fairness.file_listings import FILES
from benchmarks.fairness.kinds import CLIENTS, Kind, Running
from benchmarks.fairness.listings import LISTINGS
from benchmarks.fairness.smb_work import SMB, has_smbclient
from benchmarks.fairness.versions import VERSIONS
from benchmarks.results import Row, row
from benchmarks.samba import SmbShare, write_login
from benchmarks.servers import STRONGROOM, free_ports
from benchmarks.workloads import make_container, put_blob
from strongroom.account_switches import DEFAULT_SWITCHES
from strongroom.cli.serving.until_signal import GC_THRESHOLDS
from strongroom.config import ACCOUNTS_FILE_NAME, AccountSources, Settings, SmbFlags
from strongroom.testing.server import InProcessServer

_ROUNDS: Final = 3
_ROUND_S: Final = 2.0
KINDS: Final = (*LISTINGS, *VERSIONS, *BLOB_CONTENTS, *ENTITIES, *FILES, *SMB)


class _Turns:
    """The longest turn of a loop, in CPU time of its thread. A turn begins with each pass of
    `watch`, which the loop resumes once per turn."""

    def __init__(self) -> None:
        self._longest_s = 0.0
        self._ended = threading.Event()

    async def watch(self) -> None:
        began = time.thread_time()
        while not self._ended.is_set():
            await asyncio.sleep(0)
            now = time.thread_time()
            self._longest_s = max(self._longest_s, now - began)
            began = now

    def end(self) -> None:
        self._ended.set()

    def take_ms(self) -> float:
        """Return the longest turn since the last call."""
        longest_s, self._longest_s = self._longest_s, 0.0
        return 1000 * longest_s


def fairness(folder: Path, kinds: Sequence[Kind] = KINDS) -> Iterator[Row]:
    """Yield a row for each kind: the longest turn, with the GET's p99 in the note."""
    # As `strongroom serve` does.
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()
    folder.mkdir(parents=True, exist_ok=True)
    settings = _settings(folder)
    with InProcessServer(settings) as server:
        turns, running = _Turns(), _running(server, settings, folder)
        running.switch(DEFAULT_SWITCHES)
        blob = running.endpoints["blob"]
        asyncio.run_coroutine_threadsafe(turns.watch(), server.loop)
        try:
            make_container(blob, "/small")
            blob.fill(put_blob(blob, "/small/one"), 1)
            alone = statistics.median(_small(blob).p99_ms for _ in range(_ROUNDS))
            for kind in _possible(kinds):
                kind.prepare(running)
                yield _measured(kind, running, turns, alone)
        finally:
            turns.end()


def _possible(kinds: Sequence[Kind]) -> Sequence[Kind]:
    if has_smbclient():
        return kinds
    print("smbclient is not installed: fairness is measured without SMB", file=sys.stderr)
    return [kind for kind in kinds if kind not in SMB]


def _settings(folder: Path) -> Settings:
    blob, queue, table, file, smb = free_ports(5)
    data = folder / "fairness"
    return Settings(
        data=data,
        blob_port=blob,
        queue_port=queue,
        table_port=table,
        file_port=file,
        accounts=AccountSources(file=folder / ACCOUNTS_FILE_NAME),
        smb=SmbFlags(smb, "offered"),
    )


def _running(server: InProcessServer, settings: Settings, folder: Path) -> Running:
    sas = account_sas("bqtf")
    urls = {
        "blob": server.url, "queue": server.queue_url, "table": server.table_url,
        "file": server.file_url,
    }  # fmt: skip
    endpoints = {
        service: Endpoint(int(url.rpartition(":")[2]), sas) for service, url in urls.items()
    }
    assert settings.smb is not None and settings.accounts.file is not None
    login = write_login(folder, ACCOUNT, ACCOUNT_KEY)
    share = SmbShare(STRONGROOM, settings.smb.port, os.getpid(), login)
    return Running(endpoints, share, folder, settings.accounts.file)


def _measured(kind: Kind, running: Running, turns: _Turns, alone: float) -> Row:
    longest, beside, counts = [], [], []
    blob = running.endpoints["blob"]
    with ThreadPoolExecutor(1) as pool:
        for _ in range(_ROUNDS):
            turns.take_ms()
            long = pool.submit(kind.begin, running, _ROUND_S)
            beside.append(_small(blob).p99_ms)
            counts.append(long.result())
            longest.append(turns.take_ms())
    note = f"small GET p99 {alone:.1f} ms alone, {statistics.median(beside):.1f} ms beside; "
    note += f"{statistics.median(counts):.0f} answers in {_ROUND_S:.0f} s"
    slices = (tuple(longest), ())
    name = f"longest turn: {kind.name}"
    return row(name, CLIENTS, "ms", statistics.median(longest), None, slices=slices, note=note)


def _small(blob: Endpoint) -> StepReport:
    step = blob.step("get", "GET", "/small/one", 200)
    return blob.load(Load((step,), 1, _ROUND_S * 0.8, 0.1)).step("get")
