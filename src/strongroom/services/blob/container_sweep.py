"""Dropping everything that a deleted container held.

Lives here: the walk over a generation's blobs, hidden records before the face that leads to them.
Must not live here: when it runs (sweeper.py).

No request can begin to read here: the container's record, which every one looks at, is gone. A
partition without a face record holds at most what a job of its own is about to sweep.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.engines.base import Face, Item, Key, Partition, Position
from strongroom.services.blob.changes import upload_expiry
from strongroom.services.blob.sweep import blocks_of
from strongroom.services.core.background import Removal
from strongroom.services.core.runner import Services
from strongroom.store.blob.bodies import Readers
from strongroom.store.core import keys, records
from strongroom.store.core.records import Body, Listed, Stored

_PAGE_RECORDS: Final = 200
_START: Final = Position(b"", b"")


async def sweep_container(services: Services, removal: Removal, generation: int) -> bool:
    """Drop all blobs of a generation but those that are being read.

    Returns: whether nothing is left.
    """
    found = True
    while found:
        found, skipped = await _pass(services, removal, generation)
        await removal.commit()
        if skipped:
            return False
    return True


async def _pass(services: Services, removal: Removal, generation: int) -> tuple[bool, bool]:
    """One walk: whether it met anything, and whether it left anything for its readers."""
    keyspace = keys.blobs(generation)
    met = skipped = False
    position: Position | None = _START
    current: Partition | None = None
    busy = False
    while position is not None:
        page = await services.store.scan(keyspace, position, None, _PAGE_RECORDS)
        position = page.resume
        for face in page.faces():
            met = True
            partition = Partition(keyspace, face.partition)
            if partition != current:
                current = partition
                busy = bool(services.held.of(Readers).snapshot(partition))
                if not busy:
                    await _drop_hidden(services, removal, partition)
            if busy:
                skipped = True
            else:
                await _drop_face(services, removal, partition, face)
        await asyncio.sleep(0)
    return met, skipped


async def _drop_face(
    services: Services, removal: Removal, partition: Partition, face: Face
) -> None:
    drop = await _contents(services, removal, partition, records.BLOB.decode(face.value).body)
    await removal.add(partition, (Key(False, face.key),), drop)


async def _drop_hidden(services: Services, removal: Removal, partition: Partition) -> None:
    first = b""
    while True:
        page = await services.store.read_range(partition, True, first, None, _PAGE_RECORDS)
        for item in page:
            await _drop_item(services, removal, partition, item)
        if len(page) < _PAGE_RECORDS:
            return
        first = page[-1].name + b"\0"


async def _drop_item(
    services: Services, removal: Removal, partition: Partition, item: Item
) -> None:
    kind, drop = item.name[:1], list[int]()
    if kind == keys.STAGED:
        drop.append(records.STAGED.decode(item.value).content)
    elif kind == keys.BLOCK_LIST:
        blocks = records.BLOCK_LIST.decode(item.value)
        drop.extend({block.content for block in blocks})
    elif kind == keys.RETIRED:
        for body in records.RETIRED.decode(item.value).bodies:
            drop.extend(await _contents(services, removal, partition, body))
    elif kind == keys.UPLOAD_KEY.name:
        expiry = upload_expiry(records.UPLOAD.decode(item.value).number)
        await removal.add(expiry.partition, (expiry.key,))
    await removal.add(partition, (Key(True, item.name),), drop)


async def _contents(
    services: Services, removal: Removal, partition: Partition, body: Body
) -> list[int]:
    """The content that goes with the record that names a body; what that content leads to is let go
    before. Short block lists lie in hidden records of their own."""
    if isinstance(body, Stored):
        return [body.content]
    if not isinstance(body, Listed) or body.list_content is None:
        return []
    blocks = await blocks_of(services, partition, body)
    await removal.add(partition, (), {block.content for block in blocks})
    return [body.list_content]
