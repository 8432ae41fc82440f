"""Managing concurrency: optimistic, pessimistic and last writer wins, on blobs and containers.

    python examples/managing_concurrency.py

Prints each step and the status code that it met. A refusal is part of the lesson; any other error
is raised.
"""

from __future__ import annotations

import uuid

from azure.core import MatchConditions
from azure.storage.blob import BlobClient, BlobLeaseClient, BlobServiceClient, ContainerClient
from steps import Endpoint, endpoint, step

LEASE_S = 15


def optimistic(blob: BlobClient) -> None:
    """Two writers of one blob: the second save must not overwrite the first unseen."""
    print("Optimistic concurrency: If-Match")
    first = step("upload", 201, lambda: blob.upload_blob(b"first"))
    second = step(
        "overwrite without an ETag: last writer wins",
        201,
        lambda: blob.upload_blob(b"second", overwrite=True),
    )
    assert second["etag"] != first["etag"]
    print(f"  the ETag changed from {first['etag']} to {second['etag']}")
    step(
        "upload with the old ETag",
        412,
        lambda: blob.upload_blob(
            b"third",
            overwrite=True,
            etag=first["etag"],
            match_condition=MatchConditions.IfNotModified,
        ),
    )
    step(
        "upload with the ETag of now",
        201,
        lambda: blob.upload_blob(
            b"third",
            overwrite=True,
            etag=second["etag"],
            match_condition=MatchConditions.IfNotModified,
        ),
    )


def pessimistic(blob: BlobClient, at: Endpoint) -> None:
    """A lease: nobody else can change the blob while it is held."""
    print("Pessimistic concurrency: a lease on a blob")
    lease = BlobLeaseClient(blob)
    step(f"acquire for {LEASE_S} s", 201, lambda: lease.acquire(LEASE_S))
    step("acquire again, by another", 409, lambda: BlobLeaseClient(blob).acquire(LEASE_S))
    step(
        "upload with the lease id",
        201,
        lambda: blob.upload_blob(b"mine", overwrite=True, lease=lease),
    )
    step("upload without it", 412, lambda: blob.upload_blob(b"theirs", overwrite=True))
    at.let_pass(LEASE_S + 1)
    step(
        "upload with the id after the lease has expired",
        412,
        lambda: blob.upload_blob(b"late", overwrite=True, lease=lease),
    )
    step("renew: nobody wrote meanwhile", 200, lease.renew)
    step("release", 200, lease.release)
    step("upload without an id", 201, lambda: blob.upload_blob(b"free", overwrite=True))


def container_lease(container: ContainerClient) -> None:
    """A container's lease excludes its deletion, and nothing else."""
    print("Pessimistic concurrency: a lease on a container")
    lease = BlobLeaseClient(container)
    step("acquire, infinite", 201, lambda: lease.acquire(-1))
    step(
        "put a blob without the id",
        201,
        lambda: container.upload_blob("in-a-leased-container", b"ok"),
    )
    step("delete without the id", 412, container.delete_container)
    step("delete with the id", 202, lambda: container.delete_container(lease=lease))


def main() -> None:
    """Walk through all of it on one endpoint."""
    with (
        endpoint() as at,
        BlobServiceClient.from_connection_string(at.connection_string) as service,
    ):
        container = service.get_container_client(f"concurrency-{uuid.uuid4().hex[:8]}")
        step("create a container", 201, container.create_container)
        blob = container.get_blob_client("wiki-page")
        optimistic(blob)
        pessimistic(blob, at)
        container_lease(container)


if __name__ == "__main__":
    main()
