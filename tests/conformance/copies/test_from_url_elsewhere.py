"""From URL operations with sources on other servers, well-behaved and not: rules B-URL-09 to
B-URL-17."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.answer import Answer, expect, expect_names, metadata
from tests.conformance.blobs import body, commit, md5, put, seen
from tests.conformance.client import Client
from tests.conformance.copies.test_copy_sources import FORBIDDEN, HEADERS
from tests.conformance.copies.test_from_url import put_blob, put_block
from tests.conformance.running import Running
from tests.conformance.sources import HOST, Source, Sources

MIB = 1024 * 1024
Place = tuple[Client, str]
Send = Callable[[Client, str, str, dict[str, str]], Answer]
BOTH = pytest.mark.parametrize("send", [put_blob, put_block], ids=["blob", "block"])
RANGE = "x-ms-source-range"
CONTENT = bytes(range(256)) * 400


@pytest.fixture(scope="module")
def sources() -> Iterator[Sources]:
    """Another server."""
    with Sources() as found:
        yield found


@pytest.fixture(scope="module")
def reading_server() -> Iterator[Running]:
    """A server that may read from this machine."""
    running = Running(copy_source_hosts=(HOST,))
    yield running
    running.stop()


@pytest.fixture
def place(reading_server: Running, new_name: Callable[[], str]) -> Iterator[Place]:
    """A client of that server, and the name of a blob in a new container."""
    client = reading_server.client()
    container = new_name()
    expect(client.put(f"/{container}?restype=container"), 201)
    yield client, f"/{container}/b"
    client.close()


def nothing_staged(client: Client, target: str) -> None:
    """Check that nothing was written to the destination."""
    expect(client.get(f"{target}?comp=blocklist&blocklisttype=all"), 404, "BlobNotFound")


@pytest.mark.parametrize("size", [0, 10, 300_000])
def test_a_blob_from_another_server(place: Place, sources: Sources, size: int) -> None:
    """B-URL-03, B-URL-04: metadata is taken only if the source is a blob service."""
    client, target = place
    meta = ("x-ms-meta-a", "1")
    url = sources.add(f"/blob{size}?sig=secret", Source(b"x" * size, (*HEADERS, meta)))
    made = expect(put_blob(client, target, url), 201)
    found = expect(client.get(target), 200)
    assert (found.body, found.etag) == (b"x" * size, made.etag)
    for name, value in HEADERS:
        assert found[name] == value
    assert metadata(found) == {}
    blob = Source(b"x" * size, (meta, ("x-ms-blob-type", "BlockBlob")))
    expect(put_blob(client, target, sources.add(f"/azure{size}", blob)), 201)
    assert metadata(client.head(target)) == {"a": "1"}


@pytest.mark.parametrize("ranges", [True, False], ids=["answers ranges", "knows no ranges"])
@pytest.mark.parametrize(
    ("text", "first", "end"),
    [("bytes=0-0", 0, 1), ("bytes=5-102399", 5, 102_400), ("bytes=1000-", 1000, 102_400)],
)
def test_a_range_of_a_source_elsewhere(
    place: Place, sources: Sources, ranges: bool, text: str, first: int, end: int
) -> None:
    """B-URL-08."""
    client, target = place
    url = sources.add("/ranges", Source(CONTENT, ranges=ranges))
    part = CONTENT[first:end]
    headers = {RANGE: text, "x-ms-source-content-md5": md5(part)}
    expect(put_block(client, target, url, headers), 201)
    assert sources.headers["range"] == text
    commit(client, target, ["1"])
    assert body(client, target) == part


@pytest.mark.parametrize("ranges", [True, False], ids=["answers ranges", "knows no ranges"])
@pytest.mark.parametrize("text", ["bytes=102400-", "bytes=0-102400", "bytes=500000-500001"])
def test_a_range_beyond_the_end_elsewhere(
    place: Place, sources: Sources, ranges: bool, text: str
) -> None:
    """B-URL-09."""
    client, target = place
    url = sources.add("/beyond", Source(CONTENT, ranges=ranges))
    answer = expect(put_block(client, target, url, {RANGE: text}), 416, "InvalidRange")
    assert answer["x-ms-copy-source-status-code"] == "416"
    nothing_staged(client, target)


@pytest.mark.parametrize(
    "source",
    [
        Source(b"x" * 10, (("Content-Range", "bytes 1-10/20"),), 206),
        Source(b"x" * 10, (("Content-Range", "bytes 0-10/20"),), 206),
        Source(b"x" * 11, (("Content-Range", "bytes 0-9/20"),), 206),
        Source(b"x" * 9, (("Content-Range", "bytes 0-9/20"),), 206),
        Source(b"x" * 9, (("Content-Range", "bytes 0-9/20"),), 206, announced=10),
        Source(b"x" * 10, (("Content-Range", "bytes 9-0/20"),), 206),
        Source(b"x" * 10, (("Content-Range", "items 0-9/20"),), 206),
        Source(b"x" * 10, (), 206),
    ],
)
def test_an_answer_that_is_not_the_range(place: Place, sources: Sources, source: Source) -> None:
    """B-URL-17."""
    client, target = place
    url = sources.add("/wrong-range", source)
    answer = put_block(client, target, url, {RANGE: "bytes=0-9"})
    expect(answer, 404, "CannotVerifyCopySource")
    nothing_staged(client, target)


@BOTH
@pytest.mark.parametrize(
    ("source", "status", "told"),
    [
        (Source(status=404), 404, "404"),
        (Source(status=403), 403, "403"),
        (Source(status=401), 401, "401"),
        (Source(status=500), 404, "500"),
        (Source(status=503), 404, "503"),
        (Source(b"x", (("Content-Range", "bytes 0-0/1"),), 206), 404, "206"),
        (Source(status=302, headers=(("Location", "/secret"),)), 403, "302"),
        (Source(b"x" * 1000, announced=2000), 404, None),
        (Source(b"", announced=5), 404, None),
        (Source(b"x", tuple((f"x-{n}", "y" * 8000) for n in range(20))), 404, None),
    ],
)
def test_a_source_that_misbehaves(
    place: Place,
    sources: Sources,
    send: Send,
    source: Source,
    status: int,
    told: str | None,
) -> None:
    """B-URL-14, B-URL-17: nothing is written, and the answer quotes the source's answer."""
    client, target = place
    sources.add("/secret", Source(b"secret"))
    sources.asked.clear()
    answer = send(client, target, sources.add("/misbehaves", source), {})
    expect(answer, status, "CannotVerifyCopySource")
    assert answer.get("x-ms-copy-source-status-code") == told
    assert sources.asked == ["/misbehaves"]
    nothing_staged(client, target)


