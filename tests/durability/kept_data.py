"""Data of every kind, as a server stores it and as every later version must answer it.

Lives here: the requests that write the data, and the requests that read all of it back, each with
its right answer. Used by kept_directories.py (directories written by older versions) and by the
sweeps over damaged pages. Must not live here: servers, damage.
"""

from __future__ import annotations

import functools
import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing import InProcessServer
from tests.conformance import appending, messages, pages
from tests.conformance.answer import Answer, expect
from tests.conformance.blobs import block_list, stage
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.conformance.table_client import TableClient, entity, expect_json, insert

CREDENTIAL: Final = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
LEASE_ID: Final = "11111111-2222-3333-4444-555555555555"

_SIZES: Final = {"within": 100, "inline": 6_000, "stored": 40_000, "long": 150_000}
_METADATA: Final = {"x-ms-meta-kept": "yes"}
_BLOCKS: Final = ("one", "two", "six")
_BLOCK_BYTES: Final = 9_000
_FILLERS: Final = 60
_LONG_ROWS: Final = 8
_SHORT_ROWS: Final = 40
_MESSAGES: Final = 6
_MESSAGE_CHARS: Final = 30_000
_NO_EXPIRY: Final = -1


class Services:
    """Clients of a server's four services."""

    def __init__(self, server: InProcessServer) -> None:
        self.blobs = Client(server.port, CREDENTIAL)
        self.queues = Client(_port(server.queue_url), CREDENTIAL)
        self.tables = TableClient(_port(server.table_url), CREDENTIAL)
        self.files = Client(_port(server.file_url), CREDENTIAL)

    def close(self) -> None:
        """Close the connections."""
        for client in (self.blobs, self.queues, self.tables, self.files):
            client.close()


@dataclass(frozen=True, slots=True)
class Question:
    """A request for some of the data. `ask` returns what was answered, or None if the server
    refused it as an internal error; `right` is the only other answer that is not wrong."""

    name: str
    ask: Callable[[], object]
    right: object


@functools.cache
def text_of(name: str, length: int) -> str:
    """Return text of this length, no part of which is like another."""
    lines = (f"{name} {number:06}. " for number in range(length))
    text = ""
    while len(text) < length:
        text += next(lines)
    return text[:length]


def body_of(name: str, size_bytes: int) -> bytes:
    """Return the bytes of a body."""
    return text_of(name, size_bytes).encode()


def fill(on: Services) -> None:
    """Write everything."""
    _fill_blobs(on.blobs)
    _fill_tables(on.tables)
    for queue in ("queue", "other"):
        expect(on.queues.put(f"/{queue}"), 201)
    for number in range(_MESSAGES):
        text = text_of(f"message {number}", _MESSAGE_CHARS)
        messages.put(on.queues, "queue", text, messagettl=_NO_EXPIRY)
    _fill_files(on.files)


def _fill_blobs(blobs: Client) -> None:
    expect(blobs.put("/kept?restype=container", _METADATA), 201)
    for number in range(_FILLERS):
        name = f"filler-{number:02}"
        expect(blobs.put(f"/kept/{name}", {**PUT_BLOB, **_METADATA}, body_of(name, 700)), 201)
    for name, size_bytes in _SIZES.items():
        expect(
            blobs.put(f"/kept/{name}", {**PUT_BLOB, **_METADATA}, body_of(name, size_bytes)), 201
        )
    for block in _BLOCKS:
        stage(blobs, "/kept/listed", block, body_of(block, _BLOCK_BYTES))
    expect(blobs.put("/kept/listed?comp=blocklist", {}, block_list(*_BLOCKS)), 201)
    stage(blobs, "/kept/staged", "one", body_of("staged", 5_000))
    appending.create(blobs, "/kept/appended")
    for number in range(3):
        appending.appended(blobs, "/kept/appended", body_of(f"part {number}", 3_000))
    pages.create(blobs, "/kept/paged", 65_536)
    pages.write(blobs, "/kept/paged", 512, body_of("page", 8_192))
    expect(blobs.put("/kept/inline?comp=snapshot"), 201)
    leased = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    leased["x-ms-proposed-lease-id"] = LEASE_ID
    expect(blobs.put("/kept/within?comp=lease", leased), 201)
    expect(blobs.put("/empty?restype=container"), 201)


def _fill_tables(tables: TableClient) -> None:
    expect_json(tables.post("/Tables", {"TableName": "rows"}), 201)
    for row in _rows():
        insert(tables, "rows", row)


