"""The answers of List Containers and List Blobs, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from strongroom.values import (
    TICKS_PER_S,
    UNIX_EPOCH_TICKS,
    BlobKind,
    ContentProperties,
    PublicAccess,
)
from strongroom.wire.blob.list_blobs import (
    BlobDetails,
    BlobItem,
    BlobPrefix,
    CopyItem,
    LeaseItem,
    ListQuery,
    TierItem,
    write_blobs,
)
from strongroom.wire.blob.list_containers import ContainerItem, write_containers
from strongroom.wire.core.xml import PageRequest

ENDPOINT = "http://127.0.0.1:10000/acct/"
TIME = UNIX_EPOCH_TICKS
DATE = "Thu, 01 Jan 1970 00:00:00 GMT"
QUERY = ListQuery(PageRequest(ENDPOINT), "c")


def names(element: ElementTree.Element) -> list[str]:
    return [child.tag for child in element]


def parsed(body: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(body.decode("utf-8"))


def blob_of(item: BlobItem) -> ElementTree.Element:
    found = parsed(b"".join(write_blobs(QUERY, [item], ""))).find("Blobs/Blob")
    assert found is not None
    return found


def text(element: ElementTree.Element, path: str) -> str | None:
    found = element.find(path)
    assert found is not None, path
    return found.text


@dataclass(frozen=True)
class State:
    """A blob's state as it is stored."""

    kind: BlobKind = BlobKind.BLOCK
    committed: bool = True
    shown_etag: int = 1
    created: int = TIME
    modified: int = TIME
    size_bytes: int = 0
    properties: ContentProperties = ContentProperties()  # noqa: RUF009 - frozen


FULL = BlobItem(
    "a&b",
    State(
        shown_etag=0x8D8499394C82CF9,
        modified=TIME + TICKS_PER_S,
        size_bytes=5,
        properties=ContentProperties("text/plain", "gzip", "en", bytes(16), "no-cache", "inline"),
    ),
    tier=TierItem("Hot", is_inferred=True),
    lease=LeaseItem("locked", "leased", "fixed"),
    details=BlobDetails(
        copy=CopyItem("id", "success", "http://s?a&b", "5/5", TIME),
        more_properties=(("TagCount", "1"),),
        metadata=(("Key", "<v>"),),
        tags=(("k", "v"),),
    ),
)


def test_a_blob_has_its_elements_in_the_service_s_order() -> None:
    blob = blob_of(FULL)
    assert names(blob) == ["Name", "Properties", "Metadata", "Tags", "OrMetadata"]
    properties = blob.find("Properties")
    assert properties is not None
    assert names(properties) == [
        *("Creation-Time", "Last-Modified", "Etag", "Content-Length", "Content-Type"),
        *("Content-Encoding", "Content-Language", "Content-CRC64", "Content-MD5", "Cache-Control"),
        *("Content-Disposition", "BlobType", "AccessTier", "AccessTierInferred", "LeaseStatus"),
        *("LeaseState", "LeaseDuration", "ServerEncrypted", "CopyId", "CopyStatus", "CopySource"),
        *("CopyProgress", "CopyCompletionTime", "TagCount"),
    ]
    assert text(blob, "Name") == "a&b"
    assert text(blob, "Properties/Etag") == "0x8D8499394C82CF9"
    assert text(blob, "Properties/Creation-Time") == DATE
    assert text(blob, "Properties/Last-Modified") == DATE.replace("00:00:00", "00:00:01")
    assert text(blob, "Properties/Content-MD5") == "AAAAAAAAAAAAAAAAAAAAAA=="
    assert text(blob, "Properties/Content-Disposition") == "inline"
    assert text(blob, "Properties/CopySource") == "http://s?a&b"
    assert text(blob, "Metadata/Key") == "<v>"
    assert text(blob, "Tags/TagSet/Tag/Value") == "v"


def test_what_is_not_set_is_an_empty_element_or_none() -> None:
    blob = blob_of(BlobItem("a", State()))
    assert names(blob) == ["Name", "Properties", "OrMetadata"]
    for name in ("Type", "Encoding", "Language", "CRC64", "MD5", "Disposition"):
        assert text(blob, f"Properties/Content-{name}") is None
    assert text(blob, "Properties/Cache-Control") is None
    assert blob.find("Properties/LeaseStatus") is None
    assert blob.find("Properties/AccessTier") is None


