"""Entities and transactions under power cuts: a state that an answer has shown is never lost.

Each client has entities of its own, of which it knows the state. All of them share

    counter    one entity, raised by If-Match: a 412 shows that it was raised
    trio       three entities, raised together by a transaction: never seen apart
    phases     entities that are inserted once and deleted once: a 409, or a 404, shows it

so that a refusal shows another client's write, which may have no answer yet.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from strongroom.auth.request import Service
from tests.conformance.answer import Answer
from tests.conformance.table_client import JSON_SENT, entity
from tests.conformance.transactions import BATCH_TYPE, Change, Part, changeset, insert, parts
from tests.durability.power_cuts import NoAnswer, SocketlessClient

TABLE: Final = "Cut"
TRIO: Final = ("x", "y", "z")
ROWS: Final = 6
PHASES: Final = 40
CHARS: Final = (0, 20, 2_000, 30_000)
Rows = dict[str, tuple[Any, str]]
"""RowKey -> (a value that identifies the content, ETag)."""


@dataclass(slots=True)
class Between:
    """A number that only rises: the highest shown number, and the highest attempted number."""

    shown: int = 0
    tried: int = 0

    def show(self, number: int) -> None:
        """Note that an answer showed this number."""
        self.shown = max(self.shown, number)

    def attempt(self, number: int) -> None:
        """Note that a client attempts to write this number."""
        self.tried = max(self.tried, number)

    def settle(self, found: int, what: str) -> None:
        """Check and set the number after a cut."""
        assert self.shown <= found <= self.tried, f"{what} is {found}, not in {self}"
        self.shown = self.tried = found


@dataclass
class TablePlay:
    """See Play."""

    service: Service = Service.TABLE
    ready: bool = False
    counter: Between = field(default_factory=Between)
    trio: Between = field(default_factory=Between)
    phases: dict[int, Between] = field(default_factory=dict)
    inserting: dict[int, int] = field(default_factory=dict)
    own: dict[int, Rows] = field(default_factory=dict)
    under_way: dict[int, dict[str, str | None]] = field(default_factory=dict)
    last_etag: str = ""

    async def prepare(self, client: SocketlessClient) -> None:
        """Create the table, the counter and the trio; existing ones stay."""
        made = await _post(client, "/Tables", {"TableName": TABLE})
        assert made.status in (201, 409), made
        first = await _post(client, f"/{TABLE}", {"PartitionKey": "one", "RowKey": "c", "N": 0})
        assert first.status in (201, 409), first
        answered = await _transact(client, [insert(TABLE, "trio", row, N=0) for row in TRIO])
        assert answered[0].status in (204, 409), answered
        self.ready = True

    async def act(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        """Play one of the four games."""
        kinds = (self._raise_counter, self._raise_trio, self._go_on, self._write_own)
        await chance.choice((*kinds, self._write_own))(client, worker, chance)

    async def _raise_counter(
        self, client: SocketlessClient, worker: int, chance: random.Random
    ) -> None:
        target = entity(TABLE, "one", "c")
        found = await client.ask("GET", target, JSON_SENT)
        number = json.loads(found.body)["N"]
        self.counter.show(number)
        await self._raised(client, target, found["ETag"], number)

    async def _raised(self, client: SocketlessClient, target: str, etag: str, number: int) -> None:
        self.counter.attempt(number + 1)
        body = json.dumps({"N": number + 1}).encode()
        answer = await client.ask("PUT", target, {**JSON_SENT, "If-Match": etag}, body)
        assert answer.status in (204, 412), answer
        # Refused or not, the counter has a higher number now.
        self.counter.show(number + 1)
        self._remember(answer.get("ETag") or "")

    async def _raise_trio(
        self, client: SocketlessClient, worker: int, chance: random.Random
    ) -> None:
        found = await _partition(client, "trio")
        number, etag = _one(found)
        self.trio.show(number)
        self.trio.attempt(number + 1)
        changes = [
            Change("PUT", entity(TABLE, "trio", row), {"N": number + 1}, (("If-Match", match),))
            for row, match in zip(TRIO, ("*", etag, "*"), strict=True)
        ]
        statuses = [part.status for part in await _transact(client, changes)]
        assert statuses in ([204] * 3, [412]), statuses
        self.trio.show(number + 1)

    async def _go_on(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        number = chance.randrange(PHASES)
        phase = self.phases.setdefault(number, Between())
        row = f"{number:02}"
        if phase.shown == 0 and phase.tried < 2:
            phase.attempt(1)
            self.inserting[number] = self.inserting.get(number, 0) + 1
            document = {"PartitionKey": "phases", "RowKey": row}
            answer = await _post(client, f"/{TABLE}", document)
            self.inserting[number] -= 1
            assert answer.status in (201, 409), answer
            phase.show(1)
        elif not self.inserting.get(number):
            # No insert in progress can restore the entity.
            phase.attempt(2)
            target = entity(TABLE, "phases", row)
            answer = await client.ask("DELETE", target, {"If-Match": "*"})
            assert answer.status in (204, 404), answer
            phase.show(2)

    async def _write_own(
        self, client: SocketlessClient, worker: int, chance: random.Random
    ) -> None:
        known = self.own.setdefault(worker, {})
        names = [str(row) for row in range(ROWS)]
        changes, wanted = [], dict[str, str | None]()
        for row in chance.sample(names, chance.choice((1, 1, 3, 5))):
            target = entity(TABLE, f"worker {worker}", row)
            match = (("If-Match", chance.choice(("*", known[row][1]))),) if row in known else ()
            if match and chance.random() < 0.3:
                wanted[row] = None
                changes.append(Change("DELETE", target, None, match))
            else:
                content = f"{chance.getrandbits(64):x}" + "x" * chance.choice(CHARS)
                wanted[row] = content
                changes.append(Change("PUT", target, {"T": content, "U": content}, match))
        self.under_way[worker] = wanted
        etags = await _write(client, changes)
        del self.under_way[worker]
        for (row, text), etag in zip(wanted.items(), etags, strict=True):
            known.pop(row, None)
            if text is not None:
                known[row] = (text, etag)
                self._remember(etag)

    def _remember(self, etag: str) -> None:
        self.last_etag = max(self.last_etag, etag)

    async def judge(self, client: SocketlessClient) -> None:
        """See Play."""
        if not self.ready:
            return
        found = await client.ask("GET", entity(TABLE, "one", "c"), JSON_SENT)
        assert found.status == 200, "the counter is lost"
        self.counter.settle(json.loads(found.body)["N"], "the counter")
        self.trio.settle(_one(await _partition(client, "trio"))[0], "the trio")
        await self._judge_phases(client)
        for worker in self.own:
            await self._judge_own(client, worker)
        written = await client.ask("PUT", entity(TABLE, "judge", "j"), JSON_SENT, b"{}")
        assert written["ETag"] > self.last_etag, "a Timestamp was given twice"
        self._remember(written["ETag"])

    async def _judge_phases(self, client: SocketlessClient) -> None:
        there = await _partition(client, "phases")
        for number, phase in self.phases.items():
            present = f"{number:02}" in there
            begun = phase.shown > 0 or phase.tried == 2
            phase.settle(1 if present else 2 * begun, f"the phase of {number}")
        self.inserting.clear()

    async def _judge_own(self, client: SocketlessClient, worker: int) -> None:
        found = await _partition(client, f"worker {worker}")
        known, wanted = self.own[worker], self.under_way.pop(worker, {})
        texts = {row: content for row, (content, _) in found.items()}
        before = {row: content for row, (content, _) in known.items()}
        after = {row: text for row, text in {**before, **wanted}.items() if text is not None}
        if wanted and texts == after:
            known.clear()
        assert texts in (before, after), f"worker {worker}: {_shown(texts)} of {_shown(before)}"
        assert {row: found[row] for row in known} == known, "an entity has another ETag"
        self.own[worker] = found


def _shown(texts: dict[str, Any]) -> dict[str, str]:
    return {row: str(text)[:20] for row, text in texts.items()}


async def _post(client: SocketlessClient, target: str, document: object) -> Answer:
    return await client.ask("POST", target, JSON_SENT, json.dumps(document).encode())


async def _transact(client: SocketlessClient, changes: list[Change]) -> list[Part]:
    body = changeset(client.signing_client, changes)
    answered = parts(await client.ask("POST", "/$batch", BATCH_TYPE, body))
    if answered[0].status >= 500:
        raise NoAnswer(answered[0].code)
    return answered


async def _write(client: SocketlessClient, changes: list[Change]) -> list[str]:
    """Write one entity, or several in a transaction, and return their ETags."""
    if len(changes) > 1:
        answered = await _transact(client, changes)
        assert [part.status for part in answered] == [204] * len(changes), answered
        return [part.headers.get("ETag", "") for part in answered]
    (one,) = changes
    body = b"" if one.document is None else json.dumps(one.document).encode()
    answer = await client.ask(one.method, one.target, {**JSON_SENT, **dict(one.headers)}, body)
    assert answer.status == 204, answer
    return [answer.get("ETag") or ""]


async def _partition(client: SocketlessClient, name: str) -> Rows:
    condition = quote(f"PartitionKey eq '{name}'", safe="")
    target = f"/{TABLE}()?$filter={condition}"
    rows: Rows = {}
    token = ""
    while True:
        answer = await client.ask("GET", target + token, JSON_SENT)
        assert answer.status == 200, answer
        for one in json.loads(answer.body)["value"]:
            assert one.get("T") == one.get("U"), "an entity is torn"
            rows[one["RowKey"]] = (one.get("N", one.get("T")), one["odata.etag"])
        token = "".join(
            f"&{name}={quote(value, safe='')}"
            for name in ("NextPartitionKey", "NextRowKey")
            if (value := answer.get(f"x-ms-continuation-{name}"))
        )
        if not token:
            return rows


def _one(rows: Rows) -> tuple[int, str]:
    """Return the number that the whole trio has, and their ETag.

    The ETag of an insert differs from that of a transaction that changed all of them.
    """
    assert set(rows) == set(TRIO), f"the trio is {set(rows)}"
    assert len(set(rows.values())) == 1, f"half of a transaction was seen: {rows}"
    return rows[TRIO[0]]
