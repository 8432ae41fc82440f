"""Logs that SQLite wrote, as bytes, and ways to damage them.

Lives here: the set-up that the tests of log/check.py share. Must not live here: tests.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from strongroom.engines.embedded.log.check import LogVerdict, examine_log
from strongroom.engines.embedded.log.wal_format import FRAME_HEAD_BYTES, HEADER_BYTES

SMALL_PAGE_BYTES: Final = 512  # many frames in a short file


class Log:
    """A database of SQLite and its log.

    Arguments:
        pads: SQLite fills the sector after a commit, as for a disk that may damage bytes beside
            those that it writes.
    """

    def __init__(self, path: Path, page_bytes: int = SMALL_PAGE_BYTES, pads: bool = False) -> None:
        self.page_bytes = page_bytes
        self.frame_bytes = FRAME_HEAD_BYTES + page_bytes
        flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        self._connection = apsw.Connection(f"file:{path}?psow={int(not pads)}", flags=flags)
        self._path = Path(f"{path}-wal")
        self._number = self._frames = 0
        for setting in (
            f"page_size = {page_bytes}",
            "journal_mode = wal",
            "synchronous = full",
            "wal_autocheckpoint = 0",
        ):
            self._connection.execute(f"PRAGMA {setting}")
        # A checkpoint would return the count too, but it restarts the log.
        self._connection.set_wal_hook(self._note)
        self._connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, value BLOB)")
        self.commit(40)
        self.restart()

    def commit(self, rows: int) -> None:
        """Commit a transaction that changes so many rows, of about one page each."""
        self.change(rows)
        self._connection.execute("COMMIT")

    def change(self, rows: int) -> None:
        """Open a transaction and change rows in it."""
        self._connection.execute("BEGIN IMMEDIATE")
        for row in range(rows):
            self._number += 1
            value = random.Random(self._number).randbytes(self.page_bytes * 2 // 3)
            self._connection.execute("REPLACE INTO t VALUES (?, ?)", (row, value))

    def roll_back_spilled(self, rows: int) -> None:
        """Write frames of a transaction that does not fit into memory, and roll it back."""
        self._connection.execute("PRAGMA cache_size = 2")
        self.change(rows)
        self._connection.execute("ROLLBACK")
        self._connection.execute("PRAGMA cache_size = -2000")

    def restart(self) -> None:
        """Restart the log in the same file, with the next commit."""
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)

    def empty(self) -> None:
        """Restart the log in an empty file."""
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def bytes(self) -> bytes:
        """Return the log's present bytes."""
        return self._path.read_bytes()

    def frames(self) -> int:
        """Return how many frames of the log are committed."""
        return self._frames

    def _note(self, connection: apsw.Connection, name: str, frames: int) -> int:
        self._frames = frames
        return apsw.SQLITE_OK

    def close(self) -> None:
        self._connection.close()


@contextmanager
def log_in(
    directory: Path, page_bytes: int = SMALL_PAGE_BYTES, pads: bool = False
) -> Iterator[Log]:
    """Yield a log in a directory, and close it at the end."""
    log = Log(directory / "records", page_bytes, pads)
    try:
        yield log
    finally:
        log.close()


def judged(data: bytes, page_bytes: int = SMALL_PAGE_BYTES) -> LogVerdict:
    """Return the verdict on a log's bytes."""
    return examine_log(io.BytesIO(data), page_bytes)


def kept_by_sqlite(database: bytes, log: bytes, directory: Path) -> int:
    """Return how many frames of a log SQLite accepts, in an empty directory."""
    path = directory / "records"
    path.write_bytes(database)
    Path(f"{path}-wal").write_bytes(log)
    connection = apsw.Connection(str(path))
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[0]
    finally:
        connection.close()


def flipped(data: bytes, at: int, bit: int) -> bytes:
    """Return the bytes with one bit flipped."""
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)


def frame_at(number: int, page_bytes: int = SMALL_PAGE_BYTES) -> int:
    """Return the offset of a frame; frames are counted from 1."""
    return HEADER_BYTES + (number - 1) * (FRAME_HEAD_BYTES + page_bytes)
