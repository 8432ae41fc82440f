"""Lease Container and Lease Blob beside the state tables: rules B-LSE-05, B-LSE-09, B-LSE-13 to
B-LSE-23, B-LCO-07."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.answer import ETAG, GUID, expect, expect_names
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.leasing import A, B, Leased
from tests.conformance.running import Running


def left_s(leased: Leased, **fields: str | int) -> int:
    """Break, and the seconds that are left."""
    return int(expect(leased.act("break", **fields), 202)["x-ms-lease-time"])


def test_the_shorter_time_counts(leased: Leased) -> None:
    """B-LSE-05."""
    leased.acquire(duration_s=15)
    assert left_s(leased, lease_break_period=60) in (14, 15)
    assert left_s(leased, lease_break_period=5) in (4, 5)
    assert left_s(leased, lease_break_period=30) in (4, 5)
    leased.server.advance(6)
    leased.check("broken(A)")


def test_break_0_says_0(leased: Leased) -> None:
    """B-LSE-04."""
    leased.acquire()
    assert left_s(leased, lease_break_period=0) == 0
    assert left_s(leased, lease_break_period=10) == 0
    leased.check("broken(A)")


def test_acquire_again_sets_a_new_duration(leased: Leased) -> None:
    """B-LSE-02."""
    leased.acquire(duration_s=15)
    leased.acquire(duration_s=60)
    leased.server.advance(16)
    assert leased.reported()["x-ms-lease-state"] == "leased"
    leased.acquire(duration_s=-1)
    leased.server.advance(86_400)
    assert leased.reported()["x-ms-lease-duration"] == "infinite"
    leased.check("leased(A)")


def test_change_keeps_the_expiry(leased: Leased) -> None:
    """B-LSE-06."""
    leased.acquire(duration_s=20)
    leased.server.advance(12)
    answer = expect(leased.act("change", lease_id=A, proposed_lease_id=B), 200)
    assert answer["x-ms-lease-id"] == B
    leased.server.advance(9)
    assert leased.reported()["x-ms-lease-state"] == "expired"
    leased.check("expired(B)")


def test_change_may_be_repeated(leased: Leased) -> None:
    """B-LSE-07."""
    leased.acquire()
    for _ in range(2):
        expect(leased.act("change", lease_id=A, proposed_lease_id=B), 200)
    leased.check("leased(B)")


def test_renew_starts_the_clock_again(leased: Leased) -> None:
    """B-LSE-09: with the duration of the acquisition."""
    leased.acquire(duration_s=20)
    for _ in range(3):
        leased.server.advance(15)
        expect(leased.act("renew", lease_id=A), 200)
    leased.server.advance(18)
    assert leased.reported()["x-ms-lease-state"] == "leased"
    leased.server.advance(3)
    assert leased.reported()["x-ms-lease-state"] == "expired"
    expect(leased.act("renew", lease_id=A), 200)
    leased.server.advance(18)
    leased.check("leased(A)")


def test_an_infinite_lease_never_expires(leased: Leased) -> None:
    """B-LSE-13."""
    leased.acquire(duration_s=-1)
    leased.server.advance(10 * 86_400)
    leased.check("leased(A)")


def test_a_request_that_decides_after_the_expiry(
    server: Running, client: Client, container: str
) -> None:
    """B-LSE-13: the request began while the lease was held."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"content"), 201)
    leased = Leased(server, client, f"/{container}/b")
    leased.acquire(duration_s=15)
    headers = {**PUT_BLOB, "x-ms-lease-id": A, "Expect": "100-continue"}
    holder = client.begin("PUT", f"/{container}/b", headers, 100_000)
    holder.await_continue()
    holder.send(b"h" * 50_000)
    server.advance(16)
    expect(holder.finish(b"h" * 50_000), 412, "LeaseLost")
    assert expect(client.get(f"/{container}/b"), 200).body == b"content"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "x-ms-lease-action"),
        ({"action": "acquire"}, "x-ms-lease-duration"),
        ({"action": "renew"}, "x-ms-lease-id"),
        ({"action": "release"}, "x-ms-lease-id"),
        ({"action": "change", "id": A}, "x-ms-proposed-lease-id"),
        ({"action": "change"}, None),
        ({"action": "change", "proposed-id": A}, "x-ms-lease-id"),
    ],
)
def test_headers_that_must_be_there(
    leased: Leased, fields: dict[str, str], name: str | None
) -> None:
    """B-LSE-14."""
    names = {"proposed-id": "x-ms-proposed-lease-id"}
    headers = {names.get(word, f"x-ms-lease-{word}"): text for word, text in fields.items()}
    leased.acquire()
    comp = ("&" if "?" in leased.target else "?") + "comp=lease"
    answer = expect(leased.client.put(leased.target + comp, headers), 400, "MissingRequiredHeader")
    assert name is None or answer.error["HeaderName"] == name
    leased.check("leased(A)")


