"""The answer of List Containers.

Source: "List Containers"; the order of elements is that of Azure's answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from strongroom.values import Etag, Metadata, PublicAccess, etag_text, rfc1123
from strongroom.wire.core import xml
from strongroom.wire.core.deleted_places import DeletedItem


class ContainerItem(msgspec.Struct, frozen=True):
    """One container; `lease_duration` is None unless leased, `metadata` None unless requested."""

    name: str
    etag: Etag
    modified: int
    lease_status: str = "unlocked"
    lease_state: str = "available"
    lease_duration: str | None = None
    public_access: PublicAccess = PublicAccess.NONE
    metadata: Metadata | None = None
    deleted: DeletedItem | None = None
    immutability: bool = False
    scope: str = "$account-encryption-key"
    denies_scopes: bool = False
    has_policy: bool = False
    has_hold: bool = False


def write_containers(
    request: xml.PageRequest, containers: Iterable[ContainerItem], next_marker: str
) -> Iterator[bytes]:
    """The page as XML, piece by piece; `next_marker` is empty on the last page."""
    return xml.enumeration(request, "Containers", map(_row, containers), next_marker)


def _row(item: ContainerItem) -> str:
    deleted = item.deleted
    after_name, at_end = "", ""
    if deleted is not None:
        after_name, at_end = deleted.elements_after_name(), deleted.property_elements()
    return (
        f"<Container><Name>{xml.escape(item.name)}</Name>{after_name}<Properties>"
        f"<Last-Modified>{rfc1123(item.modified)}</Last-Modified>"
        f"<Etag>{etag_text(item.etag)}</Etag>"
        f"<LeaseStatus>{item.lease_status}</LeaseStatus><LeaseState>{item.lease_state}</LeaseState>"
        f"{xml.optional_element('LeaseDuration', item.lease_duration)}"
        f"{xml.optional_element('PublicAccess', item.public_access.value or None)}"
        f"<DefaultEncryptionScope>{item.scope}</DefaultEncryptionScope>"
        "<DenyEncryptionScopeOverride>"
        f"{str(item.denies_scopes).lower()}</DenyEncryptionScopeOverride>"
        f"<HasImmutabilityPolicy>{str(item.has_policy).lower()}</HasImmutabilityPolicy>"
        f"<HasLegalHold>{str(item.has_hold).lower()}</HasLegalHold>"
        "<ImmutableStorageWithVersioningEnabled>"
        f"{str(item.immutability).lower()}</ImmutableStorageWithVersioningEnabled>"
        f"{at_end}</Properties>{xml.metadata_element(item.metadata)}</Container>"
    )
