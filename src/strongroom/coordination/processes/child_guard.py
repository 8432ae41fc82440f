"""The guard process between a lock holder and its command: it ends the command in time.

    child_guard.py CONTROL_FD STATUS_FD TERM_BEFORE_S KILL_BEFORE_S GRACE_S DEADLINE_S COMMAND...

child.py starts this file as a script. It imports only the standard library, so it starts in
milliseconds. Lives here: starting the command in its own process group, and ending every process
that the command started. The guard writes the number of the group to the status pipe. A process
that leaves the group, or outlives its parent, is still a descendant of the guard. The control pipe
carries lines. `deadline S`: the hold is valid until S by the boot clock. `lost`: end the command
now. `signal N`: pass signal N on to the command. When the pipe is closed, the holder is dead, and
everything is killed. If no new deadline arrives, the guard sends SIGTERM shortly before the
deadline, and SIGKILL before it passes. Exit code: the command's, or 128 + N when signal N ended it.
It is 127 or 126 as in a shell if the command cannot be started. It is 76 if the guard ended the
command, or if the deadline passed before the start.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Final

# Type checkers for Windows know none of the names that are reached through these.
_os: Final[Any] = os
_signals: Final[Any] = signal
_times: Final[Any] = time

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_BOOTTIME: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)
_LOST_EXIT: Final = 76
_LINE_BYTES_MAX: Final = 4096
_PAUSE_FIRST_S: Final = 0.001
_PAUSE_MAX_S: Final = 0.05


def what_is_missing() -> str:
    """Return what a guard needs and this system does not have; "" if it has everything.

    On other systems than Linux, a guard would not find each process that its command started.
    """
    needed = {
        "/proc": os.path.isdir(f"/proc/{os.getpid()}"),
        "prctl(2)": _prctl_call() is not None,
        "waitid(2)": hasattr(os, "waitid"),
        "pipe2(2)": hasattr(os, "pipe2"),
        "CLOCK_BOOTTIME": _BOOTTIME is not None,
    }
    return ", ".join(name for name, is_there in needed.items() if not is_there)


def adopt_orphans() -> None:
    """Make this process the new parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_descendants() -> None:
    """Kill every descendant of this process, and return when none is alive any more.

    It also reaps every child, so the caller must not wait for a child of its own any more.
    """
    pause_s = _PAUSE_FIRST_S
    while found := _descendants(os.getpid()):
        for pid, _ in found:
            _signal(pid, _signals.SIGKILL)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, _os.WNOHANG)[0]:
            pass


def _descendants(root: int) -> list[tuple[int, int]]:
    """Return (process id, process group) of each living descendant of `root`.

    The list is empty on systems without /proc.
    """
    children: dict[int, list[tuple[int, int, bytes]]] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            # A process that ends in the meantime cannot be read, or only in part.
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as stat:
                # The program's name, in parentheses, may contain any character.
                state, parent_text, group_text = stat.read().rpartition(b")")[2].split()[:3]
                parent, group = int(parent_text), int(group_text)
                children.setdefault(parent, []).append((int(name), group, state))
    found, parents = [], [root]
    while parents:
        for pid, group, state in children.get(parents.pop(), ()):
            parents.append(pid)
            if state not in (b"Z", b"X"):
                found.append((pid, group))
    return found


def end_group(group: int) -> None:
    """Kill every process of a group. Raises ProcessLookupError, PermissionError."""
    _os.killpg(group, _signals.SIGKILL)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _prctl(option: int, argument: int) -> None:
    call = _prctl_call()
    if call is not None:
        call(option, argument)


def _prctl_call() -> Callable[[int, int], int] | None:
    try:
        found: Callable[[int, int], int] = ctypes.CDLL(None).prctl
    except (OSError, AttributeError, TypeError):
        return None
    return found


def _now_s() -> float:
    """Return the time of the boot clock, in seconds."""
    now_s: float = _times.clock_gettime(_BOOTTIME)
    return now_s


def _terminal() -> int | None:
    """Return the descriptor of the terminal that this process group may read from, or None."""
    try:
        number = sys.stdin.fileno()
        # A background group does not own the terminal, and must not take it.
        return number if _os.tcgetpgrp(number) == _os.getpgrp() else None
    except (AttributeError, OSError, ValueError):
        return None  # no standard input, or no terminal


def _hint(command: list[str]) -> str:
    """Return what to write if a whole command line was given as the name of a program."""
    if len(command) > 1 or not any(sign.isspace() for sign in command[0]):
        return ""
    return f"; a command line is run by: -- sh -c {shlex.quote(command[0])}"


def _set_foreground_group(terminal: int, group: int) -> None:
    with contextlib.suppress(OSError):
        _os.tcsetpgrp(terminal, group)


