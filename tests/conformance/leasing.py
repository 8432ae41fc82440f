"""Leases in every state of the tables, for a container or a blob, and the tables themselves.

`table("B-LSE")` reads docs/operations/blob/leases.md; `Leased` moves one resource into a state by
real requests and the server's clock. Source: "Lease Blob", "Lease Container".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.answer import Answer, expect
from tests.conformance.client import Client, Fields
from tests.conformance.running import Running

A = "aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa"
B = "bbbbbbbb-2222-4222-8222-bbbbbbbbbbbb"
C = "cccccccc-3333-4333-8333-cccccccccccc"
IDS = {"A": A, "B": B, "C": C}
STATES = ("available", "leased(A)", "breaking(A)", "broken(A)", "expired(A)")
DURATION_S = 60
BREAK_S = 20

_TRANSCRIPT = Path(__file__).parents[2] / "docs/operations/blob/leases.md"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: the outcome of a request in a state (`409 LeaseIdMissing`)."""

    rule: str
    request: str
    state: str
    outcome: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.request}, {self.state}"

    @property
    def status(self) -> int | None:
        """The status; None if the cell has `pass` or only a state."""
        first = self.outcome.split()[0]
        return int(first) if first.isdigit() else None

    @property
    def code(self) -> str | None:
        """The error's code, None for success."""
        if self.status is None or self.status < 400:
            return None
        return self.outcome.split()[1]

    @property
    def after(self) -> str:
        """The state afterwards, which an error does not change."""
        return self.state if self.code else self.outcome.split()[-1]


def table(group: str) -> list[Cell]:
    """The cells of the state table whose rules begin with `group`."""
    cells = []
    for line in _TRANSCRIPT.read_text().splitlines():
        if not re.match(rf"\| {group}-\d\d \|", line):
            continue
        rule, request, *outcomes = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(outcomes) == len(STATES), line
        for state, outcome in zip(STATES, outcomes, strict=True):
            cells.append(Cell(rule, request, state, outcome))
    assert cells, f"no table of {group}"
    return cells


class Leased:
    """One container or blob whose lease a test controls.

    Arguments:
        target: `/container?restype=container` or `/container/blob`.
    """

    def __init__(self, server: Running, client: Client, target: str) -> None:
        self.server = server
        self.client = client
        self.target = target
        self._lease = target + ("&" if "?" in target else "?") + "comp=lease"

    def act(self, action: str, **fields: str | int) -> Answer:
        """Send one action: `lease_id`, `proposed_lease_id`, `lease_duration`,
        `lease_break_period`."""
        headers = {f"x-ms-{name.replace('_', '-')}": str(text) for name, text in fields.items()}
        return self.client.put(self._lease, {"x-ms-lease-action": action, **headers})

    def acquire(self, lease_id: str = A, duration_s: int = DURATION_S) -> Answer:
        """Acquire with a proposed id; it must succeed."""
        answer = self.act("acquire", proposed_lease_id=lease_id, lease_duration=duration_s)
        return expect(answer, 201)

    def into(self, state: str) -> None:
        """Move the lease from available to `state`."""
        if state == "available":
            return
        self.acquire()
        if state == "breaking(A)":
            expect(self.act("break", lease_break_period=BREAK_S), 202)
        elif state == "broken(A)":
            expect(self.act("break", lease_break_period=0), 202)
        elif state == "expired(A)":
            self.server.advance(DURATION_S + 1)

    def reported(self) -> Answer:
        """Return the answer of HEAD."""
        return expect(self.client.head(self.target), 200)

    def check(self, state: str, lease_id: str | None = None) -> None:
        """Check that the resource is in `state`, with the lease id in brackets or `lease_id`."""
        word, _, letter = state.rstrip(")").partition("(")
        said = self.reported()
        assert said["x-ms-lease-state"] == word
        locked = word in ("leased", "breaking")
        assert said["x-ms-lease-status"] == ("locked" if locked else "unlocked")
        expected = lease_id or IDS.get(letter)
        if expected is None:
            for one in (A, B, C):
                answer = self.act("release", lease_id=one)
                expect(answer, 409, "LeaseIdMismatchWithLeaseOperation")
            return
        # Only the id of the lease can release it, whatever its state.
        expect(self.act("release", lease_id=expected), 200)

    def send(self, method: str, headers: Fields = ()) -> Answer:
        """Another request to the same target."""
        return self.client.send(method, self.target, headers)
