"""A command that runs only while a lock is held.

Lives here: the holder's side of child_guard.py. It starts the guard, passes on each new deadline,
and reports the loss of the hold. Must not live here: how a hold is acquired (recipes/), or what is
printed (cli/).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.errors import LockLost, Unsupported
from strongroom.coordination.processes import child_guard
from strongroom.coordination.session.handles import HeldBase

LOST_EXIT: Final = 76
_START: Final = (sys.executable, "-I", "-S", str(child_guard.__file__))
_POLL_INTERVAL_S: Final = 0.05
_ENDED_IN_TIME: Final = "the command was ended before others could have it"


@dataclass(frozen=True, slots=True)
class Margins:
    """How long before the deadline a command is ended.

    Attributes:
        term_before_s: SIGTERM is sent so many seconds before the deadline.
        kill_before_s: SIGKILL is sent so many seconds before the deadline. The command is then dead
            before another participant can acquire the lock.
        grace_s: seconds between SIGTERM and SIGKILL if the hold is lost without warning.
    """

    term_before_s: float
    kill_before_s: float
    grace_s: float

    @staticmethod
    def of_ttl(ttl_s: float, grace_s: float | None = None) -> Margins:
        """Return the default margins for a TTL.

        SIGKILL is sent a twentieth of the TTL before the deadline (0.1 to 1 s). SIGTERM is sent
        `grace_s` before that, by default a tenth of the TTL.
        """
        kill_before_s = min(1.0, max(0.1, ttl_s / 20))
        grace_s = ttl_s / 10 if grace_s is None else grace_s
        return Margins(kill_before_s + grace_s, kill_before_s, min(grace_s, 0.5))


def require_guard() -> None:
    """Raise Unsupported on a system where a guard could not end every process of its command."""
    missing = child_guard.what_is_missing()
    if missing:
        raise Unsupported(
            "a command under a lock needs Linux: this system cannot find and end every process "
            f"that the command starts (missing: {missing}). Hold the lock in a program of yours "
            "instead, which checks `held.lost`"
        )


class Child:
    """A running command.

    Arguments:
        command: the program and its arguments.
        held: the hold; its deadline is the command's deadline.
        margins: see `Margins`.
        environment: the environment variables of the command.
        alone: whether the command is the only child of this process. If so, processes that the
            command leaves behind are ended even when its guard was killed.

    Attributes:
        reason: set by `wait`: why the hold was lost, or nearly lost, before the command ended. It
            is text for people; it is empty if the hold outlived the command.
    """

    def __init__(
        self,
        command: Sequence[str],
        held: HeldBase,
        margins: Margins,
        environment: Mapping[str, str],
        *,
        alone: bool = False,
    ) -> None:
        self._held, self._margins, self._alone = held, margins, alone
        self._clock, self._term_sent, self._guard_killed, self.reason = (
            SystemClocks(),
            False,
            False,
            "",
        )
        if alone:
            child_guard.adopt_orphans()
        read, self._control = os.pipe()
        self._status, write = os.pipe()
        self._sent_deadline_s = held.deadline_s
        numbers = (
            margins.term_before_s,
            margins.kill_before_s,
            margins.grace_s,
            self._sent_deadline_s,
        )
        try:
            self._guard = subprocess.Popen(  # noqa: S603 - the command is the user's own
                [*_START, str(read), str(write), *map(repr, numbers), *command],
                pass_fds=(read, write),
                env=dict(environment),
            )
        except BaseException:
            os.close(self._control)
            os.close(self._status)
            raise
        finally:
            os.close(read)
            os.close(write)

    @property
    def guard_pid(self) -> int:
        """The process id of the guard, the command's parent."""
        return self._guard.pid

    def send_signal(self, number: int) -> None:
        """Send a signal to the command and to the processes of its group."""
        self._send_line(f"signal {number}")

    def wait(self) -> int:
        """Wait for the command to end, and forward each new deadline to its guard.

        An interrupted wait ends the command before the exception leaves this method.

        Returns: the command's exit code (128 + N: signal N ended it); LOST_EXIT if the hold was
        lost before the command ended.
        """
        try:
            code = self._await_guard()
        finally:
            os.close(self._control)
            self._end_orphans(self._guard.wait())
        self.reason = self._why_lost(code)
        return LOST_EXIT if self.reason else 128 - code if code < 0 else code

    def _why_lost(self, code: int) -> str:
        """Return the value of `reason`; call it once every process of the command has ended."""
        try:
            self._held.check()
        except LockLost as lost:
            return lost.reason
        # LOST_EXIT may be the command's own code, if it is a holder that lost its own lock.
        is_ended = self._guard_killed or (code == LOST_EXIT and self._term_sent)
        return _ENDED_IN_TIME if is_ended else ""

    def _await_guard(self) -> int:
        loss_sent, kill_guard_at_s = False, float("inf")
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._guard.wait(_POLL_INTERVAL_S)
                self._note_term_sent()
                return code
            self._note_term_sent()
            now_s = self._clock.boot_s()
            if self._held.lost.is_set():
                if not loss_sent:
                    loss_sent = True
                    self._send_line("lost")
                    kill_guard_at_s = now_s + self._margins.grace_s + self._margins.kill_before_s
            elif self._held.deadline_s != self._sent_deadline_s:
                self._sent_deadline_s = self._held.deadline_s
                self._send_line(f"deadline {self._sent_deadline_s!r}")
            last_s = self._held.deadline_s - self._margins.kill_before_s / 2
            if now_s >= min(last_s, kill_guard_at_s):
                # The guard hangs, or it would have ended the command: kill both from here.
                self._guard_killed = True
                self._guard.kill()

    def _note_term_sent(self) -> None:
        """Record whether the guard has sent SIGTERM, judged by the last deadline it was given."""
        term_at_s = self._sent_deadline_s - self._margins.term_before_s
        self._term_sent = self._term_sent or self._clock.boot_s() >= term_at_s

    def _end_orphans(self, code: int) -> None:
        """Kill the command's descendants if the guard was killed.

        The command itself is dead then: the kernel kills it together with its guard.
        """
        with os.fdopen(self._status, "rb") as status:
            group = status.read()
        if code >= 0:
            return
        if group:
            with contextlib.suppress(ProcessLookupError):
                child_guard.end_group(int(group))
        if self._alone:
            child_guard.end_descendants()

    def _send_line(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, f"{line}\n".encode())
