"""Page blobs written and read: rules B-PAG-01 to B-PAG-12, B-PAG-17, B-PAG-18, B-PAG-20."""

from __future__ import annotations

import base64
import hashlib

import pytest

from strongroom.engines.checksum import crc64
from strongroom.values import crc64_text
from tests.conformance.answer import expect, expect_names, texts
from tests.conformance.blobs import block_target, body, put, snapshot
from tests.conformance.client import Client
from tests.conformance.copying import SYNC, abort, copy, ended, held, source_url
from tests.conformance.leasing import A, B, Leased
from tests.conformance.pages import GIB, PAGE, clear, create, listed, ranges, send, write
from tests.conformance.running import Running

MIB = 1024 * 1024
TIB = 1024 * GIB


def md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def read(client: Client, target: str, first: int, length: int) -> bytes:
    answer = client.get(target, {"x-ms-range": f"bytes={first}-{first + length - 1}"})
    return expect(answer, 206).body


@pytest.mark.parametrize("size", [0, PAGE, TIB, 8 * TIB])
def test_a_new_page_blob_of_any_length_reads_as_zeros(
    client: Client, container: str, size: int
) -> None:
    """B-PAG-01."""
    target = f"/{container}/b"
    made = create(client, target, size, {"x-ms-blob-content-type": "a/b", "x-ms-meta-k": "v"})
    found = expect(client.head(target), 200)
    assert (found.etag, found["Content-Length"]) == (made.etag, str(size))
    assert (found["x-ms-blob-type"], found["x-ms-blob-sequence-number"]) == ("PageBlob", "0")
    assert (found["Content-Type"], found["x-ms-meta-k"]) == ("a/b", "v")
    assert found.get("Content-MD5") is None and found.get("x-ms-access-tier") is None
    assert ranges(client, target) == []
    if size:
        assert read(client, target, size - PAGE, PAGE) == bytes(PAGE)


def test_a_page_blob_keeps_the_number_and_md5_that_it_was_given(
    client: Client, container: str
) -> None:
    """B-PAG-01, B-PAG-06."""
    target = f"/{container}/b"
    own = {"x-ms-blob-sequence-number": str(2**63 - 1), "x-ms-blob-content-md5": md5(b"any")}
    create(client, target, 4 * PAGE, own)
    write(client, target, 0, b"x" * PAGE)
    found = client.head(target)
    assert found["x-ms-blob-sequence-number"] == str(2**63 - 1)
    assert found["Content-MD5"] == md5(b"any")


def test_what_put_blob_refuses_of_a_page_blob(client: Client, container: str) -> None:
    """B-PAG-02."""
    target, own = f"/{container}/b", {"x-ms-blob-type": "PageBlob"}
    length, number = "x-ms-blob-content-length", "x-ms-blob-sequence-number"
    with_body = client.put(target, {**own, length: "512"}, b"x" * 512)
    expect_names(with_body, 400, "InvalidHeaderValue", "Content-Length")
    expect_names(client.put(target, own), 400, "MissingRequiredHeader", length)
    for value in ("511", str(8 * TIB + PAGE), "-512", "x", str(2**64)):
        expect_names(client.put(target, {**own, length: value}), 400, "InvalidHeaderValue", length)
    for value in ("-1", str(2**63), "x"):
        sent = {**own, length: "512", number: value}
        expect_names(client.put(target, sent), 400, "InvalidHeaderValue", number)
    expect(client.head(target), 404, "BlobNotFound")


def test_operations_of_another_type_are_refused_before_lease_and_conditions(
    server: Running, client: Client, container: str
) -> None:
    """B-PAG-03."""
    page, block = f"/{container}/page", f"/{container}/block"
    create(client, page, PAGE)
    put(client, block)
    for target in (page, block):
        Leased(server, client, target).acquire()
    unmet = {"If-Match": '"0x1"'}
    empty = b"<?xml version='1.0'?><BlockList/>"
    code = "InvalidBlobType"
    expect(client.put(block_target(page, "1"), {}, b"x"), 409, code)
    expect(client.put(f"{page}?comp=blocklist", unmet, empty), 409, code)
    expect(client.get(f"{page}?comp=blocklist"), 409, code)
    expect(send(client, block, 0, b"x" * PAGE, unmet), 409, code)
    expect(clear(client, block, 0, PAGE, unmet), 409, code)
    expect(client.get(f"{block}?comp=pagelist", unmet), 409, code)
    for headers in (
        {"x-ms-blob-content-length": "512"},
        {"x-ms-sequence-number-action": "increment"},
    ):
        expect(client.put(f"{block}?comp=properties", {**headers, **unmet}), 409, code)
    missing = f"/{container}/none"
    expect(send(client, missing, 0, b"x" * PAGE), 404, "BlobNotFound")
    expect(client.get(f"{missing}?comp=pagelist"), 404, "BlobNotFound")


