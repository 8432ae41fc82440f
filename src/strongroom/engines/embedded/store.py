"""The embedded engine: records in SQLite, contents in segment files, one process, one directory.

Lives here: opening and closing, and the contract's methods. Must not live here: the parts, and how
they are connected (assembly.py). See directory.py for the layout, serial_point.py for decisions.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import apsw

from strongroom.clock import Clock, elapsed_s
from strongroom.engines.base import (
    SCAN_BYTES_MAX,
    Decide,
    EngineError,
    Item,
    Key,
    Page,
    Partition,
    Position,
    Record,
    Ref,
    Unavailable,
)
from strongroom.engines.bounds import check_partition, check_reads
from strongroom.engines.conditions import Condition
from strongroom.engines.embedded.assembly import (
    EmbeddedOptions,
    OpenedFiles,
    Parts,
    assemble,
)
from strongroom.engines.embedded.commit.ceiling import Ceiling
from strongroom.engines.embedded.commit.group_commit import CommitObserver, Committer
from strongroom.engines.embedded.commit.health import HealthCheck
from strongroom.engines.embedded.commit.store_time import DurableTime
from strongroom.engines.embedded.disk.directory import DataDirectory
from strongroom.engines.embedded.disk.files import Files, OsFiles
from strongroom.engines.embedded.log.checkpoints import (
    begin_log,
    end_log,
)
from strongroom.engines.embedded.log.gate import clear_log_tail, refuse_damaged_log
from strongroom.engines.embedded.records.chain_reads import ChainReads
from strongroom.engines.embedded.records.checksummed_pages import (
    log_frames,
    reason,
    unreadable,
)
from strongroom.engines.embedded.records.face_scan import ScanRequest
from strongroom.engines.embedded.records.record_cache import completed
from strongroom.engines.embedded.records.sqlite import Writer
from strongroom.engines.embedded.scrub.source import ScrubSource
from strongroom.engines.embedded.space.ballast import Ballast
from strongroom.engines.embedded.space.reserve import Reserve
from strongroom.engines.embedded.upkeep.backup import backup as back_up
from strongroom.engines.embedded.upkeep.facts import store_facts
from strongroom.engines.embedded.upkeep.segment_copies import Progress
from strongroom.engines.embedded.upkeep.upgrade.report import LoggedUpgrade
from strongroom.engines.embedded.upkeep.upgrade.steps import upgrade_locked
from strongroom.engines.gateways import OnlyGateway
from strongroom.engines.links import Links
from strongroom.engines.measured import add_s
from strongroom.engines.watchers import WaitingEngine
from strongroom.values import TICKS_PER_S, Health, Purpose

__all__ = ["EmbeddedEngine", "EmbeddedOptions", "open_store"]

T = TypeVar("T")

_INLINE_RECORDS: Final = 128
_RESTART_WAIT_TICKS: Final = TICKS_PER_S

_log = logging.getLogger(__name__)


class EmbeddedEngine(WaitingEngine):
    """A store in a data directory. `open_store` makes it; it is used on one event loop."""

    def __init__(self, parts: Parts, *, test_clock: bool, allows_reset: bool) -> None:
        super().__init__(parts.watchers, parts.turns)
        self.allows_reset = allows_reset
        self._test_clock = test_clock
        opened, records, bodies = parts.opened, parts.records, parts.bodies
        self._directory = opened.directory
        self._writer = opened.writer
        self._time = opened.time
        self._life = parts.life
        self._reader = records.reader
        self._scans = records.scans
        self._cache = records.cache
        self._thread = records.thread
        self._checkpointer = records.checkpointer
        self._committer = records.committer
        self._io_threads = bodies.io_threads
        self._segments = bodies.segments
        self._compactor = parts.compactor
        self.contents = parts.contents
        waiting = functools.partial(_wait_for_earlier_commits, opened.time, records.committer)
        self.gateways = OnlyGateway(opened.time.ceiling, parts.life.why_stopped, waiting)
        self._ceiling = Ceiling(opened.time, opened.writer, records.committer)
        self._health = HealthCheck(records.committer, opened.directory.free_bytes)
        self.facts = functools.partial(
            store_facts, opened.directory, bodies.segments, opened.reserve, records.thread.times
        )

    @property
    def scrub_source(self) -> ScrubSource:
        """What a scrub of this store needs. Close the scrub before the store."""
        return ScrubSource(
            self._directory, self.contents, self._segments, self._committer, self._checkpointer
        )

    def on_fatal(self, callback: Callable[[EngineError], None]) -> None:
        """Called once, when an I/O error has stopped the store."""
        self._life.on_failure(callback)

    def observe_commits(self, observer: CommitObserver) -> None:
        """Tell `observer` of each commit from now on."""
        self._committer.observer = observer

    def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[T],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Awaitable[T]:
        """The decision runs at the serial point, so it never has to run again because of a
        conflict."""
        check_partition(partition)
        check_reads(reads)
        self._check_serving()
        return self._committer.decide(reads, decide, purpose)

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        self._check_serving()
        known = self._cache.get(reads)
        if known is not None:
            return known
        check_reads(reads)
        began = elapsed_s()
        try:
            self._committer.turns.hold_reader()
            # Two records take one statement, as one of them does.
            cached, missing = self._cache.split(reads) if len(reads) > 2 else ((), reads)
            found = self._reader.get_all(missing)
        except apsw.Error as error:
            raise unreadable(error) from error
        finally:
            add_s(elapsed_s() - began)
        self._cache.keep(missing, found)
        return completed(cached, found) if len(missing) < len(reads) else found

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> list[tuple[Ref, Record | None]]:
        self._check_serving()
        chain = ChainReads(self._reader, self._cache, self._committer.turns.hold_reader)
        return chain.follow(partition, links, first, names)

    async def read_range(
        self,
        partition: Partition,
        hidden: bool,
        first: bytes,
        until: bytes | None,
        max_records: int,
    ) -> list[Item]:
        self._check_serving()
        check_partition(partition)
        ref = Ref(partition, Key(hidden, first))
        limit = max(0, max_records)
        return await self._scans.query(
            lambda reader: reader.range(ref, until, limit), inline=limit <= _INLINE_RECORDS
        )

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int = SCAN_BYTES_MAX,
        where: Condition | None = None,
    ) -> Page:
        self._check_serving()
        if max_records < 1 or max_bytes < 1:
            raise ValueError("a page holds at least one record")
        request = ScanRequest(keyspace, first, until, max_records, max_bytes, where)
        is_short = where is None and max_records <= _INLINE_RECORDS
        return await self._scans.query(lambda reader: reader.scan(request), inline=is_short)

    async def keyspaces(self, first: bytes, until: bytes) -> list[bytes]:
        """The keyspaces that have records, from `first` on and before `until`. Raises Unavailable,
        DataDamaged."""
        self._check_serving()
        return await self._scans.query(lambda reader: reader.keyspaces(first, until), inline=False)

    async def now(self) -> int:
        while True:
            self._check_serving()
            now = self._time.now()
            if now <= self._time.ceiling:
                if self._time.is_stale_soon(now):
                    self._ceiling.rise_to(now)
                return now
            await asyncio.shield(self._ceiling.rise_to(now))

    def advance(self, seconds: float) -> None:
        """Raises ValueError without a test clock."""
        if not self._test_clock:
            raise ValueError("this store was not opened with a test clock")
        self._time.advance(seconds)
        self._compactor.wake()
        if self._life.why_stopped() is None:
            self._ceiling.rise_to(self._time.now())
        self.watchers.wake_all()

    async def health(self, timeout_s: float) -> Health:
        """The request goes to the serial point, which a hanging disk delays."""
        return Health.STOPPED if self._life.is_closed else await self._health.check(timeout_s)

    def release_memory(self) -> None:
        self.contents.release_memory()

    async def compact_once(self) -> bool:
        """Return False when no segment is less than half alive."""
        self._check_serving()
        return await self._compactor.compact_once()

    async def backup(
        self, target: str | os.PathLike[str], progress: Progress | None = None
    ) -> None:
        """The store serves meanwhile; see backup.backup."""
        self._check_serving()
        source = self._directory.layout.path
        await asyncio.to_thread(back_up, source, target, progress)

    async def close(self) -> None:
        if self._life.is_closed:
            return
        self._life.is_closed = True
        self.watchers.stop()
        await self._compactor.stop()
        self._segments.stop()
        # Stop the threads before the committer is drained: their last results may add work to it.
        await asyncio.to_thread(self._io_threads.shutdown)
        if self._committer.broken is None:
            self._ceiling.lower()
            await self._committer.drain()
        await self._scans.end()
        await asyncio.to_thread(self._close_files)

    def _close_files(self) -> None:
        self._thread.stop()
        self._checkpointer.close()
        self._segments.close()
        readers = (self._reader, self._scans)
        closing = [reader.close for reader in readers] + [self._writer.close]
        if self._committer.broken is None:
            closing.insert(0, functools.partial(end_log, self._writer, self._directory.files))
        for close in closing:
            try:
                close()
            except apsw.Error as error:
                # The log is durable; the next start recovers it.
                _log.warning("the log was left as it is: %s", error)
        self._directory.close()

    def _check_serving(self) -> None:
        life = self._life
        if life.is_closed or life.broken is not None:
            raise life.why_stopped() or AssertionError


async def open_store(
    directory: str | os.PathLike[str],
    clock: Clock,
    *,
    test_clock: bool = False,
    allow_reset: bool = False,
    options: EmbeddedOptions | None = None,
) -> EmbeddedEngine:
    """Open a data directory, or create it when there is none. One of the format before this one is
    upgraded first.

    Arguments:
        clock: the source of time.
        test_clock: whether time can be moved; only for a directory that was created with it.
        allow_reset: whether everything in it may be removed at once; only for a directory that was
            created with it. Such a directory may be opened without it too.

    Raises: DirectoryInUse, UnknownFormat, NotADataDirectory, TestClockMismatch, ResetNotAllowed,
    Damaged, Unavailable (the records cannot be opened), OSError.
    """
    options = options or EmbeddedOptions()
    files = options.files or OsFiles()
    home = DataDirectory(os.fspath(directory), files, test_clock, allow_reset)
    writer: Writer | None = None
    try:
        if not home.is_new:
            upgrade_locked(home.layout, files, options.vfs, LoggedUpgrade())
        refuse_damaged_log(home.layout)
        _sync_log(files, home.layout.log)
        reserve = Reserve(Ballast(files, home.layout.ballast, options.ballast_bytes))
        # Even opening the database takes some space.
        writer = reserve.run_with_reserve(
            lambda: Writer(home.layout.records, options.vfs, create=home.is_new), Purpose.FREEING
        )
        begin_log(writer, files)
        frames = log_frames(writer.connection)
        reserve.run_with_reserve(
            lambda: clear_log_tail(home.layout, files, frames), Purpose.FREEING
        )
        # This run may write to a segment whose name the last run did not make durable.
        files.sync_directory(home.layout.segments)
        home.finish_creation()
        reserve.refill(writer.spare_bytes())
        ceiling = writer.ceiling()
        await _await_ceiling(clock, ceiling)
        opened = OpenedFiles(home, writer, DurableTime(clock, ceiling), reserve)
        parts = assemble(opened, options)
        return EmbeddedEngine(parts, test_clock=test_clock, allows_reset=home.allows_reset)
    except BaseException as error:
        if writer is not None:
            writer.close()
        home.close()
        if isinstance(error, apsw.Error):
            raise Unavailable(f"{home.layout.records} cannot be opened: {reason(error)}") from error
        raise


async def _wait_for_earlier_commits(time: DurableTime, committer: Committer, stamp: int) -> None:
    time.check_past(stamp)
    await committer.wait_for_decisions()


def _sync_log(files: Files, path: str) -> None:
    """Make a killed process's writes to the log durable, before readers see them."""
    try:
        descriptor = files.reopen(path)
    except FileNotFoundError:
        return
    try:
        files.sync(descriptor)
    finally:
        files.close(descriptor)


async def _await_ceiling(clock: Clock, ceiling: int) -> None:
    behind = ceiling - clock.wall_ticks()
    if 0 < behind <= _RESTART_WAIT_TICKS:
        await asyncio.sleep(behind / TICKS_PER_S)
    elif behind > 0:
        _log.warning(
            "wall time is %.1f s behind the store's; time goes on from the store's and slews",
            behind / TICKS_PER_S,
        )
