"""The cut of a segment's file after its last content: what no record named goes back to the disk.

Lives here: the cut, on the loop or on a thread. Must not live here: where a segment ends
(segments.py).

While a segment is open, only bytes are cut that no record has ever named. So bytes that one has
named never change, and a backup may share them. What a killed process has left may have been named
once, so it is cut only where nothing is ever appended again.

A cut that fails harms nothing: the next body overwrites what is left.
"""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import Executor

from strongroom.engines.embedded.bodies.handles import Handles
from strongroom.engines.embedded.bodies.segment import Segment
from strongroom.engines.embedded.disk.files import Files

_log = logging.getLogger(__name__)


class Cuts:
    """Cuts the segments of one store. Used on the event loop."""

    def __init__(self, executor: Executor, handles: Handles) -> None:
        self._executor = executor
        self._handles = handles
        self._loop = asyncio.get_running_loop()

    def cut(self, segment: Segment) -> None:
        """Cut a segment to its end. Call it while nobody writes behind that.

        Nothing is opened: where no descriptor is open, nothing has been written either.
        """
        if (descriptor := _open_descriptor(segment)) is not None:
            _cut(self._handles.files, segment, descriptor, segment.end)

    def cut_on_thread(self, segment: Segment) -> asyncio.Future[None]:
        """Cut a segment as `cut` does, where that may take long. The future never fails; nobody may
        append until it is done."""
        descriptor = _open_descriptor(segment)
        if descriptor is None or self._handles.is_stopped:
            future: asyncio.Future[None] = self._loop.create_future()
            future.set_result(None)
            return future
        files, end = self._handles.files, segment.end
        return self._loop.run_in_executor(self._executor, _cut, files, segment, descriptor, end)


def cut_file(files: Files, segment: Segment, end: int) -> int:
    """Cut a segment that nobody writes to its first `end` bytes. Return its length afterwards."""
    try:
        descriptor = files.reopen(segment.path)
    except OSError as error:  # too many open files, perhaps
        _log_kept(segment, error)
        return segment.end
    try:
        _cut(files, segment, descriptor, end)
        return os.fstat(descriptor).st_size
    finally:
        files.close(descriptor)


def _open_descriptor(segment: Segment) -> int | None:
    return segment.past_cache if segment.descriptor is None else segment.descriptor


def _cut(files: Files, segment: Segment, descriptor: int, end: int) -> None:
    try:
        if os.fstat(descriptor).st_size > end:
            files.truncate(descriptor, end)
    except OSError as error:
        _log_kept(segment, error)


def _log_kept(segment: Segment, error: OSError) -> None:
    _log.warning("segment %016x keeps bytes that nothing needs: %s", segment.id, error)
