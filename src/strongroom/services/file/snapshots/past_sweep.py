"""Reclaiming the records and bytes that only deleted share snapshots saw.

Lives here: the job that a snapshot's deletion orders, and the sweep of one file that considers
snapshots. Must not live here: when jobs run (services/sweeper.py), which states are kept
(past_states.py).

A past record never becomes visible to another snapshot, since every later snapshot has a later
stamp than its end. So a record that no living snapshot sees can be removed at any time. The bytes
of a file are swept before its past attributes, because the attributes lead to the bytes.

A deleted file is swept for those snapshots alone that see its attributes. Later ones see none of
its bytes, though their stamps are within the time of its last leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from strongroom.engines.base import Commit, Item, Key, Partition, Position, Ref, Step, Write
from strongroom.services.core.background import RemovalBatch
from strongroom.services.core.decisions import UNDECODED, Decision, Found, ReadAll, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.services.file.snapshots.readers import FileReaders
from strongroom.store.core import extents, keys, records, share_keys
from strongroom.store.core.extents import MapPlace, Mutation, Pins
from strongroom.store.core.records import Job
from strongroom.store.file import file_records
from strongroom.store.file.file_records import PastRecord
from strongroom.values import Purpose

_PAGE_RECORDS: Final = 200
_START: Final = Position(b"", b"")


class Snapshots(NamedTuple):
    """The snapshots of a share that were found.

    Attributes:
        living: their stamps.
        until: every snapshot with a smaller stamp is among them. What ended later may be seen by a
            snapshot that was taken meanwhile, so it is left to a later sweep.
    """

    living: frozenset[int]
    until: int

    def see(self, since: int, end: int) -> bool:
        """Whether a snapshot may see what was valid from `since` until `end`."""
        return end > self.until or any(since <= at < end for at in self.living)


async def found_snapshots(services: Services, generation: int) -> Snapshots:
    """Those of the share with this generation. A soft-deleted share counts too."""
    until = await services.store.now()
    await services.store.gateways.wait_for_earlier_commits(until)
    return Snapshots(await _living(services, generation), until)


async def _living(services: Services, generation: int) -> frozenset[int]:
    (named,) = await services.store.read([share_keys.share_named(generation)])
    owner = file_records.NAMED.of(named)
    if owner is None:
        return frozenset()
    ref = keys.share(owner.account, owner.share)
    present, kept = await services.store.read([ref, keys.deleted_place(ref, generation)])
    share, deleted = records.SHARE.of(present), records.DELETED_SHARE.of(kept)
    if share is not None and share.generation == generation:
        return frozenset(share.snapshots)
    return frozenset() if deleted is None else frozenset(deleted.record.snapshots)


async def record_pages(
    services: Services,
    partition: Partition,
    hidden: bool,
    first: bytes = b"",
    until: bytes | None = None,
) -> AsyncIterator[list[Item]]:
    """The records of a range in order. Other work gets a turn between two pages."""
    while True:
        page = await services.store.read_range(partition, hidden, first, until, _PAGE_RECORDS)
        yield page
        if len(page) < _PAGE_RECORDS:
            return
        first = page[-1].name + b"\0"
        await asyncio.sleep(0)


async def sweep_bytes(services: Services, partition: Partition) -> bool:
    """Sweep the bytes of a file that exists. Returns whether nothing is left to sweep."""
    generation = int.from_bytes(partition.keyspace[1:], "big")
    return await _tidy(services, partition, await found_snapshots(services, generation))


async def _tidy(services: Services, partition: Partition, snapshots: Snapshots) -> bool:
    horizon = snapshots.until
    if not services.store.gateways.is_alone:
        horizon = min(horizon, (await services.store.gateways.horizon()).stamp)
    maps = services.held.of(FileReaders)
    place = _place(partition)
    return await extents.Sweep(services.store, maps, place, snapshots.living, horizon).run()


def _place(partition: Partition) -> MapPlace:
    return MapPlace(partition, int.from_bytes(partition.name, "big"))


async def sweep_node(
    services: Services, removal: RemovalBatch, partition: Partition, ordered: int
) -> bool:
    """Remove a deleted file, or sweep an existing one, and remove past states that no snapshot
    sees. `ordered`: the stamp of the commit that ordered the job. Returns whether it is done; False
    when it must wait for readers."""
    generation, file_id = int.from_bytes(partition.keyspace[1:], "big"), _place(partition).number
    (node,) = await services.store.read([keys.file_node(generation, file_id)])
    is_dead = node is None and file_id != generation
    # The snapshots are read after the past states: a later one sees none of these.
    ends = await _validities(services, partition)
    snapshots = await found_snapshots(services, generation)
    if is_dead and snapshots.living:
        await _finish_deletion(services, partition)
        ends = await _validities(services, partition)
    if is_dead:
        seen = frozenset(
            at for at in snapshots.living if any(since <= at < end for since, end in ends.values())
        )
        if not seen:
            return await remove_file(services, removal, partition, ordered)
        snapshots = snapshots._replace(living=seen)
    if not await _tidy(services, partition, snapshots):
        return False
    gone = [Key(False, name) for name, valid in ends.items() if not snapshots.see(*valid)]
    await removal.add(partition, gone)
    await removal.commit()
    return True


async def _validities(services: Services, partition: Partition) -> dict[bytes, tuple[int, int]]:
    """Since when and until when each past state of a file's attributes was valid, by its name."""
    return {item.name: _validity(item) for item in await _past_of(services, partition)}


