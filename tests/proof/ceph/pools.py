"""Pools of a real cluster, as places of the contract and as places of a store.

Lives here: one namespace of a pool, and a store in PostgreSQL whose bodies lie there. Must not live
here: the cluster (cluster.py).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import msgspec

from strongroom.engines.bodies.rados.connection import ObjectChange, PoolConnection
from strongroom.engines.bodies.rados.objects import MARK, STATE, TURN, body_of, object_name
from strongroom.engines.bodies.urls import PoolUrl
from tests.engines.postgres.apart import Apart
from tests.engines.postgres.servers import Administrator
from tests.proof.ceph.cluster import CephCluster

_numbers: Final = itertools.count(1)


class RealPool:
    """A namespace of a pool that nothing else uses. See TriedPlace."""

    def __init__(self, ceph: CephCluster, pool: str) -> None:
        where = PoolUrl(pool, str(ceph.configuration), f"n{next(_numbers)}")
        self.url = str(where)
        self._connection = PoolConnection(where)

    def close(self) -> None:
        self._connection.close()

    def unmark(self) -> None:
        self._aside = self._connection.read(MARK, 0, 4096)
        self._turn = self._connection.attribute(MARK, TURN)
        self._connection.remove([MARK])

    def remark(self) -> None:
        self._connection.change(MARK, ObjectChange(False, None, self._aside, (TURN, self._turn)))

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        text = change(self._connection.read(MARK, 0, 4096))
        self._connection.change(MARK, ObjectChange(True, data=text))

    def left(self) -> Collection[str]:
        return [name for name in self._connection.names() if name != MARK]

    def age(self, body_id: int, age_s: int) -> None:
        name = object_name(body_id)
        state = self._connection.attribute(name, STATE)
        self._connection.change(
            name, ObjectChange(True, sets=(STATE, state)), int(time.time()) - age_s
        )

    def put_foreign(self) -> None:
        self._connection.change("notes.txt", ObjectChange(data=b"mine"))

    def bodies(self) -> set[int]:
        """Return the ids of all bodies that are there."""
        found = map(body_of, self._connection.names())
        return {one[0] for one in found if one is not None and one[1]}

    def damage(self, body_id: int) -> bool:
        """Change a byte in the middle of a body; return whether there is such a body."""
        name = object_name(body_id)
        try:
            data = bytearray(self._connection.read(name, 0, 4 * 1024 * 1024))
        except FileNotFoundError:
            return False
        data[len(data) // 2] ^= 1
        self._connection.change(name, ObjectChange(True, data=bytes(data)))
        return True


class PoolApart(Apart):
    """A store in PostgreSQL whose long bodies lie in a pool, and copies of its database."""

    def __init__(
        self, url: str, administrator: Administrator, pool: RealPool, folder: Path
    ) -> None:
        super().__init__(url, administrator, folder)
        self.pool = pool
        self.bodies = None
        self.options = msgspec.structs.replace(self.options, bodies=pool.url)

    def files(self) -> set[int]:
        return self.pool.bodies()

    def age(self, content_id: int, age_s: float) -> None:
        self.pool.age(content_id, int(age_s))

    def damage(self, content_id: int) -> None:
        if not self.pool.damage(content_id):
            super().damage(content_id)
