"""Soft-deleted containers, and Restore Container: rules B-RST-01 to B-RST-06."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from azure.storage.blob import BlobServiceClient

from tests.conformance.answer import Answer, expect, metadata
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.leasing import Leased
from tests.conformance.running import Running

DAY_S = 24 * 60 * 60
PATH = "/box?restype=container"
POLICY = b"<SignedIdentifiers><SignedIdentifier><Id>p</Id></SignedIdentifier></SignedIdentifiers>"


def kept(account: Client, include: str = "deleted") -> list[ET.Element]:
    """The deleted containers of the account."""
    answer = expect(account.get(f"/?comp=list&include={include}"), 200)
    rows = answer.xml.findall("Containers/Container")
    return [row for row in rows if row.findtext("Deleted") == "true"]


def version(row: ET.Element) -> str:
    found = row.findtext("Version")
    assert found is not None
    return found


def restore(account: Client, text: str, name: str = "box", container: str = "box") -> Answer:
    headers = {"x-ms-deleted-container-name": name, "x-ms-deleted-container-version": text}
    return account.put(f"/{container}?restype=container&comp=undelete", headers)


def delete(account: Client) -> str:
    """Delete the container; returns the version of the one deleted last."""
    expect(account.delete(PATH), 202)
    return max(version(row) for row in kept(account))


def test_a_deleted_container_comes_back_as_it_was(server: Running, account: Client) -> None:
    """B-RST-01, B-RST-02, B-RST-03."""
    server.switch(account.account, container_retention_days=7)
    expect(account.put(PATH, {"x-ms-meta-colour": "red"}), 201)
    public = {"x-ms-blob-public-access": "container"}
    expect(account.put(PATH + "&comp=acl", public, POLICY), 200)
    expect(account.put("/box/b", PUT_BLOB, b"text"), 201)
    taken = expect(account.put("/box/b?comp=snapshot"), 201)["x-ms-snapshot"]
    leased = Leased(server, account, PATH)
    leased.acquire(duration_s=15)
    before = expect(account.head(PATH), 200)
    expect(account.delete(PATH), 412, "LeaseIdMissing")
    server.advance(16)
    expect(account.delete(PATH), 202)
    for target in (PATH, "/box/b", f"/box/b?snapshot={taken}"):
        expect(account.get(target), 404, "ContainerNotFound")
    assert not kept(account, "metadata")
    (row,) = kept(account, "deleted,metadata")
    assert [child.tag for child in row][:3] == ["Name", "Deleted", "Version"]
    assert [child.tag for child in row.findall("Properties/*")][-2:] == [
        "DeletedTime",
        "RemainingRetentionDays",
    ]
    assert row.findtext("Properties/RemainingRetentionDays") == "7"
    assert row.findtext("Metadata/colour") == "red"
    expect(restore(account, version(row)), 201)
    after = expect(account.head(PATH), 200)
    assert metadata(after) == {"colour": "red"}
    assert after.etag == before.etag
    assert after["x-ms-blob-public-access"] == "container"
    assert after["x-ms-lease-state"] == "available"
    assert b"<Id>p</Id>" in expect(account.get(PATH + "&comp=acl"), 200).body
    for target in ("/box/b", f"/box/b?snapshot={taken}"):
        assert expect(account.get(target), 200).body == b"text"
    assert not kept(account)


def test_what_cannot_be_restored(server: Running, account: Client) -> None:
    """B-RST-04, B-RST-05."""
    server.switch(account.account, container_retention_days=2)
    expect(account.put(PATH), 201)
    first = delete(account)
    expect(restore(account, first, container="other"), 400, "InvalidHeaderValue")
    for unknown in ("0" * 16, "x", "F" * 17, ""):
        expect(restore(account, unknown), 404, "ContainerNotFound")
    expect(restore(account, first), 201)
    expect(restore(account, first), 404, "ContainerNotFound")
    again = delete(account)
    expect(account.put(PATH), 201)
    expect(restore(account, again), 409, "ContainerAlreadyExists")
    expect(account.delete(PATH), 202)
    # A longer retention later does not keep it longer.
    server.switch(account.account, container_retention_days=365)
    server.advance(DAY_S)
    assert {row.findtext("Properties/RemainingRetentionDays") for row in kept(account)} == {"1"}
    server.advance(DAY_S)
    assert not kept(account)
    expect(restore(account, again), 404, "ContainerNotFound")


def test_both_headers_are_needed(account: Client) -> None:
    """B-RST-04."""
    for name in ("x-ms-deleted-container-name", "x-ms-deleted-container-version"):
        answer = account.put("/box?restype=container&comp=undelete", {name: "box"})
        expect(answer, 400, "MissingRequiredHeader")


def test_without_a_retention_nothing_is_kept(server: Running, account: Client) -> None:
    """B-RST-01."""
    expect(account.put(PATH), 201)
    expect(account.delete(PATH), 202)
    assert not kept(account)
    server.switch(account.account, container_retention_days=7)
    assert not kept(account)


def test_containers_of_one_name_are_kept_side_by_side(each_engine: Running) -> None:
    """B-RST-06, with the SDK."""
    account = each_engine.account()
    each_engine.switch(account.account, container_retention_days=7)
    credential = {"account_name": account.account, "account_key": account.credential.key}
    service = BlobServiceClient(account.url, credential, retry_total=0)
    versions = []
    for number in range(3):
        box = service.create_container("box")
        box.upload_blob("b", f"{number}")
        box.delete_container()
        listed = list(service.list_containers(include_deleted=True))
        versions.append(str(listed[number].version))
    assert len(set(versions)) == 3
    for number in (1, 0, 2):
        found = service.undelete_container("box", versions[number])
        assert found.download_blob("b").readall() == f"{number}".encode()
        found.delete_container()
    listed = list(service.list_containers(include_deleted=True))
    assert [one.version for one in listed] == versions
    assert all(one.deleted for one in listed)
    assert not list(service.list_containers())
