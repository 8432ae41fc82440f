"""The check of one blob: its head, snapshots, bodies, staged blocks, and the contents they name.

Lives here: what integrity.py says under 2 to 6, inside one partition. Must not live here: other
partitions, contents themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from strongroom.engines.base import ContentMissing, Key
from strongroom.engines.checksum import crc64
from strongroom.store.core import keys, records
from strongroom.store.core.records import (
    BlobRecord,
    Body,
    CorruptRecord,
    Inline,
    Listed,
    ListedBlock,
    Stored,
    Upload,
    Within,
)

ReadContent = Callable[[int], bytes]


class Found(NamedTuple):
    """One record of the blob's partition."""

    key: Key
    value: bytes


class BlobCheck:
    """One blob, taken in by `take` and judged by `problems`.

    Attributes:
        head, snapshots, upload: what was found; snapshots by their ticks.
        needed: contents that must be there.
        given_up: contents that a retired body names; some may be dropped already.
        has_waste: whether a sweeper has something to do here.
    """

    def __init__(self, read_content: ReadContent) -> None:
        self.head: BlobRecord | None = None
        self.snapshots: dict[int, BlobRecord] = {}
        self.upload: Upload | None = None
        self.needed: set[int] = set()
        self.given_up: set[int] = set()
        self.has_waste = False
        self._read_content = read_content
        self._inline: dict[int, bytes] = {}
        self._lists: dict[int, tuple[ListedBlock, ...]] = {}
        self._used_lists: set[int] = set()
        self._staged: dict[int, int] = {}
        self._retired: list[Stored | Listed] = []
        self._problems: list[str] = []

    def take(self, face: list[Found], hidden: list[Found]) -> None:
        """Decode everything. Raises CorruptRecord, ValueError for a key that nothing has."""
        for found in face:
            self._take_face(found)
        for found in hidden:
            self._take_hidden(found)

    def _take_face(self, found: Found) -> None:
        ticks = keys.snapshot_ticks(found.key.name)
        if ticks is not None:
            self.snapshots[ticks] = records.BLOB.decode(found.value)
        elif found.key == keys.HEAD_KEY:
            self.head = records.BLOB.decode(found.value)
        else:
            raise CorruptRecord(f"no record has the key {found.key.name!r}")

    def _take_hidden(self, found: Found) -> None:
        name, kind = found.key.name, found.key.name[:1]
        number = int.from_bytes(name[1:9], "big")
        if found.key == keys.UPLOAD_KEY:
            self.upload = records.UPLOAD.decode(found.value)
        elif kind == keys.INLINE:
            self._inline[number] = found.value
        elif kind == keys.BLOCK_LIST:
            self._lists[number] = records.BLOCK_LIST.decode(found.value)
        elif kind == keys.RETIRED:
            self._retired += records.RETIRED.decode(found.value).bodies
            self.has_waste = True
        elif kind == keys.STAGED:
            self.needed.add(records.STAGED.decode(found.value).content)
            self._staged[number] = self._staged.get(number, 0) + 1
        else:
            raise CorruptRecord(f"no record has the key {name!r}")

    def problems(self) -> Iterator[str]:
        """What does not hold; afterwards `needed`, `given_up` and `has_waste` are complete."""
        if self.head is not None:
            self._judge_body(self.head, 0)
            if self.head.snapshots != len(self.snapshots):
                found, counted = len(self.snapshots), self.head.snapshots
                self._problems.append(f"{found} snapshots, but its head counts {counted}")
        elif self.snapshots:
            self._problems.append(f"{len(self.snapshots)} snapshots without their blob")
        for ticks, snapshot in self.snapshots.items():
            self._judge_body(snapshot, ticks)
        for body in self._retired:
            self._give_up(body)
        self._judge_upload()
        for number in self._inline:
            self._problems.append(f"inline bytes at {number} belong to nothing")
        for number in self._lists.keys() - self._used_lists:
            self._problems.append(f"block list {number} belongs to nothing")
        self.given_up -= self.needed
        yield from self._problems

    def _judge_body(self, blob: BlobRecord, ticks: int) -> None:
        which = "the head" if not ticks else f"the snapshot {ticks}"
        body: Body = blob.body
        size_bytes: int | None = 0
        if isinstance(body, Within | Inline):
            data = body.data if isinstance(body, Within) else self._inline.pop(ticks, None)
            size_bytes = None if data is None else len(data)
            if data is not None and crc64(data) != body.crc64:
                self._problems.append(f"the bytes of {which} are damaged: their checksum differs")
        elif isinstance(body, Stored):
            self.needed.add(body.content)
            return
        elif isinstance(body, Listed):
            size_bytes = self._judge_list(which, body)
        if size_bytes is None:
            self._problems.append(f"the bytes of {which} are missing")
        elif size_bytes != blob.size_bytes:
            self._problems.append(f"{which} says {blob.size_bytes} bytes, but has {size_bytes}")

    def _judge_list(self, which: str, body: Listed) -> int | None:
        if body.list_content is not None:
            self.needed.add(body.list_content)
        blocks = self._blocks(body)
        if blocks is None:
            return None
        self.needed.update(block.content for block in blocks)
        if len(blocks) != body.count:
            self._problems.append(f"{which} says {body.count} blocks, but has {len(blocks)}")
        return sum(block.size_bytes for block in blocks)

    def _give_up(self, body: Stored | Listed) -> None:
        if isinstance(body, Stored):
            self.given_up.add(body.content)
            return
        if body.list_content is not None:
            self.given_up.add(body.list_content)
        self.given_up.update(block.content for block in self._blocks(body) or ())

    def _blocks(self, body: Listed) -> tuple[ListedBlock, ...] | None:
        if body.list_content is None:
            self._used_lists.add(body.number)
            return self._lists.get(body.number)
        try:
            return records.BLOCK_LIST.decode(self._read_content(body.list_content))
        except ContentMissing:
            return None

    def _judge_upload(self) -> None:
        number = None if self.upload is None else self.upload.number
        if self.upload is not None and self._staged.get(self.upload.number, 0) != self.upload.count:
            found = self._staged.get(self.upload.number, 0)
            self._problems.append(f"{found} staged blocks, but {self.upload.count} are counted")
        if self._staged.keys() - {number}:
            self.has_waste = True
