"""Blob Batch: rules B-BAT-*, and B-ADR-15."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from uuid import uuid4

import pytest

from tests.conformance import blob_batches as batches
from tests.conformance.answer import GUID, Answer, expect
from tests.conformance.blob_batches import WHOLE, Part, delete, of, post, send, tier
from tests.conformance.blobs import put, snapshot, stage
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.concurrent_clients import ConcurrentClients
from tests.conformance.leasing import A, Leased
from tests.conformance.listing import names, page
from tests.conformance.running import Running
from tests.conformance.sas import account_sas, service_sas


def fill(client: Client, container: str, *found: str) -> list[str]:
    """Put blobs; their targets."""
    targets = [f"/{container}/{name}" for name in found]
    for target in targets:
        put(client, target)
    return targets


def left(client: Client, container: str) -> list[str]:
    return names(page(client, container))


def refused(answer: Answer, code: str = "InvalidInput", says: str = "") -> None:
    """The whole batch was refused."""
    expect(answer, 400, code)
    assert says in answer.error["Message"], answer.error


@pytest.mark.parametrize("here", [False, True])
def test_blobs_are_deleted_together(client: Client, container: str, here: bool) -> None:
    """B-BAT-01, B-BAT-02."""
    targets = fill(client, container, "a", "dir/b", "c%20%C3%A9%2B", "kept")
    parts = [delete(target) for target in (*targets[:2], f"/{container}/none", targets[2])]
    found = send(client, *parts, target=of(container) if here else WHOLE)
    assert [one.content_id for one in found] == ["0", "1", "2", "3"]
    gone, missing = (202, None), (404, "BlobNotFound")
    assert [one.seen for one in found] == [gone, gone, missing, gone]
    assert left(client, container) == ["kept"]


def test_what_an_answer_says(client: Client, container: str) -> None:
    """B-BAT-01."""
    (target,) = fill(client, container, "a")
    mine = str(uuid4())
    given = {"x-ms-client-request-id": mine}
    done, failed = send(client, delete(target, given, content_id="x-7"), delete(target))
    assert (done.content_id, done.status, done.reason, done.body) == ("x-7", 202, "Accepted", b"")
    assert done.headers["x-ms-client-request-id"] == mine
    assert done.headers["x-ms-delete-type-permanent"] == "true"
    assert (failed.content_id, failed.reason) == ("1", "The specified blob does not exist.")
    assert failed.headers["Content-Type"] == "application/xml"
    assert failed.headers["x-ms-client-request-id"] is None
    error = ET.fromstring(failed.body)
    assert error.findtext("Code") == "BlobNotFound"
    ids = [one.headers["x-ms-request-id"] for one in (done, failed)]
    assert f"RequestId:{ids[1]}" in (error.findtext("Message") or "")
    assert len(set(ids)) == 2
    assert all(GUID.fullmatch(one) for one in ids)


def test_nothing_follows_the_last_boundary(client: Client, container: str) -> None:
    """B-BAT-01: Microsoft's C++ SDK reads what follows as one more part."""
    (target,) = fill(client, container, "a")
    for _ in range(2):  # a success, and a refusal with a body
        answer = expect(post(client, batches.body(client, [delete(target)])), 202)
        _, _, boundary = answer["Content-Type"].partition("boundary=")
        assert answer.body.startswith(f"--{boundary}\r\n".encode())
        assert answer.body.endswith(f"\r\n--{boundary}--".encode())


def test_a_part_without_a_content_id(client: Client, container: str) -> None:
    """B-BAT-01."""
    (target,) = fill(client, container, "a")
    (found,) = send(client, delete(target, content_id=""))
    assert (found.content_id, found.status) == (None, 202)


