"""A pool of idle connections, for stores with a protocol of their own.

Lives here: `IdlePool`. The most recently used connection is lent first. So the surplus after a
burst stays idle and is closed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

from strongroom.coordination.clock import Clocks

_IDLE_MAX: Final = 8
_IDLE_S: Final = 60.0


class PooledConnection(Protocol):
    """A connection that the pool can keep."""

    def is_stale(self) -> bool:
        """Return whether unsolicited data has arrived; usually the server is closing it."""
        ...

    def close(self) -> None: ...


K = TypeVar("K", bound=PooledConnection)


class IdlePool(Generic[K]):
    """Lends connections to callers. Thread-safe.

    Arguments:
        connect: opens a connection, or gives up at the given time of the monotonic clock.
        is_answer: whether an error is the server's answer, so that the connection stays usable.
        clock: measures how long a connection has been idle.
    """

    def __init__(
        self,
        connect: Callable[[float], K],
        is_answer: Callable[[BaseException], bool],
        clock: Clocks,
    ) -> None:
        self._connect, self._is_answer, self._clock = connect, is_answer, clock
        self._lock = threading.Lock()
        self._idle: list[tuple[float, K]] = []  # idle since when; the most recent is last

    @contextmanager
    def lend(self, until_s: float) -> Iterator[K]:
        """Lend a connection for a `with` block; a connection that fails is closed.

        Arguments:
            until_s: when to give up connecting, by the monotonic clock.

        Raises: the errors of `connect`; no request was sent then.
        """
        connection = self._take_idle() or self._connect(until_s)
        is_usable = False
        try:
            yield connection
            is_usable = True
        except BaseException as error:
            is_usable = self._is_answer(error)
            raise
        finally:
            if is_usable:
                self._return_idle(connection)
            else:
                connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _take_idle(self) -> K | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                _, connection = self._idle.pop()
            if not connection.is_stale():
                return connection
            connection.close()

    def _return_idle(self, connection: K) -> None:
        now_s = self._clock.monotonic_s()
        with self._lock:
            self._idle.append((now_s, connection))
            has_surplus = len(self._idle) > _IDLE_MAX or self._idle[0][0] < now_s - _IDLE_S
            oldest = self._idle.pop(0)[1] if has_surplus else None
        if oldest is not None:
            oldest.close()
