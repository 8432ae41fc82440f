"""Histories of registers over several gateways: blobs, entities, transactions, files.

Each is a register with compare-and-swap, and is judged by the shipped model of a blob. Lives here:
the clients' next calls, and what becomes of them. Must not live here: which gateway is asked
(ways.py).
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Final

from strongroom.testing.history import CompletedCall, History, Verdict, check
from strongroom.testing.models import BlobModel, GetContent, Observation, Put, PutIfMatch
from tests.conformance.answer import Answer
from tests.conformance.client import Client
from tests.conformance.concurrency import test_histories as blobs
from tests.conformance.table import test_table_histories as rows
from tests.conformance.table_client import JSON_SENT, TableClient, entity, expect_json, query
from tests.conformance.transactions import Change
from tests.conformance.transactions import send as send_batch
from tests.proof.gateways.stamps import RisingStamps
from tests.proof.gateways.ways import LOST, NotDone

Send = Callable[[str, Hashable], Observation]
"""Sends a call about an object, and returns what the client saw."""
Next = Callable[[random.Random, int, str | None], Hashable]
"""(chance, a new content, the last ETag that the client saw) -> its next call."""
_NOTHING: Final = Observation(0)
TOGETHER: Final = ("a", "b", "c")


class Registers:
    """The history of some registers of one kind.

    Arguments:
        kind: for people.
        names: of the registers.
        next_call: chooses the next call.
    """

    def __init__(self, kind: str, names: Sequence[str], next_call: Next = blobs.next_call) -> None:
        self.kind = kind
        self._names, self._next = names, next_call
        self._history = History()
        self._stamps = RisingStamps()
        self._numbers = iter(range(1, 10**9))
        self._lock = threading.Lock()

    def client(self, number: int, seed: int, client: Client, send: Send) -> Callable[[], None]:
        """Return what a client does again and again.

        Arguments:
            client: whose last answer `send` has got.
        """
        chance, etags = random.Random(f"{seed} {self.kind} {number}"), dict[str, str]()

        def act() -> None:
            name = chance.choice(self._names)
            with self._lock:
                content = next(self._numbers)
            call, least = self._next(chance, content, etags.get(name)), self._stamps.before(name)
            record = self._history.invoke(f"client {number}", name, call)
            try:
                seen = send(name, call)
            except NotDone:
                record.returned(_NOTHING)
                raise
            except LOST:
                record.unknown()
                raise
            record.returned(seen)
            last: Answer | None = getattr(client, "last", None)
            if seen.status in (200, 201) and last is not None:
                self._stamps.after(name, least, last, writes=not isinstance(call, GetContent))
            if seen.etag is not None:
                etags[name] = seen.etag

        return act

    def operations(self) -> list[CompletedCall]:
        """Return all calls but those that were certainly not carried out."""
        return [one for one in self._history.operations() if one.result != _NOTHING]

    def verdict(self) -> Verdict:
        return check(self.operations(), BlobModel())

    @property
    def fallen(self) -> list[str]:
        """The stamps that fell."""
        return self._stamps.fallen


def blob_client(client: Client, container: str) -> Send:
    """Return how a client sends calls about blobs."""
    return lambda name, call: blobs.send(client, f"/{container}/{name}", call)


def entity_client(client: TableClient) -> Send:
    """Return how a client sends calls about entities of the table `Seen`."""
    return lambda name, call: rows.send(client, name, call)


def partition_client(client: TableClient, table: str) -> Send:
    """Return how a client sends calls about a partition whose entities are written together."""

    def send(partition: str, call: Hashable) -> Observation:
        if isinstance(call, GetContent):
            return _whole(client, table, partition)
        return _together(client, table, partition, call)

    return send


def next_of_partition(chance: random.Random, content: int, etag: str | None) -> Hashable:
    """Return a client's next call about a partition."""
    if chance.random() < 0.5:
        return GetContent()
    return Put(content) if etag is None or chance.random() < 0.3 else PutIfMatch(content, etag)


def _together(client: TableClient, table: str, partition: str, call: Hashable) -> Observation:
    """Give all entities one value in a transaction, if the middle one is unchanged."""
    assert isinstance(call, Put | PutIfMatch)
    etag = call.etag if isinstance(call, PutIfMatch) else None
    changes = [
        Change(
            "PUT",
            entity(table, partition, row),
            {"N": call.content},
            (("If-Match", etag),) if etag is not None and number == 1 else (),
        )
        for number, row in enumerate(TOGETHER)
    ]
    sent = send_batch(client, *changes)
    if sent[0].status == 412:
        return Observation(412)
    assert [part.status for part in sent] == [204] * len(TOGETHER), sent
    (found,) = {part.headers["ETag"] for part in sent}
    return Observation(201, found)


def _whole(client: TableClient, table: str, partition: str) -> Observation:
    target = query(table, filter=f"PartitionKey eq '{partition}'", select="N")
    found = expect_json(client.get(target, JSON_SENT), 200)["value"]
    if not found:
        return Observation(404)
    seen = {(one["N"], one["odata.etag"]) for one in found}
    assert len(found) == len(TOGETHER) and len(seen) == 1, f"half of a batch was seen: {found}"
    ((value, etag),) = seen
    return Observation(200, etag, value)


def file_client(client: Client, share: str) -> Send:
    """Return how a client sends calls about files that exist, of one range each."""

    def send(name: str, call: Hashable) -> Observation:
        target = f"/{share}/{name}"
        if isinstance(call, GetContent):
            answer = client.get(target)
            value = json.loads(answer.body) if answer.status == 200 else None
            return Observation(answer.status, answer.get("ETag"), value)
        assert isinstance(call, Put)
        body = str(call.content).ljust(64).encode()
        fields = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{len(body) - 1}"}
        answer = client.put(f"{target}?comp=range", fields, body)
        return Observation(answer.status, answer.get("ETag"))

    return send


def next_of_file(chance: random.Random, content: int, etag: str | None) -> Hashable:
    """Return a client's next call about a file."""
    return GetContent() if chance.random() < 0.5 else Put(content)
