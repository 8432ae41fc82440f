"""Faults of `strongroom lock NAME -- command`, and their results: batches of trials.

The commands reach the store through proxies. A rival for every lock reaches it directly. Must not
live here: the number of trials, and assertions (the tests).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from strongroom.coordination import Client, connect
from strongroom.coordination.guards.blob import BlobGuard
from tests.cli.lock_trials import (
    END_S,
    PERIOD_S,
    Rivals,
    Trial,
    await_all,
    boot_s,
    end_process,
    group_of_command,
    has_begun,
    signal_all,
    strongroom_lock,
)
from tests.coordination.real_stores import STORES, RealStore

Way = Literal["silent", "reset", "stopped", "killed"]
_SETTLE_S: Final = 2.0
WAYS: Final[tuple[Way, ...]] = ("silent", "reset", "stopped", "killed")


@dataclass
class Store:
    """A store with its server, and a client that bypasses the proxies."""

    real: RealStore
    direct: Client


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Store]:
    """Start one of the real stores, with its data in a folder."""
    (folder / "server").mkdir(exist_ok=True)
    with (
        STORES[name](folder / "server") as real,
        connect(real.direct_url, label="rival") as direct,
    ):
        yield Store(real, direct)


@contextmanager
def running(
    store: Store, folder: Path, count: int, ttl_s: float, *, stubborn: bool = True
) -> Iterator[list[Trial]]:
    """Start so many commands, each under a lock of its own, and wait until all of them run."""
    batch = store.direct.context.clock.nonce()
    trials: list[Trial] = []
    try:
        for number in range(count):
            name = f"{batch}-{number}"
            trials.append(Trial(folder / name, store.real.url, name, ttl_s, stubborn))
        await_all([trial.began for trial in trials])
        yield trials
    finally:
        for trial in trials:
            trial.end()


def margins_out_of_reach(
    store: Store, folder: Path, count: int, ttl_s: float, way: Way
) -> list[float]:
    """Cut running commands off from the store; return how long before its lease's expiry each was
    dead.

    The margin in seconds is measured against the rival's acquire, and against the last possible
    renewal.
    """
    with running(store, folder, count, ttl_s) as trials:
        rivals = Rivals(store.direct, {trial.name: trial.ttl_s for trial in trials})
        time.sleep(ttl_s / 2)  # the rivals poll, and see renewals
        _take_away(store.real, way)
        gone_s = boot_s()
        codes = [trial.code() for trial in trials]
        _give_again(store.real, way)
        taken_s = rivals.join()
        assert set(codes) == {76}, codes
        return [min(taken_s[trial.name], gone_s + ttl_s) - trial.last_stamp_s() for trial in trials]


def _take_away(store: RealStore, way: Way) -> None:
    match way:
        case "silent":
            for proxy in store.proxies:
                proxy.hold()
        case "reset":
            for proxy in store.proxies:
                proxy.cut()
        case "stopped":
            store.pause()
        case "killed":
            store.kill()


def _give_again(store: RealStore, way: Way) -> None:
    match way:
        case "silent" | "reset":
            for proxy in store.proxies:
                proxy.heal()
        case "stopped":
            store.resume()
        case "killed":
            store.restart()


def latencies_broken(
    store: Store, folder: Path, count: int, ttl_s: float, *, stubborn: bool
) -> list[float]:
    """Break the locks of running commands one after the other, as an administrator does.

    Return how many seconds after the break was sent each command was dead.
    """
    with running(store, folder, count, ttl_s, stubborn=stubborn) as trials:
        found = []
        for trial in trials:
            order_s = boot_s()
            assert store.direct.break_lock(trial.name) is not None
            assert trial.code() == 76
            found.append(max(0.0, trial.last_stamp_s() + PERIOD_S - order_s))
        return found


def latencies_killed(store: Store, folder: Path, count: int, ttl_s: float) -> list[float]:
    """Kill `strongroom lock` itself; return how many seconds later each command was dead.

    Each command was dead before the rival had the lock.
    """
    with running(store, folder, count, ttl_s) as trials:
        rivals = Rivals(store.direct, {trial.name: trial.ttl_s for trial in trials})
        killed_s = []
        for trial in trials:
            killed_s.append(boot_s())
            trial.process.kill()
        assert {trial.code() for trial in trials} == {-signal.SIGKILL}
        taken_s = rivals.join()
        last_s = [trial.last_stamp_s() for trial in trials]
        assert all(last < taken_s[trial.name] for last, trial in zip(last_s, trials, strict=True))
        return [max(0.0, a + PERIOD_S - b) for a, b in zip(last_s, killed_s, strict=True)]


def began_when_killed_early(store: Store, folder: Path, count: int, within_s: float) -> int:
    """Kill `strongroom lock` at random times after its start; return how many commands had begun.

    None of them survives.
    """
    chance = random.Random(count)
    batch = store.direct.context.clock.nonce()
    trials: list[Trial] = []
    try:
        for number in range(count):
            name = f"{batch}-{number}"
            trials.append(Trial(folder / name, store.real.url, name, 60.0))
            time.sleep(within_s * chance.random())
            trials[-1].process.kill()
            trials[-1].code()
        time.sleep(_SETTLE_S)
        return sum(trial.last_stamp_s() > 0 for trial in trials)
    finally:
        for trial in trials:
            trial.end()


def without_its_guard(
    store: Store, folder: Path, number: signal.Signals, ttl_s: float
) -> tuple[int, tuple[float, ...]]:
    """Stop or kill the guard of a command, then break the lock.

    Return the exit code of `strongroom lock`, and the last stamps of all processes of the command.
    """
    with running(store, folder, 1, ttl_s) as (trial,):
        guard, _ = group_of_command(trial.process.pid)
        os.kill(guard, number)
        store.direct.break_lock(trial.name)
        code = trial.code()
        trial.last_stamp_s()
        return code, trial.stamps_s()


WRITER: Final = f"""
import os, sys, time
from strongroom.coordination.guards import FencedOut, Token
from strongroom.coordination.guards.blob import BlobGuard
log, url = sys.argv[1:]
token = Token(os.environ["STRONGROOM_LOCK"], int(os.environ["STRONGROOM_FENCE"]))
guard = BlobGuard(token, url)
with open(log, "w", buffering=1) as attempts:
    while True:
        begun_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        try:
            guard.write(token.name, b"%d" % token.fence)
            accepted = 1
        except FencedOut:
            accepted = 0
        print(begun_s, accepted, file=attempts)
        time.sleep({PERIOD_S})
