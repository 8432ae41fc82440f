"""Races over real connections, on both engines: B-CWR-01, B-CWR-03, B-CWR-10, B-LST-06, B-CPY-16,
B-LSE-22, B-TAG-17, and that no read is torn."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from tests.conformance.answer import Answer, expect
from tests.conformance.blobs import block_list, block_target, body, commit, md5, put
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.concurrent_clients import CLIENTS, ConcurrentClients
from tests.conformance.copying import readable
from tests.conformance.leasing import A, Leased
from tests.conformance.listing import names, pages
from tests.conformance.running import Running
from tests.conformance.tagging import found, set_tags, tags
from tests.effort import scaled

KIB, MIB = 1024, 1024 * 1024


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a data directory."""
    running = Running(tmp_path_factory.mktemp("races") / "data")
    yield running
    running.stop()


@pytest.fixture(params=["memory", "embedded"])
def place(
    request: pytest.FixtureRequest, server: Running, embedded: Running, new_name: Callable[[], str]
) -> Iterator[tuple[Running, Client, str]]:
    """A server of each engine, a client of it, and a new container."""
    running = server if request.param == "memory" else embedded
    client = running.client()
    name = new_name()
    expect(client.put(f"/{name}?restype=container"), 201)
    yield running, client, name
    client.close()


Place = tuple[Running, Client, str]


def codes(answers: list[Answer]) -> Counter[tuple[int, str | None]]:
    """Return how often each answer was given."""
    return Counter((answer.status, answer.code) for answer in answers)


@pytest.mark.parametrize("kind", ["put", "metadata", "delete", "block list"])
def test_one_of_32_writers_with_one_etag_wins(place: Place, kind: str) -> None:
    """B-CWR-01."""
    _, client, container = place
    target = f"/{container}/b"

    def write(one: Client, number: int) -> Answer:
        condition = {"If-Match": etag}
        if kind == "put":
            return one.put(target, {**PUT_BLOB, **condition}, str(number).encode())
        if kind == "delete":
            return one.delete(target, condition)
        if kind == "block list":
            return one.put(f"{target}?comp=blocklist", condition, block_list())
        return one.put(f"{target}?comp=metadata", {**condition, "x-ms-meta-a": str(number)})

    with ConcurrentClients(client) as clients:
        for _ in range(scaled(6)):
            etag = put(client, target).etag
            answers = clients.run(write)
            winners = [number for number, one in enumerate(answers) if one.status < 300]
            assert len(winners) == 1, codes(answers)
            lost = (404, "BlobNotFound") if kind == "delete" else (412, "ConditionNotMet")
            assert codes(answers)[lost] == CLIENTS - 1, codes(answers)
            if kind == "put":
                assert body(client, target) == str(winners[0]).encode()
            elif kind == "metadata":
                assert client.head(target)["x-ms-meta-a"] == str(winners[0])
            if kind != "delete":
                assert client.head(target).etag == answers[winners[0]].etag


@pytest.mark.parametrize("kind", ["put", "block list", "copy", "all of them"])
def test_one_of_32_creators_wins(place: Place, kind: str) -> None:
    """B-CWR-03."""
    _, client, container = place
    put(client, f"/{container}/source", b"source")
    source = {"x-ms-copy-source": f"{client.url}/{container}/source"}
    absent = {"If-None-Match": "*"}
    for attempt in range(scaled(6)):
        target = f"/{container}/b{attempt}"

        def create(one: Client, number: int, target: str = target) -> Answer:
            way = ("put", "block list", "copy")[number % 3] if kind == "all of them" else kind
            if way == "put":
                return one.put(target, {**PUT_BLOB, **absent}, b"x")
            if way == "copy":
                return one.put(target, {**source, **absent})
            return one.put(f"{target}?comp=blocklist", absent, block_list())

        with ConcurrentClients(client) as clients:
            answers = clients.run(create)
        winners = [answer for answer in answers if answer.status in (201, 202)]
        assert len(winners) == 1, codes(answers)
        assert codes(answers)[(409, "BlobAlreadyExists")] == CLIENTS - 1, codes(answers)
        assert client.head(target).etag == winners[0].etag


