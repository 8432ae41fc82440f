"""Set Blob Tier, and the refusals of an archived blob: rules B-TIR-*."""

from __future__ import annotations

import pytest

from tests.conformance.answer import Answer, expect, expect_names, texts
from tests.conformance.blobs import block_list, block_target, body, commit, put, snapshot, stage
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import SYNC, copy, source_url
from tests.conformance.leasing import Leased
from tests.conformance.listing import blob, page, properties
from tests.conformance.running import Running


def set_tier(
    client: Client, target: str, tier: str, headers: dict[str, str] | None = None
) -> Answer:
    """Set Blob Tier; `target` may have a query."""
    joined = "&" if "?" in target else "?"
    given = {**(headers or {}), "x-ms-access-tier": tier}
    return client.put(f"{target}{joined}comp=tier", given)


def tier(client: Client, target: str) -> str:
    """Return the tier that Get Blob Properties reports."""
    return expect(client.head(target), 200)["x-ms-access-tier"]


@pytest.fixture
def archived(client: Client, container: str) -> str:
    """A blob of content `content` in the archive tier."""
    target = f"/{container}/archived"
    put(client, target, headers={"x-ms-access-tier": "Archive"})
    return target


@pytest.mark.parametrize(("sent", "shown"), [("Cool", "Cool"), ("COLD", "Cold"), ("hot", "Hot")])
def test_a_tier_is_set(
    server: Running, client: Client, container: str, sent: str, shown: str
) -> None:
    """B-TIR-01."""
    target = f"/{container}/b"
    made = put(client, target)
    server.advance(5)
    answer = expect(set_tier(client, target, sent), 200)
    assert (answer.body, answer.get("ETag")) == (b"", None)
    found = client.head(target)
    assert (found["x-ms-access-tier"], found.get("x-ms-access-tier-inferred")) == (shown, None)
    assert found.etag == made.etag
    assert found["Last-Modified"] == made["Last-Modified"]
    assert found["x-ms-access-tier-change-time"] != found["Last-Modified"]
    assert body(client, target) == b"content"
    listed = properties(blob(page(client, container), "b"))
    assert listed["AccessTier"] == shown
    assert listed["AccessTierChangeTime"] == found["x-ms-access-tier-change-time"]


def test_what_set_blob_tier_refuses(client: Client, container: str) -> None:
    """B-TIR-02."""
    target = f"/{container}/b"
    put(client, target)
    name = "x-ms-access-tier"
    expect_names(client.put(f"{target}?comp=tier"), 400, "MissingRequiredHeader", name)
    for text in ("P10", "Smart", "warm", ""):
        expect_names(set_tier(client, target, text), 400, "InvalidHeaderValue", name)
    name = "x-ms-rehydrate-priority"
    expect_names(set_tier(client, target, "Cool", {name: "Now"}), 400, "InvalidHeaderValue", name)
    assert tier(client, target) == "Hot"


def test_the_tier_of_a_snapshot(client: Client, container: str) -> None:
    """B-TIR-03."""
    target = f"/{container}/b"
    put(client, target)
    taken = [f"{target}?snapshot={snapshot(client, target)}" for _ in range(2)]
    expect(set_tier(client, taken[0], "Archive"), 200)
    assert [tier(client, one) for one in (*taken, target)] == ["Archive", "Hot", "Hot"]
    expect(client.get(taken[0]), 409, "BlobArchived")
    assert body(client, taken[1]) == body(client, target) == b"content"
    expect(client.delete(target, {"x-ms-delete-snapshots": "include"}), 202)
    expect(set_tier(client, taken[1], "Cool"), 404, "BlobNotFound")


def test_the_tier_of_nothing(client: Client, container: str) -> None:
    """B-TIR-03."""
    target = f"/{container}/b"
    expect(set_tier(client, target, "Cool"), 404, "BlobNotFound")
    stage(client, target, "1", b"x")
    expect(set_tier(client, target, "Cool"), 404, "BlobNotFound")
    expect(set_tier(client, f"/{container}x/b", "Cool"), 404, "ContainerNotFound")
    put(client, target)
    gone = f"{target}?snapshot=2020-01-02T03:04:05.1234567Z"
    expect(set_tier(client, gone, "Cool"), 404, "BlobNotFound")


def test_conditions_of_set_blob_tier(client: Client, container: str) -> None:
    """B-TIR-04."""
    target = f"/{container}/b"
    made = put(client, target, headers={"x-ms-tags": "k=v"})
    refused = set_tier(client, target, "Cool", {"x-ms-if-tags": "k = 'w'"})
    expect(refused, 412, "ConditionNotMet")
    for headers in ({"If-Match": made.etag}, {"If-Modified-Since": made["Last-Modified"]}):
        refused = set_tier(client, target, "Cool", headers)
        expect(refused, 400, "ConditionHeadersNotSupported")
    assert tier(client, target) == "Hot"
    expect(set_tier(client, target, "Cool", {"x-ms-if-tags": "k = 'v'"}), 200)
    assert tier(client, target) == "Cool"


def test_a_lease_stays_through_a_tier(server: Running, client: Client, container: str) -> None:
    """B-TIR-04."""
    target = f"/{container}/b"
    put(client, target)
    leased = Leased(server, client, target)
    leased.acquire()
    expect(set_tier(client, target, "Archive"), 200)
    assert client.head(target)["x-ms-lease-state"] == "leased"


