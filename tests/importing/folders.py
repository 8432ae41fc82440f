"""Small folders in the form in which Azurite writes them, made by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strongroom.importing import documents

ACCOUNT = "devstoreaccount1"
EXTENT = "01234567-89ab-4cde-8f01-23456789abcd"
ETAG = '"0x1D02CDB34EF47D0"'
MODIFIED = "2024-03-04T05:06:07.089Z"
FOREVER = "9999-12-31T23:59:59.999Z"
Document = dict[str, Any]


@dataclass
class PeerFolder:
    """A folder with one container, one queue and one table; tests add to it, then write it."""

    path: Path
    blobs: list[Any] = field(default_factory=list)
    blocks: list[Any] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    entities: list[Any] = field(default_factory=list)
    containers: list[Any] = field(default_factory=lambda: [container()])
    queues: list[Any] = field(default_factory=lambda: [{"accountName": ACCOUNT, "name": "work"}])
    tables: list[Any] = field(default_factory=lambda: [{"account": ACCOUNT, "table": "People"}])
    services: list[Any] = field(default_factory=list)
    bytes: bytes = b"0123456789" * 1000

    def write(self) -> Path:
        """Write the databases and one file of bodies, and return the folder."""
        for name in documents.EXTENT_FOLDERS:
            (self.path / name).mkdir(parents=True, exist_ok=True)
            (self.path / name / EXTENT).write_bytes(self.bytes)
        self._write(
            documents.BLOB_DATABASE,
            {
                documents.SERVICES: self.services,
                documents.CONTAINERS: self.containers,
                documents.BLOBS: self.blobs,
                documents.BLOCKS: self.blocks,
            },
        )
        queues = {documents.QUEUES: self.queues, documents.MESSAGES: self.messages}
        self._write(documents.QUEUE_DATABASE, queues)
        tables = {documents.TABLES: self.tables, f"{ACCOUNT}$People": self.entities}
        self._write(documents.TABLE_DATABASE, tables)
        return self.path

    def _write(self, name: str, collections: dict[str, list[Any]]) -> None:
        (self.path / name).write_text(database(collections))


def database(collections: dict[str, list[Any]]) -> str:
    """Return a database as LokiJS saves it, with some of its other members."""
    return json.dumps(
        {
            "filename": "/old/path.json",
            "collections": [
                {
                    "name": name,
                    "data": data,
                    "idIndex": list(range(len(data))),
                    "binaryIndices": {"name": {"name": "name", "dirty": False, "values": []}},
                    "events": {"insert": [], "close": [None]},
                }
                for name, data in collections.items()
            ],
            "databaseVersion": 1.5,
            "options": {"destructureDelimiter": "$<\n"},
            "ENV": "NODEJS",
        }
    )


def container(name: str = "box", **changes: Any) -> Document:
    """Return a container."""
    properties = {"etag": ETAG, "lastModified": MODIFIED, "leaseState": "available"}
    return {"accountName": ACCOUNT, "name": name, "properties": properties} | changes


def blob(name: str, offset: int = 0, count: int = 10, **changes: Any) -> Document:
    """Return a block blob that was written at once; `changes` replace its members."""
    return {
        "accountName": ACCOUNT,
        "containerName": "box",
        "name": name,
        "snapshot": "",
        "isCommitted": True,
        "properties": properties(count),
        "persistency": {"id": EXTENT, "offset": offset, "count": count},
    } | changes


def properties(size_bytes: int, **changes: Any) -> Document:
    """Return the properties of a blob."""
    return {
        "creationTime": MODIFIED,
        "lastModified": MODIFIED,
        "etag": ETAG,
        "contentLength": size_bytes,
        "contentType": "text/plain",
        "blobType": "BlockBlob",
        "accessTier": "Hot",
        "accessTierInferred": True,
    } | changes


def message(number: int, count: int = 10, **changes: Any) -> Document:
    """Return a visible message that never expires."""
    return {
        "accountName": ACCOUNT,
        "queueName": "work",
        "messageId": f"{number:08x}-0000-4000-8000-000000000000",
        "popReceipt": "MjhOb3Y=",
        "timeNextVisible": 1_700_000_000_000 + number,
        "persistency": {"id": EXTENT, "offset": 0, "count": count},
        "insertionTime": MODIFIED,
        "expirationTime": FOREVER,
        "dequeueCount": 0,
    } | changes


def entity(row: str, values: Document | None = None, **changes: Any) -> Document:
    """Return an entity."""
    moment = "2024-03-04T05:06:07.0891234Z"
    return {
        "PartitionKey": "p",
        "RowKey": row,
        "properties": {"PartitionKey": "p", "RowKey": row, **(values or {})},
        "lastModifiedTime": moment,
        "eTag": f"W/\"datetime'{moment.replace(':', '%3A')}'\"",
    } | changes