"""


@dataclass(frozen=True)
class Frozen:
    """The result of a command that was stopped past its TTL and continued.

    Arguments:
        late: writes that it began after it was continued. Another client had written before, and
            without a guard they would have been applied.
        accepted: how many of them the guard let through.
        code: the exit code of `strongroom lock`.
        kept: whether the blob has the content of the later holder.
    """

    late: int
    accepted: int
    code: int
    kept: bool


def frozen(store: Store, folder: Path, count: int, ttl_s: float) -> list[Frozen]:
    """Stop `strongroom lock`, guard and command past the TTL, let a rival write, and continue them.

    The command is continued first. Each writes a blob all the time, guarded by its fence.
    """
    batch = store.direct.context.clock.nonce()
    logs = {f"{batch}-{number}": folder / f"{batch}-{number}" for number in range(count)}
    writer = [sys.executable, "-c", WRITER]
    processes = {
        name: strongroom_lock(
            store.real.url,
            name,
            ttl_s,
            [*writer, str(log), store.real.url],
            log.with_suffix(".said"),
        )
        for name, log in logs.items()
    }
    try:
        await_all([partial(_has_written, processes[name], log) for name, log in logs.items()])
        for process in processes.values():
            signal_all(process.pid, signal.SIGSTOP)
        rivals = Rivals(store.direct, dict.fromkeys(logs, ttl_s))
        rivals.join()
        guards = {name: rivals.held[name].guard.blob(store.real.direct_url) for name in logs}
        for name, guard in guards.items():
            guard.write(name, b"later")
        return [
            _continued(processes[name], logs[name], guard, name) for name, guard in guards.items()
        ]
    finally:
        for process in processes.values():
            end_process(process)


def _has_written(process: subprocess.Popen[bytes], log: Path) -> bool:
    written = log.exists() and "\n" in log.read_text()
    return has_begun(process, log.with_suffix(".said"), written)


def _continued(process: subprocess.Popen[bytes], log: Path, guard: BlobGuard, name: str) -> Frozen:
    _, command = group_of_command(process.pid)
    continued_s = boot_s()
    os.killpg(command, signal.SIGCONT)
    await_all([lambda: bool(_late(log, continued_s))])
    os.killpg(process.pid, signal.SIGCONT)
    code = process.wait(END_S)
    late = _late(log, continued_s)
    found = guard.read(name)
    guard.close()
    return Frozen(len(late), sum(late), code, found is not None and found.value == b"later")


def _late(log: Path, since_s: float) -> list[int]:
    lines = [line.split() for line in log.read_text().splitlines(keepends=True) if "\n" in line]
    return [int(accepted) for begun_s, accepted in lines if float(begun_s) > since_s]