def test_what_an_archived_blob_refuses(client: Client, archived: str) -> None:
    """B-TIR-05."""
    requests: list[tuple[str, str, dict[str, str], bytes]] = [
        ("GET", archived, {}, b""),
        ("GET", archived, {"Range": "bytes=0-1"}, b""),
        ("GET", f"{archived}?comp=blocklist", {}, b""),
        ("PUT", block_target(archived, "1"), {}, b"x"),
        ("PUT", f"{archived}?comp=blocklist", {}, block_list()),
        ("PUT", f"{archived}?comp=blocklist", {}, block_list("missing")),
        ("PUT", f"{archived}?comp=snapshot", {}, b""),
        ("PUT", f"{archived}?comp=properties", {"x-ms-blob-content-type": "text/plain"}, b""),
        ("PUT", f"{archived}?comp=metadata", {"x-ms-meta-k": "v"}, b""),
    ]
    before = client.head(archived)
    for request in requests:
        expect(client.send(*request), 409, "BlobArchived")
    after = client.head(archived)
    assert (after.etag, after["x-ms-access-tier"]) == (before.etag, "Archive")
    assert after.get("x-ms-archive-status") is None


def test_what_an_archived_blob_does(client: Client, container: str, archived: str) -> None:
    """B-TIR-05."""
    assert expect(client.head(archived), 200)["Content-Length"] == "7"
    expect(client.get(f"{archived}?comp=metadata"), 200)
    assert properties(blob(page(client, container), "archived"))["AccessTier"] == "Archive"
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    held = expect(client.put(f"{archived}?comp=lease", lease), 201)["x-ms-lease-id"]
    expect(client.delete(archived, {"x-ms-lease-id": held}), 202)
    assert texts(page(client, container), "Blobs/Blob/Name") == []


@pytest.mark.parametrize("priority", [None, "High", "standard"])
def test_out_of_the_archive(client: Client, archived: str, priority: str | None) -> None:
    """B-TIR-06."""
    expect(set_tier(client, archived, "Archive"), 200)
    more = {} if priority is None else {"x-ms-rehydrate-priority": priority}
    expect(set_tier(client, archived, "Cool", more), 202)
    found = client.head(archived)
    assert found["x-ms-access-tier"] == "Cool"
    assert found.get("x-ms-archive-status") is None
    assert found.get("x-ms-rehydrate-priority") is None
    assert body(client, archived) == b"content"
    expect(set_tier(client, archived, "Cool"), 200)


def test_what_replaces_an_archived_blob(client: Client, archived: str) -> None:
    """B-TIR-07."""
    put(client, archived, b"new")
    found = client.head(archived)
    assert (found["x-ms-access-tier"], found["x-ms-access-tier-inferred"]) == ("Hot", "true")
    assert found.get("x-ms-access-tier-change-time") is None
    assert body(client, archived) == b"new"


def test_what_is_archived_as_it_is_made(client: Client, container: str) -> None:
    """B-TIR-07."""
    archive = {"x-ms-access-tier": "archive"}
    put(client, f"/{container}/a", headers=archive)
    stage(client, f"/{container}/b", "1", b"x")
    commit(client, f"/{container}/b", ["1"], archive)
    put(client, f"/{container}/source")
    source = source_url(client, f"/{container}/source")
    expect(copy(client, source, f"/{container}/c", archive), 202)
    expect(copy(client, source, f"/{container}/d", {**archive, **SYNC}), 202)
    for name in "abcd":
        assert tier(client, f"/{container}/{name}") == "Archive"
        expect(client.get(f"/{container}/{name}"), 409, "BlobArchived")


@pytest.mark.parametrize("kind", [{}, SYNC])
def test_copies_of_an_archived_blob(
    client: Client, container: str, archived: str, kind: dict[str, str]
) -> None:
    """B-TIR-08."""
    source, target = source_url(client, archived), f"/{container}/copy"
    expect(copy(client, source, target, kind), 409, "BlobArchived")
    expect(
        copy(client, source, target, {**kind, "x-ms-access-tier": "Archive"}), 409, "BlobArchived"
    )
    expect(client.head(target), 404, "BlobNotFound")
    wanted = {**kind, "x-ms-access-tier": "Cold"}
    expect(copy(client, source, target, wanted), 202)
    assert (tier(client, target), body(client, target)) == ("Cold", b"content")
    expect(client.get(archived), 409, "BlobArchived")


def test_the_priority_of_a_copy(client: Client, container: str, archived: str) -> None:
    """B-TIR-02."""
    name = "x-ms-rehydrate-priority"
    headers = {"x-ms-access-tier": "Hot", name: "Now"}
    answer = copy(client, source_url(client, archived), f"/{container}/copy", headers)
    expect_names(answer, 400, "InvalidHeaderValue", name)
    headers[name] = "High"
    expect(copy(client, source_url(client, archived), f"/{container}/copy", headers), 202)


def test_a_body_is_put_over_an_archived_blob_under_its_conditions(
    client: Client, archived: str
) -> None:
    """B-TIR-05, B-TIR-07: existence, lease and conditions are judged first."""
    none = {**PUT_BLOB, "If-None-Match": "*"}
    expect(client.put(archived, none, b"x"), 409, "BlobAlreadyExists")
    expect(client.get(archived, {"If-Match": '"0x1"'}), 412, "ConditionNotMet")
