"""The headers of answers are set last: each is there once, whatever was stored or chosen before."""

from __future__ import annotations

import pytest

from strongroom.auth.accounts import Account
from strongroom.auth.claims import SharedKeyClaim
from strongroom.auth.request import Service
from strongroom.clock import ManualClock
from strongroom.engines.memory import MemoryEngine
from strongroom.errors.core import NO_AUTHENTICATION_INFORMATION, StorageError
from strongroom.servers.console.answers import finish, page_policy
from strongroom.servers.console.listener import guarded
from strongroom.servers.console.origin import Area
from strongroom.servers.identities.accounts_file import ServedAccounts
from strongroom.servers.requests.admission import identify, read
from strongroom.servers.service_listeners import contexts
from strongroom.services.core.runner import Services
from strongroom.wire.core.http import Headers, Request, Response
from tests.app.bodies import Bytes

STORED = [
    ("Content-Type", "text/html"),
    ("content-disposition", "inline"),
    ("CONTENT-SECURITY-POLICY", "default-src *"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    ("X-Content-Type-Options", "no"),
    ("cache-control", "public"),
    ("Access-Control-Allow-Origin", "*"),
    ("access-control-expose-headers", "*"),
    ("x-ms-meta-a", "b"),
]


def request(method: str = "GET", destination: str = "document") -> Request:
    fields = [("Host", "127.0.0.1"), ("Sec-Fetch-Dest", destination)]
    return Request(method, "/blob/shop/c/b", Headers(fields), Bytes(b""))


@pytest.mark.parametrize("area", list(Area))
def test_each_header_is_there_once(area: Area) -> None:
    response = finish(Response(200, list(STORED)), request(), area)
    names = [name.lower() for name, _ in response.headers]
    assert len(names) == len(set(names)), names
    found = {name.lower(): value for name, value in response.headers}
    assert found["x-content-type-options"] == "nosniff"
    assert found["cross-origin-resource-policy"] == "same-origin"
    assert found["content-security-policy"] == "sandbox; default-src 'none'"
    assert found["cache-control"] == "no-store"
    assert found["content-type"] == "text/html"
    assert found["x-ms-meta-a"] == "b"
    assert found["content-disposition"] == ("attachment" if area is Area.DATA else "inline")
    assert not [name for name in names if name.startswith("access-control-")]


def test_a_script_gets_data_as_it_is_and_the_unreadable_gets_all() -> None:
    for given, disposition in ((request(destination="empty"), "inline"), (None, "attachment")):
        response = finish(Response(200, list(STORED)), given, Area.DATA)
        assert dict(response.headers).get("Content-Disposition") == (
            None if disposition == "inline" else disposition
        )


def test_the_policy_names_files_and_nothing_wider() -> None:
    policy = page_policy("http://127.0.0.1:1", ["/assets/a.js", "/assets/b.css", "/assets/c.svg"])
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert parts["script-src"] == "http://127.0.0.1:1/assets/a.js"
    assert parts["style-src"] == "http://127.0.0.1:1/assets/b.css"
    assert parts["img-src"] == "http://127.0.0.1:1/assets/c.svg blob:"
    assert parts["connect-src"] == "'self'"
    assert parts["default-src"] == parts["worker-src"] == parts["frame-ancestors"] == "'none'"
    assert "script-src 'none'; style-src 'none'" in page_policy("http://127.0.0.1:1", [])


def test_a_context_of_the_console_knows_no_anonymous_callers() -> None:
    """A part of a batch has credentials of its own, and comes this way too."""
    clock = ManualClock()
    accounts = ServedAccounts((Account("shop", (b"key",)),), None, None, lambda found: None)
    usual = contexts(Services(MemoryEngine(clock), clock), accounts, clock)
    for service in Service:
        own, console = usual[service], guarded(usual)[service]
        asked = Request("GET", "/shop/c", Headers([("Host", "127.0.0.1")]), Bytes(b""))
        assert not isinstance(identify(own, read(own, asked)), SharedKeyClaim)
        with pytest.raises(StorageError) as refusal:
            identify(console, read(console, asked))
        assert refusal.value.row == NO_AUTHENTICATION_INFORMATION
