"""The doctor's check of references: a used store has no findings, and each damage is found."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from azure.storage.blob import BlobBlock, BlobServiceClient

from strongroom.clock import SystemClock
from strongroom.engines.base import Commit, Key, Partition, Position, Ref, Step, Write
from strongroom.engines.embedded.store import EmbeddedEngine, EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.check import Inspection
from strongroom.semantics.core import copies
from strongroom.store.blob import blob_records, tag_index
from strongroom.store.blob.bodies.appended import appended_contents
from strongroom.store.blob.bodies.empty import EMPTY
from strongroom.store.blob.bodies.listed import Listed
from strongroom.store.blob.bodies.stored import Stored
from strongroom.store.core import keys, records, tag_keys
from strongroom.store.integrity import Integrity
from strongroom.testing import InProcessServer

BLOCKS = 400
OPTIONS = EmbeddedOptions(ballast_bytes=4096, compact=False)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a data directory with every kind of record."""
    data = tmp_path_factory.mktemp("integrity") / "data"
    with InProcessServer.start(data=data, test_clock=False) as server:
        service = BlobServiceClient.from_connection_string(server.connection_string)
        box = service.create_container("box")
        box.upload_blob("within", b"tiny", tags={"a": "1", "b": "2"})
        box.upload_blob("inline", b"small" * 200, metadata={"a": "b"})
        box.upload_blob("stored", b"s" * 20_000)
        box.upload_blob("shared", b"t" * 20_000)
        box.get_blob_client("shared").create_snapshot()
        box.get_blob_client("inline").create_snapshot()
        listed = box.get_blob_client("listed")
        for number in range(BLOCKS):
            listed.stage_block(f"{number:08}", b"x")
        listed.commit_block_list([BlobBlock(f"{number:08}") for number in range(BLOCKS)])
        short = box.get_blob_client("short")
        short.stage_block("00", b"first")
        short.commit_block_list([BlobBlock("00")])
        short.stage_block("01", b"second, not committed")
        box.get_blob_client("staged").stage_block("00", b"never committed")
        log = box.get_blob_client("log")
        log.create_append_blob()
        log.append_block(b"first")
        log.append_block(b"a" * 20_000)
        log.create_snapshot()
        log.append_block(b"last")
        log.create_append_blob()
        log.append_block(b"again")
        log.append_block(b"and again")
    return data


def findings(data: Path) -> list[str]:
    with Inspection(data) as inspection:
        found = [*inspection.findings(), *Integrity(inspection).findings()]
    return [f"{finding.place}: {finding.problem}" for finding in found]


def test_a_store_that_was_used_is_whole(used: Path) -> None:
    assert findings(used) == []


def test_everything_is_counted(used: Path) -> None:
    told: list[tuple[int, int]] = []
    with Inspection(used) as inspection:
        integrity = Integrity(inspection)
        list(integrity.findings(lambda done, total: told.append((done, total))))
    counts = integrity.counts()
    assert counts["containers"] == 1
    assert counts["snapshots"] == 3
    assert counts["blobs"] == 8
    assert counts["tags"] == 2
    assert counts["contents"] == 1 + 1 + BLOCKS + 1 + 2 + 1 + 1
    assert told == sorted(told)


Damage = Callable[[EmbeddedEngine, int], Awaitable[None]]


async def _put(store: EmbeddedEngine, partition: Partition, *writes: Write, **more: object) -> None:
    adopt, drop = more.get("adopt", ()), more.get("drop", ())
    assert isinstance(adopt, tuple)
    assert isinstance(drop, tuple)
    step = Step(partition, writes, adopt, drop)
    await store.update(partition, (), lambda found, stamp: Commit(None, (step,)))


async def _head(store: EmbeddedEngine, partition: Partition) -> blob_records.BlobRecord:
    (found,) = await store.read([Ref(partition, keys.HEAD_KEY)])
    head = blob_records.BLOB.of(found)
    assert head is not None
    return head


async def _change_head(store: EmbeddedEngine, partition: Partition, **changes: object) -> None:
    changed = msgspec.structs.replace(await _head(store, partition), **changes)
    await _put(store, partition, Write(keys.HEAD_KEY, blob_records.BLOB.encode(changed)))


