"""The doctor's check of shares: each damage is found, and an undamaged share has no findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from strongroom.engines.base import Key, Ref
from strongroom.operations.file import share
from strongroom.services.core.runner import Services
from strongroom.services.file.shares.share_snapshots import SnapshotShare
from strongroom.services.sweeper import Sweeper
from strongroom.store.core import keys, records, share_keys
from strongroom.store.file import file_records
from strongroom.store.tree import tree_records
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services.service_engine import ServiceEngine


class Damaged:
    """A share with a directory and some files, two of which have a past state in a snapshot.

    Attributes:
        generation: of the share.
        ids: of its directories and files, by their paths.
    """

    def __init__(self, on: Services, generation: int, ids: dict[str, int]) -> None:
        assert isinstance(on.store, ServiceEngine)
        self._store = on.store
        self.generation = generation
        self.ids = ids

    def put(self, ref: Ref, value: bytes | None) -> None:
        """Write a record in its place; None removes it."""
        self._store.put_record(ref, value)

    def drop(self, *refs: Ref) -> None:
        for ref in refs:
            self.put(ref, None)

    def change(self, ref: Ref, codec: Any, **fields: Any) -> None:
        found = self._store.get_record(ref)
        assert found is not None
        self.put(ref, codec.encode(msgspec.structs.replace(codec.decode(found.value), **fields)))

    def node(self, path: str) -> Ref:
        return keys.file_node(self.generation, self.ids[path])

    def attributes(self, path: str) -> Ref:
        return keys.file_attributes(self.generation, self.ids[path])

    def name(self, path: str) -> Ref:
        parent, _, name = path.rpartition("/")
        at = self.ids[parent] if parent else self.generation
        return keys.file_name(self.generation, at, name.upper())

    @property
    def share(self) -> Ref:
        return keys.share(given.ACCOUNT, do.SHARE)


async def made() -> tuple[Services, Damaged]:
    on = await do.services()
    await do.mkdir(on, "d")
    await do.write(on, "d/a", b"a" * 9000)
    await do.write(on, "b", b"b" * 9000)
    await do.write(on, "seen", b"s" * 9000)
    taken = await do.run(on, share.SNAPSHOT_SHARE, "", SnapshotShare())
    await do.put(on, "b", 0, b"c" * 9000)
    await do.write(on, "gone", b"g" * 9000)
    await do.delete(on, "gone")
    await do.delete(on, "seen")
    await do.write(on, "old", b"o" * 9000)
    await Sweeper(on).run_once()
    assert do.problems(on) == []
    assert taken.snapshot
    ids = {path: (await do.look(on, path)).where.id for path in ("d/a", "b", "old")}
    ids["d"] = (await do.look_at_directory(on, "d")).where.id
    (found,) = await on.store.read([keys.share(given.ACCOUNT, do.SHARE)])
    assert found is not None
    return on, Damaged(on, records.SHARE.decode(found.value).generation, ids)


def _moved_bytes(on: Damaged) -> None:
    """Move the bytes of one file to another."""
    one, other = on.attributes("b").partition, on.attributes("old").partition
    leaf = keys.map_leaf(on.ids["old"], 0)
    found = on._store.get_record(Ref(other, leaf))
    assert found is not None
    on.put(Ref(one, leaf), found.value)


def _without_leaf(on: Damaged, path: str) -> None:
    on.put(Ref(on.attributes(path).partition, keys.map_leaf(on.ids[path], 0)), None)


DAMAGES: dict[str, tuple[Callable[[Damaged], object], str]] = {
    "a name without a node": (lambda on: on.drop(on.node("b")), "names do not agree"),
    "a node without a name": (lambda on: on.drop(on.name("b")), "names do not agree"),
    "a name that leads elsewhere": (
        lambda on: on.change(on.name("b"), tree_records.NAME, id=on.ids["old"]),
        "names do not agree",
    ),
    "a directory that is gone": (
        lambda on: on.drop(on.name("d"), on.node("d")),
        "do not count the names below them",
    ),
    "a directory that counts wrong": (
        lambda on: on.change(on.node("d"), tree_records.NODE, children=2),
        "do not count the names below them",
    ),
    "a usage that counts wrong": (
        lambda on: on.change(
            share_keys.share_usage(on.generation), file_records.USAGE, size_bytes=1
        ),
        "usage is not that of its files",
    ),
    "attributes that are missing": (
        lambda on: on.put(on.attributes("old"), None),
        "attributes are missing",
    ),
    "attributes of another kind": (
        lambda on: on.change(on.attributes("old"), file_records.FILE, is_directory=True),
        "of two kinds",
    ),
    "a dead file that nobody sweeps": (
        lambda on: on.drop(on.name("old"), on.node("old")),
        "no name leads to it, and no job cleans up",
    ),
    "bytes behind the end of a file": (
        lambda on: on.change(on.attributes("old"), file_records.FILE, size_bytes=10),
        "it has bytes up to 9000, but the content ends at 10",
    ),
    "bytes of another file": (_moved_bytes, "are not this file's"),
    "bytes that nobody reads any more": (
        lambda on: _without_leaf(on, "old"),
        "nothing refers to it",
    ),
    "a snapshot that the share does not name": (
        lambda on: on.change(on.share, records.SHARE, snapshots=()),
        "snapshots are not those that its record names",
    ),
    "a past state that no snapshot sees": (
        lambda on: on.change(on.share, records.SHARE, snapshots=()),
        "something was given up, and no job cleans up",
    ),
    "a past name that no snapshot sees": (
        lambda on: on.change(on.share, records.SHARE, snapshots=()),
        "keeps names that no snapshot sees, and no job cleans up",
    ),
    "a share that is gone": (
        lambda on: on.put(on.share, None),
        "its share is gone, and no job cleans up",
    ),
    "a record that belongs nowhere": (
        lambda on: on.put(Ref(on.attributes("b").partition, Key(False, b"?")), b"?"),
        "no record belongs here",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_shows(damage: str) -> None:
    hurt, said = DAMAGES[damage]

    async def scenario() -> None:
        on, damaged = await made()
        hurt(damaged)
        problems = do.problems(on)
        assert problems
        assert any(said in one for one in problems), problems

    given.run(scenario)


def test_what_a_job_will_remove_is_no_damage() -> None:
    async def scenario() -> None:
        on = await do.services()
        await do.write(on, "a", b"a" * 9000)
        await do.delete(on, "a")
        assert do.problems(on) == []
        assert isinstance(on.store, ServiceEngine)
        jobs = [ref for ref, _ in on.store.records() if ref.partition.keyspace == keys.JOBS]
        assert jobs
        for ref in jobs:
            on.store.put_record(ref, None)
        assert any("no job cleans up" in one for one in do.problems(on))

    given.run(scenario)
