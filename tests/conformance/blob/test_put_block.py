"""Put Block and uncommitted blocks: rules B-BLK-01 to B-BLK-09."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from strongroom import limits
from tests.conformance.answer import expect, expect_names, texts
from tests.conformance.blobs import (
    block_list,
    block_target,
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
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.running import Running

WEEK_S = 7 * 24 * 3600


def listed(client: Client, container: str, include: str = "") -> list[str]:
    """The names that List Blobs shows."""
    more = f"&include={include}" if include else ""
    answer = client.get(f"/{container}?restype=container&comp=list{more}")
    return texts(expect(answer, 200).xml, "Blobs/Blob/Name")


def test_what_put_block_answers(client: Client, container: str) -> None:
    """B-BLK-01."""
    target = f"/{container}/b"
    plain = stage(client, target, "1", b"123456789")
    assert plain["x-ms-content-crc64"] == "iJh5CoYUi64="
    assert not plain.names() & {"etag", "last-modified", "content-md5"}
    with_md5 = client.put(block_target(target, "2"), {"Content-MD5": md5(b"abc")}, b"abc")
    assert expect(with_md5, 201)["Content-MD5"] == md5(b"abc")
    assert not with_md5.names() & {"etag", "last-modified", "x-ms-content-crc64"}


def test_a_blob_of_uncommitted_blocks_only(client: Client, container: str) -> None:
    """B-BLK-02."""
    target = f"/{container}/b"
    stage(client, target, "1", b"x")
    for comp in ("", "?comp=metadata"):
        expect(client.get(target + comp), 404, "BlobNotFound")
        expect(client.head(target + comp), 404, "BlobNotFound")
    assert listed(client, container) == []
    assert listed(client, container, "uncommittedblobs") == ["b"]
    commit(client, target, ["1"])
    assert listed(client, container) == ["b"]


@pytest.mark.parametrize("text", ["", "!!!!", "A", "AAA", encoded("x" * 65), quote("héé", safe="")])
def test_block_ids_that_are_refused(client: Client, container: str, text: str) -> None:
    """B-BLK-03."""
    target = f"/{container}/b?comp=block&blockid={quote(text, safe='%')}"
    answer = client.put(target, {}, b"x")
    expect_names(answer, 400, "InvalidQueryParameterValue", "blockid")


def test_a_block_id_is_needed(client: Client, container: str) -> None:
    """B-BLK-03."""
    answer = client.put(f"/{container}/b?comp=block", {}, b"x")
    expect_names(answer, 400, "MissingRequiredQueryParameter", "blockid")
    stage(client, f"/{container}/b", "x" * 64, b"x")


def test_block_ids_of_a_blob_have_one_length(client: Client, container: str) -> None:
    """B-BLK-04."""
    target = f"/{container}/b"
    stage(client, target, "aa", b"1")
    for name in ("a", "aaa"):
        answer = client.put(block_target(target, name), {}, b"2")
        expect(answer, 400, "InvalidBlobOrBlock")
    stage(client, target, "bb", b"2")
    commit(client, target, ["aa", "bb"])
    # Only uncommitted blocks count.
    stage(client, target, "long", b"3")


def test_the_last_body_of_an_id_wins(client: Client, container: str) -> None:
    """B-BLK-05."""
    target = f"/{container}/b"
    stage(client, target, "1", b"first")
    stage(client, target, "1", b"second, longer")
    assert blocks(client, target) == ([], ["1"])
    commit(client, target, ["1"])
    assert body(client, target) == b"second, longer"


def test_a_block_has_a_body_and_its_checksums(client: Client, container: str) -> None:
    """B-BLK-06."""
    target = block_target(f"/{container}/b", "1")
    expect_names(client.put(target), 400, "InvalidHeaderValue", "Content-Length")
    wrong = client.put(target, {"Content-MD5": md5(b"other")}, b"x")
    assert expect(wrong, 400, "Md5Mismatch").error["ServerCalculatedMd5"] == md5(b"x")
    expect(client.put(target, {"Content-MD5": "eA=="}, b"x"), 400, "InvalidMd5")
    crc = {"x-ms-content-crc64": "iJh5CoYUi64="}
    expect(client.put(target, crc, b"x"), 400, "Crc64Mismatch")
    both = client.put(target, {**crc, "Content-MD5": md5(b"123456789")}, b"123456789")
    expect(both, 400, "BothCrc64AndMd5HeaderPresent")
    assert listed(client, container, "uncommittedblobs") == []
    expect(client.put(target, crc, b"123456789"), 201)


def test_over_a_committed_blob_nothing_shows(client: Client, container: str) -> None:
    """B-BLK-07."""
    target = f"/{container}/b"
    put(client, target, b"committed", {"x-ms-meta-a": "1"})
    before = seen(client, target)
    stage(client, target, "1", b"staged")
    assert seen(client, target) == before


@pytest.fixture
def aging(tmp_path: Path) -> Iterator[Running]:
    """A durable server of its own, whose time a test may move by weeks."""
    running = Running(tmp_path / "data")
    yield running
    running.stop()


def test_uncommitted_blocks_vanish_after_a_week(aging: Running) -> None:
    """B-BLK-08."""
    client = aging.client()
    expect(client.put("/c?restype=container"), 400, "OutOfRangeInput")
    expect(client.put("/ccc?restype=container"), 201)
    put(client, "/ccc/both", b"committed")
    for name in ("only", "both", "touched"):
        stage(client, f"/ccc/{name}", "1", b"x")
    aging.advance(WEEK_S - 10)
    stage(client, "/ccc/touched", "2", b"y")
    assert listed(client, "ccc", "uncommittedblobs") == ["both", "only", "touched"]
    assert blocks(client, "/ccc/both")[1] == ["1"]
    aging.advance(20)
    until = time.monotonic() + 20
    while (
        listed(client, "ccc", "uncommittedblobs") != ["both", "touched"]
        or (blocks(client, "/ccc/both")[1])
    ):
        assert time.monotonic() < until, listed(client, "ccc", "uncommittedblobs")
        time.sleep(0.02)
    assert body(client, "/ccc/both") == b"committed"
    expect(client.get("/ccc/only?comp=blocklist&blocklisttype=all"), 404, "BlobNotFound")
    gone = client.put("/ccc/both?comp=blocklist", {}, block_list("1"))
    expect(gone, 400, "InvalidBlockList")
    gone = client.put("/ccc/only?comp=blocklist", {}, block_list("1"))
    expect(gone, 400, "InvalidBlockList")
    # Another length of ids is free again.
    stage(client, "/ccc/both", "long", b"x")
    stage(client, "/ccc/only", "long", b"x")
    assert blocks(client, "/ccc/touched")[1] == ["1", "2"]
    commit(client, "/ccc/touched", ["1", "2"])
    assert body(client, "/ccc/touched") == b"xy"
    client.close()


@pytest.mark.parametrize("by", ["put blob", "copy", "block list"])
def test_what_drops_uncommitted_blocks_at_once(client: Client, container: str, by: str) -> None:
    """B-BLK-08."""
    target = f"/{container}/b"
    stage(client, target, "1", b"listed")
    stage(client, target, "2", b"unlisted")
    if by == "put blob":
        put(client, target)
    elif by == "copy":
        put(client, f"/{container}/source")
        source = {"x-ms-copy-source": f"{client.url}/{container}/source"}
        expect(client.put(target, source), 202)
    else:
        commit(client, target, ["1"])
    assert blocks(client, target)[1] == []
    again = client.put(f"{target}?comp=blocklist", {}, block_list(("Uncommitted", "2")))
    expect(again, 400, "InvalidBlockList")


def test_the_count_of_uncommitted_blocks(
    client: Client, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B-BLK-09: with a limit small enough to be reached here."""
    assert limits.UNCOMMITTED_BLOCKS_MAX == 100_000
    monkeypatch.setattr(limits, "UNCOMMITTED_BLOCKS_MAX", 3)
    target = f"/{container}/b"
    for name in "123":
        stage(client, target, name, b"x")
    answer = client.put(block_target(target, "4"), {}, b"x")
    expect(answer, 409, "BlockCountExceedsLimit")
    assert blocks(client, target) == ([], ["1", "2", "3"])
    put(client, target)
    stage(client, target, "4", b"x")


def test_a_block_beside_snapshots(client: Client, container: str) -> None:
    """B-BLK-07: nor does a snapshot show it."""
    target = f"/{container}/b"
    expect(client.put(target, PUT_BLOB, b"old"), 201)
    taken = snapshot(client, target)
    stage(client, target, "1", b"x")
    assert blocks(client, f"{target}?snapshot={taken}") == ([], [])
