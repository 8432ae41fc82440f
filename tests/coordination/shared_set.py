"""Holders of a shared set as processes, their faults, and the count of lost updates: in the spirit
of the lock tests of Jepsen.

Every fault except `kill_holder` ensures that a holder is overtaken. It has read the set, then
another holder acquires the lock and writes, and then the first one writes. Must not live here: the
actions of a holder (shared_set_client.py), the choice of faults and stores (the tests).
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from strongroom.coordination import connect
from strongroom.coordination.guards import Token
from strongroom.coordination.guards.sql import SqlGuard
from tests.coordination.real_stores import RealStore
from tests.coordination.shared_set_client import LOCK, STATUS_BYTES

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_LOOK_S: Final = 0.005
_PEACE_S: Final = 0.5
_WAIT_S: Final = 60.0
_RACES_MAX: Final = 50


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Arguments:
        added: the number of acknowledged writes.
        lost: how many of them are missing in the set.
        overtaken: the fences of holders that wrote after a later holder had written.
        refused: the fences whose write the resource refused.
    """

    added: int
    lost: int
    overtaken: frozenset[int]
    refused: frozenset[int]

    def __str__(self) -> str:
        return (
            f"{self.added} updates acknowledged, {self.lost} lost;"
            f" {len(self.overtaken)} holders overtaken, {len(self.refused)} writes refused"
        )


@dataclass
class _Process:
    label: str
    behind_proxy: bool
    popen: subprocess.Popen[bytes]