def test_a_blob_of_another_type_may_be_replaced_unless_it_has_snapshots(
    client: Client, container: str
) -> None:
    """B-PAG-04."""
    target = f"/{container}/b"
    put(client, target, b"block")
    create(client, target, PAGE)
    write(client, target, 0, b"p" * PAGE)
    put(client, target, b"block again")
    assert body(client, target) == b"block again"
    assert client.head(target).get("x-ms-blob-sequence-number") is None
    snapshot(client, target)
    create(client, f"{target}2", PAGE)
    snapshot(client, f"{target}2")
    wanted = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}
    expect(client.put(target, wanted), 409, "SnapshotsPresent")
    expect(client.put(f"{target}2", {"x-ms-blob-type": "BlockBlob"}), 409, "SnapshotsPresent")
    create(client, f"{target}2", 2 * PAGE)


def test_tiers_of_page_blobs(client: Client, container: str) -> None:
    """B-PAG-05."""
    target, tier = f"/{container}/b", "x-ms-access-tier"
    create(client, target, 64 * GIB, {tier: "p6"})
    assert client.head(target)[tier] == "P6"
    too_low = client.put(
        f"{target}2",
        {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(64 * GIB), tier: "P4"},
    )
    expect(too_low, 409, "BlobTierInadequateForContentLength")
    grown = {"x-ms-blob-content-length": str(65 * GIB)}
    refused = client.put(f"{target}?comp=properties", grown)
    expect(refused, 409, "BlobTierInadequateForContentLength")
    where = f"{target}?comp=tier"
    expect(client.put(where, {tier: "P80"}), 200)
    expect(client.put(where, {tier: "P10"}), 409, "CannotChangeToLowerTier")
    expect(client.put(where, {tier: "Hot"}), 400, "InvalidBlobTier")
    expect_names(client.put(where, {tier: "P5"}), 400, "InvalidHeaderValue", tier)
    put(client, f"{target}3")
    named = client.put(f"{target}3?comp=tier", {tier: "P10"})
    expect_names(named, 400, "InvalidHeaderValue", tier)


def test_a_tier_stays_unless_it_is_too_low(client: Client, container: str) -> None:
    """B-PAG-05."""
    target, tier = f"/{container}/b", "x-ms-access-tier"
    create(client, target, GIB, {tier: "P4"})
    create(client, target, 32 * GIB)
    assert client.head(target)[tier] == "P4"
    create(client, f"/{container}/a", 64 * GIB)
    expect(copy(client, source_url(client, f"/{container}/a"), target), 202)
    assert client.head(target).get(tier) is None
    create(client, target, GIB, {tier: "P6"})
    create(client, target, 65 * GIB)
    assert client.head(target).get(tier) is None
    grown = {"x-ms-blob-content-length": str(66 * GIB)}
    expect(client.put(f"{target}?comp=properties", grown), 200)


