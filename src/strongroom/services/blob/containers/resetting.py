"""How a reset removes a container, and what stops it: a legal hold, or a locked policy in force.

Lives here: the steps of that commit, and the search for protected blobs.

A commit cannot read all blobs of a container. So the reset marks the container first, looks at its
blobs, and removes it only if the mark is still there. A request that protects a blob removes the
mark before (deleting.py).
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.account_switches import Switches
from strongroom.engines.base import Commit, Partition, Position, Step, Write
from strongroom.services.blob.containers.containers import KEPT_CONTAINERS
from strongroom.services.core import resetting
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.resetting import (
    FoundPlace,
    PlaceRemoval,
    ProtectedMeanwhile,
    ResetRefused,
    ResetRight,
)
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.core import keys, records
from strongroom.store.core.records import ContainerRecord
from strongroom.values import Purpose

_PAGE_RECORDS: Final = 500


def removal_of(place: FoundPlace, stamp: int) -> PlaceRemoval:
    return resetting.removal_of(KEPT_CONTAINERS, place, stamp)


def _container(place: FoundPlace) -> ContainerRecord:
    container: ContainerRecord = place.record(KEPT_CONTAINERS)
    return container


def needs_mark(place: FoundPlace, switches: Switches) -> bool:
    """Return whether blobs of the container can be protected while the reset looks at them."""
    return switches.immutability and place.kept(KEPT_CONTAINERS) is None


def check(place: FoundPlace, switches: Switches, mark: int) -> None:
    """Check that a container has no hold and no locked policy of its own, and still has its mark if
    it needs one."""
    check_container(place.name, switches)
    if needs_mark(place, switches) and (not mark or _container(place).deleting != mark):
        raise ProtectedMeanwhile


def check_container(name: str, switches: Switches) -> None:
    """Check the protection that a container has as a whole. `name` is account/container."""
    protection = switches.containers.get(name.partition("/")[2])
    if protection is not None and (protection.holds or protection.locked):
        what = "a legal hold" if protection.holds else "a locked policy"
        raise ResetRefused(f"The container {name} has {what}, so this store is not reset.")


async def check_blobs(services: Services, place: FoundPlace, now: int) -> None:
    """Check that no blob of a container is protected, nor a snapshot or version of one."""
    keyspace = keys.blobs(_container(place).generation)
    position: Position | None = Position(b"", b"")
    while position is not None:
        page = await services.store.scan(keyspace, position, None, _PAGE_RECORDS)
        position = page.resume
        for face in page.faces():
            partition = Partition(keyspace, face.partition)
            head = blob_records.BLOB.decode(face.value)
            states = [head]
            if head.versions:
                states += await _versions(services, partition)
            if any(_is_protected(one, now) for one in states):
                blob = face.partition.decode("utf-8", "replace")
                raise ResetRefused(
                    f"The blob {place.name}/{blob} has a legal hold or a locked policy, so this "
                    "store is not reset."
                )


def _is_protected(state: BlobRecord, now: int) -> bool:
    protection = state.immutability
    if protection is None:
        return False
    return protection.hold or (protection.locked and protection.until > now)


async def _versions(services: Services, partition: Partition) -> list[BlobRecord]:
    found: list[BlobRecord] = []
    first, until = keys.version_range()
    while True:
        page = await services.store.read_range(partition, True, first, until, _PAGE_RECORDS)
        found += [blob_records.BLOB.decode(item.value) for item in page]
        if len(page) < _PAGE_RECORDS:
            return found
        first = page[-1].name + b"\0"


async def set_mark(services: Services, place: FoundPlace, right: ResetRight) -> int:
    """Mark a container, so that a request which protects a blob of it is noticed. Return the mark;
    0 if the container is gone."""
    ref, reads = keys.container(*place.name.split("/")), Reads()
    there, generation = reads.add(ref, records.CONTAINER), _container(place).generation
    return await services.commit(
        _Mark(ref.partition, reads.refs, Purpose.FREEING, there, right, generation)
    )


class _Mark(Decision[int], frozen=True):
    """Set the mark of a deletion, unless the container is another by now. A mark that is there
    already is replaced, so whoever has set it looks at the blobs again."""

    place: ReadOne[ContainerRecord]
    right: ResetRight
    generation: int

    def decide(self, found: Found, stamp: int) -> Commit[int]:
        self.right.require()
        container = found[self.place]
        if container is None or container.generation != self.generation:
            return Commit(0)
        marked = msgspec.structs.replace(container, deleting=stamp)
        write = Write(self.place.ref.key, records.CONTAINER.encode(marked))
        return Commit(stamp, (Step(self.partition, (write,)),))
