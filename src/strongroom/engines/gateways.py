"""The third contract of a store: several processes, called gateways, serve the same data.

Lives here: the protocol `Gateways`, and its implementation for a store with a single process. Must
not live here: records (base.py), or when a gateway counts as dead (membership.py).

A service needs this contract for four purposes.

1. Background work that only one gateway shall do. `owns` says which gateway should begin it. `hold`
   guarantees that no other gateway does it at the same time:

    if gateways.owns(lane):
        hold = await gateways.hold(lane)
        if hold is not None:
            try:
                ...  # work in small commits; stop when hold.is_lost
            finally:
                hold.release()

When another gateway has taken over a lost hold, the gateway that lost it can commit nothing more.
So the work needs no check of its own in its commits.

2. Dropping contents that readers of other gateways may still read. A reader of several contents
   publishes itself before it reads the record that names them:

    mark = gateways.begin_reading()
    try:
        ...  # read the head, then open and send one content after the other
        mark.narrow(contents_that_are_left)  # once it has read for READING_S_MAX
    finally:
        mark.end()

Before contents are dropped, the horizon is checked; `retired` is the stamp of the commit that gave
the contents up. The gateway knows its own readers without it:

    horizon = await gateways.horizon()
    droppable = [one for one in contents if horizon.frees(one, retired)]

3. A last read, after which nothing may be added. `await gateways.wait_for_earlier_commits(stamp)`
   waits for commits whose decisions were made before. A sweep of a deleted container waits with the
   stamp of the deletion, and then walks through it once more. The same call settles whether an
   older commit happened at all: if it is not visible when the call returns, it never will be.

4. Numbers that several gateways give without asking each other: see `number`.

5. Finding another gateway. Each one announces where the others reach it, and looks up the holder of
   a right and what that gateway has announced. `secret` proves to a gateway that its caller is one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol

import msgspec

GATEWAYS_MAX: Final = 64
READING_S_MAX: Final = 60
"""After so many seconds a reader names the contents that it still reads (see
`ReaderMark.narrow`)."""
STAMP_MAX: Final = 2**63 - 1


ANNOUNCEMENT_BYTES_MAX: Final = 1024


class GatewayRun(msgspec.Struct, frozen=True, order=True):
    """One run of one gateway."""

    number: int
    incarnation: int


class Horizon(msgspec.Struct, frozen=True):
    """The oldest states that readers of other gateways may still read, as seen at one time.

    Attributes:
        stamp: every reader of another live gateway sees all commits with smaller stamps, except
            readers that have named their contents.
        named: the contents that such readers still read.
    """

    stamp: int
    named: frozenset[int] = frozenset()

    def frees(self, content_id: int, retired: int) -> bool:
        """Return whether no reader of another gateway can read a content.

        Arguments:
            retired: the stamp of the commit after which no record named the content.
        """
        return retired < self.stamp and content_id not in self.named


class ExclusiveRight(Protocol):
    """An exclusive right. It is valid until `release`, or until the gateway stops."""

    @property
    def is_lost(self) -> bool:
        """Whether the work must stop, because the gateway's heartbeat is late or the gateway was
        declared dead. Once lost, a hold stays lost."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether the gateway has the right, and may rely on it now. It may not while the heartbeat
        is late. If the gateway was not declared dead, the right is valid again with the next
        heartbeat: no other gateway had it in between."""
        ...

    def release(self) -> None:
        """Give the right back. Another gateway may get it only one heartbeat later. Idempotent."""
        ...


class ReaderMark(Protocol):
    """A published reader. The `horizon` of other gateways stays below it until it ends or
    narrows."""

    def narrow(self, content_ids: Iterable[int]) -> None:
        """Name the contents that are still to be read. From now on the reader protects only these.
        A reader calls it after READING_S_MAX, and may call it again with fewer of them."""
        ...

    def end(self) -> None:
        """Declare that nothing is read any more. Idempotent."""
        ...


class Gateways(Protocol):
    """The processes that serve a store, seen from one of them.

    Every gateway sends heartbeats. Without one for 5 s its own reads and updates raise Unavailable.
    Without one for 10 s any other gateway may declare it dead. Its holds and its readers are then
    void. Every later commit of it is refused with Unavailable.
    """

    @property
    def number(self) -> int:
        """The gateway's number, 0 .. GATEWAYS_MAX - 1; no two live gateways have the same one."""
        ...

    @property
    def incarnation(self) -> int:
        """An id that distinguishes this gateway from all earlier ones with its number."""
        ...

    @property
    def run(self) -> GatewayRun:
        """This gateway, as the others see it."""
        ...

    @property
    def secret(self) -> bytes:
        """32 bytes that all gateways of the store know, and nobody else. It is empty if the store
        can have only one gateway."""
        ...

    @property
    def is_alone(self) -> bool:
        """Whether no other gateway reads. A decision may use it: the answer then holds until its
        commit."""
        ...

    def owns(self, name: bytes) -> bool:
        """Return whether this gateway should do the work called `name`. As a rule, this is True at
        exactly one live gateway. It is a hint; exclusion needs `hold`."""
        ...

    async def hold(self, name: bytes) -> ExclusiveRight | None:
        """Take the exclusive right called `name`. Return None if any gateway holds it, this one
        included.

        Later stamps of this gateway are greater than those of all commits made under the right
        before.

        Raises: Unavailable.
        """
        ...

    def holder(self, name: bytes) -> GatewayRun | None:
        """Return who had the right called `name` when this gateway last saw the table. It is a
        hint, up to one heartbeat old."""
        ...

    def has_ended(self, run: GatewayRun) -> bool:
        """Return whether the gateway was gone when this one last saw the table. One that has joined
        since then has not."""
        ...

    async def announce(self, text: bytes) -> None:
        """Tell the other gateways something, at most ANNOUNCEMENT_BYTES_MAX bytes, in place of what
        was announced before. They see it one heartbeat later. Raises: Unavailable, ValueError."""
        ...

    def announced(self, run: GatewayRun) -> bytes | None:
        """Return what a gateway had announced when this one last saw the table. None if it is not
        live, or has announced nothing."""
        ...

    def begin_reading(self) -> ReaderMark:
        """Publish a reader, before it reads the first record. Raises Unavailable."""
        ...

    async def horizon(self) -> Horizon:
        """Return the oldest states that readers of the other gateways may still read. Raises
        Unavailable."""
        ...

    async def wait_for_earlier_commits(self, stamp: int) -> None:
        """Return when no gateway can commit with a smaller stamp than `stamp` any more. Reads and
        scans then see all such commits that happened.

        Arguments:
            stamp: a stamp that the store has given, or a time that `Engine.now` has returned.

        Raises: Unavailable; ValueError for a stamp in the future.
        """
        ...


