"""Random writers of entities, which know the expected state after the server was killed.

Each worker owns a partition. Every acknowledged write must be found, with its ETag. The write in
progress at the kill, of one entity or a transaction of several, was applied completely or not at
all. Used by the kill rounds; must not live here: starting and killing of servers (rounds.py).
"""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tests.conformance.answer import Answer
from tests.conformance.client import Client
from tests.conformance.table_client import MINIMAL, TableClient, entity
from tests.conformance.transactions import Change, changeset, parts
from tests.conformance.transactions import post as post_batch

TABLE = "Durable"
ROWS = 12
CHARS = (0, 20, 500, 9_000, 32_000)
_SENT = {"Content-Type": "application/json", "Accept": MINIMAL}


@dataclass(frozen=True, slots=True)
class State:
    """An entity: a digest of its properties, and its ETag ("" = not known)."""

    digest: str
    etag: str = ""


Pending = dict[str, str | None]
"""Row -> its digest after the pending write; None = the row is deleted."""


def make_table(client: Client) -> None:
    """Create the table of all workers."""
    assert isinstance(client, TableClient)
    assert client.post("/Tables", {"TableName": TABLE}).status == 201


@dataclass(slots=True)
class TableWorker:
    """One client that writes to its own partition until the server is gone.

    Arguments:
        number: names its partition.
        seed: determines its actions.
    """

    number: int
    seed: int
    acknowledged: int = 0
    failure: str = ""
    known: dict[str, State] = field(default_factory=dict)
    pending: Pending = field(default_factory=dict)

    @property
    def partition(self) -> str:
        """Its PartitionKey."""
        return f"worker {self.number}"

    def run(self, client: Client, stop: threading.Event) -> None:
        """Work until `stop` is set or the connection breaks."""
        rng = random.Random(self.seed)
        while not stop.is_set():
            try:
                rng.choice((self._one, self._one, self._batch))(client, rng)
            except (OSError, http.client.HTTPException):
                return
            except AssertionError as error:
                self.failure = f"{self.partition}: {error}"
                return

    def _one(self, client: Client, rng: random.Random) -> None:
        row = str(rng.randrange(ROWS))
        before = self.known.get(row)
        properties = _properties(rng)
        target = entity(TABLE, self.partition, row)
        match = {"If-Match": before.etag} if before is not None and rng.random() < 0.5 else {}
        if before is not None and rng.random() < 0.2:
            self.pending = {row: None}
            answer = client.send("DELETE", target, {"If-Match": match.get("If-Match", "*")})
        else:
            self.pending = {row: digest(properties)}
            body = json.dumps(properties).encode()
            answer = client.send("PUT", target, {**_SENT, **match}, body)
        assert answer.status == 204, f"{answer.method}: {answer.status} {answer.code}"
        self._done({row: answer.get("ETag") or ""})

    def _batch(self, client: Client, rng: random.Random) -> None:
        rows = rng.sample([str(row) for row in range(ROWS)], rng.randint(2, 8))
        changes, pending = [], Pending()
        for row in rows:
            target = entity(TABLE, self.partition, row)
            if row in self.known and rng.random() < 0.3:
                pending[row] = None
                changes.append(Change("DELETE", target, None, (("If-Match", "*"),)))
            else:
                properties = _properties(rng)
                pending[row] = digest(properties)
                changes.append(Change("PUT", target, properties))
        self.pending = pending
        answers = parts(post_batch(client, changeset(client, changes)))
        assert [part.status for part in answers] == [204] * len(rows), answers[0]
        self._done(
            {row: part.headers.get("ETag", "") for row, part in zip(rows, answers, strict=True)}
        )

    def _done(self, etags: dict[str, str]) -> None:
        for row, after in self.pending.items():
            if after is None:
                self.known.pop(row, None)
            else:
                self.known[row] = State(after, etags[row])
        self.pending = {}
        self.acknowledged += 1

    def verify(self, client: Client) -> list[str]:
        """Return the differences from the expected state. The found state becomes the known one."""
        found = self._read(client)
        lost = []
        applied = {row: found.get(row) for row in self.pending}
        happened = all(
            (state is None) if self.pending[row] is None else _is(state, self.pending[row])
            for row, state in applied.items()
        )
        for row in {*self.known, *found}:
            if row in self.pending and happened:
                continue
            if found.get(row) != self.known.get(row):
                lost.append(
                    f"{self.partition}: {row} is {found.get(row)}, not {self.known.get(row)}"
                )
        self.known, self.pending = found, {}
        return lost

    def _read(self, client: Client) -> dict[str, State]:
        found: dict[str, State] = {}
        condition = quote(f"PartitionKey eq '{self.partition}'", safe="")
        target = f"/{TABLE}()?$filter={condition}"
        token = ""
        while True:
            answer = client.get(target + token, {"Accept": MINIMAL})
            assert answer.status == 200, answer
            for one in json.loads(answer.body)["value"]:
                found[one["RowKey"]] = State(digest(_own(one)), one["odata.etag"])
            token = _continuation(answer)
            if not token:
                return found


def _is(state: State | None, wanted: str | None) -> bool:
    return state is not None and state.digest == wanted


def _continuation(answer: Answer) -> str:
    return "".join(
        f"&{name}={quote(value, safe='')}"
        for name in ("NextPartitionKey", "NextRowKey")
        if (value := answer.get(f"x-ms-continuation-{name}"))
    )


def _own(document: dict[str, Any]) -> dict[str, Any]:
    own = ("PartitionKey", "RowKey", "Timestamp")
    return {k: v for k, v in document.items() if k not in own and not k.startswith("odata.")}


def _properties(rng: random.Random) -> dict[str, Any]:
    count = rng.choice((1, 3, 8))
    chars = rng.choice(CHARS)
    made: dict[str, Any] = {f"P{n}": f"{rng.getrandbits(64):x}" + "x" * chars for n in range(count)}
    made["N"] = rng.randrange(1000)
    return made


def digest(properties: dict[str, Any]) -> str:
    """Return a digest that distinguishes two sets of properties."""
    return hashlib.sha256(json.dumps(properties, sort_keys=True).encode()).hexdigest()[:16]
