"""The official Python SDK sends batches: sync and aio, signed with a key and with tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    PartialBatchErrorException,
    RehydratePriority,
    StandardBlobTier,
    generate_container_sas,
)
from azure.storage.blob.aio import ContainerClient as AsyncContainerClient

from tests.conformance.running import Running

ODD = ["a", "dir/b c", "ü+%/~", "x?y=z&#"]


@pytest.fixture
def box(server: Running, new_name: Callable[[], str]) -> Iterator[ContainerClient]:
    """A new container."""
    text = server.server.connection_string
    with BlobServiceClient.from_connection_string(text, retry_total=0) as service:
        yield service.create_container(new_name())


def fill(box: ContainerClient, *names: str) -> None:
    for name in names:
        box.upload_blob(name, b"x")


def left(box: ContainerClient) -> list[str]:
    return list(box.list_blob_names())


def test_blobs_are_deleted(box: ContainerClient) -> None:
    """B-BAT-01, B-BAT-06."""
    fill(box, *ODD, "kept")
    found = list(box.delete_blobs(*ODD))
    assert [one.status_code for one in found] == [202] * len(ODD)
    assert left(box) == ["kept"]


def test_a_whole_batch_of_256(box: ContainerClient) -> None:
    """B-BAT-04."""
    names = [f"{number:03}" for number in range(256)]
    fill(box, *names)
    assert {one.status_code for one in box.delete_blobs(*names)} == {202}
    with pytest.raises(HttpResponseError) as raised:
        box.delete_blobs(*names, "one more")
    assert raised.value.status_code == 400


def test_some_are_refused(box: ContainerClient) -> None:
    """B-BAT-02."""
    fill(box, "a", "b", "c")
    taken = str(box.get_blob_client("c").create_snapshot()["snapshot"])
    blobs: list[str | dict[str, str]] = [
        "a",
        {"name": "b", "etag": '"0x1"'},
        "none",
        {"name": "c", "snapshot": taken},
    ]
    with pytest.raises(PartialBatchErrorException) as raised:
        box.delete_blobs(*blobs)
    assert [one.status_code for one in raised.value.parts] == [202, 412, 404, 202]
    assert left(box) == ["b", "c"]
    again = box.delete_blobs("b", "none", "c", raise_on_any_failure=False)
    codes = [(one.status_code, one.headers.get("x-ms-error-code")) for one in again]
    assert codes == [(202, None), (404, "BlobNotFound"), (202, None)]


def test_leases_and_snapshots(box: ContainerClient) -> None:
    """B-BAT-02."""
    fill(box, "leased", "base")
    lease = box.get_blob_client("leased").acquire_lease()
    box.get_blob_client("base").create_snapshot()
    found = list(
        box.delete_blobs("base", {"name": "leased", "lease_id": lease.id},
                         delete_snapshots="include", raise_on_any_failure=False)
    )  # fmt: skip
    assert [one.status_code for one in found] == [202, 202]
    assert left(box) == []


def test_tiers_are_set(box: ContainerClient) -> None:
    """B-BAT-02, B-TIR-01."""
    fill(box, "a", "b")
    found = box.set_standard_blob_tier_blobs(StandardBlobTier.COOL, "a", "b")
    assert [one.status_code for one in found] == [200, 200]
    found = box.set_standard_blob_tier_blobs(
        None, {"name": "a", "blob_tier": "Archive"}, {"name": "b", "blob_tier": "Cold"}
    )
    assert [one.status_code for one in found] == [200, 200]
    tiers = {one.name: one.blob_tier for one in box.list_blobs()}
    assert tiers == {"a": "Archive", "b": "Cold"}
    found = box.set_standard_blob_tier_blobs("Hot", "a", rehydrate_priority=RehydratePriority.HIGH)
    assert [one.status_code for one in found] == [202]
    assert box.download_blob("a").readall() == b"x"


def with_token(box: ContainerClient, letters: str) -> str:
    """The container's URL with a service SAS."""
    assert box.account_name is not None
    token = generate_container_sas(
        box.account_name,
        box.container_name,
        account_key=box.credential.account_key,
        permission=ContainerSasPermissions.from_string(letters),
        expiry=datetime.now(UTC) + timedelta(minutes=10),
    )
    return f"{box.url}?{token}"


def test_a_token_for_the_whole_and_its_parts(box: ContainerClient) -> None:
    """B-BAT-05."""
    fill(box, "a", "b")
    for letters, statuses in (("w", [403, 403]), ("d", [202, 202])):
        with ContainerClient.from_container_url(with_token(box, letters)) as tokened:
            found = tokened.delete_blobs("a", "b", raise_on_any_failure=False)
            assert [one.status_code for one in found] == statuses


def test_the_asynchronous_client(server: Running, box: ContainerClient) -> None:
    """B-BAT-01."""
    fill(box, *ODD)

    async def run() -> list[int]:
        text = server.server.connection_string
        async with AsyncContainerClient.from_connection_string(text, box.container_name) as client:
            found = await client.delete_blobs(*ODD, "none", raise_on_any_failure=False)
            return [one.status_code async for one in found]

    assert asyncio.run(asyncio.wait_for(run(), 30)) == [202, 202, 202, 202, 404]
    assert left(box) == []


def test_a_list_from_a_name(box: ContainerClient) -> None:
    """B-LST-13."""
    fill(box, "a", "b", "c")
    assert [one.name for one in box.list_blobs(start_from="b")] == ["b", "c"]
