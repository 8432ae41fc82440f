"""What is stored on the server of the pictures, and what its clients asked last.

Lives here: containers, blobs, a queue, a table, a share, requests of which some are refused. Must
not live here: who waits and holds (participants.py). Names and values are the same each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import Any, Final

from azure.data.tables import EdmType, EntityProperty, TableServiceClient, UpdateMode
from azure.storage.blob import BlobSasPermissions, generate_blob_sas

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.server import Server
from tests.conformance.client import PUT_BLOB, VERSION, Client, Credential
from tests.conformance.signing import authorization
from tests.interop.console import parquet_file

ACCOUNT: Final = DEVELOPMENT_ACCOUNT_NAME
CONTAINER: Final = "reports"
BLOB: Final = "price-list.csv"
TABLE: Final = "orders"
LOCKS: Final = "locks"
SHARE: Final = "projects"
REFUSED: Final = "salaries.csv"
_KEY: Final = Credential(ACCOUNT, DEVELOPMENT_ACCOUNT_KEY)
_PRICES: Final = "\n".join(
    [
        "article,name,price,currency,in stock",
        '1001,"Shelf, oak",189.00,EUR,12',
        "1002,Desk lamp,49.90,EUR,140",
        '1003,"Chair ""Lena""",229.00,EUR,8',
        "1004,Bookend,14.50,EUR,73",
        "1005,Rug,310.00,EUR,0",
    ]
)
_OLD_PRICES: Final = _PRICES.replace("49.90", "44.90").replace(",8\n", ",11\n")
_SMALL: Final[Mapping[str, tuple[str, bytes]]] = {
    "2026/q1.csv": ("text/csv", _PRICES.encode()),
    "2026/q2.csv": ("text/csv", _PRICES.encode()),
    "drafts/budget.json": ("application/json", b'{"year": 2027, "approved": false}'),
    "events.jsonl": ("application/x-ndjson", b'{"event": "opened"}\n{"event": "paid"}\n' * 400),
    "orders.parquet": ("application/vnd.apache.parquet", parquet_file.orders()),
    "readme.txt": ("text/plain", b"What is here, and who may change it.\n" * 30),
}
_CONTAINERS: Final = ("backups", "exports", LOCKS, "photos", CONTAINER, "website")


def fill(server: Server) -> None:
    """Store everything."""
    client = Client(server.port, _KEY)
    for name in _CONTAINERS:
        client.put(f"/{name}?restype=container")
    for name, (kind, body) in _SMALL.items():
        client.put(f"/{CONTAINER}/{name}", {**PUT_BLOB, "x-ms-blob-content-type": kind}, body)
    headers = {**PUT_BLOB, "x-ms-blob-content-type": "text/csv", "x-ms-meta-owner": "sales"}
    client.put(f"/{CONTAINER}/{BLOB}", headers, _OLD_PRICES.encode())
    client.put(f"/{CONTAINER}/{BLOB}?comp=snapshot")
    client.put(f"/{CONTAINER}/{BLOB}", headers, _PRICES.encode())
    client.put(f"/{CONTAINER}/archive-2019.tar?comp=block&blockid=MDAx", {}, bytes(3_400_000))
    blocks = b"<BlockList><Latest>MDAx</Latest></BlockList>"
    client.put(f"/{CONTAINER}/archive-2019.tar?comp=blocklist", {}, blocks)
    client.put(f"/{CONTAINER}/archive-2019.tar?comp=tier", {"x-ms-access-tier": "Cool"})
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    client.put(f"/{CONTAINER}/readme.txt?comp=lease", lease)
    client.close()
    _fill_queue(server)
    _fill_share(server)
    with TableServiceClient.from_connection_string(server.connection_string) as tables:
        tables.create_table(TABLE)
        table = tables.get_table_client(TABLE)
        for entity in _orders():
            table.create_entity(entity)


def _fill_queue(server: Server) -> None:
    queue = Client(int(server.queue_url.rpartition(":")[2]), _KEY)
    queue.put("/invoices")
    for number in range(7):
        text = f"<QueueMessage><MessageText>order {4711 + number}</MessageText></QueueMessage>"
        queue.send("POST", "/invoices/messages", {}, text.encode())
    queue.close()


