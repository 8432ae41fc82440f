"""Lease strategy 2: one client at a time reads or writes.

    python examples/lease_exclusive_write_exclusive_read.py

Everybody sends a lease id with every request, reads too: whoever does not hold the lease is
refused.
"""

from __future__ import annotations

import uuid

from azure.storage.blob import BlobLeaseClient, BlobServiceClient
from steps import endpoint, step


def main() -> None:
    """Two clients that both use an id for everything; the one without the lease is kept out."""
    with endpoint() as at:
        first = BlobServiceClient.from_connection_string(at.connection_string)
        second = BlobServiceClient.from_connection_string(at.connection_string)
        name = f"strategy-{uuid.uuid4().hex[:8]}"
        step("create a container", 201, lambda: first.create_container(name))
        mine = first.get_blob_client(name, "ledger")
        theirs = second.get_blob_client(name, "ledger")
        step("first: upload", 201, lambda: mine.upload_blob(b"v1"))
        lease = BlobLeaseClient(mine)
        step("first: acquire the lease", 201, lambda: lease.acquire(60))
        step("first: read with the id", 200, lambda: mine.download_blob(lease=lease).readall())
        their_id = str(uuid.uuid4())
        step("second: read with its own id", 412, lambda: theirs.download_blob(lease=their_id))
        step(
            "second: write with its own id",
            412,
            lambda: theirs.upload_blob(b"no", overwrite=True, lease=their_id),
        )
        step("first: release", 200, lease.release)
        their_lease = BlobLeaseClient(theirs, lease_id=their_id)
        step("second: acquire the lease", 201, lambda: their_lease.acquire(60))
        step(
            "second: read with the id",
            200,
            lambda: theirs.download_blob(lease=their_lease).readall(),
        )
        step("second: release", 200, their_lease.release)


if __name__ == "__main__":
    main()
