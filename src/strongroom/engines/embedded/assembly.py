"""The parts of an embedded store, made and connected.

Lives here: the order in which the parts are made, and what each gets. Must not live here: the parts
themselves, and the files that must be opened before them (store.py).

A part gets at construction what it calls. Three objects close the circles between the parts, and
are made first. All parts report their I/O errors to StoreLife. Segments wake the compactor by an
event, and reach the committer by SealRecorder.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import msgspec

from strongroom.engines.embedded.bodies.compaction import Compactor
from strongroom.engines.embedded.bodies.contents import EmbeddedContents
from strongroom.engines.embedded.bodies.intake import BodyWriter
from strongroom.engines.embedded.bodies.segments import (
    LARGE_BODY_BYTES,
    SEGMENT_BYTES,
    SegmentStore,
)
from strongroom.engines.embedded.bodies.unadopted import Unadopted
from strongroom.engines.embedded.commit.commit_thread import CommitThread
from strongroom.engines.embedded.commit.futures import retrieve_exception
from strongroom.engines.embedded.commit.group_commit import Committer
from strongroom.engines.embedded.commit.store_life import StoreLife
from strongroom.engines.embedded.commit.store_time import ContentIds, DurableTime
from strongroom.engines.embedded.disk.directory import DataDirectory
from strongroom.engines.embedded.disk.files import Files
from strongroom.engines.embedded.disk.threads import started_pool
from strongroom.engines.embedded.log.checkpoints import PASSIVE_PAGES, Checkpointer
from strongroom.engines.embedded.log.space import LogSpace
from strongroom.engines.embedded.records.record_cache import RecordCache
from strongroom.engines.embedded.records.scans import Scans
from strongroom.engines.embedded.records.sqlite import Reader, Writer
from strongroom.engines.embedded.space.ballast import BALLAST_BYTES
from strongroom.engines.embedded.space.reserve import Reserve
from strongroom.engines.watchers import Watchers
from strongroom.slices import SliceTurns

_IO_THREADS: Final = 8


class EmbeddedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that tests change, mostly to make limits small. `vfs` names an apsw VFS; `files`
    makes all other changes on disk. `log_ahead`: extend the log before its space is needed."""

    files: Files | None = None
    vfs: str | None = None
    segment_bytes: int = SEGMENT_BYTES
    large_body_bytes: int = LARGE_BODY_BYTES
    ballast_bytes: int = BALLAST_BYTES
    compact: bool = True
    log_ahead: bool = True


class OpenedFiles(msgspec.Struct, frozen=True):
    """What is opened before the parts are made, since it may fail or wait.

    Attributes:
        writer: the connection that writes the records.
        reserve: the space that is kept for a full disk.
    """

    directory: DataDirectory
    writer: Writer
    time: DurableTime
    reserve: Reserve


@dataclass(frozen=True, slots=True)
class BodyParts:
    """The parts that have to do with contents and their segments.

    Attributes:
        unadopted: the contents that no commit has named yet.
        intake: receives the bytes of new contents.
        dead_space: set when a segment may need compaction.
    """

    io_threads: ThreadPoolExecutor
    segments: SegmentStore
    unadopted: Unadopted
    intake: BodyWriter
    dead_space: asyncio.Event


@dataclass(frozen=True, slots=True)
class RecordParts:
    """The parts that have to do with records and their commits."""

    reader: Reader
    scans: Scans
    cache: RecordCache
    thread: CommitThread
    checkpointer: Checkpointer
    committer: Committer


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts of one store.

    Attributes:
        watchers, turns: see WaitingEngine.
    """

    opened: OpenedFiles
    life: StoreLife
    watchers: Watchers
    turns: SliceTurns
    bodies: BodyParts
    records: RecordParts
    contents: EmbeddedContents
    compactor: Compactor


class SealRecorder:
    """Records which segments are sealed. Segments get it before there is a committer."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._committer: Committer | None = None

    def connect(self, committer: Committer) -> None:
        """Record by this committer, from the first seal on."""
        self._committer = committer

    def record(self, segment_id: int) -> asyncio.Future[None]:
        """The segment will never grow again. The future is done when that is durable."""
        assert self._committer is not None, "segments are loaded after this"
        work = self._committer.work(lambda group: self._writer.seal(segment_id))
        work.add_done_callback(retrieve_exception)
        return work


def assemble(opened: OpenedFiles, options: EmbeddedOptions) -> Parts:
    """Make the parts of a store, load its segments and begin to compact them. Raises apsw.Error,
    OSError."""
    life, watchers, turns = StoreLife(), Watchers(), SliceTurns()
    seals = SealRecorder(opened.writer)
    bodies = _body_parts(opened, options, life, seals)
    records = _record_parts(opened, options, life, bodies.unadopted, watchers, turns)
    seals.connect(records.committer)
    contents = EmbeddedContents(
        bodies.segments,
        bodies.intake,
        bodies.unadopted,
        records.reader,
        life.why_stopped,
    )
    compactor = Compactor(
        bodies.segments,
        records.reader,
        opened.writer,
        records.committer,
        bodies.io_threads,
        now=opened.time.now,
        due=bodies.dead_space,
    )
    bodies.segments.load(opened.writer.segments())
    if options.compact:
        compactor.start()
    return Parts(
        opened=opened,
        life=life,
        watchers=watchers,
        turns=turns,
        bodies=bodies,
        records=records,
        contents=contents,
        compactor=compactor,
    )


def _body_parts(
    opened: OpenedFiles, options: EmbeddedOptions, life: StoreLife, seals: SealRecorder
) -> BodyParts:
    directory = opened.directory
    io_threads = started_pool(_IO_THREADS, "strongroom-io")
    new_id = ContentIds(opened.time, max(opened.writer.last_content(), opened.time.ceiling)).new
    dead_space = asyncio.Event()
    segments = SegmentStore(
        directory.layout,
        directory.files,
        io_threads,
        new_id,
        on_sealed=seals.record,
        on_dead_space=dead_space.set,
        on_broken=life.fail,
        segment_bytes=options.segment_bytes,
        large_body_bytes=options.large_body_bytes,
    )
    unadopted = Unadopted(segments)
    reserve = opened.reserve
    intake = BodyWriter(segments, unadopted, io_threads, new_id, lambda: reserve.is_whole)
    return BodyParts(io_threads, segments, unadopted, intake, dead_space)


def _record_parts(
    opened: OpenedFiles,
    options: EmbeddedOptions,
    life: StoreLife,
    unadopted: Unadopted,
    watchers: Watchers,
    turns: SliceTurns,
) -> RecordParts:
    directory, writer, reserve = opened.directory, opened.writer, opened.reserve
    path = directory.layout.records
    reader, cache = Reader(path, options.vfs, scanning=False), RecordCache()
    thread = CommitThread(asyncio.get_running_loop(), "strongroom-commit")
    space = LogSpace(directory.files, f"{path}-wal", PASSIVE_PAGES if options.log_ahead else 0)
    checkpointer = Checkpointer(path, options.vfs, writer, space, reserve, life.fail)
    committer = Committer(
        writer,
        thread,
        opened.time,
        watchers,
        life,
        cache=cache,
        reader=reader,
        bodies=unadopted,
        reserve=reserve,
        slices=turns,
        on_committed=checkpointer.start_if_due,
    )
    scans = Scans(reader, committer.turns.hold_reader, turns)
    return RecordParts(reader, scans, cache, thread, checkpointer, committer)
