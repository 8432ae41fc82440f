"""The output of the command at a terminal.

Lives here: a pseudo-terminal as standard error, and reading from it. Must not live here:
assertions.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time

from tests.cli.command import TIMEOUT_S


class AtTerminal:
    """`strongroom ARGUMENTS...` with a terminal as its standard error."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "strongroom", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
        )
        os.close(theirs)
        self.seen = ""

    def await_text(self, text: str) -> None:
        """Read until the text appears."""
        deadline = time.monotonic() + TIMEOUT_S
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            ready, _, _ = select.select([self._ours], [], [], 1.0)
            if ready:
                self.seen += os.read(self._ours, 4096).decode()

    def end(self) -> int:
        """Return its exit code."""
        code = self.process.wait(TIMEOUT_S)
        os.close(self._ours)
        return code
