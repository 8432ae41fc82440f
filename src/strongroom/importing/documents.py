"""The records of Azurite's databases, as far as they are imported.

Lives here: the names of files and collections, and the fields of their records with their types.
Must not live here: what becomes of them (conversions.py). Source: the databases that Azurite 3.35
writes. Its earlier versions write the same fields, and leave some out, so most are optional.
Fields that are not named here are ignored.

Times are texts in ISO 8601, or milliseconds since 1970 where a type says so.
"""

from __future__ import annotations

from typing import Final

import msgspec

BLOB_DATABASE: Final = "__azurite_db_blob__.json"
QUEUE_DATABASE: Final = "__azurite_db_queue__.json"
TABLE_DATABASE: Final = "__azurite_db_table__.json"
DATABASES: Final = (BLOB_DATABASE, QUEUE_DATABASE, TABLE_DATABASE)
EXTENT_DATABASES: Final = ("__azurite_db_blob_extent__.json", "__azurite_db_queue_extent__.json")
BLOB_EXTENTS: Final = "__blobstorage__"
QUEUE_EXTENTS: Final = "__queuestorage__"
EXTENT_FOLDERS: Final = (BLOB_EXTENTS, QUEUE_EXTENTS)

SERVICES: Final = "$SERVICES_COLLECTION$"
CONTAINERS: Final = "$CONTAINERS_COLLECTION$"
BLOBS: Final = "$BLOBS_COLLECTION$"
BLOCKS: Final = "$BLOCKS_COLLECTION$"
QUEUES: Final = "$QUEUES_COLLECTION$"
MESSAGES: Final = "$MESSAGES_COLLECTION$"
TABLES: Final = "$TABLES_COLLECTION$"
ZEROS: Final = "*ZERO*"
"""The id of an extent that is all zeros, and has no file."""


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    pass


class ExtentRange(_Document, frozen=True):
    """Bytes of a file: its id, and the range."""

    id: str
    offset: int
    count: int


class PolicyDocument(_Document, frozen=True):
    """The times and the permissions of a stored access policy."""

    start: str | None = None
    expiry: str | None = None
    permission: str | None = None


class IdentifierDocument(_Document, frozen=True):
    id: str
    access_policy: PolicyDocument = PolicyDocument()


class LeaseStateDocument(_Document, frozen=True):
    """What a container and a blob have in common."""

    etag: str | None = None
    last_modified: str | None = None
    lease_state: str | None = None
    lease_duration: str | None = None


class LeaseDocument(_Document, frozen=True):
    """The lease of a container or a blob; its state is in the properties."""

    lease_id: str | None = None
    lease_duration_seconds: int | None = None
    lease_expire_time: str | None = None
    lease_break_time: str | None = None


class ContainerPropertiesDocument(LeaseStateDocument, frozen=True):
    public_access: str | None = None


class ContainerDocument(LeaseDocument, frozen=True, kw_only=True):
    account_name: str
    name: str
    properties: ContainerPropertiesDocument
    metadata: dict[str, str] | None = None
    container_acl: tuple[IdentifierDocument, ...] | None = None


class BlobPropertiesDocument(LeaseStateDocument, frozen=True, kw_only=True):
    """The properties of a blob. `content_md5` has the bytes as numbers: in the
    list `data`, or each under its index."""

    blob_type: str
    content_length: int = 0
    creation_time: str | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_md5: dict[str, object] | str | None = msgspec.field(name="contentMD5", default=None)
    content_disposition: str | None = None
    cache_control: str | None = None
    access_tier: str | None = None
    access_tier_inferred: bool | None = None
    access_tier_change_time: str | None = None
    blob_sequence_number: int | None = None
    is_sealed: bool | None = None
    copy_id: str | None = None
    copy_status: str | None = None
    copy_source: str | None = None
    copy_progress: str | None = None
    copy_completion_time: str | None = None
    copy_status_description: str | None = None


