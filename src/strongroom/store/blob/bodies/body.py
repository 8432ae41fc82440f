"""The interface that all kinds of bodies share.

Lives here: `Body`, and the protocols of what its methods are handed. Must not live here: any one
kind, Azure's rules.
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
"""Where the head has what other states of the blob have under their time or id."""

Take = Callable[[Opened, Span], AsyncIterator[P]]
"""take(content, span) -> the bytes of this span of it: to send, read or store them (reading.py)."""


class Source(Protocol):
    """Where the bytes of a new body come from: a request, or the source of a copy."""

    size_bytes: int | None

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Feed(Source, Protocol):
    """A source that is taken in pieces of a wanted length."""

    def next_bytes(self, size_bytes: int) -> AsyncIterator[bytes]:
        """The next `size_bytes` bytes."""
        ...


class BodyChange(Protocol):
    """The commit that a body takes part in. Its writes go to the blob's partition."""

    @property
    def stamp(self) -> int:
        """The stamp of the commit."""
        ...

    def put(self, key: Key, value: bytes | None) -> None:
        """Write a record, or delete it. The last call for a key counts."""
        ...

    def adopt(self, content: int) -> None:
        """The partition owns this content from now on."""
        ...

    def drop(self, content: int) -> None:
        """The partition gives this content up, and nothing else can name it."""
        ...

    def retire(self, body: Body) -> None:
        """Note that the blob no longer has this body, and sweep it later. Other records of the blob
        may still share it."""
        ...


class Removal(Protocol):
    """Collects what a sweep removes."""

    async def add(
        self, partition: Partition, gone: Iterable[Key] = (), drop: Iterable[int] = ()
    ) -> None:
        """Remove these records and contents. What was added first goes first."""
        ...


class InspectedBody(Protocol):
    """One state of a blob that doctor checks.

    Attributes:
        which: the words for it in a problem's text.
        past: which state it is; HEAD for the head.
        size_bytes: the length that the blob's record says.
    """

    which: str
    past: Past
    size_bytes: int

    def record(self, key: Key) -> bytes | None:
        """A hidden record, which belongs to this body."""
        ...

    def records(self, first: bytes, until: bytes) -> list[tuple[bytes, bytes]]:
        """The names and values of the hidden records with first <= name < until, in order. They
        belong to this body."""
        ...

    def content(self, content: int) -> bytes | None:
        """The bytes of a content; None when it is missing."""
        ...

    def claim_map(self, number: int, at: int) -> None:
        """The body is the map `number` (store/core/extents) as it was at the stamp `at`."""
        ...


class NewBody(Protocol):
    """A body that is durable and that no commit has taken yet. `crc64` is None when the digest of
    the whole is not known."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def crc64(self) -> int | None: ...

    def take(self, change: BodyChange) -> Body:
        """Make this the body of the head that `change` writes. Returns the form to store in the
        record."""
        ...

    def discard(self, contents: Contents) -> None:
        """Give it up: no commit takes it."""
        ...


CopyWriter = Callable[[Contents, Feed], Awaitable[NewBody]]
"""copy_writer(contents, feed) -> the bytes of `feed` as the body of another blob."""


class BodyPlace(msgspec.Struct, frozen=True):
    """Where the parts of a body are looked up: the store and the blob's partition. `beside` are the
    records that were read together with the blob's own, in the order of `read_with` (kinds.py)."""

    store: StorageEngine
    partition: Partition
    beside: Sequence[Record | None] = ()


class OpenBody(msgspec.Struct, Generic[P], frozen=True):
    """Bytes of a body, which stay readable until `close` was called (None: nothing to close).

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
        place: without records beside it.
        live: the bodies of the partition that may be shared and are still named.
        readers: the readers of this process.
        horizon: the readers of other gateways see all commits with smaller stamps.
        removal: collects what is removed.
    """

    place: BodyPlace
    live: Collection[Body]
    readers: MapReaders
    horizon: int
    removal: Removal


class StillRead(Exception):
    """A sweep must wait for readers."""


