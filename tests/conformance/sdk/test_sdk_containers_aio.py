"""The official SDK for asyncio works with containers, leases, access policies, SAS and listings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import AccessPolicy, ContainerSasPermissions, generate_container_sas
from azure.storage.blob.aio import BlobServiceClient, ContainerClient

from tests.conformance.client import Client
from tests.conformance.leasing import A, B
from tests.conformance.running import Running

Scenario = Callable[[BlobServiceClient, ContainerClient], Awaitable[None]]


def play(account: Client, scenario: Scenario) -> None:
    """Run a scenario with a service client and a new container `box`."""

    async def run() -> None:
        async with BlobServiceClient(account.url, account.credential.key, retry_total=0) as service:
            await scenario(service, await service.create_container("box"))

    asyncio.run(run())


def code(raised: pytest.ExceptionInfo[HttpResponseError]) -> object:
    """The error code, which the SDK puts on each error that it raises."""
    return vars(raised.value)["error_code"]


def test_the_life_of_a_container(account: Client) -> None:
    async def scenario(service: BlobServiceClient, box: ContainerClient) -> None:
        with pytest.raises(ResourceExistsError):
            await service.create_container("box")
        await box.set_container_metadata({"Owner": "Ann"})
        assert (await box.get_container_properties()).metadata == {"Owner": "Ann"}
        await box.delete_container()
        assert not await box.exists()
        with pytest.raises(ResourceNotFoundError) as gone:
            await box.upload_blob("b", b"x")
        assert code(gone) == "ContainerNotFound"

    play(account, scenario)


def test_leases(server: Running, account: Client) -> None:
    async def scenario(service: BlobServiceClient, box: ContainerClient) -> None:
        lease = await box.acquire_lease(15, lease_id=A)
        with pytest.raises(HttpResponseError) as held:
            await box.acquire_lease(15)
        assert code(held) == "LeaseAlreadyPresent"
        await lease.change(B)
        await lease.renew()
        with pytest.raises(HttpResponseError) as locked:
            await box.delete_container()
        assert code(locked) == "LeaseIdMissing"
        await asyncio.to_thread(server.advance, 16)
        again = await box.acquire_lease(15)
        with pytest.raises(HttpResponseError) as other:
            await lease.renew()
        assert code(other) == "LeaseIdMismatchWithLeaseOperation"
        assert await again.break_lease(0) == 0
        await box.delete_container()

    play(account, scenario)


def test_several_acquisitions_at_once(account: Client) -> None:
    async def scenario(service: BlobServiceClient, box: ContainerClient) -> None:
        blob = await box.upload_blob("b", b"x")
        found = await asyncio.gather(
            *(blob.acquire_lease(15) for _ in range(8)), return_exceptions=True
        )
        assert len([one for one in found if not isinstance(one, BaseException)]) == 1

    play(account, scenario)


def test_listings(account: Client) -> None:
    async def scenario(service: BlobServiceClient, box: ContainerClient) -> None:
        names = [f"list-{number}" for number in range(5)]
        for name in names:
            await service.create_container(name)
            await box.upload_blob(name, b"x")
        listed = [one.name async for one in service.list_containers("list", results_per_page=2)]
        assert listed == names
        assert [one.name async for one in box.list_blobs(results_per_page=2)] == names

    play(account, scenario)


def test_a_stored_policy(account: Client) -> None:
    async def scenario(service: BlobServiceClient, box: ContainerClient) -> None:
        await box.upload_blob("b", b"text")
        until = datetime.now(UTC) + timedelta(hours=1)
        policy = AccessPolicy(ContainerSasPermissions(read=True), until)
        await box.set_container_access_policy({"p": policy})
        token = generate_container_sas(
            account.account, "box", account.credential.key, policy_id="p"
        )
        async with ContainerClient(account.url, "box", token, retry_total=0) as reader:
            downloaded = await reader.download_blob("b")
            assert await downloaded.readall() == b"text"
            await box.set_container_access_policy({})
            with pytest.raises(HttpResponseError) as revoked:
                await reader.download_blob("b")
            assert code(revoked) == "AuthenticationFailed"
        found = await box.get_container_access_policy()
        assert found["signed_identifiers"] == []

    play(account, scenario)
