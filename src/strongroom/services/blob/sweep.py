"""Garbage collection in a living blob: retired bodies, and staged blocks that were not committed.

Lives here: which contents are unreferenced, and when their last reader has finished.

Nothing that is needed is dropped, since what was given up never comes back. A list commits only
blocks of the upload in progress or of the body that it replaces, and both are guarded. So garbage
is listed first, and living bodies are read after that. The head is read first, then snapshots and
versions, since a body moves from the head to one of these, never back. A reader of a body in parts
registers before it reads the head. The sweep waits for readers of this process that registered
before the garbage was listed. It waits for other gateways until all of them know that it was
retired. Contents that a reader there has named are kept until it releases them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from strongroom.engines.base import Item, Key, Partition, Ref
from strongroom.services.core.background import RemovalBatch
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records, tag_index
from strongroom.store.blob.blob_records import Retired
from strongroom.store.blob.bodies.body import Body, BodyPlace, BodySweep, ReadersActive, unused
from strongroom.store.blob.bodies.kinds import hidden_kind
from strongroom.store.blob.bodies.readers import Readers, Reading
from strongroom.store.core import keys
from strongroom.store.core.records import Job

_PAGE_RECORDS: Final = 1000
_STAGED_AT_ONCE: Final = 20_000


class WaitingSweep(msgspec.Struct, frozen=True):
    """A sweep that waits for readers, of this process or of other gateways.

    Garbage retired up to the stamp `until` may be dropped when they are done. Garbage that was
    retired later counts as alive until its own sweep.
    """

    readers: frozenset[Reading]
    until: int

    def is_over(self) -> bool:
        """Return whether the readers of this process are done."""
        return all(reading.done for reading in self.readers)


class _Garbage(msgspec.Struct, frozen=True):
    old: tuple[tuple[Key, Retired], ...]
    young: frozenset[Body]
    until: int


class SparingRemoval:
    """Removes for a sweep, except the contents `named` that readers of other gateways use.
    `has_spared`: something was left to them."""

    def __init__(self, removal: RemovalBatch, named: frozenset[int] = frozenset()) -> None:
        self._removal = removal
        self._named = named
        self._spares = False
        self.has_spared = False

    def begin(self) -> None:
        """Begin a part that refers to nothing that was spared before."""
        self._spares = False

    def spare(self) -> None:
        """Treat the part as spared, because a reader of this process uses it. Its records stay."""
        self._spares = self.has_spared = True

    async def add(
        self, partition: Partition, record_keys: Iterable[Key] = (), contents: Iterable[int] = ()
    ) -> None:
        """Once a content was spared since `begin`, all later records stay.

        All that they refer to stays with them: the next sweep finds it through them.
        """
        dropped = set(contents)
        if dropped & self._named:
            self._spares = self.has_spared = True
        if not (self._spares and record_keys):
            await self._removal.add(partition, record_keys, dropped - self._named)


async def sweep_blob(
    services: Services,
    removal: RemovalBatch,
    partition: Partition,
    ended: int,
    waiting: WaitingSweep | None,
) -> WaitingSweep | None:
    """Drop the records and contents that the blob no longer needs.

    Arguments:
        ended: uploads that began at this stamp or before it, and are not in progress, have ended.
        waiting: what an earlier call returned.

    Returns: None when it is done; else the sweep to pass to the next call, once its readers are
        done.
    """
    if waiting is not None and not waiting.is_over():
        return waiting
    place = BodyPlace(services.store, partition)
    readers = services.held.of(Readers)
    (record,) = await services.store.read([Ref(partition, keys.UPLOAD_KEY)])
    upload = blob_records.UPLOAD.of(record)
    garbage = await _garbage(place, None if waiting is None else waiting.until)
    sparing = SparingRemoval(removal)
    horizon = await services.store.gateways.horizon()
    if any(body.is_in_parts for _, one in garbage.old for body in one.bodies):
        active = readers.snapshot(partition)
        if waiting is None and active:
            return WaitingSweep(active, garbage.until)
        if horizon.stamp <= garbage.until:
            return WaitingSweep(frozenset(), garbage.until)
        sparing = SparingRemoval(removal, horizon.named)
    live = await _named_bodies(place, garbage.until)
    until = ended + 1 if upload is None else upload.number
    await _drop_staged(place, removal, sparing, until, live)
    sweep = BodySweep(place, live, readers.maps, horizon.stamp, sparing)
    for key, retired in garbage.old:
        await _drop_retired(sweep, sparing, key, retired)
    for body in live:
        try:
            await body.sweep_leftovers(sweep)
        except ReadersActive:
            sparing.spare()
    if not live:
        await _drop_maps(place, removal)
    return WaitingSweep(frozenset(), garbage.until) if sparing.has_spared else None


async def _drop_maps(place: BodyPlace, removal: RemovalBatch) -> None:
    """Drop the rest of page maps in a partition without bodies.

    A sweep of the container may have dropped the bodies while a sweep of the blob was writing. A
    map is only written while its body exists, so a map that was found before the check is garbage.
    """
    items: list[Item] = []
    for first, until in keys.map_ranges():
        while page := await _page(place, True, first, until):
            items.extend(page)
            first = page[-1].name + b"\0"
    if not items or await _live_bodies(place) or (await _garbage(place, None)).old:
        return
    for item in items:
        contents = hidden_kind(item.name).contents(item.name, item.value)
        await removal.add(place.partition, (Key(True, item.name),), contents)
    await removal.commit()


async def sweep_head_body(services: Services, partition: Partition) -> bool:
    """Do at once the work that changes of the blob's body have left to a sweep.

    Return False when readers keep it from being finished.
    """
    place, maps = BodyPlace(services.store, partition), services.held.of(Readers).maps
    horizon = await services.store.gateways.horizon()
    garbage = await _garbage(place, None)
    retired = {body for _, one in garbage.old for body in one.bodies}
    live = await _named_bodies(place, garbage.until) | retired
    sweep = BodySweep(place, live, maps, horizon.stamp, SparingRemoval(RemovalBatch(services, 0.0)))
    try:
        for body in live - retired:
            await body.sweep_leftovers(sweep)
    except ReadersActive:
        return False
    return True


async def _garbage(place: BodyPlace, horizon: int | None) -> _Garbage:
    first, until = keys.retired_range()
    items: list[Item] = []
    while page := await _page(place, True, first, until):
        items.extend(page)
        first = page[-1].name + b"\0"
    newest = max((keys.retired_stamp(item.name) for item in items), default=0)
    limit = newest if horizon is None else horizon
    old, young = [], set[Body]()
    for item in items:
        retired = blob_records.RETIRED.decode(item.value)
        if keys.retired_stamp(item.name) <= limit:
            old.append((Key(True, item.name), retired))
        else:
            young.update(retired.bodies)
    return _Garbage(tuple(old), frozenset(young), limit)


async def _page(place: BodyPlace, hidden: bool, first: bytes, until: bytes) -> list[Item]:
    return await place.store.read_range(place.partition, hidden, first, until, _PAGE_RECORDS)


async def _named_bodies(place: BodyPlace, until: int) -> frozenset[Body]:
    """Return the bodies that are live, and those that were retired after the stamp `until`.

    The retired ones are read last: a body that is replaced meanwhile is among them.
    """
    live = await _live_bodies(place)
    return live | (await _garbage(place, until)).young


async def _live_bodies(place: BodyPlace) -> frozenset[Body]:
    (head,) = await place.store.read([Ref(place.partition, keys.HEAD_KEY)])
    bodies: set[Body] = set()
    if head is not None:
        bodies.add(blob_records.BLOB.decode(head.value).body)
    for hidden, (first, until) in ((False, keys.snapshot_range()), (True, keys.version_range())):
        while page := await _page(place, hidden, first, until):
            bodies.update(blob_records.BLOB.decode(item.value).body for item in page)
            first = page[-1].name + b"\0"
    return frozenset(body for body in bodies if body.is_shared)


async def _drop_staged(
    place: BodyPlace,
    removal: RemovalBatch,
    sparing: SparingRemoval,
    until: int,
    live: frozenset[Body],
) -> None:
    """Drop staged blocks of ended uploads: the records, and the contents that no list committed."""
    first, end = keys.staged_before(until)
    while True:
        items: list[Item] = []
        while len(items) < _STAGED_AT_ONCE:
            page = await _page(place, True, first, end)
            if not page:
                break
            items.extend(page)
            first = page[-1].name + b"\0"
        if not items:
            return
        contents = {item.name: blob_records.STAGED.decode(item.value).content for item in items}
        left = await unused(place, contents.values(), live)
        for name, content in contents.items():
            drop = (content,) if content in left else ()
            sparing.begin()
            await sparing.add(place.partition, (Key(True, name),), drop)
        await removal.commit()


async def _drop_retired(
    sweep: BodySweep, sparing: SparingRemoval, key: Key, retired: Retired
) -> None:
    gone, drop = [key], list[int]()
    sparing.begin()
    for body in retired.bodies:
        if body in sweep.live:
            continue
        try:
            named = await body.sweep_retired(sweep)
        except ReadersActive:
            sparing.spare()
            continue
        gone += named.keys
        drop += named.contents
    await sparing.add(sweep.place.partition, gone, drop)


async def sweep_tags(services: Services, removal: RemovalBatch, job: Job) -> None:
    """Remove the entries of the tag index that a commit has left over, if there are any.

    The commit that ordered the job has happened or never will. So an entry that is not valid now
    never will be.
    """
    partition = keys.blob(job.generation, job.blob)
    named = sorted({one.version for one in tag_index.named(job)})
    places = [keys.version(one) if one else keys.HEAD_KEY for one in named]
    read = await services.store.read([Ref(partition, key) for key in places])
    found = {one: blob_records.BLOB.of(record) for one, record in zip(named, read, strict=True)}
    for partition, key in tag_index.stale_entries(job, found):
        await removal.add(partition, (key,))
    await removal.commit()
