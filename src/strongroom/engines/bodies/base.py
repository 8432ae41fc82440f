"""The contract of a place that keeps bodies apart from the records: a folder, or a pool of objects.

Lives here: the protocols `BodyStore` and `InspectedBodies`, and their errors. Must not live here:
which record owns a body (the engine of the records), how places keep bodies (layout.py, rados/).

A body has the id that its engine gave it, and no other name. The engine never gives an id twice, so
no two gateways write the same body. A place belongs to one store, and has a mark that says to which
(mark.py).

Rules that every place keeps:
 1. What `finish` returned for is durable, and every gateway reads it whole at once.
 2. `finish` fails if the body was removed meanwhile.
 3. Nothing is written to, or removed from, a place whose mark is not there.
 4. A place that cannot be reached raises BodiesAway. BodyMissing means that it was reached, its
    mark was there, and the body was not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from strongroom.engines.base import Busy, EngineError, Unavailable
from strongroom.engines.bodies.mark import BodiesMark


class BodiesAway(Unavailable, Busy):
    """The place cannot be reached at present; this call changed nothing that counts. The same call
    may succeed soon."""


class BodiesUnfit(Unavailable):
    """The place cannot keep the bodies of this store; the text says why, and what to do."""


class BodiesBroken(Unavailable):
    """A sync has failed: what is durable is not known, so the gateway must end."""


class BodyMissing(EngineError):
    """The place has no such body."""


class FoundBody(NamedTuple):
    """A body that a place has.

    Attributes:
        age_s: since it was written, by the clock of the place.
    """

    id: int
    size_bytes: int
    age_s: float


class BodyWriting(Protocol):
    """A body that is being written. It ends by `finish`, by `give_up`, or by both in this order."""

    async def write(self, data: bytes) -> None:
        """Append bytes. They may still be on their way on return. Raises: Full, BodiesAway."""
        ...

    async def finish(self) -> None:
        """Make the body durable. Raises: Full, BodiesAway, BodiesBroken."""
        ...

    def give_up(self) -> None:
        """Remove the body, in the background; no record may ever own it. Idempotent."""
        ...


class OpenedBody(Protocol):
    """A body that is being read."""

    size_bytes: int

    async def read(self, offset: int, length: int) -> bytes:
        """Fewer bytes come if the body ends before. Raises: BodiesAway."""
        ...

    def close(self) -> None:
        """Idempotent."""
        ...


class BodyStore(Protocol):
    """A place that keeps bodies."""

    @property
    def shown(self) -> str:
        """Where it is, as people may see it."""
        ...

    @property
    def mark(self) -> BodiesMark:
        """As it was read last."""
        ...

    def why_away(self) -> BodiesAway | None:
        """As last seen; None = it can be used."""
        ...

    def on_broken(self, callback: Callable[[EngineError], None]) -> None:
        """Called when a sync has failed."""
        ...

    async def begin(self, body_id: int) -> BodyWriting:
        """Begin to write a body that does not exist. Raises: Full, Busy, BodiesAway."""
        ...

    async def open(self, body_id: int) -> OpenedBody:
        """Raises: BodyMissing, Busy, BodiesAway."""
        ...

    async def remove(self, body_ids: Sequence[int]) -> None:
        """Those that do not exist are passed over. Raises: BodiesAway."""
        ...

    def ids(self) -> AsyncIterator[Sequence[int]]:
        """Yield the ids of all bodies, some at once, in no order. One that is written or removed
        meanwhile may be left out. Raises: BodiesAway."""
        ...

    async def states(self, body_ids: Sequence[int]) -> Sequence[FoundBody]:
        """Return what is known of bodies, without those that do not exist. Raises: BodiesAway."""
        ...

    async def look(self) -> BodiesMark:
        """Read the mark anew. Raises: BodiesAway, BodiesUnfit."""
        ...

    async def put_mark(self, mark: BodiesMark) -> None:
        """Replace the mark, durably. Raises: BodiesAway."""
        ...

    async def close(self) -> None:
        """End what is under way, as far as the place answers."""
        ...


class InspectedBodies(Protocol):
    """A place that is read from outside of a server. A call blocks until the place answers.

    Attributes:
        mark: as it was read when the place was opened.
    """

    mark: BodiesMark

    def pages(self) -> Iterator[Sequence[int]]:
        """Yield the ids of all bodies, some at once, in no order. Raises: OSError."""
        ...

    def states(self, body_ids: Sequence[int]) -> Sequence[FoundBody]:
        """As BodyStore.states. Raises: OSError."""
        ...

    def pieces(self, body_id: int) -> Iterator[bytes]:
        """Yield a body, in order. Raises: FileNotFoundError: there is none; OSError."""
        ...

    def close(self) -> None:
        """A place that nobody refers to any more is closed, too. Idempotent."""
        ...
