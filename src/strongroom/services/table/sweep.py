"""Dropping the entities of a deleted table.

Lives here: the walk over a generation. No new request can read here, since the table's record,
which every request checks, is gone. When a job begins, no write that saw that record is still under
way (rule 2 of sweeper.py).
"""

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.auth.request import Service
from strongroom.engines.base import Key, Partition, Position
from strongroom.services.core.background import RemovalBatch
from strongroom.services.core.place_records import is_alive
from strongroom.services.core.runner import Services
from strongroom.store.core import keys
from strongroom.store.core.records import Job

_PAGE_RECORDS: Final = 200
_START: Final = Position(b"", b"")


async def sweep_table(services: Services, removal: RemovalBatch, job: Job) -> None:
    """Remove all entities of a generation, unless its table still exists."""
    if await is_alive(services, Service.TABLE, job):
        return
    keyspace = keys.entities(job.generation)
    position: Position | None = _START
    while position is not None:
        page = await services.store.scan(keyspace, position, None, _PAGE_RECORDS)
        position = page.resume
        for face in page.faces():
            partition = Partition(keyspace, face.partition)
            await removal.add(partition, (Key(False, face.key),))
        await asyncio.sleep(0)
    await removal.commit()