class Named(NamedTuple):
    """Records of the blob's partition, and contents."""

    keys: tuple[Key, ...] = ()
    contents: tuple[int, ...] = ()


class BodyFindings(NamedTuple):
    """Doctor's findings on a body: its length (None: bytes are missing), the contents that must be
    there, and what is wrong."""

    size_bytes: int | None
    contents: Collection[int] = ()
    problems: tuple[str, ...] = ()


class Body(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the bytes of a blob are. A blob's record holds one of its subclasses.

    Attributes:
        is_shared: whether the head and snapshots may share one body, which is then retired and
            swept. Other bodies are dropped by the commit that gives them up.
        is_in_parts: whether it is read part by part. A reader must register (`Readers`) before it
            looks at the record that names the body; then no part is swept while it reads.
    """

    is_shared: ClassVar[bool] = False
    is_in_parts: ClassVar[bool] = False

    async def open(self, place: BodyPlace, offset: int, length: int, take: Take[P]) -> OpenBody[P]:
        """The bytes [offset, offset + length).

        Raises: ContentMissing when a part is gone; DataDamaged, also while the bytes are read.
        """
        raise NotImplementedError  # each kind has its own; a struct cannot be an abstract class

    async def blocks(self, place: BodyPlace) -> StoredBlockList:
        """The committed blocks, none for a body that is not made of blocks. Raises ContentMissing,
        DataDamaged."""
        return NO_BLOCKS

    @property
    def appended_count(self) -> int:
        """How many blocks were appended; 0 for the body of another type of blob."""
        return 0

    def includes(self, earlier: Body) -> bool:
        """Whether all parts of `earlier`, a form that was seen before, belong to this one too."""
        return self == earlier

    def release(self, change: BodyChange, past: Past, alone: bool) -> None:
        """The blob's record gives its body up.

        Arguments:
            past: which state that is; HEAD for the head.
            alone: whether nothing else in the partition can share the body.
        """
        if self.is_shared:
            change.retire(self)

    def snapshot(self, change: BodyChange, beside: Sequence[Record | None], past: Past) -> Body:
        """A snapshot or version that `change` makes of the head gets this body. Returns the body
        that the head has from now on.

        Arguments:
            beside: as in `BodyPlace`, for the head.
            past: which snapshot or version.
        """
        return self

    @property
    def position(self) -> int:
        """The stamp at which a registered reader reads a body that changes in place."""
        return 0

    def without(self, snapshot: Body) -> Body:
        """The form of the head's body after the snapshot that had this body was deleted."""
        return self

    @property
    def named(self) -> Named:
        """The records and contents that the stored form itself names, if it may be shared."""
        return Named()

    async def parts(self, place: BodyPlace) -> frozenset[int]:
        """Return the ids of the contents that the records in `named` lead to. The set is empty if
        they are removed already."""
        try:
            blocks = await self.blocks(place)
            return await place.store.turns.run(blocks.contents())
        except ContentMissing:
            return frozenset()

    async def let_go(self, sweep: BodySweep) -> Named:
        """Remove what only this retired body leads to.

        Returns: what must go together with the record that names the body. It leads a sweep that
            begins again to what is left, so it goes last.

        Raises: StillRead.
        """
        place = sweep.place
        parts = await self.parts(place)
        if parts:
            gone = await unused(place, parts, sweep.live)
            await sweep.removal.add(place.partition, (), gone)
        return self.named

    async def tidy(self, sweep: BodySweep) -> None:
        """Remove what changes of this living body have left behind. Raises StillRead."""

    def inspect(self, found: InspectedBody) -> BodyFindings:
        """The check by doctor. Raises DamagedRecord."""
        raise NotImplementedError  # each kind has its own; a struct cannot be an abstract class


async def unused(place: BodyPlace, contents: Iterable[int], live: Collection[Body]) -> set[int]:
    """Those of `contents` of which no living body is made."""
    left = set(contents)
    for body in live:
        if not left:
            break
        left.difference_update(body.named.contents)
        left -= await body.parts(place)
    return left
