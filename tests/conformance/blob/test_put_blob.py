"""Put Blob: rules B-PUT-01 to B-PUT-13."""

from __future__ import annotations

import base64
import http.client
from collections.abc import Callable

import pytest

from tests.conformance.answer import RFC1123, Answer, expect, expect_names, metadata
from tests.conformance.blobs import blocks, body, md5, put, seen, snapshot, stage
from tests.conformance.client import HOST, PUT_BLOB, Client
from tests.conformance.leasing import A, Leased
from tests.conformance.running import Running

KIB, MIB = 1024, 1024 * 1024
NINE = b"123456789"
NINE_CRC64 = "iJh5CoYUi64="


@pytest.mark.parametrize("size", [0, 1, 9, 8 * KIB, 8 * KIB + 1, 100 * KIB, 3 * MIB + 1])
def test_what_was_put_is_what_is_read(client: Client, container: str, size: int) -> None:
    """B-PUT-01 B-PUT-05."""
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    made = expect(client.put(f"/{container}/b", PUT_BLOB, content), 201)
    assert RFC1123.fullmatch(made["Last-Modified"])
    assert made["Content-MD5"] == md5(content)
    assert len(base64.b64decode(made["x-ms-content-crc64"])) == 8
    assert made["x-ms-request-server-encrypted"] == "true"
    assert made.body == b""
    read = expect(client.get(f"/{container}/b"), 200)
    assert read.body == content
    assert read["Content-Length"] == str(size)
    assert (read.etag, read["Last-Modified"]) == (made.etag, made["Last-Modified"])
    assert read["Content-MD5"] == md5(content)


OWN = {
    "x-ms-blob-content-type": "text/own",
    "x-ms-blob-content-encoding": "own",
    "x-ms-blob-content-language": "own",
    "x-ms-blob-content-disposition": "own",
    "x-ms-blob-cache-control": "own",
}
STANDARD = {
    "Content-Type": "text/standard",
    "Content-Encoding": "standard",
    "Content-Language": "standard",
    "Content-Disposition": "standard",
    "Cache-Control": "standard",
}


@pytest.mark.parametrize(("own", "standard"), list(zip(OWN, STANDARD, strict=True)))
def test_a_property_comes_from_its_own_header_else_from_the_standard_one(
    client: Client, container: str, own: str, standard: str
) -> None:
    """B-PUT-02."""
    put(client, f"/{container}/both", headers={own: OWN[own], standard: STANDARD[standard]})
    put(client, f"/{container}/standard", headers={standard: STANDARD[standard]})
    put(client, f"/{container}/none")
    assert client.get(f"/{container}/both")[standard] == OWN[own]
    assert client.head(f"/{container}/standard")[standard] == STANDARD[standard]
    default = "application/octet-stream" if standard == "Content-Type" else None
    assert client.head(f"/{container}/none").get(standard) == default


def test_the_blobs_own_md5_is_stored(client: Client, container: str) -> None:
    """B-PUT-02: x-ms-blob-content-md5 comes back as Content-MD5."""
    put(client, f"/{container}/b", NINE, {"x-ms-blob-content-md5": md5(NINE)})
    assert client.head(f"/{container}/b")["Content-MD5"] == md5(NINE)


@pytest.mark.parametrize("name", ["Content-MD5", "x-ms-blob-content-md5"])
def test_an_md5_is_checked(client: Client, container: str, name: str) -> None:
    """B-PUT-03."""
    wrong = expect(
        client.put(f"/{container}/b", {**PUT_BLOB, name: md5(b"other")}, NINE), 400, "Md5Mismatch"
    )
    assert wrong.error["UserSpecifiedMd5"] == md5(b"other")
    assert wrong.error["ServerCalculatedMd5"] == md5(NINE)
    for text in ("no base64!", base64.b64encode(b"short").decode(), "="):
        answer = client.put(f"/{container}/b", {**PUT_BLOB, name: text}, NINE)
        expect(answer, 400, "InvalidMd5")
    expect(client.head(f"/{container}/b"), 404, "BlobNotFound")
    put(client, f"/{container}/b", NINE, {name: md5(NINE)})


def test_the_blobs_own_md5_goes_before_that_of_the_body(client: Client, container: str) -> None:
    """B-PUT-03."""
    own, other = {"x-ms-blob-content-md5": md5(NINE)}, {"Content-MD5": md5(b"zzz")}
    put(client, f"/{container}/b", NINE, own | other)
    assert client.head(f"/{container}/b")["Content-MD5"] == md5(NINE)
    swapped = {"x-ms-blob-content-md5": md5(b"zzz"), "Content-MD5": md5(NINE)}
    refused = client.put(f"/{container}/b", PUT_BLOB | swapped, NINE)
    assert expect(refused, 400, "Md5Mismatch").error["UserSpecifiedMd5"] == md5(b"zzz")


