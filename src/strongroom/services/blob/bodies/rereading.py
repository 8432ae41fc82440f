"""Repeated reads of a blob that changes while it is read, and telling a change from damage.

Lives here: when a reader of several records and contents starts again, and when it gives up.

A part of a body may be missing although the blob refers to the same body before and after. Then the
blob referred to it all the time in between. A body that was given up never comes back, and one that
grows keeps its parts. If the container still exists afterwards, nothing swept the part either, so
the blob is damaged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from strongroom.engines.base import ContentMissing
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.store.blob.bodies.body import Body

_log = logging.getLogger(__name__)


class Stale(Exception):
    """The blob has changed since it was read."""


class RetriedRead:
    """The repeated reads of one blob by one request, until nothing changes in between.

    Arguments:
        blob_name: the blob, for the log.
        check_place: raises when the blob's container does not exist any more.
    """

    def __init__(self, blob_name: str, check_place: Callable[[], Awaitable[object]]) -> None:
        self._blob_name = blob_name
        self._check_place = check_place
        self._seen: Body | None = None
        self._missed: Body | None = None

    def note_body(self, body: Body) -> None:
        """Note the body of the head, or snapshot, that this read found."""
        self._seen = body

    async def prepare_retry(self, reason: Stale | ContentMissing) -> None:
        """Refused with InternalError when a part is missing that the blob still refers to."""
        await self._check_place()
        if isinstance(reason, ContentMissing):
            seen, missed = self._seen, self._missed
            if seen is not None and missed is not None and seen.includes(missed):
                _log.error("the blob %s is damaged, it cannot be read: %s", self._blob_name, reason)
                raise StorageError(errors.INTERNAL_ERROR)
            self._missed = self._seen
        # Reads of this server may never suspend: other tasks get a turn here.
        await asyncio.sleep(0)
