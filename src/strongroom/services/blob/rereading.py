"""Looking again at a blob that changed while it was read, and telling a change from damage.

Lives here: when a reader of several records and contents begins again, and when it gives up. Must
not live here: what is read.

Something of a body may be missing although the blob names the body before and after. Then the body
was named all the time in between: bodies never come back, and one that grows keeps its parts. If
its container was there afterwards, nothing swept it either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from strongroom import errors
from strongroom.engines.base import ContentMissing
from strongroom.errors import StorageError
from strongroom.store.blob.bodies.body import Body

_log = logging.getLogger(__name__)


class Stale(Exception):
    """The blob is no longer what was seen of it."""


class Rereading:
    """The looks at one blob that one request takes until nothing changes in between.

    Arguments:
        what: the blob, for the log.
        check_place: raises when the blob's container is not there any more.
    """

    def __init__(self, what: str, check_place: Callable[[], Awaitable[object]]) -> None:
        self._what = what
        self._check_place = check_place
        self._seen: Body | None = None
        self._missed: Body | None = None

    def saw(self, body: Body) -> None:
        """The head, or snapshot, that this look found has this body."""
        self._seen = body

    async def again(self, reason: Stale | ContentMissing) -> None:
        """Return when it is worth looking again.

        Raises: what check_place raises; StorageError InternalError when something is missing that
            the blob still names.
        """
        await self._check_place()
        if isinstance(reason, ContentMissing):
            seen, missed = self._seen, self._missed
            if seen is not None and missed is not None and seen.includes(missed):
                _log.error("the blob %s is damaged, it cannot be read: %s", self._what, reason)
                raise StorageError(errors.INTERNAL_ERROR)
            self._missed = self._seen
        # Reads of this server may never suspend: everybody else gets a turn here.
        await asyncio.sleep(0)
