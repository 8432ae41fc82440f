"""The writing of lines: a bounded queue, and the thread that empties it into a file.

Lives here: opening, writing, opening anew, and what happens while nothing can be written. Must not
live here: the content of a line (record.py). The event loop only appends to the queue. A disk that
is full, slow or gone delays no request: lines that find no room are left out and counted.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections import deque
from pathlib import Path
from typing import Final

from strongroom.limits import MIB

STDOUT: Final = "-"
QUEUE_BYTES_MAX: Final = 8 * MIB
# Lines are gathered for so long before they are written. Each time that the thread wakes, the event
# loop gives up the interpreter several times, which costs more than making dozens of lines.
_GATHER_S: Final = 0.25
RETRY_S: Final = 1.0
_MODE: Final = 0o600
_log = logging.getLogger(__name__)


class AccessLogUnusable(Exception):
    """The file of the access log cannot be used; the text says why and what to do."""


class LogTarget:
    """The file of the log, which is opened anew when it was renamed.

    Arguments:
        name: its path, or STDOUT. A file is created with mode 0600; an existing one keeps its mode.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = None if name == STDOUT else Path(name)
        self._descriptor = 1 if name == STDOUT else -1

    def check(self) -> None:
        """Open the file. Raises AccessLogUnusable."""
        if self._path is None:
            return
        try:
            if self._path.exists() and not _is_writable_kind(self._path.stat().st_mode):
                raise AccessLogUnusable(f"{self.name} is no file; for a pipe, use --access-log -")
            self._open()
        except OSError as error:
            reason = error.strerror or str(error)
            raise AccessLogUnusable(f"{self.name} cannot be written: {reason}") from None

    def write(self, data: bytes) -> int:
        """Write some of the bytes; return how many. Raises OSError."""
        if self._descriptor < 0:
            self._open()
        return os.write(self._descriptor, data)

    def reopen_if_renamed(self) -> None:
        """Close the file if its name is no longer its own; the next write opens it anew."""
        if self._path is None or self._descriptor < 0:
            return
        try:
            status = os.stat(self._path)
        except OSError:
            self.close()
            return
        if not os.path.samestat(status, os.fstat(self._descriptor)):
            self.close()

    def close(self) -> None:
        """Close the file; the next write opens it anew. Idempotent."""
        if self._path is not None and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        assert self._path is not None
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(self._path, flags, _MODE)


def _is_writable_kind(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISCHR(mode)


class LogWriter:
    """Writes lines on a thread. `put` and `reopen` are called on the event loop.

    Arguments:
        target: has been checked.
        queue_bytes_max: the limit of the lines that wait.
        retry_s: how long to wait after a failure.

    Attributes:
        written: how many lines were written.
        dropped: how many lines found no room.
        failures: how often writing failed.
    """

    def __init__(
        self,
        target: LogTarget,
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        retry_s: float = RETRY_S,
    ) -> None:
        self.written = self.dropped = self.failures = 0
        self._target = target
        self._queue_bytes_max = queue_bytes_max
        self._retry_s = retry_s
        # Appended to by the loop only, and emptied by the thread only, so there is no lock: each
        # side has a count of its own.
        self._lines: deque[bytes] = deque()
        self._put_bytes = self._taken_bytes = 0
        self._must_reopen = False
        self._left = b""  # taken from the queue, and not written yet
        self._dropped_seen = self._dropped_told = 0  # as of the last write, and of the last warning
        self._is_failing = False
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._hurry = threading.Event()  # whether the lines that wait are to be written at once
        self._thread = threading.Thread(target=self._run, name="strongroom-access", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, lines: bytes) -> None:
        """Queue one or more whole lines; they are left out if there is no room for all."""
        put_bytes = self._put_bytes + len(lines)
        if put_bytes - self._taken_bytes > self._queue_bytes_max:
            self.dropped += lines.count(b"\n")
            return
        self._put_bytes = put_bytes
        self._lines.append(lines)
        if put_bytes - self._taken_bytes > self._queue_bytes_max // 4:
            self._hurry.set()
        if not self._wake.is_set():
            self._wake.set()

    def reopen(self) -> None:
        """Open the file anew before the next line is written."""
        self._must_reopen = True
        self._hurry.set()
        self._wake.set()

    def stop(self, timeout_s: float) -> bool:
        """Write what is queued, and end the thread; return whether everything was written."""
        self._stopping.set()
        self._hurry.set()
        self._wake.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive() or self._left or self._lines:
            name = self._target.name
            _log.warning("the access log %s ends early: not all lines were written", name)
            return False
        return True

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._hurry.wait(_GATHER_S)
            self._hurry.clear()
            self._wake.clear()
            if self._must_reopen:
                self._must_reopen = False
                self._target.close()
            while not self._flush():
                if self._stopping.wait(self._retry_s):
                    break
        self._flush()
        self._target.close()

    def _flush(self) -> bool:
        """Write everything that waits; return whether that worked."""
        return self._write(self._left) and self._write(self._take())

    def _take(self) -> bytes:
        taken = [self._lines.popleft() for _ in range(len(self._lines))]
        data = b"".join(taken)
        self._taken_bytes += len(data)
        return data

    def _write(self, data: bytes) -> bool:
        """Write bytes, and say once when that fails or works again; return whether it worked."""
        try:
            self._target.reopen_if_renamed()
            while data:
                sent_bytes = self._target.write(data)
                self.written += data.count(b"\n", 0, sent_bytes)
                data = data[sent_bytes:]
        except OSError as error:
            self._left = data
            self._failed(error)
            return False
        self._left = b""
        self._worked()
        return True

    def _failed(self, error: OSError) -> None:
        self.failures += 1
        self._target.close()
        if not self._is_failing:
            self._is_failing = True
            _log.error(
                "the access log %s cannot be written, and is tried again each second; requests are "
                "served as before: %s",
                self._target.name,
                error,
            )

    def _worked(self) -> None:
        if self._is_failing:
            self._is_failing = False
            _log.warning("the access log %s is written again", self._target.name)
        dropped = self.dropped
        if dropped != self._dropped_seen:
            self._dropped_seen = dropped
            self._wake.set()  # to look once more: lines may still be left out
        elif dropped != self._dropped_told:
            left_out, self._dropped_told = dropped - self._dropped_told, dropped
            _log.warning("the access log %s lacks %d lines", self._target.name, left_out)
