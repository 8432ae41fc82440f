"""Rounds of serving, concurrent writes, SIGKILL and restart; every acknowledged write is verified.

Lives here: the server's process and the loop. Must not live here: the writes (workload.py).
"""

from __future__ import annotations

import base64
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from strongroom.account_switches import Switches
from strongroom.auth.accounts import (
    DEVELOPMENT_ACCOUNT_KEY,
    DEVELOPMENT_ACCOUNT_NAME,
    Account,
)
from strongroom.config import ACCOUNTS_FILE_NAME
from strongroom.servers.identities.accounts_file import change_accounts
from strongroom.testing.ports import free_port, port_flags
from tests.conformance.client import Client, Credential
from tests.conformance.table_client import TableClient
from tests.durability.file_workload import FileWorker, make_share
from tests.durability.queue_workload import QueueWorker
from tests.durability.retention_workload import RetainedWorker, retain
from tests.durability.smb_workload import MixedWorker
from tests.durability.table_workload import TableWorker, make_table
from tests.durability.workload import Worker

WORKERS = 8
PATIENCE_S = 60.0
CREDENTIAL = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)


class AnyWorker(Protocol):
    """One client of a workload."""

    seed: int
    acknowledged: int
    failure: str

    def run(self, client: Client, stop: threading.Event) -> None: ...

    def verify(self, client: Client) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Workload:
    """The work on one service.

    Arguments:
        flag: the flag of `strongroom serve` for the service's port.
        prepare: creates the container, queue, table or share.
        worker: returns a worker from (number, seed).
        client: the class of the service's client.
        switches: the account's switches; the account is then in an accounts file.
        flags: further flags of `strongroom serve`.
        progress: a number that grows with the work; no server is killed before it has grown.
            None: the number of acknowledged writes.
    """

    flag: str
    prepare: Callable[[Client], None]
    worker: Callable[[int, int], AnyWorker]
    client: type[Client] = Client
    switches: Switches | None = None
    flags: tuple[str, ...] = ()
    progress: Callable[[], int] | None = None


def _making(*places: str) -> Callable[[Client], None]:
    def make(client: Client) -> None:
        for place in places:
            assert client.put(place).status == 201

    return make


BLOBS = Workload(
    "--blob-port",
    _making("/durable?restype=container"),
    lambda number, seed: Worker(number, seed, "durable"),
)
VERSIONS = replace(BLOBS, switches=Switches(versioning=True))
RETAINED = replace(
    BLOBS, prepare=retain, worker=lambda number, seed: RetainedWorker(number, seed, "durable")
)
QUEUES = Workload(
    "--queue-port", _making(*(f"/durable-{number}" for number in range(WORKERS))), QueueWorker
)
TABLES = Workload("--table-port", make_table, TableWorker, TableClient)
FILES = Workload("--file-port", make_share, FileWorker)


def files_of_both_protocols(made: list[MixedWorker]) -> Workload:
    """Return the workload of files that are changed over REST and over SMB.

    Arguments:
        made: receives all workers.
    """
    smb_port = free_port()

    def worker(number: int, seed: int) -> MixedWorker:
        made.append(MixedWorker(number, seed, smb_port=smb_port))
        return made[-1]

    def progress() -> int:
        over_smb = sum(one.smb_acknowledged for one in made)
        return min(over_smb, sum(one.acknowledged for one in made) - over_smb)

    flags = ("--smb", "--smb-port", str(smb_port))
    return replace(FILES, worker=worker, flags=flags, progress=progress)


@contextmanager
def serving(data: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server on `data`: ready when the body runs, ended by its process id afterwards."""
    command = [sys.executable, "-m", "strongroom", "serve", "--data", str(data), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        _await_ready(process)
        yield process
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)


def _await_ready(process: subprocess.Popen[bytes]) -> None:
    """Wait for the output that the server prints when it listens; another server may use its
    port."""
    assert process.stdout is not None
    assert process.stderr is not None
    if not process.stdout.readline():
        raise AssertionError(f"the server ended: {process.stderr.read().decode()}")


def kill_rounds(
    data: Path, rounds: int, seed: int, workload: Workload = BLOBS
) -> tuple[int, list[str]]:
    """Run `rounds` kills; return the number of acknowledged writes, and the lost ones.

    Prints the seed and the progress: `SEED=` replays the workload (not the timing of the kill).
    """
    print(f"SEED={seed}", flush=True)
    rng = random.Random(seed)
    workers = [workload.worker(number, rng.getrandbits(32)) for number in range(WORKERS)]
    lost: list[str] = []
    port = free_port()
    # The tested service listens on this port; the others on free ports. All rounds use the same.
    flags = (*port_flags(), workload.flag, str(port), *workload.flags)
    if workload.switches is not None:
        key = base64.b64decode(DEVELOPMENT_ACCOUNT_KEY)
        account = Account(DEVELOPMENT_ACCOUNT_NAME, (key,), workload.switches)
        change_accounts(data / ACCOUNTS_FILE_NAME, lambda before: (account,))
    for number in range(rounds):
        with serving(data, *flags) as process:
            if number == 0:
                _prepare(workload, port)
            lost += _verify(workload, workers, port)
            _write_and_kill(workload, workers, process, port, rng)
        print(
            f"round {number + 1}/{rounds}: {sum(w.acknowledged for w in workers)} acknowledged, "
            f"{len(lost)} lost",
            flush=True,
        )
    with serving(data, *flags):
        lost += _verify(workload, workers, port)
    lost += [worker.failure for worker in workers if worker.failure]
    return sum(worker.acknowledged for worker in workers), lost


def _prepare(workload: Workload, port: int) -> None:
    client = workload.client(port, CREDENTIAL)
    workload.prepare(client)
    client.close()


def _verify(workload: Workload, workers: Sequence[AnyWorker], port: int) -> list[str]:
    client = workload.client(port, CREDENTIAL)
    try:
        return [problem for worker in workers for problem in worker.verify(client)]
    finally:
        client.close()


def _write_and_kill(
    workload: Workload,
    workers: Sequence[AnyWorker],
    process: subprocess.Popen[bytes],
    port: int,
    rng: random.Random,
) -> None:
    stop = threading.Event()
    progress = workload.progress or (lambda: sum(one.acknowledged for one in workers))
    before = progress()
    threads = []
    for worker in workers:
        worker.seed = rng.getrandbits(32)
        client = workload.client(port, CREDENTIAL)
        threads.append(threading.Thread(target=worker.run, args=(client, stop), daemon=True))
    for thread in threads:
        thread.start()
    time.sleep(rng.uniform(0.02, 0.4))
    until = time.monotonic() + PATIENCE_S
    while progress() <= before and time.monotonic() < until:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    stop.set()
    for thread in threads:
        thread.join(timeout=PATIENCE_S)
        assert not thread.is_alive(), "a worker hangs"
