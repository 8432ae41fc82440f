"""Opening a place of bodies by its URL.

Lives here: which kind of place a URL names. Must not live here: the form of URLs (urls.py), which
store a place belongs to. A pool of Ceph is imported only when one is named, since it needs a
library.
"""

from __future__ import annotations

from strongroom.engines.bodies import layout
from strongroom.engines.bodies.base import BodyStore, InspectedBodies
from strongroom.engines.bodies.layout import BodyFolder
from strongroom.engines.bodies.mark import BodiesMark
from strongroom.engines.bodies.threaded import make_ready_in_thread, open_threaded
from strongroom.engines.bodies.urls import folder_of, is_pool, pool_of


async def open_place(url: str) -> BodyStore:
    """Open a place that has a mark. Raises: BodiesUnfit; BodiesAway: it does not answer."""
    if is_pool(url):
        from strongroom.engines.bodies.rados.pool import BodyPool

        where = pool_of(url)
        return await open_threaded(str(where), lambda: BodyPool(where))
    path = folder_of(url)
    return await open_threaded(url, lambda: BodyFolder(path))


async def make_place_ready(url: str, mark: BodiesMark) -> None:
    """Make an empty place one for bodies. It stays as it is if it has the store's mark already.

    Raises: BodiesUnfit: it is not empty, or belongs to another store; BodiesAway.
    """
    if is_pool(url):
        from strongroom.engines.bodies.rados import pool

        where = pool_of(url)
        await make_ready_in_thread(str(where), lambda: pool.make_ready(where, mark))
    else:
        path = folder_of(url)
        await make_ready_in_thread(url, lambda: layout.make_ready(path, mark))


def inspect_place(url: str) -> InspectedBodies:
    """Open a place with a mark for reading. It may block. Raises: BodiesUnfit, OSError."""
    if is_pool(url):
        from strongroom.engines.bodies.rados.inspected import InspectedPool

        return InspectedPool(pool_of(url))
    return BodyFolder(folder_of(url))