def test_the_code_of_a_storage_service(place: Place, sources: Sources) -> None:
    """B-URL-14."""
    client, target = place
    refusal = Source(status=404, headers=(("x-ms-error-code", "BlobNotFound"),))
    answer = put_block(client, target, sources.add("/code", refusal))
    expect(answer, 404, "CannotVerifyCopySource")
    assert answer["x-ms-copy-source-error-code"] == "BlobNotFound"


@BOTH
@pytest.mark.parametrize(("status", "code"), [(304, "CannotVerifyCopySource"), (412, None)])
def test_conditions_that_a_source_elsewhere_refuses(
    place: Place, sources: Sources, send: Send, status: int, code: str | None
) -> None:
    """B-URL-13."""
    client, target = place
    url = sources.add("/conditional", Source(status=status))
    answer = send(client, target, url, {"x-ms-source-if-none-match": '"e"'})
    expect(answer, status, code or "CannotVerifyCopySource")
    assert sources.headers["if-none-match"] == '"e"'
    nothing_staged(client, target)


@BOTH
@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("match", '"e"', 201),
        ("match", '"f"', 412),
        ("none-match", '"e"', 304),
        ("none-match", '"f"', 201),
        ("tags", "\"a\" = '1'", 412),
    ],
)
def test_conditions_that_a_source_elsewhere_does_not_look_at(
    place: Place, sources: Sources, send: Send, name: str, value: str, status: int
) -> None:
    """B-URL-13."""
    client, target = place
    url = sources.add("/simple", Source(b"x", (("ETag", '"e"'),)))
    answer = send(client, target, url, {f"x-ms-source-if-{name}": value})
    codes = {201: None, 304: "CannotVerifyCopySource", 412: "CannotVerifyCopySource"}
    assert (answer.status, answer.code) == (status, codes[status])