def test_tiers_are_set_together(client: Client, container: str) -> None:
    """B-BAT-02."""
    targets = fill(client, container, "a", "b")
    taken = f"{targets[0]}?snapshot={snapshot(client, targets[0])}"
    bad = tier(targets[1], "Warm")
    found = send(client, tier(targets[0]), bad, tier(taken, "Archive"), tier(f"{targets[1]}x"))
    assert [one.seen for one in found] == [
        (200, None),
        (400, "InvalidHeaderValue"),
        (200, None),
        (404, "BlobNotFound"),
    ]
    shown = [client.head(one)["x-ms-access-tier"] for one in (targets[0], targets[1], taken)]
    assert shown == ["Cool", "Hot", "Archive"]
    assert [one.seen for one in send(client, tier(taken, "Hot"))] == [(202, None)]


def test_parts_have_conditions_leases_and_snapshots(
    server: Running, client: Client, container: str
) -> None:
    """B-BAT-02: as alone."""
    targets = fill(client, container, "etag", "stale", "leased", "held", "base", "one", "only")
    etag, stale, leased, held, base, one, only = targets
    match = {"If-Match": client.head(etag).etag}
    Leased(server, client, leased).acquire()
    Leased(server, client, held).acquire()
    for target in (base, one, only):
        taken = snapshot(client, target)
        if target == one:
            one_snapshot = f"{one}?snapshot={taken}"
    parts = [
        (delete(etag, match), (202, None)),
        (delete(stale, match), (412, "ConditionNotMet")),
        (delete(leased), (412, "LeaseIdMissing")),
        (delete(held, {"x-ms-lease-id": A}), (202, None)),
        (delete(base), (409, "SnapshotsPresent")),
        (delete(one_snapshot), (202, None)),
        (delete(only, {"x-ms-delete-snapshots": "only"}), (202, None)),
        (delete(only, {"x-ms-delete-snapshots": "some"}), (400, "InvalidHeaderValue")),
        (delete(f"{stale}?versionid=1"), (400, "InvalidQueryParameterValue")),
    ]
    found = send(client, *[part for part, _ in parts])
    assert [one.seen for one in found] == [seen for _, seen in parts]
    assert left(client, container) == ["base", "leased", "one", "only", "stale"]
    (found_last,) = send(client, delete(base, {"x-ms-delete-snapshots": "include"}))
    assert found_last.status == 202


OTHERS = [
    ("Get Blob", Part("GET", "/C/a")),
    ("Put Blob", Part("PUT", "/C/b", PUT_BLOB)),
    ("properties", Part("HEAD", "/C/a")),
    ("metadata", Part("PUT", "/C/a?comp=metadata")),
    ("undelete", Part("PUT", "/C/a?comp=undelete")),
    ("Delete Container", Part("DELETE", "/C?restype=container")),
    ("nested", Part("POST", "/?comp=batch", {"Content-Type": batches.TYPE})),
    ("nested here", Part("POST", "/C?restype=container&comp=batch")),
    ("unknown", Part("DELETE", "/C/a?comp=surprise")),
    ("bad escape", delete("/C/%zz", prefix="/devstoreaccount1")),
    ("other kind", Part("PUT", "/C/a?comp=tier", {"x-ms-access-tier": "Cool"})),
    ("of another method", Part("OPTIONS", "/C/a")),
]


@pytest.mark.parametrize(("name", "part"), OTHERS, ids=[name for name, _ in OTHERS])
@pytest.mark.parametrize("first", [False, True])
def test_what_may_not_be_in_a_batch(
    client: Client, container: str, name: str, part: Part, first: bool
) -> None:
    """B-BAT-03: the batch is refused, and none of its parts is run."""
    (target,) = fill(client, container, "a")
    moved = Part(part.method, part.target.replace("/C", f"/{container}", 1), part.headers)
    parts = [moved, delete(target)] if first else [delete(target), moved]
    index = 0 if first and name != "other kind" else 1
    for where in (WHOLE, of(container)):
        refused(post(client, batches.body(client, parts), where), says=f"Request {index} of")
    assert left(client, container) == ["a"]


