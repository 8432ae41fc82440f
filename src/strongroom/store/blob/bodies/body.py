"""The interface that all kinds of bodies share.

Lives here: `Body`, and the protocols of its methods' arguments.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from typing import ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from strongroom.engines.base import (
    ContentMissing,
    Contents,
    Key,
    Opened,
    Partition,
    Record,
    StorageEngine,
)
from strongroom.store.blob.bodies.blocks import NO_BLOCKS, Span, StoredBlockList
from strongroom.store.core.extents import MapReaders
from strongroom.store.core.keys import Past
from strongroom.values import Piece

P = TypeVar("P", bytes, Piece)
HEAD: Final = Past(0)
"""The state of the blob itself, among its snapshots and versions."""

ReadSpan = Callable[[Opened, Span], AsyncIterator[P]]
"""read_span(content, span) yields the bytes of this span of the content (reading.py)."""


class Source(Protocol):
    """The source of a new body's bytes: a request, or the source of a copy."""

    size_bytes: int | None

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Feed(Source, Protocol):
    """A source that can be read in pieces of a requested length."""

    def next_bytes(self, size_bytes: int) -> AsyncIterator[bytes]: ...


class BodyChange(Protocol):
    """The commit that a body takes part in. Its writes go to the blob's partition."""

    @property
    def stamp(self) -> int: ...

    def put(self, key: Key, value: bytes | None) -> None:
        """The last call for a key counts."""
        ...

    def adopt(self, content: int) -> None:
        """Make the partition the owner of this content."""
        ...

    def drop(self, content: int) -> None:
        """Drop this content, which nothing else can name."""
        ...

    def retire(self, body: Body) -> None:
        """Record that the blob no longer has this body, so that it is swept later. Other records of
        the blob may still share it."""
        ...


class Removal(Protocol):
    """Collects the records and contents that a sweep removes."""

    async def add(
        self, partition: Partition, gone: Iterable[Key] = (), drop: Iterable[int] = ()
    ) -> None:
        """Remove these records and contents, in the order of the calls."""
        ...


class InspectedBody(Protocol):
    """One state of a blob that doctor checks.

    Attributes:
        which: the words for it in a problem's text.
        past: which state it is; HEAD for the head.
        size_bytes: the length in the blob's record.
    """

    which: str
    past: Past
    size_bytes: int

    def record(self, key: Key) -> bytes | None: ...

    def records(self, first: bytes, until: bytes) -> list[tuple[bytes, bytes]]:
        """The names and values of the hidden records with first <= name < until, in order."""
        ...

    def content(self, content: int) -> bytes | None:
        """None when it is missing."""
        ...

    def claim_map(self, number: int, at: int) -> None:
        """The body is the map `number` (store/core/extents) in its state at the stamp `at`."""
        ...


class NewBody(Protocol):
    """A durable body that no commit has taken yet. `crc64` is None when the checksum of the whole
    is not known."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def crc64(self) -> int | None: ...

    def take(self, change: BodyChange) -> Body:
        """Make this the body of the head that `change` writes. Return the form to store in the
        record."""
        ...

    def discard(self, contents: Contents) -> None:
        """No commit takes it."""
        ...


CopyWriter = Callable[[Contents, Feed], Awaitable[NewBody]]
"""copy_writer(contents, feed) stores the bytes of `feed`, and returns the body of another blob."""


class BodyPlace(msgspec.Struct, frozen=True):
    """`beside` are the records that were read together with the blob's own, in the order of
    `read_with` (kinds.py)."""

    store: StorageEngine
    partition: Partition
    beside: Sequence[Record | None] = ()


class OpenBody(msgspec.Struct, Generic[P], frozen=True):
    """The bytes of a body. They stay readable until `close` is called (None: nothing to close).

    `left` are the spans of a body in parts that are still to be read; None = they are not known.
    `copy_writer` stores the bytes of the whole body again in the same structure; None when any
    structure will do.
    """

    pieces: bytes | AsyncIterator[P]
    close: Callable[[], None] | None = None
    left: Collection[Span] | None = ()
    copy_writer: CopyWriter | None = None


class BodySweep(msgspec.Struct, frozen=True):
    """A sweep of one blob's partition.

    Attributes:
        place: the blob's partition, without records beside it.
        live: the shareable bodies of the partition that are still named.
        readers: the readers of this process.
        horizon: the readers of other gateways see all commits with smaller stamps.
        removal: collects the records and contents to remove.
    """

    place: BodyPlace
    live: Collection[Body]
    readers: MapReaders
    horizon: int
    removal: Removal


class ReadersActive(Exception):
    """A sweep must wait for readers."""


class NamedParts(NamedTuple):
    """The records of the blob's partition, and the contents, that a stored form names."""

    keys: tuple[Key, ...] = ()
    contents: tuple[int, ...] = ()


