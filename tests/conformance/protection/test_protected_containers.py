"""Policies and legal holds of containers: rules B-IMM-21 to B-IMM-30.

The commands that set them are in tests/cli/test_container.py, races with the deletion of a
container in tests/services/containers/test_protected_containers.py.
"""

from __future__ import annotations

import pytest

from strongroom.account_switches import ContainerProtection
from tests.conformance import appending, pages
from tests.conformance.answer import expect
from tests.conformance.blobs import body, put, seen, snapshot, stage
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.protection.test_immutability import (
    CHANGES,
    DAY_S,
    HELD,
    HOLD,
    IMMUTABLE,
    UNTIL,
    WRITES,
    Box,
    paged,
)
from tests.conformance.running import Running

POLICY = ContainerProtection(7)
LOCKED = ContainerProtection(7, True)
HELD_BY_CASE = ContainerProtection(holds=("case",))
CONTAINER = "/box?restype=container"


@pytest.fixture
def box(server: Running, account: Client) -> Box:
    return Box(server, account)


def protect(box: Box, protection: ContainerProtection | None) -> None:
    found = {} if protection is None else {"box": protection}
    box.server.switch(box.client.account, containers=found)


CHANGES_ON_THE_SPOT = [name for name in CHANGES if "copy" not in name and name != "from url"]
"""The changes without a copy's source. The others write their source first. WRITES has those too,
with a source that exists already."""


@pytest.mark.parametrize("name", CHANGES_ON_THE_SPOT)
def test_what_is_refused(box: Box, name: str) -> None:
    """B-IMM-21, B-IMM-22, B-IMM-23: of a blob that was there before, by each protection."""
    change = CHANGES[name]
    put(box.client, "/box/b")
    before = seen(box.client, "/box/b")
    protect(box, POLICY)
    box.server.advance(6 * DAY_S)
    expect(change(box), 409, IMMUTABLE)
    protect(box, ContainerProtection(7, holds=("case",)))
    expect(change(box), 409, HELD)
    assert seen(box.client, "/box/b") == before
    protect(box, None)
    assert change(box).status in (200, 201, 202)


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("versioning", [False, True])
def test_new_blobs_are_written_and_protected(box: Box, name: str, versioning: bool) -> None:
    """B-IMM-22, B-IMM-23: overwriting is refused where versions are made, too."""
    put(box.client, "/box/source")
    box.server.switch(box.client.account, versioning=versioning)
    protect(box, POLICY)
    assert WRITES[name](box, {}).status in (201, 202)
    before = seen(box.client, "/box/n")
    protect(box, ContainerProtection(7, holds=("case",)))
    expect(WRITES[name](box, {}), 409, HELD)
    protect(box, POLICY)
    expect(WRITES[name](box, {}), 409, IMMUTABLE)
    expect(box.client.delete("/box/n"), 409, IMMUTABLE)
    box.server.advance(7 * DAY_S)
    expect(WRITES[name](box, {}), 409, IMMUTABLE)
    assert seen(box.client, "/box/n") == before
    expect(box.client.delete("/box/n"), 202)
    assert WRITES[name](box, {}).status in (201, 202)


def test_what_passes(box: Box) -> None:
    """B-IMM-23: these operations succeed, and Snapshot Blob does not."""
    protect(box, ContainerProtection(7, holds=("case",)))
    put(box.client, "/box/b")
    assert body(box.client, "/box/b") == b"content"
    expect(box.client.put("/box/b?comp=tier", {"x-ms-access-tier": "Cool"}), 200)
    tags = b"<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>"
    expect(box.client.put("/box/b?comp=tags", body=tags), 204)
    expect(stage(box.client, "/box/b", "1", b"x"), 201)
    expect(box.client.put("/box?restype=container&comp=metadata", {"x-ms-meta-a": "b"}), 200)
    expect(box.client.put("/box/b?comp=snapshot"), 409, HELD)
    protect(box, POLICY)
    expect(box.client.put("/box/b?comp=snapshot"), 409, IMMUTABLE)
    assert box.protection("/box/b") == (None, None, None)