@pytest.mark.parametrize(
    ("action", "name", "value"),
    [
        ("acquire", "lease_duration", "14"),
        ("acquire", "lease_duration", "61"),
        ("acquire", "lease_duration", "0"),
        ("acquire", "lease_duration", "-2"),
        ("acquire", "lease_duration", "1.5"),
        ("acquire", "lease_duration", "long"),
        ("break", "lease_break_period", "-1"),
        ("break", "lease_break_period", "61"),
        ("break", "lease_break_period", "x"),
    ],
)
def test_values_out_of_bounds(leased: Leased, action: str, name: str, value: str) -> None:
    """B-LSE-15."""
    answer = leased.act(action, **{name: value})
    expect_names(answer, 400, "InvalidHeaderValue", f"x-ms-{name.replace('_', '-')}")
    assert leased.reported()["x-ms-lease-state"] == "available"


def test_an_unknown_action(leased: Leased) -> None:
    """B-LSE-15."""
    answer = leased.act("steal", lease_id=A, lease_duration=15)
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-lease-action")


@pytest.mark.parametrize("duration_s", [-1, 15, 60])
def test_durations_that_are_taken(leased: Leased, duration_s: int) -> None:
    """B-LSE-15: the bounds themselves."""
    leased.acquire(duration_s=duration_s)
    assert leased.reported()["x-ms-lease-duration"] == ("infinite" if duration_s < 0 else "fixed")
    leased.check("leased(A)")


PLAIN = A.replace("-", "")


@pytest.mark.parametrize("form", [PLAIN, "{" + A + "}", f"({A})", A.upper(), PLAIN.upper()])
def test_forms_of_an_id(leased: Leased, form: str) -> None:
    """B-LSE-16: one id in each form, answered in one."""
    taken = leased.act("acquire", proposed_lease_id=form, lease_duration=30)
    assert expect(taken, 201)["x-ms-lease-id"] == A
    assert expect(leased.act("renew", lease_id=form), 200)["x-ms-lease-id"] == A
    assert expect(leased.act("renew", lease_id=A), 200)["x-ms-lease-id"] == A
    leased.check("leased(A)")


@pytest.mark.parametrize("form", ["x", A[:-1], A + "0", A.replace("a", "g"), "{" + A, A[1:]])
def test_what_is_no_id(leased: Leased, form: str) -> None:
    """B-LSE-16."""
    for action, name, more in (
        ("acquire", "proposed_lease_id", {"lease_duration": 15}),
        ("renew", "lease_id", {}),
        ("change", "lease_id", {"proposed_lease_id": B}),
        ("change", "proposed_lease_id", {"lease_id": B}),
        ("release", "lease_id", {}),
    ):
        answer = leased.act(action, **{name: form}, **more)
        expect_names(answer, 400, "InvalidHeaderValue", f"x-ms-{name.replace('_', '-')}")


def test_an_empty_proposed_id_is_no_id(leased: Leased) -> None:
    """B-LSE-16."""
    answer = leased.act("acquire", proposed_lease_id="", lease_duration=15)
    expect_names(answer, 400, "InvalidHeaderValue", "x-ms-proposed-lease-id")


def test_break_without_a_period(leased: Leased) -> None:
    """B-LSE-17: a fixed lease breaks for its remaining time."""
    leased.acquire(duration_s=40)
    leased.server.advance(10)
    assert left_s(leased) == 30
    assert leased.reported()["x-ms-lease-state"] == "breaking"
    leased.server.advance(31)
    leased.check("broken(A)")


def test_break_of_an_infinite_lease(leased: Leased) -> None:
    """B-LSE-17: at once, or for the period."""
    leased.acquire(duration_s=-1)
    assert left_s(leased) == 0
    assert leased.reported()["x-ms-lease-state"] == "broken"
    leased.acquire(duration_s=-1)
    assert left_s(leased, lease_break_period=25) == 25
    leased.server.advance(20)
    assert leased.reported()["x-ms-lease-state"] == "breaking"
    leased.server.advance(6)
    leased.check("broken(A)")


@pytest.mark.parametrize("given", [A, B])
def test_break_needs_no_id(leased: Leased, given: str) -> None:
    """B-LSE-18."""
    leased.acquire()
    expect(leased.act("break", lease_break_period=0, lease_id=given), 202)
    leased.check("broken(A)")


