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
from strongroom.store.core.records import ShareRecord

METADATA: Final = "metadata"
INCLUDES: Final = frozenset((METADATA, "snapshots", "deleted"))
"""The words that `include` may have; no share here has snapshots or is kept after its deletion."""


@dataclass(frozen=True, slots=True)
class ListShares:
    """Input of List Shares; `start` is the decoded marker."""

    prefix: str = ""
    start: Position = START
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()


class ShareRow(msgspec.Struct, frozen=True):
    """One share, as the commit `version` left it."""

    name: str
    record: ShareRecord
    version: int


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
    await pages.fill(services.store, keys.shares(call.target.account), page, _rows)
    # Without a delimiter nothing is folded.
    items = [item for item in page.items if not isinstance(item, Prefix)]
    return SharePage(items, page.marker, now)


def _rows(found: base.Page) -> Iterator[tuple[bytes, bytes, ShareRow]]:
    decode = records.SHARE.decode
    for name, key, value, version in found.rows():
        yield name, key, ShareRow(name.decode(), decode(value), version)