class SharedSet:
    """The set and its holders, half of them behind the store's proxies; a context manager.

    Arguments:
        store: the store of the lock.
        folder: an empty folder.
        guarded: whether the set refuses old fences.
        count: the number of holders.
    """

    def __init__(self, store: RealStore, folder: Path, *, guarded: bool, count: int = 4) -> None:
        self.store = store
        self._folder, self._guarded = folder, guarded
        self.overtaken: set[int] = set()
        self._started = 0
        self._processes: list[_Process] = []
        folder.mkdir(exist_ok=True)
        self._data = sqlite3.connect(folder / "set.sqlite", timeout=_WAIT_S)
        self._data.execute("PRAGMA journal_mode = WAL")
        self._data.execute("CREATE TABLE shared (members TEXT NOT NULL)")
        self._data.execute("INSERT INTO shared VALUES ('[]')")
        self._data.commit()
        SqlGuard(Token(LOCK, 0), self._data).create_table()
        for number in range(count):
            self._start(behind_proxy=number % 2 == 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes:
            if process.popen.poll() is None:
                process.popen.kill()
                process.popen.wait()
        self._data.close()

    # Faults

    def stop_holder(self) -> None:
        """SIGSTOP a holder until it is overtaken; then SIGCONT."""
        process, fence = self._stopped()
        self._await_overtaken(fence)
        process.popen.send_signal(signal.SIGCONT)
        self._await_written(process, fence)

    def stop_holder_and_kill_server(self) -> None:
        """SIGSTOP a holder, kill the server (the leader) and restart it; then as `stop_holder`."""
        process, fence = self._stopped()
        if self.store.can_be_killed:
            self.store.kill()
            self.store.restart()
        self._await_overtaken(fence)
        process.popen.send_signal(signal.SIGCONT)
        self._await_written(process, fence)

    def break_lock(self) -> None:
        """Let an administrator break the lock of a holder that continues."""
        process, fence = self._slow()
        with connect(self.store.direct_url, label="administrator") as client:
            client.break_lock(LOCK)
        self._finish_slow(process, fence)

    def cut_off(self) -> None:
        """Cut a holder off from the store until it is overtaken; the holder continues."""
        process, fence = self._slow(behind_proxy=True)
        for proxy in self.store.proxies:
            proxy.hold()
        self._finish_slow(process, fence)
        for proxy in self.store.proxies:
            proxy.heal()

    def lose_and_delay(self) -> None:
        """Lose and delay requests and answers of half of the holders, and stop a holder during
        that."""
        for proxy in self.store.proxies:
            proxy.lose_requests = proxy.lose_answers = 0.1
            proxy.delay_s = 0.02
        self.stop_holder()
        for proxy in self.store.proxies:
            proxy.heal()

    def kill_holder(self) -> None:
        """SIGKILL a holder, start another in its place, and wait until a holder acquires the
        lock."""
        process, fence = self._stopped()
        process.popen.kill()
        process.popen.wait()
        self._processes.remove(process)
        self._start(behind_proxy=process.behind_proxy)
        self._await_later(fence)

    # The end

    def finish(self) -> Outcome:
        """Let all holders end, and count the result."""
        (self._folder / "stop").touch()
        codes = [process.popen.wait(_WAIT_S) for process in self._processes]
        assert set(codes) == {0}, f"holders ended with {codes}"
        lines = [
            line.split()
            for log in self._folder.glob("*.log")
            for line in log.read_text().split("\n")
        ]
        added = {line[2] for line in lines if line and line[0] == "added"}
        refused = frozenset(int(line[1]) for line in lines if line and line[0] == "refused")
        members = self._data.execute("SELECT members FROM shared").fetchone()[0]
        lost = added - set(json.loads(members))
        return Outcome(len(added), len(lost), frozenset(self.overtaken), refused)

    # How

    def _start(self, *, behind_proxy: bool) -> None:
        label = f"h{self._started}"
        url = self.store.url if behind_proxy else self.store.direct_url
        self._started += 1
        words = [url, self.store.ttl_s, self._folder, label, int(self._guarded)]
        popen = subprocess.Popen(
            [sys.executable, "-m", "tests.coordination.shared_set_client", *map(str, words)],
            cwd=_REPOSITORY,
            stdin=subprocess.DEVNULL,
        )
        self._processes.append(_Process(label, behind_proxy, popen))

    def _status(self, process: _Process) -> tuple[str, int]:
        path = self._folder / f"{process.label}.status"
        words = path.read_bytes()[:STATUS_BYTES].split() if path.exists() else []
        return (words[0].decode(), int(words[1])) if len(words) == 2 else ("idle", 0)

    def _thinking(self, *, behind_proxy: bool = False) -> tuple[_Process, int]:
        """Wait for a holder that has read and not written yet; return it and its fence."""
        until_s = time.monotonic() + _WAIT_S
        while time.monotonic() < until_s:
            for process in random.sample(self._processes, len(self._processes)):
                assert process.popen.poll() is None, f"{process.label} has ended"
                what, fence = self._status(process)
                if what == "thinking" and (process.behind_proxy or not behind_proxy):
                    return process, fence
            time.sleep(_LOOK_S)
        raise AssertionError("nobody holds the lock")

    def _stopped(self) -> tuple[_Process, int]:
        """Stop a holder that has read and not written yet."""
        for _ in range(_RACES_MAX):
            process, fence = self._thinking()
            process.popen.send_signal(signal.SIGSTOP)
            _await(lambda: _is_stopped(process.popen.pid), "it does not stop")  # noqa: B023
            if self._status(process) == ("thinking", fence):
                return process, fence
            process.popen.send_signal(signal.SIGCONT)
        raise AssertionError("no holder could be stopped in time")

    def _slow(self, *, behind_proxy: bool = False) -> tuple[_Process, int]:
        """Keep a holder between read and write until `_finish_slow`."""
        for _ in range(_RACES_MAX):
            process, fence = self._thinking(behind_proxy=behind_proxy)
            slow = self._folder / f"{process.label}.slow"
            slow.touch()
            time.sleep(0.3)  # longer than its own pause between read and write
            if self._status(process) == ("thinking", fence):
                return process, fence
            slow.unlink()
        raise AssertionError("no holder could be slowed down in time")

    def _finish_slow(self, process: _Process, fence: int) -> None:
        self._await_overtaken(fence)
        (self._folder / f"{process.label}.slow").unlink()
        self._await_written(process, fence)

    def _await_overtaken(self, fence: int) -> None:
        """Wait until a later holder has written."""
        self._await_later(fence)
        self.overtaken.add(fence)

    def _await_later(self, fence: int) -> None:
        _await(lambda: self._highest_added() > fence, "nobody overtakes")

    def _highest_added(self) -> int:
        found = 0
        for log in self._folder.glob("*.log"):
            for line in log.read_text().splitlines():
                what, fence, *_ = line.split()
                found = max(found, int(fence) if what == "added" else 0)
        return found

    def _await_written(self, process: _Process, fence: int) -> None:
        """Wait until the overtaken holder has tried to write."""
        log = self._folder / f"{process.label}.log"
        _await(
            lambda: (
                log.exists() and any(f" {fence} " in line for line in log.read_text().split("\n"))
            ),
            "it does not go on",
        )


def _await(ready: Callable[[], bool], complaint: str) -> None:
    until_s = time.monotonic() + _WAIT_S
    while not ready():
        assert time.monotonic() < until_s, complaint
        time.sleep(_LOOK_S)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")


Fault = Callable[[SharedSet], None]
FAULTS: Final[Sequence[Fault]] = (
    SharedSet.stop_holder,
    SharedSet.stop_holder_and_kill_server,
    SharedSet.break_lock,
    SharedSet.cut_off,
    SharedSet.lose_and_delay,
    SharedSet.kill_holder,
)


def run(store: RealStore, folder: Path, faults: Sequence[Fault], *, guarded: bool) -> Outcome:
    """Apply these faults to the holders of a set, one after the other."""
    with SharedSet(store, folder, guarded=guarded) as shared:
        for fault in faults:
            fault(shared)
            time.sleep(_PEACE_S)
        return shared.finish()
