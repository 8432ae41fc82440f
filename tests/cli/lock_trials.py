"""Trials of `strongroom lock NAME -- command`: many at once, judged by the command's time stamps.

The command ignores SIGTERM if `stubborn`. It has a child in its own process group, and a grandchild
that has left the group (double fork, own session). Each of the three repeatedly writes the boot
clock into its place in a file, which shows how long each lived. Must not live here: assertions
about the numbers (the tests).
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from strongroom.coordination import Client, Held

PERIOD_S: Final = 0.02
_START_S: Final = 90.0
END_S: Final = 60.0
_STAMP: Final = struct.Struct("d")
STAMPS_BYTES: Final = 3 * _STAMP.size
STAMPER: Final = f"""
import os, signal, struct, sys, time
path, stubborn = sys.argv[1], sys.argv[2] == "stubborn"
if stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
place = 0
if os.fork() == 0:
    place = 1
elif os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    place = 2
file = os.open(path, os.O_WRONLY)
while True:
    now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    os.pwrite(file, struct.pack("d", now_s), {_STAMP.size} * place)
    time.sleep({PERIOD_S})
"""


def boot_s() -> float:
    """Return the time of the clock of all stamps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class Trial:
    """One `strongroom lock` and its command.

    Arguments:
        file: the file of the stamps; created here.
        store: the URL of the store that the command gets.
        name: the name of the lock.
        ttl_s: the TTL of the lock.
        stubborn: whether the command ignores SIGTERM.
    """

    file: Path
    store: str
    name: str
    ttl_s: float
    stubborn: bool = True
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.file.write_bytes(bytes(STAMPS_BYTES))
        kind = "stubborn" if self.stubborn else "obedient"
        inner = [sys.executable, "-I", "-S", "-c", STAMPER, str(self.file), kind]
        self.process = strongroom_lock(self.store, self.name, self.ttl_s, inner, self._said)

    @property
    def _said(self) -> Path:
        return self.file.with_suffix(".said")

    def stamps_s(self) -> tuple[float, ...]:
        """Return the last stamps of the command, its child and the grandchild."""
        return stamps_s(self.file)

    def began(self) -> bool:
        """Whether all three have begun."""
        return has_begun(self.process, self._said, all(self.stamps_s()))

    def last_stamp_s(self) -> float:
        """Return the last stamp of the three processes; fail if one is still alive."""
        return quiet_since_s(self.file)

    def code(self) -> int:
        """Wait for the end of `strongroom lock`, and return its exit code."""
        return self.process.wait(END_S)

    def end(self) -> None:
        """Kill everything that is left of the trial."""
        end_process(self.process)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a `strongroom lock`, stopped or not, if it still runs; its guard ends the rest."""
    if process.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            signal_all(process.pid, signal.SIGCONT)
        process.kill()
        process.wait(END_S)


def stamps_s(file: Path) -> tuple[float, ...]:
    """Return the last stamps of a command, its child and the grandchild."""
    return tuple(at for (at,) in _STAMP.iter_unpack(file.read_bytes()))


def quiet_since_s(file: Path) -> float:
    """Return the last stamp in a file; fail if new stamps appear."""
    before_s = stamps_s(file)
    time.sleep(5 * PERIOD_S)
    assert stamps_s(file) == before_s, f"{file.name}: a part of the command is alive"
    return max(before_s)


def strongroom_lock(
    store: str, name: str, ttl_s: float, command: Sequence[str], said: Path
) -> subprocess.Popen[bytes]:
    """Start `strongroom lock` in a session of its own, so that its process group is its own too.

    Its output goes to the file `said`.
    """
    flags = ["lock", name, "--store", store, "--ttl", f"{ttl_s:g}"]
    with said.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "strongroom", *flags, "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def has_begun(process: subprocess.Popen[bytes], said: Path, shows: bool) -> bool:
    """Return `shows`; fail with the output of the process if it has ended instead."""
    code = process.poll()
    assert code is None, f"ended with {code}: {said.read_text()[-2000:]}"
    return shows


def await_all(ready: Sequence[Callable[[], bool]]) -> None:
    """Wait until all conditions are true."""
    until_s = time.monotonic() + _START_S
    left = list(ready)
    while left := [is_ready for is_ready in left if not is_ready()]:
        assert time.monotonic() < until_s, f"{len(left)} of {len(ready)} do not come"
        time.sleep(PERIOD_S)


class Rivals:
    """Other clients that wait for locks, by connections of their own to the store.

    Arguments:
        client: the client that they use.
        ttls_s: the TTLs, by the names of the locks.

    Attributes:
        held: the acquired locks, by name.
        taken_s: by name, the boot time at which the request that acquired the lock was sent.
    """

    def __init__(self, client: Client, ttls_s: Mapping[str, float]) -> None:
        self.taken_s: dict[str, float] = {}
        self.held: dict[str, Held] = {}
        self._client = client
        self._threads = [
            threading.Thread(target=self._take, args=(name, ttl_s))
            for name, ttl_s in ttls_s.items()
        ]
        for thread in self._threads:
            thread.start()

    def _take(self, name: str, ttl_s: float) -> None:
        held = self._client.lock(name, ttl=max(ttl_s, 15.0), wait=END_S).acquire()
        promises, rules = self._client.promises(), self._client.context.rules
        believed_s = rules.holder_deadline_s(0.0, 0.0, max(ttl_s, 15.0), promises.server_lease)
        self.held[name] = held
        self.taken_s[name] = held.deadline_s - believed_s

    def join(self) -> dict[str, float]:
        """Wait until they hold all locks; return `taken_s`."""
        for thread in self._threads:
            thread.join(2 * END_S)
        return self.taken_s


def group_of_command(trial_pid: int) -> tuple[int, int]:
    """Return the process ids of the guard and of the command below a `strongroom lock`."""
    (guard,) = _children(trial_pid)
    (command,) = [pid for pid in _children(guard) if os.getpgid(pid) == pid]
    return guard, command


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def signal_all(trial_pid: int, number: int) -> None:
    """Send a signal to `strongroom lock` and its guard, and to its command's process group."""
    _, command = group_of_command(trial_pid)
    os.killpg(trial_pid, number)
    os.killpg(command, number)


def spread(values_s: Sequence[float]) -> str:
    """Return median, 99th percentile and maximum in milliseconds."""
    ordered = sorted(values_s)
    p99_s = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    middle_s = statistics.median(ordered)
    return f"p50 {middle_s * 1e3:.0f} ms, p99 {p99_s * 1e3:.0f} ms, max {ordered[-1] * 1e3:.0f} ms"