def check_announcement(text: bytes) -> None:
    """Raises: ValueError for one that is too long."""
    if len(text) > ANNOUNCEMENT_BYTES_MAX:
        raise ValueError(f"an announcement has at most {ANNOUNCEMENT_BYTES_MAX} bytes")


class OnlyGateway:
    """The contract for a store with a single process: no other gateway exists.

    Arguments:
        incarnation: differs from that of all earlier runs.
        stopped: returns the reason why the store no longer serves; None while it does.
        wait_for_earlier_commits: see Gateways.wait_for_earlier_commits.
    """

    number: Final = 0
    is_alone: Final = True
    secret: Final = b""

    def __init__(
        self,
        incarnation: int,
        stopped: Callable[[], Exception | None],
        wait_for_earlier_commits: Callable[[int], Awaitable[None]],
    ) -> None:
        self.incarnation: Final = incarnation
        self.run: Final = GatewayRun(self.number, incarnation)
        self._announced: bytes | None = None
        self._stopped = stopped
        self._wait_for_earlier_commits = wait_for_earlier_commits
        self._held: set[bytes] = set()

    def owns(self, name: bytes) -> bool:
        return True

    async def hold(self, name: bytes) -> ExclusiveRight | None:
        self._check_serving()
        if name in self._held:
            return None
        self._held.add(name)
        return _OnlyHold(name, self._held, self._stopped)

    def holder(self, name: bytes) -> GatewayRun | None:
        return self.run if name in self._held else None

    def has_ended(self, run: GatewayRun) -> bool:
        return run != self.run

    async def announce(self, text: bytes) -> None:
        self._check_serving()
        check_announcement(text)
        self._announced = text

    def announced(self, run: GatewayRun) -> bytes | None:
        return self._announced if run == self.run else None

    def begin_reading(self) -> ReaderMark:
        self._check_serving()
        return _UNPUBLISHED

    async def horizon(self) -> Horizon:
        self._check_serving()
        return _NO_OTHERS

    async def wait_for_earlier_commits(self, stamp: int) -> None:
        self._check_serving()
        await self._wait_for_earlier_commits(stamp)

    def _check_serving(self) -> None:
        if (error := self._stopped()) is not None:
            raise error


class _OnlyHold:
    def __init__(
        self, name: bytes, held: set[bytes], stopped: Callable[[], Exception | None]
    ) -> None:
        self._name: bytes | None = name
        self._held = held
        self._stopped = stopped

    @property
    def is_lost(self) -> bool:
        return not self.is_held

    @property
    def is_held(self) -> bool:
        return self._name is not None and self._stopped() is None

    def release(self) -> None:
        if self._name is not None:
            self._held.discard(self._name)
            self._name = None


class _UnpublishedMark:
    """A reader that is not published, because no other gateway exists."""

    def narrow(self, content_ids: Iterable[int]) -> None:
        pass

    def end(self) -> None:
        pass


_UNPUBLISHED: Final = _UnpublishedMark()
_NO_OTHERS: Final = Horizon(STAMP_MAX)