def _fill_files(files: Client) -> None:
    expect(files.put("/share?restype=share"), 201)
    expect(files.put("/share/folder?restype=directory"), 201)
    for name, size_bytes in _SIZES.items():
        headers = {"x-ms-type": "file", "x-ms-content-length": str(size_bytes)}
        expect(files.put(f"/share/folder/{name}", headers), 201)
        written = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{size_bytes - 1}"}
        target = f"/share/folder/{name}?comp=range"
        expect(files.put(target, written, body_of(f"file {name}", size_bytes)), 201)


def _rows() -> Iterator[dict[str, str]]:
    for number in range(_LONG_ROWS):
        keys = {"PartitionKey": "long", "RowKey": f"{number:03}"}
        yield {**keys, "Value": text_of(f"entity {number}", 15_000)}
    for number in range(_SHORT_ROWS):
        keys = {"PartitionKey": "short", "RowKey": f"{number:03}"}
        yield {**keys, "Value": text_of(f"row {number}", 300)}


def questions(on: Services) -> Iterator[Question]:
    """Yield a request for each piece of the data."""
    yield from _blob_questions(on.blobs)
    for row in _rows():
        target = entity("rows", row["PartitionKey"], row["RowKey"])
        yield _question(on.tables, target, lambda answer: _row_of(json.loads(answer.body)), row)
    yield _question(on.tables, "/rows()", _rows_of, list(_rows()))
    yield _question(
        on.queues,
        messages.target("queue", peekonly="true", numofmessages=32),
        lambda answer: [one.text for one in messages.messages(answer)],
        [text_of(f"message {number}", _MESSAGE_CHARS) for number in range(_MESSAGES)],
    )
    for name, size_bytes in _SIZES.items():
        right = body_of(f"file {name}", size_bytes)
        yield _question(on.files, f"/share/folder/{name}", _body_of, right)
    listing = "/share/folder?restype=directory&comp=list"
    yield _question(on.files, listing, _file_names_of, sorted(_SIZES))


def _blob_questions(blobs: Client) -> Iterator[Question]:
    bodies = {name: body_of(name, size_bytes) for name, size_bytes in _SIZES.items()}
    for number in range(_FILLERS):
        bodies[f"filler-{number:02}"] = body_of(f"filler-{number:02}", 700)
    for name, body in bodies.items():
        right = (body, "yes")
        yield _question(
            blobs, f"/kept/{name}", lambda answer: (answer.body, answer["x-ms-meta-kept"]), right
        )
    bodies["listed"] = b"".join(body_of(block, _BLOCK_BYTES) for block in _BLOCKS)
    bodies["appended"] = b"".join(body_of(f"part {number}", 3_000) for number in range(3))
    bodies["paged"] = bytes(512) + body_of("page", 8_192) + bytes(65_536 - 512 - 8_192)
    for name in ("listed", "appended", "paged"):
        yield _question(blobs, f"/kept/{name}", _body_of, bodies[name])
    listing = "/kept?restype=container&comp=list"
    yield _question(blobs, listing, _blob_names_of, sorted(bodies))
    yield _question(
        blobs, f"{listing}&include=snapshots", _blob_names_of, sorted([*bodies, "inline"])
    )
    yield _question(
        blobs,
        "/?comp=list",
        lambda answer: [one.text for one in answer.xml.iter("Name")],
        ["empty", "kept"],
    )
    yield Question("lease", lambda: _lease_state(blobs), "leased")


def _question(
    client: Client, target: str, read: Callable[[Answer], object], right: object
) -> Question:
    return Question(target, lambda: _asked(client, target, read), right)


def _asked(client: Client, target: str, read: Callable[[Answer], object]) -> object:
    """Return what is answered; None for an internal error, or for a body that ended early."""
    try:
        answer = client.get(target)
    except http.client.IncompleteRead:
        client.close()
        return None
    return None if answer.status == 500 else (read(answer) if answer.status == 200 else answer)


def _lease_state(blobs: Client) -> object:
    answer = blobs.head("/kept/within")
    return None if answer.status == 500 else answer["x-ms-lease-state"]


def _body_of(answer: Answer) -> bytes:
    return answer.body


def _row_of(found: dict[str, str]) -> dict[str, str]:
    return {name: found[name] for name in ("PartitionKey", "RowKey", "Value")}


def _rows_of(answer: Answer) -> list[dict[str, str]]:
    return [_row_of(row) for row in json.loads(answer.body)["value"]]


def _blob_names_of(answer: Answer) -> list[str]:
    return [one.findtext("Name") or "" for one in answer.xml.iter("Blob")]


def _file_names_of(answer: Answer) -> list[str]:
    return [one.findtext("Name") or "" for one in answer.xml.iter("File")]


def _port(url: str) -> int:
    return urlsplit(url).port or 0