class BodyFindings(NamedTuple):
    """Doctor's findings on a body: its length (None: bytes are missing), the contents that must
    exist, and the problems."""

    size_bytes: int | None
    contents: Collection[int] = ()
    problems: tuple[str, ...] = ()


class Body(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The description of where the bytes of a blob are. A blob's record holds one of its
    subclasses.

    Attributes:
        is_shared: whether the head and snapshots may share one body, which is then retired and
            swept. Other bodies are dropped by the commit that gives them up.
        is_in_parts: whether it is read part by part. A reader must register (`Readers`) before it
            reads the record that names the body; then no part is swept while it reads.
    """

    is_shared: ClassVar[bool] = False
    is_in_parts: ClassVar[bool] = False

    async def open(
        self, place: BodyPlace, offset: int, length: int, take: ReadSpan[P]
    ) -> OpenBody[P]:
        """Return the bytes [offset, offset + length).

        Raises: ContentMissing when a part is missing; DataDamaged, also while the bytes are read.
        """
        raise NotImplementedError  # each kind has its own; a struct cannot be an abstract class

    async def blocks(self, place: BodyPlace) -> StoredBlockList:
        """No blocks for a body that is not made of blocks. Raises: ContentMissing, DataDamaged."""
        return NO_BLOCKS

    @property
    def appended_count(self) -> int:
        """0 for the body of another type of blob."""
        return 0

    def includes(self, earlier: Body) -> bool:
        """Whether all parts of `earlier`, a form that was read before, belong to this one too."""
        return self == earlier

    def release(self, change: BodyChange, past: Past, alone: bool) -> None:
        """Release the body, because the blob's record no longer names it.

        Arguments:
            past: the state that had it; HEAD for the head.
            alone: whether nothing else in the partition can share the body.
        """
        if self.is_shared:
            change.retire(self)

    def snapshot(self, change: BodyChange, beside: Sequence[Record | None], past: Past) -> Body:
        """Give this body to a snapshot or version that `change` makes of the head. Return the body
        that the head has from now on.

        Arguments:
            beside: as in `BodyPlace`, for the head.
            past: the snapshot or version.
        """
        return self

    @property
    def position(self) -> int:
        """The stamp at which a registered reader reads a body that changes in place."""
        return 0

    def without(self, snapshot: Body) -> Body:
        """The form of the head's body after the deletion of the snapshot that had the body
        `snapshot`."""
        return self

    @property
    def named(self) -> NamedParts:
        """The records and contents that the stored form itself names, if it may be shared."""
        return NamedParts()

    async def parts(self, place: BodyPlace) -> frozenset[int]:
        """The contents that the records in `named` lead to; none if they are removed already."""
        try:
            blocks = await self.blocks(place)
            return await place.store.turns.run(blocks.contents())
        except ContentMissing:
            return frozenset()

    async def sweep_retired(self, sweep: BodySweep) -> NamedParts:
        """Remove the records and contents that only this retired body names.

        Returns: the records and contents to remove together with the record that names the body.
        They go last: a sweep that starts again finds the rest through them.

        Raises: ReadersActive.
        """
        place = sweep.place
        parts = await self.parts(place)
        if parts:
            gone = await unused(place, parts, sweep.live)
            await sweep.removal.add(place.partition, (), gone)
        return self.named

    async def sweep_leftovers(self, sweep: BodySweep) -> None:
        """Remove the leftovers of changes of this live body. Raises ReadersActive."""

    def inspect(self, found: InspectedBody) -> BodyFindings:
        """For doctor. Raises: DamagedRecord."""
        raise NotImplementedError  # each kind has its own; a struct cannot be an abstract class


async def unused(place: BodyPlace, contents: Iterable[int], live: Collection[Body]) -> set[int]:
    """Those of the `contents` that no live body consists of."""
    left = set(contents)
    for body in live:
        if not left:
            break
        left.difference_update(body.named.contents)
        left -= await body.parts(place)
    return left