def test_a_crc64_is_checked(client: Client, container: str) -> None:
    """B-PUT-04."""
    crc = "x-ms-content-crc64"
    assert put(client, f"/{container}/b", NINE, {crc: NINE_CRC64})[crc] == NINE_CRC64
    assert put(client, f"/{container}/empty", b"")[crc] == "AAAAAAAAAAA="
    wrong = client.put(f"/{container}/b", {**PUT_BLOB, crc: "AAAAAAAAAAA="}, NINE)
    expect(wrong, 400, "Crc64Mismatch")
    both = client.put(
        f"/{container}/b", {**PUT_BLOB, crc: NINE_CRC64, "Content-MD5": md5(NINE)}, NINE
    )
    expect(both, 400, "BothCrc64AndMd5HeaderPresent")
    for text in ("AAAAAA==", "no base64!"):
        answer = client.put(f"/{container}/b", {**PUT_BLOB, crc: text}, NINE)
        expect_names(answer, 400, "InvalidHeaderValue", crc)


def test_over_a_blob_only_this_request_counts(
    server: Running, client: Client, container: str
) -> None:
    """B-PUT-06."""
    target = f"/{container}/b"
    rich = {**OWN, "x-ms-meta-a": "1", "x-ms-tags": "k=v", "x-ms-access-tier": "Cool"}
    first = put(client, target, headers=rich)
    before = client.head(target)
    server.advance(2)
    second = put(client, target, b"new", {"x-ms-meta-b": "2"})
    after = client.head(target)
    assert second.etag > first.etag
    assert metadata(after) == {"b": "2"}
    assert after["Content-Type"] == "application/octet-stream"
    gone = {"content-encoding", "content-language", "content-disposition", "cache-control"}
    assert not after.names() & (gone | {"x-ms-tag-count"})
    assert after["x-ms-creation-time"] != before["x-ms-creation-time"]
    assert after["x-ms-access-tier"] == "Cool"
    put(client, target, headers={"x-ms-access-tier": "Hot"})
    assert client.head(target)["x-ms-access-tier"] == "Hot"


def test_over_a_blob_snapshots_and_lease_stay_and_staged_blocks_go(
    server: Running, client: Client, container: str
) -> None:
    """B-PUT-07."""
    target = f"/{container}/b"
    put(client, target, b"first")
    kept = snapshot(client, target)
    stage(client, target, "x", b"staged")
    Leased(server, client, target).acquire()
    put(client, target, b"second", {"x-ms-lease-id": A})
    assert body(client, f"{target}?snapshot={kept}") == b"first"
    assert blocks(client, target) == ([], [])
    assert client.head(target)["x-ms-lease-state"] == "leased"
    expect(Leased(server, client, target).act("renew", lease_id=A), 200)
    expect(client.delete(target, {"x-ms-lease-id": A}), 409, "SnapshotsPresent")


def _by_checksum(client: Client, target: str) -> None:
    answer = client.put(target, {**PUT_BLOB, "Content-MD5": md5(b"other")}, b"new")
    expect(answer, 400, "Md5Mismatch")


def _by_condition(client: Client, target: str) -> None:
    condition = {"If-Match": '"0x8D0000000000000"'}
    expect(client.put(target, {**PUT_BLOB, **condition}, b"new"), 412, "ConditionNotMet")


def _by_lease(client: Client, target: str) -> None:
    answer = client.put(target, {**PUT_BLOB, "x-ms-lease-id": A}, b"new")
    expect(answer, 412, "LeaseNotPresentWithBlobOperation")


def _by_size(client: Client, target: str) -> None:
    answer = client.begin("PUT", target, PUT_BLOB, 5000 * MIB + 1).finish()
    expect(answer, 413, "RequestBodyTooLarge")


def _cut_short(client: Client, target: str) -> None:
    sending = client.begin("PUT", target, PUT_BLOB, 100_000)
    sending.send(b"n" * 50_000)
    sending.abandon()


@pytest.mark.parametrize("refused", [_by_checksum, _by_condition, _by_lease, _by_size, _cut_short])
def test_a_refused_put_changes_nothing(
    client: Client, container: str, refused: Callable[[Client, str], None]
) -> None:
    """B-PUT-08."""
    target = f"/{container}/b"
    put(client, target, b"old", {"x-ms-meta-a": "1"})
    before = seen(client, target)
    refused(client, target)
    assert seen(client, target) == before


@pytest.mark.parametrize("name", ["x-ms-blob-content-length", "x-ms-blob-sequence-number"])
def test_headers_of_page_blobs_are_refused(client: Client, container: str, name: str) -> None:
    """B-PUT-09."""
    answer = client.put(f"/{container}/b", {**PUT_BLOB, name: "512"}, b"x")
    expect_names(answer, 400, "InvalidHeaderValue", name)


