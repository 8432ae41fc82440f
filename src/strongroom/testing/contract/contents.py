"""The contract's cases about contents: streaming, ownership, pins.

Lives here: cases only.
"""

# ruff: noqa: D103 - a case's name says what must hold

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable
from typing import Final

from strongroom.engines.base import (
    CHUNK_BYTES_MAX,
    VERIFIED_BYTES_MAX,
    Commit,
    ContentMissing,
    DataDamaged,
    Opened,
    Step,
    StorageEngine,
)
from strongroom.engines.checksum import crc64
from strongroom.testing.contract.subject import (
    Refused,
    Subject,
    body_of,
    commit,
    content,
    face,
    pieces,
    place,
    value,
    writes,
)

_SIZES: Final = (0, 1, 4095, 64 * 1024, 64 * 1024 + 1, 256 * 1024 + 1, 3 * 1024 * 1024 + 7)


def _body(size_bytes: int, seed: int = 0) -> bytes:
    unit = hashlib.sha256(b"%d" % seed).digest()
    return (unit * (size_bytes // len(unit) + 1))[:size_bytes]


async def _owned(store: StorageEngine, body: bytes) -> int:
    written = await store.contents.write(pieces(body), len(body))
    await commit(store, Step(place(), adopt=(written.id,)))
    return written.id


async def _adopting_fails(store: StorageEngine, *ids: int) -> None:
    steps = (*writes((face(b"trace"), b"")), Step(place(), adopt=ids))
    try:
        await store.update(place(), [], lambda _, __: Commit(None, steps))
    except ValueError:
        assert await value(store, face(b"trace")) is None, "half of a refused commit happened"
        return
    raise AssertionError(f"{ids} were adopted")


async def bodies_of_every_size_come_back(subject: Subject) -> None:
    store = subject.store
    for size_bytes in _SIZES:
        body = _body(size_bytes)
        for known in (size_bytes, None):
            written = await store.contents.write(pieces(body, 70_000), known, md5=known is None)
            assert (written.size_bytes, written.crc64) == (size_bytes, crc64(body))
            wanted = hashlib.md5(body, usedforsecurity=False).digest() if known is None else None
            assert written.md5 == wanted
            await commit(store, Step(place(), adopt=(written.id,)))
            assert await content(store, written.id) == body


async def a_part_of_a_body_comes_back(subject: Subject) -> None:
    store = subject.store
    body = _body(600_000)
    opened = await store.contents.open(await _owned(store, body))
    for offset, length in ((0, 0), (0, 1), (599_999, 1), (123_456, 400_000), (600_000, 0)):
        assert await body_of(opened, offset, length) == body[offset : offset + length]
        assert await _gathered(opened, offset, length) == body[offset : offset + length]
    assert await _gathered(opened, 123_456) == body[123_456:]
    for offset, length in ((-1, 1), (0, 600_001), (600_000, 1), (5, -1)):
        for read in (body_of, _gathered):
            try:
                await read(opened, offset, length)
            except ValueError:
                continue
            raise AssertionError("a range outside the content was read")
    opened.close()
    opened.close()


async def bytes_come_in_chunks_of_a_bounded_size(subject: Subject) -> None:
    store = subject.store
    body = _body(3 * CHUNK_BYTES_MAX)
    opened = await store.contents.open(await _owned(store, body))
    for wanted in (len(body), len(body) - 1):
        sizes = [len(data) async for data in opened.chunks(0, wanted)]
        assert sum(sizes) == wanted
        assert max(sizes) <= CHUNK_BYTES_MAX
    opened.close()


async def a_body_that_is_not_as_long_as_said_is_refused(subject: Subject) -> None:
    store = subject.store
    for said in (99_999, 100_001, 0, 1_000_000):
        try:
            await store.contents.write(pieces(_body(100_000)), said)
        except ValueError:
            continue
        raise AssertionError("a wrong length was accepted")
    assert await content(store, await _owned(store, b"goes on")) == b"goes on"


async def several_bodies_are_written_together(subject: Subject) -> None:
    store = subject.store
    for count in (0, 1, 16, 40):
        sizes = [VERIFIED_BYTES_MAX if number % 3 else number for number in range(count)]
        bodies = [_body(size, seed) for seed, size in enumerate(sizes)]
        views = [memoryview(one) if len(one) % 2 else one for one in bodies]
        written = await store.contents.write_all(views)
        found = [(one.size_bytes, one.crc64, one.md5) for one in written]
        assert found == [(len(one), crc64(one), None) for one in bodies]
        ids = [one.id for one in written]
        assert len(set(ids)) == count
        # Each is a content of its own: some are adopted, and one of these is dropped again.
        await commit(store, Step(place(), adopt=tuple(ids[::2])))
        for content_id in ids[1::2]:
            store.contents.discard(content_id)
            await _adopting_fails(store, content_id)
        if ids:
            await commit(store, Step(place(), drop=(ids[0],)))
            assert await content(store, ids[0]) is None
        await subject.restart()
        store = subject.store
        for content_id, body in list(zip(ids, bodies, strict=True))[2::2]:
            assert await content(store, content_id) == body


async def a_body_that_is_too_long_to_be_written_with_others_is_refused(subject: Subject) -> None:
    store = subject.store
    try:
        await store.contents.write_all([b"short", bytes(VERIFIED_BYTES_MAX + 1)])
    except ValueError:
        assert await content(store, await _owned(store, b"goes on")) == b"goes on"
        return
    raise AssertionError("a long body was accepted")


async def a_stream_that_fails_says_so_itself(subject: Subject) -> None:
    store = subject.store

    async def failing() -> AsyncIterator[bytes]:
        yield bytes(300_000)
        raise ConnectionResetError("the client went away")

    for said in (None, 400_000):
        try:
            await store.contents.write(failing(), said)
        except ConnectionResetError:
            pass
        else:
            raise AssertionError("the failure was lost")
        assert await content(store, await _owned(store, b"goes on")) == b"goes on"


async def adopting_and_dropping_happen_with_the_records(subject: Subject) -> None:
    store = subject.store
    old = await _owned(store, b"old")
    written = await store.contents.write(pieces(b"new"), 3)
    assert await content(store, written.id) is None, "nobody owns it yet"

    def refused(*_: object) -> Commit[None]:
        raise Refused

    try:
        await store.update(place(), [], refused)
    except Refused:
        pass
    assert await content(store, old) == b"old"
    step = Step(place(), adopt=(written.id,), drop=(old,))
    await commit(store, *writes((face(), b"new")), step)
    assert await content(store, written.id) == b"new"
    assert await content(store, old) is None
    await commit(store, Step(place(), drop=(old, old, 1)))


async def a_content_is_adopted_once(subject: Subject) -> None:
    store = subject.store
    written = await store.contents.write(pieces(b"x"), 1)
    await _adopting_fails(store, written.id, written.id)
    await _adopting_fails(store, 12345)
    await commit(store, Step(place(), adopt=(written.id,)))
    await _adopting_fails(store, written.id)
    assert await content(store, written.id) == b"x"
    twice = await store.contents.write(pieces(b"y"), 1)
    answers = await asyncio.gather(
        *(commit(store, Step(place(b"%d" % one), adopt=(twice.id,))) for one in range(8)),
        return_exceptions=True,
    )
    assert sum(isinstance(one, ValueError) for one in answers) == 7
    assert await content(store, twice.id) == b"y"


async def a_discarded_content_is_gone(subject: Subject) -> None:
    store = subject.store
    written = await store.contents.write(pieces(b"x"), 1)
    store.contents.discard(written.id)
    store.contents.discard(written.id)
    await _adopting_fails(store, written.id)
    owned = await _owned(store, b"kept")
    store.contents.discard(owned)
    assert await content(store, owned) == b"kept"


async def a_pinned_content_outlives_its_owner(subject: Subject) -> None:
    store = subject.store
    body = _body(300_000)
    content_id = await _owned(store, body)
    pins = [await store.contents.open(content_id) for _ in range(2)]
    await commit(store, Step(place(), drop=(content_id,)))
    for _ in range(5):
        await _owned(store, _body(300_000, 1))
    assert await body_of(pins[0]) == body
    pins[0].close()
    assert await body_of(pins[1]) == body
    pins[1].close()
    try:
        await store.contents.open(content_id)
    except ContentMissing:
        return
    raise AssertionError("a dropped content was opened")


async def contents_survive_a_restart_once_they_are_owned(subject: Subject) -> None:
    body = _body(200_000)
    owned = await _owned(subject.store, body)
    dropped = await _owned(subject.store, body)
    await commit(subject.store, Step(place(), drop=(dropped,)))
    written = await subject.store.contents.write(pieces(body), len(body))
    await subject.restart()
    assert await content(subject.store, owned) == body
    assert await content(subject.store, dropped) is None
    await _adopting_fails(subject.store, written.id)
    again = await _owned(subject.store, b"again")
    assert again > max(owned, dropped)
    assert await content(subject.store, owned) == body


async def bodies_that_arrive_together_do_not_mix(subject: Subject) -> None:
    store = subject.store

    async def one(number: int) -> int:
        body = _body(1 + number * 17_011, number)
        known = len(body) if number % 3 else None
        written = await store.contents.write(pieces(body, 9_000), known)
        await commit(store, Step(place(b"%d" % number), adopt=(written.id,)))
        assert await content(store, written.id) == body
        return written.id

    ids = await asyncio.gather(*(one(number) for number in range(24)))
    assert len(set(ids)) == 24
    for number, content_id in enumerate(ids):
        assert await content(store, content_id) == _body(1 + number * 17_011, number)


async def a_damaged_content_is_never_answered(subject: Subject) -> None:
    store = subject.store
    for size_bytes in (1, 40_000, VERIFIED_BYTES_MAX):
        damaged, whole = await _owned(store, _body(size_bytes)), await _owned(store, b"whole")
        subject.damage(damaged)
        opened = await store.contents.open(damaged)
        middle = size_bytes // 2
        # A range without the flipped bit fails too, since the checksum covers the whole content.
        for offset, length in ((0, size_bytes), (middle, 1), (0, middle), (0, 0)):
            await _is_damaged(opened.read(offset, length))
            if length:
                await _is_damaged(body_of(opened, offset, length))
                await _is_damaged(_gathered(opened, offset, length))
        await _is_damaged(_gathered(opened))
        opened.close()
        assert await content(store, whole) == b"whole"


async def a_long_damaged_content_is_found_when_all_of_it_is_read(subject: Subject) -> None:
    store = subject.store
    body = _body(3 * 1024 * 1024 + 7)
    content_id = await _owned(store, body)
    opened = await store.contents.open(content_id)
    assert await _gathered(opened) == body
    opened.close()
    subject.damage(content_id)
    opened = await store.contents.open(content_id)
    await _is_damaged(_gathered(opened))
    await _is_damaged(opened.read(5, 1))
    opened.close()


async def _gathered(opened: Opened, offset: int = 0, length: int | None = None) -> bytes:
    return b"".join([data async for data in opened.chunks(offset, length)])


async def _is_damaged(reading: Awaitable[bytes]) -> None:
    try:
        await reading
    except DataDamaged:
        return
    raise AssertionError("a damaged content was answered")


CASES: Final = (
    bodies_of_every_size_come_back,
    a_part_of_a_body_comes_back,
    bytes_come_in_chunks_of_a_bounded_size,
    a_body_that_is_not_as_long_as_said_is_refused,
    several_bodies_are_written_together,
    a_body_that_is_too_long_to_be_written_with_others_is_refused,
    a_stream_that_fails_says_so_itself,
    adopting_and_dropping_happen_with_the_records,
    a_content_is_adopted_once,
    a_discarded_content_is_gone,
    a_pinned_content_outlives_its_owner,
    contents_survive_a_restart_once_they_are_owned,
    bodies_that_arrive_together_do_not_mix,
    a_damaged_content_is_never_answered,
    a_long_damaged_content_is_found_when_all_of_it_is_read,
)
