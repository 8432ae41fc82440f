"""Lease strategy 1: one client writes, everybody reads.

    python examples/lease_exclusive_write_shared_read.py

The writer holds the lease and sends its id with every write. Readers send none: reads are shared.
"""

from __future__ import annotations

import uuid

from azure.storage.blob import BlobLeaseClient, BlobServiceClient
from steps import endpoint, step


def main() -> None:
    """Two clients: a writer with the lease, a reader without."""
    with endpoint() as at:
        writer = BlobServiceClient.from_connection_string(at.connection_string)
        reader = BlobServiceClient.from_connection_string(at.connection_string)
        name = f"strategy-{uuid.uuid4().hex[:8]}"
        step("create a container", 201, lambda: writer.create_container(name))
        mine = writer.get_blob_client(name, "report")
        theirs = reader.get_blob_client(name, "report")
        step("writer: upload", 201, lambda: mine.upload_blob(b"v1"))
        lease = BlobLeaseClient(mine)
        step("writer: acquire the lease", 201, lambda: lease.acquire(60))
        step(
            "writer: upload with the id",
            201,
            lambda: mine.upload_blob(b"v2", overwrite=True, lease=lease),
        )
        text = step("reader: read without an id", 200, lambda: theirs.download_blob().readall())
        assert text == b"v2"
        step("reader: write without an id", 412, lambda: theirs.upload_blob(b"no", overwrite=True))
        step("writer: release", 200, lease.release)


if __name__ == "__main__":
    main()
