"""List Containers: one page of an account's containers, by name.

Source: "List Containers"; reference section 12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from strongroom import limits
from strongroom.account_switches import ContainerProtection
from strongroom.engines import base
from strongroom.semantics.core.listing import START, PageBuilder, Position, Prefix
from strongroom.services.core import pages
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import ContainerRecord, DeletedContainer

METADATA: Final = "metadata"
DELETED: Final = "deleted"
INCLUDES: Final = frozenset((METADATA, DELETED, "system"))
"""The words that `include` accepts. This server has no system containers."""


class ListContainers(msgspec.Struct, frozen=True):
    """`start` is the decoded marker."""

    prefix: str = ""
    start: Position = START
    max_results: int = limits.LIST_RESULTS_MAX
    include: frozenset[str] = frozenset()


class ContainerRow(msgspec.Struct, frozen=True, gc=False):
    """One container, as commit `version` wrote it. `deleted` is set for a soft-deleted one."""

    name: str
    record: ContainerRecord
    version: int
    deleted: DeletedContainer | None = None


@dataclass(frozen=True, slots=True)
class ContainerPage:
    """Result of List Containers: rows in the order of their names, and the position of the next
    page. `marker` is None on the last page. `now` is a store time before the rows were read. A
    row's lease is judged at that time, or at the row's version if that is later. `immutability`:
    whether blobs may have immutability policies. `protections` maps a container's name to its
    protection."""

    items: list[ContainerRow]
    marker: Position | None
    now: int
    immutability: bool = False
    protections: Mapping[str, ContainerProtection] = field(default_factory=dict)


async def list_containers(services: Services, call: Call[ListContainers]) -> ContainerPage:
    """A page may be short and have a marker."""
    request = call.input
    page = PageBuilder[ContainerRow](request.prefix, "", request.max_results, request.start)
    # The time is read first: a lease renewed in time must not be judged by its old record at a
    # later time.
    now = await services.store.now()
    kept_at = now if DELETED in request.include else None
    keyspace = keys.containers(call.target.account)
    await pages.fill(services, keyspace, page, lambda found: _rows(found, kept_at))
    # There is no delimiter, so there are no prefixes.
    items = [item for item in page.items if not isinstance(item, Prefix)]
    switches = services.switches(call.target.account)
    return ContainerPage(items, page.marker, now, switches.immutability, switches.containers)


def _rows(
    page: base.Page, kept_at: int | None
) -> Iterator[tuple[bytes, bytes, ContainerRow | None]]:
    """`kept_at` is when deleted containers must still be kept; None = list none of them."""
    decode = records.CONTAINER.decode
    for name, key, value, version in page.rows():
        if not keys.is_deleted_place(key):
            yield name, key, ContainerRow(name.decode(), decode(value), version)
            continue
        kept = None if kept_at is None else records.DELETED_CONTAINER.decode(value)
        if kept is None or kept_at is None or kept.until <= kept_at:
            yield name, key, None
        else:
            yield name, key, ContainerRow(name.decode(), kept.record, version, kept)
