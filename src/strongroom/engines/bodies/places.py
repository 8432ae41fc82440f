"""Opening a place of bodies by its URL.

Lives here: which kind of place a URL names. Must not live here: the form of URLs (urls.py), which
store a place belongs to.
"""

from __future__ import annotations

from strongroom.engines.bodies.base import BodyStore, InspectedBodies
from strongroom.engines.bodies.folder import make_folder_ready, open_folder
from strongroom.engines.bodies.layout import BodyFolder
from strongroom.engines.bodies.mark import BodiesMark
from strongroom.engines.bodies.urls import folder_of


async def open_place(url: str) -> BodyStore:
    """Open a place that has a mark. Raises: BodiesUnfit; BodiesAway: it does not answer."""
    return await open_folder(folder_of(url))


async def make_place_ready(url: str, mark: BodiesMark) -> None:
    """Make an empty place one for bodies. It stays as it is if it has the store's mark already.

    Raises: BodiesUnfit: it is not empty, or belongs to another store; BodiesAway.
    """
    await make_folder_ready(folder_of(url), mark)


def inspect_place(url: str) -> InspectedBodies:
    """Open a place with a mark for reading. It may block. Raises: BodiesUnfit, OSError."""
    return BodyFolder(folder_of(url))
