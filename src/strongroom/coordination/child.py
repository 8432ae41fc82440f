"""A command that runs while something is held, and not a moment longer.

Lives here: the holder's side of child_guard.py: starting it, telling it the deadline as it moves,
and that the hold is lost. Must not live here: how a hold is had (recipes/), what is printed (cli/).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from strongroom.coordination import child_guard
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.errors import LockLost
from strongroom.coordination.handles import HeldBase

LOST_EXIT: Final = 76
_START: Final = (sys.executable, "-I", "-S", str(child_guard.__file__))
_LOOK_S: Final = 0.05
_IN_TIME: Final = "the command was ended before others could have it"


@dataclass(frozen=True, slots=True)
class Margins:
    """How long before the deadline a command is ended.

    Attributes:
        term_before_s: it is asked to (SIGTERM).
        kill_before_s: it is killed (SIGKILL), so that it is dead before somebody else can hold.
        grace_s: between the two when the hold is lost all at once.
    """

    term_before_s: float
    kill_before_s: float
    grace_s: float

    @staticmethod
    def of_ttl(ttl_s: float, grace_s: float | None = None) -> Margins:
        """The usual ones for a TTL. The command is killed a twentieth of the TTL before the end
        (0.1 to 1 s). It is asked to end `grace_s` before that, by default a tenth of the TTL."""
        kill_before_s = min(1.0, max(0.1, ttl_s / 20))
        grace_s = ttl_s / 10 if grace_s is None else grace_s
        return Margins(kill_before_s + grace_s, kill_before_s, min(grace_s, 0.5))


class Child:
    """A running command.

    Arguments:
        command: program and arguments.
        held: what is held; its deadline is the command's.
        margins: see Margins.
        environment: of the command.
        alone: this process has no children but this command: what the command leaves behind when
            its guard is killed is then found and ended too.

    Attributes:
        reason: after `wait`: why the hold was lost, or was about to be lost, before the command
            ended. It is in words for people; empty: neither.
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
        self._clock, self._asked, self._gave_up, self.reason = SystemClocks(), False, False, ""
        if alone:
            child_guard.adopt_orphans()
        read, self._control = os.pipe()
        self._status, write = os.pipe()
        self._told_s = held.deadline_s
        numbers = (margins.term_before_s, margins.kill_before_s, margins.grace_s, self._told_s)
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
        """Pass a signal on to the command and all that it has started."""
        self._tell(f"signal {number}")

    def wait(self) -> int:
        """Return the command's exit code (128 + N: signal N ended it), having kept its guard
        informed; LOST_EXIT when the hold was lost before it ended. Whatever interrupts this ends
        the command first."""
        try:
            code = self._await_guard()
        finally:
            os.close(self._control)
            self._end_orphans(self._guard.wait())
        self.reason = self._why_lost(code)
        return LOST_EXIT if self.reason else 128 - code if code < 0 else code

    def _why_lost(self, code: int) -> str:
        """Return `reason`, once all of the command is dead: in time is only what is held still."""
        try:
            self._held.check()
        except LockLost as lost:
            return lost.reason
        # The same code may be the command's own: another such program, that has lost its own hold.
        is_ended = self._gave_up or (code == LOST_EXIT and self._asked)
        return _IN_TIME if is_ended else ""

    def _await_guard(self) -> int:
        told_lost, give_up_s = False, float("inf")
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._guard.wait(_LOOK_S)
                self._note_asked()
                return code
            self._note_asked()
            now_s = self._clock.boot_s()
            if self._held.lost.is_set():
                if not told_lost:
                    told_lost = True
                    self._tell("lost")
                    give_up_s = now_s + self._margins.grace_s + self._margins.kill_before_s
            elif self._held.deadline_s != self._told_s:
                self._told_s = self._held.deadline_s
                self._tell(f"deadline {self._told_s!r}")
            last_s = self._held.deadline_s - self._margins.kill_before_s / 2
            if now_s >= min(last_s, give_up_s):
                # The guard stands still, or it would have ended the command: end both from here.
                self._gave_up = True
                self._guard.kill()

    def _note_asked(self) -> None:
        """By the deadline that the guard knows: when it is over, the command is asked to end."""
        asked_at_s = self._told_s - self._margins.term_before_s
        self._asked = self._asked or self._clock.boot_s() >= asked_at_s

    def _end_orphans(self, code: int) -> None:
        """When the guard was killed, its command was too; what that had started is left to us."""
        with os.fdopen(self._status, "rb") as status:
            group = status.read()
        if code >= 0:
            return
        if group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(group), signal.SIGKILL)
        if self._alone:
            child_guard.end_descendants()

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, f"{line}\n".encode())
