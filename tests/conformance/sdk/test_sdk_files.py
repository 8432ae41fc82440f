"""The official SDK works with shares, directories and files, SAS and leases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.fileshare import (
    AccessPolicy,
    ContentSettings,
    FileSasPermissions,
    NTFSAttributes,
    ShareClient,
    ShareFileClient,
    ShareServiceClient,
    generate_file_sas,
)

from tests.conformance.client import Client

SDDL = "O:SYG:SYD:(A;;FA;;;SY)"


@pytest.fixture
def service(file_account: Client) -> ShareServiceClient:
    """The SDK's client of an account of its own."""
    return ShareServiceClient(
        file_account.url, credential=file_account.credential.key, retry_total=0
    )


@pytest.fixture
def documents(service: ShareServiceClient) -> ShareClient:
    """A new share."""
    return service.create_share("documents")


def code(raised: pytest.ExceptionInfo[HttpResponseError]) -> object:
    return vars(raised.value)["error_code"]


def test_the_life_of_a_share(service: ShareServiceClient) -> None:
    """F-SHR-01, F-SHR-04, F-SHR-05, F-SHR-07, F-LSE-02, F-SHR-11."""
    share = service.create_share("documents", metadata={"of": "ann"}, quota=7)
    with pytest.raises(ResourceExistsError) as taken:
        service.create_share("documents")
    assert code(taken) == "ShareAlreadyExists"
    share.set_share_quota(9)
    seen = share.get_share_properties()
    assert (seen.quota, seen.metadata, seen.access_tier) == (
        9,
        {"of": "ann"},
        "TransactionOptimized",
    )
    share.set_share_access_policy({"readers": AccessPolicy(permission="r")})
    (found,) = share.get_share_access_policy()["signed_identifiers"]
    assert found.id == "readers"
    lease = share.acquire_lease()
    with pytest.raises(HttpResponseError) as leased:
        share.delete_share()
    assert code(leased) == "LeaseIdMissing"
    lease.release()
    share.get_file_client("f").create_file(10)
    assert share.get_share_stats() == 10
    (listed,) = service.list_shares(include_metadata=True)
    assert (listed.name, listed.quota, listed.metadata) == ("documents", 9, {"of": "ann"})
    share.delete_share()
    with pytest.raises(ResourceNotFoundError):
        share.get_share_properties()


def test_the_life_of_a_file(documents: ShareClient) -> None:
    """F-FIL-01, F-GET-01, F-RNG-01, F-RNG-02, F-RNG-03, F-PRP-01, F-PRP-03, F-ATT-01, F-DEL-01."""
    directory = documents.create_directory("reports")
    file = directory.get_file_client("2026.txt")
    data = bytes(range(256)) * 20_000  # more than one range
    settings = ContentSettings(content_type="text/plain", cache_control="none")
    file.upload_file(data, metadata={"of": "ann"}, content_settings=settings)
    assert file.download_file().readall() == data
    assert file.download_file(offset=1000, length=10).readall() == data[1000:1010]
    seen = file.get_file_properties()
    assert (seen.size, seen.metadata) == (len(data), {"of": "ann"})
    assert seen.content_settings.content_type == "text/plain"
    assert seen.file_attributes == "Archive"
    assert seen.parent_id == directory.get_directory_properties().file_id
    file.upload_range(b"abc", 5, 3)
    file.clear_range(512, 512)
    assert file.download_file(offset=0, length=1024).readall() == (
        data[:5] + b"abc" + data[8:512] + bytes(512)
    )
    ranges = [(one.start, one.end) for one in file.list_ranges()]
    assert ranges == [(0, 511), (1024, len(data) - 1)]
    file.resize_file(600)
    assert file.get_file_properties().size == 600
    file.set_file_metadata({"by": "bob"})
    assert file.get_file_properties().metadata == {"by": "bob"}
    with pytest.raises(HttpResponseError) as short:
        file.upload_range(b"x", 600, 1)
    assert code(short) == "InvalidRange"
    file.delete_file()
    with pytest.raises(ResourceNotFoundError):
        file.download_file()


