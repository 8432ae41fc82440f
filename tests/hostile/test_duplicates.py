"""Repeated parameters and headers: the sender must not be able to choose which one counts."""

from __future__ import annotations

import pytest

from tests.conformance.answer import expect
from tests.conformance.client import Client
from tests.conformance.table_client import (
    JSON_SENT,
    TableClient,
    entity,
    expect_json,
    insert,
    table_sas,
)

INVALID = "InvalidQueryParameterValue"


@pytest.mark.parametrize(
    "pair",
    [
        "$filter=A eq 1&$filter=A eq 2",
        "$filter=A eq 1&%24FILTER=A eq 1",
        "$top=1&$top=1",
        "$select=A&$select=B",
        "$format=json&$format=json",
        "NextPartitionKey=1!4!cA--&nextpartitionkey=1!4!cA--",
        "timeout=1&timeout=2",
        "comp=acl&comp=acl",
    ],
)
def test_a_parameter_twice(tables: TableClient, pair: str) -> None:
    """T-QRY-02, T-QRY-06, T-ADR-08."""
    expect_json(tables.get(f"/Edge()?{pair.replace(' ', '%20')}"), 400, INVALID)


@pytest.mark.parametrize("name", ["sig", "sp", "se", "spk", "tn", "sv"])
def test_a_parameter_of_a_token_twice(tables: TableClient, name: str) -> None:
    """T-SAS-06: neither the first nor the second counts."""
    insert(tables, "Edge", {"PartitionKey": "b", "RowKey": "r"})
    token = table_sas(tables.credential, "Edge", spk="b", epk="b")
    assert tables.get(f"/Edge()?{token}", auth=None).status == 200
    (first,) = [part for part in token.split("&") if part.startswith(f"{name}=")]
    for more in (first, f"{name}=x", f"{name.upper()}=x"):
        for query in (f"{token}&{more}", f"{more}&{token}"):
            refused = tables.get(f"/Edge()?{query}", auth=None)
            assert (refused.status, refused.code) in (
                (400, INVALID),
                (403, "AuthenticationFailed"),
            )


@pytest.mark.parametrize(
    ("name", "first", "second", "code"),
    [
        ("If-Match", "*", 'W/"x"', "InvalidHeaderValue"),
        ("Content-Type", "application/json", "text/plain", "InvalidHeaderValue"),
        ("x-ms-version", "2021-12-02", "2019-02-02", "InvalidHeaderValue"),
        ("X-HTTP-Method", "MERGE", "DELETE", "XMethodIncorrectCount"),
    ],
)
def test_a_header_of_a_write_twice(
    tables: TableClient, name: str, first: str, second: str, code: str
) -> None:
    """T-ADR-07, T-WRI-06: nothing is written."""
    insert(tables, "Edge", {"PartitionKey": "p", "RowKey": "r", "N": 1})
    method = "POST" if name.startswith("X-") else "PUT"
    own = [pair for pair in JSON_SENT.items() if pair[0] != name]
    sent = [*own, (name, first), (name.lower(), second)]
    target = entity("Edge", "p", "r")
    expect_json(tables.send(method, target, sent, b'{"N":2}'), 400, code)
    assert expect_json(tables.get(target), 200)["N"] == 1


@pytest.mark.parametrize(
    "target",
    [
        "/edge/messages?numofmessages=1&NumOfMessages=2",
        "/edge/messages?visibilitytimeout=1&visibilitytimeout=1",
        "/edge/messages?peekonly=true&peekonly=false",
        "/edge?comp=metadata&comp=acl",
        "/?comp=list&comp=list",
        "/?comp=list&prefix=a&prefix=b",
        "/?comp=list&maxresults=1&maxresults=2",
    ],
)
def test_a_parameter_of_a_queue_twice(queues: Client, target: str) -> None:
    """Q-GET-03, Q-ADR-05."""
    expect(queues.get(target), 400, INVALID)


def test_a_metadata_header_twice(queues: Client) -> None:
    """Q-QUE-06: in any case of its name."""
    for second in ("x-ms-meta-a", "X-MS-META-A"):
        answer = queues.put("/edge?comp=metadata", [("x-ms-meta-a", "1"), (second, "2")])
        expect(answer, 400, "InvalidHeaderValue")
    assert queues.get("/edge?comp=metadata").get("x-ms-meta-a") is None


def test_an_empty_version_is_none_that_there_is(tables: TableClient, queues: Client) -> None:
    """T-SVC-04, Q-SVC-06: its refusal has a code, as one of any newer version."""
    expect_json(tables.get("/Edge()", {"x-ms-version": ""}), 400, "InvalidHeaderValue")
    expect(queues.get("/edge/messages", {"x-ms-version": ""}), 400, "InvalidHeaderValue")
