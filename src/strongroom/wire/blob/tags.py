"""The documents of blob tags: body of Set Blob Tags, answers of Get and of Find Blobs by Tags.

Source: "Get Blob Tags", "Set Blob Tags", "Find Blobs by Tags".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from strongroom.values import Metadata, iso7
from strongroom.wire.core import xml
from strongroom.wire.core.xml import escape


class FoundItem(NamedTuple):
    """One blob in the answer of Find Blobs by Tags, with the tags that the query names.

    `version` is the id of a version in ticks; 0 = it is left out.
    """

    container: str
    name: str
    tags: Metadata
    version: int = 0
    is_current: bool = True


def read_tags(body: bytes) -> list[tuple[str, str]]:
    """Key and value of every tag, in order. The rules of tags (semantics/blob/tags.py) are not
    checked."""
    top = xml.read(body, "Tags")
    top.only("TagSet")
    pairs = []
    for element in top.require("TagSet").children:
        if element.name != "Tag":
            raise xml.unsupported_node(element.name)
        element.only("Key", "Value")
        pairs.append((element.require("Key").text, element.require("Value").text))
    return pairs


def write_tags(tags: Metadata) -> bytes:
    """The answer of Get Blob Tags."""
    return f"{xml.DECLARATION}{tags_element(tags)}".encode()


def tags_element(tags: Metadata) -> str:
    """The element Tags, which is the same in all documents."""
    rows = "".join(
        f"<Tag>{xml.element('Key', key)}{xml.element('Value', value)}</Tag>" for key, value in tags
    )
    return f"<Tags><TagSet>{rows}</TagSet></Tags>" if rows else "<Tags><TagSet /></Tags>"


def version_elements(version: int, is_current: bool) -> str:
    """VersionId, with IsCurrentVersion for the current one; "" without a version."""
    if not version:
        return ""
    current = "<IsCurrentVersion>true</IsCurrentVersion>" if is_current else ""
    return f"<VersionId>{iso7(version)}</VersionId>{current}"


def write_found(
    endpoint: str, where: str, items: Iterable[FoundItem], next_marker: str
) -> Iterator[bytes]:
    """The answer of Find Blobs by Tags, piece by piece.

    Arguments:
        endpoint: the service's URL, with a slash at its end.
        where: the query, as it was sent.
        next_marker: empty on the last page.
    """
    rows = (
        f"<Blob>{xml.name_element(item.name)}{xml.element('ContainerName', item.container)}"
        f"{tags_element(item.tags)}{version_elements(item.version, item.is_current)}</Blob>"
        for item in items
    )
    head = (
        f'{xml.DECLARATION}<EnumerationResults ServiceEndpoint="{escape(endpoint)}">'
        f"{xml.element('Where', where)}<Blobs>"
    )
    tail = f"</Blobs>{xml.element('NextMarker', next_marker)}</EnumerationResults>"
    return xml.pieces(head, rows, tail)