def test_a_container_s_batch_is_for_its_own_blobs(
    client: Client, container: str, new_name: Callable[[], str]
) -> None:
    """B-BAT-03."""
    other = new_name()
    expect(client.put(f"/{other}?restype=container"), 201)
    parts = [delete(target) for one in (container, other) for target in fill(client, one, "a")]
    data = batches.body(client, parts)
    refused(post(client, data, of(container)), says="Request 1 of")
    assert left(client, container) == left(client, other) == ["a"]
    assert [one.status for one in batches.answers(post(client, data))] == [202, 202]


def test_bodies_that_are_no_batch(client: Client, container: str) -> None:
    """B-BAT-03."""
    (target,) = fill(client, container, "a")
    good = batches.body(client, [delete(target)])
    for data in (
        b"",
        b"--batch_a--\r\n",
        b"batch",
        good.replace(b"--batch_a--", b""),
        good.replace(b"application/http", b"multipart/mixed; boundary=b"),
        good.replace(b"DELETE ", b""),
        good.replace(b"x-ms-date:", b"x-ms-date\x00:"),
        good.replace(b"x-ms-date:", b"Content-Length: 9\r\nx-ms-date:"),
        good.replace(b"x-ms-date:", b"x-a: " + b"b" * 40_000 + b"\r\nx-ms-date:"),
    ):
        refused(post(client, data))
    for kind in ("application/json", "multipart/mixed", "multipart/mixed; boundary="):
        refused(post(client, good, kind=kind))
    refused(client.send("POST", WHOLE, {}, good))
    assert left(client, container) == ["a"]


def test_how_much_a_batch_may_hold(client: Client, container: str) -> None:
    """B-BAT-04."""
    found = [f"b{number:03}" for number in range(257)]
    targets = [f"/{container}/{name}" for name in found]
    with ConcurrentClients(client, 8) as clients:
        clients.run(lambda one, number: [put(one, target) for target in targets[number::8]])
    parts = [delete(target) for target in targets]
    refused(post(client, batches.body(client, parts)), "ExceedsMaxBatchRequestCount")
    assert left(client, container) == found
    done = send(client, *parts[:256], target=of(container))
    assert [(one.content_id, one.status) for one in done] == [(str(n), 202) for n in range(256)]
    assert left(client, container) == found[256:]
    large = batches.body(client, parts[:1]) + b" " * (4 * 1024 * 1024)
    answer = client.another().send("POST", WHOLE, {"Content-Type": batches.TYPE}, large)
    expect(answer, 413, "RequestBodyTooLarge")


def test_each_part_has_its_own_signature(client: Client, container: str) -> None:
    """B-BAT-05."""
    targets = fill(client, container, "a", "b", "c", "d")
    old = {"x-ms-date": "Fri, 26 Jun 2015 23:39:12 GMT"}
    wrong = {**old, "Authorization": f"SharedKey {client.account}:AAAA"}
    found = send(
        client,
        delete(targets[0]),
        delete(targets[1], signed=False),
        delete(targets[2], wrong, signed=False),
        delete(targets[3]),
    )
    assert [one.seen for one in found] == [
        (202, None),
        (401, "NoAuthenticationInformation"),
        (403, "AuthenticationFailed"),
        (202, None),
    ]
    assert left(client, container) == ["b", "c"]


def test_each_part_has_its_own_token(client: Client, container: str) -> None:
    """B-BAT-05: a part has nothing of the token of the whole."""
    targets = fill(client, container, "a", "b", "c", "d", "e")
    own = client.credential
    tokens = [
        account_sas(own, ss="b", srt="o", sp="d"),
        account_sas(own, ss="b", srt="o", sp="rw"),
        service_sas(own, container, sp="d"),
        service_sas(own, container, "x", sp="d"),
        "",
    ]
    parts = [
        delete(f"{target}?{token}" if token else target, signed=False)
        for target, token in zip(targets, tokens, strict=True)
    ]
    data = batches.body(client, parts)
    whole = account_sas(own, ss="b", srt="s", sp="r")
    found = batches.answers(post(client.anonymous, data, f"{WHOLE}&{whole}"))
    assert [one.seen for one in found] == [
        (202, None),
        (403, "AuthorizationPermissionMismatch"),
        (202, None),
        (403, "AuthenticationFailed"),
        (401, "NoAuthenticationInformation"),
    ]
    assert left(client, container) == ["b", "d", "e"]
    whole = service_sas(own, container, sp="l")
    (again,) = batches.answers(
        post(client.anonymous, batches.body(client, parts[2:3]), f"{of(container)}&{whole}")
    )
    assert again.seen == (404, "BlobNotFound")


