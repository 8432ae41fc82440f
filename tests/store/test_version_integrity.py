"""The doctor's check of versions: each damage of a version's records is found, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Key, Partition, Ref, Step, Write
from strongroom.operations.blob import blob
from strongroom.services.blob.blobs import PutBlob
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import Deletion
from strongroom.store.core import keys
from tests.services import blob_calls as do
from tests.services import version_calls as ver
from tests.services.container_calls import ACCOUNT, run
from tests.services.queue_calls import problems
from tests.services.sweeps import swept

Damage = Callable[[Services, Partition, int], Awaitable[None]]


async def write(on: Services, partition: Partition, key: Key, value: bytes | None) -> None:
    step = Step(partition, (Write(key, value),))
    await on.store.update(partition, [], lambda found, stamp: Commit(None, (step,)))


async def change(on: Services, partition: Partition, key: Key, **changes: object) -> None:
    (found,) = await on.store.read([Ref(partition, key)])
    record = blob_records.BLOB.of(found)
    assert record is not None
    changed = msgspec.structs.replace(record, **changes)
    await write(on, partition, key, blob_records.BLOB.encode(changed))


async def lose_version(on: Services, partition: Partition, version: int) -> None:
    await write(on, partition, keys.version(version), None)


async def lose_place(on: Services, partition: Partition, version: int) -> None:
    await write(on, partition, keys.HEAD_KEY, None)


async def miscount(on: Services, partition: Partition, version: int) -> None:
    await change(on, partition, keys.HEAD_KEY, versions=3)


async def hold_for_nothing(on: Services, partition: Partition, version: int) -> None:
    await change(on, partition, keys.HEAD_KEY, vacant=True, versions=0)
    await write(on, partition, keys.version(version), None)
    await write(on, partition, keys.inline(version, True), None)


async def call_it_otherwise(on: Services, partition: Partition, version: int) -> None:
    await change(on, partition, keys.version(version), version=version + 1)


async def lose_bytes(on: Services, partition: Partition, version: int) -> None:
    await write(on, partition, keys.inline(version, True), None)


async def keep_without_job(on: Services, partition: Partition, version: int) -> None:
    await change(on, partition, keys.version(version), deletion=Deletion(5, 6))


async def lose_tag(on: Services, partition: Partition, version: int) -> None:
    await change(on, partition, keys.version(version), tagged=5)


STRAY = (
    "tag 'k' = 'v' of blob 'b': the blob does not have it any more, and no job removes the entry"
)
CASES: list[tuple[Damage, list[str]]] = [
    (
        lose_version,
        [
            "blob 'b': 0 versions, but its head counts 1",
            "blob 'b': inline bytes at N belong to nothing",
            STRAY,
        ],
    ),
    (lose_place, ["blob 'b': 1 versions, and no record in the head's place"]),
    (miscount, ["blob 'b': 1 versions, but its head counts 3"]),
    (
        hold_for_nothing,
        ["blob 'b': its place is held for versions, and there are none", STRAY],
    ),
    (call_it_otherwise, ["blob 'b': the version N says that it is N"]),
    (lose_bytes, ["blob 'b': the bytes of the version N are missing"]),
    (keep_without_job, ["blob 'b': something deleted is kept, and no job ends that"]),
    (lose_tag, ["blob 'b': the index of tags lacks its tag 'k'", STRAY]),
]


@pytest.mark.parametrize(
    ("damage", "expected"), CASES, ids=lambda case: getattr(case, "__name__", "")
)
def test_a_damage_of_a_version_is_found(damage: Damage, expected: list[str]) -> None:
    async def test() -> None:
        on, sweeper = await ver.versioned()
        tagged = PutBlob(tags=(("k", "v"),))
        version = (await do.run(on, blob.PUT_BLOB, "b", tagged, b"1" * 1000)).version
        await do.put(on, "b", b"2")
        await swept(on, sweeper)
        assert problems(on) == []
        place = await on.place(Service.BLOB, ACCOUNT, "photos")
        assert place is not None
        await damage(on, keys.blob(place.generation, "b"), version)
        found = [re.sub("[0-9]{18}", "N", text) for text in problems(on)]
        assert sorted(found) == sorted(expected)

    run(test)
