"""The official SDKs with a token credential: blobs, queues and tables, sync and asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.blob.aio import BlobServiceClient as LaterBlobServiceClient
from azure.storage.queue import QueueServiceClient
from azure.storage.queue.aio import QueueServiceClient as LaterQueueServiceClient

from tests.auth import tokens
from tests.conformance.trusting import TokenLater, Trusting

NAMES = Callable[[], str]


def test_blobs(trusting: Trusting, new_name: NAMES) -> None:
    """B-BRR-01, B-ROL-01."""
    name = new_name()
    owner = trusting.sdk(trusting.user("Storage Blob Data Contributor"))
    with BlobServiceClient(trusting.url(), **owner) as service:
        container = service.create_container(name)
        container.upload_blob("b", b"text", metadata={"a": "1"})
        assert container.download_blob("b").readall() == b"text"
        assert name in [one.name for one in service.list_containers()]
    reader = trusting.sdk(trusting.user("Storage Blob Data Reader"))
    with BlobServiceClient(trusting.url(), **reader) as service:
        blob = service.get_blob_client(name, "b")
        assert blob.download_blob().readall() == b"text"
        with pytest.raises(HttpResponseError) as caught:
            blob.delete_blob()
        assert caught.value.status_code == 403
        refused: Any = caught.value
        assert refused.error_code == "AuthorizationPermissionMismatch"


def test_queues(trusting: Trusting, new_name: NAMES) -> None:
    """Q-BRR-01, Q-ROL-01."""
    name = new_name()
    owner = trusting.sdk(trusting.user("Storage Queue Data Contributor"))
    with QueueServiceClient(trusting.url("queue"), **owner) as service:
        service.create_queue(name)
    sender = trusting.sdk(trusting.user("Storage Queue Data Message Sender", resource=name))
    with QueueServiceClient(trusting.url("queue"), **sender) as service:
        queue = service.get_queue_client(name)
        queue.send_message("one")
        with pytest.raises(HttpResponseError):
            queue.receive_message()
    worker = trusting.sdk(trusting.user("Storage Queue Data Message Processor", resource=name))
    with QueueServiceClient(trusting.url("queue"), **worker) as service:
        queue = service.get_queue_client(name)
        message = queue.receive_message()
        assert message is not None and message.content == "one"
        with pytest.raises(HttpResponseError):
            queue.update_message(message, content="two")
        queue.delete_message(message)
        with pytest.raises(HttpResponseError):
            queue.send_message("two")


def test_tables(trusting: Trusting) -> None:
    """T-BRR-01, T-ROL-01."""
    owner = trusting.sdk(trusting.user("Storage Table Data Contributor"))
    with TableServiceClient(trusting.url("table"), **owner) as service:
        table = service.create_table("Identities")
        table.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 1})
        table.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": "s", "n": 2})])
    reader = trusting.sdk(trusting.user("Storage Table Data Reader", resource="identities"))
    with TableServiceClient(trusting.url("table"), **reader) as service:
        table = service.get_table_client("Identities")
        assert [entity["n"] for entity in table.query_entities("n gt 0")] == [1, 2]
        with pytest.raises(HttpResponseError):
            table.delete_entity("p", "r")
        with pytest.raises(HttpResponseError):
            list(service.list_tables())


def test_asyncio(trusting: Trusting, new_name: NAMES) -> None:
    """B-BRR-01, Q-BRR-01."""
    user = trusting.user("Storage Blob Data Owner", "Storage Queue Data Contributor")
    credential: Any = TokenLater(tokens.token("ES256", oid=user))
    verify: Any = {"connection_verify": str(trusting.certificate)}
    name = new_name()

    async def run() -> None:
        blobs = LaterBlobServiceClient(trusting.url(), credential=credential, **verify)
        async with blobs:
            container = await blobs.create_container(name)
            await container.upload_blob("b", b"text")
            assert await (await container.download_blob("b")).readall() == b"text"
        queues = LaterQueueServiceClient(trusting.url("queue"), credential=credential, **verify)
        async with queues:
            queue = await queues.create_queue(name)
            await queue.send_message("one")
            assert [one.content async for one in queue.receive_messages()] == ["one"]

    asyncio.run(run())
