"""Append blobs: rules B-APP-01 to B-APP-12 and B-APP-15 to B-APP-18."""

from __future__ import annotations

import pytest

from tests.conformance.answer import expect, expect_names, texts
from tests.conformance.appending import (
    MAX_SIZE,
    POSITION,
    PUT_APPEND,
    append,
    appended,
    count,
    create,
    seal,
)
from tests.conformance.blobs import body, md5, put, seen, snapshot
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.concurrent_clients import ConcurrentClients
from tests.conformance.leasing import IDS, A, Cell, Leased, table
from tests.conformance.running import Running

MIB = 1024 * 1024
OLD = "2022-11-01"
CELLS = [cell for cell in table("B-LOP") if cell.request.startswith("write")]


def test_what_creating_one_answers(client: Client, container: str) -> None:
    """B-APP-01 B-APP-09."""
    target = f"/{container}/b"
    headers = {
        "x-ms-blob-content-type": "text/plain",
        "Cache-Control": "no-cache",
        "x-ms-meta-a": "1",
        "x-ms-tags": "k=v",
    }
    made = create(client, target, headers)
    assert not made.names() & {"content-md5", "x-ms-content-crc64"}
    read = expect(client.get(target), 200)
    assert read.body == b""
    assert (read.etag, read["Last-Modified"]) == (made.etag, made["Last-Modified"])
    assert read["x-ms-blob-type"] == "AppendBlob"
    assert read["x-ms-blob-committed-block-count"] == "0"
    assert (read["Content-Type"], read["Cache-Control"]) == ("text/plain", "no-cache")
    assert (read["x-ms-meta-a"], read["x-ms-tag-count"]) == ("1", "1")
    assert not read.names() & {"content-md5", "x-ms-blob-sealed"}
    page = expect(client.get(f"/{container}?restype=container&comp=list"), 200)
    assert texts(page.xml, "Blobs/Blob/Properties/BlobType") == ["AppendBlob"]


def test_one_is_created_empty(client: Client, container: str) -> None:
    """B-APP-01."""
    target = f"/{container}/b"
    expect_names(client.put(target, PUT_APPEND, b"x"), 400, "InvalidHeaderValue", "Content-Length")
    chunked = {**PUT_APPEND, "Content-Length": None, "Transfer-Encoding": "chunked"}
    answer = client.put(target, chunked, b"1\r\nx\r\n0\r\n\r\n")
    expect_names(answer, 400, "InvalidHeaderValue", "Transfer-Encoding")
    for name in ("x-ms-blob-content-length", "x-ms-blob-sequence-number"):
        answer = client.put(target, {**PUT_APPEND, name: "512"})
        expect_names(answer, 400, "InvalidHeaderValue", name)
    without = client.put(target, {**PUT_APPEND, "Content-Length": None})
    expect(without, 411, "MissingContentLengthHeader")
    expect(client.head(target), 404, "BlobNotFound")


def test_what_an_append_answers(client: Client, container: str) -> None:
    """B-APP-02 B-APP-09."""
    target = f"/{container}/b"
    made = create(client, target)
    first = expect(append(client, target, b"123456789"), 201)
    assert first["x-ms-content-crc64"] == "iJh5CoYUi64="
    assert "content-md5" not in first.names()
    assert first["x-ms-request-server-encrypted"] == "true"
    assert first["x-ms-blob-append-offset"] == "0"
    assert first["x-ms-blob-committed-block-count"] == "1"
    assert int(first.etag[3:-1], 16) > int(made.etag[3:-1], 16)
    large = b"x" * 100_000
    second = expect(append(client, target, large, {"Content-MD5": md5(large)}), 201)
    assert second["Content-MD5"] == md5(large)
    assert "x-ms-content-crc64" not in second.names()
    assert second["x-ms-blob-append-offset"] == "9"
    read = expect(client.get(target), 200)
    assert read.body == b"123456789" + large
    assert (read.etag, read["Last-Modified"]) == (second.etag, second["Last-Modified"])
    assert count(client, target) == 2
    part = expect(client.get(target, {"Range": "bytes=7-10"}), 206)
    assert (part.body, part["Content-Range"]) == (b"89xx", "bytes 7-10/100009")
    ranged = {"Range": "bytes=7-10", "x-ms-range-get-content-md5": "true"}
    assert expect(client.get(target, ranged), 206)["Content-MD5"] == md5(b"89xx")