class Guard:
    """Runs one command, and ends it before its deadline.

    Arguments:
        control, status: descriptors of the two pipes.
        term_before_s, kill_before_s: seconds before the deadline at which SIGTERM and SIGKILL
            are sent.
        grace_s: seconds between SIGTERM and SIGKILL once the hold is lost.
        deadline_s: the first deadline, by the boot clock.
    """

    def __init__(
        self,
        control: int,
        status: int,
        term_before_s: float,
        kill_before_s: float,
        grace_s: float,
        deadline_s: float,
    ) -> None:
        self._control, self._status, self._grace_s = control, status, grace_s
        self._term_before_s, self._kill_before_s = term_before_s, kill_before_s
        self._term_at_s = self._kill_at_s = 0.0
        self._lost = self._term_sent = self._ended_by_guard = self._killed = False
        self._partial_line = b""
        self._group = 0
        self._terminal: int | None = None
        self._set_deadline(deadline_s)

    def run(self, command: list[str]) -> int:
        """Run the command until it has ended, and return the exit code."""
        wake_read, wake_write = _os.pipe2(_os.O_NONBLOCK | _os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write)
        signal.signal(_signals.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, _signals.SIGHUP, _signals.SIGTTOU):
            # Signals of a terminal go to the command; the holder ends this process through the
            # pipe.
            signal.signal(number, signal.SIG_IGN)
        os.set_inheritable(self._control, False)
        os.set_inheritable(self._status, False)
        adopt_orphans()
        if _now_s() >= self._kill_at_s:
            return _LOST_EXIT
        try:
            child = self._start(command)
        except FileNotFoundError:
            print(f"strongroom: {command[0]}: command not found{_hint(command)}", file=sys.stderr)
            return 127
        except OSError as error:
            print(f"strongroom: {command[0]}: {error.strerror}", file=sys.stderr)
            return 126
        self._group = child.pid
        try:
            self._watch(child, wake_read)
        finally:
            # Kill what the command left behind before the holder learns that it has ended.
            self._send_group(_signals.SIGKILL)
            end_descendants()
            if self._terminal is not None:
                # Without this, the next command of the same script could not read from the
                # terminal.
                _set_foreground_group(self._terminal, _os.getpgrp())
        code = child.returncode
        if self._ended_by_guard:
            return _LOST_EXIT
        return 128 - code if code < 0 else code

    def _watch(self, child: subprocess.Popen[bytes], wake: int) -> None:
        """Enforce the deadline until the command has ended."""
        with contextlib.suppress(BrokenPipeError):  # the holder is dead: both pipes show it
            os.write(self._status, b"%d" % child.pid)
        while self._is_running(child):
            ready, _, _ = select.select([self._control, wake], [], [], self._poll_timeout_s())
            if wake in ready:
                os.read(wake, 1024)
            if self._control in ready:
                self._read_control()
            self._enforce()

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        guard, terminal = os.getpid(), _terminal()

        def prepare() -> None:
            if terminal is not None:
                # The command takes the terminal before it starts, since it may read at once.
                _set_foreground_group(terminal, os.getpid())
            for number in (signal.SIGINT, signal.SIGTERM, _signals.SIGHUP, _signals.SIGTTOU):
                signal.signal(number, signal.SIG_DFL)
            _prctl(_PR_SET_PDEATHSIG, _signals.SIGKILL)
            if os.getppid() != guard:  # the guard has ended already: no signal will come
                os._exit(_LOST_EXIT)

        # This process has one thread, so code between fork and exec is safe.
        self._terminal = terminal
        return subprocess.Popen(command, process_group=0, preexec_fn=prepare)  # noqa: S603

    @staticmethod
    def _is_running(child: subprocess.Popen[bytes]) -> bool:
        """Return whether the command is running; reaps orphans of it that have ended."""
        ended = _os.WEXITED | _os.WNOHANG | _os.WNOWAIT
        while (found := _os.waitid(_os.P_ALL, 0, ended)) is not None:
            if found.si_pid == child.pid:
                child.wait()
                return False
            os.waitpid(found.si_pid, 0)
        return True

    def _set_deadline(self, deadline_s: float) -> None:
        self._term_at_s = deadline_s - self._term_before_s
        self._kill_at_s = deadline_s - self._kill_before_s

    def _poll_timeout_s(self) -> float:
        if self._killed:
            return _PAUSE_MAX_S
        now_s = _now_s()
        due_s = self._kill_at_s if self._term_sent else self._term_at_s
        return max(0.0, min(due_s - now_s, 1.0))

    def _read_control(self) -> None:
        data = os.read(self._control, _LINE_BYTES_MAX)
        if not data:
            self._lose(0.0)
            self._control_closed()
            return
        *lines, self._partial_line = (self._partial_line + data).split(b"\n")
        for line in lines:
            word, _, value = line.partition(b" ")
            if word == b"deadline" and not self._lost:
                self._set_deadline(float(value))
                self._term_sent = False
            elif word == b"lost":
                self._lose(self._grace_s)
            elif word == b"signal":
                self._send_group(int(value))

    def _control_closed(self) -> None:
        """Replace the closed pipe by a silent one: only the end of the command is awaited now."""
        silent, _ = os.pipe()
        os.dup2(silent, self._control)

    def _lose(self, grace_s: float) -> None:
        if not self._lost:
            now_s = _now_s()
            self._lost = True
            self._term_at_s = now_s
            self._kill_at_s = min(self._kill_at_s, now_s + grace_s) if grace_s else now_s

    def _enforce(self) -> None:
        now_s = _now_s()
        if now_s >= self._kill_at_s:
            self._killed = self._ended_by_guard = True
            self._send_all(_signals.SIGKILL)
        elif now_s >= self._term_at_s and not self._term_sent:
            self._term_sent = self._ended_by_guard = True
            self._send_all(signal.SIGTERM)
            self._send_all(_signals.SIGCONT)

    def _send_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            _os.killpg(self._group, number)

    def _send_all(self, number: int) -> None:
        """Signal the command's group first, then the descendants that have left the group."""
        self._send_group(number)
        for pid, group in _descendants(os.getpid()):
            if group != self._group:
                _signal(pid, number)


def main() -> int:
    """Guard the command that this process's arguments name, and return the exit code."""
    control, status, term_before, kill_before, grace, deadline, *command = sys.argv[1:]
    times = (float(text) for text in (term_before, kill_before, grace, deadline))
    guard = Guard(int(control), int(status), *times)
    return guard.run(command)


if __name__ == "__main__":
    sys.exit(main())
