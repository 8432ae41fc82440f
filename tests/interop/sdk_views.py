"""What an account holds, as the official SDKs read it, in a form that can be compared."""

from __future__ import annotations

from typing import Any

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, ContainerClient

from tests.interop.azurite_data import Clients

View = dict[str, Any]
_BLOB_FIELDS = (
    *("etag", "last_modified", "creation_time", "size", "blob_type", "metadata", "tag_count"),
    *("page_blob_sequence_number", "append_blob_committed_block_count"),
    *("archive_status", "snapshot"),
)


def view(clients: Clients) -> View:
    """Return everything but the messages, which `messages` takes."""
    return {
        "containers": {
            one.name: _container(clients.blobs.get_container_client(one.name), one)
            for one in clients.blobs.list_containers(include_metadata=True)
        },
        "blob properties": _plain(clients.blobs.get_service_properties()),
        "queues": {
            one.name: {
                "metadata": one.metadata,
                "policies": _policies(
                    clients.queues.get_queue_client(one.name).get_queue_access_policy()
                ),
                "count": clients.queues.get_queue_client(one.name)
                .get_queue_properties()
                .approximate_message_count,
            }
            for one in clients.queues.list_queues(include_metadata=True)
        },
        "queue properties": _plain(clients.queues.get_service_properties()),
        "tables": {
            one.name: {
                "policies": _policies(
                    clients.tables.get_table_client(one.name).get_table_access_policy()
                ),
                "entities": [
                    (_typed(dict(entity)), dict(entity.metadata))
                    for entity in clients.tables.get_table_client(one.name).list_entities()
                ],
            }
            for one in clients.tables.list_tables()
        },
    }


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Return where two views differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [name for name in before | after if before.get(name) != after.get(name)]
        pairs = [(name, before.get(name), after.get(name)) for name in names]
    elif isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
        rows = enumerate(zip(before, after, strict=False))
        pairs = [(at, one, other) for at, (one, other) in rows if one != other]
        pairs += [("length", len(before), len(after))] * (len(before) != len(after))
    else:
        return [f"{path}: {before!r:.200} became {after!r:.200}"] if before != after else []
    return [
        found for name, one, other in pairs for found in differences(one, other, f"{path}/{name}")
    ]


def messages(clients: Clients, queue: str) -> list[tuple[Any, ...]]:
    """Retrieve all visible messages of a queue, and return all but their receipts, in order."""
    found = clients.queues.get_queue_client(queue).receive_messages(
        messages_per_page=32, visibility_timeout=600
    )
    return [
        (one.id, one.content, one.inserted_on, one.expires_on, one.dequeue_count) for one in found
    ]


def _container(client: ContainerClient, listed: Any) -> View:
    read, access = client.get_container_properties(), client.get_container_access_policy()
    shown = [
        (
            one.etag.strip('"'),
            one.last_modified,
            one.metadata or {},
            _lease(one.lease),
            one.public_access,
        )
        for one in (listed, read)
    ]
    names = [(one.name, one.snapshot) for one in client.list_blobs(include=["snapshots"])]
    found = {
        f"{name}?{snapshot}": _blob(client.get_blob_client(name, snapshot=snapshot))
        for name, snapshot in names
    }
    flat = [
        (
            *(one.name, one.snapshot, one.etag, one.last_modified, one.creation_time, one.size),
            *(one.metadata or {}, one.blob_type, _content(one.content_settings)),
        )
        for one in client.list_blobs(include=["snapshots", "metadata"])
    ]
    return {
        "shown": shown,
        "access": (access["public_access"], _policies(access["signed_identifiers"])),
        "listed": flat,
        "blobs": found,
    }


def _blob(client: BlobClient) -> View:
    read = client.get_blob_properties()
    found: View = {name: getattr(read, name) for name in _BLOB_FIELDS}
    copy = read.copy
    found |= {
        "content": _content(read.content_settings),
        "copy": (copy.id, copy.status, copy.progress, copy.completion_time),
        "body": _body(client),
    }
    # Servers show inferred tiers, and that a snapshot has no lease, in different ways.
    if read.blob_tier and not read.blob_tier_inferred:
        found["tier"] = read.blob_tier, read.blob_tier_change_time
    if read.snapshot is None:
        found["tags"] = client.get_blob_tags()
        found["lease"] = _lease(read.lease)
    if read.blob_type == "BlockBlob" and read.blob_tier != "Archive":
        found["blocks"] = [(one.id, one.size) for one in client.get_block_list("committed")[0]]
    if read.blob_type == "PageBlob":
        found["pages"] = _allocated(client)
    return found


def _body(client: BlobClient) -> bytes | str:
    try:
        return client.download_blob().readall()
    except HttpResponseError as error:
        return f"{error.status_code}"


def _allocated(client: BlobClient) -> list[tuple[int, int]]:
    """Return the allocated ranges; servers may split them differently."""
    joined: list[tuple[int, int]] = []
    for one in client.list_page_ranges():
        start, end = int(one.start or 0), int(one.end or 0) + 1
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _content(given: Any) -> View:
    return {name: value or None for name, value in vars(given).items()}


def _lease(given: Any) -> tuple[str | None, str | None, str | None]:
    return given.status, given.state, given.duration


def _policies(given: Any) -> View:
    """Return stored access policies by id. A server may pad the fraction of a time with zeros."""
    pairs: View = given if isinstance(given, dict) else {one.id: one.access_policy for one in given}
    return {
        name: tuple(_time(getattr(policy, part)) for part in ("start", "expiry", "permission"))
        for name, policy in pairs.items()
    }


def _time(value: Any) -> Any:
    return value.replace(".0000000Z", "Z") if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    """Return objects of the SDK as dictionaries."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "__dict__") and type(value).__module__.startswith("azure"):
        fields = {name: one for name, one in vars(value).items() if not name.startswith("_")}
        return _plain(fields)
    return value


def _typed(entity: View) -> View:
    """Return an entity with the types of its values; NaN equals itself as text."""
    return {name: (type(value).__name__, repr(value)) for name, value in entity.items()}
