"""One holder of the shared set: it acquires the lock, reads, pauses, and writes one element more.

    python -m tests.coordination.shared_set_client URL TTL_S FOLDER LABEL GUARDED

The set lies in SQLite, as one value that is read and written as a whole. A stale write therefore
undoes the additions of others. GUARDED 1: reads and writes carry the fence, and the database
refuses an old one. GUARDED 0: only the lock protects the set. In both cases the holder does not
check its handle before the write, so every stale write reaches the resource. Must not live here:
faults, judging (shared_set.py).
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from strongroom.coordination import CoordTimeout, Held, StoreUnavailable, connect
from strongroom.coordination.guards import FencedOut, Token
from strongroom.coordination.guards.sql import SqlGuard

LOCK: Final = "shared-set"
STATUS_BYTES: Final = 32
THINK_MAX_S: Final = 0.2
_TIMEOUT_S: Final = 60.0


class Holder:
    """A holder, which records its actions in its folder for the code that applies the faults.

    Arguments:
        folder: has `set.sqlite`. `LABEL.status` is the present action (`thinking FENCE`, `writing
            FENCE`, `idle 0`). `LABEL.log` has a line for every write: its result, fence, element.
            While `LABEL.slow` exists, the holder pauses before its write.
        label: its name.
        guarded: see the module's docstring.
    """

    def __init__(self, folder: Path, label: str, guarded: bool) -> None:
        self._label, self._guarded = label, guarded
        self._slow = folder / f"{label}.slow"
        flags = os.O_WRONLY | os.O_CREAT
        self._status = os.open(folder / f"{label}.status", flags)
        self._log = os.open(folder / f"{label}.log", flags | os.O_APPEND)
        self._data = sqlite3.connect(folder / "set.sqlite", timeout=_TIMEOUT_S)

    def turn(self, held: Held, element: str) -> None:
        """Add one element."""
        try:
            with self._transaction(held) as cursor:
                cursor.execute("SELECT members FROM shared")
                members = json.loads(cursor.fetchone()[0])
            self._is("thinking", held.fence)
            time.sleep(THINK_MAX_S * random.random())
            while self._slow.exists():
                time.sleep(0.01)
            self._is("writing", held.fence)
            with self._transaction(held) as cursor:
                cursor.execute("UPDATE shared SET members = ?", (json.dumps([*members, element]),))
            self._note("added", held.fence, element)
        except FencedOut:
            self._note("refused", held.fence, element)
        self._is("idle", 0)

    @contextmanager
    def _transaction(self, held: Held) -> Iterator[Any]:
        if self._guarded:
            with SqlGuard(Token(held.name, held.fence), self._data) as cursor:
                yield cursor
        else:
            with self._data:
                yield self._data.cursor()

    def _is(self, what: str, fence: int) -> None:
        os.pwrite(self._status, f"{what} {fence}".ljust(STATUS_BYTES).encode(), 0)

    def _note(self, what: str, fence: int, element: str) -> None:
        os.write(self._log, f"{what} {fence} {element}\n".encode())


def main() -> None:
    """Add elements until the file `stop` exists."""
    url, ttl_s, folder_name, label, guarded = sys.argv[1:]
    folder = Path(folder_name)
    holder = Holder(folder, label, guarded == "1")
    with connect(url, label=label) as client:
        for count in itertools.count():
            if (folder / "stop").exists():
                return
            try:
                held = client.lock(LOCK, ttl=float(ttl_s), wait=1.0).acquire()
            except (CoordTimeout, StoreUnavailable):
                time.sleep(0.05 * random.random())
                continue
            holder.turn(held, f"{label}.{count}")
            held.release()
            time.sleep(0.02 * random.random())


if __name__ == "__main__":
    main()
