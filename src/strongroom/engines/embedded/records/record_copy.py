"""A copy of all records of one snapshot in a new database file.

Lives here: how the records are copied. Must not live here: what the copy is for (backup.py,
upgrade/). The copy holds only pages that are in use: damage of a free page is not noticed, and
does no harm. Each page that is in use is verified when it is read, and the copy's pages get
checksums of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from strongroom.engines.embedded.disk.files import Files
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import (
    connect,
    create_copy,
)
from strongroom.engines.embedded.records.sqlite import SCHEMA, Reader

Progress = Callable[[int, int], None]
"""progress(bytes copied, total bytes)."""

_TABLES: Final = ("face", "hidden", "contents", "segments", "meta")
_PROGRESS_STEPS: Final = 100_000  # of SQLite's virtual machine
_CACHE_KIB: Final = 4 * 1024


class RecordCopier(Reader):
    """A reader of one database that can copy its snapshot to another file.

    Arguments:
        path: the database.
        files: creates and syncs the copy.
        is_bound: whether the pages of `path` are bound to their numbers. Those of the copy always
            are.

    Raises: apsw.Error, OSError.
    """

    def __init__(
        self, path: str, files: Files, vfs: str | None = None, *, is_bound: bool = True
    ) -> None:
        super().__init__(path, vfs, scanning=True, is_bound=is_bound)
        self._files = files
        self._target = ""
        self._connection.pragma("query_only", False)

    def begin_copy(self, target: str) -> None:
        """Create the file, which must not exist, and begin the snapshot that will be copied. Raises
        apsw.Error, OSError."""
        # SQLite would create a file that everybody may read.
        self._files.close(self._files.create(target))
        create_copy(target, self._vfs, SCHEMA).close()
        self._target = target
        self._connection.execute("ATTACH ? AS copy", (target,))
        self._connection.pragma("journal_mode", "off", schema="copy")
        self._connection.pragma("synchronous", "off", schema="copy")
        self._connection.pragma("cache_size", -_CACHE_KIB, schema="copy")
        self.snapshot()

    def used_bytes(self) -> int:
        """How long the copy will be, to within a few pages."""
        pages = int(self._execute("PRAGMA main.page_count").get)
        return PAGE_BYTES * (pages - int(self._execute("PRAGMA main.freelist_count").get))

    def copy(self, progress: Progress | None = None) -> None:
        """Copy the snapshot of `begin_copy`, and make the copy durable but for its name. Close this
        reader. Raises apsw.Error, OSError."""
        if progress is not None:
            self._report_to(progress)
        for table in _TABLES:
            self._execute(f"INSERT INTO copy.{table} SELECT * FROM main.{table}")  # noqa: S608
        self._execute("COMMIT")
        self.close()
        # The header says from now on that the database has a log, as it will have when it is used.
        connect(self._target, self._vfs, _CACHE_KIB).close()
        descriptor = self._files.reopen(self._target)
        try:
            self._files.sync(descriptor)
        finally:
            self._files.close(descriptor)

    def _report_to(self, progress: Progress) -> None:
        total_bytes = self.used_bytes()

        def report() -> bool:
            progress(min(os.path.getsize(self._target), total_bytes), total_bytes)
            return False

        self._connection.set_progress_handler(report, _PROGRESS_STEPS)