def test_no_increment_is_lost(place: Place) -> None:
    """B-CWR-10: no other write comes between the check and the change."""
    _, client, container = place
    target = f"/{container}/counter"
    put(client, target, b"0")

    def increment(one: Client, number: int) -> int:
        done = 0
        for _ in range(scaled(18)):
            read = one.get(target)
            condition = {**PUT_BLOB, "If-Match": read.etag}
            answer = one.put(target, condition, str(int(read.body) + 1).encode())
            assert (answer.status, answer.code) in ((201, None), (412, "ConditionNotMet"))
            done += answer.status == 201
        return done

    with ConcurrentClients(client) as clients:
        total = sum(clients.run(increment))
    assert 0 < total == int(body(client, target))


def test_one_of_32_gets_the_lease(place: Place) -> None:
    """B-LSE-22."""
    running, client, container = place
    target = f"/{container}/b"
    put(client, target)
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "60"}
    with ConcurrentClients(client) as clients:
        for _ in range(scaled(6)):
            answers = clients.run(lambda one, _: one.put(f"{target}?comp=lease", acquire))
            (winner,) = [answer for answer in answers if answer.status == 201]
            assert codes(answers)[(409, "LeaseAlreadyPresent")] == CLIENTS - 1, codes(answers)
            held = Leased(running, client, target)
            expect(held.act("release", lease_id=winner["x-ms-lease-id"]), 200)


def version_of(content: bytes) -> int:
    """The version whose bytes these are; all of them must be of one."""
    assert content == content[:1] * len(content), "a torn read"
    return content[0]