def test_what_put_page_answers(client: Client, container: str) -> None:
    """B-PAG-06."""
    target, data = f"/{container}/b", b"data" * 256
    made = create(client, target, TIB, {"x-ms-blob-sequence-number": "7"})
    first = write(client, target, 512 * PAGE, data)
    assert first.etag > made.etag
    assert first["x-ms-blob-sequence-number"] == "7"
    assert (first["x-ms-content-crc64"], first.get("Content-MD5")) == (
        crc64_text(crc64(data)),
        None,
    )
    assert first["x-ms-request-server-encrypted"] == "true"
    second = write(client, target, 0, data, {"Content-MD5": md5(data), "Range": "bytes=9-1"})
    assert (second["Content-MD5"], second.get("x-ms-content-crc64")) == (md5(data), None)
    assert read(client, target, 511 * PAGE, 4 * PAGE) == bytes(PAGE) + data + bytes(PAGE)
    assert read(client, target, 0, 3 * PAGE) == data + bytes(PAGE)
    large = bytes(range(256)) * (4 * MIB // 256)
    write(client, target, GIB + PAGE, large)
    assert read(client, target, GIB + 100, 4 * MIB) == bytes(PAGE - 100) + large[: 100 - PAGE]
    assert client.head(target).etag > second.etag


@pytest.mark.parametrize(
    "text",
    [
        "bytes=1-511",
        "bytes=0-510",
        "bytes=0-512",
        "bytes=512-",
        "bytes=2048-2559",
        "bytes=8796093022208-8796093022719",
        "bytes=576460752303423488-576460752303423999",
    ],
)
def test_ranges_that_are_no_pages_of_the_blob(client: Client, container: str, text: str) -> None:
    """B-PAG-07."""
    target = f"/{container}/b"
    made = create(client, target, 4 * PAGE)
    first, _, last = text.removeprefix("bytes=").partition("-")
    length = int(last) - int(first) + 1 if last else PAGE
    for own in ({"x-ms-page-write": "update"}, {"x-ms-page-write": "clear"}):
        data = b"x" * length if own["x-ms-page-write"] == "update" else b""
        found = client.put(f"{target}?comp=page", {**own, "x-ms-range": text}, data)
        expect(found, 416, "InvalidPageRange")
    assert client.head(target).etag == made.etag


def test_what_else_put_page_refuses(client: Client, container: str) -> None:
    """B-PAG-07."""
    target, update = f"/{container}/b", {"x-ms-page-write": "update"}
    made = create(client, target, 8 * MIB)
    where = f"{target}?comp=page"
    expect_names(client.put(where, update, b"x" * 512), 400, "MissingRequiredHeader", "x-ms-range")
    for text in ("bytes=x-y", "0-511", "bytes=-512"):
        refused = client.put(where, {**update, "x-ms-range": text}, b"x" * 512)
        expect_names(refused, 400, "InvalidHeaderValue", "x-ms-range")
    for length in (0, 511, 1024):
        refused = client.put(where, {**update, "Range": "bytes=0-511"}, b"x" * length)
        expect_names(refused, 400, "InvalidHeaderValue", "Content-Length")
    large = client.put(where, {**update, "Range": f"bytes=0-{4 * MIB + 511}"}, b"x" * 512)
    expect(large, 413, "RequestBodyTooLarge")
    expect_names(client.put(where, {}), 400, "MissingRequiredHeader", "x-ms-page-write")
    refused = client.put(where, {"x-ms-page-write": "erase"})
    expect_names(refused, 400, "InvalidHeaderValue", "x-ms-page-write")
    assert client.head(target).etag == made.etag


def test_digests_of_pages_are_compared(client: Client, container: str) -> None:
    """B-PAG-08."""
    target = f"/{container}/b"
    create(client, target, MIB)
    for data in (b"x" * PAGE, b"x" * (128 * 1024)):
        wrong = {"Content-MD5": md5(b"other")}
        expect(send(client, target, 0, data, wrong), 400, "Md5Mismatch")
        wrong = {"x-ms-content-crc64": crc64_text(1)}
        expect(send(client, target, 0, data, wrong), 400, "Crc64Mismatch")
        both = {"x-ms-content-crc64": crc64_text(crc64(data)), "Content-MD5": md5(data)}
        expect(send(client, target, 0, data, both), 400, "BothCrc64AndMd5HeaderPresent")
        write(client, target, 0, data, {"x-ms-content-crc64": crc64_text(crc64(data))})


def test_cleared_pages_are_zeros_and_not_listed(client: Client, container: str) -> None:
    """B-PAG-09."""
    target = f"/{container}/b"
    create(client, target, TIB)
    write(client, target, 0, b"x" * (200 * 1024))
    write(client, target, TIB - PAGE, b"y" * PAGE)
    cleared = expect(clear(client, target, PAGE, 100 * 1024), 201)
    assert cleared["x-ms-blob-sequence-number"] == "0"
    assert ranges(client, target) == [
        ("P", 0, PAGE),
        ("P", PAGE + 100 * 1024, 200 * 1024),
        ("P", TIB - PAGE, TIB),
    ]
    assert read(client, target, 0, 2 * PAGE) == b"x" * PAGE + bytes(PAGE)
    expect(clear(client, target, 0, TIB), 201)
    assert ranges(client, target) == []
    assert read(client, target, TIB - PAGE, PAGE) == bytes(PAGE)
    own = {"x-ms-page-write": "clear", "x-ms-range": "bytes=0-511"}
    refused = client.put(f"{target}?comp=page", own, b"x" * PAGE)
    expect_names(refused, 400, "InvalidHeaderValue", "Content-Length")
    for name, value in (("Content-MD5", md5(b"")), ("x-ms-content-crc64", crc64_text(0))):
        refused = client.put(f"{target}?comp=page", {**own, name: value})
        expect_names(refused, 400, "InvalidHeaderValue", name)


@pytest.mark.parametrize("act", [send, clear])
def test_sequence_numbers_are_conditions(client: Client, container: str, act: object) -> None:
    """B-PAG-10."""
    target = f"/{container}/b"
    create(client, target, PAGE, {"x-ms-blob-sequence-number": "5"})

    def go(**conditions: str) -> int:
        prefix = "x-ms-if-sequence-number-"
        headers = {prefix + name: value for name, value in conditions.items()}
        if act is send:
            answer = send(client, target, 0, b"x" * PAGE, headers)
        else:
            answer = clear(client, target, 0, PAGE, headers)
        if answer.status == 412:
            expect(answer, 412, "SequenceNumberConditionNotMet")
        return answer.status

    assert [go(le=n) for n in ("4", "5", "6")] == [412, 201, 201]
    assert [go(lt=n) for n in ("4", "5", "6")] == [412, 412, 201]
    assert [go(eq=n) for n in ("4", "5", "6")] == [412, 201, 412]
    assert [go(le="5", lt="6", eq="5"), go(le="5", eq="4"), go(le="", eq="")] == [201, 412, 201]
    assert go(eq="x") == 400
    held = {"x-ms-if-sequence-number-eq": "4", "If-Match": '"0x1"'}
    expect(send(client, target, 0, b"x" * PAGE, held), 412, "ConditionNotMet")


def test_leases_guard_every_change_of_pages(
    server: Running, client: Client, container: str
) -> None:
    """B-LOP-01."""
    target = f"/{container}/b"
    create(client, target, 4 * PAGE)
    Leased(server, client, target).acquire()
    for headers, code in (({}, "LeaseIdMissing"), ({"x-ms-lease-id": B}, None)):
        code = code or "LeaseIdMismatchWithBlobOperation"
        expect(send(client, target, 0, b"x" * PAGE, headers), 412, code)
        expect(clear(client, target, 0, PAGE, headers), 412, code)
        grown = {"x-ms-blob-content-length": "512", **headers}
        expect(client.put(f"{target}?comp=properties", grown), 412, code)
    write(client, target, 0, b"x" * PAGE, {"x-ms-lease-id": A})


@pytest.mark.parametrize("end", [PAGE, 300 * 1024, 20 * MIB])
def test_a_new_length(client: Client, container: str, end: int) -> None:
    """B-PAG-11."""
    target, length = f"/{container}/b", "x-ms-blob-content-length"
    create(client, target, TIB, {"x-ms-blob-content-type": "a/b"})
    write(client, target, 0, b"x" * (400 * 1024))
    write(client, target, 30 * MIB, b"y" * PAGE)
    shrunk = expect(client.put(f"{target}?comp=properties", {length: str(end)}), 200)
    assert shrunk["x-ms-blob-sequence-number"] == "0"
    found = client.head(target)
    assert (found["Content-Length"], found.etag) == (str(end), shrunk.etag)
    assert found["Content-Type"] == "a/b"
    kept = min(end, 400 * 1024)
    assert ranges(client, target) == [("P", 0, kept)]
    expect(send(client, target, end, b"z" * PAGE), 416, "InvalidPageRange")
    expect(client.put(f"{target}?comp=properties", {length: str(TIB)}), 200)
    assert ranges(client, target) == [("P", 0, kept)]
    assert read(client, target, 30 * MIB, PAGE) == bytes(PAGE)
    for value in ("1", str(8 * TIB + PAGE)):
        refused = client.put(f"{target}?comp=properties", {length: value})
        expect_names(refused, 400, "InvalidHeaderValue", length)


def test_actions_on_the_sequence_number(client: Client, container: str) -> None:
    """B-PAG-12."""
    target = f"/{container}/b"
    action, number = "x-ms-sequence-number-action", "x-ms-blob-sequence-number"
    create(client, target, PAGE, {number: "5", "x-ms-blob-content-type": "a/b"})
    where = f"{target}?comp=properties"

    def act(word: str, value: str | None = None) -> str:
        headers = {action: word} if value is None else {action: word, number: value}
        return expect(client.put(where, headers), 200)[number]

    assert [act("max", "4"), act("max", "9"), act("update", "2")] == ["5", "9", "2"]
    assert [act("increment"), act("UPDATE", str(2**63 - 1))] == ["3", str(2**63 - 1)]
    too_large = client.put(where, {action: "increment"})
    expect(too_large, 409, "SequenceNumberIncrementTooLarge")
    assert client.head(target)["Content-Type"] == "a/b"
    for word in ("max", "update"):
        expect_names(client.put(where, {action: word}), 400, "MissingRequiredHeader", number)
    expect_names(client.put(where, {action: "next"}), 400, "InvalidHeaderValue", action)
    refused = client.put(where, {action: "increment", number: "1"})
    expect_names(refused, 400, "InvalidHeaderValue", number)
    together = {action: "update", number: "1", "x-ms-blob-content-length": str(2 * PAGE)}
    expect(client.put(where, {**together, "x-ms-blob-content-type": "c/d"}), 200)
    found = client.head(target)
    assert (found[number], found["Content-Length"]) == ("1", str(2 * PAGE))
    assert found["Content-Type"] == "c/d"


def test_a_snapshot_keeps_its_pages(client: Client, container: str) -> None:
    """B-PAG-17."""
    target = f"/{container}/b"
    create(client, target, TIB, {"x-ms-blob-sequence-number": "1"})
    write(client, target, 0, b"a" * (100 * 1024))
    write(client, target, GIB, b"b" * PAGE)
    at = f"{target}?snapshot={snapshot(client, target)}"
    write(client, target, PAGE, b"c" * PAGE)
    expect(clear(client, target, 64 * 1024, TIB - 64 * 1024), 201)
    number = {"x-ms-sequence-number-action": "increment"}
    expect(client.put(f"{target}?comp=properties", number), 200)
    expect(client.put(f"{target}?comp=properties", {"x-ms-blob-content-length": "0"}), 200)

    def check() -> None:
        found = expect(client.head(at), 200)
        assert (found["Content-Length"], found["x-ms-blob-sequence-number"]) == (str(TIB), "1")
        assert read(client, at, 0, 101 * 1024) == b"a" * (100 * 1024) + bytes(1024)
        assert read(client, at, GIB, PAGE) == b"b" * PAGE
        assert ranges(client, at) == [("P", 0, 100 * 1024), ("P", GIB, GIB + PAGE)]

    check()
    create(client, target, PAGE)
    check()
    write(client, target, 0, b"d" * PAGE)
    check()
    expect(client.delete(target, {"x-ms-delete-snapshots": "include"}), 202)
    expect(client.head(at), 404, "BlobNotFound")


def test_a_list_shows_the_type_and_the_number(client: Client, container: str) -> None:
    """B-PAG-18."""
    create(client, f"/{container}/b", PAGE, {"x-ms-blob-sequence-number": "3"})
    put(client, f"/{container}/c")
    page = expect(client.get(f"/{container}?restype=container&comp=list"), 200).xml
    assert texts(page, "Blobs/Blob/Properties/BlobType") == ["PageBlob", "BlockBlob"]
    assert texts(page, "Blobs/Blob/Properties/x-ms-blob-sequence-number") == ["3"]
    assert texts(page, "Blobs/Blob/Properties/AccessTier") == ["Hot"]


@pytest.mark.parametrize("size", [MIB, TIB])
def test_a_copy_has_the_same_pages(client: Client, container: str, size: int) -> None:
    """B-PAG-20."""
    source, target = f"/{container}/a", f"/{container}/b"
    create(client, source, size, {"x-ms-blob-sequence-number": "9", "x-ms-meta-k": "v"})
    write(client, source, 0, b"a" * PAGE)
    write(client, source, 100 * PAGE, bytes(80 * 1024))
    write(client, source, size - PAGE, b"z" * PAGE)
    expect(copy(client, source_url(client, source), target), 202)
    found = ended(client, target)
    assert found["x-ms-copy-status"] == "success"
    assert found["x-ms-copy-progress"] == f"{size}/{size}"
    assert (found["x-ms-blob-type"], found["x-ms-blob-sequence-number"]) == ("PageBlob", "9")
    assert (found["Content-Length"], found["x-ms-meta-k"]) == (str(size), "v")
    assert ranges(client, target) == ranges(client, source)
    assert read(client, target, size - PAGE, PAGE) == b"z" * PAGE
    write(client, target, 0, b"b" * PAGE)
    assert read(client, source, 0, PAGE) == b"a" * PAGE


def test_tiers_of_copies_of_page_blobs(client: Client, container: str) -> None:
    """B-PAG-05, B-PAG-20."""
    tier, target = "x-ms-access-tier", f"/{container}/b"
    create(client, f"/{container}/a", 64 * GIB)
    source = source_url(client, f"/{container}/a")
    expect(copy(client, source, target, {tier: "Hot"}), 400, "InvalidBlobTier")
    refused = copy(client, source, target, {tier: "P4"})
    expect(refused, 409, "BlobTierInadequateForContentLength")
    expect_names(copy(client, source, target, {tier: "P5"}), 400, "InvalidHeaderValue", tier)
    expect(client.head(target), 404, "BlobNotFound")
    expect(copy(client, source, target, {tier: "p10"}), 202)
    assert client.head(target)[tier] == "P10"
    longer = {"x-ms-blob-content-length": str(128 * GIB)}
    expect(client.put(f"{target}?comp=properties", longer), 200)
    put(client, f"/{container}/block")
    block = source_url(client, f"/{container}/block")
    named = copy(client, block, f"/{container}/other", {tier: "P10"})
    expect_names(named, 400, "InvalidHeaderValue", tier)


def test_a_copy_of_many_pages_is_pending_first(
    server: Running, client: Client, container: str
) -> None:
    """B-PAG-20."""
    source, target = f"/{container}/a", f"/{container}/b"
    create(client, source, TIB)
    data = bytes(range(256)) * (4 * MIB // 256)
    for number in range(5):
        write(client, source, number * (GIB + PAGE), data)
    for number in range(40):
        write(client, source, 500 * GIB + number * 3 * PAGE, b"x" * PAGE)
    with held(server):
        begun = expect(copy(client, source_url(client, source), target), 202)
        assert begun["x-ms-copy-status"] == "pending"
        expect(send(client, target, 0, b"x" * PAGE), 409, "PendingCopyOperation")
        assert client.head(target)["Content-Length"] == "0"
        expect(abort(client, target, begun["x-ms-copy-id"]), 204)
        assert ranges(client, target) == []
        write_back = {"x-ms-blob-content-length": str(TIB)}
        expect(client.put(f"{target}?comp=properties", write_back), 200)
        assert ranges(client, target) == []
        expect(copy(client, source_url(client, source), target), 202)
    assert ended(client, target)["x-ms-copy-status"] == "success"
    assert ranges(client, target) == ranges(client, source)
    assert read(client, target, 3 * (GIB + PAGE), 4 * MIB) == data


def test_copies_between_types_are_refused(client: Client, container: str) -> None:
    """B-PAG-20."""
    page, block = f"/{container}/page", f"/{container}/block"
    create(client, page, PAGE)
    put(client, block)
    for source, target in ((page, block), (block, page)):
        refused = copy(client, source_url(client, source), target)
        expect(refused, 409, "InvalidBlobType")
    refused = copy(client, source_url(client, page), f"/{container}/new", SYNC)
    expect(refused, 409, "InvalidSourceBlobType")


def test_page_ranges_answer_the_blob_too(client: Client, container: str) -> None:
    """B-PAG-13."""
    target = f"/{container}/b"
    create(client, target, 4 * PAGE)
    written = write(client, target, PAGE, bytes(PAGE))
    answer = expect(client.get(f"{target}?comp=pagelist"), 200)
    assert (answer.etag, answer["x-ms-blob-content-length"]) == (written.etag, str(4 * PAGE))
    assert answer["Last-Modified"] == written["Last-Modified"]
    assert listed(answer) == [("P", PAGE, 2 * PAGE)]