async def _past_of(services: Services, partition: Partition) -> list[Item]:
    """All past attributes of a file: at most one for each snapshot that ever existed."""
    pages = record_pages(services, partition, False, *share_keys.past_attributes_range())
    return [item async for page in pages for item in page]


def _validity(item: Item) -> tuple[int, int]:
    """Since when and until when past attributes were valid."""
    end = share_keys.past_of_attributes(item.name)
    assert end is not None, "the range holds past attributes only"
    return file_records.PAST.decode(item.value).since, end


async def _finish_deletion(services: Services, partition: Partition) -> None:
    """Finish the deletion of a file: free its present bytes, but for those that snapshots see.

    If the deletion was interrupted before the attributes became past ones, they become past now.
    The time of the deletion is not known then, so every snapshot up to now counts as seeing them.
    """
    place = _place(partition)
    generation = int.from_bytes(partition.keyspace[1:], "big")
    mutation = await extents.end(services.store, place).prepare()
    attributes = Ref(partition, keys.FILE_KEY)
    first = keys.map_leaf(place.number, 0).name
    last = keys.map_leaf(place.number, (1 << 32) - 1).name + b"\0"
    leaves = await services.store.read_range(partition, True, first, last, 1)
    if not leaves and await services.store.read([attributes]) == [None]:
        return
    reads = Reads()
    decision = _FinishDeletion(
        partition,
        reads.refs,
        Purpose.FREEING,
        mutation,
        node=reads.add(keys.file_node(generation, place.number), UNDECODED),
        attributes=reads.add(attributes, UNDECODED),
        leaves=reads.add_all(mutation.reads, UNDECODED),
    )
    with services.held.of(FileReaders).mutating(partition):
        await services.commit(decision)


class _FinishDeletion(Decision[None], frozen=True):
    mutation: Mutation
    node: ReadOne[bytes]
    attributes: ReadOne[bytes]
    leaves: ReadAll[bytes]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        if found[self.node] is not None:
            return Commit(None)
        change = self.mutation.decide(found.records(self.leaves), stamp, Pins(stamp - 1))
        writes, attributes = change.writes, found.record(self.attributes)
        if attributes is not None:
            value = file_records.PAST.encode(PastRecord(attributes.version, attributes.value))
            past = Write(share_keys.past_attributes(stamp), value)
            writes = (*writes, past, Write(keys.FILE_KEY, None))
        return Commit(None, (Step(self.partition, writes, change.adopt, change.drop),))


async def remove_file(
    services: Services, removal: RemovalBatch, partition: Partition, dead_since: int
) -> bool:
    """Remove all records of a partition that has no name, and that no snapshot sees. Returns
    whether it is done; False when it must wait for readers."""
    maps = services.held.of(FileReaders)
    horizon = await services.store.gateways.horizon()
    if maps.positions(partition) != frozenset() or horizon.stamp <= dead_since:
        return False
    async for page in record_pages(services, partition, True):
        for item in page:
            drop = extents.contents_of(item.name, item.value)
            await removal.add(partition, (Key(True, item.name),), drop)
    past = await _past_of(services, partition)
    await removal.add(partition, [Key(False, item.name) for item in past])
    await removal.add(partition, (keys.FILE_KEY,))
    await removal.commit()
    return True


async def sweep_snapshot(services: Services, removal: RemovalBatch, job: Job, deleted: int) -> bool:
    """Remove what no snapshot of a share sees any more, after one was deleted at this stamp.
    Returns whether it is done; False when something is being read."""
    is_done = True
    position: Position | None = _START
    swept: Partition | None = None
    keyspace = keys.files(job.generation)
    while position is not None:
        page = await services.store.scan(keyspace, position, None, _PAGE_RECORDS)
        position = page.resume
        for face in page.faces():
            partition = Partition(keyspace, face.partition)
            if share_keys.past_of_attributes(face.key) is not None and partition != swept:
                swept = partition
                is_done &= await sweep_node(services, removal, partition, deleted)
        await asyncio.sleep(0)
    await _remove_past_names(services, removal, job.generation)
    return is_done


async def _remove_past_names(services: Services, removal: RemovalBatch, generation: int) -> None:
    partition = keys.file_names(generation)
    snapshots = await found_snapshots(services, generation)
    async for page in record_pages(services, partition, True, *share_keys.past_names(b"", None)):
        gone = [Key(True, item.name) for item in page if not snapshots.see(*_name_validity(item))]
        await removal.add(partition, gone)
    await removal.commit()


def _name_validity(item: Item) -> tuple[int, int]:
    """Since when and until when a past name was valid."""
    found = share_keys.past_of_name(item.name)
    assert found is not None, "the range holds past names only"
    return file_records.PAST.decode(item.value).since, found[1]
