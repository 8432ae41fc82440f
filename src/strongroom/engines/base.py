"""The contracts that every engine keeps: conditional commits in a partition, and contents.

Lives here: the terms of the contracts (keyspace, partition, key, record, decision, content) and
their protocols. Must not live here: anything about Azure, HTTP, or one particular engine; what
several processes on one store need from each other (gateways.py).

    keyspace    an ordered set of partitions; the scope of a scan
    partition   the unit of atomicity: an ordered map key -> record
    record      bytes with a version; a face key is returned by scans, a hidden key is not
    content     a body of any length outside the records, named by an id, owned by one partition

Rules that every engine keeps:
 1. No answer, success or refusal, is given before everything that its decision read is durable.
 2. A commit is atomic in one partition. It may carry ordered steps in other partitions; after a
    crash, any prefix of these may have happened.
 3. Stamps are unique in the store, across all gateways, and the stamps of one gateway rise. A stamp
    is never smaller than store time when it was given. Each gateway sees the commits of a partition
    in the order of their stamps. `now` is never smaller than the stamp of a commit that was seen.
 4. A decision may run more than once; it is a pure function of the records and the stamp that it
    gets. When its commit happens, all records that it read are unchanged, those of other partitions
    too.
 5. Damaged bytes are never answered, whether the disk or the way to it or from it damaged them. A
    read of them raises DataDamaged. An engine states up to which length it verifies contents that
    it returns as slices of files.
 6. On a full disk an update is judged by its `Purpose`. A commit that only removes counts as
    FREEING. A commit counts as UPKEEP at least if it adopts no content and does not make its
    records larger in all.
 7. An update that ended without a result (CommitUnknown, or its task was cancelled) may have
    happened, may yet happen, or not. `Contents.discard` is safe even then: the engine keeps a
    content that a commit has adopted or may yet adopt. An engine that can determine the outcome
    does so; it raises CommitUnknown only if it cannot.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar, cast

import msgspec

from strongroom.engines.conditions import Condition
from strongroom.engines.gateways import Gateways
from strongroom.engines.links import Links
from strongroom.slices import SliceTurns
from strongroom.values import FileSlice, Health, Purpose

T = TypeVar("T")

KEYSPACE_BYTES_MAX = 64
PARTITION_BYTES_MAX = 4096
KEY_BYTES_MAX = 4096
RECORD_BYTES_MAX = 64 * 1024
COMMIT_WRITES_MAX = 2048
COMMIT_BYTES_MAX = 8 * 1024 * 1024
VERIFIED_BYTES_MAX = 64 * 1024
CHUNK_BYTES_MAX = 1024 * 1024
SCAN_BYTES_MAX = 4 * 1024 * 1024
SCAN_EXAMINED_MAX = 5120


class Partition(NamedTuple):
    """The scope of an atomic commit: all records of one partition can change together."""

    keyspace: bytes
    name: bytes


class Key(NamedTuple):
    """A key inside a partition. Face keys (`hidden` False) are what scans return."""

    hidden: bool
    name: bytes


class Ref(NamedTuple):
    """The full address of a record: its partition and its key."""

    partition: Partition
    key: Key


# Like the constructors, from a pair, but without a Python call: each request makes several.
partition_of = cast(
    "Callable[[tuple[bytes, bytes]], Partition]", functools.partial(tuple.__new__, Partition)
)
key_of = cast("Callable[[tuple[bool, bytes]], Key]", functools.partial(tuple.__new__, Key))
ref_of = cast("Callable[[tuple[Partition, Key]], Ref]", functools.partial(tuple.__new__, Ref))


class Record(NamedTuple):
    """A committed value and the stamp of the commit that wrote it."""

    value: bytes
    version: int


record_of = cast("Callable[[Sequence[Any]], Record]", functools.partial(tuple.__new__, Record))


class Write(NamedTuple):
    """Put `value` under `key`, or delete the key when `value` is None."""

    key: Key
    value: bytes | None


write_of = cast(
    "Callable[[tuple[Key, bytes | None]], Write]", functools.partial(tuple.__new__, Write)
)


class Step(msgspec.Struct, frozen=True):
    """Writes in one partition, with the contents that the partition starts or ceases to own.

    Adopting an id that this engine has not written, or that is already adopted, is a ValueError.
    Dropping an id that does not exist is no error, so that a sweep may be repeated.
    """

    partition: Partition
    writes: tuple[Write, ...] = ()
    adopt: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()


class Commit(msgspec.Struct, Generic[T], frozen=True):
    """The outcome of a decision: a result for the caller, and ordered steps. Without steps, nothing
    changes."""

    result: T
    steps: tuple[Step, ...] = ()


Decide = Callable[[Sequence[Record | None], int], Commit[T]]
"""decide(records, stamp) returns the commit. The records are in the order of the reads. An
exception refuses the commit, and nothing is changed."""


class Position(NamedTuple):
    """A place in a keyspace's order; no record need exist there."""

    partition: bytes
    key: bytes


class Face(NamedTuple):
    """One face record as a scan returns it."""

    partition: bytes
    key: bytes
    value: bytes
    version: int