def test_what_answers_carry(leased: Leased) -> None:
    """B-LSE-19."""
    before = leased.reported()
    leased.server.advance(2)
    answers = {
        "acquire": leased.acquire(),
        "renew": leased.act("renew", lease_id=A),
        "change": leased.act("change", lease_id=A, proposed_lease_id=B),
        "release": leased.act("release", lease_id=B),
        "acquire again": leased.act("acquire", lease_duration=15),
        "break": leased.act("break", lease_break_period=0),
    }
    for action, answer in answers.items():
        assert answer.status < 300 and answer.body == b"", action
        assert ETAG.fullmatch(answer["ETag"])
        assert (answer["ETag"], answer["Last-Modified"]) == (
            before["ETag"],
            before["Last-Modified"],
        )
        assert ("x-ms-lease-id" in answer.names()) is (action not in ("release", "break"))
        assert ("x-ms-lease-time" in answer.names()) is (action == "break")
    assert (answers["acquire"]["x-ms-lease-id"], answers["renew"]["x-ms-lease-id"]) == (A, A)
    assert answers["change"]["x-ms-lease-id"] == B
    assert GUID.fullmatch(answers["acquire again"]["x-ms-lease-id"])


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("available", "unlocked"),
        ("leased(A)", "locked"),
        ("breaking(A)", "locked"),
        ("broken(A)", "unlocked"),
        ("expired(A)", "unlocked"),
    ],
)
def test_what_reads_report(leased: Leased, state: str, status: str) -> None:
    """B-LSE-20."""
    leased.into(state)
    for answer in (leased.reported(), expect(leased.send("GET"), 200)):
        assert answer["x-ms-lease-status"] == status
        assert answer["x-ms-lease-state"] == state.partition("(")[0]
        expected = "fixed" if state == "leased(A)" else None
        assert answer.get("x-ms-lease-duration") == expected


@pytest.mark.parametrize("action", ["acquire", "renew", "change", "release", "break"])
def test_a_missing_blob(server: Running, client: Client, container: str, action: str) -> None:
    """B-LSE-21."""
    leased = Leased(server, client, f"/{container}/absent")
    fields: dict[str, str | int] = {
        "acquire": {"lease_duration": 15},
        "change": {"lease_id": A, "proposed_lease_id": B},
        "break": {},
    }.get(action, {"lease_id": A})  # type: ignore[assignment]  # rows of several shapes
    expect(leased.act(action, **fields), 404, "BlobNotFound")


def test_a_blob_of_uncommitted_blocks(server: Running, client: Client, container: str) -> None:
    """B-LSE-21: can be leased."""
    blob = f"/{container}/b"
    expect(client.put(f"{blob}?comp=block&blockid=QQ==", (), b"A"), 201)
    leased = Leased(server, client, blob)
    leased.acquire()
    body = b"<BlockList><Latest>QQ==</Latest></BlockList>"
    expect(client.put(f"{blob}?comp=blocklist", (), body), 412, "LeaseIdMissing")
    expect(client.put(f"{blob}?comp=blocklist", {"x-ms-lease-id": A}, body), 201)
    leased.check("leased(A)")


def test_of_several_acquisitions_one_succeeds(leased: Leased) -> None:
    """B-LSE-22."""
    comp = ("&" if "?" in leased.target else "?") + "comp=lease"
    headers = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "30"}
    answers = [leased.client.start("PUT", leased.target + comp, headers) for _ in range(10)]
    found = [answer.result() for answer in answers]
    assert sorted((one.status, one.code or "") for one in found) == [
        (201, ""),
        *[(409, "LeaseAlreadyPresent")] * 9,
    ]
    winner = next(one for one in found if one.status == 201)
    leased.check("leased(X)", winner["x-ms-lease-id"])


@pytest.mark.parametrize("kind", ["container", "blob"])
def test_leases_survive_a_restart(tmp_path: Path, kind: str) -> None:
    """B-LSE-23."""
    states = ("leased(A)", "breaking(A)", "broken(A)", "expired(A)")
    for restarted in (False, True):
        running = Running(tmp_path / "data")
        client = running.client()
        # The expired one last: bringing it there lets time pass for all.
        for number, state in enumerate((states[3], *states[:3])):
            target = f"/con{number}/b" if kind == "blob" else f"/con{number}?restype=container"
            leased = Leased(running, client, target)
            if restarted:
                leased.check(state)
                continue
            expect(client.put(f"/con{number}?restype=container"), 201)
            if kind == "blob":
                expect(client.put(target, PUT_BLOB, b"x"), 201)
            leased.into(state)
        client.close()
        running.stop()


def test_a_container_lease_excludes_its_deletion_only(
    server: Running, client: Client, container: str
) -> None:
    """B-LCO-07."""
    target = f"/{container}?restype=container"
    leased = Leased(server, client, target)
    leased.acquire(duration_s=-1)
    blob = f"/{container}/b"
    expect(client.put(blob, PUT_BLOB, b"x"), 201)
    expect(client.put(blob + "?comp=metadata", {"x-ms-meta-a": "1"}), 200)
    expect(client.put(blob + "?comp=block&blockid=QQ==", (), b"A"), 201)
    expect(client.delete(blob), 202)
    expect(client.delete(target), 412, "LeaseIdMissing")
    leased.check("leased(A)")


def test_leased_blobs_do_not_hinder_the_containers_deletion(
    server: Running, client: Client, container: str
) -> None:
    """B-LCO-07."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"x"), 201)
    Leased(server, client, f"/{container}/b").acquire(duration_s=-1)
    expect(client.delete(f"/{container}?restype=container"), 202)
