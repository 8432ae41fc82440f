"""Put Blob and Put Block From URL, from sources on this server: rules B-URL-01 to B-URL-18."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from strongroom.engines.checksum import crc64
from strongroom.values import crc64_text
from tests.conformance.answer import Answer, expect, expect_names, metadata
from tests.conformance.blobs import (
    block_target,
    blocks,
    body,
    commit,
    md5,
    put,
    seen,
    snapshot,
    stage,
)
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import SYNC, copy, readable
from tests.conformance.leasing import A, Leased
from tests.conformance.running import Running
from tests.conformance.sas import service_sas

MIB = 1024 * 1024
OLD, NEW = "Fri, 26 Jun 2015 23:39:12 GMT", "Fri, 26 Jun 2099 23:39:12 GMT"
PROPERTIES = {
    "x-ms-blob-content-type": "text/own",
    "x-ms-blob-content-encoding": "gzip",
    "x-ms-blob-content-language": "de",
    "x-ms-blob-cache-control": "no-cache",
    "x-ms-blob-content-disposition": "inline",
}
SHOWN = [name.removeprefix("x-ms-blob-").title() for name in PROPERTIES]
Send = Callable[[Client, str, str, dict[str, str]], Answer]


def put_blob(client: Client, target: str, url: str, more: dict[str, str] | None = None) -> Answer:
    """Put Blob From URL."""
    return copy(client, url, target, {**PUT_BLOB, **(more or {})})


def put_block(client: Client, target: str, url: str, more: dict[str, str] | None = None) -> Answer:
    """Put Block From URL, with the id `1`."""
    return copy(client, readable(client, url), block_target(target, "1"), more)


BOTH = pytest.mark.parametrize("send", [put_blob, put_block], ids=["blob", "block"])


@pytest.fixture
def names(client: Client, container: str) -> tuple[str, str, str]:
    """The source's target and URL, and the destination's target."""
    source = f"/{container}/source"
    return source, client.url + source, f"/{container}/b"


def content_of(size: int) -> bytes:
    return (bytes(range(256)) * (size // 256 + 1))[:size]


@pytest.mark.parametrize("size", [0, 7, 100_000, 17 * MIB])
def test_a_blob_from_a_url(client: Client, names: tuple[str, str, str], size: int) -> None:
    """B-URL-01, B-URL-10."""
    source, url, target = names
    content = content_of(size)
    put(client, source, content)
    made = expect(put_blob(client, target, url), 201)
    assert made["Content-MD5"] == md5(content)
    assert made["x-ms-content-crc64"] == crc64_text(crc64(content))
    assert made["x-ms-request-server-encrypted"] == "true"
    read = expect(client.get(target), 200)
    assert (read.body, read.etag, read["Last-Modified"]) == (
        content,
        made.etag,
        made["Last-Modified"],
    )
    assert read["Content-MD5"] == md5(content)


def test_a_block_from_a_url(client: Client, names: tuple[str, str, str]) -> None:
    """B-URL-01, B-URL-08."""
    source, url, target = names
    content = content_of(300_000)
    put(client, source, content)
    plain = expect(put_block(client, target, url), 201)
    assert plain["x-ms-content-crc64"] == crc64_text(crc64(content))
    assert not plain.names() & {"etag", "last-modified", "content-md5"}
    for number, (text, first, end) in enumerate(
        [("bytes=0-0", 0, 1), ("bytes=5-99999", 5, 100_000), ("bytes=299999-", 299_999, 300_000)]
    ):
        part = content[first:end]
        given = {
            "x-ms-copy-source": readable(client, url),
            "x-ms-source-range": text,
            "x-ms-source-content-md5": md5(part),
        }
        answer = expect(client.put(block_target(target, str(number)), given), 201)
        assert answer["Content-MD5"] == md5(part)
        assert "x-ms-content-crc64" not in answer.names()
    expect(client.get(target), 404, "BlobNotFound")
    commit(client, target, ["2", "0", "1"])
    assert body(client, target) == content[299_999:] + content[:1] + content[5:100_000]


def test_ranges_of_a_blob_of_blocks(client: Client, names: tuple[str, str, str]) -> None:
    """B-URL-08: across the borders of blocks."""
    source, url, target = names
    content = content_of(60_000)
    for number in range(3):
        stage(client, source, str(number), content[number * 20_000 : (number + 1) * 20_000])
    commit(client, source, ["0", "1", "2"])
    expect(put_block(client, target, url, {"x-ms-source-range": "bytes=19999-40000"}), 201)
    commit(client, target, ["1"])
    assert body(client, target) == content[19_999:40_001]


def test_a_blob_from_a_url_is_a_new_one(
    server: Running, client: Client, names: tuple[str, str, str]
) -> None:
    """B-URL-02."""
    source, url, target = names
    stage(client, source, "1", b"12")
    stage(client, source, "2", b"34")
    commit(client, source, ["1", "2"], {"x-ms-tags": "k=v"})
    snapshot(client, source)
    Leased(server, client, source).acquire()
    put(client, target, b"before", {"x-ms-meta-old": "1", "x-ms-access-tier": "Cool"})
    kept = snapshot(client, target)
    stage(client, target, "9", b"staged")
    expect(put_blob(client, target, url), 201)
    found = expect(client.get(target), 200)
    assert found.body == b"1234"
    assert blocks(client, target) == ([], [])
    assert not [name for name in found.names() if name.startswith("x-ms-copy")]
    assert (found.get("x-ms-tag-count"), metadata(found)) == (None, {})
    assert found["x-ms-lease-state"] == "available"
    assert client.head(target)["x-ms-access-tier"] == "Cool"
    assert body(client, f"{target}?snapshot={kept}") == b"before"


def test_which_properties_a_blob_from_a_url_has(
    client: Client, names: tuple[str, str, str]
) -> None:
    """B-URL-03."""
    source, url, target = names
    put(client, source, b"x", PROPERTIES)
    expect(put_blob(client, target, url, {"Content-Type": "text/of-no-body"}), 201)
    original, found = client.head(source), client.head(target)
    assert {name: found[name] for name in SHOWN} == {name: original[name] for name in SHOWN}
    given = {"x-ms-blob-content-type": "text/given", "x-ms-blob-content-language": "fr"}
    expect(put_blob(client, target, url, given), 201)
    found = client.head(target)
    assert (found["Content-Type"], found["Content-Language"]) == ("text/given", "fr")
    assert (found["Content-Encoding"], found["Cache-Control"]) == ("gzip", "no-cache")
    none = {"x-ms-copy-source-blob-properties": "false"}
    expect(put_blob(client, target, url, {**none, "x-ms-blob-content-language": "fr"}), 201)
    found = client.head(target)
    assert found["Content-Type"] == "application/octet-stream"
    assert found["Content-Language"] == "fr"
    assert not found.names() & {"content-encoding", "cache-control", "content-disposition"}
    bad = {"x-ms-copy-source-blob-properties": "maybe"}
    answer = put_blob(client, target, url, bad)
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-copy-source-blob-properties")


def test_metadata_and_tier_of_a_blob_from_a_url(
    client: Client, names: tuple[str, str, str]
) -> None:
    """B-URL-04."""
    source, url, target = names
    put(client, source, b"x", {"x-ms-meta-a": "1", "x-ms-access-tier": "Cool", "x-ms-tags": "a=1"})
    for text in ("true", "false"):
        expect(put_blob(client, target, url, {"x-ms-copy-source-blob-properties": text}), 201)
        found = client.head(target)
        assert metadata(found) == {"a": "1"}
        assert (found["x-ms-access-tier"], found["x-ms-access-tier-inferred"]) == ("Hot", "true")
        assert found.get("x-ms-tag-count") is None
    more = {"x-ms-meta-b": "2", "x-ms-access-tier": "Cold", "x-ms-tags": "b=2&c=3"}
    expect(put_blob(client, target, url, more), 201)
    found = client.head(target)
    assert metadata(found) == {"b": "2"}
    assert (found["x-ms-access-tier"], found["x-ms-tag-count"]) == ("Cold", "2")


@pytest.mark.parametrize("kind", [PUT_BLOB, SYNC], ids=["Put Blob From URL", "Copy From URL"])
def test_tags_of_the_source(
    client: Client, names: tuple[str, str, str], kind: dict[str, str]
) -> None:
    """B-URL-05, B-CPY-18."""
    source, url, target = names
    put(client, source, b"x", {"x-ms-tags": "a=1&b=2"})
    copies = {**kind, "x-ms-copy-source-tag-option": "COPY"}
    made = copy(client, url, target, copies)
    assert made.status in (201, 202), made
    assert client.head(target)["x-ms-tag-count"] == "2"
    expect(client.head(target, {"x-ms-if-tags": "\"b\" = '2'"}), 200)
    replaced = copy(client, url, target, {**kind, "x-ms-copy-source-tag-option": "replace"})
    assert replaced.status in (201, 202), replaced
    assert client.head(target).get("x-ms-tag-count") is None
    answer = copy(client, url, target, {**copies, "x-ms-tags": "c=3"})
    expect(answer, 400, "BothUserTagsAndSourceTagsCopyPresentException")
    answer = copy(client, url, target, {**kind, "x-ms-copy-source-tag-option": "SOME"})
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-copy-source-tag-option")


def test_tags_of_a_source_need_their_permission(
    client: Client, container: str, names: tuple[str, str, str]
) -> None:
    """B-URL-05."""
    source, url, target = names
    put(client, source, b"x", {"x-ms-tags": "a=1"})
    copies = {"x-ms-copy-source-tag-option": "COPY"}
    for letters, status in (("r", 403), ("t", 403), ("rt", 201)):
        token = service_sas(client.credential, container, "source", sp=letters)
        answer = put_blob(client, target, f"{url}?{token}", copies)
        assert answer.status == status, (letters, answer)
    assert client.head(target)["x-ms-tag-count"] == "1"


@BOTH
def test_digests_of_the_bytes(client: Client, names: tuple[str, str, str], send: Send) -> None:
    """B-URL-06, B-URL-07."""
    source, url, target = names
    put(client, source, b"123456789")
    right, wrong = md5(b"123456789"), md5(b"other")
    crc, zero = "iJh5CoYUi64=", "AAAAAAAAAAA="
    own, of_body = "x-ms-source-content-md5", "Content-MD5"
    for headers in ({own: wrong}, {of_body: wrong}):
        error = expect(send(client, target, url, headers), 400, "Md5Mismatch").error
        assert (error["UserSpecifiedMd5"], error["ServerCalculatedMd5"]) == (wrong, right)
    expect(send(client, target, url, {own: "eA=="}), 400, "InvalidMd5")
    of_crc = "x-ms-source-content-crc64"
    expect(send(client, target, url, {of_crc: zero}), 400, "Crc64Mismatch")
    both = {of_crc: crc, own: right}
    expect(send(client, target, url, both), 400, "BothCrc64AndMd5HeaderPresent")
    answer = send(client, target, url, {of_crc: "AAAA"})
    expect_names(answer, 400, "InvalidHeaderValue", of_crc)
    answer = send(client, target, url, {own: right, of_body: wrong})
    expect_names(answer, 400, "InvalidHeaderValue", "content-md5")
    expect(client.get(f"{target}?comp=blocklist&blocklisttype=all"), 404, "BlobNotFound")
    for headers in ({own: right}, {of_body: right}, {of_crc: crc}, {own: right, of_body: right}):
        expect(send(client, target, url, headers), 201)
    expect(send(client, target, url, {own: right, of_body: md5(b"")}), 201)


def test_the_md5_property_is_compared(client: Client, names: tuple[str, str, str]) -> None:
    """B-URL-06."""
    source, url, target = names
    put(client, source, b"123456789")
    name = "x-ms-blob-content-md5"
    expect(put_blob(client, target, url, {name: md5(b"other")}), 400, "Md5Mismatch")
    expect(put_blob(client, target, url, {name: md5(b"123456789")}), 201)


@pytest.mark.parametrize(
    "text",
    ["", "bytes=", "bytes=-5", "bytes=5-2", "0-5", "bytes=0-1,4-5", "bytes=a-b", "bytes 0-5"],
)
def test_ranges_that_are_none(client: Client, names: tuple[str, str, str], text: str) -> None:
    """B-URL-08."""
    source, url, target = names
    put(client, source, b"0123456789")
    answer = put_block(client, target, url, {"x-ms-source-range": text})
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-source-range")


@pytest.mark.parametrize("text", ["bytes=10-", "bytes=10-10", "bytes=0-10", "bytes=9-99999999999"])
@pytest.mark.parametrize("size", [0, 10])
def test_ranges_beyond_the_end(
    client: Client, names: tuple[str, str, str], text: str, size: int
) -> None:
    """B-URL-09, B-URL-14."""
    source, url, target = names
    put(client, source, b"0123456789"[:size])
    answer = put_block(client, target, url, {"x-ms-source-range": text})
    expect(answer, 416, "InvalidRange")
    assert answer["x-ms-copy-source-status-code"] == "416"
    assert answer["x-ms-copy-source-error-code"] == "InvalidRange"
    expect(client.get(f"{target}?comp=blocklist&blocklisttype=all"), 404, "BlobNotFound")


def test_an_empty_source_is_no_block(client: Client, names: tuple[str, str, str]) -> None:
    """B-URL-10."""
    source, url, target = names
    put(client, source, b"")
    answer = put_block(client, target, url, {})
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-copy-source")


@BOTH
def test_a_body_of_its_own_is_refused(
    client: Client, names: tuple[str, str, str], send: Send
) -> None:
    """B-URL-11."""
    source, url, target = names
    put(client, source, b"x")
    more = {**PUT_BLOB, "x-ms-copy-source": readable(client, url)}
    place = target if send is put_blob else block_target(target, "1")
    answer = client.put(place, more, b"own")
    expect_names(answer, 400, "InvalidHeaderValue", "content-length")
    chunked = client.send("PUT", place, [*more.items(), ("Content-Length", None)])
    expect(chunked, 411, "MissingContentLengthHeader")


def test_more_than_a_version_takes(client: Client, names: tuple[str, str, str]) -> None:
    """B-URL-12."""
    source, url, target = names
    put(client, source, content_of(4 * MIB + 1))
    old = {"x-ms-version": "2015-12-11"}
    answer = put_block(client, target, url, old)
    assert (answer.status, answer.error["Code"]) == (413, "RequestBodyTooLarge")
    assert answer.error["MaxLimit"] == str(4 * MIB)
    expect(put_block(client, target, url, {**old, "x-ms-source-range": "bytes=1-4194304"}), 201)


@BOTH
@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ({"if-match": "{etag}"}, 201),
        ({"if-match": "*"}, 201),
        ({"if-match": '"0x1"'}, 412),
        ({"if-none-match": '"0x1"'}, 201),
        ({"if-none-match": "{etag}"}, 304),
        ({"if-none-match": "*"}, 304),
        ({"if-modified-since": OLD}, 201),
        ({"if-modified-since": NEW}, 304),
        ({"if-unmodified-since": NEW}, 201),
        ({"if-unmodified-since": OLD}, 412),
        ({"if-match": '"0x1"', "if-none-match": "{etag}"}, 412),
        ({"if-match": "{etag}", "if-unmodified-since": OLD}, 412),
        ({"if-none-match": "{etag}", "if-modified-since": OLD}, 201),
        ({"if-none-match": "{etag}", "if-modified-since": NEW}, 304),
        ({"if-match": "{etag}", "if-none-match": '"0x1"'}, 201),
        ({"if-tags": "\"a\" = '1'"}, 201),
        ({"if-tags": "\"a\" = '2'"}, 412),
    ],
)
def test_conditions_on_the_source(
    client: Client,
    names: tuple[str, str, str],
    send: Send,
    conditions: dict[str, str],
    status: int,
) -> None:
    """B-URL-13, B-URL-14."""
    source, url, target = names
    etag = put(client, source, b"x", {"x-ms-tags": "a=1"}).etag
    headers = {
        f"x-ms-source-{name}": text.replace("{etag}", etag) for name, text in conditions.items()
    }
    answer = send(client, target, url, headers)
    codes = {201: None, 304: "CannotVerifyCopySource", 412: "CannotVerifyCopySource"}
    assert (answer.status, answer.code) == (status, codes[status])
    if status != 201:
        assert answer["x-ms-copy-source-status-code"] == str(status)
        assert answer["x-ms-copy-source-error-code"] == "ConditionNotMet"
        expect(client.get(f"{target}?comp=blocklist&blocklisttype=all"), 404, "BlobNotFound")


@BOTH
def test_a_source_that_cannot_be_read(
    client: Client, container: str, names: tuple[str, str, str], send: Send
) -> None:
    """B-URL-14."""
    source, url, target = names
    for wrong, code in (
        (url, "BlobNotFound"),
        (url.replace(container, "nothing-here"), "ContainerNotFound"),
    ):
        answer = expect(send(client, target, wrong, {}), 404, "CannotVerifyCopySource")
        assert answer["x-ms-copy-source-status-code"] == "404"
        assert answer["x-ms-copy-source-error-code"] == code
    stage(client, source, "1", b"uncommitted")
    expect(send(client, target, url, {}), 404, "CannotVerifyCopySource")
    put(client, source, b"x", {"x-ms-access-tier": "Archive"})
    answer = expect(send(client, target, url, {"x-ms-access-tier": "Hot"}), 409, "BlobArchived")
    assert answer["x-ms-copy-source-error-code"] == "BlobArchived"
    for text in ("", "/c/b", "ftp://host/c/b", "http://", "http://user:word@host/c/b"):
        answer = send(client, target, text, {})
        expect_names(answer, 400, "InvalidHeaderValue", "x-ms-copy-source")


@BOTH
def test_who_may_read_the_source(
    server: Running, client: Client, container: str, names: tuple[str, str, str], send: Send
) -> None:
    """B-URL-14: as B-CPY-10."""
    source, url, target = names
    put(client, source, b"x")
    writer = client.anonymous
    grant = service_sas(client.credential, container, sp="w", sr="c")

    def by_sas(url: str) -> Answer:
        place = target if send is put_blob else block_target(target, "1")
        mark = "&" if "?" in place else "?"
        more = {"x-ms-copy-source": url, **(PUT_BLOB if send is put_blob else {})}
        return writer.put(f"{place}{mark}{grant}", more)

    answer = expect(by_sas(url), 401, "CannotVerifyCopySource")
    assert answer["x-ms-copy-source-status-code"] == "401"
    assert answer["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
    for letters, status in (("w", 403), ("r", 201)):
        token = service_sas(client.credential, container, "source", sp=letters)
        assert by_sas(f"{url}?{token}").status == status
    other = server.account()
    place = url.replace(f"/{client.account}/", f"/{other.account}/")
    assert send(client, target, place, {}).status == 401


@pytest.mark.parametrize("kind", [PUT_BLOB, SYNC], ids=["Put Blob From URL", "Copy From URL"])
def test_a_token_for_the_source(
    client: Client, names: tuple[str, str, str], kind: dict[str, str]
) -> None:
    """B-URL-15, B-CPY-18: the source refuses tokens as a read with it is refused."""
    source, url, target = names
    put(client, source, b"x")
    name = "x-ms-copy-source-authorization"
    read = client.get(source, {"Authorization": "Bearer secret-token"}, auth=None)
    answer = copy(client, url, target, {**kind, name: "Bearer secret-token"})
    expect(answer, 403, "CannotVerifyCopySource")
    assert answer["x-ms-copy-source-status-code"] == str(read.status)
    assert answer["x-ms-copy-source-error-code"] == read.code
    assert b"secret" not in answer.body
    for text in ("SharedKey a:secret", "Bearer", "Bearer secret secret", "Basic c2VjcmV0"):
        answer = copy(client, url, target, {**kind, name: text})
        expect_names(answer, 400, "InvalidHeaderValue", name)
        assert b"ecret" not in answer.body and b"c2Vj" not in answer.body


@BOTH
def test_the_destination_is_judged_first(
    server: Running, client: Client, names: tuple[str, str, str], send: Send
) -> None:
    """B-URL-16: a caller who may not write learns nothing about the source."""
    _, url, target = names
    put(client, target, b"kept")
    leased = Leased(server, client, target)
    leased.acquire()
    expect(send(client, target, url, {}), 412, "LeaseIdMissing")
    before = seen(client, target)
    expect(send(client, target, url, {"x-ms-lease-id": A}), 404, "CannotVerifyCopySource")
    assert seen(client, target) == before


def test_conditions_on_the_destination(client: Client, names: tuple[str, str, str]) -> None:
    """B-URL-16."""
    source, url, target = names
    expect(put_blob(client, target, url, {"If-Match": '"0x1"'}), 412, "ConditionNotMet")
    put(client, source, b"x")
    put(client, target, b"old")
    expect(put_blob(client, target, url, {"If-None-Match": "*"}), 409, "BlobAlreadyExists")
    answer = put_block(client, target, url, {"If-Match": "*"})
    expect(answer, 400, "ConditionHeadersNotSupported")
    assert body(client, target) == b"old"


def test_snapshots_and_the_blob_itself(
    server: Running, client: Client, names: tuple[str, str, str]
) -> None:
    """B-URL-18."""
    source, url, target = names
    content = content_of(50_000)
    put(client, source, content, {"x-ms-meta-a": "1"})
    at = snapshot(client, source)
    put(client, source, b"newer")
    expect(put_blob(client, target, f"{url}?snapshot={at}"), 201)
    assert body(client, target) == content
    expect(put_blob(client, source, f"{url}?snapshot={at}"), 201)
    assert body(client, source) == content
    for number in range(2):
        given = {
            "x-ms-copy-source": readable(client, url),
            "x-ms-source-range": f"bytes={number * 25_000}-",
        }
        expect(client.put(block_target(source, str(number)), given), 201)
    commit(client, source, ["1", "0"])
    assert body(client, source) == content[25_000:] + content
    expect(put_blob(client, source, url), 201)
    assert body(client, source) == content[25_000:] + content
    Leased(server, client, source).acquire()
    expect(put_blob(client, target, url), 201)


def test_a_crc_of_nothing_is_that_of_an_empty_blob(
    client: Client, names: tuple[str, str, str]
) -> None:
    """B-URL-07, B-URL-10."""
    source, url, target = names
    put(client, source, b"")
    zero = base64.b64encode(bytes(8)).decode()
    expect(put_blob(client, target, url, {"x-ms-source-content-crc64": zero}), 201)
    assert client.head(target)["Content-Length"] == "0"
