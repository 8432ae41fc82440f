"""URLs of private blobs with a token, made by the official SDK.

Must not live here: tokens made by the standard library alone (tests/conformance/sas.py).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from azure.storage.blob import BlobSasPermissions, ContainerClient, generate_blob_sas


def readable(box: ContainerClient, name: str) -> str:
    """Return the URL of a blob with a token to read it and its tags."""
    token = generate_blob_sas(
        str(box.account_name),
        box.container_name,
        name,
        account_key=box.credential.account_key,
        permission=BlobSasPermissions(read=True, tag=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    return f"{box.get_blob_client(name).url}?{token}"
