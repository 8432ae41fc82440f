"""One pass of the scrub, piece by piece: the log, the records, the segments with their contents.

Lives here: the order, and what counts as damage. Must not live here: when a pass begins, and the
pauses (scrub.py), how a piece is read (bodies.py, records/scrub_reader.py, log/live_check.py).

Requests go on meanwhile. These rules keep what they do from looking like damage:
 1. Records are read in snapshots, which SQLite keeps from checkpoints.
 2. A content without a row is not read: it is being written, or has been dropped.
 3. A content that seems to be damaged is read again with its segment pinned. If it has no row any
    more, nothing was damaged; if it has moved, it is read at its new place.
 4. The frames of the log that belong to commits at one moment are read, and they count only if the
    log has not started anew.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

import apsw

from strongroom.engines.base import ContentMissing, DataDamaged, Unavailable
from strongroom.engines.embedded.bodies.body_check import FILE_MISSING
from strongroom.engines.embedded.log.live_check import LiveLogCheck
from strongroom.engines.embedded.records.record_walk import WalkPosition
from strongroom.engines.embedded.records.scrub_reader import ReadRecords, ScrubReader, is_unreadable
from strongroom.engines.embedded.records.sqlite import Location
from strongroom.engines.embedded.scrub.bodies import ROWS_MAX, BodyReading, problem_of_segment
from strongroom.engines.embedded.scrub.kept import DamagedPlace, Part, PassPosition, record_place
from strongroom.engines.embedded.scrub.pace import CEILING_BYTES_S, piece_records
from strongroom.engines.embedded.scrub.source import ScrubSource, ScrubThread
from strongroom.engines.embedded.scrub.state import ScrubState

T = TypeVar("T")

_FRAMES: Final = 16
_RECORDS_FIRST, _RECORDS_MAX = 64, 1024
_LOG: Final = DamagedPlace("log")
_OPENING, _SMALL_TABLES, _SEGMENTS = (
    DamagedPlace("records", number=number) for number in (1, 2, 3)
)
_FIRST_TABLE: Final = 4
_PAGE_DAMAGED: Final = "its page is damaged"
_PLACES_DAMAGED: Final = "a page with the places of its contents is damaged"


class ScrubPieces:
    """The pieces of a pass. Used on the event loop.

    Arguments:
        wall_s: returns the time in seconds since 1970.
        sleep: pauses for some seconds.
    """

    def __init__(
        self,
        source: ScrubSource,
        thread: ScrubThread,
        state: ScrubState,
        wall_s: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._source = source
        self._thread = thread
        self._state = state
        self._wall_s = wall_s
        self._sleep = sleep

    async def open(self) -> None:
        """Open the records, if they are not, and forget the pages that were read. Call it before a
        pass. Raises as `of_pass` does."""
        try:
            await self._thread.ask(lambda reader: reader.forget_pages())
        except (apsw.Error, DataDamaged) as error:
            if isinstance(error, DataDamaged) or is_unreadable(error):
                self._note(_OPENING, f"they cannot be opened: {error}")
            raise
        self._note(_OPENING, None)

    async def of_pass(self) -> AsyncGenerator[int, None]:
        """Go on with the pass to its end. Yield how many bytes each piece had, after it.

        Raises: EngineError, apsw.Error, OSError, MemoryError: it cannot be read at present. Another
            call goes on at the same place.
        """
        if self._state.position.part == "log":
            async for read_bytes in self._read_log():
                yield read_bytes
            await self._ask_records(_SMALL_TABLES, lambda reader: reader.read_small_tables())
            self._state.position = PassPosition("face")
        tables: tuple[tuple[Part, Part], ...] = (("face", "hidden"), ("hidden", "segments"))
        for table, (part, following) in enumerate(tables):
            if self._state.position.part == part:
                async for read_bytes in self._read_table(table, part):
                    yield read_bytes
                self._state.position = PassPosition(following)
        async for read_bytes in self._read_segments():
            yield read_bytes

    async def look_again(self) -> None:
        """Look again at every place that was found damaged. Raises as `of_pass` does."""
        await self.open()
        for finding in self._state.findings.all():
            place = finding.place
            if place.kind == "log":
                async for _ in self._read_log():
                    pass
            elif place.kind == "record":
                ref = place.ref
                is_sound = await self._thread.ask(
                    functools.partial(ScrubReader.is_readable, ref=ref)
                )
                self._note(place, None if is_sound else _PAGE_DAMAGED)
            elif place.kind == "segment":
                self._note(place, await self._problem_of_segment(place.number))
            elif place.kind == "content":
                self._note(place, await self._problem_of_content(place.number))

    def _note(self, place: DamagedPlace, problem: str | None) -> None:
        self._state.note(place, problem, self._wall_s())

    async def _read_log(self) -> AsyncIterator[int]:
        moment = await self._source.log_moment()
        checking = LiveLogCheck(self._source.layout.log, moment)
        while not checking.is_done:
            yield await self._thread.run(checking.read, _FRAMES)
        self._note(_LOG, checking.problem)

    async def _read_table(self, table: int, part: Part) -> AsyncIterator[int]:
        count = _RECORDS_FIRST
        place = DamagedPlace("records", number=_FIRST_TABLE + table)
        while True:
            position = self._state.position.record
            found = await self._ask_records(place, _reading(table, position, count))
            if found is None:
                return
            damaged = set(found.damaged)
            for ref in found.damaged:
                self._note(record_place(ref), _PAGE_DAMAGED)
            self._state.findings.remove_records(table, position, found.next, damaged)
            if found.next is None:
                yield found.read_bytes
                return
            self._state.position = PassPosition(part, *found.next)
            count = piece_records(count, found.read_bytes, _RECORDS_MAX)
            yield found.read_bytes

    async def _ask_records(
        self, place: DamagedPlace, question: Callable[[ScrubReader], T]
    ) -> T | None:
        """None if a page is damaged that is needed for the answer."""
        try:
            answer = await self._thread.ask(question)
        except apsw.Error as error:
            if not is_unreadable(error):
                raise
            self._note(place, f"they cannot be read any further: {error}")
            return None
        self._note(place, None)
        return answer

    async def _read_segments(self) -> AsyncIterator[int]:
        segment = self._state.position.segment or await self._next_segment(0)
        while segment is not None:
            if self._state.position.segment != segment:
                self._state.position = PassPosition("segments", segment=segment)
            problem = await self._problem_of_segment(segment)
            self._note(DamagedPlace("segment", segment), problem)
            if problem is None or FILE_MISSING not in problem:
                async for read_bytes in self._read_contents(segment):
                    yield read_bytes
            segment = await self._next_segment(segment)

    async def _next_segment(self, after: int) -> int | None:
        return await self._ask_records(_SEGMENTS, lambda reader: reader.next_segment(after))

    async def _problem_of_segment(self, segment: int) -> str | None:
        path = self._source.layout.segment(segment)
        try:
            return await self._thread.ask(lambda reader: problem_of_segment(reader, segment, path))
        except apsw.Error as error:
            if not is_unreadable(error):
                raise
            return _PLACES_DAMAGED

    async def _read_contents(self, segment: int) -> AsyncIterator[int]:
        path = self._source.layout.segment(segment)
        while rows := await self._next_contents(segment):
            reading = BodyReading(path, rows)
            while reading.rows:
                found = await self._thread.run(reading.read_piece)
                for content_id in found.sound:
                    self._note(DamagedPlace("content", content_id), None)
                for content_id in found.doubtful:
                    problem = await self._problem_of_content(content_id)
                    self._note(DamagedPlace("content", content_id), problem)
                last = max((*found.sound, *found.doubtful), default=self._state.position.content)
                self._state.position = PassPosition("segments", segment=segment, content=last)
                yield found.read_bytes

    async def _next_contents(self, segment: int) -> list[tuple[int, Location]]:
        """No contents if their places cannot be read."""
        after = self._state.position.content
        try:
            return await self._thread.ask(
                lambda reader: reader.contents_of(segment, after, ROWS_MAX)
            )
        except apsw.Error as error:
            if not is_unreadable(error):
                raise
            self._note(DamagedPlace("segment", segment), _PLACES_DAMAGED)
            return []

    async def _problem_of_content(self, content_id: int) -> str | None:
        """Read with the segment pinned. None = nothing is wrong, or it is gone."""
        try:
            opened = await self._source.contents.open(content_id)
        except ContentMissing:
            return None
        except (DataDamaged, Unavailable) as error:
            if self._source.committer.broken is not None:
                raise
            return str(error)
        try:
            path = self._source.layout.segment(opened.location.segment)
            reading = BodyReading(path, [(content_id, opened.location)])
            while True:
                found = await self._thread.run(reading.read_piece)
                if not reading.rows:
                    return found.doubtful.get(content_id)
                await self._sleep(found.read_bytes / CEILING_BYTES_S)
        finally:
            opened.close()


def _reading(
    table: int, position: WalkPosition, count: int
) -> Callable[[ScrubReader], ReadRecords]:
    return lambda reader: reader.read_records(bool(table), position, count)
