"""The answers of List Directories and Files, List Ranges, List Handles and Get Share Stats.

Source: these operations' pages; reference file.md 2, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from strongroom.values import etag_text, iso7, rfc1123
from strongroom.wire.core import xml

_GIB: Final = 1 << 30
_TIMES: Final = ("CreationTime", "LastAccessTime", "LastWriteTime", "ChangeTime")


class DirectoryList(msgspec.Struct, frozen=True):
    """The head of a directory listing, with the request's parameters; None = not given.

    Attributes:
        endpoint: the service's URL with a slash at its end.
        id: the directory's id; None = left out.
        snapshot: the time of the share's snapshot; None = the share itself.
    """

    endpoint: str
    share: str
    path: str
    id: int | None = None
    marker: str | None = None
    prefix: str | None = None
    max_results: int | None = None
    snapshot: int | None = None


class ListedNode(msgspec.Struct, frozen=True):
    """One directory or file. Fields that are None are left out.

    `times` are in ticks: creation, last access, last write, change, and last modification.
    """

    name: str
    is_directory: bool
    id: int | None
    size_bytes: int
    times: tuple[int, int, int, int, int] | None = None
    etag: int | None = None
    attributes: str | None = None
    permission_key: str | None = None


def write_directory(
    listing: DirectoryList, nodes: Iterable[ListedNode], next_marker: str
) -> Iterator[bytes]:
    """A page of a directory, piece by piece; `next_marker` is empty on the last page."""
    most = None if listing.max_results is None else str(listing.max_results)
    number = None if listing.id is None else str(listing.id)
    snapshot_attribute = ""
    if listing.snapshot is not None:
        snapshot_attribute = f' ShareSnapshot="{iso7(listing.snapshot)}"'
    head = (
        f'{xml.DECLARATION}<EnumerationResults ServiceEndpoint="{xml.escape(listing.endpoint)}" '
        f'ShareName="{xml.escape(listing.share)}"{snapshot_attribute}'
        f' DirectoryPath="{xml.escape(listing.path)}">'
        f"{xml.optional_element('Marker', listing.marker)}"
        f"{xml.optional_element('Prefix', listing.prefix)}"
        f"{xml.optional_element('MaxResults', most)}{xml.optional_element('DirectoryId', number)}"
        "<Entries>"
    )
    tail = f"</Entries>{xml.element('NextMarker', next_marker)}</EnumerationResults>"
    return xml.pieces(head, map(_row, nodes), tail)


def _row(node: ListedNode) -> str:
    tag = "Directory" if node.is_directory else "File"
    number = None if node.id is None else str(node.id)
    return (
        f"<{tag}>{xml.name_element(node.name)}{xml.optional_element('FileId', number)}"
        f"{_properties(node)}{xml.optional_element('Attributes', node.attributes)}"
        f"{xml.optional_element('PermissionKey', node.permission_key)}</{tag}>"
    )


def _properties(node: ListedNode) -> str:
    elements = "" if node.is_directory else f"<Content-Length>{node.size_bytes}</Content-Length>"
    if node.times is not None:
        *ticks, modified = node.times
        named = zip(_TIMES, ticks, strict=True)
        elements += "".join(xml.element(name, iso7(time)) for name, time in named)
        elements += xml.element("Last-Modified", rfc1123(modified))
    if node.etag is not None:
        elements += xml.element("Etag", etag_text(node.etag))
    return f"<Properties>{elements}</Properties>" if elements else "<Properties />"


def write_ranges(
    ranges: Iterable[tuple[int, int, bool]], next_marker: str | None
) -> Iterator[bytes]:
    """List Ranges, piece by piece.

    Arguments:
        ranges: (first byte, last byte, whether it was cleared), in order.
        next_marker: None leaves the element out, "" marks the last page.
    """
    rows = (
        f"<{tag}><Start>{first}</Start><End>{last}</End></{tag}>"
        for first, last, is_clear in ranges
        for tag in ("ClearRange" if is_clear else "Range",)
    )
    if next_marker is None:
        return xml.pieces(xml.DECLARATION, xml.rows_in("Ranges", rows), "", 1000)
    end = f"{xml.element('NextMarker', next_marker)}</Ranges>"
    return xml.pieces(f"{xml.DECLARATION}<Ranges>", rows, end, 1000)


class ListedHandle(msgspec.Struct, frozen=True):
    """One SMB handle; times are ticks, fields that are None are left out."""

    id: int
    path: str
    file_id: int
    parent_id: int
    session_id: int
    client_ip: str
    opened: int
    reconnected: int | None
    rights: tuple[str, ...]


def write_handles(handles: Iterable[ListedHandle], next_marker: str) -> Iterator[bytes]:
    """A page of List Handles, piece by piece; `next_marker` is empty on the last page."""
    rows = xml.rows_in("Entries", map(_handle, handles))
    tail = f"{xml.element('NextMarker', next_marker)}</EnumerationResults>"
    return xml.pieces(f"{xml.DECLARATION}<EnumerationResults>", rows, tail)


def _handle(one: ListedHandle) -> str:
    named = (
        ("HandleId", str(one.id)),
        ("Path", one.path),
        ("FileId", str(one.file_id)),
        ("ParentId", str(one.parent_id)),
        ("SessionId", str(one.session_id)),
        ("ClientIp", one.client_ip),
        ("OpenTime", rfc1123(one.opened)),
    )
    elements = "".join(xml.element(name, value) for name, value in named)
    if one.reconnected is not None:
        elements += xml.element("LastReconnectTime", rfc1123(one.reconnected))
    rights = "".join(xml.element("AccessRight", right) for right in one.rights)
    return f"<Handle>{elements}<AccessRightList>{rights}</AccessRightList></Handle>"


def write_stats(total_bytes: int) -> bytes:
    """Get Share Stats: whole GiB, rounded up, and bytes."""
    gib = -(-total_bytes // _GIB)
    return (
        f"{xml.DECLARATION}<ShareStats><ShareUsage>{gib}</ShareUsage>"
        f"<ShareUsageBytes>{total_bytes}</ShareUsageBytes></ShareStats>"
    ).encode()
