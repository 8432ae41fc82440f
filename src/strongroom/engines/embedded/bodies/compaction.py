"""Compaction while serving: the live contents of a mostly dead segment move to another one.

Lives here: which segments are compacted, in which order, and the commits that let rows refer to
copies. Must not live here: the copies (copies.py), allocation (segments.py), the removal of files
(unlinking.py).

The bound on waste: a sealed segment less than half alive is always being emptied. So waste is at
most the live bytes plus the open segments.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final

import apsw

from strongroom.engines.base import DataDamaged, EngineError, Full
from strongroom.engines.embedded.bodies.buffers import ALIGNMENT_BYTES
from strongroom.engines.embedded.bodies.copies import (
    Move,
    PageCopies,
    Unreadable,
    copy_buffer,
)
from strongroom.engines.embedded.bodies.segment import Segment
from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.commit.futures import retrieve_exception
from strongroom.engines.embedded.commit.group_commit import Committer
from strongroom.engines.embedded.commit.serial_point import Group
from strongroom.engines.embedded.records.checksummed_pages import unreadable
from strongroom.engines.embedded.records.sqlite import Location, Reader, Writer

_ROWS_MAX: Final = 512
_PAGE_BYTES: Final = 32 * 1024 * 1024
_RETRY_S: Final = 1.0
_FAILED_COPIES_MAX: Final = 6
# How often an idle store is looked at.
_LOOK_EVERY_S: Final = 60.0

_log = logging.getLogger(__name__)


class Compactor:
    """Empties the segments of one store in the background. Used on the event loop.

    Arguments:
        now: returns store time, in ticks.
        due: is set when a segment may need compaction.
    """

    def __init__(
        self,
        segments: SegmentStore,
        reader: Reader,
        writer: Writer,
        committer: Committer,
        executor: Executor,
        *,
        now: Callable[[], int],
        due: asyncio.Event,
    ) -> None:
        self._now = now
        self._segments = segments
        self._reader = reader
        self._writer = writer
        self._committer = committer
        self._executor = executor
        self._due = due
        self._turn = asyncio.Lock()
        self._buffer = copy_buffer()
        self._task: asyncio.Task[None] | None = None
        # How many copies in succession found less space than the disk had said. Each used the
        # reserve, so they become rarer until something else is deleted.
        self._failed_copies = 0

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        self._due.set()

    async def _run(self) -> None:
        """Runs until cancelled."""
        is_waiting = False
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await self._due.wait()
            self._due.clear()
            self._segments.seal_dead(self._now())
            try:
                while await self.compact_once():
                    pass
                is_waiting = False
            except EngineError as error:
                # The store is full, busy, unreadable or stopped. Nothing signals the end of that,
                # so retry.
                if not is_waiting:
                    _log.warning("compaction waits: %s", _reason(error))
                is_waiting = True
                await asyncio.sleep(_RETRY_S)
                self._wake_after(_RETRY_S * (2**self._failed_copies - 1))
            if not self._segments.unlinking.reap():
                self._wake_after(_RETRY_S)

    def _wake_after(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._due.set)

    async def compact_once(self) -> bool:
        """Empty the segment with the fewest live bytes of those less than half alive. Return False
        when there is none.

        Raises: Full, CommitUnknown, Unavailable.
        """
        async with self._turn:
            victim = self._victim()
            if victim is None:
                return False
            if victim.live_bytes:
                await self._committer.full_disk.check_copy(_copied_bytes(victim.live_bytes))
            try:
                is_empty = await self._empty(victim) and await self._forget(victim)
                self._failed_copies = 0
            except Full:
                self._failed_copies = min(self._failed_copies + 1, _FAILED_COPIES_MAX)
                raise
            except DataDamaged as error:
                _log.critical("segment %016x cannot be compacted: %s", victim.id, error)
                is_empty = False
            if is_empty:
                self._segments.unlinking.retire(victim)
            else:  # it stays, with its damaged contents
                victim.damaged = True
            return True

    def _forget(self, victim: Segment) -> Awaitable[bool]:
        """Delete the segment's row, durably. False if a content is still stored there."""
        return self._committer.work(lambda group: self._writer.forget_segment(victim.id))

    async def _empty(self, victim: Segment) -> bool:
        """Return False if damaged contents were left there."""
        after = 0
        while rows := self._rows(victim, after, _ROWS_MAX):
            page = _page(rows)
            await self._move_page(victim, page)
            after = page[-1][0]
        return not self._rows(victim, 0, 1)

    def _rows(self, victim: Segment, after: int, limit: int) -> list[tuple[int, Location]]:
        try:
            return self._reader.contents_of(victim.id, after, limit)
        except apsw.Error as error:
            what = f"the places of contents in segment {victim.id:016x}"
            raise unreadable(error, what) from error

    def _victim(self) -> Segment | None:
        waste = [
            one
            for one in self._segments.by_id.values()
            if one.sealed and not (one.gone or one.damaged or one.busy)
            if one.live_bytes * 2 < one.end or one.end == 0
        ]
        return min(waste, key=lambda one: one.live_bytes, default=None)

    async def _move_page(self, victim: Segment, rows: Sequence[tuple[int, Location]]) -> None:
        make_space = self._committer.full_disk.make_space_for_copy
        copies = PageCopies(self._segments, self._executor, self._buffer, make_space)
        try:
            for content_id, source in rows:
                await self._copy(copies, victim, content_id, source)
            await copies.sync()
        except BaseException:
            await copies.give_back()
            raise
        if not copies.moves:
            await copies.give_back()
            return
        # Their segment is not compacted until the outcome of this commit is known. So the work
        # continues when its caller is cancelled.
        committing = asyncio.ensure_future(self._commit(copies))
        committing.add_done_callback(retrieve_exception)
        await asyncio.shield(committing)

    async def _copy(
        self, copies: PageCopies, victim: Segment, content_id: int, source: Location
    ) -> None:
        """A damaged content stays in its place; the rest of the store still serves."""
        try:
            if not await copies.add(victim, content_id, source):
                _log.critical("content %d is damaged: its checksum differs", content_id)
        except Unreadable as error:
            _log.critical("content %d cannot be read in %s: %s", content_id, victim.path, error)

    async def _commit(self, copies: PageCopies) -> None:
        """Let the rows refer to the copies. They are given back if it is certain that no row
        does."""
        try:
            await self._committer.work(lambda group: self._repoint(copies.moves, group))
        except Full:
            await copies.give_back()
            raise
        finally:
            copies.finish()

    def _repoint(self, moves: Sequence[Move], group: Group) -> None:
        for content_id, source, target in moves:
            if self._writer.move(content_id, source, target):
                group.live.append((source.segment, -source.length))
                group.live.append((target.segment, target.length))


def _reason(error: EngineError) -> str:
    """Return why compaction waits. The text of Full is for those whose updates are refused."""
    if not isinstance(error, Full):
        return str(error)
    return (
        "the disk is too full to copy what is left in the segment with the least of it, and the "
        "space kept back is too small; delete more, or free some space in the file system"
    )


def _copied_bytes(live_bytes: int) -> int:
    """Return the most space that the copies can take: the copy of a large body is padded to a
    page."""
    return live_bytes + live_bytes // 64 + ALIGNMENT_BYTES


def _page(rows: Sequence[tuple[int, Location]]) -> Sequence[tuple[int, Location]]:
    """Return the first rows whose contents are together small enough for one commit."""
    size_bytes = 0
    for count, (_, location) in enumerate(rows, 1):
        size_bytes += location.length
        if size_bytes >= _PAGE_BYTES:
            return rows[:count]
    return rows
