"""List Blobs: one page of a container's blobs, snapshots and common prefixes.

Lives here: which records of a container a listing shows. Must not live here: XML (wire/), the rules
of prefix, delimiter and marker (semantics/core/listing.py). Source: "List Blobs"; reference section
13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from strongroom import errors, limits
from strongroom.engines import base
from strongroom.semantics.core.listing import START, Page, Position, Prefix, start_at
from strongroom.services.blob.heads import refuse_tags
from strongroom.services.core import pages
from strongroom.services.core.calls import Call
from strongroom.services.core.places import generation_of
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.core import keys

SNAPSHOTS: Final = "snapshots"
UNCOMMITTED: Final = "uncommittedblobs"
METADATA: Final = "metadata"
COPY: Final = "copy"
TAGS: Final = "tags"
DELETED: Final = "deleted"
INCLUDES: Final = frozenset(
    (
        *(SNAPSHOTS, UNCOMMITTED, METADATA, COPY, TAGS, DELETED),
        # Taken, and nothing is added: there is nothing of the kind here.
        *("versions", "deletedwithversions", "immutabilitypolicy", "legalhold"),
        "permissions",
    )
)
"""The words that `include` may have."""


@dataclass(frozen=True, slots=True)
class ListBlobs:
    """Input of List Blobs.

    `start` is the decoded marker; `start_from` is the first name that may be listed (empty = any);
    `include` has words of `INCLUDES`; an empty `delimiter` folds nothing.
    """

    prefix: str = ""
    delimiter: str = ""
    start: Position = START
    start_from: str = ""
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()


class BlobRow(msgspec.Struct, frozen=True):
    """One blob (`snapshot` None) or snapshot (its ticks), as the commit `version` left it."""

    name: str
    snapshot: int | None
    blob: BlobRecord
    version: int


@dataclass(frozen=True, slots=True)
class BlobPage:
    """Result: rows and prefixes in order of names, where the next page begins (None = nothing is
    left), and store time before they were read (0 = no row needs it). A row's lease is judged at
    that time, or at its version when that is later."""

    items: list[BlobRow | Prefix]
    marker: Position | None
    now: int


async def list_blobs(services: Services, call: Call[ListBlobs]) -> BlobPage:
    """List Blobs, flat or by hierarchy. A page may be short, or empty, and have a marker.

    Raises: StorageError ContainerNotFound, also when it is deleted meanwhile;
        InvalidQueryParameterValue for snapshots with a delimiter; what authorizing raises.
        AuthorizationPermissionMismatch for tags that the caller may not read.
    """
    given = call.input
    if SNAPSHOTS in given.include and given.delimiter:
        reason = "Snapshots cannot be listed with a delimiter."
        raise errors.invalid_query("include", SNAPSHOTS, reason)
    if TAGS in given.include:
        refuse_tags(call)
    start = start_at(given.start, given.start_from)
    page = Page[BlobRow](given.prefix, given.delimiter, given.max_results, start)
    # A crowd of large listings must not be in memory together; those ahead never wait for a client.
    async with services.listings:
        return await _list(services, call, page)


async def _list(services: Services, call: Call[ListBlobs], page: Page[BlobRow]) -> BlobPage:
    keyspace = keys.blobs(generation_of(call))
    # First: a lease that was renewed in time must not be judged by its old record at a later time.
    now = await services.store.now()
    include = call.input.include
    await pages.fill(services.store, keyspace, page, lambda found: _rows(found, include, now))
    # Last: a container that is there now was there all the time, and nothing of it was swept.
    await services.check_place(call)
    timed = any(
        not isinstance(item, Prefix) and (item.blob.lease or item.blob.deletion)
        for item in page.items
    )
    return BlobPage(page.items, page.marker, now if timed else 0)


def _rows(
    found: base.Page, include: frozenset[str], now: int
) -> Iterator[tuple[bytes, bytes, BlobRow | None]]:
    decode, head = blob_records.BLOB.decode, keys.HEAD_KEY.name
    snapshots, uncommitted = SNAPSHOTS in include, UNCOMMITTED in include
    deleted = DELETED in include
    for name, key, value, version in found.rows():
        ticks = None if key == head else keys.snapshot_ticks(key)
        if ticks is not None and not snapshots:
            yield name, key, None
            continue
        blob = decode(value)
        shown = blob.committed or uncommitted
        if blob.deletion is not None:
            shown = deleted and blob.deletion.until > now
        yield name, key, BlobRow(name.decode(), ticks, blob, version) if shown else None
