"""Engines that break one rule of chains each, and the cases of the suite that detect it.

Lives here: mutants of the memory engine's `follow`. Must not live here: cases, other mutants
(engine_mutants.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from strongroom.engines.base import Partition, Record, Ref
from strongroom.engines.links import Links
from strongroom.engines.memory import MemoryEngine
from strongroom.testing.contract import chains

Chain = list[tuple[Ref, Record | None]]


class OneRecordATurn(MemoryEngine):
    """Each record is read at a later time than the one before."""

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> Chain:
        found: Chain = []
        at: bytes | None = first
        for name in names:
            if at is None:
                break
            found += await super().follow(partition, links, at, [name])
            record = found[-1][1]
            at = None if record is None else links.next_id(record.value)
            await asyncio.sleep(0)
        return found


class OtherLinks(MemoryEngine):
    """A part of the layout is ignored."""

    def ignored(self, links: Links) -> dict[str, Any]:
        raise NotImplementedError

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> Chain:
        other = msgspec.structs.replace(links, **self.ignored(links))
        return await super().follow(partition, other, first, names)


class ThroughLeaves(OtherLinks):
    """A record leads on whatever its last bytes are."""

    def ignored(self, links: Links) -> dict[str, Any]:
        return {"tail": b""}


class _AnyHead(Links, frozen=True):
    """Compares the last bytes only."""

    def next_id(self, value: bytes) -> bytes | None:
        begin = len(self.head)
        return super().next_id(self.head + value[begin:])


class ThroughOthers(MemoryEngine):
    """A record leads on whatever its first bytes are."""

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> Chain:
        other = _AnyHead(links.hidden, links.head, links.id_bytes, links.tail)
        return await super().follow(partition, other, first, names)


class FacesOnly(OtherLinks):
    """The class of the keys is ignored."""

    def ignored(self, links: Links) -> dict[str, Any]:
        return {"hidden": False}


class PastMissing(MemoryEngine):
    """A missing name is passed over, and the chain goes on behind it."""

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> Chain:
        found = await super().follow(partition, links, first, names)
        if found and found[-1][1] is None and len(found) < len(names):
            at = found[-1][0].key.name[: links.id_bytes]
            found += await super().follow(partition, links, at, names[len(found) :])
        return found


class WithoutTheMissing(MemoryEngine):
    """The missing name, at which a chain ends, is not among what is returned."""

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> Chain:
        found = await super().follow(partition, links, first, names)
        return [one for one in found if one[1] is not None]


class NotDeep(MemoryEngine):
    """A long chain is cut, as by a limit on recursion."""

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> Chain:
        return await super().follow(partition, links, first, names[:100])


class Remembers(MemoryEngine):
    """A chain is answered as it was when it was first followed."""

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> Chain:
        known: dict[Any, Chain] = self.__dict__.setdefault("known", {})
        key = (partition, links.hidden, first, tuple(names))
        if key not in known:
            known[key] = await super().follow(partition, links, first, names)
        return known[key]


class ReadsTheStart(MemoryEngine):
    """Without names, the record of the first id is returned."""

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> Chain:
        return await super().follow(partition, links, first, names or [b""])


class NoLimit(MemoryEngine):
    """The length of keys is not checked."""

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> Chain:
        return await super().follow(partition, links, first, [name[:4000] for name in names])


CHAIN_MUTANTS: Final = (
    (OneRecordATurn, chains.a_chain_is_read_from_one_snapshot),
    (ThroughLeaves, chains.a_chain_ends_at_a_record_that_leads_nowhere),
    (ThroughOthers, chains.a_chain_ends_at_a_record_that_leads_nowhere),
    (FacesOnly, chains.a_chain_keeps_to_its_partition_and_its_class),
    (PastMissing, chains.a_chain_ends_at_a_name_that_is_missing),
    (WithoutTheMissing, chains.a_chain_ends_at_a_name_that_is_missing),
    (NotDeep, chains.a_chain_may_be_250_records_deep),
    (Remembers, chains.a_chain_shows_the_latest_commit),
    (ReadsTheStart, chains.a_chain_without_names_is_empty),
    (NoLimit, chains.the_keys_of_a_chain_have_a_limit),
)
