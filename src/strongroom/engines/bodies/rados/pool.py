"""Bodies in a pool of Ceph: the mark, lists, removals, and a new connection when one is lost.

Lives here: `BodyPool`, see BlockingPlace. Must not live here: one body (pool_body.py), the names of
objects (objects.py), what only inspections need (inspected.py).

A body is removed from its end: the first object goes last. So a removal that was cut is found, and
repeated. Before the objects of a body that still arrives go, its state says so. Then its writer
cannot finish it any more.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from strongroom.engines.bodies.base import BodiesAway, BodiesUnfit, FoundBody
from strongroom.engines.bodies.blocking import PlaceLimits
from strongroom.engines.bodies.mark import BodiesMark, UnknownMark, parse_mark
from strongroom.engines.bodies.rados.connection import OPERATION_S, ObjectChange, PoolConnection
from strongroom.engines.bodies.rados.library import BLOCKLISTED, CHANGED
from strongroom.engines.bodies.rados.objects import (
    MARK,
    REACH,
    STATE,
    TURN,
    BodyState,
    body_of,
    object_name,
    other_names,
)
from strongroom.engines.bodies.rados.pool_body import PoolReading, PoolWriting
from strongroom.engines.bodies.urls import PoolUrl

# Some threads are left for reads when all pieces wait for one group of objects.
_LIMITS: Final = PlaceLimits(
    call_s=OPERATION_S + 5.0, look_s=14.0, long_s=3 * OPERATION_S, threads=48, pieces=32
)
_LOST: Final = (BLOCKLISTED, errno.ENOTCONN)
_MARK_BYTES_MAX: Final = 4096
_PAGE: Final = 1000


class BodyPool:
    """A pool with its mark. See BlockingPlace.

    Raises: BodiesUnfit, OSError.
    """

    limits = _LIMITS

    def __init__(self, where: PoolUrl) -> None:
        self._where = where
        self.shown = str(where)
        self.connection = PoolConnection(where)
        try:
            self.mark = _read_mark(where, self.connection)
        except BaseException:
            self.connection.close()
            raise

    def look(self) -> BodiesMark:
        try:
            self.mark = self._mark_where_it_leads()
        except BodiesUnfit as error:
            raise BodiesAway(str(error)) from None
        return self.mark

    def _mark_where_it_leads(self) -> BodiesMark:
        """The pool may be another one of this name by now. A connection that was lost, or that Ceph
        refuses, never comes back."""
        connection = self.connection
        try:
            if connection.is_current():
                return self._own_mark(connection)
        except OSError as error:
            if error.errno not in _LOST:
                raise
        fresh = PoolConnection(self._where)
        try:
            mark = self._own_mark(fresh)
        except BaseException:
            fresh.close()
            raise
        self.connection = fresh
        connection.close()
        return mark

    def _own_mark(self, connection: PoolConnection) -> BodiesMark:
        mark = _read_mark(self._where, connection)
        if mark.store != self.mark.store:
            raise BodiesAway(f"{self.shown} has the bodies of another store now")
        return mark

    def put_mark(self, mark: BodiesMark, is_late: Callable[[], bool]) -> None:
        """It replaces the mark that was read last, and no other one. So a call that the pool
        carries out late does not undo what others have put since."""
        if is_late():
            raise TimeoutError(errno.ETIMEDOUT, "the mark is late, and is left as it was")
        try:
            change = _mark_change(mark, replaces=self.mark)
            self.connection.change(MARK, change)
        except OSError as error:
            if error.errno != CHANGED:
                raise
            raise BodiesAway(f"{self.shown}: its mark was changed meanwhile") from None
        self.mark = mark

    def begin(self, body_id: int) -> PoolWriting:
        state = BodyState("arriving", REACH)
        change = ObjectChange(exists=False, sets=(STATE, state.text()))
        self.connection.change(object_name(body_id), change)
        return PoolWriting(self, body_id, state)

    def open(self, body_id: int) -> PoolReading:
        state = self._state(body_id)
        if not state.is_whole:
            raise FileNotFoundError(errno.ENOENT, "it is not complete")
        return PoolReading(self, body_id, state.size_bytes)

    def _state(self, body_id: int) -> BodyState:
        return BodyState.parse(self._state_text(body_id))

    def _state_text(self, body_id: int) -> bytes:
        """Return the attribute as it is; one that is missing is empty, for comparisons too."""
        try:
            return self.connection.attribute(object_name(body_id), STATE)
        except OSError as error:
            if error.errno != errno.ENODATA:
                raise
            return b""

    def remove(self, body_ids: Sequence[int]) -> None:
        for body_id in body_ids:
            self.removed(body_id)

    def removed(self, body_id: int) -> bool:
        """Remove a body. Return whether its first object was there."""
        try:
            state = self._removable(body_id)
        except FileNotFoundError:
            return False
        self.connection.remove(other_names(body_id, state.objects))
        self.connection.remove([object_name(body_id)])
        return True

    def _removable(self, body_id: int) -> BodyState:
        """Return what may be removed; its writer cannot finish it. Raises: FileNotFoundError."""
        while True:
            text = self._state_text(body_id)
            state = BodyState.parse(text)
            if state.word != "arriving":
                return state
            removed = (STATE, BodyState("removed", state.number).text())
            change = ObjectChange(exists=True, expects=(STATE, text), sets=removed)
            try:
                self.connection.change(object_name(body_id), change)
            except OSError as error:
                if error.errno != CHANGED:
                    raise
                continue  # its writer has gone on meanwhile

    def pages(self) -> Generator[Sequence[int], None, None]:
        for names in batches(self.connection.names()):
            bodies = map(body_of, names)
            yield [found[0] for found in bodies if found is not None and found[1]]

    def states(self, body_ids: Sequence[int]) -> list[FoundBody]:
        # The mark was changed seconds ago, by the clock of a gateway as all objects are.
        now = self.connection.changed_at(MARK)
        return list(self._states(body_ids, now))

    def _states(self, body_ids: Sequence[int], now: int) -> Iterator[FoundBody]:
        for body_id in body_ids:
            try:
                changed = self.connection.changed_at(object_name(body_id))
                size_bytes = self._state(body_id).size_bytes
            except FileNotFoundError:
                continue  # it was removed just now
            yield FoundBody(body_id, size_bytes, now - changed)

    def close(self) -> None:
        self.connection.close()


def make_ready(where: PoolUrl, mark: BodiesMark) -> None:
    """Make an empty pool, or a namespace in it, one for bodies. It stays as it is if it has the
    store's mark already.

    Raises: BodiesUnfit: it is not empty, or belongs to another store; OSError.
    """
    connection = PoolConnection(where)
    try:
        with _rights_told(where):
            _make_ready(where, connection, mark)
    finally:
        connection.close()


def _make_ready(where: PoolUrl, connection: PoolConnection, mark: BodiesMark) -> None:
    if not _has_mark(connection) and _is_first(where, connection, mark):
        return
    if _read_mark(where, connection).store != mark.store:
        raise BodiesUnfit(f"{where} has the bodies of another store; name an empty pool")


def _is_first(where: PoolUrl, connection: PoolConnection, mark: BodiesMark) -> bool:
    """Put the mark, unless somebody else puts one at the same time. Raises: BodiesUnfit."""
    if next(connection.names(), None) is not None:
        if _has_mark(connection):
            return False
        raise BodiesUnfit(
            f"{where} is not empty, and has no mark; name an empty pool, or an empty namespace by "
            "ns=NAME"
        )
    try:
        connection.change(MARK, _mark_change(mark, replaces=None))
    except FileExistsError:
        return False
    return True


def _has_mark(connection: PoolConnection) -> bool:
    try:
        connection.changed_at(MARK)
    except FileNotFoundError:
        return False
    return True


def _mark_change(mark: BodiesMark, replaces: BodiesMark | None) -> ObjectChange:
    turn = (TURN, mark.turn.hex.encode())
    if replaces is None:
        return ObjectChange(exists=False, data=mark.text(), sets=turn)
    before = (TURN, replaces.turn.hex.encode())
    return ObjectChange(exists=True, expects=before, data=mark.text(), sets=turn)


def _read_mark(where: PoolUrl, connection: PoolConnection) -> BodiesMark:
    try:
        with _rights_told(where):
            return parse_mark(connection.read(MARK, 0, _MARK_BYTES_MAX))
    except FileNotFoundError:
        raise BodiesUnfit(
            f"{where} has no mark of a store's bodies. An empty pool is made ready by "
            f"`strongroom store init URL --bodies '{where}'`"
        ) from None
    except UnknownMark as error:
        raise BodiesUnfit(f"{where}: {error}") from None


@contextmanager
def _rights_told(where: PoolUrl) -> Iterator[None]:
    """Raises: BodiesUnfit, if Ceph refuses a call: it names the rights that are needed."""
    try:
        yield
    except PermissionError as error:
        raise BodiesUnfit(
            f"{where}: {where.user} may not read and write it ({error.strerror}). Give it mon "
            f"'allow r' and osd 'allow rw pool={where.pool}' by `ceph auth caps`"
        ) from None


def batches(names: Iterator[str]) -> Iterator[list[str]]:
    """Yield some names at once."""
    while batch := list(itertools.islice(names, _PAGE)):
        yield batch