async def _bytes(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def lose_inline_bytes(store: EmbeddedEngine, generation: int) -> None:
    await _put(store, keys.blob(generation, "inline"), Write(keys.inline(0), None))


async def shorten_inline_bytes(store: EmbeddedEngine, generation: int) -> None:
    await _put(store, keys.blob(generation, "inline"), Write(keys.inline(0), b"small" * 199))


async def spoil_inline_bytes(store: EmbeddedEngine, generation: int) -> None:
    await _put(store, keys.blob(generation, "inline"), Write(keys.inline(0), b"smalL" * 200))


async def misstate_bytes_within(store: EmbeddedEngine, generation: int) -> None:
    await _change_head(store, keys.blob(generation, "within"), size_bytes=5)


async def leave_inline_bytes(store: EmbeddedEngine, generation: int) -> None:
    await _put(store, keys.blob(generation, "stored"), Write(keys.inline(7), b"whose?"))


async def lose_head(store: EmbeddedEngine, generation: int) -> None:
    await _put(store, keys.blob(generation, "inline"), Write(keys.HEAD_KEY, None))


async def miscount_snapshots(store: EmbeddedEngine, generation: int) -> None:
    await _change_head(store, keys.blob(generation, "shared"), snapshots=2)


async def lose_content(store: EmbeddedEngine, generation: int) -> None:
    partition = keys.blob(generation, "stored")
    body = (await _head(store, partition)).body
    assert isinstance(body, Stored)
    await _put(store, partition, drop=(body.content,))


async def lose_block(store: EmbeddedEngine, generation: int) -> None:
    partition = keys.blob(generation, "staged")
    (staged,) = await store.read_range(partition, True, keys.STAGED, keys.STAGED + b"\xff", 10)
    await _put(store, partition, drop=(blob_records.STAGED.decode(staged.value).content,))


async def forget_block(store: EmbeddedEngine, generation: int) -> None:
    partition = keys.blob(generation, "staged")
    (staged,) = await store.read_range(partition, True, keys.STAGED, keys.STAGED + b"\xff", 10)
    await _put(store, partition, Write(Key(True, staged.name), None))


async def forget_content(store: EmbeddedEngine, generation: int) -> None:
    written = await store.contents.write(_bytes(b"n" * 10_000), 10_000)
    await _put(store, keys.blob(generation, "stored"), adopt=(written.id,))


async def name_anothers_content(store: EmbeddedEngine, generation: int) -> None:
    body = (await _head(store, keys.blob(generation, "shared"))).body
    old = (await _head(store, keys.blob(generation, "stored"))).body
    assert isinstance(old, Stored)
    await _change_head(store, keys.blob(generation, "stored"), body=body)
    await _put(store, keys.blob(generation, "stored"), drop=(old.content,))


async def lose_block_list(store: EmbeddedEngine, generation: int) -> None:
    partition = keys.blob(generation, "short")
    body = (await _head(store, partition)).body
    assert isinstance(body, Listed)
    await _put(store, partition, Write(keys.block_list(body.number), None))


async def lose_long_block_list(store: EmbeddedEngine, generation: int) -> None:
    partition = keys.blob(generation, "listed")
    body = (await _head(store, partition)).body
    assert isinstance(body, Listed)
    assert body.list_content is not None
    await _put(store, partition, drop=(body.list_content,))


async def _blocks_of_log(
    store: EmbeddedEngine, generation: int
) -> tuple[Partition, list[tuple[Key, bytes]]]:
    """Return the records of the appended blocks: two of the snapshot, two of the head."""
    partition = keys.blob(generation, "log")
    first, until = keys.APPENDED, keys.APPENDED + b"\xff"
    found = await store.read_range(partition, True, first, until, 10)
    return partition, [(Key(True, item.name), item.value) for item in found]


async def lose_appended_block(store: EmbeddedEngine, generation: int) -> None:
    partition, blocks = await _blocks_of_log(store, generation)
    await _put(store, partition, Write(blocks[-2][0], None))


async def lose_content_of_appended_block(store: EmbeddedEngine, generation: int) -> None:
    partition, blocks = await _blocks_of_log(store, generation)
    (content,) = [one for key, value in blocks for one in appended_contents(key.name, value)]
    await _put(store, partition, drop=(content,))


async def spoil_appended_block(store: EmbeddedEngine, generation: int) -> None:
    partition, blocks = await _blocks_of_log(store, generation)
    key, value = blocks[-1]
    await _put(store, partition, Write(key, value.replace(b"and again", b"and Again")))


async def append_behind_the_end(store: EmbeddedEngine, generation: int) -> None:
    partition, blocks = await _blocks_of_log(store, generation)
    number = int.from_bytes(blocks[-1][0].name[1:9], "big")
    await _put(store, partition, Write(keys.appended(number, 100), blocks[-1][1]))


async def misstate_length(store: EmbeddedEngine, generation: int) -> None:
    await _change_head(store, keys.blob(generation, "listed"), size_bytes=BLOCKS + 1)


async def spoil_record(store: EmbeddedEngine, generation: int) -> None:
    await _put(store, keys.blob(generation, "stored"), Write(keys.HEAD_KEY, b"\x01nonsense"))


async def unknown_version(store: EmbeddedEngine, generation: int) -> None:
    partition = Partition(keys.containers("devstoreaccount1"), b"later")
    await _put(store, partition, Write(keys.CONTAINER_KEY, b"\x09\x90"))


async def unknown_place(store: EmbeddedEngine, generation: int) -> None:
    await _put(store, Partition(b"zz", b"z"), Write(Key(False, b"z"), b"z"))


async def forget_expiry(store: EmbeddedEngine, generation: int) -> None:
    page = await store.scan(keys.JOBS, Position(b"", b""), None, 100)
    for face in page.faces():
        if records.JOB.decode(face.value).kind is records.JobKind.EXPIRE_UPLOAD:
            await _put(store, Partition(keys.JOBS, face.partition), Write(keys.JOB_KEY, None))


async def leave_blob_of_deleted_container(store: EmbeddedEngine, generation: int) -> None:
    head = await _head(store, keys.blob(generation, "inline"))
    left = msgspec.structs.replace(head, body=EMPTY, size_bytes=0, snapshots=0)
    partition = keys.blob(generation - 1, "left")
    await _put(store, partition, Write(keys.HEAD_KEY, blob_records.BLOB.encode(left)))


async def give_up_without_job(store: EmbeddedEngine, generation: int) -> None:
    gone = blob_records.Retired((Stored(12345),))
    write = Write(keys.retired(5), blob_records.RETIRED.encode(gone))
    await _put(store, keys.blob(generation, "stored"), write)


async def copy_without_job(store: EmbeddedEngine, generation: int) -> None:
    copy = copies.started("an-id", "http://127.0.0.1/source", 1)
    await _change_head(store, keys.blob(generation, "stored"), copy=copy)


async def keep_container_without_job(store: EmbeddedEngine, generation: int) -> None:
    (found,) = await store.read([keys.container("devstoreaccount1", "box")])
    container = records.CONTAINER.of(found)
    assert container is not None
    kept = records.DeletedContainer(container, 5, 6)
    ref = keys.deleted_place(keys.container("devstoreaccount1", "box"), generation)
    await _put(store, ref.partition, Write(ref.key, records.DELETED_CONTAINER.encode(kept)))


def _entry(generation: int, value: str, token: int) -> Ref:
    return tag_keys.tag_entry(generation, "a", value, "within", token)


async def lose_tag_entry(store: EmbeddedEngine, generation: int) -> None:
    head = await _head(store, keys.blob(generation, "within"))
    lost = _entry(generation, "1", head.tagged)
    await _put(store, lost.partition, Write(lost.key, None))


async def leave_tag_entry(store: EmbeddedEngine, generation: int) -> None:
    left = _entry(generation, "1", 5)
    await _put(store, left.partition, Write(left.key, tag_index.ENTRY))


async def spoil_tag_entry(store: EmbeddedEngine, generation: int) -> None:
    left = _entry(generation, "9", 5)
    await _put(store, left.partition, Write(left.key, b"other"))


async def change_tags_behind_the_index(store: EmbeddedEngine, generation: int) -> None:
    await _change_head(store, keys.blob(generation, "within"), tags=(("a", "2"), ("b", "2")))


async def leave_tag_entry_of_deleted_container(store: EmbeddedEngine, generation: int) -> None:
    left = _entry(generation - 1, "1", 5)
    await _put(store, left.partition, Write(left.key, tag_index.ENTRY))


STRAY = (
    "tag 'a' = '1' of blob 'within': "
    "the blob does not have it any more, and no job removes the entry"
)


async def keep_blob_without_job(store: EmbeddedEngine, generation: int) -> None:
    deletion = blob_records.Deletion(5, 6)
    await _change_head(store, keys.blob(generation, "stored"), deletion=deletion)


async def keep_snapshot_without_job(store: EmbeddedEngine, generation: int) -> None:
    partition = keys.blob(generation, "shared")
    first, until = keys.snapshot_range()
    (item,) = await store.read_range(partition, False, first, until, 2)
    kept = msgspec.structs.replace(
        blob_records.BLOB.decode(item.value), deletion=blob_records.Deletion(5, 6)
    )
    await _put(store, partition, Write(Key(False, item.name), blob_records.BLOB.encode(kept)))


CASES: list[tuple[Damage, list[str]]] = [
    (lose_inline_bytes, ["blob 'inline': the bytes of the head are missing"]),
    (misstate_bytes_within, ["blob 'within': the head says 5 bytes, but has 4"]),
    (
        shorten_inline_bytes,
        [
            "blob 'inline': the bytes of the head are damaged: their checksum differs",
            "blob 'inline': the head says 1000 bytes, but has 995",
        ],
    ),
    (
        spoil_inline_bytes,
        ["blob 'inline': the bytes of the head are damaged: their checksum differs"],
    ),
    (leave_inline_bytes, ["blob 'stored': inline bytes at 7 belong to nothing"]),
    (
        lose_head,
        [
            "blob 'inline': 1 snapshots without their blob",
            "blob 'inline': inline bytes at 0 belong to nothing",
        ],
    ),
    (miscount_snapshots, ["blob 'shared': 1 snapshots, but its head counts 2"]),
    (lose_content, ["blob 'stored': its content N is missing"]),
    (lose_block, ["blob 'staged': its content N is missing"]),
    (
        forget_block,
        ["blob 'staged': 0 staged blocks, but 1 are counted", "content N: nothing refers to it"],
    ),
    (forget_content, ["content N: nothing refers to it"]),
    (name_anothers_content, ["blob 'stored': its content N is another blob's too"]),
    (
        lose_block_list,
        ["blob 'short': the bytes of the head are missing"],
    ),
    (lose_appended_block, ["blob 'log': the bytes of the head are missing"]),
    (lose_content_of_appended_block, ["blob 'log': its content N is missing"]),
    (
        spoil_appended_block,
        ["blob 'log': the bytes of the head are damaged: their checksum differs"],
    ),
    (append_behind_the_end, ["blob 'log': a block appended to body N belongs to nothing"]),
    (misstate_length, ["blob 'listed': the head says 401 bytes, but has 400"]),
    (unknown_place, ["record b'zz' b'z' b'z': no record belongs here"]),
    (
        forget_expiry,
        [
            "blob 'short': blocks are staged, and no job expires them",
            "blob 'staged': blocks are staged, and no job expires them",
        ],
    ),
    (
        leave_blob_of_deleted_container,
        ["blob 'left': its container is gone, and no job cleans up"],
    ),
    (give_up_without_job, ["blob 'stored': something was given up, and no job cleans up"]),
    (copy_without_job, ["blob 'stored': a copy is pending, and no job copies"]),
    (keep_blob_without_job, ["blob 'stored': something deleted is kept, and no job ends that"]),
    (
        keep_snapshot_without_job,
        [
            "blob 'shared': 0 snapshots, but its head counts 1",
            "blob 'shared': something deleted is kept, and no job ends that",
        ],
    ),
    (
        keep_container_without_job,
        ["deleted container 'box': it is kept, and no job ends that"],
    ),
    (lose_tag_entry, ["blob 'within': the index of tags lacks its tag 'a'"]),
    (leave_tag_entry, [STRAY]),
    (leave_tag_entry_of_deleted_container, [STRAY]),
    (
        change_tags_behind_the_index,
        ["blob 'within': the index of tags lacks its tag 'a'", STRAY],
    ),
]


@pytest.mark.parametrize(
    ("damage", "expected"), CASES, ids=lambda case: getattr(case, "__name__", "")
)
def test_a_damage_is_found_and_nothing_else(
    used: Path, tmp_path: Path, damage: Damage, expected: list[str]
) -> None:
    found = _found_after(damage, used, tmp_path)
    if damage is lose_block_list:
        # Until a sweep, the staged block that the list took still names the content.
        found = [text for text in found if text != "content N: nothing refers to it"]
    assert found == sorted(expected)


@pytest.mark.parametrize(
    "damage", [lose_long_block_list, spoil_record, unknown_version, spoil_tag_entry]
)
def test_what_cannot_be_read_is_found(used: Path, tmp_path: Path, damage: Damage) -> None:
    assert _found_after(damage, used, tmp_path)


def _found_after(damage: Damage, used: Path, tmp_path: Path) -> list[str]:
    copy = tmp_path / "copy"
    shutil.copytree(used, copy)
    asyncio.run(_apply(damage, copy))
    return sorted(re.sub(r"(content|body) \d+", r"\1 N", text) for text in findings(copy))


async def _apply(damage: Damage, data: Path) -> None:
    store = await open_store(data, SystemClock(), options=OPTIONS)
    try:
        (container,) = await store.read([keys.container("devstoreaccount1", "box")])
        found = records.CONTAINER.of(container)
        assert found is not None
        await damage(store, found.generation)
    finally:
        await store.close()
