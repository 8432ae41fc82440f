"""QUERY_DIRECTORY."""

from __future__ import annotations

from collections.abc import Callable

from strongroom.services.core.runner import Services
from strongroom.services.file.handles.model import EnumeratedNode, EnumerateWanted, Handle


async def enumerate_names(
    services: Services,
    handle: Handle,
    wanted: EnumerateWanted,
    accept: Callable[[EnumeratedNode], bool],
) -> tuple[int, bool]:
    """Give the rows that match, in order, as long as `accept` takes them.

    Arguments:
        accept: returns False for a row that has no room: it is given first next time.

    Returns: how many rows were taken, and whether this was the handle's first query. Nothing taken,
        and nothing refused, is NO_SUCH_FILE on the first and NO_MORE_FILES on later ones.

    Raises: StorageError INVALID_PARAMETER (no directory), ACCESS_DENIED, OBJECT_NAME_INVALID.
    """
    raise NotImplementedError
