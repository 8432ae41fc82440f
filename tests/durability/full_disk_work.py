"""Requests to a server on a full disk: those that must still succeed, and those to refuse.

Lives here: the requests and the expected answers. Must not live here: filling the disk, and the
server.
"""

from __future__ import annotations

import json
from typing import Final

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from tests.conformance import messages
from tests.conformance.answer import Answer, expect
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.conformance.table_client import TableClient, entity, expect_json, insert

CREDENTIAL: Final = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
LEASE_ID: Final = "11111111-2222-3333-4444-555555555555"
OTHER_ID: Final = "66666666-7777-8888-9999-000000000000"
SIZES: Final = {"flag": 20, "small": 5_000, "medium": 300_000, "large": 3_000_000}
ROWS: Final = 20

_LEASE: Final = {"x-ms-lease-duration": "60"}
_METADATA: Final = {"x-ms-meta-state": "aaaa"}
_IF_ANY: Final = {"If-Match": "*"}


class Work:
    """One container, table and queue with some data.

    Arguments:
        blob_url, queue_url, table_url: the URLs of the services, as a server of strongroom.testing
            reports them.
        many: the number of additional blobs of 5,000 bytes, which make the log long.
    """

    def __init__(self, blob_url: str, queue_url: str, table_url: str, many: int = 0) -> None:
        self._many = many
        self.blobs = Client(_port(blob_url), CREDENTIAL)
        self.queues = Client(_port(queue_url), CREDENTIAL)
        self.tables = TableClient(_port(table_url), CREDENTIAL)

    def close(self) -> None:
        """Close the connections, since the server is about to end."""
        for client in (self.blobs, self.queues, self.tables):
            client.close()

    def store(self) -> None:
        """Write the data while there is space."""
        expect(self.blobs.put("/kept?restype=container"), 201)
        expect(self.blobs.put("/spare?restype=container"), 201)
        for name, size_bytes in SIZES.items():
            self.blobs.put(f"/kept/{name}", {**PUT_BLOB, **_METADATA}, _body(name, size_bytes))
        expect(self._lease("flag", "acquire", **{"x-ms-lease-duration": "-1"}), 201)
        expect(self.blobs.put("/kept/flag?comp=snapshot", {"x-ms-lease-id": LEASE_ID}), 201)
        for name in ("kept", "spare"):
            expect_json(self.tables.post("/Tables", {"TableName": name}), 201)
            expect(self.queues.put(f"/{name}"), 201)
            messages.put(self.queues, name, "text " * 10)
        for number in range(ROWS):
            insert(self.tables, "kept", _row(number))
        for number in range(self._many):
            expect(self.blobs.put(f"/kept/many-{number}", PUT_BLOB, _many(number)), 201)

    def read(self) -> None:
        """Check that all acknowledged data can be read."""
        for name, size_bytes in SIZES.items():
            found = expect(self.blobs.get(f"/kept/{name}"), 200)
            assert found.body == _body(name, size_bytes)
        for number in range(self._many):
            assert expect(self.blobs.get(f"/kept/many-{number}"), 200).body == _many(number)
        expect(self.blobs.get("/kept?restype=container&comp=list"), 200)
        found_rows = json.loads(expect(self.tables.get("/kept()"), 200).body)["value"]
        assert [row["Value"] for row in found_rows] == [_row(one)["Value"] for one in range(ROWS)]
        assert len(messages.peek(self.queues, "kept")) == 1

    def refused(self, size_bytes: int) -> Answer:
        """Put blobs until one is refused, and return that answer.

        The free space of the log and the database is used up first. A refused blob does not exist.
        """
        for number in range(3_000):
            name = f"/kept/more-{size_bytes}-{number:04}"
            answer = self.blobs.put(name, PUT_BLOB, bytes(size_bytes))
            if answer.status != 201:
                expect(self.blobs.head(name), 404, "BlobNotFound")
                return expect(answer, 507, "InsufficientStorage")
        raise AssertionError("the disk does not fill")

    def renew(self, times: int) -> None:
        """Renew one lease repeatedly."""
        for _ in range(times):
            expect(self._lease("flag", "renew", **{"x-ms-lease-id": LEASE_ID}), 200)

    def keep_alive(self) -> None:
        """Run every lease action, retrieve messages, and make changes that do not need more
        space."""
        expect(self._lease("small", "acquire", **_LEASE), 201)
        held = {"x-ms-lease-id": LEASE_ID}
        expect(self._lease("small", "renew", **held), 200)
        expect(self._lease("small", "change", OTHER_ID, **held), 200)
        expect(self._lease("small", "break", **{"x-ms-lease-break-period": "0"}), 202)
        expect(self._lease("large", "acquire", **_LEASE), 201)
        expect(self._lease("large", "release", **held), 200)
        container = "/kept?restype=container&comp=lease"
        for action, headers, status in (("acquire", _LEASE, 201), ("release", held, 200)):
            given = {"x-ms-lease-action": action, "x-ms-proposed-lease-id": LEASE_ID, **headers}
            expect(self.blobs.put(container, given), status)
        same = {"x-ms-meta-state": "bbbb"}
        expect(self.blobs.put("/kept/medium?comp=metadata", same), 200)
        expect(self.blobs.put("/kept?restype=container&comp=metadata"), 200)
        expect(self.blobs.put("/kept/small", {**PUT_BLOB, **same}, _body("small", 5_000)), 201)
        (got,) = messages.get(self.queues, "kept")
        expect(messages.update(self.queues, "kept", got, "TEXT " * 10), 204)
        changed = {**_row(0), "Value": "x" * len(_row(0)["Value"])}
        row = entity("kept", "p", "0000")
        self._put_row(row, changed)
        self._put_row(row, _row(0))

    def grow(self) -> Answer:
        """Set metadata that makes the record larger."""
        larger = {"x-ms-meta-state": "b" * 7_000}
        return self.blobs.put("/kept/medium?comp=metadata", larger)

    def delete(self) -> None:
        """Delete everything, in every way."""
        expect(self.queues.delete("/spare/messages"), 204)
        (got,) = messages.get(self.queues, "kept")
        expect(messages.delete(self.queues, "kept", got), 204)
        for number in range(ROWS):
            target = entity("kept", "p", f"{number:04}")
            expect_json(self.tables.delete(target, _IF_ANY), 204)
        held = {"x-ms-lease-id": LEASE_ID, "x-ms-delete-snapshots": "include"}
        expect(self.blobs.delete("/kept/flag", held), 202)
        for name in ("small", "medium", "large"):
            expect(self.blobs.delete(f"/kept/{name}"), 202)
        for number in range(self._many):
            expect(self.blobs.delete(f"/kept/many-{number}"), 202)
        for name in ("kept", "spare"):
            expect(self.blobs.delete(f"/{name}?restype=container"), 202)
            expect(self.queues.delete(f"/{name}"), 204)
            expect_json(self.tables.delete(f"/Tables('{name}')"), 204)

    def _lease(self, name: str, action: str, proposed: str = LEASE_ID, **headers: str) -> Answer:
        given = {"x-ms-lease-action": action, "x-ms-proposed-lease-id": proposed, **headers}
        return self.blobs.put(f"/kept/{name}?comp=lease", given)

    def _put_row(self, target: str, row: dict[str, str]) -> None:
        headers = {"Content-Type": "application/json", **_IF_ANY}
        expect_json(self.tables.put(target, headers, json.dumps(row).encode()), 204)


def _row(number: int) -> dict[str, str]:
    return {"PartitionKey": "p", "RowKey": f"{number:04}", "Value": f"{number:0100}"}


def _body(name: str, size_bytes: int) -> bytes:
    return (name.encode() * (size_bytes // len(name) + 1))[:size_bytes]


def _many(number: int) -> bytes:
    return b"%05d" % number * 1000


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])
