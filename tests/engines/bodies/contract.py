"""The cases that every place of bodies passes: a folder, a pool in memory, a pool of Ceph.

Lives here: `CONTRACT`, and what a case needs of a place. Must not live here: faults of one kind of
place (test_folder.py, test_pool.py).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from typing import Final, Protocol
from unittest import mock
from uuid import UUID

import pytest

from strongroom.engines.base import EngineError
from strongroom.engines.bodies.base import BodiesAway, BodiesUnfit, BodyMissing
from strongroom.engines.bodies.blocking import BlockingWriting, PlaceLimits
from strongroom.engines.bodies.mark import BodiesMark
from strongroom.engines.bodies.places import inspect_place, make_place_ready, open_place
from strongroom.engines.bodies.threaded import ThreadedBodies

OWN: Final = BodiesMark(UUID(int=1), UUID(int=2), UUID(int=3))
SECOND: Final = BodiesMark(UUID(int=1), UUID(int=2), UUID(int=4))
THIRD: Final = BodiesMark(UUID(int=1), UUID(int=2), UUID(int=5))
OTHER_STORE: Final = BodiesMark(UUID(int=9), UUID(int=2), UUID(int=3))
MIB: Final = 1024 * 1024
LONG: Final = os.urandom(9 * MIB + 7)
IMPATIENT: Final = PlaceLimits(call_s=0.1, look_s=0.1, long_s=0.1, threads=8, pieces=8)


class TriedPlace(Protocol):
    """A place that is tried.

    Attributes:
        url: of the place, which is empty and has no mark.
    """

    url: str

    def unmark(self) -> None:
        """Take the mark away."""
        ...

    def remark(self) -> None:
        """Put the mark back."""
        ...

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        """Change the text of the mark."""
        ...

    def left(self) -> Collection[str]:
        """Return the names of what is there of bodies."""
        ...

    def age(self, body_id: int, age_s: int) -> None:
        """Let a body be older than it is."""
        ...

    def put_foreign(self) -> None:
        """Put something there that is no body."""
        ...


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[ThreadedBodies]:
    """Open a place that has the mark, as a gateway does."""
    bodies = await open_place(url)
    assert isinstance(bodies, ThreadedBodies)
    try:
        yield bodies
    finally:
        await bodies.close()


@asynccontextmanager
async def made(place: TriedPlace) -> AsyncIterator[ThreadedBodies]:
    """Make a place ready, and open it."""
    await make_place_ready(place.url, OWN)
    async with opened(place.url) as bodies:
        yield bodies


async def write(bodies: ThreadedBodies, body_id: int, data: bytes = LONG) -> None:
    """Write a body in the pieces in which the engine does."""
    writing = await bodies.begin(body_id)
    for at in range(0, len(data), MIB):
        await writing.write(data[at : at + MIB])
    await writing.finish()


async def read(bodies: ThreadedBodies, body_id: int) -> bytes:
    """Read a whole body."""
    body = await bodies.open(body_id)
    try:
        return await body.read(0, body.size_bytes)
    finally:
        body.close()


async def found(bodies: ThreadedBodies) -> dict[int, int]:
    """Return the sizes of all bodies."""
    ids = [one async for page in bodies.ids() for one in page]
    return {one.id: one.size_bytes for one in await bodies.states([*ids, 1])}


async def settled(bodies: ThreadedBodies) -> None:
    """Return when what runs in the background has ended."""
    while bodies._tasks:
        await asyncio.gather(*bodies._tasks)


async def _comes_back(place: TriedPlace) -> None:
    async with made(place) as bodies:
        ids = [7, 1 << 62, *range(638_000_000_000_000_000, 638_000_000_000_000_020)]
        for body_id in ids:
            await write(bodies, body_id, LONG if body_id == 7 else LONG[:MIB])
        assert await read(bodies, 7) == LONG
        assert await found(bodies) == {**dict.fromkeys(ids, MIB), 7: len(LONG)}
        await bodies.remove([*ids[1:], 5])
        assert await found(bodies) == {7: len(LONG)}
        assert await read(bodies, 7) == LONG


async def _every_size(place: TriedPlace) -> None:
    sizes = (0, 1, MIB, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 8 * MIB, 8 * MIB + 1, 9 * MIB)
    async with made(place) as bodies:
        for number, size_bytes in enumerate(sizes):
            await write(bodies, 100 + number, LONG[:size_bytes])
        for number, size_bytes in enumerate(sizes):
            assert await read(bodies, 100 + number) == LONG[:size_bytes]
        await bodies.remove(range(100, 100 + len(sizes)))
    assert not place.left()


async def _any_range(place: TriedPlace) -> None:
    async with made(place) as bodies:
        await write(bodies, 7)
        body = await bodies.open(7)
        assert body.size_bytes == len(LONG)
        for offset in (0, 1, 4 * MIB - 5, 4 * MIB, 9 * MIB):
            for length in (0, 1, 10, MIB, 5 * MIB):
                assert await body.read(offset, length) == LONG[offset : offset + length]
        assert await body.read(len(LONG), 5) == b""
        body.close()
        body.close()
        with pytest.raises(ValueError, match="closed"):
            await body.read(0, 1)


async def _seen_by_others(place: TriedPlace) -> None:
    async with made(place) as one, opened(place.url) as two:
        for number in range(5):
            await write(one, number, LONG[: (number + 1) * MIB])
            assert await read(two, number) == LONG[: (number + 1) * MIB]
        await two.remove([3])
        with pytest.raises(BodyMissing):
            await one.open(3)


async def _given_up(place: TriedPlace) -> None:
    async with made(place) as bodies:
        for ends in (False, True):
            writing = await bodies.begin(7 + ends)
            await writing.write(LONG)
            if ends:
                await writing.finish()
            writing.give_up()
            writing.give_up()
    assert not place.left()


async def _never_twice(place: TriedPlace) -> None:
    async with made(place) as bodies:
        await write(bodies, 7)
        with pytest.raises(BodiesAway):
            await bodies.begin(7)
        assert await read(bodies, 7) == LONG


async def _unfinished(place: TriedPlace) -> None:
    """What was not finished is listed, so that it is swept if its gateway dies."""
    async with made(place) as bodies:
        writing = await bodies.begin(7)
        await writing.write(LONG)
        assert set(await found(bodies)) == {7}
        await writing.finish()
        assert await found(bodies) == {7: len(LONG)}


async def _removed_meanwhile(place: TriedPlace) -> None:
    async with made(place) as bodies, opened(place.url) as sweeper:
        for body_id, size_bytes in ((7, len(LONG)), (8, MIB)):
            writing = await bodies.begin(body_id)
            await writing.write(LONG[:size_bytes])
            await sweeper.remove([body_id])
            with pytest.raises(BodiesAway, match=f"body {body_id} was removed"):
                await writing.finish()
            writing.give_up()
        await settled(bodies)
        await write(bodies, 9)
        assert await found(bodies) == {9: len(LONG)}


async def _missing(place: TriedPlace) -> None:
    async with made(place) as bodies:
        with pytest.raises(BodyMissing, match="no body 7"):
            await bodies.open(7)
        await write(bodies, 7)
        place.unmark()
        for call in (bodies.open(8), bodies.open(7), bodies.begin(9), bodies.remove([7])):
            with pytest.raises(BodiesAway):
                await call
        assert bodies.why_away() is not None
        place.remark()
        assert await bodies.look() == OWN
        assert bodies.why_away() is None
        assert await read(bodies, 7) == LONG


async def _ages(place: TriedPlace) -> None:
    async with made(place) as bodies:
        for body_id in (7, 8):
            await write(bodies, body_id, LONG[:MIB])
        place.age(7, 1000)
        ages = {one.id: one.age_s for one in await bodies.states([7, 8, 9])}
        assert ages.keys() == {7, 8}
        assert ages[7] - ages[8] == pytest.approx(1000, abs=60)


async def _marks(place: TriedPlace) -> None:
    async with made(place) as one, opened(place.url) as two:
        assert one.mark == two.mark == OWN
        await one.put_mark(SECOND)
        assert await two.look() == two.mark == SECOND
        await two.put_mark(THIRD)
        assert await one.look() == THIRD
    await make_place_ready(place.url, OWN)  # of the same store: it stays as it is
    assert inspect_place(place.url).mark == THIRD


async def _refused(place: TriedPlace) -> None:
    with pytest.raises(BodiesUnfit, match="no mark"):
        await open_place(place.url)
    await make_place_ready(place.url, OWN)
    with pytest.raises(BodiesUnfit, match="another store"):
        await make_place_ready(place.url, OTHER_STORE)
    for damaged, words in (
        (lambda text: b"?", "cannot be read"),
        (lambda text: text.replace(b'"format":1', b'"format":2'), "2"),
    ):
        place.rewrite(damaged)
        with pytest.raises(BodiesUnfit, match=words):
            await open_place(place.url)
        place.rewrite(lambda _: OWN.text())
    async with opened(place.url) as bodies:
        place.rewrite(lambda _: OTHER_STORE.text())
        with pytest.raises(BodiesAway, match="another store"):
            await bodies.look()


async def _not_empty(place: TriedPlace) -> None:
    place.put_foreign()
    with pytest.raises(BodiesUnfit, match="not empty"):
        await make_place_ready(place.url, OWN)
    with pytest.raises(BodiesUnfit, match="no mark"):
        await open_place(place.url)


async def _hanging(place: TriedPlace) -> None:
    goes_on = threading.Event()

    def hang(*_: object) -> bytes:
        goes_on.wait(60)
        return b""

    async with made(place) as bodies:
        await write(bodies, 7)
        with pytest.raises(BodiesAway, match="does not answer"):
            await bodies.call(hang, limit_s=0.1)
        looking = mock.patch.object(type(bodies._place), "look", hang)
        soon = mock.patch.object(bodies, "limits", IMPATIENT)
        with looking, soon, pytest.raises(BodiesAway, match="does not answer"):
            await bodies.look()
        assert bodies.why_away() is not None
        goes_on.set()
        await bodies.look()
        assert bodies.why_away() is None
        assert await read(bodies, 7) == LONG


class _Told:
    """A body that tells when it was given up."""

    pieces_at_once = 1

    def __init__(self, body: BlockingWriting, ended: threading.Event) -> None:
        self._body, self._ended = body, ended
        self.pieces, self.finish = body.pieces, body.finish

    def give_up(self) -> None:
        self._body.give_up()
        self._ended.set()


async def _begun_late(place: TriedPlace) -> None:
    """A body whose writer has gone before it began leaves nothing."""
    goes_on, ended = threading.Event(), threading.Event()
    async with made(place) as bodies:
        begin = bodies._place.begin

        def late(body_id: int) -> BlockingWriting:
            goes_on.wait(60)
            return _Told(begin(body_id), ended)

        slow = mock.patch.object(bodies._place, "begin", late)
        soon = mock.patch.object(bodies, "limits", IMPATIENT)
        with slow, soon, pytest.raises(BodiesAway):
            await bodies.begin(7)
        goes_on.set()
        assert await asyncio.to_thread(ended.wait, 60)
    assert not place.left()


async def _inspected(place: TriedPlace) -> None:
    async with made(place) as bodies:
        for body_id, size_bytes in ((7, len(LONG)), (8, 5)):
            await write(bodies, body_id, LONG[:size_bytes])
    seen = inspect_place(place.url)
    assert seen.mark == OWN
    assert sorted(one for page in seen.pages() for one in page) == [7, 8]
    assert {one.id: one.size_bytes for one in seen.states([7, 8, 9])} == {7: len(LONG), 8: 5}
    assert b"".join(seen.pieces(7)) == LONG
    with pytest.raises(FileNotFoundError):
        list(seen.pieces(9))


async def _many_at_once(place: TriedPlace) -> None:
    """Uploads that go on, that fail and that are cancelled at any point, all at the same time."""
    async with made(place) as bodies:

        async def upload(body_id: int) -> int:
            if body_id % 3 == 0:
                await write(bodies, body_id)
                return body_id
            writing = await bodies.begin(body_id)
            try:
                for turn in range(body_id % 7):
                    await writing.write(LONG[turn * MIB : (turn + 1) * MIB])
                if body_id % 3 == 1:
                    raise ConnectionResetError
                await asyncio.sleep(body_id % 5 / 500)
                raise asyncio.CancelledError
            except BaseException:
                writing.give_up()
                raise

        ends = await asyncio.gather(*map(upload, range(2, 32)), return_exceptions=True)
        kept = {one for one in ends if isinstance(one, int)}
        assert kept == set(range(3, 32, 3)), [one for one in ends if isinstance(one, EngineError)]
        await settled(bodies)
        assert set(await found(bodies)) == kept
        for body_id in kept:
            assert await read(bodies, body_id) == LONG


Case = Callable[[TriedPlace], Coroutine[object, object, None]]
CONTRACT: Final[dict[str, Case]] = {
    "a body comes back, is found and is removed": _comes_back,
    "bodies of every size come back and leave nothing": _every_size,
    "any range can be read": _any_range,
    "every gateway reads at once what was finished": _seen_by_others,
    "a body that is given up leaves nothing": _given_up,
    "the same id is never written twice": _never_twice,
    "a body that is not finished is listed": _unfinished,
    "a body that was removed meanwhile is not acknowledged": _removed_meanwhile,
    "nothing is missing, written or removed where the mark is not": _missing,
    "ages are told": _ages,
    "a mark is replaced for everybody": _marks,
    "a place that does not belong to the store is refused": _refused,
    "a place with other things is left alone": _not_empty,
    "a place that hangs delays nobody for long": _hanging,
    "a body that begins too late leaves nothing": _begun_late,
    "a place is read from outside": _inspected,
    "uploads at the same time do not meet": _many_at_once,
}
