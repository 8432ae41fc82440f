"""List Shares: one page of an account's shares, by name.

Must not live here: XML (wire/), the rules of prefix and marker (semantics/core/listing.py). Source:
"List Shares"; reference file.md 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from strongroom import limits
from strongroom.engines import base
from strongroom.semantics.core.listing import START, Page, Position, Prefix
from strongroom.services.core import pages
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import DeletedShare, ShareRecord

METADATA: Final = "metadata"
DELETED: Final = "deleted"
INCLUDES: Final = frozenset((METADATA, "snapshots", DELETED))
"""The words that `include` may have; no share here has snapshots."""


@dataclass(frozen=True, slots=True)
class ListShares:
    """Input of List Shares; `start` is the decoded marker."""

    prefix: str = ""
    start: Position = START
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()


class ShareRow(msgspec.Struct, frozen=True):
    """One share, as the commit `version` left it. `deleted`: it is one that is kept."""

    name: str
    record: ShareRecord
    version: int
    deleted: DeletedShare | None = None


@dataclass(frozen=True, slots=True)
class SharePage:
    """Result: rows in order of names, where the next page begins (None = nothing is left), and
    store time before they were read. A row's lease is judged at that time, or at its version when
    that is later."""

    items: list[ShareRow]
    marker: Position | None
    now: int


async def list_shares(services: Services, call: Call[ListShares]) -> SharePage:
    """List Shares of the account. A page may be short and have a marker."""
    given = call.input
    page = Page[ShareRow](given.prefix, "", given.max_results, given.start)
    # First: a lease that was renewed in time must not be judged by its old record at a later time.
    now = await services.store.now()
    kept_at = now if DELETED in given.include else None
    keyspace = keys.shares(call.target.account)
    await pages.fill(services, keyspace, page, lambda found: _rows(found, kept_at))
    # Without a delimiter nothing is folded.
    items = [item for item in page.items if not isinstance(item, Prefix)]
    return SharePage(items, page.marker, now)


def _rows(found: base.Page, kept_at: int | None) -> Iterator[tuple[bytes, bytes, ShareRow | None]]:
    """Arguments: kept_at: when deleted shares must still be kept; None = none is listed."""
    decode = records.SHARE.decode
    for name, key, value, version in found.rows():
        if not keys.is_deleted_place(key):
            yield name, key, ShareRow(name.decode(), decode(value), version)
            continue
        kept = None if kept_at is None else records.DELETED_SHARE.decode(value)
        if kept is None or kept_at is None or kept.until <= kept_at:
            yield name, key, None
        else:
            yield name, key, ShareRow(name.decode(), kept.record, version, kept)
