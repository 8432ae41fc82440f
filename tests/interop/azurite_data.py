"""Data of every kind, written to a server of the Azure Storage protocol by the official SDKs."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableAccessPolicy,
    TableServiceClient,
    UpdateMode,
)
from azure.storage.blob import (
    AccessPolicy,
    BlobAnalyticsLogging,
    BlobBlock,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    CorsRule,
    Metrics,
    RetentionPolicy,
    StandardBlobTier,
)
from azure.storage.queue import AccessPolicy as QueueAccessPolicy
from azure.storage.queue import QueueServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME

OTHER_ACCOUNT = "other"
HIDDEN_S = 6
"""How long one message stays hidden."""
LARGE = bytes(range(256)) * 1200
INFINITE_LEASE = "11111111-2222-4333-8444-555555555555"
FIXED_LEASE = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"


@dataclass(frozen=True)
class Clients:
    """The SDK's clients of one account."""

    blobs: BlobServiceClient
    queues: QueueServiceClient
    tables: TableServiceClient

    @classmethod
    def of(cls, account: str, ports: tuple[int, int, int]) -> Clients:
        """Return the clients of an account on loopback; all accounts have the same key."""
        blob, queue, table = (f"http://127.0.0.1:{port}/{account}" for port in ports)
        key = {"account_name": account, "account_key": DEVELOPMENT_ACCOUNT_KEY}
        named = AzureNamedKeyCredential(account, DEVELOPMENT_ACCOUNT_KEY)
        return cls(
            BlobServiceClient(blob, credential=key),
            QueueServiceClient(queue, credential=key),
            TableServiceClient(table, credential=named),
        )


def accounts_setting() -> str:
    """Return the value of AZURITE_ACCOUNTS for both accounts."""
    names = (DEVELOPMENT_ACCOUNT_NAME, OTHER_ACCOUNT)
    return ";".join(f"{name}:{DEVELOPMENT_ACCOUNT_KEY}" for name in names)


def fill(clients: Clients) -> None:
    """Write data of every kind."""
    box = _containers(clients.blobs)
    _block_blobs(box)
    _other_blobs(box)
    _leases(clients.blobs)
    _blob_properties(clients.blobs)
    _queues(clients.queues)
    _tables(clients.tables)


def _containers(service: BlobServiceClient) -> ContainerClient:
    box = service.create_container("box", metadata={"Purpose": "tests", "n": "1"})
    policy = AccessPolicy(
        permission="rl",
        start=datetime(2020, 1, 1, tzinfo=UTC),
        expiry=datetime(2030, 1, 1, tzinfo=UTC),
    )
    box.set_container_access_policy({"readers": policy}, public_access="blob")
    service.create_container("$root")
    service.create_container("$web", public_access="container")
    service.create_container("empty")
    return box


def _block_blobs(box: ContainerClient) -> None:
    text = box.get_blob_client("folder/täxt one.txt")
    text.upload_blob(
        b"first",
        metadata={"Key": "value", "other": "x"},
        tags={"colour": "red", "size": "1"},
        content_settings=ContentSettings(
            content_type="text/plain",
            content_encoding="identity",
            content_language="de",
            content_disposition="inline",
            cache_control="no-cache",
        ),
    )
    text.create_snapshot()
    text.upload_blob(b"second", overwrite=True, metadata={"Key": "later"}, tags={"colour": "blue"})
    text.create_snapshot(metadata={"of": "snapshot"})
    text.set_blob_metadata({"Key": "last"})
    box.upload_blob("none", b"")
    box.upload_blob("large", LARGE, tags={"colour": "red"})
    blocks = box.get_blob_client("blocks")
    for name, data in (("0001", b"a" * 9000), ("0002", b"b" * 10), ("0003", LARGE)):
        blocks.stage_block(name, data)
    blocks.commit_block_list([BlobBlock(name) for name in ("0003", "0001", "0002", "0001")])
    blocks.create_snapshot()
    blocks.set_standard_blob_tier("Cool")
    blocks.stage_block("0009", b"not committed")
    box.get_blob_client("staged").stage_block("0001", b"not committed")
    box.get_blob_client("copied").start_copy_from_url(box.get_blob_client("large").url)
    archived = box.upload_blob("archived", b"cold", standard_blob_tier=StandardBlobTier.ARCHIVE)
    assert archived.exists()