def test_a_body_needs_a_length(client: Client, container: str) -> None:
    """B-PUT-10: neither Content-Length nor chunked."""
    answer = client.put(f"/{container}/b", {**PUT_BLOB, "Content-Length": None})
    expect(answer, 411, "MissingContentLengthHeader")
    expect(client.head(f"/{container}/b"), 404, "BlobNotFound")


@pytest.mark.parametrize("pieces", [[b"one"], [b"one", b"two" * 50_000, b"three"], []])
def test_a_chunked_body_is_taken(client: Client, container: str, pieces: list[bytes]) -> None:
    """B-PUT-10: no stated length."""
    answer = chunked(client, f"/{container}/b", pieces)
    assert answer.status == 201, answer
    assert body(client, f"/{container}/b") == b"".join(pieces)


def chunked(client: Client, target: str, pieces: list[bytes]) -> Answer:
    """Put Blob with a chunked body."""
    given = {**PUT_BLOB, "Content-Length": None, "Transfer-Encoding": "chunked"}
    full = client.prefix + target
    connection = http.client.HTTPConnection(HOST, client.port, timeout=20)
    connection.putrequest("PUT", full, skip_host=True, skip_accept_encoding=True)
    for name, value in client.fields("PUT", full, given, b"", "SharedKey"):
        connection.putheader(name, value)
    connection.endheaders(iter(pieces), encode_chunked=True)
    response = connection.getresponse()
    found = tuple(response.getheaders())
    answer = Answer("PUT", response.status, response.reason, found, response.read())
    connection.close()
    return answer


def test_a_missing_container(client: Client, new_name: Callable[[], str]) -> None:
    """B-PUT-11."""
    answer = client.put(f"/{new_name()}/b", PUT_BLOB, b"x")
    expect(answer, 404, "ContainerNotFound")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("k=v", 1),
        ("k=v&k2=v2", 2),
        ("a%20b=c%2Bd%3De&x=", 2),
        ("&".join(f"k{index}=v" for index in range(10)), 10),
        (f"{'k' * 128}={'v' * 256}", 1),
    ],
)
def test_tags_are_stored(client: Client, container: str, text: str, count: int) -> None:
    """B-PUT-12."""
    put(client, f"/{container}/b", headers={"x-ms-tags": text})
    assert client.head(f"/{container}/b")["x-ms-tag-count"] == str(count)
    assert client.get(f"/{container}/b")["x-ms-tag-count"] == str(count)


def test_conditions_see_tags(client: Client, container: str) -> None:
    """B-PUT-12: decoded, as they were meant."""
    put(client, f"/{container}/b", headers={"x-ms-tags": "a%20b=c%2Bd"})
    expect(client.get(f"/{container}/b", {"x-ms-if-tags": "\"a b\" = 'c+d'"}), 200)
    other = client.get(f"/{container}/b", {"x-ms-if-tags": "\"a b\" = 'c d'"})
    expect(other, 412, "ConditionNotMet")


@pytest.mark.parametrize(
    "text",
    [
        "&".join(f"k{index}=v" for index in range(11)),
        f"{'k' * 129}=v",
        "=v",
        f"k={'v' * 257}",
        "k=v!",
        "k%26=v",
        "k=v&k=w",
    ],
)
def test_tags_that_are_refused(client: Client, container: str, text: str) -> None:
    """B-PUT-12."""
    answer = client.put(f"/{container}/b", {**PUT_BLOB, "x-ms-tags": text}, b"x")
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-tags")


@pytest.mark.parametrize("tier", ["Hot", "Cool", "Cold", "Archive"])
def test_a_tier_is_stored(client: Client, container: str, tier: str) -> None:
    """B-PUT-13."""
    put(client, f"/{container}/b", headers={"x-ms-access-tier": tier})
    found = client.head(f"/{container}/b")
    assert found["x-ms-access-tier"] == tier
    assert found.get("x-ms-access-tier-inferred") is None
    assert RFC1123.fullmatch(found["x-ms-access-tier-change-time"])


def test_a_tier_that_is_not_given_or_not_known(client: Client, container: str) -> None:
    """B-PUT-13."""
    put(client, f"/{container}/b")
    found = client.head(f"/{container}/b")
    assert (found["x-ms-access-tier"], found["x-ms-access-tier-inferred"]) == ("Hot", "true")
    for text in ("P10", "warm", ""):
        answer = client.put(f"/{container}/c", {**PUT_BLOB, "x-ms-access-tier": text}, b"x")
        expect_names(answer, 400, "InvalidHeaderValue", "x-ms-access-tier")