def _fill_share(server: Server) -> None:
    files = Client(int(server.file_url.rpartition(":")[2]), _KEY)
    files.put(f"/{SHARE}?restype=share")
    for folder in ("atlas", "beacon", "templates"):
        files.put(f"/{SHARE}/{folder}?restype=directory")
    for name, size in (("plan.docx", 48_200), ("budget.xlsx", 17_408), ("notes.txt", 912)):
        made = {"x-ms-type": "file", "x-ms-content-length": str(size)}
        files.put(f"/{SHARE}/{name}", made)
    files.close()


def _orders() -> list[dict[str, Any]]:
    customers = ("Ann", "Bob", "Chloe", "Deniz", "Eve", "Farid")
    states = ("paid", "packed", "new", "paid", "sent", "new")
    return [
        {
            "PartitionKey": "2026-11",
            "RowKey": f"order-{4711 + number}",
            "Customer": customer,
            "Total": 49.9 * (number + 1),
            "Items": number + 1,
            "State": state,
            "Paid": state != "new",
            "Invoice": EntityProperty(9_007_199_254_740_993 + number, EdmType.INT64),
        }
        for number, (customer, state) in enumerate(zip(customers, states, strict=True))
    ]


def restore_order(server: Server) -> None:
    """Bring the order that is edited back to what it was."""
    _change_order(server, {"State": "packed", "Total": 99.8})


def change_order(server: Server) -> None:
    """Change that order as another program does, while somebody edits it."""
    _change_order(server, {"State": "sent", "Total": 89.8})


def _change_order(server: Server, values: Mapping[str, Any]) -> None:
    with TableServiceClient.from_connection_string(server.connection_string) as tables:
        entity = {"PartitionKey": "2026-11", "RowKey": "order-4712", **values}
        tables.get_table_client(TABLE).update_entity(entity, UpdateMode.MERGE)


def ask(server: Server) -> None:
    """Send the requests that the tail shows first."""
    client = Client(server.port, _KEY)
    made = client.put(f"/{CONTAINER}/today.log", PUT_BLOB, b"started\n")
    for _ in range(3):
        client.get(f"/{CONTAINER}/{BLOB}")
        client.get(f"/{CONTAINER}/2026/q1.csv", {"Range": "bytes=0-63"})
        client.head(f"/{CONTAINER}/today.log")
        client.get("/photos?restype=container&comp=list")
    client.get(f"/{CONTAINER}/2026/q3.csv")  # 404
    client.put(f"/{CONTAINER}/readme.txt", PUT_BLOB, b"mine")  # 412: it is leased
    client.put(f"/{CONTAINER}?restype=container")  # 409: it is there
    client.put(f"/{CONTAINER}/today.log", {**PUT_BLOB, "If-Match": '"0x1"'}, b"late")  # 412
    client.get(f"/{CONTAINER}/today.log", {"If-None-Match": made.etag})  # 304
    _refused(client)
    client.get(f"/{CONTAINER}/{BLOB}")
    client.head(f"/{CONTAINER}/readme.txt")
    client.close()


def _refused(client: Client) -> None:
    """Send a request whose query was not signed, as some clients do it wrong: 403."""
    target = f"/{ACCOUNT}/{CONTAINER}/{REFUSED}"
    pairs = [("x-ms-date", formatdate(usegmt=True)), ("x-ms-version", VERSION)]
    signed = authorization("SharedKey", ACCOUNT, DEVELOPMENT_ACCOUNT_KEY, "GET", target, pairs)
    fields = {**dict(pairs), "Authorization": signed}
    client.get(f"/{CONTAINER}/{REFUSED}?snapshot=2026-01-31", fields, auth=None)


def link_to_blob(server: Server) -> str:
    """Return a URL that permits to read the blob for a day."""
    token = generate_blob_sas(
        ACCOUNT,
        CONTAINER,
        BLOB,
        account_key=DEVELOPMENT_ACCOUNT_KEY,
        permission=BlobSasPermissions(read=True),
        expiry=datetime.now(UTC) + timedelta(days=1),
    )
    return f"{server.url}/{ACCOUNT}/{CONTAINER}/{BLOB}?{token}"
