"""Testcontainers' module for Python starts the image, and Azure's clients use what it tells."""

from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient
from testcontainers.community.azurite import AzuriteContainer


def main() -> None:
    with AzuriteContainer() as azurite:
        connection = azurite.get_connection_string()
        box = BlobServiceClient.from_connection_string(connection).create_container("box")
        box.upload_blob("b", b"hello")
        assert box.download_blob("b").readall() == b"hello"
        queue = QueueServiceClient.from_connection_string(connection).create_queue("queue")
        queue.send_message("hello")
        message = queue.receive_message()
        assert message is not None and message.content == "hello"
        table = TableServiceClient.from_connection_string(connection).create_table("table")
        table.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 1})
        assert table.get_entity("p", "r")["n"] == 1
    print("done")


if __name__ == "__main__":
    main()
