"""A place of bodies as calls that may block: what a folder and a pool of objects have to offer.

Lives here: the protocols `BlockingPlace`, `BlockingWriting` and `BlockingReading`. Must not live
here: the thread of a call, for how long it is waited for, and what its error means (threaded.py).

Errors are OSErrors with a number, unless another one is named. A place that cannot be reached says
so by any of them. FileNotFoundError means what the call says.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple, Protocol

from strongroom.engines.bodies.base import FoundBody
from strongroom.engines.bodies.mark import BodiesMark


class NotDurable(OSError):
    """A sync has failed: what is durable of all that was written before is not known."""


class PlaceLimits(NamedTuple):
    """For how long callers wait, in seconds, and how many calls run at once.

    Attributes:
        call_s: for a part of a body.
        look_s: for the mark.
        long_s: for the end of a body, and for lists.
        threads: for calls.
        pieces: how many pieces of all bodies may be on their way; each one is in memory.
    """

    call_s: float
    look_s: float
    long_s: float
    threads: int
    pieces: int


class BlockingWriting(Protocol):
    """A body that is being written.

    Attributes:
        pieces_at_once: how many pieces of it may be on their way.
    """

    pieces_at_once: int

    def pieces(self, data: bytes, now_s: float) -> Iterable[Callable[[], None]]:
        """Take bytes, without blocking. Yield the calls that write pieces. They begin in order,
        and one begins only if all but `pieces_at_once` before it have succeeded. A piece is made
        when it is asked for, so that one that waits for room in memory is the only one.

        Arguments:
            now_s: by a clock that never goes back.
        """
        ...

    def finish(self) -> None:
        """Make the body durable, when all pieces are written. Raises: NotDurable, OSError;
        BodiesAway: it was removed meanwhile."""
        ...

    def give_up(self) -> None:
        """Remove the body as far as that is safe, when nothing of it is on its way any more."""
        ...


class BlockingReading(Protocol):
    """A body that is being read."""

    size_bytes: int

    def read(self, offset: int, length: int) -> bytes:
        """Fewer bytes come if the body ends before. Raises: FileNotFoundError: bytes of it are
        missing; OSError."""
        ...

    def close(self) -> None:
        """What a read under way returns is of no use any more. Idempotent."""
        ...


class BlockingPlace(Protocol):
    """A place with a mark."""

    @property
    def shown(self) -> str:
        """Its URL."""
        ...

    @property
    def mark(self) -> BodiesMark:
        """As it was read last."""
        ...

    @property
    def limits(self) -> PlaceLimits: ...

    def look(self) -> BodiesMark:
        """Read the mark where the URL leads now. Raises: BodiesAway, OSError."""
        ...

    def put_mark(self, mark: BodiesMark, is_late: Callable[[], bool]) -> None:
        """Replace the mark, durably, unless it is late. A call that hung never replaces one that
        was put after it began. Raises: BodiesAway, OSError."""
        ...

    def begin(self, body_id: int) -> BlockingWriting:
        """Raises: FileExistsError, OSError."""
        ...

    def open(self, body_id: int) -> BlockingReading:
        """Raises: FileNotFoundError: there is none; OSError."""
        ...

    def remove(self, body_ids: Sequence[int]) -> None:
        """Those that do not exist are passed over."""
        ...

    def pages(self) -> Generator[Sequence[int], None, None]:
        """See InspectedBodies."""
        ...

    def states(self, body_ids: Sequence[int]) -> Sequence[FoundBody]:
        """See BodyStore."""
        ...

    def close(self) -> None:
        """Nothing more is called. Calls under way may go on. Idempotent."""
        ...
