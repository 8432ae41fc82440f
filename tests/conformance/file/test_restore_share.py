"""Soft-deleted shares, and Restore Share: rules F-RST-01 to F-RST-06."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from azure.storage.fileshare import ShareServiceClient

from tests.conformance.answer import Answer, expect, metadata
from tests.conformance.client import Client
from tests.conformance.running import Running

DAY_S = 24 * 60 * 60
PATH = "/box?restype=share"


def kept(account: Client, include: str = "deleted") -> list[ET.Element]:
    """The deleted shares of the account."""
    answer = expect(account.get(f"/?comp=list&include={include}"), 200)
    rows = answer.xml.findall("Shares/Share")
    return [row for row in rows if row.findtext("Deleted") == "true"]


def version(row: ET.Element) -> str:
    found = row.findtext("Version")
    assert found is not None
    return found


def restore(account: Client, text: str, name: str = "box", share: str = "box") -> Answer:
    headers = {"x-ms-deleted-share-name": name, "x-ms-deleted-share-version": text}
    return account.put(f"/{share}?restype=share&comp=undelete", headers)


def test_a_deleted_share_comes_back_as_it_was(server: Running, file_account: Client) -> None:
    """F-RST-01, F-RST-02, F-RST-03."""
    server.switch(file_account.account, share_retention_days=7)
    expect(file_account.put(PATH, {"x-ms-meta-colour": "red", "x-ms-share-quota": "9"}), 201)
    made = {"x-ms-type": "file", "x-ms-content-length": "4"}
    expect(file_account.put("/box/f", made), 201)
    put = {"x-ms-write": "update", "x-ms-range": "bytes=0-3"}
    expect(file_account.put("/box/f?comp=range", put, b"text"), 201)
    before = expect(file_account.head(PATH), 200)
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    expect(file_account.put(PATH + "&comp=lease", lease), 201)
    expect(file_account.delete(PATH), 412, "LeaseIdMissing")
    server.advance(16)
    expect(file_account.delete(PATH), 202)
    for target in (PATH, "/box/f"):
        expect(file_account.get(target), 404, "ShareNotFound")
    assert not kept(file_account, "metadata")
    (row,) = kept(file_account, "deleted,metadata")
    assert [child.tag for child in row][:3] == ["Name", "Deleted", "Version"]
    assert [child.tag for child in row.findall("Properties/*")][-2:] == [
        "DeletedTime",
        "RemainingRetentionDays",
    ]
    assert row.findtext("Properties/RemainingRetentionDays") == "7"
    assert row.findtext("Metadata/colour") == "red"
    restored = expect(restore(file_account, version(row)), 201)
    after = expect(file_account.head(PATH), 200)
    assert metadata(after) == {"colour": "red"} and after["x-ms-share-quota"] == "9"
    assert after.etag == before.etag == restored.etag
    assert after["x-ms-lease-state"] == "available"
    assert expect(file_account.get("/box/f"), 200).body == b"text"
    assert not kept(file_account)


def test_what_cannot_be_restored(server: Running, file_account: Client) -> None:
    """F-RST-04, F-RST-05."""
    server.switch(file_account.account, share_retention_days=2)
    expect(file_account.put(PATH), 201)
    expect(file_account.delete(PATH), 202)
    (row,) = kept(file_account)
    first = version(row)
    expect(restore(file_account, first, share="other"), 400, "InvalidHeaderValue")
    for unknown in ("0" * 16, "x", "F" * 17, ""):
        expect(restore(file_account, unknown), 404, "ShareNotFound")
    for name in ("x-ms-deleted-share-name", "x-ms-deleted-share-version"):
        answer = file_account.put(PATH + "&comp=undelete", {name: "box"})
        expect(answer, 400, "MissingRequiredHeader")
    expect(restore(file_account, first), 201)
    expect(restore(file_account, first), 404, "ShareNotFound")
    expect(file_account.delete(PATH), 202)
    expect(file_account.put(PATH), 201)
    expect(restore(file_account, first), 409, "ShareAlreadyExists")
    # A longer retention later does not keep it longer.
    server.switch(file_account.account, share_retention_days=365)
    server.advance(2 * DAY_S)
    assert not kept(file_account)
    expect(restore(file_account, first), 404, "ShareNotFound")


def test_shares_of_one_name_are_kept_side_by_side(server: Running, file_account: Client) -> None:
    """F-RST-06, with the SDK."""
    server.switch(file_account.account, share_retention_days=7)
    service = ShareServiceClient(
        file_account.url, credential=file_account.credential.key, retry_total=0
    )
    versions = []
    for number in range(3):
        box = service.create_share("box")
        box.get_file_client("f").upload_file(f"{number}".encode())
        box.delete_share()
        listed = list(service.list_shares(include_deleted=True))
        versions.append(str(listed[number].version))
    assert len(set(versions)) == 3
    for number in (1, 0, 2):
        found = service.undelete_share("box", versions[number])
        assert found.get_file_client("f").download_file().readall() == f"{number}".encode()
        found.delete_share()
    listed = list(service.list_shares(include_deleted=True))
    assert [one.version for one in listed] == versions
    assert all(one.deleted for one in listed)
    assert not list(service.list_shares())
