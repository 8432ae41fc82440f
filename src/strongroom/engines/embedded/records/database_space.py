"""Space in the database's file for all pages that the log holds.

Lives here: when the file is extended, and by how much. Must not live here: the log's own file
(log/space.py), checkpoints.

A commit is written to the log first; a later checkpoint writes its pages to the database. If the
disk became full in between, the log could neither be checkpointed nor be overwritten. Then nothing
could be changed any more, not even deleted. So the file is extended before a commit that adds pages
to the database. SQLite does that itself, in chunks, when it gets the size as a hint. A second
descriptor of the same file would drop SQLite's locks when it is closed. Source: "Standard File
Control Opcodes", SQLITE_FCNTL_CHUNK_SIZE and SQLITE_FCNTL_SIZE_HINT.
"""

from __future__ import annotations

import ctypes
from typing import Final

import apsw

CHUNK_BYTES: Final = 256 * 1024


def grow_in_chunks(connection: apsw.Connection) -> None:
    """Make this connection extend the database's file in multiples of the chunk."""
    chunk = ctypes.c_int(CHUNK_BYTES)
    connection.file_control("main", apsw.SQLITE_FCNTL_CHUNK_SIZE, ctypes.addressof(chunk))


class DatabaseFileSpace:
    """The space of one database.

    Arguments:
        connection: the connection that writes.
        page_bytes: the size of its pages.
    """

    def __init__(self, connection: apsw.Connection, page_bytes: int) -> None:
        self._connection = connection
        self._execute = connection.cursor().execute
        self._page_bytes = page_bytes
        self._durable_pages = self._pages = self._page_count()

    def extend(self) -> None:
        """For the pages that the open transaction adds. Raises apsw.FullError."""
        pages = self._page_count()
        if pages <= self._pages:
            return
        size = ctypes.c_int64(pages * self._page_bytes)
        try:
            self._connection.file_control(
                "main", apsw.SQLITE_FCNTL_SIZE_HINT, ctypes.addressof(size)
            )
        except apsw.IOError as error:
            # No commit depends yet on the bytes that could not be written.
            raise apsw.FullError("the database's file cannot be made longer") from error
        self._pages = pages

    def end_transaction(self, durable: bool) -> None:
        """Count its pages if it is durable, else discard them."""
        if durable:
            self._durable_pages = self._pages
        self._pages = self._durable_pages

    def _page_count(self) -> int:
        return int(self._execute("PRAGMA page_count").get)