@BOTH
@pytest.mark.parametrize("url", FORBIDDEN)
def test_addresses_that_no_source_may_have(
    place: Place, sources: Sources, send: Send, url: str
) -> None:
    """B-URL-14: as B-CPY-14."""
    client, target = place
    before = len(sources.asked)
    answer = send(client, target, url.format(port=sources.port), {})
    expect(answer, 403, "CannotVerifyCopySource")
    assert len(sources.asked) == before
    nothing_staged(client, target)


@BOTH
def test_a_server_that_was_not_allowed(
    client: Client, container: str, sources: Sources, send: Send
) -> None:
    """B-URL-14: the settings of this server do not permit reads from this machine."""
    url = sources.add("/private", Source(b"x"))
    before = len(sources.asked)
    for host in (HOST, "localhost", "127.1", "0x7f000001", "[::ffff:127.0.0.1]"):
        answer = send(client, f"/{container}/b", url.replace(HOST, host), {})
        expect(answer, 403, "CannotVerifyCopySource")
    assert len(sources.asked) == before


@BOTH
def test_a_caller_who_may_not_write_lets_no_server_be_asked(
    place: Place, sources: Sources, send: Send
) -> None:
    """B-URL-16."""
    client, target = place
    url = sources.add("/asked", Source(b"x"))
    put(client, target, b"kept")
    before, asked = seen(client, target), len(sources.asked)
    answer = send(client, target, url, {"x-ms-lease-id": "11111111-1111-1111-1111-111111111111"})
    expect(answer, 412, "LeaseNotPresentWithBlobOperation")
    missing = target.replace("/b", "-not-there/b")
    expect(send(client, missing, url, {}), 404, "ContainerNotFound")
    assert send(client.anonymous, target, url, {}).status in (401, 403, 404)
    assert len(sources.asked) == asked
    assert seen(client, target) == before


@BOTH
def test_a_token_is_not_sent_unencrypted(place: Place, sources: Sources, send: Send) -> None:
    """B-URL-15."""
    client, target = place
    url = sources.add("/token", Source(b"x"))
    before = len(sources.asked)
    answer = send(client, target, url, {"x-ms-copy-source-authorization": "Bearer secret"})
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-copy-source")
    assert b"secret" not in answer.body
    assert len(sources.asked) == before


def test_tags_of_a_source_elsewhere(place: Place, sources: Sources) -> None:
    """B-URL-05."""
    client, target = place
    url = sources.add("/tags", Source(b"x"))
    answer = put_blob(client, target, url, {"x-ms-copy-source-tag-option": "COPY"})
    expect(answer, 404, "CannotVerifyCopySource")
    nothing_staged(client, target)


@pytest.mark.parametrize(
    ("send", "bytes_max"), [(put_blob, 5000 * MIB), (put_block, 4000 * MIB)], ids=["blob", "block"]
)
def test_a_source_that_announces_too_much(
    place: Place, sources: Sources, send: Send, bytes_max: int
) -> None:
    """B-URL-12."""
    client, target = place
    url = sources.add("/large", Source(b"x", announced=bytes_max + 1))
    answer = expect(send(client, target, url, {}), 413, "RequestBodyTooLarge")
    assert answer.error["MaxLimit"] == str(bytes_max)
    nothing_staged(client, target)


@BOTH
def test_digests_of_a_source_elsewhere(place: Place, sources: Sources, send: Send) -> None:
    """B-URL-06."""
    client, target = place
    url = sources.add("/digests", Source(CONTENT))
    name = "x-ms-source-content-md5"
    expect(send(client, target, url, {name: md5(b"other")}), 400, "Md5Mismatch")
    nothing_staged(client, target)
    expect(send(client, target, url, {name: md5(CONTENT)}), 201)


def test_a_slow_source_does_not_hold_up_others(place: Place) -> None:
    """B-URL-17: the destination can be written during the read, and the answer has one version."""
    client, target = place
    with Sources() as slow:
        url = slow.add("/slow", Source(CONTENT, held=True))
        headers = {"x-ms-copy-source": url, "x-ms-blob-type": "BlockBlob"}
        pending = client.start("PUT", target, headers)
        put(client, target, b"meanwhile")
        assert body(client, target) == b"meanwhile"
        slow.release()
        expect(pending.result(timeout=30), 201)
    assert body(client, target) == CONTENT
