"""The calls of Azure's client libraries for the common operations, as a table.

Lives here: the text of each call, with places for quoted values. Must not live here: quoting and
the rest of a replay (replay.py). An operation without a row is replayed as a plain request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from strongroom.auth.request import Service


class Calls(NamedTuple):
    """The calls for one operation. `{container}` and `{name}` stand for quoted values; `service` is
    the client that the first lines make."""

    python: str
    javascript: str
    dotnet: str


class SdkClient(NamedTuple):
    """The first lines in each language, which make the client `service`. `{url}`, `{account}` and
    `{key}` stand for quoted values."""

    python: str
    javascript: str
    dotnet: str


CLIENTS: Final[Mapping[Service, SdkClient]] = {
    Service.BLOB: SdkClient(
        "from azure.storage.blob import BlobServiceClient\n\n"
        "service = BlobServiceClient({url}, credential={key})\n",
        'import {{ BlobServiceClient, StorageSharedKeyCredential }} from "@azure/storage-blob";\n\n'
        "const key = new StorageSharedKeyCredential({account}, {key});\n"
        "const service = new BlobServiceClient({url}, key);\n",
        "using Azure.Storage;\nusing Azure.Storage.Blobs;\n\n"
        "var key = new StorageSharedKeyCredential({account}, {key});\n"
        "var service = new BlobServiceClient(new Uri({url}), key);\n",
    ),
    Service.QUEUE: SdkClient(
        "from azure.storage.queue import QueueServiceClient\n\n"
        "service = QueueServiceClient({url}, credential={key})\n",
        "import {{ QueueServiceClient, StorageSharedKeyCredential }} from "
        '"@azure/storage-queue";\n\n'
        "const key = new StorageSharedKeyCredential({account}, {key});\n"
        "const service = new QueueServiceClient({url}, key);\n",
        "using Azure.Storage;\nusing Azure.Storage.Queues;\n\n"
        "var key = new StorageSharedKeyCredential({account}, {key});\n"
        "var service = new QueueServiceClient(new Uri({url}), key);\n",
    ),
    Service.TABLE: SdkClient(
        "from azure.core.credentials import AzureNamedKeyCredential\n"
        "from azure.data.tables import TableServiceClient\n\n"
        "key = AzureNamedKeyCredential({account}, {key})\n"
        "service = TableServiceClient({url}, credential=key)\n",
        "import {{ AzureNamedKeyCredential, TableClient, TableServiceClient }} from "
        '"@azure/data-tables";\n\n'
        "const key = new AzureNamedKeyCredential({account}, {key});\n"
        "const options = {{ allowInsecureConnection: true }};\n"
        "const service = new TableServiceClient({url}, key, options);\n",
        "using Azure.Data.Tables;\n\n"
        "var key = new TableSharedKeyCredential({account}, {key});\n"
        "var service = new TableServiceClient(new Uri({url}), key);\n",
    ),
    Service.FILE: SdkClient(
        "from azure.storage.fileshare import ShareServiceClient\n\n"
        "service = ShareServiceClient({url}, credential={key})\n",
        "import {{ ShareServiceClient, StorageSharedKeyCredential }} from "
        '"@azure/storage-file-share";\n\n'
        "const key = new StorageSharedKeyCredential({account}, {key});\n"
        "const service = new ShareServiceClient({url}, key);\n",
        "using Azure.Storage;\nusing Azure.Storage.Files.Shares;\n\n"
        "var key = new StorageSharedKeyCredential({account}, {key});\n"
        "var service = new ShareServiceClient(new Uri({url}), key);\n",
    ),
}

_BLOB: Final = (
    "service.get_blob_client({container}, {name})",
    "service.getContainerClient({container}).getBlockBlobClient({name})",
    "service.GetBlobContainerClient({container}).GetBlobClient({name})",
)
_CONTAINER: Final = (
    "service.get_container_client({container})",
    "service.getContainerClient({container})",
    "service.GetBlobContainerClient({container})",
)
_QUEUE: Final = (
    "service.get_queue_client({container})",
    "service.getQueueClient({container})",
    "service.GetQueueClient({container})",
)
_TABLE: Final = (
    "service.get_table_client({container})",
    "new TableClient({url}, {container}, key, options)",
    "service.GetTableClient({container})",
)
_SHARE: Final = (
    "service.get_share_client({container})",
    "service.getShareClient({container})",
    "service.GetShareClient({container})",
)
_FILE: Final = (
    "service.get_share_client({container}).get_file_client({name})",
    "service.getShareClient({container}).rootDirectoryClient.getFileClient({name})",
    "service.GetShareClient({container}).GetRootDirectoryClient().GetFileClient({name})",
)


def _calls(on: tuple[str, str, str], python: str, javascript: str, dotnet: str) -> Calls:
    """Return calls of methods of a client."""
    return Calls(f"{on[0]}.{python}", f"await {on[1]}.{javascript};", f"await {on[2]}.{dotnet};")


def _lists(on: tuple[str, str, str], python: str, javascript: str, dotnet: str) -> Calls:
    """Return loops over a list."""
    return Calls(
        f"for one in {on[0]}.{python}:\n    print(one)",
        f"for await (const one of {on[1]}.{javascript}) console.log(one);",
        f"await foreach (var one in {on[2]}.{dotnet}) Console.WriteLine(one);",
    )


_SERVICE: Final = ("service", "service", "service")
CALLS: Final[Mapping[str, Calls]] = {
    "Get Blob": _calls(
        _BLOB, "download_blob().readall()", "downloadToBuffer()", "DownloadContentAsync()"
    ),
    "Get Blob Properties": _calls(
        _BLOB, "get_blob_properties()", "getProperties()", "GetPropertiesAsync()"
    ),
    "Put Blob": _calls(
        _BLOB,
        "upload_blob(DATA, overwrite=True)",
        "upload(DATA, DATA.length)",
        "UploadAsync(DATA, overwrite: true)",
    ),
    "Delete Blob": _calls(_BLOB, "delete_blob()", "delete()", "DeleteAsync()"),
    "Snapshot Blob": _calls(
        _BLOB, "create_snapshot()", "createSnapshot()", "CreateSnapshotAsync()"
    ),
    "List Blobs": _lists(_CONTAINER, "list_blobs()", "listBlobsFlat()", "GetBlobsAsync()"),
    "Create Container": _calls(_CONTAINER, "create_container()", "create()", "CreateAsync()"),
    "Delete Container": _calls(_CONTAINER, "delete_container()", "delete()", "DeleteAsync()"),
    "Get Container Properties": _calls(
        _CONTAINER, "get_container_properties()", "getProperties()", "GetPropertiesAsync()"
    ),
    "List Containers": _lists(
        _SERVICE, "list_containers()", "listContainers()", "GetBlobContainersAsync()"
    ),
    "Create Queue": _calls(_QUEUE, "create_queue()", "create()", "CreateAsync()"),
    "Delete Queue": _calls(_QUEUE, "delete_queue()", "delete()", "DeleteAsync()"),
    "Put Message": _calls(
        _QUEUE, "send_message(TEXT)", "sendMessage(TEXT)", "SendMessageAsync(TEXT)"
    ),
    "Get Messages": _calls(
        _QUEUE, "receive_message()", "receiveMessages()", "ReceiveMessagesAsync()"
    ),
    "Peek Messages": _calls(_QUEUE, "peek_messages()", "peekMessages()", "PeekMessagesAsync()"),
    "Clear Messages": _calls(_QUEUE, "clear_messages()", "clearMessages()", "ClearMessagesAsync()"),
    "List Queues": _lists(_SERVICE, "list_queues()", "listQueues()", "GetQueuesAsync()"),
    "Create Table": _calls(_TABLE, "create_table()", "createTable()", "CreateAsync()"),
    "Delete Table": _calls(_TABLE, "delete_table()", "deleteTable()", "DeleteAsync()"),
    "Query Tables": _lists(_SERVICE, "list_tables()", "listTables()", "QueryAsync()"),
    "Query Entities": _lists(
        _TABLE, "list_entities()", "listEntities()", "QueryAsync<TableEntity>()"
    ),
    "Insert Entity": _calls(
        _TABLE, "create_entity(ENTITY)", "createEntity(ENTITY)", "AddEntityAsync(ENTITY)"
    ),
    "Create Share": _calls(_SHARE, "create_share()", "create()", "CreateAsync()"),
    "Delete Share": _calls(_SHARE, "delete_share()", "delete()", "DeleteAsync()"),
    "List Shares": _lists(_SERVICE, "list_shares()", "listShares()", "GetSharesAsync()"),
    "Get File": _calls(_FILE, "download_file().readall()", "downloadToBuffer()", "DownloadAsync()"),
    "Get File Properties": _calls(
        _FILE, "get_file_properties()", "getProperties()", "GetPropertiesAsync()"
    ),
    "Delete File": _calls(_FILE, "delete_file()", "delete()", "DeleteAsync()"),
}
"""By the name of the operation. DATA, TEXT and ENTITY stand for what the request carried."""
