"""Managing concurrency: optimistic, pessimistic and last writer wins, on all four services.

    python examples/managing_concurrency.py

Prints each step and the status code that it met. A refusal is part of the lesson; any other error
is raised.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from typing import Any

from azure.core import MatchConditions
from azure.data.tables import TableClient, TableServiceClient, UpdateMode
from azure.storage.blob import BlobClient, BlobLeaseClient, BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareFileClient, ShareServiceClient
from azure.storage.queue import QueueClient, QueueServiceClient
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


def entities(people: TableClient) -> None:
    """Of entities optimistic concurrency is the default: a change names the ETag that it saw."""
    print("Optimistic concurrency: entities")
    ann: dict[str, Any] = {"PartitionKey": "people", "RowKey": "ann", "Mail": "ann@old.example"}
    step("insert", 204, lambda: people.create_entity(ann))
    seen = step("read", 200, lambda: people.get_entity("people", "ann")).metadata["etag"]
    ann["Mail"] = "ann@new.example"
    replace, unchanged = UpdateMode.REPLACE, MatchConditions.IfNotModified

    def update(etag: str) -> Any:
        return people.update_entity(ann, replace, etag=etag, match_condition=unchanged)

    step("replace with the ETag of now", 204, lambda: update(seen))
    step("replace with the old ETag", 412, lambda: update(seen))
    step("replace with *: last writer wins", 204, lambda: people.update_entity(ann, replace))
    step("insert or replace: never checked", 204, lambda: people.upsert_entity(ann, replace))


def locked_table(people: TableClient, blob: BlobClient) -> None:
    """A table has no lease; those who use it agree on a blob that stands for it."""
    print("Pessimistic concurrency: a table, by a lease on a blob")
    step("put the blob that stands for the table", 201, lambda: blob.upload_blob(b""))
    ours, theirs = BlobLeaseClient(blob), BlobLeaseClient(blob)
    step(f"lock the table for {LEASE_S} s", 201, lambda: ours.acquire(LEASE_S))
    step("lock it, by another", 409, lambda: theirs.acquire(LEASE_S))
    bob = {"PartitionKey": "people", "RowKey": "bob"}
    step("change the table while it is locked", 204, lambda: people.upsert_entity(bob))
    step("unlock it", 200, ours.release)
    step("lock it, by another", 201, lambda: theirs.acquire(LEASE_S))
    step("unlock it", 200, theirs.release)


def messages(queue: QueueClient, at: Endpoint) -> None:
    """A message that is received is hidden, not gone: who dies before deleting it loses nothing."""
    print("Queues: pop receipts and visibility")
    step("put a message", 201, lambda: queue.send_message("first"))
    step("put another", 201, lambda: queue.send_message("second"))
    first = step("get one, for 30 s", 200, lambda: queue.receive_message(visibility_timeout=30))
    other = step(
        "get the other, for 30 s", 200, lambda: queue.receive_message(visibility_timeout=30)
    )
    assert step("get a third: both are hidden", 200, queue.receive_message) is None
    step("delete the first by its receipt", 204, lambda: queue.delete_message(first))
    at.let_pass(31)
    again = step("the other is visible again", 200, queue.receive_message)
    assert (again.id, again.dequeue_count) == (other.id, 2)
    step("delete it by the receipt of before", 404, lambda: queue.delete_message(other))
    step("delete it by the receipt of now", 204, lambda: queue.delete_message(again))


def files(file: ShareFileClient) -> None:
    """Of files the last writer wins: the File service has no conditional requests."""
    print("Last writer wins: files")
    made = step("create a file of 6 bytes", 201, lambda: file.create_file(6))
    step("write to it", 201, lambda: file.upload_range(b"first ", 0, 6))
    stale = {"If-Match": made["etag"]}
    step(
        "write with the old ETag: it is not looked at",
        201,
        lambda: file.upload_range(b"second", 0, 6, headers=stale),
    )


def leased_file(file: ShareFileClient) -> None:
    """A file's lease has no end of its own. SMB clients meet it as a lock (smb_meets_rest.py)."""
    print("Pessimistic concurrency: a lease on a file")
    held = step("acquire, infinite", 201, file.acquire_lease)
    step("acquire again, by another", 409, file.acquire_lease)
    step("write with the lease id", 201, lambda: file.upload_range(b"mine  ", 0, 6, lease=held))
    step("write without it", 412, lambda: file.upload_range(b"theirs", 0, 6))
    step("delete without it", 412, file.delete_file)
    step("read without it", 200, lambda: file.download_file().readall())
    step("break it: its holder does not come back", 202, held.break_lease)
    step("write with the id of a lease that was broken", 412,
         lambda: file.upload_range(b"late  ", 0, 6, lease=held))  # fmt: skip
    step("write without an id", 201, lambda: file.upload_range(b"theirs", 0, 6))


def main() -> None:
    """Walk through all of it on one endpoint."""
    name = uuid.uuid4().hex[:8]
    with endpoint() as at, ExitStack() as stack:
        given = at.connection_string
        blobs = stack.enter_context(BlobServiceClient.from_connection_string(given))
        tables = stack.enter_context(TableServiceClient.from_connection_string(given))
        queues = stack.enter_context(QueueServiceClient.from_connection_string(given))
        shares = stack.enter_context(ShareServiceClient.from_connection_string(given))
        container = blobs.get_container_client(f"concurrency-{name}")
        step("create a container", 201, container.create_container)
        optimistic(container.get_blob_client("wiki-page"))
        pessimistic(container.get_blob_client("wiki-page"), at)
        people = step("create a table", 201, lambda: tables.create_table(f"people{name}"))
        entities(people)
        locked_table(people, container.get_blob_client("people.lock"))
        queue = step("create a queue", 201, lambda: queues.create_queue(f"work-{name}"))
        messages(queue, at)
        share = step("create a share", 201, lambda: shares.create_share(f"files-{name}"))
        files(share.get_file_client("wiki-page"))
        leased_file(share.get_file_client("wiki-page"))
        container_lease(container)
        step("delete the table", 204, people.delete_table)
        step("delete the queue", 204, queue.delete_queue)
        step("delete the share", 202, share.delete_share)


if __name__ == "__main__":
    main()