def test_32_appenders_at_once(client: Client, container: str) -> None:
    """B-APP-03: small and large blocks."""
    target = f"/{container}/b"
    create(client, target)

    def act(one: Client, number: int) -> list[tuple[int, int, bytes]]:
        found = []
        for turn in range(8):
            data = b"%02d/%d;" % (number, turn) * (1 + (number * turn) % 7 * 400)
            found.append((*appended(one, target, data), data))
        return found

    with ConcurrentClients(client) as clients:
        answers = [one for found in clients.run(act) for one in found]
    whole, end = body(client, target), 0
    for number, (offset, blocks, data) in enumerate(sorted(answers, key=lambda one: one[1])):
        assert (offset, blocks) == (end, number + 1)
        assert whole[offset : offset + len(data)] == data
        end += len(data)
    assert (len(whole), count(client, target)) == (end, len(answers))


def test_32_appenders_at_one_position(client: Client, container: str) -> None:
    """B-APP-04."""
    target = f"/{container}/b"
    create(client, target)
    for turn in range(4):

        def act(one: Client, number: int, at: str = str(2 * turn)) -> tuple[int, str | None]:
            answer = append(one, target, b"%02d" % number, {POSITION: at})
            return answer.status, answer.code

        with ConcurrentClients(client) as clients:
            found = clients.run(act)
        assert found.count((201, None)) == 1
        assert found.count((412, "AppendPositionConditionNotMet")) == 31
    assert len(body(client, target)) == 8


def test_conditions_of_appends(client: Client, container: str) -> None:
    """B-APP-04 B-APP-05."""
    target = f"/{container}/b"
    create(client, target)
    assert appended(client, target, b"12345", {POSITION: "0", MAX_SIZE: "5"}) == (0, 1)
    before = seen(client, target)
    for given, code in (
        ({POSITION: "0"}, "AppendPositionConditionNotMet"),
        ({POSITION: "6"}, "AppendPositionConditionNotMet"),
        ({MAX_SIZE: "5"}, "MaxBlobSizeConditionNotMet"),
        ({MAX_SIZE: "0", POSITION: "0"}, "MaxBlobSizeConditionNotMet"),
        ({POSITION: "0", "If-Match": '"0x1"'}, "ConditionNotMet"),
        ({POSITION: "0", "Content-MD5": md5(b"other")}, "AppendPositionConditionNotMet"),
    ):
        expect(append(client, target, b"x", given), 412, code)
    for name in (POSITION, MAX_SIZE):
        for value in ("-1", "x", "1.5", "9" * 30):
            answer = append(client, target, b"x", {name: value})
            expect_names(answer, 400, "InvalidHeaderValue", name)
    assert seen(client, target) == before
    etag = client.head(target).etag
    assert appended(client, target, b"x", {MAX_SIZE: "6", "If-Match": etag}) == (5, 2)


def test_blocks_that_are_refused(client: Client, container: str) -> None:
    """B-APP-06."""
    target = f"/{container}/b"
    create(client, target)
    before = seen(client, target)
    expect_names(append(client, target, b""), 400, "InvalidHeaderValue", "Content-Length")
    expect(append(client, target, b"x", {"Content-MD5": md5(b"y")}), 400, "Md5Mismatch")
    wrong = {"x-ms-content-crc64": "AAAAAAAAAAA="}
    expect(append(client, target, b"x", wrong), 400, "Crc64Mismatch")
    both = {**wrong, "Content-MD5": md5(b"x")}
    expect(append(client, target, b"x", both), 400, "BothCrc64AndMd5HeaderPresent")
    without = client.put(f"{target}?comp=appendblock", {"Content-Length": None})
    expect(without, 411, "MissingContentLengthHeader")
    assert seen(client, target) == before


