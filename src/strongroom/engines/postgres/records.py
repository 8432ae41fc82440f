"""Reading records: by address, along a chain, as a range, as a page of a scan.

Lives here: the statements' parameters and rows. All reads of one turn of the loop are one
statement, so they come from one snapshot. Must not live here: SQL (schema.py), updates
(commits.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

from strongroom.engines.base import (
    KEY_BYTES_MAX,
    SCAN_EXAMINED_MAX,
    Item,
    Key,
    Page,
    Partition,
    Position,
    Record,
    Ref,
)
from strongroom.engines.bounds import check_partition, check_reads
from strongroom.engines.conditions import Condition
from strongroom.engines.links import Links
from strongroom.engines.postgres.sessions.batcher import Batcher
from strongroom.engines.postgres.sessions.lanes import Pool
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.condition_sql import expression_of
from strongroom.engines.postgres.sql.places import (
    after,
    keyspace_of,
    keyspace_prefix,
    place_of,
    position_of,
    position_place,
    prefix_of,
)
from strongroom.engines.postgres.sql.schema import (
    FOLLOW,
    NEXT_PLACE,
    RANGE,
    READ,
    SCAN,
    SCAN_WHERE,
    VERSIONS,
)

Reads = Sequence[Ref]

_READS_MAX: Final = 64
"""So many calls become one statement, whose rows are decoded in one turn of the loop."""


class Records:
    """The records of a store.

    Arguments:
        observe: takes note of the stamps of what was read.
    """

    def __init__(self, pool: Pool, observe: Callable[[int], None]) -> None:
        self._pool = pool
        self._observe = observe
        self._reads: Batcher[Reads, list[Record | None]] = Batcher(
            self._read_all, len(pool), _READS_MAX
        )

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        check_reads(reads)
        return await self._reads.call(reads) if reads else []

    async def _read_all(self, calls: Sequence[Reads]) -> list[list[Record | None]]:
        order = list(dict.fromkeys(itertools.chain.from_iterable(calls)))
        answer = await self._pool.run(READ, wire.byteas([place_of(ref) for ref in order]))
        records: dict[Ref, Record] = {}
        for at, version, value in answer.rows:
            stamp = wire.number_of(version or b"")
            records[order[wire.number_of(at or b"") - 1]] = Record(value or b"", stamp)
        if records:
            self._observe(max(record.version for record in records.values()))
        get = records.get
        return [[get(ref) for ref in reads] for reads in calls]

    async def versions(self, refs: Sequence[Ref]) -> list[int | None]:
        """Of each record; None = there is none."""
        answer = await self._pool.run(VERSIONS, wire.byteas([place_of(ref) for ref in refs]))
        found = {wire.number_of(at or b""): wire.number_of(of or b"") for at, of in answer.rows}
        return [found.get(at) for at in range(1, len(refs) + 1)]

    async def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> list[tuple[Ref, Record | None]]:
        check_partition(partition)
        if max(len(first), links.id_bytes) + max(map(len, names), default=0) > KEY_BYTES_MAX:
            raise ValueError(f"a key is at most {KEY_BYTES_MAX} bytes long")
        prefix = prefix_of(*partition, links.hidden)
        layout = (links.head, links.tail, wire.int4(links.id_bytes))
        answer = await self._pool.run(FOLLOW, prefix, first, wire.byteas(names), *layout)
        chain: list[tuple[Ref, Record | None]] = []
        for place, version, value in answer.rows:
            key = Key(links.hidden, (place or b"")[len(prefix) :])
            record = None if version is None else Record(value or b"", wire.number_of(version))
            chain.append((Ref(partition, key), record))
        self._observe(max((one.version for _, one in chain if one is not None), default=0))
        return chain

    async def range(
        self,
        partition: Partition,
        hidden: bool,
        first: bytes,
        until: bytes | None,
        max_records: int,
    ) -> list[Item]:
        check_partition(partition)
        prefix = prefix_of(*partition, hidden)
        answer = await self._pool.run(
            RANGE,
            prefix + first,
            after(prefix) if until is None else prefix + until,
            wire.int8(max(0, max_records)),
        )
        start = len(prefix)
        items = [
            Item((place or b"")[start:], value or b"", wire.number_of(version or b""))
            for place, version, value in answer.rows
        ]
        self._observe(max((item.version for item in items), default=0))
        return items

    async def scan(
        self,
        keyspace: bytes,
        first: Position,
        until: Position | None,
        max_records: int,
        max_bytes: int,
        where: Condition | None,
    ) -> Page:
        prefix = keyspace_prefix(keyspace)
        limits = (
            position_place(prefix, *first),
            after(prefix) if until is None else position_place(prefix, *until),
            wire.int8(max_records),
            wire.int8(max_bytes),
        )
        expression = None if where is None else expression_of(where)
        if expression is None:
            answer = await self._pool.run(SCAN, *limits)
        else:
            examined = wire.int8(SCAN_EXAMINED_MAX)
            answer = await self._pool.run(SCAN_WHERE, *limits, examined, expression.encode())
        rows, start = answer.rows, len(prefix)
        resume: Position | None = None
        if rows and rows[-1][2] is None:
            resume = Position(*position_of(rows.pop()[0] or b"", start))
        positions = [position_of(place or b"", start) for place, _, _ in rows]
        versions = [wire.number_of(version or b"") for _, version, _ in rows]
        self._observe(max(versions, default=0))
        return Page(
            [partition for partition, _ in positions],
            [key for _, key in positions],
            [value or b"" for _, _, value in rows],
            versions,
            resume,
        )

    async def keyspaces(self, first: bytes, until: bytes) -> list[bytes]:
        """Those that have face records, from `first` on and before `until`."""
        found: list[bytes] = []
        start, end = keyspace_prefix(first), keyspace_prefix(until)
        while rows := (await self._pool.run(NEXT_PLACE, start, end)).rows:
            found.append(keyspace_of(rows[0][0] or b""))
            start = after(keyspace_prefix(found[-1]))
        return found

    async def drain(self) -> None:
        await self._reads.drain()