def test_who_may_not_send_a_batch(client: Client, container: str) -> None:
    """B-BAT-05."""
    (target,) = fill(client, container, "a")
    data = batches.body(client, [delete(target)])
    anonymous = client.anonymous
    for where in (WHOLE, of(container)):
        expect(post(anonymous, data, where), 401, "NoAuthenticationInformation")
    expired = service_sas(client.credential, container, sp="d", se="2020-01-01T00:00:00Z")
    expect(post(anonymous, data, f"{of(container)}&{expired}"), 403, "AuthenticationFailed")
    secondary = client.another(f"{client.prefix}-secondary")
    expect(post(secondary, data), 403, "InsufficientAccountPermissions")
    assert left(client, container) == ["a"]


@pytest.mark.parametrize("style", ["path", "host"])
@pytest.mark.parametrize("here", [False, True])
def test_urls_in_several_forms(
    server: Running, client: Client, container: str, style: str, here: bool
) -> None:
    """B-BAT-06."""
    targets = fill(client, container, "a", "dir/b", "c", "d%2Fe")
    where = of(container) if here else WHOLE
    parts = [
        delete(targets[0], prefix=""),
        delete(targets[1], prefix=f"http://127.0.0.1:1{'' if style == 'host' else client.prefix}"),
        delete(targets[2], prefix="" if style == "host" else client.prefix),
        delete(targets[3], prefix=""),
    ]
    data = batches.body(client, parts)
    headers = {"Content-Type": batches.TYPE}
    if style == "host":
        headers["Host"] = f"{client.account}.blob.localhost:{server.port}"
        client = client.another(prefix="")
    found = batches.answers(client.send("POST", where, headers, data))
    assert [one.seen for one in found] == [(202, None)] * 4


def test_a_url_without_a_slash(client: Client, container: str) -> None:
    """B-BAT-06."""
    (target,) = fill(client, container, "a")
    token = account_sas(client.credential)
    part = delete(f"{target[1:]}?{token}", prefix="", signed=False)
    assert [one.seen for one in send(client, part)] == [(202, None)]


def test_a_container_called_like_its_account(client: Client) -> None:
    """B-BAT-06."""
    own = client.account
    if client.head(f"/{own}?restype=container").status == 404:
        expect(client.put(f"/{own}?restype=container"), 201)
    long = fill(client, own, "a", "b", "c/d", "e")
    found = send(
        client,
        delete(long[0]),
        delete(f"/{own}/b", prefix=""),
    )
    assert [one.seen for one in found] == [(202, None), (202, None)]
    found = send(
        client, delete(f"/{own}/c/d", prefix=""), delete(long[3], prefix=""), target=of(own)
    )
    assert [one.seen for one in found] == [(202, None), (202, None)]
    assert left(client, own) == []


def test_blobs_of_the_root_container(account: Client) -> None:
    """B-BAT-06, B-ADR-04."""
    expect(account.put("/$root?restype=container"), 201)
    for name in "abc":
        expect(account.put(f"/{name}", PUT_BLOB, b"x"), 201)
    parts = [delete("/a", prefix=""), delete("/$root/b"), delete("/%24root/c", prefix="")]
    assert [one.seen for one in send(account, *parts)] == [(202, None)] * 3
    assert left(account, "$root") == []


