"""List Shares: one page of an account's shares, by name.

Must not live here: the rules of prefix and marker (semantics/core/listing.py). Source: "List
Shares"; reference file.md 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines import base
from strongroom.semantics.core.listing import START, PageBuilder, Position, Prefix
from strongroom.services.core import pages
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records, share_keys
from strongroom.store.core.records import DeletedShare, ShareRecord

METADATA: Final = "metadata"
DELETED: Final = "deleted"
SNAPSHOTS: Final = "snapshots"
INCLUDES: Final = frozenset((METADATA, SNAPSHOTS, DELETED))


class ListShares(msgspec.Struct, frozen=True):
    """`start` is the decoded marker."""

    prefix: str = ""
    start: Position = START
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()


class ShareRow(msgspec.Struct, frozen=True):
    """One share, as of the commit `version`. `snapshot`: the time of the snapshot that the row
    shows; None = the share itself."""

    name: str
    record: ShareRecord
    version: int
    deleted: DeletedShare | None = None
    snapshot: int | None = None


class SharePage(msgspec.Struct, frozen=True):
    """Rows in order of names. `marker`: where the next page begins; None = this is the last page.
    `now`: store time before the rows were read. A row's lease is judged at that time, or at its
    version when that is later."""

    items: list[ShareRow]
    marker: Position | None
    now: int


async def list_shares(services: Services, call: Call[ListShares]) -> SharePage:
    """A page with a marker may be shorter than requested."""
    request = call.input
    page = PageBuilder[ShareRow](request.prefix, "", request.max_results, request.start)
    # Read the time first: a lease must not be judged by its old record at a later time.
    now = await services.store.now()
    rows = _Rows(now if DELETED in request.include else None, SNAPSHOTS in request.include)
    keyspace = keys.shares(call.target.account)
    name, key = request.start
    if share_keys.snapshot_of(key) is not None:
        # The page begins behind the record of the share whose snapshots these are.
        (stored,) = await services.store.read([keys.share(call.target.account, name.decode())])
        rows.pass_share(name, records.SHARE.of(stored))
    await pages.fill(services, keyspace, page, rows.of)
    # Without a delimiter nothing is folded.
    items = [item for item in page.items if not isinstance(item, Prefix)]
    return SharePage(items, page.marker, now)


class _Rows:
    """Turns the records of a scan, which come in order, into rows of the list. `kept_at`: the time
    at which deleted shares must still be retained; None = none is listed."""

    def __init__(self, kept_at: int | None, with_snapshots: bool) -> None:
        self._kept_at = kept_at
        self._with_snapshots = with_snapshots
        self._passed: tuple[bytes, int] | None = None

    def pass_share(self, name: bytes, share: ShareRecord | None) -> None:
        """Note the share whose snapshots may follow in the scan."""
        self._passed = None if share is None else (name, share.generation)

    def of(self, page: base.Page) -> Iterator[tuple[bytes, bytes, ShareRow | None]]:
        """Yield the rows of a page: (name, key, row; None = the record is not listed)."""
        for name, key, value, version in page.rows():
            yield name, key, self._row(name, key, value, version)

    def _row(self, name: bytes, key: bytes, value: bytes, version: int) -> ShareRow | None:
        if keys.is_deleted_place(key):
            kept = None if self._kept_at is None else records.DELETED_SHARE.decode(value)
            if kept is None or self._kept_at is None or kept.until <= self._kept_at:
                return None
            return ShareRow(name.decode(), kept.record, version, kept)
        snapshot = share_keys.snapshot_of(key)
        if snapshot is None:
            share = records.SHARE.decode(value)
            self.pass_share(name, share)
            return ShareRow(name.decode(), share, version)
        generation, stamp = snapshot
        # Snapshots of a soft-deleted share are not listed.
        if not self._with_snapshots or self._passed != (name, generation):
            return None
        return ShareRow(name.decode(), records.SHARE.decode(value), version, snapshot=stamp)
