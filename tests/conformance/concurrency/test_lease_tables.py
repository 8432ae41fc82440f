"""The state tables of leases, walked cell by cell: the operation itself on containers and blobs.

B-LSE-01 B-LSE-02 B-LSE-03 B-LSE-04 B-LSE-05 B-LSE-06 B-LSE-07 B-LSE-08 B-LSE-09 B-LSE-10 B-LSE-11
B-LSE-12 B-LSE-13, and what container leases do to other operations: B-LCO-01 B-LCO-02 B-LCO-03
B-LCO-04 B-LCO-05 B-LCO-06. The cells are read from docs/operations/blob/leases.md.
"""

from __future__ import annotations

import pytest

from tests.conformance.answer import Answer, expect
from tests.conformance.client import Client
from tests.conformance.leasing import BREAK_S, DURATION_S, IDS, Cell, Leased, table
from tests.conformance.running import Running

OTHERS = {
    "get properties": ("GET", ""),
    "head properties": ("HEAD", ""),
    "get metadata": ("GET", "&comp=metadata"),
    "set metadata": ("PUT", "&comp=metadata"),
    "get acl": ("GET", "&comp=acl"),
    "set acl": ("PUT", "&comp=acl"),
}


def act(leased: Leased, request: str) -> Answer:
    """The request that a row of the table names."""
    verb, *words = request.split()
    if verb == "acquire":
        proposed = {} if words[0] == "without" else {"proposed_lease_id": IDS[words[0]]}
        return leased.act("acquire", lease_duration=30, **proposed)
    if verb == "break":
        return leased.act("break", lease_break_period=int(words[0]))
    if verb == "change":
        old, _, new = words
        return leased.act("change", lease_id=IDS[old], proposed_lease_id=IDS[new])
    assert verb in ("renew", "release")
    return leased.act(verb, lease_id=IDS[words[0]])


@pytest.mark.parametrize("cell", [c for c in table("B-LSE") if c.request != "time passes"], ids=str)
def test_a_lease_operation_answers_and_moves_as_the_table_says(leased: Leased, cell: Cell) -> None:
    leased.into(cell.state)
    assert cell.status is not None
    answer = expect(act(leased, cell.request), cell.status, cell.code)
    fresh = cell.after == "leased(X)"
    if fresh:
        assert answer["x-ms-lease-id"] not in IDS.values()
    leased.check(cell.after, answer["x-ms-lease-id"] if fresh else None)


@pytest.mark.parametrize("cell", [c for c in table("B-LSE") if c.request == "time passes"], ids=str)
def test_time_moves_a_lease_as_the_table_says(leased: Leased, cell: Cell) -> None:
    """B-LSE-13."""
    leased.into(cell.state)
    leased.server.advance(max(DURATION_S, BREAK_S) + 1)
    leased.check(cell.outcome)


@pytest.mark.parametrize("cell", [c for c in table("B-LCO") if "delete" in c.request], ids=str)
def test_deletion_of_a_container_in_each_state(
    server: Running, client: Client, container: str, cell: Cell
) -> None:
    """B-LCO-01 B-LCO-02 B-LCO-03."""
    target = f"/{container}?restype=container"
    leased = Leased(server, client, target)
    leased.into(cell.state)
    answer = client.delete(target, given_id(cell))
    if cell.outcome == "pass":
        expect(answer, 202)
        expect(client.head(target), 404, "ContainerNotFound")
    else:
        assert cell.status is not None
        expect(answer, cell.status, cell.code)
        leased.check(cell.state)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("cell", [c for c in table("B-LCO") if "other" in c.request], ids=str)
def test_other_operations_on_a_container_in_each_state(
    server: Running, client: Client, container: str, cell: Cell, other: str
) -> None:
    """B-LCO-04 B-LCO-05 B-LCO-06."""
    target = f"/{container}?restype=container"
    leased = Leased(server, client, target)
    leased.into(cell.state)
    method, comp = OTHERS[other]
    answer = client.send(method, target + comp, given_id(cell))
    if cell.outcome.startswith("pass"):
        expect(answer, 200)
    else:
        assert cell.status is not None
        expect(answer, cell.status, cell.code)
    leased.check(cell.after)


def given_id(cell: Cell) -> dict[str, str | None]:
    """The lease header of a request like `delete A` or `other without id`."""
    word = cell.request.split()[1]
    return {} if word == "without" else {"x-ms-lease-id": IDS[word]}


@pytest.mark.parametrize("comp", ["&comp=metadata", "&comp=acl"])
def test_an_expired_container_lease_stays_renewable_after_a_write(
    server: Running, client: Client, container: str, comp: str
) -> None:
    """B-LCO-04: Set Metadata and Set ACL leave it expired, and its id may still renew it."""
    target = f"/{container}?restype=container"
    leased = Leased(server, client, target)
    leased.into("expired(A)")
    expect(client.put(target + comp), 200)
    expect(leased.act("renew", lease_id=IDS["A"]), 200)
    leased.check("leased(A)")
