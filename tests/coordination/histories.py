"""Histories of registers and locks on a store: several clients, faults, and the verdict.

Clients are processes, which can be killed and stopped, or threads if the store lives in one
process. Must not live here: the calls of a client (history_client.py), the models
(history_models.py).
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from strongroom.coordination import Client
from strongroom.coordination.store import Store
from strongroom.testing.histories.linearizability import UNKNOWN, CompletedCall
from strongroom.testing.history import Verdict, check
from tests.coordination.history_client import (
    Journal,
    Kind,
    operations_of,
    play_locks,
    play_register,
    with_expiries,
)
from tests.coordination.history_models import Acquired, Failed, LockModel, RegisterModel

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_END_S: Final = 90.0


@dataclass(frozen=True)
class JudgedHistory:
    """The result of judging a history.

    Arguments:
        verdict: whether it is linearizable.
        operations: the number of operations.
        lost: the number of calls without an answer.
        failed: the number of calls that were certainly not applied.
        taken: how often a lock was acquired.
    """

    verdict: Verdict
    operations: int
    lost: int
    failed: int
    taken: int

    def __str__(self) -> str:
        took = f", {self.taken:,} holds" if self.taken else ""
        return (
            f"{self.operations:,} operations{took}, {self.lost} answers lost,"
            f" {self.failed} not done: {self.verdict.explain()}"
        )


def judge(kind: Kind, operations: Sequence[CompletedCall]) -> JudgedHistory:
    """Search for a linear order of all operations, and return the result."""
    lost = sum(operation.result is UNKNOWN for operation in operations)
    failed = sum(isinstance(operation.result, Failed) for operation in operations)
    taken = sum(isinstance(operation.result, Acquired) for operation in operations)
    if kind == "register":
        verdict = check(operations, RegisterModel())
    else:
        verdict = check(with_expiries(operations), LockModel())
    return JudgedHistory(verdict, len(operations), lost, failed, taken)


class ClientProcesses:
    """Client processes that run until the end of the `with` block.

    Arguments:
        kind: the kind of objects that they use.
        url: the URL of the store.
        folder: an empty folder for journals.
        seed: of the randomness.
        count: the number of clients.
        keys: the keys of the shared objects.
        ttl_s: the TTL of locks.
    """

    def __init__(
        self,
        kind: Kind,
        url: str,
        folder: Path,
        seed: int,
        *,
        count: int = 4,
        keys: int = 2,
        ttl_s: float = 2.0,
    ) -> None:
        self._kind, self._url, self._folder, self._ttl_s = kind, url, folder, ttl_s
        self.chance = random.Random(seed)
        self._keys = ",".join(f"{self.chance.getrandbits(48):x}" for _ in range(keys))
        self._journals: list[Path] = []
        self._clients: list[subprocess.Popen[bytes]] = []
        self._killed: list[subprocess.Popen[bytes]] = []
        self._stop = folder / "stop"
        folder.mkdir(exist_ok=True)
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        label = f"c{len(self._journals)}"
        journal = self._folder / label
        self._journals.append(journal)
        words = [self._kind, self._url, journal, label, self.chance.getrandbits(32), self._keys]
        command = [*words, self._ttl_s, self._stop]
        self._clients.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.coordination.history_client", *map(str, command)],
                cwd=_REPOSITORY,
                stdin=subprocess.DEVNULL,
            )
        )

    def await_play(self) -> None:
        """Wait until every client has received an answer."""
        until_s = time.monotonic() + _END_S
        while not all(path.exists() and len(operations_of([path])) > 1 for path in self._journals):
            assert time.monotonic() < until_s, "the clients do not play"
            time.sleep(0.05)

    def kill_one(self) -> None:
        """Kill a client, and start a new one in its place."""
        client = self._clients.pop(self.chance.randrange(len(self._clients)))
        client.kill()
        client.wait()
        self._killed.append(client)
        self._start()

    @contextmanager
    def one_stopped(self) -> Iterator[None]:
        """Pause a client for the block."""
        client = self.chance.choice(self._clients)
        client.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            client.send_signal(signal.SIGCONT)

    def finish(self) -> JudgedHistory:
        """Let all clients end, and judge their history."""
        self._stop.touch()
        codes = [client.wait(_END_S) for client in self._clients]
        assert set(codes) == {0}, f"clients ended with {codes}"
        return judge(self._kind, operations_of(self._journals))

    def end(self) -> None:
        """Kill all remaining processes."""
        for client in self._clients:
            if client.poll() is None:
                client.kill()
                client.wait()


def judge_processes(
    groups: Sequence[ClientProcesses], disturb: Callable[[Sequence[ClientProcesses]], None]
) -> list[JudgedHistory]:
    """Run groups of clients while they are disturbed, and judge the history of each."""
    try:
        for group in groups:
            group.await_play()
        disturb(groups)
        return [group.finish() for group in groups]
    finally:
        for group in groups:
            group.end()


def judge_threads(
    kind: Kind, store: Store, folder: Path, seed: int, seconds: float, *, ttl_s: float = 2.0
) -> JudgedHistory:
    """Run four clients of one store object in threads, and judge their history."""
    until_s = time.monotonic() + seconds
    chance = random.Random(seed)
    keys = [f"{chance.getrandbits(48):x}" for _ in range(2)]
    journals, threads = [], []
    folder.mkdir(exist_ok=True)
    for number in range(4):
        client = Client(store, label=f"c{number}")
        journals.append(folder / client.context.label)
        work = (client, Journal(journals[-1], f"c{number}"), random.Random(chance.random()), keys)
        threads.append(threading.Thread(target=_play, args=(kind, ttl_s, until_s, *work)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_END_S)
    return judge(kind, operations_of(journals))


def _play(
    kind: Kind,
    ttl_s: float,
    until_s: float,
    client: Client,
    journal: Journal,
    chance: random.Random,
    keys: Sequence[str],
) -> None:
    def stop() -> bool:
        return time.monotonic() > until_s

    try:
        if kind == "register":
            play_register(client, journal, chance, keys, stop)
        else:
            play_locks(client, journal, chance, keys, stop, ttl_s)
    finally:
        client.driver.close()
        journal.close()
