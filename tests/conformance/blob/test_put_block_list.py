"""Put Block List and Get Block List: rules B-BLK-10 to B-BLK-18."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from tests.conformance.answer import RFC1123, expect, expect_names, metadata, texts
from tests.conformance.blobs import (
    block_list,
    blocks,
    body,
    commit,
    encoded,
    md5,
    put,
    seen,
    snapshot,
    stage,
)
from tests.conformance.client import Client
from tests.conformance.leasing import A, Leased
from tests.conformance.running import Running


def test_the_content_is_the_list(client: Client, container: str) -> None:
    """B-BLK-10."""
    target = f"/{container}/b"
    for name in "abc":
        stage(client, target, name, name.encode() * 3)
    made = commit(client, target, ["c", "a", "c", "b"])
    assert RFC1123.fullmatch(made["Last-Modified"])
    read = expect(client.get(target), 200)
    assert (read.body, read.etag) == (b"cccaaacccbbb", made.etag)
    assert blocks(client, target) == (["c", "a", "c", "b"], [])


def test_large_and_small_blocks_make_one_blob(client: Client, container: str) -> None:
    """B-BLK-10."""
    target = f"/{container}/b"
    parts = {"1": b"x" * 3_000_000, "2": b"y", "3": bytes(range(256)) * 40}
    for name, part in parts.items():
        stage(client, target, name, part)
    commit(client, target, ["1", "2", "3"])
    whole = b"".join(parts.values())
    assert body(client, target) == whole
    some = client.get(target, {"Range": "bytes=2999990-3000010"})
    assert expect(some, 206).body == whole[2_999_990:3_000_011]


# (kind, id) -> the content found, or None; 1: committed only, 2: both, 3: uncommitted only.
WHERE = {
    ("Committed", "1"): b"committed 1",
    ("Committed", "2"): b"committed 2",
    ("Committed", "3"): None,
    ("Uncommitted", "1"): None,
    ("Uncommitted", "2"): b"staged 2",
    ("Uncommitted", "3"): b"staged 3",
    ("Latest", "1"): b"committed 1",
    ("Latest", "2"): b"staged 2",
    ("Latest", "3"): b"staged 3",
    ("Latest", "4"): None,
}


@pytest.mark.parametrize("entry", WHERE, ids=lambda entry: " ".join(entry))
def test_where_a_block_is_looked_for(
    client: Client, container: str, entry: tuple[str, str]
) -> None:
    """B-BLK-11."""
    target = f"/{container}/b"
    for name in "12":
        stage(client, target, name, f"committed {name}".encode())
    commit(client, target, ["1", "2"])
    for name in "23":
        stage(client, target, name, f"staged {name}".encode())
    before = seen(client, target)
    answer = client.put(f"{target}?comp=blocklist", {}, block_list(entry))
    if WHERE[entry] is None:
        expect(answer, 400, "InvalidBlockList")
        assert seen(client, target) == before
        assert blocks(client, target) == (["1", "2"], ["2", "3"])
    else:
        expect(answer, 201)
        assert body(client, target) == WHERE[entry]


@pytest.mark.parametrize("text", ["!!!", "A", encoded("x" * 65), ""])
def test_an_id_that_is_none(client: Client, container: str, text: str) -> None:
    """B-BLK-11: the id is not base64."""
    target = f"/{container}/b"
    put(client, target, b"old")
    before = seen(client, target)
    xml = f"<BlockList><Latest>{text}</Latest></BlockList>".encode()
    answer = client.put(f"{target}?comp=blocklist", {}, xml)
    expect(answer, 400, "InvalidBlockList")
    assert seen(client, target) == before


def test_how_long_a_list_may_be(client: Client, container: str) -> None:
    """B-BLK-12."""
    target = f"/{container}/b"
    stage(client, target, "1", b"x")
    longer = client.put(f"{target}?comp=blocklist", {}, block_list(*["1"] * 50_001))
    expect(longer, 400, "BlockListTooLong")
    commit(client, target, ["1"] * 50_000)
    assert client.head(target)["Content-Length"] == "50000"
    empty = commit(client, target, [])
    read = expect(client.get(target), 200)
    assert (read.body, read.etag) == (b"", empty.etag)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no xml",
        b"<BlockList>",
        b"<Blocks></Blocks>",
        b"<BlockList><Newest>MQ==</Newest></BlockList>",
        b"<BlockList><Latest><Latest>MQ==</Latest></Latest></BlockList>",
        b"\xff\xfe<BlockList/>",
    ],
)
def test_bodies_that_are_refused(client: Client, container: str, text: bytes) -> None:
    """B-BLK-13."""
    stage(client, f"/{container}/b", "1", b"x")
    answer = client.put(f"/{container}/b?comp=blocklist", {}, text)
    expect(answer, 400, "InvalidXmlDocument")


def test_checksums_are_of_the_xml(client: Client, container: str) -> None:
    """B-BLK-14."""
    target = f"/{container}/b"
    stage(client, target, "1", b"x")
    xml = block_list("1")
    wrong = client.put(f"{target}?comp=blocklist", {"Content-MD5": md5(b"x")}, xml)
    expect(wrong, 400, "Md5Mismatch")
    crc = {"x-ms-content-crc64": "AAAAAAAAAAA="}
    expect(client.put(f"{target}?comp=blocklist", crc, xml), 400, "Crc64Mismatch")
    made = commit(client, target, ["1"], {"Content-MD5": md5(xml)})
    assert made["Content-MD5"] == md5(xml)
    assert client.head(target).get("Content-MD5") is None
    plain = commit(client, target, ["1"])
    right = {"x-ms-content-crc64": plain["x-ms-content-crc64"]}
    assert len(base64.b64decode(right["x-ms-content-crc64"])) == 8
    commit(client, target, ["1"], right)
    for text in (md5(b"anything"), "AQIDBA=="):
        commit(client, target, ["1"], {"x-ms-blob-content-md5": text})
        assert client.head(target)["Content-MD5"] == text


def test_properties_come_from_the_blobs_own_headers(client: Client, container: str) -> None:
    """B-BLK-15."""
    target = f"/{container}/b"
    stage(client, target, "1", b"x")
    commit(client, target, ["1"], {"Content-Type": "text/xml", "Content-Language": "de"})
    found = client.head(target)
    assert found["Content-Type"] == "application/octet-stream"
    assert found.get("Content-Language") is None
    own = {"x-ms-blob-content-type": "text/own", "x-ms-blob-cache-control": "own"}
    commit(client, target, ["1"], {"Content-Type": "text/xml", **own})
    found = client.head(target)
    assert (found["Content-Type"], found["Cache-Control"]) == ("text/own", "own")


def test_a_list_replaces_what_belongs_to_the_content(
    server: Running, client: Client, container: str
) -> None:
    """B-BLK-16."""
    target = f"/{container}/b"
    rich = {"x-ms-blob-content-type": "text/own", "x-ms-meta-a": "1", "x-ms-tags": "k=v"}
    put(client, target, b"first", rich)
    kept = snapshot(client, target)
    Leased(server, client, target).acquire()
    id_given = {"x-ms-lease-id": A}
    staged = client.put(f"{target}?comp=block&blockid=MQ%3D%3D", id_given, b"x")
    expect(staged, 201)
    commit(client, target, ["1"], {**id_given, "x-ms-meta-b": "2"})
    found = client.head(target)
    assert metadata(found) == {"b": "2"}
    assert found["Content-Type"] == "application/octet-stream"
    assert found.get("x-ms-tag-count") is None
    assert found["x-ms-lease-state"] == "leased"
    assert body(client, f"{target}?snapshot={kept}") == b"first"
    expect(client.delete(target, id_given), 409, "SnapshotsPresent")
    tags = {**id_given, "x-ms-tags": "n=1&m=2", "x-ms-access-tier": "Cool"}
    commit(client, target, ["1"], tags)
    found = client.head(target)
    assert (found["x-ms-tag-count"], found["x-ms-access-tier"]) == ("2", "Cool")


def test_what_get_block_list_shows(client: Client, container: str) -> None:
    """B-BLK-17."""
    target = f"/{container}/b"
    for name in "ab":
        stage(client, target, name, b"committed")
    made = commit(client, target, ["b", "a"])
    for name in "zyx":
        stage(client, target, name, b"staged")
    for kind, parts in {
        "": ["CommittedBlocks"],
        "&blocklisttype=committed": ["CommittedBlocks"],
        "&blocklisttype=uncommitted": ["UncommittedBlocks"],
        "&blocklisttype=all": ["CommittedBlocks", "UncommittedBlocks"],
    }.items():
        answer = expect(client.get(f"{target}?comp=blocklist{kind}"), 200)
        assert answer.xml.tag == "BlockList"
        assert [part.tag for part in answer.xml] == parts
        assert answer["x-ms-blob-content-length"] == "18"
        assert answer["Content-Type"].startswith("application/xml")
        assert answer.etag == made.etag
        assert answer["Last-Modified"] == made["Last-Modified"]
    assert blocks(client, target) == (["b", "a"], ["x", "y", "z"])
    sizes = texts(client.get(f"{target}?comp=blocklist").xml, "CommittedBlocks/Block/Size")
    assert sizes == ["9", "9"]
    wrong = client.get(f"{target}?comp=blocklist&blocklisttype=both")
    expect_names(wrong, 400, "InvalidQueryParameterValue", "blocklisttype")


def test_the_order_of_uncommitted_blocks(client: Client, container: str) -> None:
    """B-BLK-17: of the ids as they are written, not of their bytes."""
    target = f"/{container}/b"
    for text in ("AA==", "/w==", "+A==", "aA==", "0A=="):
        answer = client.put(f"{target}?comp=block&blockid={quote(text, safe='')}", {}, b"x")
        expect(answer, 201)
    root = client.get(f"{target}?comp=blocklist&blocklisttype=uncommitted").xml
    found = texts(root, "UncommittedBlocks/Block/Name")
    assert found == ["+A==", "/w==", "0A==", "AA==", "aA=="]


def test_block_lists_of_other_blobs(client: Client, container: str) -> None:
    """B-BLK-18."""
    target = f"/{container}/b"
    stage(client, target, "1", b"x")
    only = expect(client.get(f"{target}?comp=blocklist&blocklisttype=all"), 200)
    assert not only.names() & {"etag", "last-modified"}
    assert only["x-ms-blob-content-length"] == "0"
    assert blocks(client, target) == ([], ["1"])
    commit(client, target, ["1"])
    taken = snapshot(client, target)
    put(client, target, b"whole")
    whole = expect(client.get(f"{target}?comp=blocklist&blocklisttype=all"), 200)
    assert blocks(client, target) == ([], [])
    assert whole.etag == client.head(target).etag
    assert blocks(client, f"{target}?snapshot={taken}") == (["1"], [])
