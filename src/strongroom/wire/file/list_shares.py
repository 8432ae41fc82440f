"""The answer of List Shares. Source: "List Shares"; reference file.md 2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from strongroom.values import Metadata, etag_text, iso7, rfc1123
from strongroom.wire.core import xml
from strongroom.wire.core.deleted_places import DeletedItem


class ShareItem(msgspec.Struct, frozen=True):
    """One share. Times and the ETag are stamps.

    `lease` is its status, state and, while leased, its duration. `metadata` is None unless
    requested.
    """

    name: str
    etag: int
    modified: int
    quota_gib: int
    tier: str
    tier_changed: int
    lease: tuple[str, str, str | None]
    metadata: Metadata | None = None
    deleted: DeletedItem | None = None
    snapshot: int | None = None


def write_shares(
    request: xml.PageRequest, shares: Iterable[ShareItem], next_marker: str
) -> Iterator[bytes]:
    """The page as XML, piece by piece; `next_marker` is empty on the last page."""
    return xml.enumeration(request, "Shares", map(_row, shares), next_marker)


def _row(item: ShareItem) -> str:
    status, state, duration = item.lease
    after_name = at_end = ""
    if item.snapshot is not None:
        after_name = f"<Snapshot>{iso7(item.snapshot)}</Snapshot>"
    if item.deleted is not None:
        after_name, at_end = item.deleted.elements_after_name(), item.deleted.property_elements()
    properties = (
        f"<Last-Modified>{rfc1123(item.modified)}</Last-Modified>"
        f"<Etag>{xml.escape(etag_text(item.etag))}</Etag><Quota>{item.quota_gib}</Quota>"
        f"{xml.element('AccessTier', item.tier)}"
        f"<AccessTierChangeTime>{rfc1123(item.tier_changed)}</AccessTierChangeTime>"
        f"{xml.element('LeaseStatus', status)}{xml.element('LeaseState', state)}"
        f"{xml.optional_element('LeaseDuration', duration)}<EnabledProtocols>SMB</EnabledProtocols>"
        f"{at_end}"
    )
    return (
        f"<Share>{xml.element('Name', item.name)}{after_name}<Properties>{properties}</Properties>"
        f"{xml.metadata_element(item.metadata)}</Share>"
    )
