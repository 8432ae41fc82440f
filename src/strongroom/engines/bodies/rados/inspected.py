"""A pool of Ceph that is read from outside of a server.

Lives here: `InspectedPool`. Must not live here: what servers need too (pool.py).
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterator, Sequence
from typing import Final

from strongroom.engines.bodies.base import FoundBody
from strongroom.engines.bodies.rados.objects import body_of, object_name
from strongroom.engines.bodies.rados.pool import BodyPool, batches
from strongroom.engines.bodies.urls import PoolUrl

_PIECE_BYTES: Final = 1024 * 1024


class InspectedPool(BodyPool):
    """A pool that is read from outside of a server. See InspectedBodies.

    Objects of a body whose first one is missing are found, too. A gateway that stood still for days
    may have written them after its upload was removed.
    """

    def __init__(self, where: PoolUrl) -> None:
        super().__init__(where)
        # Ceph's library has threads, which must end before the process does.
        weakref.finalize(self, self.connection.close)
        self._strays: dict[int, str] = {}

    def pages(self) -> Generator[Sequence[int], None, None]:
        for names in batches(self.connection.names()):
            found = {body: name for name in names if (body := body_of(name)) is not None}
            first = {body_id for body_id, is_first in found if is_first}
            others = {body_id: name for (body_id, is_first), name in found.items() if not is_first}
            strays = {
                body_id: name
                for body_id, name in others.items()
                if body_id not in first and self._is_stray(body_id)
            }
            new = strays.keys() - self._strays.keys()
            self._strays |= strays
            yield [*first, *new]

    def _is_stray(self, body_id: int) -> bool:
        try:
            self.connection.changed_at(object_name(body_id))
        except FileNotFoundError:
            return True
        return False

    def _states(self, body_ids: Sequence[int], now: int) -> Iterator[FoundBody]:
        yield from super()._states([one for one in body_ids if one not in self._strays], now)
        for body_id in self._strays.keys() & set(body_ids):
            try:
                changed = self.connection.changed_at(self._strays[body_id])
            except FileNotFoundError:
                continue
            yield FoundBody(body_id, 0, now - changed)

    def pieces(self, body_id: int) -> Iterator[bytes]:
        body = self.open(body_id)
        for offset in range(0, body.size_bytes, _PIECE_BYTES):
            yield body.read(offset, _PIECE_BYTES)
