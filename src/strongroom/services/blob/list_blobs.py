"""List Blobs: one page of a container's blobs, snapshots, versions and common prefixes.

Lives here: which records of a container a listing shows, and how a page of them is read. Source:
"List Blobs"; reference section 13.

Previous versions are hidden records, so a listing without versions does not read them. A listing
with versions scans the face records too, and reads the versions of each head that has some, after
the head. A version that is younger than the head was displaced during the listing, and is left out.
So each state that does not change is listed exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines import base
from strongroom.engines.base import Partition
from strongroom.errors import core as errors
from strongroom.semantics.core.listing import START, PageBuilder, Position, Prefix, start_at
from strongroom.services.blob.decisions.rehydration import as_of
from strongroom.services.blob.states.heads import refuse_tags
from strongroom.services.core import pages
from strongroom.services.core.calls import Call
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.core import keys
from strongroom.store.core.keys import Past

SNAPSHOTS: Final = "snapshots"
UNCOMMITTED: Final = "uncommittedblobs"
METADATA: Final = "metadata"
COPY: Final = "copy"
TAGS: Final = "tags"
DELETED: Final = "deleted"
VERSIONS: Final = "versions"
DELETED_WITH_VERSIONS: Final = "deletedwithversions"
IMMUTABILITY_POLICY: Final = "immutabilitypolicy"
LEGAL_HOLD: Final = "legalhold"
INCLUDES: Final = frozenset(
    (
        *(SNAPSHOTS, UNCOMMITTED, METADATA, COPY, TAGS, DELETED),
        *(VERSIONS, DELETED_WITH_VERSIONS, IMMUTABILITY_POLICY, LEGAL_HOLD),
        # Accepted without effect: this server has no such permissions.
        "permissions",
    )
)
"""The words that `include` accepts."""


class ListBlobs(msgspec.Struct, frozen=True):
    """`start` is the decoded marker. `start_from` is the first name that may be listed (empty =
    any). `include` has words of `INCLUDES`. An empty `delimiter` lists without prefixes."""

    prefix: str = ""
    delimiter: str = ""
    start: Position = START
    start_from: str = ""
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()


class BlobRow(msgspec.Struct, frozen=True, gc=False):
    """One blob (`past` None), snapshot or previous version, as commit `version` wrote it."""

    name: str
    past: Past | None
    blob: BlobRecord
    version: int

    @property
    def snapshot(self) -> int | None:
        """In ticks; None for a blob or a version."""
        return None if self.past is None or self.past.is_version else self.past.ticks


class BlobPage(msgspec.Struct, frozen=True):
    """Result: rows and prefixes in order of names, and where the next page begins (None = the end).

    `now` is store time before they were read. A row's lease is judged at that time, or at its
    version when that is later.
    """

    items: list[BlobRow | Prefix]
    marker: Position | None
    now: int


async def list_blobs(services: Services, call: Call[ListBlobs]) -> BlobPage:
    """Flat or by hierarchy. A page may be short, or empty, and have a marker.

    Refused with ContainerNotFound also when the container is deleted meanwhile.
    """
    request = call.input
    if SNAPSHOTS in request.include and request.delimiter:
        reason = "Snapshots cannot be listed with a delimiter."
        raise errors.invalid_query("include", SNAPSHOTS, reason)
    if TAGS in request.include:
        refuse_tags(call)
    start = start_at(request.start, request.start_from)
    page = PageBuilder[BlobRow](request.prefix, request.delimiter, request.max_results, start)
    # The semaphore limits the memory of concurrent large listings. None of them waits for a client
    # here.
    async with services.listings:
        return await _list(services, call, page)


async def _list(services: Services, call: Call[ListBlobs], page: PageBuilder[BlobRow]) -> BlobPage:
    keyspace = keys.blobs(generation_of(call))
    # The time is read first: a lease renewed in time must not be judged by its old record at a
    # later time.
    now = await services.store.now()
    include = call.input.include
    if VERSIONS in include:
        await _VersionedPage(services.store, keyspace, page, include, now).fill()
    else:
        await pages.fill(services, keyspace, page, lambda found: _rows(found, page, include, now))
    # Checked last: a container that exists now existed all the time, and nothing of it was swept.
    await services.check_place(call)
    return BlobPage(page.items, page.marker, now)


def _rows(
    found: base.Page, page: PageBuilder[BlobRow], include: frozenset[str], now: int
) -> Iterator[tuple[bytes, bytes, BlobRow | None]]:
    decode, head = blob_records.BLOB.decode, keys.HEAD_KEY.name
    snapshots, uncommitted = SNAPSHOTS in include, UNCOMMITTED in include
    for name, key, value, version in found.rows():
        listed = page.listed_prefix
        if listed is not None and name.startswith(listed):
            continue
        past = None if key == head else keys.past_of(key)
        if past is not None and not snapshots:
            yield name, key, None
            continue
        blob = decode(value)
        if blob.rehydration is not None:
            blob = as_of(blob, now)
        shown = blob.committed or uncommitted
        if blob.deletion is not None or blob.vacant:
            shown = _is_shown(blob, include, now)
        yield name, key, BlobRow(name.decode(), past, blob, version) if shown else None


def _is_shown(blob: BlobRecord, include: frozenset[str], now: int) -> bool:
    """Return whether a listing with these words shows a record. Snapshots are decided by the
    caller."""
    if blob.vacant:
        return DELETED_WITH_VERSIONS in include
    if blob.deletion is not None:
        return DELETED in include and blob.deletion.until > now
    return blob.committed or UNCOMMITTED in include


# The start of a page that continues among the versions of a name. It lies after the keys of all
# snapshots and before the head's. No record has such a key.
_AMONG_VERSIONS: Final = keys.snapshot_range()[0] + b"\xff"
_BEHIND_ALL: Final = (1 << 64) - 1
# Decoding this many records takes half a millisecond.
_VERSIONS_TOGETHER: Final = 100

_Row = tuple[bytes, bytes, BlobRow | None]


class _VersionedPage:
    """Reads a page that shows previous versions before their heads, the oldest first."""

    def __init__(
        self,
        store: base.Engine,
        keyspace: bytes,
        page: PageBuilder[BlobRow],
        include: frozenset[str],
        now: int,
    ) -> None:
        self._store = store
        self._keyspace = keyspace
        self._page = page
        self._include = include
        self._now = now
        self._scanned = 0

    async def fill(self) -> None:
        """Read until the page is complete, or has read as much as one page may. See pages.fill."""
        page, name = self._page, self._page.first[0]
        behind = _version_behind(page.first[1])
        while not page.done:
            if self._scanned >= limits.LIST_SCANNED_RECORDS_MAX:
                page.cut()
                return
            until = None if page.until is None else base.Position(*page.until)
            first = base.Position(*page.first)
            part = await self._store.scan(self._keyspace, first, until, page.records_wanted)
            self._scanned += len(part.values)
            rows, resume = list[_Row](), part.resume
            for partition, key, value, version in part.rows():
                await self._store.turns.pause()
                if keys.past_of(key) is not None and SNAPSHOTS not in self._include:
                    rows.append((partition, key, None))
                    continue
                blob = as_of(blob_records.BLOB.decode(value), self._now)
                if key == keys.HEAD_KEY.name and blob.versions:
                    begin = behind if partition == name else 0
                    stopped = await self._add_versions(rows, partition, blob, begin)
                    if stopped is not None:
                        resume = stopped
                        break
                rows.append(self._row(partition, key, blob, version))
            await pages.feed(self._store.turns, page, rows, resume)
            name, behind = page.first[0], _version_behind(page.first[1])

    def _row(self, name: bytes, key: bytes, blob: BlobRecord, version: int) -> _Row:
        if not _is_shown(blob, self._include, self._now):
            return name, key, None
        return name, key, BlobRow(name.decode(), keys.past_of(key), blob, version)

    async def _add_versions(
        self, rows: list[_Row], name: bytes, head: BlobRecord, first_id: int
    ) -> base.Position | None:
        """Add the rows of versions that precede a head. Return the position of the next page when
        this one is complete or has read enough; None = all were added."""
        partition = Partition(self._keyspace, name)
        is_there = head.deletion is None and not head.vacant
        below = blob_records.as_version(head).version if is_there else None
        while True:
            if (
                len(rows) > self._page.records_wanted
                or self._scanned >= limits.LIST_SCANNED_RECORDS_MAX
            ):
                return base.Position(name, _AMONG_VERSIONS + keys.number(first_id))
            await self._store.turns.pause()  # a read may never suspend
            bounds = keys.version_range(first_id)
            items = await self._store.read_range(partition, True, *bounds, _VERSIONS_TOGETHER)
            self._scanned += len(items)
            for item in items:
                blob = as_of(blob_records.BLOB.decode(item.value), self._now)
                first_id = blob.version + 1
                if below is not None and blob.version >= below:
                    return None
                past, key = Past(blob.version, True), _AMONG_VERSIONS + keys.number(blob.version)
                is_shown = _is_shown(blob, self._include, self._now)
                one = BlobRow(name.decode(), past, blob, item.version) if is_shown else None
                rows.append((name, key, one))
            if len(items) < _VERSIONS_TOGETHER:
                return None


def _version_behind(key: bytes) -> int:
    """Return the first version id that a page shows which begins at this key; 0 = the oldest."""
    if key >= keys.HEAD_KEY.name:
        return _BEHIND_ALL
    return int.from_bytes(key[2:], "big") if key[:2] == _AMONG_VERSIONS else 0
