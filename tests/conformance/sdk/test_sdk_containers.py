"""The official Python SDK works with containers, leases, access policies, SAS and listings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import (
    AccessPolicy,
    AccountSasPermissions,
    BlobClient,
    BlobLeaseClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    CorsRule,
    PublicAccess,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from tests.conformance.client import Client
from tests.conformance.leasing import A, B
from tests.conformance.running import Running

HOUR = timedelta(hours=1)


def code(raised: pytest.ExceptionInfo[HttpResponseError]) -> object:
    """The error code, which the SDK puts on each error that it raises."""
    return vars(raised.value)["error_code"]


@pytest.fixture
def service(account: Client) -> Iterator[BlobServiceClient]:
    """A client of an account of its own, which retries nothing."""
    with BlobServiceClient(account.url, account.credential.key, retry_total=0) as found:
        yield found


@pytest.fixture
def box(service: BlobServiceClient) -> ContainerClient:
    """A new container."""
    return service.create_container("box", metadata={"Owner": "Ann"})


def test_the_life_of_a_container(service: BlobServiceClient, box: ContainerClient) -> None:
    found = box.get_container_properties()
    assert (found.name, found.metadata) == ("box", {"Owner": "Ann"})
    assert found.public_access is None and found.lease.state == "available"
    with pytest.raises(ResourceExistsError) as taken:
        service.create_container("box")
    assert code(taken) == "ContainerAlreadyExists"
    changed = box.set_container_metadata({"colour": "red"})
    assert changed["etag"] != found.etag
    assert box.get_container_properties().metadata == {"colour": "red"}
    assert box.exists()
    box.delete_container()
    assert not box.exists()
    with pytest.raises(ResourceNotFoundError) as gone:
        box.get_container_properties()
    assert code(gone) == "ContainerNotFound"
    service.create_container("box")


def test_conditions(box: ContainerClient) -> None:
    modified = box.get_container_properties().last_modified
    with pytest.raises(ResourceModifiedError) as unchanged:
        box.set_container_metadata({}, if_modified_since=modified + HOUR)
    assert code(unchanged) == "ConditionNotMet"
    with pytest.raises(ResourceModifiedError):
        box.delete_container(if_unmodified_since=modified - HOUR)
    box.delete_container(if_unmodified_since=modified + HOUR)


def test_listing_containers(service: BlobServiceClient) -> None:
    names = [f"list-{number}" for number in range(7)]
    for name in names:
        service.create_container(name, metadata={"number": name[-1]})
    found = list(service.list_containers("list-", include_metadata=True, results_per_page=3))
    assert [one.name for one in found] == names
    assert [one.metadata for one in found] == [{"number": name[-1]} for name in names]
    by_three = service.list_containers("list-", results_per_page=3).by_page()
    assert [len(list(page)) for page in by_three] == [3, 3, 1]
    pages: Any = service.list_containers("list-", results_per_page=4).by_page()
    assert len(list(next(pages))) == 4
    again = service.list_containers("list-", results_per_page=4).by_page(pages.continuation_token)
    assert [one.name for one in next(again)] == names[4:]


def test_leases(server: Running, box: ContainerClient) -> None:
    lease = box.acquire_lease(15, lease_id=A)
    assert lease.id == A
    assert box.get_container_properties().lease.duration == "fixed"
    with pytest.raises(HttpResponseError) as held:
        box.acquire_lease(15)
    assert (held.value.status_code, code(held)) == (409, "LeaseAlreadyPresent")
    lease.renew()
    lease.change(B)
    assert lease.id == B
    with pytest.raises(HttpResponseError) as locked:
        box.delete_container()
    assert (locked.value.status_code, code(locked)) == (412, "LeaseIdMissing")
    box.set_container_metadata({"a": "1"})
    assert lease.break_lease(5) in (4, 5)
    assert box.get_container_properties().lease.state == "breaking"
    lease.release()
    lease = box.acquire_lease(15)
    server.advance(16)
    assert box.get_container_properties().lease.state == "expired"
    with pytest.raises(HttpResponseError) as lost:
        box.delete_container(lease=lease)
    assert code(lost) == "LeaseLost"
    lease = box.acquire_lease()
    box.delete_container(lease=lease)


def test_a_lease_on_a_blob(box: ContainerClient) -> None:
    blob = box.upload_blob("b", b"one")
    before = blob.get_blob_properties().etag
    lease = blob.acquire_lease(15)
    assert blob.get_blob_properties().etag == before
    with pytest.raises(HttpResponseError) as locked:
        blob.upload_blob(b"two", overwrite=True)
    assert (locked.value.status_code, code(locked)) == (412, "LeaseIdMissing")
    blob.upload_blob(b"two", overwrite=True, lease=lease)
    with pytest.raises(HttpResponseError) as other:
        BlobLeaseClient(blob, B).renew()
    assert code(other) == "LeaseIdMismatchWithLeaseOperation"
    lease.release()
    assert blob.download_blob().readall() == b"two"


def test_access_policies(account: Client, box: ContainerClient) -> None:
    start = datetime.now(UTC).replace(microsecond=0) - HOUR
    policies = {
        "read": AccessPolicy(
            ContainerSasPermissions(read=True, list=True), start + 2 * HOUR, start
        ),
        "empty": AccessPolicy(),
    }
    box.set_container_access_policy(policies, public_access=PublicAccess.BLOB)
    found = box.get_container_access_policy()
    assert found["public_access"] == "blob"
    by_id = {one.id: one.access_policy for one in found["signed_identifiers"]}
    assert set(by_id) == {"read", "empty"}
    assert by_id["read"].permission == "rl"
    token = generate_container_sas(account.account, "box", account.credential.key, policy_id="read")
    box.upload_blob("b", b"text")
    with ContainerClient(account.url, "box", token, retry_total=0) as reader:
        assert [one.name for one in reader.list_blobs()] == ["b"]
        assert reader.download_blob("b").readall() == b"text"
        box.set_container_access_policy({})
        with pytest.raises(ClientAuthenticationError) as revoked:
            reader.download_blob("b")
        assert code(revoked) == "AuthenticationFailed"


def test_tokens(account: Client, box: ContainerClient) -> None:
    expiry = datetime.now(UTC) + HOUR
    box.upload_blob("b", b"text")
    token = generate_blob_sas(
        account.account,
        "box",
        "b",
        account_key=account.credential.key,
        permission=BlobSasPermissions(read=True),
        expiry=expiry,
    )
    with BlobClient(account.url, "box", "b", credential=token, retry_total=0) as reader:
        assert reader.download_blob().readall() == b"text"
        with pytest.raises(HttpResponseError) as refused:
            reader.delete_blob()
        assert code(refused) == "AuthorizationPermissionMismatch"
    token = generate_account_sas(
        account.account,
        account.credential.key,
        ResourceTypes(service=True, container=True),
        AccountSasPermissions(read=True, list=True, create=True),
        expiry,
    )
    with BlobServiceClient(account.url, token, retry_total=0) as service:
        service.create_container("made")
        assert [one.name for one in service.list_containers()] == ["box", "made"]
        with pytest.raises(HttpResponseError) as deeper:
            service.get_blob_client("box", "b").download_blob()
        assert code(deeper) == "AuthorizationResourceTypeMismatch"


def test_public_access(account: Client, box: ContainerClient) -> None:
    box.upload_blob("b", b"text")
    with BlobClient(account.url, "box", "b", retry_total=0) as anyone:
        with pytest.raises(ClientAuthenticationError) as refused:
            anyone.download_blob()
        assert refused.value.status_code == 401
        box.set_container_access_policy({}, public_access=PublicAccess.CONTAINER)
        assert anyone.download_blob().readall() == b"text"


def test_service_properties(service: BlobServiceClient) -> None:
    rule = CorsRule(["http://a.example"], ["GET", "PUT"], allowed_headers=["x-ms-*"])
    service.set_service_properties(cors=[rule], target_version="2020-10-02")
    found = service.get_service_properties()
    assert found["target_version"] == "2020-10-02"
    assert [one.allowed_origins for one in found["cors"]] == ["http://a.example"]
    assert found["static_website"].enabled is False
    assert service.get_account_information()["account_kind"] == "StorageV2"


def test_names_of_every_kind(box: ContainerClient, new_name: Callable[[], str]) -> None:
    names = ["a b", "a+b", "100%", "x/y/z", "\u00e9\u4e2d", "what?#", "&<>'\""]
    for name in names:
        box.upload_blob(name, name.encode())
    assert sorted(one.name for one in box.list_blobs()) == sorted(names)
    for name in names:
        assert box.download_blob(name).readall() == name.encode()