def _other_blobs(box: ContainerClient) -> None:
    log = box.get_blob_client("log")
    log.create_append_blob(metadata={"kind": "log"})
    for part in (b"one\n", b"two\n", LARGE):
        log.append_block(part)
    log.create_snapshot()
    log.append_block(b"after the snapshot\n")
    disk = box.get_blob_client("disk")
    disk.create_page_blob(1024 * 1024, sequence_number=7)
    disk.upload_page(b"p" * 1024, offset=512, length=1024)
    disk.upload_page(b"q" * 131072, offset=65536 - 512, length=131072)
    disk.create_snapshot()
    disk.clear_page(offset=1024, length=512)
    disk.upload_page(b"r" * 512, offset=1024 * 1024 - 512, length=512)
    box.get_blob_client("holes").create_page_blob(4096)


def _leases(service: BlobServiceClient) -> None:
    leased = service.create_container("leased")
    leased.upload_blob("infinite", b"1").acquire_lease(-1, lease_id=INFINITE_LEASE)
    leased.upload_blob("fixed", b"2").acquire_lease(60, lease_id=FIXED_LEASE)
    leased.upload_blob("breaking", b"3").acquire_lease(-1, lease_id=FIXED_LEASE).break_lease(60)
    leased.upload_blob("broken", b"4").acquire_lease(-1, lease_id=FIXED_LEASE).break_lease(0)
    leased.acquire_lease(-1, lease_id=INFINITE_LEASE)


def _blob_properties(service: BlobServiceClient) -> None:
    kept = RetentionPolicy(enabled=True, days=5)
    service.set_service_properties(
        target_version="2020-10-02",
        analytics_logging=BlobAnalyticsLogging(read=True, write=True, retention_policy=kept),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=kept),
        cors=[
            CorsRule(["http://a.example", "*"], ["GET", "PUT"], allowed_headers=["x-*"]),
            CorsRule(["*"], ["HEAD"], exposed_headers=["etag"], max_age_in_seconds=9),
        ],
    )


def _queues(service: QueueServiceClient) -> None:
    work = service.create_queue("work", metadata={"Team": "a"})
    work.set_queue_access_policy({"adders": QueueAccessPolicy(permission="a")})
    work.send_message("hidden for a while", time_to_live=3600)
    work.receive_message(visibility_timeout=HIDDEN_S)
    for number in range(40):
        work.send_message(f"message {number} <&> äöü", time_to_live=3600 + number)
    work.send_message("forever", time_to_live=-1)
    work.send_message("x" * 60_000)
    later = service.create_queue("later")
    later.send_message("in an hour", visibility_timeout=3600)
    service.create_queue("empty")
    service.set_service_properties(cors=[])


def _tables(service: TableServiceClient) -> None:
    people = service.create_table("People")
    start, expiry = datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    policy = TableAccessPolicy(permission="r", start=start, expiry=expiry)
    people.set_table_access_policy({"readers": policy})
    people.create_entity(
        {
            "PartitionKey": "päir",
            "RowKey": "types",
            "text": 'a "text" äöü',
            "int32": -5,
            "int64": EntityProperty(2**40, EdmType.INT64),
            "double": 1.5,
            "whole": 2.0,
            "nan": float("nan"),
            "infinite": float("-inf"),
            "yes": True,
            "no": False,
            "bytes": b"\x00\x01\xff",
            "guid": uuid.UUID(int=5),
            "time": datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
            "empty": "",
        }
    )
    people.create_entity({"PartitionKey": "", "RowKey": ""})
    people.create_entity(
        {"PartitionKey": "large", "RowKey": "1"} | {f"p{n}": "x" * 30_000 for n in range(10)}
    )
    for number in range(20):
        people.create_entity({"PartitionKey": "many", "RowKey": f"{number:03}", "n": number})
    merged = {"PartitionKey": "many", "RowKey": "003", "more": "merged"}
    people.update_entity(merged, mode=UpdateMode.MERGE)
    service.create_table("Empty1")