class BlockDocument(_Document, frozen=True, kw_only=True):
    """A block of a blob; `name` is its id in base64, "" of an append blob."""

    name: str = ""
    size: int
    persistency: ExtentRange


class PageRangeDocument(_Document, frozen=True):
    """Pages with bytes: the first and the last byte."""

    start: int
    end: int
    persistency: ExtentRange


class TagDocument(_Document, frozen=True):
    key: str
    value: str


class TagsDocument(_Document, frozen=True):
    blob_tag_set: tuple[TagDocument, ...] = ()


class BlobDocument(LeaseDocument, frozen=True, kw_only=True):
    """A blob or one of its snapshots; `snapshot` is "" for the blob."""

    account_name: str
    container_name: str
    name: str
    snapshot: str = ""
    is_committed: bool = True
    properties: BlobPropertiesDocument
    metadata: dict[str, str] | None = None
    blob_tags: TagsDocument | None = None
    persistency: ExtentRange | None = None
    committed_blocks_in_order: tuple[BlockDocument, ...] | None = None
    page_ranges_in_order: tuple[PageRangeDocument, ...] | None = None


class StagedBlockDocument(_Document, frozen=True):
    """A block that was staged and not committed."""

    account_name: str
    container_name: str
    blob_name: str


class QueueDocument(_Document, frozen=True, kw_only=True):
    account_name: str
    name: str
    metadata: dict[str, str] | None = None
    queue_acl: tuple[IdentifierDocument, ...] | None = None


class MessageDocument(_Document, frozen=True, kw_only=True):
    """A message. `time_next_visible` is in milliseconds since 1970."""

    account_name: str
    queue_name: str
    message_id: str
    time_next_visible: int
    persistency: ExtentRange
    insertion_time: str
    expiration_time: str
    dequeue_count: int


class TableDocument(_Document, frozen=True, kw_only=True):
    """A table. Its entities are in the collection ACCOUNT$TABLE."""

    account: str
    table: str
    table_acl: tuple[IdentifierDocument, ...] | None = None


class EntityRow(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={
        "partition_key": "PartitionKey",
        "row_key": "RowKey",
        "modified": "lastModifiedTime",
        "etag": "eTag",
    },
):
    """An entity. `properties` has values and type annotations side by side."""

    partition_key: str
    row_key: str
    properties: dict[str, str | bool | int | float | None]
    modified: str
    etag: str | None = None


class RetentionDocument(_Document, frozen=True):
    enabled: bool = False
    days: int | None = None


class LoggingDocument(_Document, frozen=True):
    """Which requests are logged."""

    version: str = "1.0"
    delete_property: bool = False
    read: bool = False
    write: bool = False
    retention_policy: RetentionDocument = RetentionDocument()


class MetricsDocument(_Document, frozen=True):
    """Hour or minute metrics."""

    version: str | None = None
    enabled: bool = False
    include_apis: bool | None = msgspec.field(name="includeAPIs", default=None)
    retention_policy: RetentionDocument | None = None


class CorsRuleDocument(_Document, frozen=True):
    """A rule for browsers: lists are texts with commas."""

    allowed_origins: str
    allowed_methods: str
    allowed_headers: str = ""
    exposed_headers: str = ""
    max_age_in_seconds: int = 0


class WebsiteDocument(_Document, frozen=True):
    """Serving of `$web`."""

    enabled: bool = False
    index_document: str | None = None
    error_document404_path: str | None = None
    default_index_document_path: str | None = None


class ServicesDocument(_Document, frozen=True, kw_only=True):
    account_name: str
    logging: LoggingDocument | None = None
    hour_metrics: MetricsDocument | None = None
    minute_metrics: MetricsDocument | None = None
    cors: tuple[CorsRuleDocument, ...] | None = None
    default_service_version: str | None = None
    delete_retention_policy: RetentionDocument | None = None
    static_website: WebsiteDocument | None = None


def entities_of(account: str, table: str) -> str:
    return f"{account}${table}"
