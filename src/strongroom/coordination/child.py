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
from strongroom.coordination.handles import HeldBase

LOST_EXIT: Final = 76
_START: Final = (sys.executable, "-I", "-S", str(child_guard.__file__))
_LOOK_S: Final = 0.05


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
        """The usual ones for a TTL: killed a twentieth of it before the end (0.1 to 1 s), asked
        `grace_s` before that (a tenth of the TTL unless told)."""
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
    """

    def __init__(
        self,
        command: Sequence[str],
        held: HeldBase,
        margins: Margins,
        environment: Mapping[str, str],
    ) -> None:
        self._held = held
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
        informed; LOST_EXIT when the hold was lost before it ended."""
        lost = self._held.lost
        while True:
            try:
                code = self._guard.wait(_LOOK_S)
                break
            except subprocess.TimeoutExpired:
                pass
            if lost.is_set():
                self._tell("lost")
            elif self._held.deadline_s != self._told_s:
                self._told_s = self._held.deadline_s
                self._tell(f"deadline {self._told_s!r}")
        os.close(self._control)
        with os.fdopen(self._status, "rb") as status:
            group = status.read()
        if code < 0 and group:
            # The guard was killed, and its command with it; what that had started is left to us.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(group), signal.SIGKILL)
        was_lost = lost.is_set() or self._held.remaining() <= 0
        return LOST_EXIT if was_lost else 128 - code if code < 0 else code

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, f"{line}\n".encode())
