"""Lease strategy 3: everybody may write, one client reads (a log that many append to, one drains).

    python examples/lease_shared_write_exclusive_read.py

The writers share the lease id and send it with their writes. The one reader guards its reads by a
lease of its own, on a blob that stands for the right to read.
"""

from __future__ import annotations

import uuid

from azure.storage.blob import BlobLeaseClient, BlobServiceClient
from steps import endpoint, step


def main() -> None:
    """Two clients: both write with the shared id; only who holds the reading lease reads."""
    with endpoint() as at:
        first = BlobServiceClient.from_connection_string(at.connection_string)
        second = BlobServiceClient.from_connection_string(at.connection_string)
        name = f"strategy-{uuid.uuid4().hex[:8]}"
        step("create a container", 201, lambda: first.create_container(name))
        log = first.get_blob_client(name, "log")
        step("first: upload", 201, lambda: log.upload_blob(b"0"))
        shared_id = str(uuid.uuid4())
        step(
            "first: acquire the writers' lease",
            201,
            lambda: BlobLeaseClient(log, lease_id=shared_id).acquire(-1),
        )
        for who, client in (("first", first), ("second", second)):
            blob = client.get_blob_client(name, "log")
            step(
                f"{who}: write with the shared id",
                201,
                lambda blob=blob: blob.upload_blob(b"1", overwrite=True, lease=shared_id),
            )
        stranger = second.get_blob_client(name, "log")
        step(
            "a stranger: write without it",
            412,
            lambda: stranger.upload_blob(b"?", overwrite=True),
        )
        turn = first.get_blob_client(name, "right-to-read")
        step("first: create the right to read", 201, lambda: turn.upload_blob(b""))
        reading = BlobLeaseClient(turn)
        step("first: acquire the right to read", 201, lambda: reading.acquire(60))
        other = BlobLeaseClient(second.get_blob_client(name, "right-to-read"))
        step("second: acquire it too", 409, lambda: other.acquire(60))
        text = step("first: read", 200, lambda: log.download_blob(lease=shared_id).readall())
        assert text == b"1"
        step("first: give the right back", 200, reading.release)
        step("second: acquire it now", 201, lambda: other.acquire(60))


if __name__ == "__main__":
    main()
