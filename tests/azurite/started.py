"""A command that serves, as a process with pipes, as the programs start it that rely on it."""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from strongroom.testing.ports import HOST, free_port

WAIT_S = 60
_POLL_S = 0.02
_NOT_OURS = ("AZURITE_", "STRONGROOM_", "PYTHON")


class Started:
    """A process that runs one of the commands; it ends with the block.

    Arguments:
        commands: the folder of the commands.
        line: the command and its flags.
        folder: the current folder of the process.
        reads: whether standard output is read; if not, its pipe is closed at once.
        environment: further variables, as pairs.

    Attributes:
        out: the lines of standard output so far.
    """

    def __init__(
        self,
        commands: Path,
        line: Iterable[object],
        folder: Path,
        *,
        reads: bool = True,
        environment: Iterable[tuple[str, str]] = (),
    ) -> None:
        name, *flags = map(str, line)
        self.out: list[str] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._err = folder / "standard-error"
        with open(self._err, "wb") as err:
            self._process = subprocess.Popen(
                [commands / name, *flags],
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
                cwd=folder,
                env=clean_environment() | dict(environment),
            )
        assert self._process.stdout is not None
        if not reads:
            self._process.stdout.close()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Started:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def err(self) -> str:
        """Return standard error so far."""
        return self._err.read_text(encoding="utf-8")

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait for a line in which the pattern is found; return what was found."""
        for line in self.out:
            found = re.search(pattern, line)
            if found is not None:
                return found
        while True:
            found = re.search(pattern, self.next_line())
            if found is not None:
                return found

    def next_line(self) -> str:
        """Wait for the next line of standard output."""
        line = self._lines.get(timeout=WAIT_S)
        assert line is not None, f"it ended: {self._process.wait(WAIT_S)}, {self.err}"
        self.out.append(line)
        return line

    def wait_for_port(self, port: int) -> None:
        """Wait until a port accepts connections, as an open socket tells it."""
        until_s = time.monotonic() + WAIT_S
        while True:
            try:
                socket.create_connection((HOST, port), WAIT_S).close()
                return
            except OSError:
                assert self.is_running, self.err
                assert time.monotonic() < until_s, self.err
                time.sleep(_POLL_S)

    def stop(self) -> int:
        """Send SIGTERM, wait for the end, and read what is left; return the exit code."""
        self.send(signal.SIGTERM)
        return self.ended()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def ended(self) -> int:
        """Wait for the end, and read what is left; return the exit code."""
        code = self._process.wait(WAIT_S)
        while (line := self._lines.get(timeout=WAIT_S)) is not None:
            self.out.append(line)
        return code

    def _read(self) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.closed:
            for line in self._process.stdout:
                self._lines.put(line.removesuffix("\n"))
        self._lines.put(None)


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what the commands read."""
    return {name: text for name, text in os.environ.items() if not name.startswith(_NOT_OURS)}


def ports(*services: str) -> tuple[dict[str, int], list[str]]:
    """Return a free port for each service, and the flags that name them."""
    found = {service: free_port() for service in services}
    flags = [word for name, port in found.items() for word in (f"--{name}Port", str(port))]
    return found, flags
