"""Dropping what a living blob gave up: retired bodies, and blocks that no list took.

Lives here: which contents nothing names any more, and when their last reader has gone. Must not
live here: whole containers (container_sweep.py), when jobs run (sweeper.py).

Why nothing is dropped that is needed: what was given up never comes back, because a list commits
only blocks of the upload in progress or of the body that it replaces, and both are guarded. So
garbage is listed first, and what is alive is looked up after that: head first, then snapshots,
since a body moves from the head to a snapshot, never back. Whoever reads a listed body registered
before looking at the head; those who did so before the garbage was listed are waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from strongroom.engines.base import ContentMissing, Item, Key, Partition, Ref
from strongroom.services.blob.blobs import read_list
from strongroom.services.core.background import Removal
from strongroom.services.core.runner import Services
from strongroom.store.blob.bodies import Readers, Reading
from strongroom.store.core import keys, records
from strongroom.store.core.records import Body, Listed, ListedBlock, Retired, Stored

_PAGE_RECORDS: Final = 1000
_STAGED_AT_ONCE: Final = 20_000


@dataclass(frozen=True, slots=True)
class Held:
    """A sweep that waits for readers: what was retired up to the stamp `horizon` may go when they
    are done; what was retired later counts as alive until its own sweep."""

    readers: frozenset[Reading]
    horizon: int

    def is_over(self) -> bool:
        """Whether all of them are done."""
        return all(reading.done for reading in self.readers)


@dataclass(frozen=True, slots=True)
class _Garbage:
    old: tuple[tuple[Key, Retired], ...]
    young: frozenset[Body]
    horizon: int


async def sweep_blob(
    services: Services, removal: Removal, partition: Partition, ended: int, held: Held | None
) -> Held | None:
    """Drop what the blob no longer needs.

    Arguments:
        ended: uploads that began at this stamp or before it, and are not in progress, have ended.
        held: what an earlier call returned.

    Returns: None when it is done; else whom to wait for before calling again.
    """
    if held is not None and not held.is_over():
        return held
    (found,) = await services.store.read([Ref(partition, keys.UPLOAD_KEY)])
    upload = records.UPLOAD.of(found)
    garbage = await _garbage(services, partition, None if held is None else held.horizon)
    has_lists = any(isinstance(body, Listed) for _, one in garbage.old for body in one.bodies)
    if held is None and has_lists:
        readers = services.held.of(Readers).snapshot(partition)
        if readers:
            return Held(readers, garbage.horizon)
    live = await _live_bodies(services, partition) | garbage.young
    until = ended + 1 if upload is None else upload.number
    await _drop_staged(services, removal, partition, until, live)
    for key, retired in garbage.old:
        await _drop_retired(services, removal, partition, key, retired, live)
    return None


async def _garbage(services: Services, partition: Partition, horizon: int | None) -> _Garbage:
    first, until = keys.retired_range()
    found: list[Item] = []
    while page := await _page(services, partition, True, first, until):
        found.extend(page)
        first = page[-1].name + b"\0"
    newest = max((keys.retired_stamp(item.name) for item in found), default=0)
    limit = newest if horizon is None else horizon
    old, young = [], set[Body]()
    for item in found:
        retired = records.RETIRED.decode(item.value)
        if keys.retired_stamp(item.name) <= limit:
            old.append((Key(True, item.name), retired))
        else:
            young.update(retired.bodies)
    return _Garbage(tuple(old), frozenset(young), limit)


async def _page(
    services: Services, partition: Partition, hidden: bool, first: bytes, until: bytes
) -> list[Item]:
    return await services.store.read_range(partition, hidden, first, until, _PAGE_RECORDS)


async def _live_bodies(services: Services, partition: Partition) -> frozenset[Body]:
    (head,) = await services.store.read([Ref(partition, keys.HEAD_KEY)])
    found: set[Body] = set()
    if head is not None:
        found.add(records.BLOB.decode(head.value).body)
    first, until = keys.snapshot_range()
    while page := await _page(services, partition, False, first, until):
        found.update(records.BLOB.decode(item.value).body for item in page)
        first = page[-1].name + b"\0"
    return frozenset(body for body in found if isinstance(body, Stored | Listed))


async def _drop_staged(
    services: Services, removal: Removal, partition: Partition, until: int, live: frozenset[Body]
) -> None:
    """Staged blocks of uploads that have ended: the records go, and the contents of those that no
    list took."""
    first, end = keys.staged_before(until)
    while True:
        found: list[Item] = []
        while len(found) < _STAGED_AT_ONCE:
            page = await _page(services, partition, True, first, end)
            if not page:
                break
            found.extend(page)
            first = page[-1].name + b"\0"
        if not found:
            return
        contents = {item.name: records.STAGED.decode(item.value).content for item in found}
        unused = await _unused(services, partition, contents.values(), live)
        for name, content in contents.items():
            drop = (content,) if content in unused else ()
            await removal.add(partition, (Key(True, name),), drop)
        await removal.commit()


async def _drop_retired(
    services: Services,
    removal: Removal,
    partition: Partition,
    key: Key,
    retired: Retired,
    live: frozenset[Body],
) -> None:
    gone, drop = [key], []
    for body in retired.bodies:
        if body in live:
            continue
        if isinstance(body, Stored):
            drop.append(body.content)
            continue
        blocks = await blocks_of(services, partition, body)
        contents = [block.content for block in blocks]
        await removal.add(partition, (), await _unused(services, partition, contents, live))
        if body.list_content is None:
            gone.append(keys.block_list(body.number))
        else:
            drop.append(body.list_content)
    # The lists last: until then they lead a sweep that begins again to what is left.
    await removal.add(partition, gone, drop)


async def _unused(
    services: Services, partition: Partition, contents: Iterable[int], live: frozenset[Body]
) -> set[int]:
    """Those of `contents` that no living body is made of."""
    unused = set(contents)
    for body in live:
        if not unused:
            break
        if isinstance(body, Listed):
            blocks = await blocks_of(services, partition, body)
            unused.difference_update(block.content for block in blocks)
        elif isinstance(body, Stored):
            unused.discard(body.content)
    return unused


async def blocks_of(
    services: Services, partition: Partition, body: Listed
) -> tuple[ListedBlock, ...]:
    """The blocks of a listed body, none when its list is gone: then they went before it."""
    try:
        return await read_list(services, partition, body)
    except ContentMissing:
        return ()
