"""The Table service as a whole: its properties and CORS rules, which are separate from the
blobs'."""

from __future__ import annotations

from tests.conformance.answer import Answer, expect, texts
from tests.conformance.client import Client
from tests.conformance.requests.test_cors import WILD, A, B, rule
from tests.conformance.requests.test_service_properties import put as set_properties
from tests.conformance.running import Running
from tests.conformance.table_client import TableClient, entity, expect_json, insert

PROPERTIES = "/?restype=service&comp=properties"


def preflight(client: Client, origin: str, method: str, headers: str = "") -> Answer:
    """A browser's question, without credentials, about an entity that need not exist."""
    given: dict[str, str | None] = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": headers,
        "x-ms-version": None,
    }
    return client.send("OPTIONS", entity("Absent", "p", "r"), given, auth=None)


def test_properties_are_kept_for_tables_alone(server: Running, table_account: TableClient) -> None:
    """T-SVC-01."""
    blobs = Client(server.port, table_account.credential)
    queues = Client(server.queue_port, table_account.credential)
    logging = (
        "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>"
        "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>"
    )
    expect(set_properties(table_account, logging), 202)
    answer = expect(table_account.get(PROPERTIES), 200)
    assert texts(answer.xml, "Logging/RetentionPolicy/Days") == ["7"]
    assert {child.tag for child in answer.xml} == {
        "Logging", "HourMetrics", "MinuteMetrics", "Cors",
    }  # fmt: skip
    assert answer["Content-Type"] == "application/xml"
    for other in (blobs, queues):
        found = expect(other.get(PROPERTIES), 200).xml
        assert texts(found, "Logging/RetentionPolicy/Days") == []
        other.close()
    for section in (
        "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>",
        "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>",
    ):
        expect(set_properties(table_account, section), 400, "UnsupportedXmlNode")
    expect(set_properties(table_account, "<Logging>"), 400, "InvalidXmlDocument")
    assert texts(table_account.get(PROPERTIES).xml, "Logging/RetentionPolicy/Days") == ["7"]


def test_browsers_are_answered_by_the_tables_own_rules(
    server: Running, table_account: TableClient
) -> None:
    """T-SVC-03: as B-COR-02, B-COR-03, B-COR-05, B-COR-06 and B-COR-07."""
    tables = table_account
    allowed = rule(f"{A},{WILD}", "GET,POST,MERGE", "*", "*")
    expect(set_properties(tables, f"<Cors>{allowed}</Cors>"), 202)
    for method in ("POST", "MERGE"):
        answer = expect(preflight(tables, A, method, "x-ms-date,prefer"), 200)
        assert answer["Access-Control-Allow-Origin"] == A
        assert answer["Access-Control-Max-Age"] == "77"
    expect(preflight(tables, WILD.replace("*", "x"), "POST"), 200)
    assert preflight(tables, B, "POST").code == "CorsPreflightFailure"
    assert preflight(tables, A, "DELETE").status == 403
    blobs = Client(server.port, tables.credential)
    assert preflight(blobs, A, "POST").code == "CorsPreflightFailure"
    blobs.close()
    expect_json(tables.post("/Tables", {"TableName": "Mine"}), 201)
    insert(tables, "Mine", {"PartitionKey": "p", "RowKey": "r"})
    found = tables.get(entity("Mine", "p", "r"), {"Origin": A})
    expect_json(found, 200)
    assert found["Access-Control-Allow-Origin"] == A
    assert "ETag" in found["Access-Control-Expose-Headers"].split(",")
    other = tables.get(entity("Mine", "p", "r"), {"Origin": B})
    assert other.get("Access-Control-Allow-Origin") is None and other["Vary"] == "Origin"
    missing = tables.get(entity("Mine", "p", "x"), {"Origin": A})
    expect_json(missing, 404, "ResourceNotFound")
    assert missing["Access-Control-Allow-Origin"] == A
