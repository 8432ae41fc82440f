"""The contract by which a whole store is copied, from any engine to any other.

Lives here: what a source gives and what a target takes. Must not live here: the copying itself
(store_copy.py), how one engine reads or writes (its transfer module).

Records keep their versions, and contents their ids, since other records may have these in their
values. Both are given and taken in one order: records by class (face keys first), keyspace,
partition and name, byte by byte; contents by id. So what a target holds says where to go on.

A source does not change while it is copied. A target is new, and no server opens it before
`finish`. Both belong to one event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from strongroom.engines.base import EngineError, Ref

PAGE_BYTES: Final = 1024 * 1024
"""About so many bytes are read, and written, at once."""
CONTENTS_MAX: Final = 1024
"""So many contents are read, and written, at once, however small they are."""


class CopyRefused(EngineError):
    """The store cannot be copied. The text says why, and what to do."""


class SourceDamaged(CopyRefused):
    """The text names what is damaged. Nothing of it was copied."""


class StoredRecord(NamedTuple):
    """A record with its address."""

    ref: Ref
    value: bytes
    version: int


class ContentSum(NamedTuple):
    """What a store has noted of a content."""

    id: int
    size_bytes: int
    crc64: int


class StoreTraits(msgspec.Struct, frozen=True):
    """What a store keeps beside its records and contents.

    Attributes:
        ceiling: no time, stamp or id above it was ever given.
        test_clock, allows_reset: see Engine.
        foreign_etags: whether records may have ETags that another server gave.
    """

    ceiling: int
    test_clock: bool = False
    allows_reset: bool = False
    foreign_etags: bool = False


class SourceState(msgspec.Struct, frozen=True):
    """What a target keeps of its source until it is whole.

    Attributes:
        mark: differs when the source is another store, or was opened by a server since.
        shown: where the source is, without secrets.
    """

    mark: str
    shown: str


class CopyPlace(msgspec.Struct, frozen=True):
    """What a target holds already.

    Attributes:
        content: the last content; 0 = there is none.
        record: the last record.
    """

    content: int = 0
    record: Ref | None = None


class TransferSource(Protocol):
    """A whole store, read in order."""

    @property
    def state(self) -> SourceState: ...

    @property
    def traits(self) -> StoreTraits: ...

    async def size_bytes(self) -> tuple[int, int]:
        """Return the bytes of all contents, and about those of all records."""
        ...

    def records(self, after: Ref | None) -> AsyncIterator[Sequence[StoredRecord]]:
        """Yield all records after one, in pages of about PAGE_BYTES. Raises EngineError."""
        ...

    def contents(self, after: int) -> AsyncIterator[Sequence[ContentSum]]:
        """Yield all adopted contents after one, at most CONTENTS_MAX at once."""
        ...

    async def bodies(self, contents: Sequence[ContentSum]) -> Sequence[bytes]:
        """Read several contents of at most VERIFIED_BYTES_MAX each. The caller verifies them."""
        ...

    def chunks(self, content: ContentSum) -> AsyncIterator[bytes]:
        """Read a content of any length, at most PAGE_BYTES at once. The caller verifies it."""
        ...

    async def ensure_unchanged(self) -> None:
        """Raise CopyRefused if a server has opened the store since this source was opened."""
        ...

    async def close(self) -> None: ...


class TransferTarget(Protocol):
    """A new store, written in order. What one call has written stays there after a kill."""

    @property
    def shown(self) -> str:
        """Where it is, without secrets."""
        ...

    async def begin(self, source: SourceState, traits: StoreTraits) -> CopyPlace:
        """Mark the store as unfinished, or go on with a copy that was cut. Return what of it is
        there.

        Raises: CopyRefused: it is not new, or was begun from another source.
        """
        ...

    async def put_bodies(self, contents: Sequence[tuple[ContentSum, bytes]]) -> None:
        """Write several contents of at most VERIFIED_BYTES_MAX each, as adopted ones."""
        ...

    async def put_long(self, content: ContentSum, chunks: AsyncIterator[bytes]) -> None:
        """Write a content. If `chunks` raises, nothing of it counts."""
        ...

    async def put_records(self, records: Sequence[StoredRecord]) -> None: ...

    async def written(self) -> TransferSource:
        """Return what was written, to be read again. Close it before `finish`."""
        ...

    async def finish(self, ceiling: int) -> None:
        """Make everything durable, and then the store one that servers open. No server gives a
        time, a stamp or an id up to `ceiling` again."""
        ...

    async def close(self) -> None:
        """Without `finish`, what was written stays, so that the copy may go on later."""
        ...
