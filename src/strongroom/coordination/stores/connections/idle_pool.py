"""Connections that wait for the next call, for stores with a protocol of their own.

Lives here: `IdlePool`. What was used last is used next, so that those a burst left behind fall idle
and are closed. Must not live here: any protocol; what is asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

from strongroom.coordination.clock import Clocks

_IDLE_MAX: Final = 8
_IDLE_S: Final = 60.0


class Kept(Protocol):
    """A connection that can be kept."""

    def is_stale(self) -> bool:
        """Whether the server said something unasked: good-bye, most likely."""
        ...

    def close(self) -> None:
        """End it."""
        ...


K = TypeVar("K", bound=Kept)


class IdlePool(Generic[K]):
    """Lends connections. Any thread may use it.

    Arguments:
        connect: makes a connection, or gives up at a time of the monotonic clock.
        is_answer: whether an error is the server's answer to what was asked, after which the
            connection is as good as before.
        clock: for letting go of idle ones.
    """

    def __init__(
        self,
        connect: Callable[[float], K],
        is_answer: Callable[[BaseException], bool],
        clock: Clocks,
    ) -> None:
        self._connect, self._is_answer, self._clock = connect, is_answer, clock
        self._lock = threading.Lock()
        self._idle: list[tuple[float, K]] = []  # since when, the last one last

    @contextmanager
    def lend(self, until_s: float) -> Iterator[K]:
        """Lend a connection; one that fails is not lent again.

        Arguments:
            until_s: give up connecting then, by the monotonic clock.

        Raises: whatever `connect` raises; nothing was asked then.
        """
        connection = self._kept() or self._connect(until_s)
        fit = False
        try:
            yield connection
            fit = True
        except BaseException as error:
            fit = self._is_answer(error)
            raise
        finally:
            if fit:
                self._keep(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close those that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _kept(self) -> K | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                _, connection = self._idle.pop()
            if not connection.is_stale():
                return connection
            connection.close()

    def _keep(self, connection: K) -> None:
        now_s = self._clock.monotonic_s()
        with self._lock:
            self._idle.append((now_s, connection))
            over = len(self._idle) > _IDLE_MAX or self._idle[0][0] < now_s - _IDLE_S
            oldest = self._idle.pop(0)[1] if over else None
        if oldest is not None:
            oldest.close()
