"""The tables of opens of this process: who may enter, as semantics/file/opens.py decides.

Lives here: held state, one table for each file that is open. Must not live here: rules, records.
An operation enters before it decides, and leaves when its commit is durable or refused. Nothing is
awaited between looking at a table and changing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from strongroom.engines.base import Partition
from strongroom.errors import StorageError
from strongroom.semantics.file import byte_ranges, deletion, opens
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.attributes import Attribute
from strongroom.semantics.file.deletion import FileFacts
from strongroom.semantics.file.opens import OpenAdmitted, OpenRefused, OpenTable, RestRequest
from strongroom.store.file.file_records import FileRecord

_NOBODY: Final = OpenTable()


def facts_of(record: FileRecord) -> FileFacts:
    """What admission depends on. A file's lease in the records never ends by time alone."""
    lease = record.lease
    return FileFacts(
        is_directory=record.is_directory,
        is_read_only=bool(record.attributes & Attribute.READ_ONLY),
        is_leased=lease is not None and not lease.breaks,
    )


class Opens:
    """All tables of opens. It dies with the process."""

    def __init__(self) -> None:
        self._tables: dict[Partition, OpenTable] = {}
        self._last = byte_ranges.REST_OWNER

    @contextmanager
    def entered(
        self,
        file: Partition,
        operation: FileOperation,
        facts: FileFacts,
        *,
        clears_read_only: bool = False,
        concerned: tuple[int, int] = byte_ranges.WHOLE_FILE,
    ) -> Iterator[None]:
        """Hold the entry of an operation.

        Arguments:
            concerned: (offset, length) of the bytes that it reads or writes.

        Raises: StorageError SMBDeletePending, ReadOnlyAttribute, SharingViolation,
            FileLockConflict.
        """
        self._last += 1
        request = RestRequest(self._last, operation, clears_read_only, *concerned)
        found = opens.admit_rest(self._tables.get(file, _NOBODY), request, facts)
        if isinstance(found, OpenRefused):
            raise StorageError(found.row)
        assert isinstance(found, OpenAdmitted), "only SMB handles cache what is waited for"
        self._tables[file] = found.table
        try:
            yield
        finally:
            left = opens.leave(self._tables[file], request.id, facts).table
            if left == _NOBODY:
                del self._tables[file]
            else:
                self._tables[file] = left

    def is_listed(self, file: Partition) -> bool:
        """Whether List Directories and Files shows it."""
        table = self._tables.get(file, _NOBODY)
        return deletion.is_listed(table.deletion, over_rest=True)
