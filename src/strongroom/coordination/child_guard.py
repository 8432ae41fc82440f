"""The process between a holder and its command: ends the command in time, whatever the holder does.

    child_guard.py CONTROL_FD STATUS_FD TERM_BEFORE_S KILL_BEFORE_S GRACE_S DEADLINE_S COMMAND...

child.py starts it as a script of its own. It imports only the standard library, so it starts in
milliseconds. Lives here: starting the command in a process group of its own, and ending all that
the command has started. It writes the group's number to the status pipe. A process that leaves the
group, or outlives its parent, is still a descendant of this process. Lines on the control pipe:
`deadline S` (until when the holder believes, by the boot clock), `lost` (end it now), `signal N`
(pass it on). When the pipe ends, the holder is dead, and everything is killed. Without a new line,
the command is asked to end shortly before the deadline, and killed before it. Exit code: the
command's, or 128 + N when a signal ended it. It is 127 or 126 as with a shell. It is 76 when the
command was ended from here, or came too late to start. Must not live here: who holds what.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_BOOTTIME: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_LOST_EXIT: Final = 76
_LINE_BYTES_MAX: Final = 4096
_PAUSE_FIRST_S: Final = 0.001
_PAUSE_MAX_S: Final = 0.05


def adopt_orphans() -> None:
    """Become the parent of every descendant of this process whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_descendants() -> None:
    """Kill every descendant of this process, and return when none is alive any more.

    For one that waits for no child of its own any more: their ends are taken note of here.
    """
    pause_s = _PAUSE_FIRST_S
    while found := _descendants(os.getpid()):
        for pid, _ in found:
            _signal(pid, signal.SIGKILL)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _descendants(root: int) -> list[tuple[int, int]]:
    """Return (process id, process group) of each living descendant of `root`. The list is empty on
    systems without /proc."""
    children: dict[int, list[tuple[int, int, bytes]]] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            # One that ends meanwhile cannot be read, or only in part.
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as stat:
                # The program's name, in brackets, may contain anything.
                state, above, of = stat.read().rpartition(b")")[2].split()[:3]
                parent, group = int(above), int(of)
                children.setdefault(parent, []).append((int(name), group, state))
    found, parents = [], [root]
    while parents:
        for pid, group, state in children.get(parents.pop(), ()):
            parents.append(pid)
            if state not in (b"Z", b"X"):
                found.append((pid, group))
    return found


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _prctl(option: int, argument: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, argument)


def _terminal() -> int | None:
    """Return the file number of the terminal that this process group may read from."""
    try:
        number = sys.stdin.fileno()
        # In the background it is somebody else's, and stays so.
        return number if os.tcgetpgrp(number) == os.getpgrp() else None
    except (AttributeError, OSError, ValueError):
        return None  # no standard input, or no terminal


def _in_front(terminal: int, group: int) -> None:
    with contextlib.suppress(OSError):
        os.tcsetpgrp(terminal, group)