def test_snapshots_and_versions_are_protected(box: Box) -> None:
    """B-IMM-22."""
    put(box.client, "/box/s")
    taken = f"/box/s?snapshot={snapshot(box.client, '/box/s')}"
    box.server.switch(box.client.account, versioning=True)
    first = put(box.client, "/box/v")["x-ms-version-id"]
    put(box.client, "/box/v", b"new")
    for protection, code in ((POLICY, IMMUTABLE), (HELD_BY_CASE, HELD)):
        protect(box, protection)
        expect(box.client.delete(taken), 409, code)
        for word in ("include", "only"):
            expect(box.client.delete("/box/s", {"x-ms-delete-snapshots": word}), 409, code)
        expect(box.client.delete(f"/box/v?versionid={first}"), 409, code)
        expect(box.client.delete("/box/v"), 409, code)
        restored = {"x-ms-copy-source": f"{box.client.url}/box/v?versionid={first}"}
        expect(box.client.put("/box/v", restored), 409, code)
    protect(box, None)
    expect(box.client.delete(taken), 202)
    expect(box.client.delete(f"/box/v?versionid={first}"), 202)


def test_a_blob_with_a_protection_of_its_own(box: Box) -> None:
    """B-IMM-24: each of the two protects it."""
    box.server.switch(box.client.account, immutability=True)
    put(box.client, "/box/b")
    expect(box.policy("/box/b", 9 * DAY_S), 200)
    protect(box, POLICY)
    expect(box.client.delete("/box/b"), 409, IMMUTABLE)
    box.server.advance(8 * DAY_S)
    expect(box.client.delete("/box/b"), 409, IMMUTABLE)
    protect(box, ContainerProtection(7, holds=("case",)))
    expect(box.client.delete("/box/b"), 409, HELD)
    protect(box, POLICY)
    box.server.advance(2 * DAY_S)
    expect(box.hold("/box/b"), 200)
    expect(box.client.delete("/box/b"), 409, HELD)
    expect(box.hold("/box/b", "false"), 200)
    expect(box.client.delete("/box/b"), 202)


def test_pages_and_appends(box: Box) -> None:
    """B-IMM-23: Put Page, Clear Pages, resize, Append Block."""
    appending.create(box.client, "/box/a")
    pages.create(box.client, "/box/p", 1024)
    protect(box, POLICY)
    expect(appending.append(box.client, "/box/a", b"x"), 409, IMMUTABLE)
    expect(pages.send(box.client, "/box/p", 0, bytes(512)), 409, IMMUTABLE)
    cleared = {"x-ms-page-write": "clear", "x-ms-range": "bytes=0-511"}
    expect(box.client.put("/box/p?comp=page", cleared), 409, IMMUTABLE)
    resized = {"x-ms-blob-content-length": "512"}
    expect(box.client.put("/box/p?comp=properties", resized), 409, IMMUTABLE)
    assert paged(box, "/box/new", {}).status == 201


@pytest.mark.parametrize("holds", [(), ("case",)])
def test_appends_that_are_permitted(box: Box, holds: tuple[str, ...]) -> None:
    """B-IMM-27: the policy counts from the last of them; nothing else passes."""
    protect(box, ContainerProtection(7, appends=True, holds=holds))
    appending.create(box.client, "/box/a")
    code = HELD if holds else IMMUTABLE
    for _ in range(3):
        expect(appending.append(box.client, "/box/a", b"x"), 201)
        box.server.advance(6 * DAY_S)
    assert body(box.client, "/box/a") == b"xxx"
    expect(box.client.delete("/box/a"), 409, code)
    expect(box.client.put("/box/a?comp=metadata", {"x-ms-meta-a": "b"}), 409, code)
    expect(box.client.put("/box/a", {"x-ms-blob-type": "AppendBlob"}), 409, code)
    box.server.advance(DAY_S)
    expect(appending.append(box.client, "/box/a", b"x"), 201)
    box.server.advance(7 * DAY_S)
    assert box.client.delete("/box/a").status == (409 if holds else 202)


