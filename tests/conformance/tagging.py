"""Tags for tests: sets them, reads them, searches by them.

Must not live here: the expected answers.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from urllib.parse import quote
from xml.sax.saxutils import escape

from tests.conformance.answer import Answer, expect, texts
from tests.conformance.client import Client

Pairs = Iterable[tuple[str, str]]


def document(pairs: Pairs) -> bytes:
    """The body of Set Blob Tags."""
    rows = "".join(
        f"<Tag><Key>{escape(key)}</Key><Value>{escape(value)}</Value></Tag>" for key, value in pairs
    )
    return f"<Tags><TagSet>{rows}</TagSet></Tags>".encode()


def on_tags(target: str) -> str:
    """The target of Get and Set Blob Tags; `target` may have a query."""
    return f"{target}{'&' if '?' in target else '?'}comp=tags"


def set_tags(
    client: Client,
    target: str,
    tags: Mapping[str, str] | Pairs,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Set Blob Tags."""
    pairs = tags.items() if isinstance(tags, Mapping) else tags
    return client.put(on_tags(target), dict(headers or {}), document(pairs))


def pairs_of(row: ET.Element) -> dict[str, str]:
    """The tags below an element, in their order."""
    return dict(zip(texts(row, ".//Tag/Key"), texts(row, ".//Tag/Value"), strict=True))


def tags(client: Client, target: str) -> dict[str, str]:
    """Get Blob Tags; it must succeed."""
    return pairs_of(expect(client.get(on_tags(target)), 200).xml)


def find(client: Client, where: str, container: str = "", **parameters: str | int) -> Answer:
    """Find Blobs by Tags, in a container if one is named, else in the account."""
    place = f"/{container}?restype=container&" if container else "/?"
    more = "".join(f"&{name}={quote(str(text), safe='')}" for name, text in parameters.items())
    return client.get(f"{place}comp=blobs&where={quote(where, safe='')}{more}")


def names(answer: Answer) -> list[str]:
    """The names of the blobs of a search, in their order."""
    return texts(expect(answer, 200).xml, "Blobs/Blob/Name")


def found(client: Client, where: str, container: str = "") -> list[str]:
    """The sorted names of all blobs of a search."""
    return sorted(names(find(client, where, container)))
