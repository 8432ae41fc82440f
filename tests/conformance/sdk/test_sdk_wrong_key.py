"""A wrong key is refused by each service with what the server has signed, to compare."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from strongroom.testing import InProcessServer

WRONG = base64.b64encode(b"a key of another account").decode()
KEY = {"account_name": "devstoreaccount1", "account_key": WRONG}


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as started:
        yield started


def _blobs(server: InProcessServer) -> None:
    list(BlobServiceClient(f"{server.url}/devstoreaccount1", KEY).list_containers())


def _queues(server: InProcessServer) -> None:
    list(QueueServiceClient(f"{server.queue_url}/devstoreaccount1", KEY).list_queues())


def _tables(server: InProcessServer) -> None:
    """T-FMT-06."""
    key = AzureNamedKeyCredential("devstoreaccount1", WRONG)
    with TableServiceClient(f"{server.table_url}/devstoreaccount1", credential=key) as client:
        list(client.list_tables())


@pytest.mark.parametrize("call", [_blobs, _queues, _tables])
def test_it_says_what_was_signed(
    server: InProcessServer, call: Callable[[InProcessServer], None]
) -> None:
    with pytest.raises(ClientAuthenticationError) as refused:
        call(server)
    assert refused.value.status_code == 403
    assert "Server used following string to sign: 'GET" in str(refused.value)
