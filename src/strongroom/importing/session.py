"""What all parts of an import share: the store, the folder, the report, and work side by side.

Lives here: reading the records of a database as typed documents, and a bounded number of writes in
flight, which the engine commits together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from strongroom.clock import Clock
from strongroom.engines.base import Commit, Partition, Record, Ref, Step, StorageEngine
from strongroom.errors.core import StorageError
from strongroom.importing.conversions import NotConvertible, refusal
from strongroom.importing.folder import ExtentRefused, Folder
from strongroom.importing.report import ReportDraft
from strongroom.importing.scanning import (
    RECORD_BYTES_MAX,
    DatabaseDamaged,
    ScannedRecord,
    records,
)

D = TypeVar("D", bound=msgspec.Struct)
StepsOf = Callable[[Sequence[Record | None], int], tuple[Step, ...]]
"""steps_of(records, stamp) returns the steps of a commit. It may raise NotConvertible."""

IN_FLIGHT_MAX: Final = 128


@dataclass(frozen=True, slots=True)
class ImportedPlace:
    """An imported container, queue or table. `epoch` is a queue's."""

    generation: int
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class ImportSession:
    """An import in progress.

    Attributes:
        advanced: called with the number of bytes of a database that were read.
    """

    store: StorageEngine
    clock: Clock
    folder: Folder
    report: ReportDraft
    advanced: Callable[[int], None]

    async def commit(self, partition: Partition, reads: Sequence[Ref], steps_of: StepsOf) -> int:
        """Commit the steps, durably, and return the stamp. Raises what `steps_of` raises; the
        engine's errors."""

        def decide(found: Sequence[Record | None], stamp: int) -> Commit[int]:
            return Commit(stamp, steps_of(found, stamp))

        return await self.store.update(partition, reads, decide)

    def records(self, database: str, wanted: Callable[[str], bool]) -> Iterator[ScannedRecord]:
        """Yield the records of some collections of a database; none if there is none. Damage of
        the file ends them and is reported."""
        file = self.folder.open(database)
        if file is None:
            return
        with file:
            try:
                for record in records(file, wanted, self.advanced):
                    if record.data is None:
                        place = f"{database} {record.collection} record {record.number}"
                        reason = f"it is longer than {RECORD_BYTES_MAX} bytes"
                        self.report.lose("database", place, reason)
                    else:
                        yield record
            except DatabaseDamaged as error:
                self.report.lose("database", database, f"it cannot be read any further: {error}")

    def decoded(
        self, database: str, record: ScannedRecord, decoder: msgspec.json.Decoder[D], kind: str
    ) -> D | None:
        """Return a record as a document. Report one that cannot be read, and return None."""
        try:
            return decoder.decode(record.data or b"")
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            place = f"{database} {record.collection} record {record.number}"
            self.report.lose(kind, place, f"it cannot be read: {refusal(error)}")
            return None


@dataclass(slots=True)
class Flight:
    """Runs work side by side, begun in order, a bounded number at a time.

    Use it in an `async with` statement, at whose end all work has ended. Work that is refused is
    reported; any other error ends the block.
    """

    report: ReportDraft
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Flight:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            return
        await self.settle()

    async def begin(self, kind: str, place: str, work: Awaitable[None]) -> None:
        """Begin work on one thing, once there is room for it."""
        while len(self._tasks) >= IN_FLIGHT_MAX:
            await self._wait(asyncio.FIRST_COMPLETED)
        self._tasks.add(asyncio.ensure_future(self._reported(kind, place, work)))

    async def settle(self) -> None:
        """Wait until all work has ended."""
        await self._wait(asyncio.ALL_COMPLETED)

    async def _reported(self, kind: str, place: str, work: Awaitable[None]) -> None:
        try:
            await work
        except REFUSALS as error:
            self.report.lose(kind, place, refusal(error))

    async def _wait(self, until: str) -> None:
        while self._tasks:
            done, self._tasks = await asyncio.wait(self._tasks, return_when=until)
            for task in done:
                task.result()
            if until == asyncio.FIRST_COMPLETED:
                return


REFUSALS: Final = (NotConvertible, ExtentRefused, StorageError)
"""Why a record is not imported, while others are."""
