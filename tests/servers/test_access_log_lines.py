"""Lines made from templates are those that the record itself makes."""

from __future__ import annotations

import asyncio
import json

import pytest

from strongroom.auth.claims import SharedKeyClaim
from strongroom.auth.request import Service
from strongroom.clock import ManualClock
from strongroom.engines.memory import MemoryEngine
from strongroom.servers.access_log.exchanges import ExchangeRecords
from strongroom.servers.access_log.places import Places
from strongroom.servers.access_log.record import line_of
from strongroom.servers.access_log.texts import ObjectNames
from strongroom.servers.http.settings import Exchange
from strongroom.servers.requests import admission
from strongroom.servers.service_listeners import contexts
from strongroom.services.core.runner import Services
from strongroom.wire.core.http import Headers, Request, Response
from tests.app.bodies import Bytes
from tests.auth.signing import NAME, OneAccount

ENDED = 638_000_000_000_000_000


def exchange(path: str, agent: str, client: str | None, etag: str | None, status: int) -> Exchange:
    """A read of a blob by the account's key."""

    async def made() -> admission.ServiceContext:
        clock = ManualClock()
        return contexts(Services(MemoryEngine(clock), clock), OneAccount(), clock)[Service.BLOB]

    context = asyncio.run(made())
    fields = [("Host", "127.0.0.1:10000"), ("User-Agent", agent), ("x-ms-version", "2025-11-05")]
    if client is not None:
        fields.append(("x-ms-client-request-id", client))
    request = Request("GET", f"/{NAME}{path}", Headers(fields), Bytes(b""))
    parsed = admission.read(context, request)
    parsed.claim, parsed.version = SharedKeyClaim(NAME, key=2), "2025-11-05"
    resource, routes = parsed.addressed.resource, context.endpoint.routes
    parsed.operation = routes.match("GET", resource, parsed.query, request.headers)
    headers = [("x-ms-request-id", "efb7385c-077e-4bbe-9f65-8340406d4654")]
    if etag is not None:
        headers.append(("ETag", etag))
    response = Response(status, headers, facts=parsed)
    return Exchange(request, status, 7, 1500, 0.001234, True, response, 476, "127.0.0.1")


@pytest.mark.parametrize("names", list(ObjectNames))
@pytest.mark.parametrize(
    ("path", "agent", "client"),
    [
        ("/box/blob", "agent/1", "360b66a6-ad4f-4c4a-84a4-0ad7cb44f7a6"),
        ("/box/100%25%20b%C3%A4r", "100% s %s %(x)s", "a"),
        ("/box/a%22b%0Ac", 'an "agent" \\ \xe4', "a"),
        ("/box/a?snapshot=2026-01-02T03:04:05.1234567Z&sig=SECRET", "agent", "a"),
        ("/box/blob", "agent", 'a "quoted" %s id'),
        ("/box/blob", "agent", "x" * 5000),
        ("/box/blob", "agent", None),
        ("/box/blob", "agent", ""),
        ("/box?restype=container&comp=list", "agent", "a"),
        ("/$web/a.b/c~d_e-f?sv=2020-08-04&sig=SECRET&prefix=%22%5c", "agent", None),
        ("/box/sig=SECRET/a?timeout=9", "agent", "a"),
        ("/box/" + "x" * 1500, "agent", "a"),
        ("/box/blob", "x" * 5000, "a"),
    ],
)
@pytest.mark.parametrize(
    "etag", ['"0x8DF4CEC38B2AB09"', "W/\"datetime'2026-01-02T03%3A04%3A05.6Z'\"", '"a\\b"', None]
)
def test_a_template_changes_no_line(
    names: ObjectNames, path: str, agent: str, client: str | None, etag: str | None
) -> None:
    records = ExchangeRecords(Places(OneAccount(), names))
    for status in (200, 206, 200):
        given = exchange(path, agent, client, etag, status)
        (line,) = records.lines(given, "blob", ENDED, 0.000123)
        (record,) = records.of(given, "blob", ENDED, 0.000123)
        assert line == line_of(record)
        assert b"SECRET" not in line
        assert json.loads(line)["properties"]["engineMs"] == 0.123
        assert json.loads(line)["identity"]["tokenHash"] == "key2"
