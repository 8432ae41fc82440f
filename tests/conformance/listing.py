"""List Blobs for tests: one page, all pages, and rows by name.

Must not live here: the expected listings.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from urllib.parse import quote

from tests.conformance.answer import expect, texts
from tests.conformance.client import Client


def page(client: Client, container: str, **parameters: str | int) -> ET.Element:
    """One page of List Blobs; values are encoded here."""
    pairs = [f"{name}={quote(str(text), safe='')}" for name, text in parameters.items()]
    query = "&".join(["restype=container", "comp=list", *pairs])
    return expect(client.get(f"/{container}?{query}"), 200).xml


def pages(client: Client, container: str, **parameters: str | int) -> Iterator[ET.Element]:
    """Yield every page, by the markers of the answers."""
    marker = ""
    while True:
        more = {"marker": marker} if marker else {}
        found = page(client, container, **parameters, **more)
        yield found
        marker = found.findtext("NextMarker") or ""
        if not marker:
            return


def names(root: ET.Element) -> list[str]:
    """The names of the blobs of a page."""
    return texts(root, "Blobs/Blob/Name")


def rows(root: ET.Element) -> list[str]:
    """The names of blobs and prefixes of a page, in their order."""
    blobs = root.find("Blobs")
    assert blobs is not None
    return [child.findtext("Name") or "" for child in blobs]


def blob(root: ET.Element, name: str) -> ET.Element:
    """The row of one blob."""
    (found,) = [row for row in root.findall("Blobs/Blob") if row.findtext("Name") == name]
    return found


def properties(row: ET.Element) -> dict[str, str]:
    """The properties of a row, in their order."""
    found = row.find("Properties")
    assert found is not None
    return {child.tag: child.text or "" for child in found}


def pairs(row: ET.Element) -> dict[str, str] | None:
    """The metadata of a row; None where it has no element Metadata."""
    found = row.find("Metadata")
    return None if found is None else {child.tag: child.text or "" for child in found}