def test_a_snapshot_says_so_behind_its_name() -> None:
    blob = blob_of(BlobItem("a", State(), details=BlobDetails(TIME + 5)))
    assert names(blob) == ["Name", "Snapshot", "Properties", "OrMetadata"]
    assert text(blob, "Snapshot") == "1970-01-01T00:00:00.0000005Z"


def test_an_uncommitted_blob_has_no_content_properties() -> None:
    properties = blob_of(BlobItem("a", State(committed=False))).find("Properties")
    assert properties is not None
    assert names(properties) == ["Content-Length", "BlobType", "ServerEncrypted"]


def test_prefixes_stand_between_blobs_in_order() -> None:
    items: list[BlobItem | BlobPrefix] = [
        BlobItem("a", State()),
        BlobPrefix("b/"),
        BlobItem("c", State()),
    ]
    blobs = parsed(b"".join(write_blobs(QUERY, items, "next"))).find("Blobs")
    assert blobs is not None
    assert names(blobs) == ["Blob", "BlobPrefix", "Blob"]
    assert text(blobs, "BlobPrefix/Name") == "b/"


def test_a_page_repeats_what_was_asked() -> None:
    root = parsed(
        b"".join(write_blobs(ListQuery(PageRequest(ENDPOINT, "p<", "m", 7), "c", "/"), [], "next"))
    )
    assert root.attrib == {"ServiceEndpoint": ENDPOINT, "ContainerName": "c"}
    assert [(child.tag, child.text) for child in root] == [
        *(("Prefix", "p<"), ("Marker", "m"), ("MaxResults", "7"), ("Delimiter", "/")),
        *(("Blobs", None), ("NextMarker", "next")),
    ]
    assert names(parsed(b"".join(write_blobs(QUERY, [], "")))) == ["Blobs", "NextMarker"]
    empty = parsed(b"".join(write_blobs(ListQuery(PageRequest(ENDPOINT, "", ""), "c", ""), [], "")))
    assert names(empty) == ["Prefix", "Marker", "Delimiter", "Blobs", "NextMarker"]


def test_the_beginning_is_as_the_service_writes_it() -> None:
    body = b"".join(write_blobs(QUERY, [], "")).decode()
    head = '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="'
    assert (
        body
        == f'{head}{ENDPOINT}" ContainerName="c"><Blobs></Blobs><NextMarker /></EnumerationResults>'
    )


@given(st.lists(st.text(st.characters(), min_size=1), max_size=4))
def test_any_name_can_be_listed(found: list[str]) -> None:
    items: list[BlobItem | BlobPrefix] = [BlobItem(name, State()) for name in found]
    items += [BlobPrefix(name) for name in found]
    assert len(list(parsed(b"".join(write_blobs(QUERY, items, ""))).iter("Name"))) == 2 * len(found)


def test_containers() -> None:
    items = [
        ContainerItem("a", 0x1F, TIME),
        ContainerItem(
            *("b", 0x2F, TIME, "locked", "leased", "infinite", PublicAccess.BLOB, (("k", "v"),))
        ),
    ]
    root = parsed(b"".join(write_containers(PageRequest(ENDPOINT, "p", "m", 2), items, "b")))
    assert names(root) == ["Prefix", "Marker", "MaxResults", "Containers", "NextMarker"]
    first, second = root.findall("Containers/Container")
    assert names(first) == ["Name", "Properties"]
    assert text(first, "Properties/Etag") == '"0x1F"'
    assert text(first, "Properties/Last-Modified") == DATE
    properties = second.find("Properties")
    assert properties is not None
    assert names(properties) == [
        *("Last-Modified", "Etag", "LeaseStatus", "LeaseState", "LeaseDuration", "PublicAccess"),
        *("DefaultEncryptionScope", "DenyEncryptionScopeOverride", "HasImmutabilityPolicy"),
        *("HasLegalHold", "ImmutableStorageWithVersioningEnabled"),
    ]
    assert text(second, "Properties/PublicAccess") == "blob"
    assert text(second, "Metadata/k") == "v"
    assert names(parsed(b"".join(write_containers(PageRequest(ENDPOINT), [], "")))) == [
        "Containers",
        "NextMarker",
    ]
