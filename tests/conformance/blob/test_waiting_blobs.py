"""Waiting for changes of blobs: rules B-WAI-02, B-WAI-04, B-WAI-05, B-WAI-10."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from tests.conformance.answer import Answer, expect
from tests.conformance.blobs import put, snapshot, stage
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.conformance.leasing import A, B, Leased
from tests.conformance.moments import OTHER_ETAG
from tests.conformance.running import Running
from tests.conformance.sas import at, service_sas

# Long enough for any machine: nothing here waits for its end.
LONG = {"x-strongroom-wait": "60"}
READS = {"Get Blob": ("GET", ""), "Get Blob Properties": ("HEAD", "")}
READS |= {"Get Blob Metadata": ("GET", "?comp=metadata")}
ANSWER_S = 20


def sleeping(*waiters: Future[Answer]) -> None:
    """Let requests arrive, and see that none of them is answered."""
    time.sleep(0.1)
    assert not [waiter for waiter in waiters if waiter.done()]


@pytest.fixture(params=["memory", "embedded"])
def place(
    request: pytest.FixtureRequest,
    server: Running,
    tmp_path: Path,
    new_name: Callable[[], str],
) -> Iterator[tuple[Running, Client, str]]:
    """A server of each engine, a client of it, and a new container."""
    running = server if request.param == "memory" else Running(tmp_path / "data")
    client = running.client()
    name = new_name()
    expect(client.put(f"/{name}?restype=container"), 201)
    yield running, client, name
    client.close()
    if running is not server:
        running.stop()


@pytest.mark.parametrize("read", READS)
def test_a_change_is_answered_at_once(place: tuple[Running, Client, str], read: str) -> None:
    """B-WAI-02: with the new state."""
    _, client, container = place
    method, comp = READS[read]
    target = f"/{container}/b"
    first = put(client, target, b"first")
    waiter = client.start(method, target + comp, {**LONG, "If-None-Match": first.etag})
    other = client.start(method, target + comp, {**LONG, "If-None-Match": first.etag})
    sleeping(waiter, other)
    second = put(client, target, b"second", {"x-ms-meta-a": "2"})
    for one in (waiter, other):
        answer = expect(one.result(ANSWER_S), 200)
        assert (answer.etag, answer["x-ms-meta-a"]) == (second.etag, "2")
        if read == "Get Blob":
            assert answer.body == b"second"


@pytest.mark.parametrize(
    "change", ["put", "metadata", "properties", "block list", "copy", "delete and put"]
)
def test_what_counts_as_a_change(client: Client, container: str, change: str) -> None:
    """B-WAI-02."""
    target = f"/{container}/b"
    made = put(client, target)
    put(client, f"/{container}/source")
    waiter = client.start("GET", target, {**LONG, "If-None-Match": made.etag})
    sleeping(waiter)
    if change == "put":
        put(client, target)
    elif change in ("metadata", "properties"):
        expect(client.put(f"{target}?comp={change}"), 200)
    elif change == "block list":
        expect(client.put(f"{target}?comp=blocklist", {}, b"<BlockList/>"), 201)
    elif change == "copy":
        source = {"x-ms-copy-source": f"{client.url}/{container}/source"}
        expect(client.put(target, source), 202)
    else:
        expect(client.delete(target), 202)
        expect(waiter.result(ANSWER_S), 404, "BlobNotFound")
        waiter = client.start("GET", target, LONG)
        sleeping(waiter)
        put(client, target)
    assert expect(waiter.result(ANSWER_S), 200).etag == client.head(target).etag


def test_what_is_no_change(server: Running, client: Client, container: str) -> None:
    """B-WAI-02: what leaves the ETag leaves the waiter."""
    target = f"/{container}/b"
    made = put(client, target)
    waiter = client.start("HEAD", target, {**LONG, "If-None-Match": made.etag})
    sleeping(waiter)
    stage(client, target, "1", b"x")
    snapshot(client, target)
    Leased(server, client, target).acquire()
    put(client, f"/{container}/other")
    server.advance(61)
    sleeping(waiter)
    put(client, target)
    expect(waiter.result(ANSWER_S), 200)


def test_the_end_of_the_time(client: Client, container: str) -> None:
    """B-WAI-02: 304 with what a 304 has."""
    target = f"/{container}/b"
    made = put(client, target)
    short = {"x-strongroom-wait": "1", "If-None-Match": made.etag}
    waiters = [client.start(method, target + comp, short) for method, comp in READS.values()]
    for waiter in waiters:
        answer = expect(waiter.result(ANSWER_S), 304, "ConditionNotMet")
        assert (answer.etag, answer.body) == (made.etag, b"")


def test_what_does_not_wait(client: Client, container: str) -> None:
    """B-WAI-02: a different ETag, no condition, another condition."""
    target = f"/{container}/b"
    made = put(client, target)
    for headers in ({"If-None-Match": OTHER_ETAG}, {}, {"If-Match": made.etag}):
        answer = client.start("GET", target, {**LONG, **headers}).result(ANSWER_S)
        assert expect(answer, 200).etag == made.etag
    answer = client.start("GET", target, {**LONG, "If-Match": OTHER_ETAG}).result(ANSWER_S)
    expect(answer, 412, "ConditionNotMet")


@pytest.mark.parametrize("read", READS)
def test_deleted_meanwhile(place: tuple[Running, Client, str], read: str) -> None:
    """B-WAI-04."""
    _, client, container = place
    method, comp = READS[read]
    target = f"/{container}/b"
    made = put(client, target)
    waiter = client.start(method, target + comp, {**LONG, "If-None-Match": made.etag})
    sleeping(waiter)
    expect(client.delete(target), 202)
    expect(waiter.result(ANSWER_S), 404, "BlobNotFound")


def test_the_container_deleted_meanwhile(client: Client, container: str) -> None:
    """B-WAI-04."""
    made = put(client, f"/{container}/b")
    there = client.start("GET", f"/{container}/b", {**LONG, "If-None-Match": made.etag})
    missing = client.start("GET", f"/{container}/none", LONG)
    sleeping(there, missing)
    expect(client.delete(f"/{container}?restype=container"), 202)
    for waiter in (there, missing):
        expect(waiter.result(ANSWER_S), 404, "ContainerNotFound")


ENDS = {
    "released": "LeaseNotPresentWithBlobOperation",
    "broken": "LeaseLost",
    "expired": "LeaseLost",
    "changed": "LeaseIdMismatchWithBlobOperation",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_holder_learns_that_its_lease_is_lost(
    place: tuple[Running, Client, str], end: str
) -> None:
    """B-WAI-05."""
    server, client, container = place
    target = f"/{container}/b"
    made = put(client, target)
    leased = Leased(server, client, target)
    leased.acquire()
    held = {**LONG, "If-None-Match": made.etag, "x-ms-lease-id": A}
    waiter = client.start("HEAD", target, held)
    sleeping(waiter)
    expect(leased.act("renew", lease_id=A), 200)
    sleeping(waiter)
    if end == "released":
        expect(leased.act("release", lease_id=A), 200)
    elif end == "broken":
        expect(leased.act("break", lease_break_period=0), 202)
    elif end == "expired":
        server.advance(61)
    else:
        expect(leased.act("change", lease_id=A, proposed_lease_id=B), 200)
    expect(waiter.result(ANSWER_S), 412, ENDS[end])


def test_a_break_period_that_ends(server: Running, client: Client, container: str) -> None:
    """B-WAI-05: the lease is held until then."""
    target = f"/{container}/b"
    made = put(client, target)
    leased = Leased(server, client, target)
    leased.acquire()
    held = {**LONG, "If-None-Match": made.etag, "x-ms-lease-id": A}
    waiter = client.start("HEAD", target, held)
    expect(leased.act("break", lease_break_period=10), 202)
    sleeping(waiter)
    server.advance(11)
    expect(waiter.result(ANSWER_S), 412, "LeaseLost")


def test_a_lease_that_ends_by_itself(place: tuple[Running, Client, str]) -> None:
    """B-WAI-05: there is no write, and no clock is advanced."""
    server, client, container = place
    target = f"/{container}/b"
    made = put(client, target)
    leased = Leased(server, client, target)
    leased.acquire()
    expect(leased.act("break", lease_break_period=1), 202)
    held = {**LONG, "If-None-Match": made.etag, "x-ms-lease-id": A}
    waiter = client.start("HEAD", target, held)
    sleeping(waiter)
    expect(waiter.result(ANSWER_S), 412, "LeaseLost")


def test_every_waiter_sees_what_was_acknowledged(place: tuple[Running, Client, str]) -> None:
    """B-WAI-10: committed state only."""
    _, client, container = place
    target = f"/{container}/b"
    etag = put(client, target, b"0").etag
    for number in range(1, 16):
        waiters = [client.start("GET", target, {**LONG, "If-None-Match": etag}) for _ in range(4)]
        made = put(client, target, str(number).encode())
        for waiter in waiters:
            answer = expect(waiter.result(ANSWER_S), 200)
            assert (answer.etag, answer.body) == (made.etag, str(number).encode())
        etag = made.etag


def test_a_waiter_whose_policy_is_removed(server: Running, client: Client, container: str) -> None:
    """B-WAI-10: authorised again."""
    policies = (
        b"<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy>"
        b"<Expiry>2099-01-01T00:00:00Z</Expiry><Permission>r</Permission>"
        b"</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
    acl = f"/{container}?restype=container&comp=acl"
    expect(client.put(acl, {}, policies), 200)
    made = put(client, f"/{container}/b")
    token = service_sas(client.credential, container, si="p", sp="", se="")
    by_token = client.anonymous
    waiter = by_token.start("GET", f"/{container}/b?{token}", {**LONG, "If-None-Match": made.etag})
    sleeping(waiter)
    expect(client.put(acl), 200)
    expect(client.put(f"/{container}/b", PUT_BLOB, b"secret"), 201)
    answer = waiter.result(ANSWER_S)
    expect(answer, 403, "AuthenticationFailed")
    assert b"secret" not in answer.body


def test_a_waiter_of_a_container_that_is_public_no_more(client: Client, container: str) -> None:
    """B-WAI-10."""
    acl = f"/{container}?restype=container&comp=acl"
    expect(client.put(acl, {"x-ms-blob-public-access": "blob"}), 200)
    made = put(client, f"/{container}/b")
    anybody = client.anonymous
    waiter = anybody.start("GET", f"/{container}/b", {**LONG, "If-None-Match": made.etag})
    sleeping(waiter)
    expect(client.put(acl), 200)
    expect(client.put(f"/{container}/b", PUT_BLOB, b"secret"), 201)
    expect(waiter.result(ANSWER_S), 401, "NoAuthenticationInformation")


def test_a_waiter_whose_token_expires(server: Running, client: Client, container: str) -> None:
    """B-WAI-10, B-WAI-07."""
    target = f"/{container}/b"
    made = put(client, target)
    lease = Leased(server, client, target)
    lease.acquire(duration_s=-1)
    expires = time.time() + 2
    token = service_sas(client.credential, container, "b", sp="rw", se=at(2))
    anybody = client.anonymous
    reader = anybody.start("GET", f"{target}?{token}", {**LONG, "If-None-Match": made.etag})
    acquiring = {**LONG, "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    taker = anybody.start("PUT", f"{target}?comp=lease&{token}", acquiring)
    sleeping(reader, taker)
    time.sleep(max(0.0, expires + 0.1 - time.time()))
    expect(client.put(target, {**PUT_BLOB, "x-ms-lease-id": A}, b"secret"), 201)
    answer = reader.result(ANSWER_S)
    expect(answer, 403, "AuthenticationFailed")
    assert b"secret" not in answer.body
    expect(lease.act("release", lease_id=A), 200)
    expect(taker.result(ANSWER_S), 403, "AuthenticationFailed")
    assert expect(client.head(target), 200)["x-ms-lease-state"] == "available"


def test_waiters_whose_key_is_removed(server: Running, new_name: Callable[[], str]) -> None:
    """B-WAI-10: of a blob, of a container, of a container that is not there yet."""
    client, container, missing = server.account(), new_name(), new_name()
    expect(client.put(f"/{container}?restype=container"), 201)
    made = put(client, f"/{container}/b")
    of_container = f"/{container}?restype=container"
    etag = expect(client.get(of_container), 200).etag
    waiters = [
        client.start("GET", f"/{container}/b", {**LONG, "If-None-Match": made.etag}),
        client.start("GET", of_container, {**LONG, "If-None-Match": etag}),
        client.start("GET", f"/{missing}?restype=container", LONG),
    ]
    sleeping(*waiters)
    other = "b3RoZXI="
    server.set_keys(client.account, other)
    owner = Client(server.port, Credential(client.account, other))
    expect(owner.put(f"/{container}/b", PUT_BLOB, b"secret"), 201)
    expect(owner.put(f"{of_container}&comp=metadata", {"x-ms-meta-a": "1"}), 200)
    expect(owner.put(f"/{missing}?restype=container"), 201)
    for waiter in waiters:
        expect(waiter.result(ANSWER_S), 403, "AuthenticationFailed")
    owner.close()
    client.close()