def test_the_version_of_a_part_is_that_of_the_whole(client: Client, container: str) -> None:
    """B-BAT-07."""
    targets = fill(client, container, "a", "b")
    parts = [delete(targets[0]), delete(targets[1], {"x-ms-version": "2019-07-07"})]
    headers = {"Content-Type": batches.TYPE, "x-ms-version": "2021-02-12"}
    answer = client.send("POST", WHOLE, headers, batches.body(client, parts))
    assert [one.headers["x-ms-version"] for one in batches.answers(answer)] == [
        "2021-02-12",
        "2019-07-07",
    ]


def test_the_same_blob_twice(client: Client, container: str) -> None:
    """B-BAT-08."""
    (target,) = fill(client, container, "a")
    found = Counter(one.seen for one in send(client, *[delete(target) for _ in range(9)]))
    assert found == {(202, None): 1, (404, "BlobNotFound"): 8}


def test_overlapping_batches_delete_each_blob_once(client: Client, container: str) -> None:
    """B-BAT-08: 32 clients, each with a hundred blobs of which the next has half too."""
    found = [f"b{number:04}" for number in range(32 * 50)]
    targets = [f"/{container}/{name}" for name in found]
    with ConcurrentClients(client) as clients:
        clients.run(lambda one, number: [put(one, target, b"") for target in targets[number::32]])

        def act(one: Client, number: int) -> list[tuple[str, tuple[int, str | None]]]:
            mine = [targets[(number * 50 + n) % len(targets)] for n in range(100)]
            answers = send(one, *[delete(target) for target in mine])
            return [(target, one.seen) for target, one in zip(mine, answers, strict=True)]

        seen = [pair for pairs in clients.run(act) for pair in pairs]
    counts = Counter(seen)
    for target in targets:
        assert (counts[target, (202, None)], counts[target, (404, "BlobNotFound")]) == (1, 1)
    assert left(client, container) == []


def test_a_missing_container(client: Client, new_name: Callable[[], str]) -> None:
    """B-BAT-09."""
    name = new_name()
    part = delete(f"/{name}/b")
    (found,) = send(client, part)
    assert found.seen == (404, "ContainerNotFound")
    answer = post(client, batches.body(client, [part]), of(name))
    expect(answer, 404, "ContainerNotFound")


def test_a_blob_of_staged_blocks_only(client: Client, container: str) -> None:
    """B-BAT-02."""
    stage(client, f"/{container}/b", "1", b"x")
    (found,) = send(client, delete(f"/{container}/b"))
    assert found.seen == (404, "BlobNotFound")


def test_names_that_there_cannot_be(client: Client, container: str) -> None:
    """B-BAT-02: the name of one part does not refuse the others."""
    (target,) = fill(client, container, "a")
    parts = [delete(f"/{container}/{'x' * 1025}"), delete("/UPPER/b"), delete(target)]
    assert [one.seen for one in send(client, *parts)] == [
        (400, "OutOfRangeInput"),
        (400, "InvalidResourceName"),
        (202, None),
    ]


def test_a_batch_of_an_account_with_the_restype_of_containers(
    client: Client, container: str
) -> None:
    """B-ADR-15."""
    targets = fill(client, container, "a", "b")
    found = send(client, *[delete(one) for one in targets], target=f"{WHOLE}&restype=container")
    assert [one.seen for one in found] == [(202, None)] * 2


def test_the_time_that_a_batch_may_take(client: Client, container: str) -> None:
    """B-BAT-02: `timeout` is taken by the whole and by its parts."""
    targets = fill(client, container, "a", "b")
    parts = [delete(f"{targets[0]}?timeout=30"), delete(f"{targets[1]}?timeout=x")]
    found = send(client, *parts, target=f"{WHOLE}&timeout=30")
    assert [one.seen for one in found] == [(202, None), (400, "InvalidQueryParameterValue")]
    answer = post(client, batches.body(client, parts), f"{WHOLE}&timeout=0")
    expect(answer, 400, "InvalidQueryParameterValue")
