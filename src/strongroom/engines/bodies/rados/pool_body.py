"""One body in a pool: its objects are written, and the first one tells when it is whole.

Lives here: `PoolWriting` and `PoolReading`. Must not live here: removals (pool.py), threads.
"""

from __future__ import annotations

import errno
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from strongroom.engines.bodies.base import BodiesAway
from strongroom.engines.bodies.rados.connection import ObjectChange, PoolConnection
from strongroom.engines.bodies.rados.library import CHANGED
from strongroom.engines.bodies.rados.objects import (
    OBJECT_BYTES,
    REACH,
    STATE,
    BodyState,
    object_name,
    other_names,
)

_AT_ONCE: Final = 8
_TOUCH_S: Final = 600.0


class Objects(Protocol):
    """The pool that has the objects.

    Attributes:
        connection: the present one.
    """

    connection: PoolConnection

    def removed(self, body_id: int) -> bool: ...


class PoolWriting:
    """See BlockingWriting. The first object is written when the second one begins, so that a body
    of one object is written by `finish` alone. All are written to the pool in which it began.
    A copy of that pool under its name may have the first objects, and lack others.

    An upload says in its state how far it may reach. It says that anew every 10 minutes at least,
    too: so it stays young, and learns if it was removed.
    """

    pieces_at_once = _AT_ONCE

    def __init__(self, pool: Objects, body_id: int, state: BodyState) -> None:
        self._pool = pool
        self._pool_id = pool.connection.pool_id
        self._id = body_id
        self._buffer = bytearray()
        self._number = self._size_bytes = 0
        self._reach = state.number
        self._touch_at_s: float | None = None
        self._state = state
        self._stating = threading.Lock()
        self._is_unsure = False

    def pieces(self, data: bytes, now_s: float) -> Iterator[Callable[[], None]]:
        if self._touch_at_s is None:
            self._touch_at_s = now_s + _TOUCH_S
        left = memoryview(data)
        while True:
            room = OBJECT_BYTES - len(self._buffer)
            taken, left = left[:room], left[room:]
            self._buffer += taken
            self._size_bytes += len(taken)
            if len(self._buffer) < OBJECT_BYTES or not (self._number or left):
                return
            yield self._piece(now_s)

    def _piece(self, now_s: float) -> Callable[[], None]:
        """Return the call that writes the buffer, which is handed over without a copy."""
        full, self._buffer = self._buffer, bytearray()
        call = functools.partial(self._write, self._number, full)
        self._number += 1
        # Objects of the next calls may be written before this one is.
        is_old = self._touch_at_s is not None and now_s >= self._touch_at_s
        if not is_old and self._number + _AT_ONCE <= self._reach:
            return call
        self._reach = max(self._reach, self._number + REACH)
        self._touch_at_s = now_s + _TOUCH_S
        return functools.partial(_both, call, self._reaches(self._reach))

    def _write(self, number: int, data: bytearray) -> None:
        """Only the first object is there before."""
        self._change(number, ObjectChange(exists=True if number == 0 else None, data=data))

    def _reaches(self, reach: int) -> Callable[[], None]:
        def say() -> None:
            with self._stating:
                if reach >= self._state.number:
                    self._become(BodyState("arriving", reach))

        return say

    def finish(self) -> None:
        rest, self._buffer = self._buffer, bytearray()
        whole = BodyState("whole", self._size_bytes)
        if self._number and rest:
            self._write(self._number, rest)
        self._become(whole, None if self._number else rest)

    def _become(self, state: BodyState, data: bytearray | None = None) -> None:
        """Raises: BodiesAway: whoever sweeps has removed the body, or has begun to."""
        before, after = (STATE, self._state.text()), (STATE, state.text())
        self._change(0, ObjectChange(exists=True, expects=before, data=data, sets=after))
        self._state = state

    def _change(self, number: int, change: ObjectChange) -> None:
        connection = self._pool.connection
        if connection.pool_id != self._pool_id:
            raise BodiesAway(f"body {self._id} was written while its pool was replaced")
        try:
            connection.change(object_name(self._id, number), change)
        except TimeoutError:
            self._is_unsure = True
            raise
        except OSError as error:
            if error.errno not in (CHANGED, errno.ENOENT):
                raise
            raise BodiesAway(f"body {self._id} was removed while it was written") from None

    def give_up(self) -> None:
        """A write that was given up may happen yet. So the body is left to the sweep then, which
        comes a day later.

        Nobody else finds the objects that were written after the first one was removed."""
        if self._is_unsure or self._pool.connection.pool_id != self._pool_id:
            return
        if not self._pool.removed(self._id):
            self._pool.connection.remove(other_names(self._id, self._number + 1))


class PoolReading:
    """See BlockingReading. Nothing is kept open: the objects must stay."""

    def __init__(self, pool: Objects, body_id: int, size_bytes: int) -> None:
        self._pool = pool
        self._id = body_id
        self.size_bytes = size_bytes

    def read(self, offset: int, length: int) -> bytes:
        end = min(offset + length, self.size_bytes)
        parts = []
        while offset < end:
            number, start = divmod(offset, OBJECT_BYTES)
            count = min(OBJECT_BYTES - start, end - offset)
            parts.append(self._part(number, start, count))
            offset += count
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _part(self, number: int, start: int, count: int) -> bytes:
        try:
            part = self._pool.connection.read(object_name(self._id, number), start, count)
        except FileNotFoundError:
            part = b""
        if len(part) < count:
            at = number * OBJECT_BYTES + start + len(part)
            raise FileNotFoundError(errno.ENOENT, f"its bytes from {at} on are missing")
        return part

    def close(self) -> None:
        """There is nothing to close."""


def _both(first: Callable[[], None], second: Callable[[], None]) -> None:
    first()
    second()