@pytest.mark.parametrize("made_by", ["put", "block list"])
@pytest.mark.parametrize(("size", "writes"), [(KIB, 180), (100 * KIB, 90), (3 * MIB, 18)])
def test_no_read_is_torn(place: Place, size: int, writes: int, made_by: str) -> None:
    """B-PUT-01 B-GET-10: every byte, the length, the ETag and the metadata are of one version."""
    _, client, container = place
    target = f"/{container}/b"
    written: dict[str, int] = {}
    numbers = itertools.count(1)
    done = threading.Event()

    def write(one: Client) -> None:
        version = next(numbers) % 256
        content = bytes([version]) * (size - version)
        meta = {"x-ms-meta-version": str(version)}
        if made_by == "put":
            made = expect(one.put(target, {**PUT_BLOB, **meta}, content), 201)
        else:
            name = f"{version:03}"
            expect(one.put(block_target(target, name), {}, content), 201)
            answer = one.put(f"{target}?comp=blocklist", meta, block_list(name))
            if answer.code == "InvalidBlockList":
                return  # another list dropped the block
            made = expect(answer, 201)
        written[made.etag] = version

    def read(one: Client) -> list[tuple[str, int, str]]:
        seen = []
        while not done.is_set():
            answer = expect(one.get(target), 200)
            version = version_of(answer.body)
            assert len(answer.body) == int(answer["Content-Length"]) == size - version
            if made_by == "put":
                assert answer["Content-MD5"] == md5(answer.body)
            seen.append((answer.etag, version, answer["x-ms-meta-version"]))
        return seen

    def act(one: Client, number: int) -> list[tuple[str, int, str]]:
        if number % 4:
            return read(one)
        for _ in range(scaled(writes) // 2):
            write(one)
        if not number:
            done.set()
        return []

    write(client)
    with ConcurrentClients(client, 8) as clients:
        reads = [seen for one in clients.run(act) for seen in one]
    assert reads
    for etag, version, meta in reads:
        assert written.get(etag) == version == int(meta)


def test_a_listing_while_others_write(place: Place) -> None:
    """B-LST-06: a blob that stands still is there exactly once."""
    _, client, container = place
    still = [f"{letter}{number}" for letter in "aem" for number in range(20)]
    for name in still:
        put(client, f"/{container}/{name}", b"")
    done = threading.Event()

    def churn(one: Client, number: int) -> None:
        while not done.is_set():
            for name in (f"a{number}x", f"b{number}", f"e1{number}x", f"z{number}"):
                put(one, f"/{container}/{name}", b"x")
                put(one, f"/{container}/{name}", b"y")
            for name in (f"a{number}x", f"b{number}", f"e1{number}x", f"z{number}"):
                expect(one.delete(f"/{container}/{name}"), 202)

    def act(one: Client, number: int) -> int:
        if number >= 2:
            churn(one, number)
            return 0
        try:
            for size in (1, 3, 7, 50) if number else (2, 5, 13, 61):
                parts = pages(one, container, maxresults=size)
                found = [name for part in parts for name in names(part)]
                assert found == sorted(set(found))
                assert [name for name in found if name in set(still)] == sorted(still)
        finally:
            if number == 0:
                done.set()
        return 1

    with ConcurrentClients(client, 8) as clients:
        assert sum(clients.run(act)) == 2


def test_a_marker_works_though_its_blob_is_gone(client: Client, container: str) -> None:
    """B-LST-06."""
    for name in "bdfhk":
        put(client, f"/{container}/{name}")
    seen = []
    for part in pages(client, container, maxresults=1):
        for name in names(part):
            seen.append(name)
            # Names before the marker come and go; no other name is skipped or repeated.
            expect(client.delete(f"/{container}/{name}"), 202)
            put(client, f"/{container}/a{name}")
    assert seen == list("bdfhk")


@pytest.mark.parametrize(
    ("kind", "status"),
    [({}, 202), ({"x-ms-requires-sync": "true"}, 202), (PUT_BLOB, 201)],
    ids=["Copy Blob", "Copy Blob From URL", "Put Blob From URL"],
)
def test_a_copy_of_a_source_that_changes(place: Place, kind: dict[str, str], status: int) -> None:
    """B-CPY-16, B-URL-17: of one of its contents, never a mixture."""
    _, client, container = place
    source = f"/{container}/source"
    headers = {"x-ms-copy-source": readable(client, f"{client.url}{source}"), **kind}
    done = threading.Event()

    def put_version(one: Client, version: int) -> None:
        meta = {"x-ms-meta-version": str(version)}
        put(one, source, bytes([version]) * (200 * KIB - version), meta)

    def act(one: Client, number: int) -> int:
        if number >= 2:
            for version in range(1, scaled(90)):
                put_version(one, version * 4 % 256)
            if number == 2:
                done.set()
            return 0
        copies = 0
        while not done.is_set():
            target = f"/{container}/copy{number}"
            expect(one.put(target, headers), status)
            answer = expect(one.get(target), 200)
            version = version_of(answer.body)
            assert len(answer.body) == 200 * KIB - version
            assert answer["x-ms-meta-version"] == str(version)
            copies += 1
        return copies

    put_version(client, 1)
    with ConcurrentClients(client, 5) as clients:
        assert sum(clients.run(act)) > 0


def test_blocks_of_a_source_that_changes(place: Place) -> None:
    """B-URL-17: the ranges of one ETag are of one content; a newer one is refused."""
    _, client, container = place
    source = f"/{container}/source"
    half = 100 * KIB

    def act(one: Client, number: int) -> tuple[int, int]:
        if number == 0:
            for version in range(60):
                put(one, source, bytes([version]) * 2 * half)
            return 0, 0
        whole, refused = 0, 0
        for attempt in range(20):
            target = f"/{container}/b{number}-{attempt}"
            etag = one.head(source).etag
            answers = [
                one.put(
                    block_target(target, str(part)),
                    {
                        "x-ms-copy-source": readable(client, f"{client.url}{source}"),
                        "x-ms-source-range": f"bytes={part * half}-{part * half + half - 1}",
                        "x-ms-source-if-match": etag,
                    },
                )
                for part in range(2)
            ]
            if codes(answers)[(201, None)] < 2:
                assert set(codes(answers)) <= {(201, None), (412, "CannotVerifyCopySource")}
                refused += 1
                continue
            commit(one, target, ["0", "1"])
            found = body(one, target)
            assert (len(found), len(set(found))) == (2 * half, 1)
            whole += 1
        return whole, refused

    put(client, source, bytes(2 * half))
    with ConcurrentClients(client, 8) as clients:
        clients.run(act)
    # The source is no longer replaced.
    assert act(client, 8) == (20, 0)


def test_one_of_32_blobs_from_a_url_is_the_first(place: Place) -> None:
    """B-CWR-03, B-URL-16."""
    _, client, container = place
    put(client, f"/{container}/source", b"x" * 20 * KIB)
    headers = {
        **PUT_BLOB,
        "x-ms-copy-source": readable(client, f"{client.url}/{container}/source"),
        "If-None-Match": "*",
    }

    def create(one: Client, number: int) -> Answer:
        return one.put(f"/{container}/b", {**headers, "x-ms-meta-by": str(number)})

    with ConcurrentClients(client) as clients:
        answers = clients.run(create)
    assert codes(answers) == {(201, None): 1, (409, "BlobAlreadyExists"): CLIENTS - 1}
    winner = [number for number, one in enumerate(answers) if one.status == 201]
    assert client.head(f"/{container}/b")["x-ms-meta-by"] == str(winner[0])


def test_a_lease_keeps_31_others_out(place: Place) -> None:
    """B-LOP-01: writers without the id, while the holder writes."""
    running, client, container = place
    target = f"/{container}/b"
    put(client, target, b"0")
    Leased(running, client, target).acquire(duration_s=-1)

    def write(one: Client, number: int) -> Answer:
        headers = {**PUT_BLOB, "x-ms-lease-id": A} if number == 7 else PUT_BLOB
        return one.put(target, headers, str(number).encode())

    with ConcurrentClients(client) as clients:
        for _ in range(3):
            answers = clients.run(write)
            assert codes(answers) == {(201, None): 1, (412, "LeaseIdMissing"): CLIENTS - 1}
    assert body(client, target) == b"7"


@pytest.mark.parametrize("kind", ["set tags", "put", "block list", "copy"])
def test_one_of_32_writers_of_one_state_of_tags_wins(place: Place, kind: str) -> None:
    """B-TAG-17."""
    _, client, container = place
    target = f"/{container}/b"
    put(client, target, headers={"x-ms-tags": "state=0&by=nobody"})

    def write(one: Client, number: int) -> Answer:
        condition = {"x-ms-if-tags": f"\"state\" = '{state}'"}
        made = {"state": str(state + 1), "by": str(number)}
        if kind == "set tags":
            return set_tags(one, target, made, condition)
        text = "&".join(f"{key}={quote(value)}" for key, value in made.items())
        headers = {**condition, "x-ms-tags": text}
        if kind == "put":
            return one.put(target, {**PUT_BLOB, **headers}, b"x")
        if kind == "block list":
            return one.put(f"{target}?comp=blocklist", headers, block_list())
        return one.put(target, {**headers, "x-ms-copy-source": f"{client.url}{target}"})

    with ConcurrentClients(client) as clients:
        for state in range(scaled(6)):
            answers = clients.run(write)
            winners = [number for number, one in enumerate(answers) if one.status < 300]
            losers = [one for one in answers if (one.status, one.code) == (412, "ConditionNotMet")]
            assert (len(winners), len(losers)) == (1, CLIENTS - 1)
            assert tags(client, target) == {"by": str(winners[0]), "state": str(state + 1)}
            wanted = f"state = '{state + 1}' AND by = '{winners[0]}'"
            assert found(client, wanted, container) == ["b"]
            assert found(client, "state >= '0'", container) == ["b"]
