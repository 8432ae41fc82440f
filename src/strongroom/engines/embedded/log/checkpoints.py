"""Checkpoints: when SQLite's log is written back to its database, during or between commits.

Lives here: thresholds, and the thread that checkpoints. A checkpoint that finds the disk full, or
cannot open its files, leaves the log unchanged. A checkpoint that fails otherwise stops the engine.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

import apsw

from strongroom.engines.embedded.commit.group_commit import Committer
from strongroom.engines.embedded.disk.files import Files
from strongroom.engines.embedded.disk.threads import started_pool
from strongroom.engines.embedded.log.live_check import LogMoment, log_moment
from strongroom.engines.embedded.log.space import LogSpace, is_scarce
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import (
    checkpoint,
    connect,
)
from strongroom.engines.embedded.records.sqlite import Writer
from strongroom.engines.embedded.space.reserve import Reserve

PASSIVE_PAGES: Final = 16 * 1024 * 1024 // PAGE_BYTES
# On a full disk, checkpoint this often, so that the log restarts before it uses up the reserve.
LOW_PAGES: Final = 2 * 1024 * 1024 // PAGE_BYTES
TRUNCATE_PAGES: Final = 256 * 1024 * 1024 // PAGE_BYTES
_TRUNCATE_TIMEOUT_MS: Final = 50
_CACHE_KIB: Final = 512

_log = logging.getLogger(__name__)


class Checkpointer:
    """Keeps the log short.

    Arguments:
        committer: lends the time between two transactions for truncating the log.
        reserve: not whole while the disk is full.
        on_broken: called when a read or write of a checkpoint failed, unless the disk is full.
    """

    def __init__(
        self,
        path: str,
        vfs: str | None,
        writer: Writer,
        space: LogSpace,
        reserve: Reserve,
        on_broken: Callable[[Exception], None],
    ) -> None:
        self._path = path
        self._vfs = vfs
        self._writer = writer
        self._space = space
        self._reserve = reserve
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._thread = started_pool(1, "strongroom-checkpoint")
        self._connection: apsw.Connection | None = None
        self._running = False
        self._log_pages = 0
        self._seen_pages = 0
        self._tried_at = 0
        self._truncate_at = TRUNCATE_PAGES
        writer.connection.set_wal_hook(self._after_commit)

    def start_if_due(self, committer: Committer) -> None:
        """Start a checkpoint or an extension of the log if one is due. Call it after each commit,
        on the loop."""
        pages = self._log_pages
        if pages < self._seen_pages:  # the log restarted
            self._tried_at, self._truncate_at = 0, TRUNCATE_PAGES
        self._seen_pages = pages
        if self._running:
            return
        if self._reserve.is_whole and self._space.needs_extension(pages):
            self._running = True
            committer.between_groups(self._space.extend).add_done_callback(self._work_done)
        elif pages >= self._truncate_at:
            self._running = True
            self._truncate_at = pages + TRUNCATE_PAGES // 4
            committer.between_groups(self._truncate).add_done_callback(self._work_done)
        elif not self._reserve.is_whole and pages - self._tried_at >= LOW_PAGES:
            self._running = True
            self._tried_at = pages
            committer.between_groups(self._restart).add_done_callback(self._work_done)
        elif pages - self._tried_at >= PASSIVE_PAGES:
            self._running = True
            self._tried_at = pages
            job = self._thread.submit(self._passive)
            job.add_done_callback(
                lambda done: self._loop.call_soon_threadsafe(self._after_passive, committer, done)
            )

    @property
    def vfs(self) -> str | None:
        """The VFS of all connections; see EmbeddedOptions."""
        return self._vfs

    def moment(self) -> LogMoment:
        """Return the log, and how many of its frames are in use since this store was opened. Call
        it between two groups. Raises OSError."""
        return log_moment(f"{self._path}-wal", self._log_pages)

    def close(self) -> None:
        """Wait for a running checkpoint."""
        self._thread.shutdown()
        if self._connection is not None:
            self._connection.close()

    def _after_commit(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _passive(self) -> None:
        if self._connection is None:
            self._connection = connect(self._path, self._vfs, _CACHE_KIB)
        checkpoint(self._connection, truncate=False)

    def _restart(self) -> None:
        # This runs between groups, since the log restarts only when all of it is in the database.
        # The file is not truncated: on a full disk other programs would take its space.
        if checkpoint(self._writer.connection, truncate=False):
            self._log_pages = 0

    def _truncate(self) -> None:
        if self._writer.truncate_log(_TRUNCATE_TIMEOUT_MS):
            self._log_pages = 0
            self._space.emptied()

    def _work_done(self, done: asyncio.Future[None]) -> None:
        self._running = False
        if not done.cancelled():
            self._report_failure(done.exception())

    def _after_passive(self, committer: Committer, job: Future[None]) -> None:
        """Checkpoint the few frames written since the job began, so that the log restarts. A sync
        that overwrites costs two thirds of one that extends the file."""
        if (error := job.exception()) is None:
            committer.between_groups(self._restart).add_done_callback(self._work_done)
        else:
            self._running = False
            self._report_failure(error)

    def _report_failure(self, error: BaseException | None) -> None:
        if isinstance(error, apsw.FullError):
            _log.warning("the log cannot be checkpointed: the disk is full")
        elif isinstance(error, apsw.CantOpenError):
            # Too many open files, perhaps: nothing was changed, so it can be tried again.
            _log.warning("the log cannot be checkpointed now: %s", error)
        elif isinstance(error, (apsw.Error, OSError)):
            self._on_broken(error)


def begin_log(writer: Writer, files: Files) -> None:
    """Checkpoint the log of the last run before anything is read. If the disk is full, the log
    stays unchanged. Raises apsw.Error, OSError."""
    try:
        _checkpoint_log(writer, _keeps_file(writer, files))
    except apsw.FullError:
        _log.warning("the log cannot be checkpointed at the start: the disk is full")


def end_log(writer: Writer, files: Files) -> None:
    """Checkpoint the log before the last connection is closed. Raises apsw.Error, OSError."""
    keeps_file = _keeps_file(writer, files)
    if keeps_file:
        keep = ctypes.c_int(1)
        persist = apsw.SQLITE_FCNTL_PERSIST_WAL
        writer.connection.file_control("main", persist, ctypes.addressof(keep))
    _checkpoint_log(writer, keeps_file)


def _checkpoint_log(writer: Writer, keeps_file: bool) -> None:
    if keeps_file:
        checkpoint(writer.connection, truncate=False)
    else:
        writer.truncate_log(timeout_ms=0)


def _keeps_file(writer: Writer, files: Files) -> bool:
    """Return whether the log's file keeps its length. On a full disk, other programs would take the
    space that it releases. Without space in the log nothing can be changed, not even deleted."""
    path = f"{writer.connection.filename}-wal"
    try:
        is_long = os.path.getsize(path) > 2 * PASSIVE_PAGES * PAGE_BYTES
    except FileNotFoundError:
        return False
    return not is_long and is_scarce(files, path)