# Like `_make`, but without a Python call for each row.
_face: Final = cast("Callable[[Any], Face]", functools.partial(tuple.__new__, Face))


class Page(msgspec.Struct, frozen=True):
    """Face records in byte order of (partition, key); `resume` None = nothing is left.

    The records are kept as columns. A caller that needs ten of a thousand records creates no
    objects for the others.
    """

    partitions: Sequence[bytes]
    keys: Sequence[bytes]
    values: Sequence[bytes]
    versions: Sequence[int]
    resume: Position | None

    def faces(self) -> list[Face]:
        """Return the page's records as `Face` objects."""
        return list(map(_face, self.rows()))

    def rows(self) -> Iterator[tuple[bytes, bytes, bytes, int]]:
        """The records as plain tuples, for callers that unpack each one at once."""
        return zip(self.partitions, self.keys, self.values, self.versions, strict=True)

    @classmethod
    def of(cls, faces: Sequence[Face], resume: Position | None) -> Page:
        """Make a page from single records."""
        if not faces:
            return cls((), (), (), (), resume)
        partitions, names, values, versions = zip(*faces, strict=True)
        return cls(partitions, names, values, versions, resume)


class Item(NamedTuple):
    """One record of a partition as `read_range` returns it."""

    name: bytes
    value: bytes
    version: int


class Written(NamedTuple):
    """A durable content that no partition owns yet. `md5` is the raw digest, None if it was not
    requested."""

    id: int
    size_bytes: int
    crc64: int
    md5: bytes | None


class EngineError(Exception):
    """The engine broke or cannot serve; never a refusal of a decision."""


class CommitUnknown(EngineError):
    """The commit may or may not have happened. Read again and search for your own token; never
    retry without that check."""


class Unavailable(EngineError):
    """The engine has stopped or cannot be reached; nothing was changed by this call."""


class Busy(EngineError):
    """The engine lacks file descriptors or memory at present; this call changed nothing."""


class Full(EngineError):
    """No space is left for an update of this purpose; this call changed nothing. The error's text
    is a sentence for users."""

    def __init__(self, purpose: Purpose = Purpose.GROWTH) -> None:
        super().__init__(_FULL[purpose])
        self.purpose = purpose


_FULL: Final = {
    Purpose.GROWTH: (
        "The disk that holds the data directory is full. Reads, deletes, leases and changes that "
        "make nothing larger still work; other writes work again when there is free space."
    ),
    Purpose.UPKEEP: (
        "The disk that holds the data directory is full, and the space kept back for leases is "
        "used up. Reads and deletes still work; this works again when there is free space."
    ),
    Purpose.FREEING: (
        "The disk that holds the data directory is full, and all of the space kept back is used "
        "up. Reads still work; free some space in its file system, and deletes work again."
    ),
}


class DataDamaged(EngineError):
    """The bytes read differ from their checksum; the message names the data. Damaged bytes are
    never answered, and all other data is still served.

    Attributes:
        found: how often that has happened in this process.
    """

    found: ClassVar[int] = 0

    def __init__(self, message: str) -> None:
        super().__init__(message)
        DataDamaged.found += 1


class ContentMissing(EngineError):
    """No partition owns this content id: it was dropped, or never adopted."""


