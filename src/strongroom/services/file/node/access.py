"""The access of an operation to one directory or file: by its path, or by a handle.

Lives here: what an access reads, how it is checked in a view and at the serial point, and the read
of the committed state.

A path is checked whenever its file is read: its names must lead to the same ids. An open file keeps
its id, since nobody can delete it. So by a handle, only the share and the attributes are read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from strongroom.engines.base import Partition, Ref, ref_of
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import copies
from strongroom.semantics.file.deletion import FileFacts
from strongroom.services.core.decisions import Found, ReadAll, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.names.node_writes import root_attributes
from strongroom.services.file.node.origins import ShareOrigin, TreeOrigin
from strongroom.services.file.opens.admission import facts_of
from strongroom.services.file.opens.open_handle import ShareAccess
from strongroom.services.file.snapshots.past_states import attributes_at
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import keys, records
from strongroom.store.core.extents import MapPlace
from strongroom.store.core.records import DamagedRecord, ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import FileRecord
from strongroom.store.tree.tree_records import NameRecord
from strongroom.values import Purpose

# Each operation of a handle makes its access.
_REMEMBERED: Final = 256


class AccessReads(msgspec.Struct, frozen=True):
    """What an access reads: the share, the attributes, and what else it requires."""

    share: ReadOne[ShareRecord]
    attributes: ReadOne[FileRecord]

    def admit(self, found: Found, stamp: int) -> tuple[ShareRecord, FileRecord]:
        """Return the share and the attributes, if they are as the access requires.

        Arguments:
            stamp: of the commit; in a view, the version of the attributes.

        Raises: PathChanged; StorageError: the share was deleted, or what else forbids the access.
        """
        raise NotImplementedError


class NodeAccess(msgspec.Struct, frozen=True):
    """The access of an operation to a directory or file. It is a value, which decisions hold."""

    @property
    def origin(self) -> ShareOrigin:
        raise NotImplementedError

    @property
    def id(self) -> int:
        raise NotImplementedError

    @property
    def purpose(self) -> Purpose:
        """What its commit may use on a full disk."""
        raise NotImplementedError

    def at_serial_point(self) -> NodeAccess:
        """This access as a decision holds it."""
        raise NotImplementedError

    def add(self, reads: Reads) -> AccessReads:
        raise NotImplementedError

    def admit_past(self, record: FileRecord | None, at: int) -> FileRecord:
        """Return the attributes in the snapshot that is read."""
        raise NotImplementedError

    @property
    def generation(self) -> int:
        return self.origin.generation

    @property
    def partition(self) -> Partition:
        """That of the attributes and bytes."""
        return keys.file(self.generation, self.id)

    @property
    def attributes_ref(self) -> Ref:
        return ref_of((self.partition, keys.FILE_KEY))

    @property
    def map(self) -> MapPlace:
        return MapPlace(self.partition, self.id)


class ByPath(NodeAccess, frozen=True):
    """The access by a resolved path, whose names are checked with all else. `facts`: what admission
    relied on; None = it has not admitted the request yet."""

    origin: ShareOrigin
    where: Where
    facts: FileFacts | None = None

    @property
    def id(self) -> int:
        return self.where.id

    @property
    def generation(self) -> int:
        """That of the share in which the path was resolved."""
        return self.where.generation

    @property
    def purpose(self) -> Purpose:
        return self.origin.purpose

    def at_serial_point(self) -> ByPath:
        return ByPath(self.origin.at_serial_point(), self.where, self.facts)

    def add(self, reads: Reads) -> AccessReads:
        return _PathReads(
            reads.add(self.origin.share_ref, records.SHARE),
            reads.add(self.attributes_ref, file_records.FILE),
            self,
            self.where.read(reads),
        )

    def admit_past(self, record: FileRecord | None, at: int) -> FileRecord:
        """A file of a snapshot has no lease."""
        if record is None:
            if not self.where.is_root:
                raise DamagedRecord(f"the attributes of {self.id} are missing in a snapshot")
            record = root_attributes(self.generation)
        self.origin.guard(None, at)
        return msgspec.structs.replace(record, lease=None)


class _PathReads(AccessReads, frozen=True):
    """`on_path`: the names that must still lead to the same ids."""

    access: ByPath
    on_path: ReadAll[NameRecord]

    def admit(self, found: Found, stamp: int) -> tuple[ShareRecord, FileRecord]:
        access = self.access
        share = access.origin.share_in(found, self.share)
        access.where.check(found, self.on_path)
        record = found[self.attributes]
        if record is None:
            if not access.where.is_root:
                raise PathChanged
            record = root_attributes(access.generation)
        if access.facts is not None and facts_of(record) != access.facts:
            raise PathChanged
        access.origin.guard(record.lease, stamp)
        return share, record


class ByHandle(NodeAccess, frozen=True):
    """The access of an SMB client by an open, whose file keeps its id; made by `by_handle`.
    `is_change`: a copy that began while the handle was open forbids it."""

    origin: TreeOrigin
    id: int
    partition: Partition
    purpose: Purpose = Purpose.GROWTH
    is_change: bool = False

    def at_serial_point(self) -> ByHandle:
        assert self.origin.snapshot is None, "what a handle of a snapshot may do changes nothing"
        return ByHandle(self.origin, self.id, self.partition, self.purpose, is_change=True)

    def add(self, reads: Reads) -> AccessReads:
        return _HandleReads(
            reads.add(self.origin.share_ref, records.SHARE),
            reads.add(self.attributes_ref, file_records.FILE),
            self,
        )

    def admit_past(self, record: FileRecord | None, at: int) -> FileRecord:
        return _of_open(self, record)


class _HandleReads(AccessReads, frozen=True):
    access: ByHandle

    def admit(self, found: Found, stamp: int) -> tuple[ShareRecord, FileRecord]:
        share = self.access.origin.share_in(found, self.share)
        record = _of_open(self.access, found[self.attributes])
        if self.access.is_change and copies.is_pending(record.copy):
            raise StorageError(file_errors.SHARING_VIOLATION)
        return share, record


def _of_open(access: ByHandle, record: FileRecord | None) -> FileRecord:
    """Without attributes nothing is open, but for the root, which may have none."""
    if record is None and access.id == access.generation:
        return root_attributes(access.generation)
    if record is None:
        raise StorageError(file_errors.HANDLE_CLOSED)
    return record


@lru_cache(_REMEMBERED)
def by_handle(access: ShareAccess, node_id: int) -> ByHandle:
    return ByHandle(TreeOrigin(access), node_id, keys.file(access.generation, node_id))


class NodeState(msgspec.Struct, frozen=True):
    """A committed directory or file. Its bytes are read at `version`: its record's, or the
    snapshot's stamp."""

    share: ShareRecord
    record: FileRecord
    version: int


async def look(services: Services, access: NodeAccess) -> NodeState:
    """Read the committed state of a directory or file, in one call with all that is checked."""
    at = access.origin.snapshot
    if at is not None:
        return await _look_at(services, access, at)
    reads = Reads()
    read = access.add(reads)
    found = await services.read(reads)
    version = found.version(read.attributes) or 0
    return NodeState(*read.admit(found, version), version)


async def _look_at(services: Services, access: NodeAccess, at: int) -> NodeState:
    record = file_records.FILE.of(await attributes_at(services.store, access.partition, at))
    share = await share_of(services, access.origin)
    return NodeState(share, access.admit_past(record, at), at)


async def share_of(services: Services, origin: ShareOrigin) -> ShareRecord:
    """Read this after a snapshot's records: a snapshot that exists then also existed when they were
    read."""
    reads = Reads()
    share = reads.add(origin.share_ref, records.SHARE)
    return origin.share_in(await services.read(reads), share)
