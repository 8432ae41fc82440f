"""Inspection of a data directory or a backup from outside: is it whole, and what does it hold?

Lives here: one snapshot with its checks and its contents, beside a running server or without one.
The layer above judges whether a content is referenced, with `content_ids`, `records` and
`read_content`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, Final

import apsw

from strongroom.engines.base import ContentMissing, DataDamaged, Ref
from strongroom.engines.embedded.bodies.body_check import BodyCheck, segment_problems, size_of
from strongroom.engines.embedded.disk.directory import (
    RECORDS_NAME,
    DirectoryLayout,
    FileLock,
    Format,
)
from strongroom.engines.embedded.log.gate import refuse_damaged_idle_log
from strongroom.engines.embedded.records.checksummed_pages import is_damage
from strongroom.engines.embedded.records.record_walk import Walked
from strongroom.engines.embedded.records.sqlite import Location, Reader
from strongroom.engines.embedded.upkeep.upgrade.steps import lock_settled, settled_format
from strongroom.engines.findings import Finding
from strongroom.platform.files import open_reader
from strongroom.slices import run_to_completion

_PIECE_BYTES: Final = 1024 * 1024


class Inspection:
    """A snapshot of a data directory or a backup, for reading. Use it in a `with` statement.

    While it is open, the server deletes no segments; it delays nothing else.

    Arguments:
        stamp: the format of a copy that has no FORMAT file yet.

    Raises: NotADataDirectory, UnknownFormat, DirectoryInUse (it is being upgraded), Damaged (the
        log), OSError, apsw.Error.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        vfs: str | None = None,
        stamp: Format | None = None,
    ) -> None:
        self._layout = DirectoryLayout(os.path.abspath(directory))
        self.format = stamp or settled_format(self._layout)
        refuse_damaged_idle_log(self._layout)
        self._lock = FileLock(self._layout.backup_lock)
        if stamp is None:
            self.format = lock_settled(self._layout, self._lock)
        else:
            self._lock.acquire(shared=True, wait=True)
        try:
            is_bound = self.format.is_current
            self._reader = Reader(self._layout.records, vfs, scanning=True, is_bound=is_bound)
            try:
                self._reader.snapshot()
            except BaseException:
                self._reader.close()
                raise
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Inspection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Idempotent."""
        try:
            self._reader.release()
            self._reader.close()
        finally:
            self._lock.release()

    def content_ids(self) -> Iterator[int]:
        """Of all contents, ascending."""
        return self._reader.content_ids()

    def keyspaces(self, first: bytes, until: bytes) -> list[bytes]:
        """From `first` on and before `until`. Raises apsw.Error."""
        return run_to_completion(self._reader.keyspaces(first, until))

    def has(self, ref: Ref) -> bool:
        return self._reader.get(ref) is not None

    def records(self) -> Iterator[Walked]:
        """In order, face keys first; None for a damaged record."""
        return self._reader.records()

    def read_content(self, content_id: int) -> Iterator[bytes]:
        """In pieces. Raises ContentMissing, OSError."""
        location = self._reader.locate(content_id)
        if location is None:
            raise ContentMissing(f"no partition owns content {content_id}")
        return self._pieces(location)

    def findings(self) -> Iterator[Finding]:
        """Of the database file, the segments, and the contents."""
        yield from self.record_findings()
        yield from self.body_findings()

    def record_findings(self) -> Iterator[Finding]:
        yield from self._until_damage(self._record_findings(), "a page")

    def body_findings(self) -> Iterator[Finding]:
        yield from self._until_damage(self._body_findings(), "a page with the places of contents")

    def _until_damage(self, findings: Iterator[Finding], what: str) -> Iterator[Finding]:
        """Pass the findings on. If a damaged page ends them early, add a finding that says so."""
        try:
            yield from findings
        except (apsw.IOError, apsw.CorruptError, DataDamaged) as error:
            if isinstance(error, apsw.IOError) and not is_damage(error):
                raise
            # A page of format 3 may pass its checksum, and still be none that SQLite can read.
            reason = str(error) if isinstance(error, apsw.CorruptError) else "its checksum differs"
            yield Finding(RECORDS_NAME, f"{what} is damaged: {reason}")
            self._reader.release()
            self._reader.snapshot()

    def _record_findings(self) -> Iterator[Finding]:
        for problem in self._reader.findings():
            yield Finding(RECORDS_NAME, problem)

    def _body_findings(self) -> Iterator[Finding]:
        for found in self._reader.segment_sums():
            size_bytes = size_of(self._layout.segment(found.id))
            for problem in segment_problems(found, size_bytes):
                yield Finding(f"segment {found.id:016x}", problem)
            if size_bytes is not None:
                yield from self._content_findings(found.id)

    def _content_findings(self, segment_id: int) -> Iterator[Finding]:
        after = 0
        extents: list[tuple[int, int, int]] = []
        while rows := self._reader.contents_of(segment_id, after, 512):
            with open_reader(self._layout.segment(segment_id)) as file:
                for content_id, location in rows:
                    extents.append((location.offset, location.offset + location.length, content_id))
                    problem = _content_problem(file, location)
                    if problem is not None:
                        yield Finding(f"content {content_id}", problem, content=content_id)
            after = rows[-1][0]
        extents.sort()
        for (_, end, first), (start, _, second) in itertools.pairwise(extents):
            if start < end:
                yield Finding(f"content {second}", f"it overlaps content {first}")

    def _pieces(self, location: Location) -> Iterator[bytes]:
        left = location.length
        with open(self._layout.segment(location.segment), "rb") as file:
            file.seek(location.offset)
            while left:
                piece = file.read(min(_PIECE_BYTES, left))
                if not piece:
                    return
                yield piece
                left -= len(piece)


def _content_problem(file: BinaryIO, location: Location) -> str | None:
    checking = BodyCheck(location)
    while checking.read(file, _PIECE_BYTES):
        pass
    return checking.problem()


def check(directory: str | os.PathLike[str]) -> Iterator[Finding]:
    """Yield every problem of a data directory or a backup; nothing when it is whole.

    Raises: NotADataDirectory, UnknownFormat, OSError, apsw.Error.
    """
    with Inspection(directory) as inspection:
        yield from inspection.findings()