class Engine(Protocol):
    """Read, change, scan and watch the records of a store."""

    @property
    def turns(self) -> SliceTurns:
        """The time slices of the store's event loop, for long work of the engine and of its
        callers."""
        ...

    @property
    def allows_reset(self) -> bool:
        """Whether everything in the store may be removed at once. A store with a data directory
        has a mark in it that says so since its creation."""
        ...

    @property
    def wakes(self) -> int:
        """The number of times that all waiters were woken at once. This happens when the clock is
        moved or the engine stops. A caller that reads first and waits later compares the number, so
        that it misses none of these."""
        ...

    def update(
        self,
        partition: Partition,
        reads: Sequence[Ref],
        decide: Decide[T],
        purpose: Purpose = Purpose.GROWTH,
    ) -> Awaitable[T]:
        """Decide at the serial point, commit durably, and return the commit's result.

        Arguments:
            partition: where the commit happens. Its steps may write to other partitions too.
            reads: the records passed to `decide`, in this order. They may lie in other partitions.
                All of them must be unchanged when the commit happens, else the engine reads and
                decides again.
            decide: see `Decide`. Its exceptions are raised here, after everything that it read is
                durable.
            purpose: how much of the reserve it may use on a full disk.

        The work may begin, and may raise, when this is called. So await the result at the call.

        Raises: Full, CommitUnknown, Unavailable, DataDamaged; whatever `decide` raises.
        """
        ...

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        """Return committed, durable records in the order of `reads`. All records of one partition
        come from one snapshot."""
        ...

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> list[tuple[Ref, Record | None]]:
        """Follow a chain of committed, durable records of one partition, all from one snapshot.
        Return the address and the record for each name; the chain ended with the last of them.

        Arguments:
            links: how a record leads to the key of the next one.
            first: the id with which the first key begins.
            names: one for each record. The chain ends early at a record that is absent or leads
                nowhere; without names it is empty.

        Raises: ValueError for a name that makes a key longer than KEY_BYTES_MAX.
        """
        ...

    async def read_range(
        self,
        partition: Partition,
        hidden: bool,
        first: bytes,
        until: bytes | None,
        max_records: int,
    ) -> list[Item]:
        """Return records of one partition with first <= name < until, ascending, at most
        `max_records`."""
        ...

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int = SCAN_BYTES_MAX,
        where: Condition | None = None,
    ) -> Page:
        """Return face records with first <= (partition, key) < until.

        Arguments:
            where: records that do not satisfy it may be left out. An engine that uses it reads at
                most about SCAN_EXAMINED_MAX records for one page.

        The records of each partition come from one committed state that is not older than the call.
        Different partitions may be read at different times. A record that stays unchanged during a
        whole scan is returned exactly once. A page may be short; only `resume` None means that
        nothing is left.
        """
        ...

    async def wait(self, ref: Ref, version: int | None, timeout_s: float) -> None:
        """Return when the record durably has another version than `version` (None = absent), or
        after `timeout_s`. It also returns when the clock is moved and when the engine stops."""
        ...

    def watching(self) -> int:
        """The number of calls of `wait` that are in progress."""
        ...

    def stop_waiting(self) -> None:
        """Wake every waiter; from now on `wait` returns at once. Idempotent."""
        ...

    async def now(self) -> int:
        """Store time in ticks. It never goes back, not after a restart and not at another gateway.
        It is never smaller than a stamp that this gateway has given or seen."""
        ...

    def advance(self, seconds: float) -> None:
        """Move store time of all gateways forward and wake all their waiters (test clock only).

        A restart, and a gateway that starts later, continue from the moved time. After a crash this
        holds only if `now` has been called since.
        """
        ...

    async def health(self, timeout_s: float) -> Health:
        """Check whether commits and reads are served, by a request to the threads that serve them.
        Never raises EngineError.

        Arguments:
            timeout_s: without an answer after this time the result is STALLED.
        """
        ...

    async def close(self) -> None:
        """Finish all accepted work, wake every waiter, and release all resources. Idempotent."""
        ...


class Opened(Protocol):
    """A pinned content: its bytes stay readable until `close`, even if the content is dropped."""

    size_bytes: int

    async def read(self, offset: int, length: int) -> bytes:
        """Return the bytes of [offset, offset + length). The whole content is read and verified
        first, so use it for small contents. Raises DataDamaged."""
        ...

    def slices(self, offset: int, length: int) -> AsyncIterable[FileSlice | bytes]:
        """Yield the bytes of [offset, offset + length) in order, as slices of files or as bytes.

        A content of at most VERIFIED_BYTES_MAX bytes is verified as in `read`; a longer one is not.
        Raises DataDamaged.
        """
        ...

    def chunks(self, offset: int = 0, length: int | None = None) -> AsyncIterable[bytes]:
        """Yield the bytes of [offset, offset + length) in order, at most CHUNK_BYTES_MAX at a time.
        Without `length`, the range reaches to the content's end.

        When all bytes of the content are read, the checksum is compared after the last one: do not
        use the bytes before that. A part of a content of at most VERIFIED_BYTES_MAX bytes is
        verified as in `read`; a part of a longer one is not. Raises DataDamaged.
        """
        ...

    def close(self) -> None:
        """Release the pin. Idempotent."""
        ...


class Contents(Protocol):
    """The bodies of a store. Each is stored with its CRC64, which is verified when it is read."""

    async def write(
        self, chunks: AsyncIterable[bytes], size_bytes: int | None, md5: bool = False
    ) -> Written:
        """Store a body from a stream. It is durable on return; no partition owns it until a Step
        adopts it.

        Arguments:
            size_bytes: its length if known beforehand. A stream of another length is a ValueError.
            md5: also compute the MD5.

        Raises: Full, Unavailable; whatever `chunks` raises (the space is then reclaimed).
        """
        ...

    async def write_all(self, bodies: Sequence[bytes | memoryview]) -> Sequence[Written]:
        """Write several small bodies, each as a content of its own. All are durable on return, as
        after `write`, and cost one write and one sync.

        Arguments:
            bodies: of at most VERIFIED_BYTES_MAX bytes each (ValueError); they must not change
                meanwhile. They are copied once more, so a caller bounds them.

        Raises: Full, Unavailable; none of them is kept then.
        """
        ...

    async def open(self, content_id: int) -> Opened:
        """Pin an adopted content and return it. Raises ContentMissing."""
        ...

    def discard(self, content_id: int) -> None:
        """Delete a written content that no commit will adopt. It has no effect on a content that a
        commit has adopted, or that an undecided commit may yet adopt: see rule 7."""
        ...


class StorageEngine(Engine, Protocol):
    """All contracts, as one engine keeps them: adopt and drop happen in the records' own commit.
    The protocol does not say where the bodies are stored."""

    @property
    def contents(self) -> Contents:
        """The bodies of this store."""
        ...

    @property
    def gateways(self) -> Gateways:
        """The processes that serve this store."""
        ...
