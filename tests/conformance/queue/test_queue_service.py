"""The Queue service as a whole: its properties and CORS rules, which are separate from the
blobs'."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.answer import Answer, expect, texts
from tests.conformance.client import Client
from tests.conformance.messages import put
from tests.conformance.requests.test_cors import WILD, A, B, rule
from tests.conformance.requests.test_service_properties import put as set_properties
from tests.conformance.running import Running

PROPERTIES = "/?restype=service&comp=properties"


def preflight(client: Client, origin: str, method: str, headers: str = "") -> Answer:
    """A browser's question, without credentials, about a queue that need not exist."""
    given: dict[str, str | None] = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": headers,
        "x-ms-version": None,
    }
    return client.send("OPTIONS", "/absent/messages", given, auth=None)


def test_properties_are_kept_for_queues_alone(server: Running, queue_account: Client) -> None:
    """Q-SVC-01."""
    blobs = Client(server.port, queue_account.credential)
    logging = (
        "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>"
        "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>"
    )
    expect(set_properties(queue_account, logging), 202)
    found = expect(queue_account.get(PROPERTIES), 200).xml
    assert texts(found, "Logging/RetentionPolicy/Days") == ["7"]
    assert {child.tag for child in found} == {"Logging", "HourMetrics", "MinuteMetrics", "Cors"}
    assert texts(expect(blobs.get(PROPERTIES), 200).xml, "Logging/RetentionPolicy/Days") == []
    for section in (
        "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>",
        "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>",
    ):
        expect(set_properties(queue_account, section), 400, "UnsupportedXmlNode")
    expect(set_properties(queue_account, "<Logging>"), 400, "InvalidXmlDocument")
    blobs.close()


def test_browsers_are_answered_by_the_queues_own_rules(
    server: Running, queue_account: Client, new_name: Callable[[], str]
) -> None:
    """Q-SVC-03: as B-COR-02, B-COR-03, B-COR-05, B-COR-06 and B-COR-07."""
    expect(
        set_properties(queue_account, f"<Cors>{rule(f'{A},{WILD}', 'GET,POST', '*', '*')}</Cors>"),
        202,
    )
    answer = expect(preflight(queue_account, A, "POST", "x-ms-date"), 200)
    assert answer["Access-Control-Allow-Origin"] == A
    assert answer["Access-Control-Max-Age"] == "77"
    expect(preflight(queue_account, WILD.replace("*", "x"), "POST"), 200)
    expect(preflight(queue_account, B, "POST"), 403, "CorsPreflightFailure")
    blobs = Client(server.port, queue_account.credential)
    expect(preflight(blobs, A, "POST"), 403, "CorsPreflightFailure")
    blobs.close()
    queue = new_name()
    expect(queue_account.put(f"/{queue}"), 201)
    put(queue_account, queue)
    found = expect(queue_account.get(f"/{queue}/messages", {"Origin": A}), 200)
    assert found["Access-Control-Allow-Origin"] == A
    other = expect(queue_account.get(f"/{queue}/messages", {"Origin": B}), 200)
    assert other.get("Access-Control-Allow-Origin") is None and other["Vary"] == "Origin"
    missing = queue_account.get("/absent/messages", {"Origin": A})
    assert expect(missing, 404, "QueueNotFound")["Access-Control-Allow-Origin"] == A