@pytest.mark.parametrize(("version", "mib"), [("2022-11-02", 100), (OLD, 4)])
def test_the_size_of_a_block(client: Client, container: str, version: str, mib: int) -> None:
    """B-APP-06: refused before any of it is sent."""
    target = f"/{container}/b"
    create(client, target)
    headers = {"x-ms-version": version}
    sending = client.begin("PUT", f"{target}?comp=appendblock", headers, mib * MIB + 1)
    answer = sending.finish()
    assert (answer.status, answer.error["Code"]) == (413, "RequestBodyTooLarge")
    assert answer.error["MaxLimit"] == str(mib * MIB)
    if version == OLD:
        assert appended(client, target, bytes(4 * MIB), headers) == (0, 1)


def test_the_last_block(client: Client, container: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """B-APP-07: the limit itself is proven in tests/proof."""
    monkeypatch.setattr("strongroom.limits.COMMITTED_BLOCKS_MAX", 3)
    target = f"/{container}/b"
    create(client, target)
    for number in range(3):
        assert appended(client, target, b"x") == (number, number + 1)
    expect(append(client, target, b"x"), 409, "BlockCountExceedsLimit")
    assert body(client, target) == b"xxx"


def test_blobs_that_cannot_be_appended_to(client: Client, container: str) -> None:
    """B-APP-08."""
    target = f"/{container}/b"
    expect(append(client, target, b"x"), 404, "BlobNotFound")
    expect(seal(client, target), 404, "BlobNotFound")
    expect(client.put(f"{target}?comp=block&blockid=QQ==", {}, b"x"), 201)
    expect(append(client, target, b"x"), 404, "BlobNotFound")
    put(client, target)
    for headers in ({}, {"If-Match": '"0x1"'}, {"x-ms-lease-id": A}):
        expect(append(client, target, b"x", headers), 409, "InvalidBlobType")
        expect(seal(client, target, headers), 409, "InvalidBlobType")


def test_an_append_blob_has_no_block_list(client: Client, container: str) -> None:
    """B-APP-08."""
    target = f"/{container}/b"
    create(client, target)
    appended(client, target, b"x")
    before = seen(client, target)
    expect(client.put(f"{target}?comp=block&blockid=QQ==", {}, b"x"), 409, "InvalidBlobType")
    answer = client.put(f"{target}?comp=blocklist", {}, b"<BlockList/>")
    expect(answer, 409, "InvalidBlobType")
    expect(client.get(f"{target}?comp=blocklist"), 409, "InvalidBlobType")
    assert seen(client, target) == before


def test_sealing(client: Client, container: str) -> None:
    """B-APP-10 B-APP-11."""
    target = f"/{container}/b"
    create(client, target)
    appended(client, target, b"text")
    before = client.head(target)
    expect(seal(client, target, {POSITION: "3"}), 412, "AppendPositionConditionNotMet")
    expect(seal(client, target, {"If-Match": '"0x1"'}), 412, "ConditionNotMet")
    answer = seal(client, target, {MAX_SIZE: "9"})
    expect(answer, 400, "ConditionHeadersNotSupported")
    assert "x-ms-blob-sealed" not in client.head(target).names()
    for headers in ({POSITION: "4", "If-Match": before.etag}, {}):
        sealed = expect(seal(client, target, headers), 200)
        assert sealed["x-ms-blob-sealed"] == "true"
        assert (sealed.etag, sealed["Last-Modified"]) == (before.etag, before["Last-Modified"])
    expect(append(client, target, b"x"), 409, "BlobIsSealed")
    for read in (client.get(target), client.head(target)):
        assert expect(read, 200)["x-ms-blob-sealed"] == "true"
    page = expect(client.get(f"/{container}?restype=container&comp=list"), 200)
    assert texts(page.xml, "Blobs/Blob/Properties/Sealed") == ["true"]


def test_what_a_sealed_blob_allows(client: Client, container: str) -> None:
    """B-APP-11."""
    target = f"/{container}/b"
    create(client, target)
    expect(seal(client, target), 200)
    expect(client.put(f"{target}?comp=metadata", {"x-ms-meta-a": "1"}), 200)
    expect(client.put(f"{target}?comp=properties", {"x-ms-blob-content-type": "a/b"}), 200)
    ticks = snapshot(client, target)
    assert client.head(f"{target}?snapshot={ticks}")["x-ms-blob-sealed"] == "true"
    assert client.head(target)["x-ms-blob-sealed"] == "true"
    create(client, target)
    assert "x-ms-blob-sealed" not in client.head(target).names()
    assert appended(client, target, b"x") == (0, 1)
    assert client.head(f"{target}?snapshot={ticks}")["x-ms-blob-sealed"] == "true"
    expect(client.delete(target, {"x-ms-delete-snapshots": "include"}), 202)


def test_snapshots(client: Client, container: str) -> None:
    """B-APP-12."""
    target = f"/{container}/b"
    create(client, target)
    taken = []
    for number in range(4):
        taken.append((snapshot(client, target), body(client, target), number))
        appended(client, target, b"%d" % number * (1 + 9000 * number))
    for ticks, data, blocks in taken:
        at = f"{target}?snapshot={ticks}"
        assert body(client, at) == data
        assert count(client, at) == blocks


def test_one_type_over_another(client: Client, container: str) -> None:
    """B-APP-15."""
    target = f"/{container}/b"
    put(client, target, b"text", {"x-ms-access-tier": "Cool"})
    create(client, target)
    appended(client, target, b"log")
    assert client.head(target)["x-ms-access-tier-inferred"] == "true"
    put(client, target, b"text")
    assert client.head(target)["x-ms-blob-type"] == "BlockBlob"
    snapshot(client, target)
    expect(client.put(target, PUT_APPEND), 409, "SnapshotsPresent")
    put(client, target, b"same type")
    other = f"/{container}/log"
    create(client, other)
    snapshot(client, other)
    expect(client.put(other, PUT_BLOB, b"x"), 409, "SnapshotsPresent")
    create(client, other)


def test_tiers(client: Client, container: str) -> None:
    """B-APP-16."""
    target = f"/{container}/b"
    code = "AccessTierNotSupportedForBlobType"
    tier = {"x-ms-access-tier": "Cool"}
    expect(client.put(target, {**PUT_APPEND, **tier}), 400, code)
    create(client, target)
    expect(client.put(f"{target}?comp=tier", tier), 400, code)
    source = {**tier, "x-ms-copy-source": client.url + target}
    expect(client.put(f"/{container}/copy", source), 400, code)
    assert client.head(target)["x-ms-access-tier-inferred"] == "true"


def test_an_md5_of_other_content_goes(client: Client, container: str) -> None:
    """B-APP-17."""
    target = f"/{container}/b"
    create(client, target, {"x-ms-blob-content-md5": md5(b"")})
    assert client.head(target)["Content-MD5"] == md5(b"")
    appended(client, target, b"x")
    assert "content-md5" not in client.head(target).names()


def test_versions_without_append_blobs(client: Client, container: str) -> None:
    """B-APP-18."""
    target = f"/{container}/b"
    create(client, target)
    old = {"x-ms-version": "2014-02-14"}
    for answer in (
        client.put(target, {**PUT_APPEND, **old}),
        append(client, target, b"x", old),
        seal(client, target, old),
    ):
        assert (answer.status, answer.error["Code"]) == (409, "FeatureVersionMismatch")
    assert count(client, target) == 0


@pytest.mark.parametrize("seals", [False, True], ids=["append", "seal"])
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_leases(server: Running, client: Client, container: str, cell: Cell, seals: bool) -> None:
    """B-LOP-01 B-LOP-02 B-LOP-03 B-LOP-07."""
    target = f"/{container}/b"
    create(client, target)
    leased = Leased(server, client, target)
    leased.into(cell.state)
    word = cell.request.split()[1]
    headers = {} if word == "without" else {"x-ms-lease-id": IDS[word]}
    answer = seal(client, target, headers) if seals else append(client, target, b"x", headers)
    if cell.outcome.startswith("pass"):
        expect(answer, 200 if seals else 201)
        leased.check(cell.after)
    else:
        assert cell.status is not None
        expect(answer, cell.status, cell.code)
        leased.check(cell.state)
        assert count(client, target) == 0


def test_tags_as_a_condition_of_appends(client: Client, container: str) -> None:
    """B-CWR-09."""
    target = f"/{container}/b"
    create(client, target, {"x-ms-tags": "k=v"})
    wrong = {"x-ms-if-tags": "\"k\" = 'other'"}
    expect(append(client, target, b"x", wrong), 412, "ConditionNotMet")
    assert appended(client, target, b"x", {"x-ms-if-tags": "\"k\" = 'v'"}) == (0, 1)
