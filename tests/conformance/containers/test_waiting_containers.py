"""Waiting on containers and for leases: rules B-WAI-01, B-WAI-03, B-WAI-06 to B-WAI-09, and how
B-WAI-04 and B-WAI-05 hold for containers.

A request with an immediate answer is sent with a long wait, and must be answered well before its
end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from tests.conformance.answer import Answer, expect, expect_names, metadata
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.leasing import A, B, Leased
from tests.conformance.rows import SERVED_BY_KEY, request_of
from tests.conformance.running import Running
from tests.operations.transcript import Row

WAIT = "x-strongroom-wait"
LONG = {WAIT: "40"}
SOON_S = 12.0
# Long enough for a request to arrive and wait.
SETTLE_S = 0.1
COMPS = ("", "&comp=metadata", "&comp=acl")
NOT_WAITING = [row for row in SERVED_BY_KEY if "x-strongroom-wait" not in row.optional]


def acquiring(leased: Leased, lease_id: str, wait_s: int = 40) -> Future[Answer]:
    """An acquisition that waits, in a thread, for an infinite lease."""
    comp = ("&" if "?" in leased.target else "?") + "comp=lease"
    headers = {
        "x-ms-lease-action": "acquire",
        "x-ms-lease-duration": "-1",
        "x-ms-proposed-lease-id": lease_id,
        WAIT: str(wait_s),
    }
    found = leased.client.start("PUT", leased.target + comp, headers)
    time.sleep(SETTLE_S)
    return found


@pytest.mark.parametrize("word", ["0", "61", "-1", "1.5", "long", "", "1 "])
@pytest.mark.parametrize("target", ["{c}?restype=container", "{c}/b"])
def test_a_wait_that_is_none(client: Client, container: str, target: str, word: str) -> None:
    """B-WAI-01."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)
    answer = client.get("/" + target.replace("{c}", container), {WAIT: word})
    if word == "1 ":
        # White space around a value is no part of it.
        expect(answer, 200)
    else:
        expect_names(answer, 400, "InvalidHeaderValue", WAIT)


