"""List Blobs: rules B-LST-01 to B-LST-05 and B-LST-07 to B-LST-14."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.conformance.answer import expect, expect_names, texts
from tests.conformance.blobs import md5, put, snapshot, stage
from tests.conformance.client import Client
from tests.conformance.leasing import Leased
from tests.conformance.listing import blob, names, page, pages, pairs, properties, rows
from tests.conformance.running import Running


def flat(parts: list[list[str]]) -> list[str]:
    """The rows of all pages."""
    return [name for part in parts for name in part]


def fill(client: Client, container: str, *found: str) -> None:
    """Put empty blobs."""
    for name in found:
        put(client, f"/{container}/{quote(name, safe='/')}", b"")


def test_an_empty_page(client: Client, container: str) -> None:
    """B-LST-01."""
    root = page(client, container)
    assert root.tag == "EnumerationResults"
    assert root.attrib == {"ServiceEndpoint": f"{client.url}/", "ContainerName": container}
    assert [child.tag for child in root] == ["Blobs", "NextMarker"]
    assert root.findtext("NextMarker") == ""
    asked = page(client, container, prefix="p", maxresults=7, delimiter="/")
    assert [child.tag for child in asked] == [
        "Prefix", "MaxResults", "Delimiter", "Blobs", "NextMarker",
    ]  # fmt: skip
    assert [child.text for child in asked][:3] == ["p", "7", "/"]
    fill(client, container, "a", "b")
    marker = page(client, container, maxresults=1).findtext("NextMarker") or ""
    assert page(client, container, marker=marker).findtext("Marker") == marker


def test_order_of_names(client: Client, container: str) -> None:
    """B-LST-01: ordinal."""
    found = ["Z", "a", "B", "a-b", "a/b", "a0", "aB", "ab", "é", "~", "10", "9", "a b"]
    fill(client, container, *found)
    assert names(page(client, container)) == sorted(found)


PLAIN = [
    "Creation-Time", "Last-Modified", "Etag", "Content-Length", "Content-Type",
    "Content-Encoding", "Content-Language", "Content-CRC64", "Content-MD5", "Cache-Control",
    "Content-Disposition", "BlobType", "AccessTier", "AccessTierInferred", "LeaseStatus",
    "LeaseState", "ServerEncrypted",
]  # fmt: skip


def test_the_properties_of_a_plain_blob(client: Client, container: str) -> None:
    """B-LST-02."""
    made = put(client, f"/{container}/b", b"content")
    head = client.head(f"/{container}/b")
    found = properties(blob(page(client, container), "b"))
    assert list(found) == PLAIN
    assert found["Creation-Time"] == head["x-ms-creation-time"]
    assert found["Last-Modified"] == made["Last-Modified"]
    assert found["Etag"] == made.etag.strip('"')
    assert found["Content-Length"] == "7"
    assert found["Content-Type"] == "application/octet-stream"
    assert found["Content-MD5"] == md5(b"content")
    assert (found["BlobType"], found["ServerEncrypted"]) == ("BlockBlob", "true")
    assert (found["AccessTier"], found["AccessTierInferred"]) == ("Hot", "true")
    assert (found["LeaseStatus"], found["LeaseState"]) == ("unlocked", "available")
    for name in ("Content-Encoding", "Content-Language", "Cache-Control", "Content-Disposition"):
        assert found[name] == ""


def test_the_properties_of_a_rich_blob(server: Running, client: Client, container: str) -> None:
    """B-LST-02: all that was set, and the lease."""
    own = {
        "x-ms-blob-content-type": "text/<own>",
        "x-ms-blob-content-encoding": "gzip",
        "x-ms-blob-content-language": "de",
        "x-ms-blob-cache-control": "no-cache",
        "x-ms-blob-content-disposition": 'inline; filename="a&b"',
    }
    put(client, f"/{container}/b", headers={**own, "x-ms-access-tier": "Cool"})
    leased = Leased(server, client, f"/{container}/b")
    leased.acquire()
    found = properties(blob(page(client, container), "b"))
    assert [name for name in found if name in (*PLAIN, "LeaseDuration")] == [
        *[name for name in PLAIN[:-1] if name != "AccessTierInferred"],
        "LeaseDuration",
        "ServerEncrypted",
    ]
    assert found["Content-Type"] == "text/<own>"
    assert found["Content-Disposition"] == 'inline; filename="a&b"'
    assert (found["Content-Encoding"], found["Content-Language"]) == ("gzip", "de")
    assert (found["AccessTier"], found["Cache-Control"]) == ("Cool", "no-cache")
    lease = ("LeaseStatus", "LeaseState", "LeaseDuration")
    assert tuple(found[name] for name in lease) == ("locked", "leased", "fixed")
    server.advance(61)
    found = properties(blob(page(client, container), "b"))
    assert (found["LeaseStatus"], found["LeaseState"]) == ("unlocked", "expired")
    assert "LeaseDuration" not in found


@pytest.mark.parametrize(
    ("prefix", "kept"),
    [
        ("", ["A", "a", "a/1", "a/2", "ab", "b"]),
        ("a", ["a", "a/1", "a/2", "ab"]),
        ("a/", ["a/1", "a/2"]),
        ("a/1", ["a/1"]),
        ("c", []),
    ],
)
def test_a_prefix(client: Client, container: str, prefix: str, kept: list[str]) -> None:
    """B-LST-03."""
    fill(client, container, "A", "a", "a/1", "a/2", "ab", "b")
    assert names(page(client, container, prefix=prefix)) == kept


TREE = ["a", "a/1", "a/2", "a/b/3", "a0", "b/", "b//x", "c/1", "d"]


@pytest.mark.parametrize(
    ("prefix", "delimiter", "kept"),
    [
        ("", "/", ["a", "a/", "a0", "b/", "c/", "d"]),
        ("a", "/", ["a", "a/", "a0"]),
        ("a/", "/", ["a/1", "a/2", "a/b/"]),
        ("b/", "/", ["b/", "b//"]),
        ("", "/b", ["a", "a/1", "a/2", "a/b", "a0", "b/", "b//x", "c/1", "d"]),
        ("", "//", ["a", "a/1", "a/2", "a/b/3", "a0", "b/", "b//", "c/1", "d"]),
        ("e", "/", []),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5000])
def test_a_delimiter(
    client: Client, container: str, prefix: str, delimiter: str, kept: list[str], size: int
) -> None:
    """B-LST-04: each prefix is listed once, even over pages, and both kinds of rows count."""
    fill(client, container, *TREE)
    found: list[str] = []
    for part in pages(client, container, prefix=prefix, delimiter=delimiter, maxresults=size):
        assert len(rows(part)) <= size
        found += rows(part)
    assert found == kept


def test_which_rows_are_prefixes(client: Client, container: str) -> None:
    """B-LST-04."""
    fill(client, container, *TREE)
    root = page(client, container, delimiter="/")
    assert texts(root, "Blobs/BlobPrefix/Name") == ["a/", "b/", "c/"]
    assert names(root) == ["a", "a0", "d"]


@pytest.mark.parametrize("size", [1, 3, 10, 11])
def test_pages(client: Client, container: str, size: int) -> None:
    """B-LST-05."""
    found = [f"b{index}" for index in range(10)]
    fill(client, container, *found)
    parts = [names(part) for part in pages(client, container, maxresults=size)]
    assert all(len(part) <= size for part in parts)
    assert flat(parts) == found


@pytest.mark.parametrize("text", ["0", "-1"])
def test_page_sizes_out_of_range(client: Client, container: str, text: str) -> None:
    """B-CLS-04: List Blobs the same."""
    answer = client.get(f"/{container}?restype=container&comp=list&maxresults={text}")
    expect_names(answer, 400, "OutOfRangeQueryParameterValue", "maxresults")
    answer = client.get(f"/{container}?restype=container&comp=list&maxresults=x")
    expect_names(answer, 400, "InvalidQueryParameterValue", "maxresults")
    answer = client.get(f"/{container}?restype=container&comp=list&marker=other")
    expect_names(answer, 400, "InvalidQueryParameterValue", "marker")


def test_what_include_adds(client: Client, container: str) -> None:
    """B-LST-07."""
    put(client, f"/{container}/a", b"source", {"x-ms-meta-k": "v", "x-ms-tags": "t=1&u=2"})
    source = f"{client.url}/{container}/a"
    made = expect(client.put(f"/{container}/b", {"x-ms-copy-source": source}), 202)
    plain = page(client, container)
    for name in "ab":
        row = blob(plain, name)
        assert pairs(row) is None
        assert row.find("Tags") is None
        assert not [tag for tag in properties(row) if tag.startswith("Copy")]
    with_metadata = page(client, container, include="metadata")
    assert pairs(blob(with_metadata, "a")) == pairs(blob(with_metadata, "b")) == {"k": "v"}
    row = blob(page(client, container, include="tags"), "a")
    assert texts(row, "Tags/TagSet/Tag/Key") == ["t", "u"]
    assert texts(row, "Tags/TagSet/Tag/Value") == ["1", "2"]
    copied = properties(blob(page(client, container, include="copy"), "b"))
    head = client.head(f"/{container}/b")
    assert copied["CopyId"] == made["x-ms-copy-id"]
    assert (copied["CopyStatus"], copied["CopyProgress"]) == ("success", "6/6")
    assert copied["CopySource"] == head["x-ms-copy-source"] == source
    assert copied["CopyCompletionTime"] == head["x-ms-copy-completion-time"]


def test_include_snapshots(server: Running, client: Client, container: str) -> None:
    """B-LST-08."""
    fill(client, container, "a", "c")
    put(client, f"/{container}/b", b"first", {"x-ms-meta-n": "1"})
    first = snapshot(client, f"/{container}/b")
    put(client, f"/{container}/b", b"second!", {"x-ms-meta-n": "2"})
    second = snapshot(client, f"/{container}/b")
    put(client, f"/{container}/b", b"third")
    Leased(server, client, f"/{container}/b").acquire()
    assert names(page(client, container)) == ["a", "b", "c"]
    for size in (1, 2, 5000):
        found = []
        for part in pages(client, container, include="snapshots,metadata", maxresults=size):
            found += part.findall("Blobs/Blob")
        shown = [(row.findtext("Name"), row.findtext("Snapshot")) for row in found]
        assert shown == [("a", None), ("b", first), ("b", second), ("b", None), ("c", None)]
    lengths = [properties(row)["Content-Length"] for row in found]
    assert lengths == ["0", "5", "7", "5", "0"]
    assert [pairs(row) for row in found[1:3]] == [{"n": "1"}, {"n": "2"}]
    leases = [[tag for tag in properties(row) if tag.startswith("Lease")] for row in found]
    assert leases[1] == leases[2] == []
    assert leases[3] == ["LeaseStatus", "LeaseState", "LeaseDuration"]
    query = "restype=container&comp=list&delimiter=/&include=snapshots"
    answer = client.get(f"/{container}?{query}")
    expect_names(answer, 400, "InvalidQueryParameterValue", "include")


def test_include_uncommitted_blobs(client: Client, container: str) -> None:
    """B-LST-09."""
    fill(client, container, "a", "dir/there")
    for name in ("b", "dir/staged", "only/staged"):
        stage(client, f"/{container}/{name}", "1", b"x")
    assert names(page(client, container)) == ["a", "dir/there"]
    assert rows(page(client, container, delimiter="/")) == ["a", "dir/"]
    assert rows(page(client, container, delimiter="/", prefix="only")) == []
    everything = page(client, container, include="uncommittedblobs")
    assert names(everything) == ["a", "b", "dir/staged", "dir/there", "only/staged"]
    folded = page(client, container, include="uncommittedblobs", delimiter="/")
    assert rows(folded) == ["a", "b", "dir/", "only/"]
    found = properties(blob(everything, "b"))
    assert found["Content-Length"] == "0"
    assert not {"Last-Modified", "Etag", "Content-Type", "Content-MD5"} & set(found)


@pytest.mark.parametrize(
    "text",
    [
        "deleted,versions,deletedwithversions,immutabilitypolicy,legalhold,permissions",
        "metadata,tags,copy,snapshots,uncommittedblobs",
        "Metadata",
        "",
    ],
)
def test_words_of_include(client: Client, container: str, text: str) -> None:
    """B-LST-10."""
    fill(client, container, "a")
    root = page(client, container, include=text)
    assert names(root) == ["a"]
    if text.startswith("deleted"):
        assert list(properties(blob(root, "a"))) == PLAIN
        assert [child.tag for child in blob(root, "a")] == ["Name", "Properties", "OrMetadata"]


@pytest.mark.parametrize("text", ["all", "metadata,more", "snapshot"])
def test_another_word_of_include(client: Client, container: str, text: str) -> None:
    """B-LST-10."""
    answer = client.get(f"/{container}?restype=container&comp=list&include={text}")
    expect_names(answer, 400, "InvalidQueryParameterValue", "include")


ODD = ["a&b", "<a>", 'a"b', "a'b", " a ", "日本/é", "a%20b", "a+b", "a\u0301", "😀"]


@pytest.mark.parametrize("name", ODD)
def test_names_come_back(client: Client, container: str, name: str) -> None:
    """B-LST-11."""
    fill(client, container, name, f"{name}/x")
    assert names(page(client, container)) == [name, f"{name}/x"]
    assert names(page(client, container, prefix=f"{name}/")) == [f"{name}/x"]
    folded = page(client, container, delimiter="/", prefix=name)
    assert texts(folded, "Blobs/BlobPrefix/Name") == [f"{name}/"]
    parts = [names(part) for part in pages(client, container, maxresults=1)]
    assert flat(parts) == [name, f"{name}/x"]


@pytest.mark.parametrize("char", ["\ufffe", "\uffff"])
def test_names_that_xml_cannot_hold(client: Client, container: str, char: str) -> None:
    """B-LST-11."""
    fill(client, container, f"a{char}b c")
    (row,) = page(client, container).findall("Blobs/Blob/Name")
    assert row.attrib == {"Encoded": "true"}
    assert row.text == quote(f"a{char}b c", safe="")


def test_metadata_comes_back(client: Client, container: str) -> None:
    """B-LST-11."""
    put(client, f"/{container}/b", headers={"x-ms-meta-k": "<a>&\"b\" 'c'"})
    found = page(client, container, include="metadata")
    assert pairs(blob(found, "b")) == {"k": "<a>&\"b\" 'c'"}


def test_a_write_is_listed_at_once(client: Client, container: str) -> None:
    """B-LST-12."""
    target = f"/{container}/b"
    for _ in range(20):
        made = put(client, target)
        assert properties(blob(page(client, container), "b"))["Etag"] == made.etag.strip('"')
        changed = expect(client.put(f"{target}?comp=metadata"), 200)
        found = properties(blob(page(client, container), "b"))
        assert found["Etag"] == changed.etag.strip('"')
        expect(client.delete(target), 202)
        assert names(page(client, container)) == []


@pytest.mark.parametrize(
    ("start", "more", "kept"),
    [
        ("", {}, TREE),
        ("a/2", {}, ["a/2", "a/b/3", "a0", "b/", "b//x", "c/1", "d"]),
        ("a/20", {}, ["a/b/3", "a0", "b/", "b//x", "c/1", "d"]),
        ("d", {}, ["d"]),
        ("d0", {}, []),
        ("\uffff" * 1025, {}, []),
        ("A", {"prefix": "a/"}, ["a/1", "a/2", "a/b/3"]),
        ("a/2", {"prefix": "a/"}, ["a/2", "a/b/3"]),
        ("b", {"prefix": "a/"}, []),
        ("a/b/0", {"delimiter": "/"}, ["a/", "a0", "b/", "c/", "d"]),
        ("a/b/4", {"delimiter": "/"}, ["a0", "b/", "c/", "d"]),
        ("a/b/3", {"delimiter": "/", "prefix": "a/"}, ["a/b/"]),
        ("c0", {"delimiter": "/"}, ["d"]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5000])
def test_where_a_listing_starts(
    client: Client,
    container: str,
    start: str,
    more: dict[str, str],
    kept: list[str],
    size: int,
) -> None:
    """B-LST-13, B-LST-14: over pages too, of which later ones begin at their marker."""
    fill(client, container, *TREE)
    parts = list(pages(client, container, startFrom=start, maxresults=size, **more))
    assert flat([rows(part) for part in parts]) == kept


def test_of_a_marker_and_a_start_the_later_counts(client: Client, container: str) -> None:
    """B-LST-13."""
    fill(client, container, "a", "b", "c", "d")
    marker = page(client, container, maxresults=2).findtext("NextMarker") or ""
    for start, kept in (("a", ["c", "d"]), ("c", ["c", "d"]), ("d", ["d"]), ("e", [])):
        assert names(page(client, container, marker=marker, startFrom=start)) == kept


def test_a_start_with_an_old_version_and_what_is_included(client: Client, container: str) -> None:
    """B-LST-13."""
    fill(client, container, "a", "b", "c")
    for name in "ab":
        snapshot(client, f"/{container}/{name}")
    stage(client, f"/{container}/d", "1", b"x")
    query = "restype=container&comp=list&include=snapshots,uncommittedblobs&STARTFROM=b"
    for version in ("2009-09-19", "2019-12-12"):
        answer = expect(client.get(f"/{container}?{query}", {"x-ms-version": version}), 200)
        assert names(answer.xml) == ["b", "b", "c", "d"]


def test_a_missing_container(client: Client, new_name: Callable[[], str]) -> None:
    """B-CON-11."""
    answer = client.get(f"/{new_name()}?restype=container&comp=list")
    expect(answer, 404, "ContainerNotFound")
