"""List Containers: one page of an account's containers, by name.

Must not live here: XML (wire/), the rules of prefix and marker (semantics/core/listing.py). Source:
"List Containers"; reference section 12.
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
from strongroom.store.core.records import ContainerRecord

METADATA: Final = "metadata"
INCLUDES: Final = frozenset((METADATA, "deleted", "system"))
"""The words that `include` may have; there are no deleted and no system containers here."""


@dataclass(frozen=True, slots=True)
class ListContainers:
    """Input of List Containers; `start` is the decoded marker."""

    prefix: str = ""
    start: Position = START
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()


class ContainerRow(msgspec.Struct, frozen=True):
    """One container, as the commit `version` left it."""

    name: str
    record: ContainerRecord
    version: int


@dataclass(frozen=True, slots=True)
class ContainerPage:
    """Result: rows in order of names, where the next page begins (None = nothing is left), and
    store time before they were read (0 = no row has a lease). A row's lease is judged at that time,
    or at its version when that is later."""

    items: list[ContainerRow]
    marker: Position | None
    now: int


async def list_containers(services: Services, call: Call[ListContainers]) -> ContainerPage:
    """List Containers of the account. A page may be short and have a marker."""
    given = call.input
    page = Page[ContainerRow](given.prefix, "", given.max_results, given.start)
    # First: a lease that was renewed in time must not be judged by its old record at a later time.
    now = await services.store.now()
    await pages.fill(services.store, keys.containers(call.target.account), page, _rows)
    # Without a delimiter nothing is folded.
    items = [item for item in page.items if not isinstance(item, Prefix)]
    leased = any(item.record.lease for item in items)
    return ContainerPage(items, page.marker, now if leased else 0)


def _rows(found: base.Page) -> Iterator[tuple[bytes, bytes, ContainerRow]]:
    decode = records.CONTAINER.decode
    for name, key, value, version in found.rows():
        yield name, key, ContainerRow(name.decode(), decode(value), version)
