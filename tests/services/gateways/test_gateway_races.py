"""Many clients at one blob, over two gateways of one store: versions, and tags with conditions."""

from __future__ import annotations

import asyncio

from strongroom.account_switches import Switches
from strongroom.errors.blob import BLOB_NOT_FOUND
from strongroom.errors.core import CONDITION_NOT_MET, StorageError
from strongroom.operations.blob import blob, tag
from strongroom.semantics.core.conditions import Conditions
from strongroom.services.blob import blobs
from strongroom.services.blob.tags.tagging import SetTags
from strongroom.services.core.runner import Services
from tests.services import blob_calls as do
from tests.services import version_calls as ver
from tests.services.container_calls import create, run
from tests.services.gateways.test_two_gateways import pair

CLIENTS = 32
TURNS = 4


def test_each_acknowledged_write_is_one_version() -> None:
    """B-VER-24: with its own id and its own content; the last id is the current one."""

    async def test() -> None:
        both = pair()
        for on in both:
            ver.switch(on, True)
        await create(both[0])
        written: dict[int, bytes] = {}

        async def client(number: int) -> None:
            for turn in range(TURNS):
                on = both[(number + turn) % 2]
                # Bodies in the record, in a record beside it, and in contents.
                content = f"{number}.{turn}".encode() * (1, 200, 3000)[number % 3]
                version = await ver.put(on, "b", content)
                assert version not in written
                written[version] = content
                if number % 8 == 0:
                    await do.metadata(on, "b", f"{number}.{turn}")

        await asyncio.gather(*map(client, range(CLIENTS)))
        for on in both:
            found = await ver.ids(on, "b")
            assert sorted(found) == found
            assert set(written) <= set(found)
            assert len(found) == (CLIENTS + CLIENTS // 8) * TURNS
            for version, content in written.items():
                assert await ver.read(on, "b", version) == content
            current = await do.run(on, blob.GET_BLOB_PROPERTIES, "b", None)
            assert current.blob.version == found[-1]

    run(test)


def test_one_of_many_deletions_of_a_version_finds_it() -> None:
    """B-VER-08: over both gateways each version is deleted once, and the blob remains."""

    async def test() -> None:
        both = pair()
        for on in both:
            ver.switch(on, True)
        await create(both[0])
        old = [await ver.put(both[0], "b", b"%d" % number) for number in range(8)]
        await ver.put(both[1], "b", b"current")

        async def client(number: int) -> list[int]:
            gone = []
            for version in old:
                try:
                    await ver.delete(both[number % 2], "b", version)
                    gone.append(version)
                except StorageError as error:
                    if error.row is not BLOB_NOT_FOUND:
                        raise
            return gone

        deleted = await asyncio.gather(*map(client, range(CLIENTS)))
        assert sorted(version for gone in deleted for version in gone) == sorted(old)
        for on in both:
            assert len(await ver.ids(on, "b")) == 1
            assert await do.read(on, "b") == b"current"

    run(test)


async def _swap(on: Services, before: int, after: int) -> bool:
    """Set the tag `turn` if it has an expected value. Return whether it had."""
    given = SetTags((("turn", str(after)),))
    conditions = Conditions(if_tags=f"\"turn\" = '{before}'")
    try:
        await do.run(on, tag.SET_BLOB_TAGS, "b", given, conditions=conditions)
    except StorageError as error:
        if error.row is not CONDITION_NOT_MET:
            raise
        return False
    return True


def test_tags_are_swapped_by_one_client_at_a_time() -> None:
    """B-TAG-17: of all clients that set tags under this condition, one succeeds."""

    async def test() -> None:
        both = pair()
        for on in both:
            on.switches = lambda account: Switches()
        await create(both[0])
        given = blobs.PutBlob(tags=(("turn", "0"),))
        await do.run(both[0], blob.PUT_BLOB, "b", given, b"x")
        for turn in range(TURNS):
            swaps = [_swap(both[number % 2], turn, turn + 1) for number in range(CLIENTS)]
            assert sum(await asyncio.gather(*swaps)) == 1
        for on in both:
            found = await do.run(on, tag.GET_BLOB_TAGS, "b", None)
            assert found.blob.tags == (("turn", str(TURNS)),)

    run(test)
