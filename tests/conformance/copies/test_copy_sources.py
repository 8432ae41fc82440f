"""Copies from other servers, and Copy Blob From URL: rules B-CPY-13 to B-CPY-15."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.answer import GUID, expect
from tests.conformance.blobs import body, md5, put
from tests.conformance.client import Client
from tests.conformance.copying import SYNC, copy, ended, held, source_url
from tests.conformance.running import Running
from tests.conformance.sources import HOST, Source, Sources

MIB = 1024 * 1024
BOTH = pytest.mark.parametrize("kind", [{}, SYNC], ids=["Copy Blob", "From URL"])
HEADERS = (
    ("Content-Type", "text/theirs"),
    ("Content-Encoding", "gzip"),
    ("Content-Language", "fr"),
    ("Content-Disposition", "inline"),
    ("Cache-Control", "no-store"),
)


@pytest.fixture(scope="module")
def sources() -> Iterator[Sources]:
    """Another server."""
    with Sources() as found:
        yield found


@pytest.fixture(scope="module")
def copying_server() -> Iterator[Running]:
    """A server that may copy from this machine."""
    running = Running(copy_source_hosts=(HOST,))
    yield running
    running.stop()


@pytest.fixture
def place(copying_server: Running, new_name: Callable[[], str]) -> Iterator[tuple[Client, str]]:
    """A client of that server, and the name of a blob in a new container."""
    client = copying_server.client()
    container = new_name()
    expect(client.put(f"/{container}?restype=container"), 201)
    yield client, f"/{container}/b"
    client.close()


@BOTH
@pytest.mark.parametrize("size", [0, 10, 300_000])
def test_a_source_elsewhere(
    place: tuple[Client, str], sources: Sources, kind: dict[str, str], size: int
) -> None:
    """B-CPY-13."""
    client, target = place
    url = sources.add(f"/file{size}?key=secret", Source(b"x" * size, HEADERS))
    made = expect(copy(client, url, target, kind), 202)
    found = ended(client, target)
    assert found["x-ms-copy-status"] == "success", found
    assert found["x-ms-copy-id"] == made["x-ms-copy-id"]
    assert body(client, target) == b"x" * size
    for name, value in HEADERS:
        assert found[name] == value
    assert found["x-ms-copy-source"] == url.partition("?")[0]
    assert "secret" not in str(found.headers)


def test_a_source_that_ends_early(place: tuple[Client, str], sources: Sources) -> None:
    """B-CPY-13."""
    client, target = place
    put(client, target, b"old")
    url = sources.add("/early", Source(b"x" * 1000, announced=2000))
    expect(copy(client, url, target), 202)
    found = ended(client, target)
    assert found["x-ms-copy-status"] == "failed"
    assert found["x-ms-copy-status-description"]
    assert found["Content-Length"] == "0"
    put(client, target, b"new")


@BOTH
@pytest.mark.parametrize("status", [404, 403, 500])
def test_a_source_that_refuses(
    place: tuple[Client, str], sources: Sources, kind: dict[str, str], status: int
) -> None:
    """B-CPY-13: what it answered comes back."""
    client, target = place
    url = sources.add(f"/status{status}", Source(status=status))
    answer = copy(client, url, target, kind)
    assert answer.code == "CannotVerifyCopySource"
    assert answer.status in (403, 404)
    assert answer["x-ms-copy-source-status-code"] == str(status)
    expect(client.head(target), 404, "BlobNotFound")


def test_from_a_url_that_ends_early(place: tuple[Client, str], sources: Sources) -> None:
    """B-CPY-15: nothing changes."""
    client, target = place
    put(client, target, b"old")
    url = sources.add("/short", Source(b"x" * 1000, announced=2000))
    answer = copy(client, url, target, SYNC)
    assert (answer.status // 100, answer.code) == (4, "CannotVerifyCopySource")
    assert body(client, target) == b"old"


FORBIDDEN = [
    "http://169.254.169.254/latest/meta-data",
    "http://169.254.169.254:80/metadata/instance",
    "http://169.254.1.1/c/b",
    "http://[fe80::1]/c/b",
    "http://[::ffff:169.254.169.254]/c/b",
    "http://[::ffff:a9fe:a9fe]/c/b",
    "http://2852039166/c/b",
    "http://0xa9fea9fe/c/b",
    "http://0.0.0.0:{port}/file",
    "http://[::]:{port}/file",
]


@BOTH
@pytest.mark.parametrize("url", FORBIDDEN)
def test_addresses_that_are_never_asked(
    place: tuple[Client, str], sources: Sources, kind: dict[str, str], url: str
) -> None:
    """B-CPY-14."""
    client, target = place
    before = len(sources.asked)
    answer = copy(client, url.format(port=sources.port), target, kind)
    expect(answer, 403, "CannotVerifyCopySource")
    assert len(sources.asked) == before


@BOTH
def test_a_host_that_is_not_allowed(
    client: Client, container: str, sources: Sources, kind: dict[str, str]
) -> None:
    """B-CPY-14: the settings of this server do not permit reads from this machine."""
    url = sources.add("/private", Source(b"x"))
    before = len(sources.asked)
    for host in (HOST, "localhost", "127.1"):
        answer = copy(client, url.replace(HOST, host), f"/{container}/b", kind)
        expect(answer, 403, "CannotVerifyCopySource")
    assert len(sources.asked) == before


@BOTH
@pytest.mark.parametrize(
    "elsewhere", ["http://169.254.169.254/x", "http://localhost:{port}/secret"]
)
def test_a_redirect_into_the_forbidden(
    place: tuple[Client, str], sources: Sources, kind: dict[str, str], elsewhere: str
) -> None:
    """B-CPY-14."""
    client, target = place
    sources.add("/secret", Source(b"secret"))
    location = elsewhere.format(port=sources.port)
    url = sources.add("/redirect", Source(status=302, headers=(("Location", location),)))
    sources.asked.clear()
    answer = copy(client, url, target, kind)
    assert (answer.status, answer.code) in (
        (403, "CannotVerifyCopySource"),
        (404, "CannotVerifyCopySource"),
    )
    assert "/secret" not in sources.asked
    expect(client.head(target), 404, "BlobNotFound")


@pytest.mark.parametrize("size", [0, 7, 17 * MIB])
def test_from_a_url_is_complete_when_answered(client: Client, container: str, size: int) -> None:
    """B-CPY-15."""
    content = (b"content" * (size // 7 + 1))[:size]
    put(client, f"/{container}/source", content)
    source = source_url(client, f"/{container}/source")
    target = f"/{container}/b"
    right = {**SYNC, "x-ms-source-content-md5": md5(content)}
    made = expect(copy(client, source, target, right), 202)
    assert made["x-ms-copy-status"] == "success"
    assert GUID.fullmatch(made["x-ms-copy-id"])
    read = expect(client.get(target), 200)
    assert (read.body, read.etag) == (content, made.etag)
    assert read["x-ms-copy-status"] == "success"


def test_the_md5_of_a_source(client: Client, container: str) -> None:
    """B-CPY-15."""
    put(client, f"/{container}/source", b"content")
    source = source_url(client, f"/{container}/source")
    target = f"/{container}/b"
    before = put(client, target, b"old")
    name = "x-ms-source-content-md5"
    answer = copy(client, source, target, {**SYNC, name: md5(b"other")})
    expect(answer, 400, "Md5Mismatch")
    assert answer.error["UserSpecifiedMd5"] == md5(b"other")
    for text in ("no base64!", base64.b64encode(b"short").decode()):
        expect(copy(client, source, target, {**SYNC, name: text}), 400, "InvalidMd5")
    assert client.head(target).etag == before.etag


def test_a_source_that_is_too_large(place: tuple[Client, str], sources: Sources) -> None:
    """B-CPY-15."""
    client, target = place
    url = sources.add("/large", Source(b"x", announced=256 * MIB + 1))
    answer = expect(copy(client, url, target, SYNC), 413, "RequestBodyTooLarge")
    assert answer.error["MaxLimit"] == str(256 * MIB)
    expect(client.head(target), 404, "BlobNotFound")


def test_requires_sync_false_is_copy_blob(server: Running, client: Client, container: str) -> None:
    """B-ADR-06: such a copy can be pending in its answer."""
    put(client, f"/{container}/source")
    source = source_url(client, f"/{container}/source")
    with held(server):
        target = f"/{container}/b?timeout=1"
        answer = copy(client, source, target, {"x-ms-requires-sync": "false"})
    assert expect(answer, 202)["x-ms-copy-status"] == "pending"
