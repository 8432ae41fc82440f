"""Whether a server accepts the key of an account.

Lives here: what tests of accounts in files and of accounts in a store have in common.
"""

from __future__ import annotations

from azure.core.exceptions import ClientAuthenticationError
from azure.storage.blob import BlobServiceClient

from strongroom.testing.server import InProcessServer, Server


def client_of(server: InProcessServer | Server, name: str, key: str) -> BlobServiceClient:
    credential = {"account_name": name, "account_key": key}
    return BlobServiceClient(f"{server.url}/{name}", credential, retry_total=0)


def works(server: InProcessServer | Server, name: str, key: str) -> bool:
    try:
        client_of(server, name, key).get_service_properties()
    except ClientAuthenticationError:
        return False
    return True
