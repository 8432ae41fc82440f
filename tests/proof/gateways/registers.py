"""Histories of registers over several gateways: blobs, entities, transactions, files.

Each is a register with compare-and-swap, and is judged by the shipped model of a blob. Lives here:
the clients' next calls, and what becomes of them, for any model. Must not live here: which gateway
is asked (ways.py), append and page blobs (bodies.py).
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from strongroom.testing.history import CompletedCall, History, Model, Verdict, check
from strongroom.testing.models import Blob, BlobModel, GetContent, Observation, Put, PutIfMatch
from tests.conformance.answer import Answer
from tests.conformance.client import Client
from tests.conformance.concurrency import test_histories as blobs
from tests.conformance.history_models import ReadBlocks, ReadCells
from tests.conformance.table import test_table_histories as rows
from tests.conformance.table_client import JSON_SENT, TableClient, entity, expect_json, query
from tests.conformance.transactions import Change
from tests.conformance.transactions import send as send_batch
from tests.proof.gateways.stamps import RisingStamps
from tests.proof.gateways.ways import LOST, NotDone
from tests.proof.postgres.http_store import made

Send = Callable[[str, Hashable], Hashable]
"""Sends a call about an object, and returns what the client saw."""
Next = Callable[[random.Random, int, Any], Hashable]
"""(chance, a new content, what the client remembers of the object) -> its next call."""
_NOTHING: Final = "nothing was done"
_READS: Final = (GetContent, ReadBlocks, ReadCells)
_FILE_BYTES: Final = 64
TOGETHER: Final = ("a", "b", "c")


def _etag(call: Hashable, result: Hashable) -> str | None:
    """What a client remembers of a register: its last ETag."""
    return result.etag if isinstance(result, Observation) else None


class Registers:
    """The history of some objects of one kind.

    Arguments:
        names: of the objects.
        next_call: chooses the next call.
        model: judges each object.
        memory: (call, result) -> what the client remembers from now on; None = what it did.
    """

    def __init__(
        self,
        names: Sequence[str],
        next_call: Next = blobs.next_call,
        model: Model[Any] | None = None,
        memory: Callable[[Hashable, Hashable], object | None] = _etag,
    ) -> None:
        self._names, self._next, self._memory = names, next_call, memory
        self._model = BlobModel() if model is None else model
        self._history = History()
        self._stamps = RisingStamps()
        self._numbers = iter(range(1, 10**8))
        self._lock = threading.Lock()

    def client(self, number: int, seed: str, client: Client, send: Send) -> Callable[[], None]:
        """Return what a client does again and again.

        Arguments:
            seed: of its choices.
            client: whose last answer `send` has got.
        """
        chance, remembered = random.Random(f"{seed} {number}"), dict[str, object]()

        def act() -> None:
            name = chance.choice(self._names)
            with self._lock:
                content = next(self._numbers)
            call = self._next(chance, content, remembered.get(name))
            least = self._stamps.before(name)
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
            if last is not None and last.status in (200, 201, 204):
                self._stamps.after(name, least, last, writes=not isinstance(call, _READS))
            memory = self._memory(call, seen)
            if memory is not None:
                remembered[name] = memory

        return act

    def operations(self) -> list[CompletedCall]:
        """Return all calls but those that were certainly not carried out."""
        return [one for one in self._history.operations() if one.result != _NOTHING]

    def verdict(self) -> Verdict:
        return check(self.operations(), self._model)

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

    def send(partition: str, call: Hashable) -> Hashable:
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


class FileModel(BlobModel):
    """The model of files that exist. `made`: their ETag at first; their content is 0."""

    def __init__(self, made: Mapping[str, str]) -> None:
        super().__init__()
        self._made = made

    def initial(self, object_key: str) -> Blob:
        return Blob(self._made[object_key], 0, 0)


def files(client: Client, share: str) -> Registers:
    """Make a share and files of one range each, and return their history."""
    made(client.put(f"/{share}?restype=share"))
    send, found = file_client(client, share), dict[str, str]()
    for name in ("f0", "f1"):
        length = {"x-ms-content-length": str(_FILE_BYTES), "x-ms-type": "file"}
        made(client.put(f"/{share}/{name}", length))
        seen = send(name, Put(0))
        assert isinstance(seen, Observation) and seen.etag is not None, seen
        found[name] = seen.etag
    return Registers([*found], _next_of_file, FileModel(found))


def file_client(client: Client, share: str) -> Send:
    """Return how a client sends calls about files."""

    def send(name: str, call: Hashable) -> Hashable:
        target = f"/{share}/{name}"
        if isinstance(call, GetContent):
            answer = client.get(target)
            value = json.loads(answer.body) if answer.status == 200 else None
            return Observation(answer.status, answer.get("ETag"), value)
        assert isinstance(call, Put)
        body = str(call.content).ljust(_FILE_BYTES).encode()
        fields = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{len(body) - 1}"}
        answer = client.put(f"{target}?comp=range", fields, body)
        return Observation(answer.status, answer.get("ETag"))

    return send


def _next_of_file(chance: random.Random, content: int, etag: str | None) -> Hashable:
    return GetContent() if chance.random() < 0.5 else Put(content)