@pytest.mark.parametrize("row", NOT_WAITING, ids=lambda row: row.id)
def test_an_operation_that_does_not_wait(
    client: Client, account: Client, container: str, new_name: Callable[[], str], row: Row
) -> None:
    """B-WAI-01."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)
    user = client if "{" in row.path else account
    place = new_name() if row.id == "container_create" else container
    sample = request_of(row, place)
    answer = user.send(sample.method, sample.target, {**sample.headers, WAIT: "5"}, sample.body)
    expect(answer, 400, "UnsupportedHeader")
    if row.id == "container_create":
        expect(client.head(f"/{place}?restype=container"), 404, "ContainerNotFound")


@pytest.mark.parametrize("comp", COMPS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_until_a_container_exists(
    client: Client, new_name: Callable[[], str], method: str, comp: str
) -> None:
    """B-WAI-03."""
    target = f"/{new_name()}?restype=container"
    waiting = client.start(method, target + comp, LONG)
    time.sleep(SETTLE_S)
    made = expect(client.put(target, {"x-ms-meta-a": "1"}), 201)
    assert expect(waiting.result(timeout=SOON_S), 200).etag == made.etag


def test_waiting_tells_strangers_nothing(
    client: Client, container: str, new_name: Callable[[], str]
) -> None:
    """B-PUB-02 B-WAI-03: an unauthorized caller is refused at once, whether the container exists or
    not."""
    for name in (container, new_name()):
        begun = time.monotonic()
        answer = client.anonymous.get(f"/{name}?restype=container", LONG)
        expect(answer, 401, "NoAuthenticationInformation")
        assert time.monotonic() - begun < SOON_S


def test_a_container_that_never_exists(client: Client, new_name: Callable[[], str]) -> None:
    """B-WAI-03."""
    before = time.monotonic()
    answer = client.get(f"/{new_name()}?restype=container", {WAIT: "1"})
    expect(answer, 404, "ContainerNotFound")
    assert time.monotonic() - before > 0.8


def test_until_a_blob_exists(client: Client, container: str) -> None:
    """B-WAI-03."""
    waiting = client.start("GET", f"/{container}/b", LONG)
    time.sleep(SETTLE_S)
    expect(client.put(f"/{container}/b", PUT_BLOB, b"here"), 201)
    assert expect(waiting.result(timeout=SOON_S), 200).body == b"here"
    expect(client.get(f"/{container}/absent", {WAIT: "1"}), 404, "BlobNotFound")


def test_a_blob_in_a_missing_container(client: Client, new_name: Callable[[], str]) -> None:
    """B-WAI-03: at once."""
    before = time.monotonic()
    expect(client.get(f"/{new_name()}/b", LONG), 404, "ContainerNotFound")
    assert time.monotonic() - before < SOON_S


@pytest.mark.parametrize("comp", COMPS)
def test_until_a_container_changes(client: Client, container: str, comp: str) -> None:
    """B-WAI-06."""
    target = f"/{container}?restype=container"
    etag = expect(client.head(target), 200).etag
    waiting = client.start("GET", target + comp, {**LONG, "If-None-Match": etag})
    time.sleep(SETTLE_S)
    assert not waiting.done()
    expect(client.put(f"/{container}/b", PUT_BLOB, b"no change of the container"), 201)
    changed = expect(client.put(target + "&comp=metadata", {"x-ms-meta-a": "1"}), 200)
    answer = expect(waiting.result(timeout=SOON_S), 200)
    assert answer.etag == changed.etag
    if comp != "&comp=acl":
        assert metadata(answer) == {"a": "1"}


@pytest.mark.parametrize("comp", COMPS)
def test_a_container_that_does_not_change(client: Client, container: str, comp: str) -> None:
    """B-WAI-06: 304 at the end of the time, and no wait where the ETag differs."""
    target = f"/{container}?restype=container{comp}"
    etag = expect(client.head(target), 200).etag
    before = time.monotonic()
    unchanged = client.get(target, {WAIT: "1", "If-None-Match": etag})
    expect(unchanged, 304, "ConditionNotMet")
    assert time.monotonic() - before > 0.8
    before = time.monotonic()
    expect(client.get(target, {**LONG, "If-None-Match": '"0x8D0000000000000"'}), 200)
    expect(client.get(target, LONG), 200)
    assert time.monotonic() - before < SOON_S
    expect(client.get(target, {"If-None-Match": etag}), 400, "ConditionHeadersNotSupported")


def test_a_container_that_is_deleted_meanwhile(client: Client, container: str) -> None:
    """B-WAI-04 B-WAI-06."""
    target = f"/{container}?restype=container"
    etag = expect(client.head(target), 200).etag
    waiting = client.start("GET", target, {**LONG, "If-None-Match": etag})
    time.sleep(SETTLE_S)
    expect(client.delete(target), 202)
    expect(waiting.result(timeout=SOON_S), 404, "ContainerNotFound")


@pytest.mark.parametrize("how", ["release", "break", "change", "expire"])
def test_a_holder_learns_that_its_lease_is_gone(
    server: Running, client: Client, container: str, how: str
) -> None:
    """B-WAI-05 B-WAI-06: of a container."""
    target = f"/{container}?restype=container"
    leased = Leased(server, client, target)
    leased.acquire(duration_s=60)
    etag = expect(client.head(target), 200).etag
    headers = {**LONG, "If-None-Match": etag, "x-ms-lease-id": A}
    waiting = client.start("GET", target, headers)
    time.sleep(SETTLE_S)
    assert not waiting.done()
    codes = {
        "release": "LeaseNotPresentWithContainerOperation",
        "change": "LeaseIdMismatchWithContainerOperation",
    }
    if how == "expire":
        server.advance(61)
    else:
        fields: dict[str, str | int] = {
            "release": {"lease_id": A},
            "break": {"lease_break_period": 0},
        }.get(  # type: ignore[assignment]  # rows of several shapes
            how, {"lease_id": A, "proposed_lease_id": B}
        )
        expect(leased.act(how, **fields), 202 if how == "break" else 200)
    expect(waiting.result(timeout=SOON_S), 412, codes.get(how, "LeaseLost"))


@pytest.mark.parametrize("how", ["release", "break", "expire", "available"])
def test_until_the_lease_can_be_had(leased: Leased, how: str) -> None:
    """B-WAI-07 B-WAI-08: an expiry wakes waiters even without a write."""
    if how == "available":
        assert expect(acquiring(leased, B).result(timeout=SOON_S), 201)["x-ms-lease-id"] == B
        return
    leased.acquire(duration_s=15)
    waiting = acquiring(leased, B)
    assert not waiting.done()
    if how == "release":
        expect(leased.act("release", lease_id=A), 200)
    elif how == "break":
        expect(leased.act("break", lease_break_period=0), 202)
    else:
        leased.server.advance(16)
    assert expect(waiting.result(timeout=SOON_S), 201)["x-ms-lease-id"] == B
    leased.check("leased(B)")


def test_a_breaking_lease_is_waited_for(leased: Leased) -> None:
    """B-WAI-07: also by the one whose lease is breaking."""
    leased.into("breaking(A)")
    waiting = acquiring(leased, A)
    assert not waiting.done()
    leased.server.advance(30)
    assert expect(waiting.result(timeout=SOON_S), 201)["x-ms-lease-id"] == A


def test_a_lease_that_cannot_be_had(leased: Leased) -> None:
    """B-WAI-07."""
    leased.acquire(duration_s=-1)
    before = time.monotonic()
    waiting = acquiring(leased, B, wait_s=1)
    expect(waiting.result(timeout=SOON_S), 409, "LeaseAlreadyPresent")
    assert time.monotonic() - before > 0.8
    leased.check("leased(A)")


IDS = [f"{number}0000000-0000-4000-8000-000000000000" for number in range(1, 6)]


def test_the_order_of_arrival(leased: Leased) -> None:
    """B-WAI-08."""
    leased.acquire(duration_s=-1)
    waiting = []
    for one in IDS:
        waiting.append(acquiring(leased, one))
        time.sleep(SETTLE_S)  # their order is what is tested
    holder = A
    for one, future in zip(IDS, waiting, strict=True):
        expect(leased.act("release", lease_id=holder), 200)
        assert expect(future.result(timeout=SOON_S), 201)["x-ms-lease-id"] == one
        holder = one
    leased.check("leased(X)", holder)


def test_who_comes_without_waiting_does_not_disturb(leased: Leased) -> None:
    """B-WAI-08: a request without a wait is refused while the lease is held, as always."""
    leased.acquire(duration_s=-1)
    waiting = acquiring(leased, B)
    refused = leased.act("acquire", lease_duration=15)
    expect(refused, 409, "LeaseAlreadyPresent")
    expect(leased.act("release", lease_id=A), 200)
    expect(waiting.result(timeout=SOON_S), 201)


def test_a_client_that_has_gone(leased: Leased) -> None:
    """B-WAI-08: is passed over, and holds nothing."""
    leased.acquire(duration_s=-1)
    comp = ("&" if "?" in leased.target else "?") + "comp=lease"
    headers = {
        "x-ms-lease-action": "acquire",
        "x-ms-lease-duration": "-1",
        "x-ms-proposed-lease-id": IDS[0],
        WAIT: "60",
    }
    gone = leased.client.begin("PUT", leased.target + comp, headers, 0)
    time.sleep(SETTLE_S)
    second = acquiring(leased, IDS[1])
    gone.abandon()
    time.sleep(SETTLE_S)
    expect(leased.act("release", lease_id=A), 200)
    assert expect(second.result(timeout=SOON_S), 201)["x-ms-lease-id"] == IDS[1]
    leased.check("leased(X)", IDS[1])


def test_a_clock_that_is_moved(leased: Leased) -> None:
    """B-WAI-09: wakes every waiter, which then waits on if it must."""
    leased.acquire(duration_s=-1)
    waiting = acquiring(leased, B)
    leased.server.advance(100)
    time.sleep(SETTLE_S)
    assert not waiting.done()
    expect(leased.act("release", lease_id=A), 200)
    expect(waiting.result(timeout=SOON_S), 201)


def test_a_server_that_stops() -> None:
    """B-WAI-09: waiters are answered as at the end of their time."""
    running = Running()
    client = running.client()
    expect(client.put("/con?restype=container"), 201)
    expect(client.put("/con/b", PUT_BLOB, b"x"), 201)
    leased = Leased(running, client, "/con/b")
    leased.acquire(duration_s=-1)
    etag = client.head("/con/b").etag
    waiting = [
        client.start("GET", "/con/b", {**LONG, "If-None-Match": etag}),
        client.start("GET", "/con/absent", LONG),
        client.start("GET", "/absent?restype=container", LONG),
        acquiring(leased, B),
        acquiring(leased, IDS[0]),
    ]
    time.sleep(SETTLE_S)
    assert not any(future.done() for future in waiting)
    before = time.monotonic()
    running.stop()
    assert time.monotonic() - before < SOON_S
    found = [
        (one.status, one.code) for one in (future.result(timeout=SOON_S) for future in waiting)
    ]
    assert found == [
        (304, "ConditionNotMet"),
        (404, "BlobNotFound"),
        (404, "ContainerNotFound"),
        (409, "LeaseAlreadyPresent"),
        (409, "LeaseAlreadyPresent"),
    ]
    client.close()