class Guard:
    """One command, and until when it may run.

    Arguments:
        control, status: file numbers of the pipes.
        term_before_s, kill_before_s: how long before the deadline it is asked, and killed.
        grace_s: how long it may take to end once the hold is lost.
        deadline_s: by the boot clock.
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
        self._over = self._asked = self._ended_here = self._killed = False
        self._rest = b""
        self._group = 0
        self._terminal: int | None = None
        self._believe_until(deadline_s)

    def run(self, command: list[str]) -> int:
        """Run the command to its end; returns the exit code."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTOU):
            # Whatever a terminal sends is for the command; what ends it comes by the pipe.
            signal.signal(number, signal.SIG_IGN)
        os.set_inheritable(self._control, False)
        os.set_inheritable(self._status, False)
        adopt_orphans()
        if time.clock_gettime(_BOOTTIME) >= self._kill_at_s:
            return _LOST_EXIT
        try:
            child = self._start(command)
        except FileNotFoundError:
            print(f"strongroom: {command[0]}: command not found", file=sys.stderr)
            return 127
        except OSError as error:
            print(f"strongroom: {command[0]}: {error.strerror}", file=sys.stderr)
            return 126
        self._group = child.pid
        try:
            self._watch(child, wake_read)
        finally:
            # Whatever it has left behind goes with it, before anybody is told that it has ended.
            self._send_group(signal.SIGKILL)
            end_descendants()
            if self._terminal is not None:
                # Or whoever comes next in the same script could not read from it.
                _in_front(self._terminal, os.getpgrp())
        code = child.returncode
        if self._ended_here:
            return _LOST_EXIT
        return 128 - code if code < 0 else code

    def _watch(self, child: subprocess.Popen[bytes], wake: int) -> None:
        """Keep the command to its time until it has ended."""
        with contextlib.suppress(BrokenPipeError):  # the holder is dead: the other pipe says so too
            os.write(self._status, b"%d" % child.pid)
        while self._lives(child):
            ready, _, _ = select.select([self._control, wake], [], [], self._next_s())
            if wake in ready:
                os.read(wake, 1024)
            if self._control in ready:
                self._listen()
            self._enforce()

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        guard, terminal = os.getpid(), _terminal()

        def prepare() -> None:
            if terminal is not None:
                # By the command itself, before it begins: it may want to read at once.
                _in_front(terminal, os.getpid())
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTOU):
                signal.signal(number, signal.SIG_DFL)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:  # it has ended meanwhile: no signal will come
                os._exit(_LOST_EXIT)

        # One thread, so that code between fork and exec is safe here.
        self._terminal = terminal
        return subprocess.Popen(command, process_group=0, preexec_fn=prepare)  # noqa: S603

    @staticmethod
    def _lives(child: subprocess.Popen[bytes]) -> bool:
        """Tell whether the command runs; orphans of it that have ended are let go on the way."""
        ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while (found := os.waitid(os.P_ALL, 0, ended)) is not None:
            if found.si_pid == child.pid:
                child.wait()
                return False
            os.waitpid(found.si_pid, 0)
        return True

    def _believe_until(self, deadline_s: float) -> None:
        self._term_at_s = deadline_s - self._term_before_s
        self._kill_at_s = deadline_s - self._kill_before_s

    def _next_s(self) -> float:
        if self._killed:
            return _PAUSE_MAX_S
        now_s = time.clock_gettime(_BOOTTIME)
        due_s = self._kill_at_s if self._asked else self._term_at_s
        return max(0.0, min(due_s - now_s, 1.0))

    def _listen(self) -> None:
        data = os.read(self._control, _LINE_BYTES_MAX)
        if not data:
            self._lose(0.0)
            self._control_closed()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, _, value = line.partition(b" ")
            if word == b"deadline" and not self._over:
                self._believe_until(float(value))
                self._asked = False
            elif word == b"lost":
                self._lose(self._grace_s)
            elif word == b"signal":
                self._send_group(int(value))

    def _control_closed(self) -> None:
        """From now on only the command's end is waited for."""
        nothing, _ = os.pipe()
        os.dup2(nothing, self._control)

    def _lose(self, grace_s: float) -> None:
        if not self._over:
            now_s = time.clock_gettime(_BOOTTIME)
            self._over = True
            self._term_at_s = now_s
            self._kill_at_s = min(self._kill_at_s, now_s + grace_s) if grace_s else now_s

    def _enforce(self) -> None:
        now_s = time.clock_gettime(_BOOTTIME)
        if now_s >= self._kill_at_s:
            self._killed = self._ended_here = True
            self._send_all(signal.SIGKILL)
        elif now_s >= self._term_at_s and not self._asked:
            self._asked = self._ended_here = True
            self._send_all(signal.SIGTERM)
            self._send_all(signal.SIGCONT)

    def _send_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, number)

    def _send_all(self, number: int) -> None:
        """Signal the group first, at once, then those who have left it."""
        self._send_group(number)
        for pid, group in _descendants(os.getpid()):
            if group != self._group:
                _signal(pid, number)


def main() -> int:
    """Run with this process's arguments."""
    control, status, term_before, kill_before, grace, deadline, *command = sys.argv[1:]
    times = (float(text) for text in (term_before, kill_before, grace, deadline))
    guard = Guard(int(control), int(status), *times)
    return guard.run(command)


if __name__ == "__main__":
    sys.exit(main())
