"""A plain client of the same PostgreSQL, which writes all the time: what any client would see.

Lives here: the client, and how long it had no success. What a server over the same database needs
beyond that is the server's own part. Must not live here: the faults.
"""

from __future__ import annotations

import itertools
import threading
import time
from types import TracebackType
from typing import Final, Self

import psycopg

_PAUSE_S: Final = 0.02
_TABLE: Final = "CREATE TABLE IF NOT EXISTS plain (n bigint); INSERT INTO plain VALUES (0)"


class PlainWriter:
    """Writes to the primary from the start of a `with` to its end.

    Arguments:
        url: with all nodes and `target_session_attrs=read-write`.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        with psycopg.connect(url) as session:
            session.execute(_TABLE)
        self._connected: list[float] = []
        self._confirmed: list[float] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def promotion_s(self, since: float) -> float:
        """Return how long after a moment a session to a new primary was open."""
        return next((at for at in self._connected if at > since), since) - since

    def gap_s(self, since: float) -> float:
        """Return the longest time without a confirmed write, from a moment on."""
        moments = [since, *(at for at in self._confirmed if at > since)]
        return max((later - before for before, later in itertools.pairwise(moments)), default=0.0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=2) as session:
                    self._connected.append(time.monotonic())
                    self._write(session)
            except psycopg.Error:
                time.sleep(_PAUSE_S)

    def _write(self, session: psycopg.Connection) -> None:
        while not self._stopping.is_set():
            session.execute("UPDATE plain SET n = n + 1")
            self._confirmed.append(time.monotonic())
            time.sleep(_PAUSE_S)
