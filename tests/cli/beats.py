"""Commands that write heartbeats, as does a child of each, to show how long both lived.

Lives here: the command, starting `strongroom` around it, reading the beats. Must not live here:
assertions.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.command import TIMEOUT_S

# Writes the boot clock into a file repeatedly. A child that ignores SIGTERM does the same, so
# surviving processes can be detected.
BEATS = """
import os, signal, subprocess, sys, time
from pathlib import Path
name = sys.argv[1]
if len(sys.argv) == 2:
    subprocess.Popen([sys.executable, sys.argv[0], name + ".child", "child"])
else:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    Path(name).write_text(repr(time.clock_gettime(time.CLOCK_BOOTTIME)))
    time.sleep(0.01)
"""


def beating(folder: Path) -> tuple[list[str], Path]:
    """Return a command that writes heartbeats, and its file (the child's file ends with
    `.child`)."""
    script, file = folder / "beats.py", folder / "beat"
    script.write_text(BEATS)
    return [sys.executable, str(script), str(file)], file


def await_file(file: Path) -> None:
    """Wait until a file exists."""
    deadline = time.monotonic() + TIMEOUT_S
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def started(store: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "strongroom", *arguments[:2], "--store", store, *arguments[2:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def stop(process: subprocess.Popen[bytes], store: str) -> None:
    """Stop a process (SIGSTOP), but not during a write to its store, a `file://` URL.

    Every write holds the lock of the store's folder. A process that is stopped during a write keeps
    that lock, and all others wait.
    """
    folder = Path(store.removeprefix("file://").partition("?")[0])
    with (folder / ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def await_beats(file: Path) -> None:
    child = Path(f"{file}.child")
    deadline = time.monotonic() + TIMEOUT_S
    while not (file.exists() and child.exists() and child.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def last_beat_s(file: Path) -> float:
    """Return the last heartbeat of both; fail if they still beat."""
    for name in (file, Path(f"{file}.child")):
        before = name.read_text()
        time.sleep(0.1)
        assert name.read_text() == before, "the command is alive"
    return max(float(name.read_text() or 0) for name in (file, Path(f"{file}.child")))