def test_appends_do_not_pass_a_protection_of_the_blob_itself(box: Box) -> None:
    """B-IMM-27: the switch permits only what the container's own policy forbids."""
    box.server.switch(box.client.account, immutability=True)
    protect(box, ContainerProtection(7, appends=True))
    appending.create(box.client, "/box/a")
    expect(box.hold("/box/a"), 200)
    expect(appending.append(box.client, "/box/a", b"x"), 409, HELD)


def test_a_container_says_how_it_is_protected(box: Box) -> None:
    """B-IMM-25, B-CON-03."""
    for protection, policy, hold in (
        (None, "false", "false"),
        (POLICY, "true", "false"),
        (HELD_BY_CASE, "false", "true"),
        (ContainerProtection(7, True, holds=("case",)), "true", "true"),
    ):
        protect(box, protection)
        for ask in (box.client.get, box.client.head):
            found = expect(ask(CONTAINER), 200)
            assert found["x-ms-has-immutability-policy"] == policy
            assert found["x-ms-has-legal-hold"] == hold
        listed = expect(box.client.get("/?comp=list&prefix=box"), 200).body.decode()
        assert f"<HasImmutabilityPolicy>{policy}</HasImmutabilityPolicy>" in listed
        assert f"<HasLegalHold>{hold}</HasLegalHold>" in listed


def test_the_deletion_of_a_container(box: Box) -> None:
    """B-IMM-28."""
    put(box.client, "/box/b")
    for protection, code in (
        (POLICY, "ContainerProtectedFromDeletion"),
        (LOCKED, "ContainerImmutabilityPolicyLocked"),
        (HELD_BY_CASE, "ContainerHasLegalHold"),
    ):
        protect(box, protection)
        expect(box.client.delete(CONTAINER), 409, code)
    protect(box, LOCKED)
    box.server.advance(7 * DAY_S)
    expect(box.client.delete(CONTAINER), 409, "ContainerImmutabilityPolicyLocked")
    expect(box.client.delete("/box/b"), 202)
    protect(box, HELD_BY_CASE)
    expect(box.client.delete(CONTAINER), 409, "ContainerHasLegalHold")
    protect(box, LOCKED)
    expect(box.client.delete(CONTAINER), 202)


def test_a_protection_belongs_to_the_name(box: Box) -> None:
    """B-IMM-29: the protection applies to the container's name, and to no other container."""
    protect(box, POLICY)
    expect(box.client.delete(CONTAINER), 202)
    expect(box.client.put(CONTAINER), 201)
    expect(box.client.put("/boxes?restype=container"), 201)
    for container, status in (("box", 409), ("boxes", 202)):
        put(box.client, f"/{container}/b")
        assert box.client.delete(f"/{container}/b").status == status


def test_a_deleted_blob_comes_back_protected(box: Box) -> None:
    """B-IMM-22, B-SFT-06: one that was deleted before the container was protected."""
    put(box.client, "/box/b")
    retention = (
        b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>"
        b"</DeleteRetentionPolicy></StorageServiceProperties>"
    )
    expect(box.client.put("/?restype=service&comp=properties", body=retention), 202)
    expect(box.client.delete("/box/b"), 202)
    protect(box, HELD_BY_CASE)
    expect(box.client.put("/box/b?comp=undelete"), 200)
    assert body(box.client, "/box/b") == b"content"
    expect(box.client.delete("/box/b"), 409, HELD)


def test_a_write_that_is_refused_gives_no_protection(box: Box) -> None:
    """B-IMM-24: the headers of a policy do not pass the container's protection."""
    box.server.switch(box.client.account, immutability=True)
    protect(box, POLICY)
    put(box.client, "/box/b")
    headers = {**PUT_BLOB, UNTIL: box.date(DAY_S), HOLD: "true"}
    expect(box.client.put("/box/b", headers, b"x"), 409, IMMUTABLE)
    assert box.protection("/box/b") == (None, None, None)