def test_lists_and_directories(documents: ShareClient) -> None:
    """F-LST-01, F-LST-02, F-LST-03, F-DIR-01, F-DIR-03, F-DIR-04, F-NAM-01."""
    directory = documents.create_directory("Letters", metadata={"of": "ann"})
    directory.create_subdirectory("old & new")
    for number in range(5):
        directory.get_file_client(f"letter{number}").create_file(number)
    found = list(directory.list_directories_and_files(results_per_page=2))
    found.sort(key=lambda one: str(one.name))  # the SDK puts the directories of a page first
    assert [one.name for one in found] == [*(f"letter{n}" for n in range(5)), "old & new"]
    assert [vars(one)["size"] for one in found[:5]] == list(range(5))
    assert found[5].is_directory and not found[0].is_directory
    (one,) = directory.list_directories_and_files(
        name_starts_with="LETTER3", include=["timestamps", "Etag", "Attributes", "PermissionKey"]
    )
    assert one.file_attributes == "Archive" and one.permission_key and one.etag
    assert one.creation_time == one.change_time
    with pytest.raises(HttpResponseError) as full:
        directory.delete_directory()
    assert code(full) == "DirectoryNotEmpty"
    before = directory.get_directory_properties()
    directory.get_file_client("more").create_file(0)
    assert directory.get_directory_properties().etag == before.etag
    directory.set_directory_metadata({"of": "bob"})
    after = documents.get_directory_client("LETTERS").get_directory_properties()
    assert after.metadata == {"of": "bob"} and after.etag != before.etag
    with pytest.raises(ResourceNotFoundError) as lost:
        documents.get_directory_client("none/below").create_directory()
    assert code(lost) == "ParentNotFound"


def test_smb_properties_permissions_and_leases(documents: ShareClient) -> None:
    """F-ATT-01, F-ATT-02, F-ATT-03, F-PRM-01, F-PRM-02, F-LSF-01, F-LSF-02."""
    key = documents.create_permission_for_share(SDDL)
    assert key is not None
    assert documents.get_permission_for_share(key) == SDDL
    early = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
    file = documents.get_file_client("f")
    file.create_file(
        5,
        file_attributes=NTFSAttributes(hidden=True),
        file_creation_time=early,
        permission_key=key,
    )
    seen = file.get_file_properties()
    assert seen.permission_key == key and "Hidden" in str(seen.file_attributes)
    assert seen.creation_time == early
    lease = file.acquire_lease()
    with pytest.raises(HttpResponseError) as leased:
        file.upload_range(b"x", 0, 1)
    assert code(leased) == "LeaseIdMissing" and "lease on the file and" in str(leased.value)
    file.upload_range(b"x", 0, 1, lease=lease)
    lease.break_lease()
    file.set_http_headers(ContentSettings(), file_attributes="ReadOnly")
    with pytest.raises(HttpResponseError) as read_only:
        file.delete_file()
    assert code(read_only) == "ReadOnlyAttribute"
    with pytest.raises(HttpResponseError) as wrong:
        documents.create_permission_for_share("everybody")
    assert code(wrong) == "FileInvalidPermission"


def test_a_token_reaches_its_file_only(file_account: Client, documents: ShareClient) -> None:
    """F-SAS-01."""
    for name in ("one", "two"):
        documents.get_file_client(name).upload_file(b"text")
    token = generate_file_sas(
        file_account.account,
        "documents",
        ["one"],
        file_account.credential.key,
        FileSasPermissions(read=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )

    def reached(name: str) -> ShareFileClient:
        return ShareFileClient(file_account.url, "documents", name, credential=token, retry_total=0)

    assert reached("one").download_file().readall() == b"text"
    for attempt in (reached("two").download_file, reached("one").delete_file):
        with pytest.raises(HttpResponseError) as refused:
            attempt()
        assert refused.value.status_code == 403


def test_renames(documents: ShareClient) -> None:
    """F-REN-01, F-REN-02, F-REN-03, F-REN-06."""
    directory = documents.create_directory("old name")
    directory.get_file_client("a & b").upload_file(b"text")
    moved = directory.rename_directory("new name")
    file = moved.get_file_client("a & b")
    assert file.download_file().readall() == b"text"
    documents.get_file_client("taken").create_file(0)
    with pytest.raises(HttpResponseError) as taken:
        file.rename_file("taken")
    assert code(taken) == "ResourceAlreadyExists"
    renamed = file.rename_file("taken", overwrite=True, metadata={"of": "ann"})
    assert renamed.download_file().readall() == b"text"
    assert renamed.get_file_properties().metadata == {"of": "ann"}
    assert [one.name for one in documents.list_directories_and_files()] == ["new name", "taken"]
