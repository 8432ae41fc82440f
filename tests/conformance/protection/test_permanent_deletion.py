"""Permanent deletion of soft-deleted blobs, and the conditions on tiers: B-PRM-*, B-DEL-06."""

from __future__ import annotations

from email.utils import format_datetime, parsedate_to_datetime

import pytest

from strongroom.account_switches import ContainerProtection
from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.blobs import body, put, snapshot
from tests.conformance.client import Client
from tests.conformance.running import Running
from tests.conformance.sas import account_sas, service_sas

PERMANENT = "deletetype=permanent"
DAY_S = 24 * 60 * 60
KINDS = ("snapshot", "version")


def retain(client: Client, permits: bool = True) -> None:
    flag = str(permits).lower()
    policy = (
        "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>"
        f"<AllowPermanentDelete>{flag}</AllowPermanentDelete></DeleteRetentionPolicy>"
        "</StorageServiceProperties>"
    )
    expect(client.put("/?restype=service&comp=properties", body=policy.encode()), 202)


@pytest.fixture
def box(server: Running, account: Client) -> Client:
    retain(account)
    expect(account.put("/box?restype=container"), 201)
    return account


def past(server: Running, client: Client, kind: str, name: str = "b") -> str:
    """A snapshot or a previous version of a blob that has a newer content: its URL."""
    target = f"/box/{name}"
    if kind == "snapshot":
        put(client, target, b"old")
        found = f"{target}?snapshot={snapshot(client, target)}"
    else:
        server.switch(client.account, versioning=True)
        found = f"{target}?versionid={put(client, target, b'old')['x-ms-version-id']}"
    put(client, target, b"new")
    return found


def purge(client: Client, target: str) -> Answer:
    return client.delete(f"{target}&{PERMANENT}")


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_gone_for_good(server: Running, box: Client, kind: str) -> None:
    """B-PRM-01, B-PRM-05."""
    old = past(server, box, kind)
    assert expect(box.delete(old), 202)["x-ms-delete-type-permanent"] == "false"
    assert expect(purge(box, old), 202)["x-ms-delete-type-permanent"] == "true"
    expect(purge(box, old), 404, "BlobNotFound")
    expect(box.put("/box/b?comp=undelete"), 200)
    expect(box.get(old), 404, "BlobNotFound")
    assert body(box, "/box/b") == b"new"
    again = past(server, box, kind)
    expect(box.delete(again), 202)
    server.advance(8 * DAY_S)
    expect(purge(box, again), 404, "BlobNotFound")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_permitted(server: Running, box: Client, kind: str) -> None:
    """B-PRM-02, B-PRM-04: nothing is lost."""
    old = past(server, box, kind)
    expect_names(purge(box, old), 400, "InvalidQueryParameterValue", "deletetype")
    retain(box, permits=False)
    expect(box.delete(old), 202)
    refused = purge(box, old)
    expect_names(refused, 400, "InvalidQueryParameterValue", "deletetype")
    assert "AllowPermanentDelete" in refused.error["Reason"]
    retain(box)
    both = box.delete(f"{old}&{PERMANENT}", {"x-ms-delete-snapshots": "include"})
    expect(both, 400, "InvalidQueryParameterValue")
    unmet = box.delete(f"{old}&{PERMANENT}", {"If-Match": '"0x1"'})
    expect(unmet, 412, "ConditionNotMet")
    expect(box.put("/box/b?comp=undelete"), 200)
    assert body(box, old) == b"old"


def test_what_is_no_snapshot_and_no_version(server: Running, box: Client) -> None:
    """B-PRM-04, B-PRM-05."""
    past(server, box, "version")
    for query in (PERMANENT, "deletetype=soft"):
        refused = box.delete(f"/box/b?{query}")
        expect_names(refused, 400, "InvalidQueryParameterValue", "deletetype")
    current = box.head("/box/b")["x-ms-version-id"]
    refused = purge(box, f"/box/b?versionid={current}")
    expect(refused, 403, "OperationNotAllowedOnRootBlob")
    for name in ("snapshot", "versionid"):
        missing = purge(box, f"/box/b?{name}=2020-01-02T03:04:05.1234567Z")
        expect(missing, 404, "BlobNotFound")
    assert body(box, "/box/b") == b"new"


@pytest.mark.parametrize("kind", KINDS)
def test_it_needs_a_permission_of_its_own(server: Running, box: Client, kind: str) -> None:
    """B-PRM-03: beside other letters too."""
    anyone = box.anonymous
    for letters, status in (("dxw", 403), ("y", 202), ("dxy", 202)):
        for number, token in enumerate(
            (
                service_sas(box.credential, "box", sp=letters),
                account_sas(box.credential, sp=letters, srt="o"),
            )
        ):
            old = past(server, box, kind, f"{letters}{number}")
            expect(box.delete(old), 202)
            code = None if status == 202 else "AuthorizationPermissionMismatch"
            expect(anyone.delete(f"{old}&{PERMANENT}&{token}"), status, code)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_protected_stays(server: Running, box: Client, kind: str) -> None:
    """B-PRM-05: by a container whose protection came after the deletion."""
    old = past(server, box, kind)
    expect(box.delete(old), 202)
    held = {"box": ContainerProtection(holds=("case",))}
    server.switch(box.account, containers=held)
    expect(purge(box, old), 409, "BlobImmutableDueToLegalHold")
    expect(box.put("/box/b?comp=undelete"), 200)
    assert body(box, old) == b"old"


def test_conditions_on_the_tier(server: Running, box: Client) -> None:
    """B-DEL-06: of the blob, and of a snapshot."""
    since = "x-ms-access-tier-if-modified-since"
    until = "x-ms-access-tier-if-unmodified-since"
    made = parsedate_to_datetime(put(box, "/box/b")["Last-Modified"])
    before = format_datetime(made.replace(year=made.year - 1), usegmt=True)
    after = format_datetime(made.replace(year=made.year + 1), usegmt=True)
    taken = f"/box/b?snapshot={snapshot(box, '/box/b')}"
    for target in ("/box/b", taken):
        for headers in ({since: after}, {until: before}, {since: before, until: before}):
            all_of = {} if target == taken else {"x-ms-delete-snapshots": "include"}
            expect(box.delete(target, {**headers, **all_of}), 412, "ConditionNotMet")
        expect_names(box.delete(target, {since: "soon"}), 400, "InvalidHeaderValue", since)
    server.advance(2 * 366 * DAY_S)
    expect(box.put("/box/b?comp=tier", {"x-ms-access-tier": "Cool"}), 200)
    expect(box.delete(taken, {since: after}), 412, "ConditionNotMet")
    expect(box.delete(taken, {since: before, until: after}), 202)
    expect(box.delete("/box/b", {until: after}), 412, "ConditionNotMet")
    expect(box.delete("/box/b", {since: after}), 202)
