"""Which requests the console's port answers: the table of rules, walked row by row."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from strongroom.servers.console.origin import RULES, Area, ConsoleOrigin, area_of
from strongroom.wire.core.http import Headers, Request
from tests.app.bodies import Bytes

HOST = "127.0.0.1:10010"
OWN = ConsoleOrigin(frozenset({"store.example.net"}).__contains__)
PROXIED = ConsoleOrigin(frozenset[str]().__contains__, "https://console.example.net")
DATA, PAGE, ASSET = "/blob/shop/c/b", "/overview", "/assets/console.js"
API = "/.strongroom/console/v1/who"
LINK = (
    ("Sec-Fetch-Site", "cross-site"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Dest", "document"),
)
Fields = Sequence[tuple[str, str]]


def rule_of(
    target: str,
    fields: Fields = (),
    *,
    method: str = "GET",
    host: str | None = HOST,
    tls: bool = False,
    origin: ConsoleOrigin = OWN,
) -> str | None:
    """The name of the rule that a request breaks; None if it is answered."""
    sent = [*([("Host", host)] if host is not None else []), *fields]
    request = Request(method, target, Headers(sent), Bytes(b""), tls=tls)
    refusal = origin.refusal(request)
    if refusal is None:
        return None
    (rule,) = [one for one in RULES if one.name == refusal.rule]
    assert refusal.status == rule.status
    assert refusal.text.endswith(".")
    return refusal.rule


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("/", Area.PAGE),
        ("/overview", Area.PAGE),
        ("/blobs/shop", Area.PAGE),
        ("/assets/console.js", Area.ASSET),
        ("/blob", Area.DATA),
        ("/blob/", Area.DATA),
        ("/queue/shop/q", Area.DATA),
        ("/table/shop/t", Area.DATA),
        ("/file/shop/s", Area.DATA),
        ("/%62lob/shop", Area.PAGE),
        ("/Blob/shop", Area.PAGE),
        ("//blob/shop", Area.PAGE),
        ("/.strongroom/console/v1/who", Area.API),
        ("/.strongroom/health", Area.OWN),
        ("*", Area.PAGE),
    ],
)
def test_a_path_is_of_one_area(path: str, area: Area) -> None:
    assert area_of(path) is area


@pytest.mark.parametrize("target", [PAGE, ASSET, DATA, API, "/.strongroom/health"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_a_client_that_is_no_browser_passes(target: str, method: str) -> None:
    assert rule_of(target, method=method) is None


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:80",
        "192.0.2.7:49153",
        "[::1]:10010",
        "localhost",
        "LOCALHOST:1",
        "localhost.:10010",
        "store.example.net:443",
        "Store.Example.Net",
    ],
)
def test_addresses_localhost_and_own_names_are_hosts_under_any_port(host: str) -> None:
    assert rule_of(PAGE, host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "0x7f.1",
        "evil.localhost",
        "a.store.example.net",
        "127.0.0.1:10010/evil",
        "[::1",
        "::1",
        "user@127.0.0.1",
        "127.0.0.1;script-src *",
        "127.0.0.1 evil",
        "console.example.net",
    ],
)
@pytest.mark.parametrize("target", [PAGE, DATA, API, "/.strongroom/health"])
def test_another_host_is_refused(host: str | None, target: str) -> None:
    assert rule_of(target, host=host) == "host"


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize("target", [PAGE, ASSET, DATA, API, "/.strongroom/clock"])
def test_the_pages_own_origin_passes_and_others_do_not(method: str, target: str) -> None:
    assert rule_of(target, [("Origin", f"http://{HOST}")], method=method) is None
    for origin in (
        "http://127.0.0.1:10000",
        "http://127.0.0.1",
        "http://localhost:10010",
        "https://127.0.0.1:10010",
        "null",
        "",
        "http://evil.example",
        "http://127.0.0.1:10010.evil.example",
        "http://127.0.0.1:10010/",
        "file://",
    ):
        assert rule_of(target, [("Origin", origin)], method=method) == "origin", origin


def test_an_origin_counts_with_the_scheme_and_the_usual_port() -> None:
    secure = [("Origin", f"https://{HOST}")]
    assert rule_of(DATA, secure, tls=True) is None
    assert rule_of(DATA, [("Origin", f"http://{HOST}")], tls=True) == "origin"
    assert rule_of(DATA, [("Origin", "http://localhost")], host="localhost:80") is None
    assert rule_of(DATA, [("Origin", "https://localhost")], host="localhost:443", tls=True) is None
    assert rule_of(DATA, [("Origin", "http://localhost")], host="localhost:443") == "origin"


def test_behind_a_proxy_there_is_one_origin() -> None:
    named = "console.example.net"
    given = [("Origin", "https://console.example.net")]
    for host in (named, HOST):
        assert rule_of(DATA, given, host=host, method="PUT", origin=PROXIED) is None
        assert rule_of(DATA, [("Origin", f"http://{host}")], host=host, origin=PROXIED) == "origin"
    assert rule_of(PAGE, host="other.example.net", origin=PROXIED) == "host"


@pytest.mark.parametrize("target", [PAGE, DATA, API])
def test_no_preflight_is_granted(target: str) -> None:
    asked = [("Origin", f"http://{HOST}"), ("Access-Control-Request-Method", "PUT")]
    assert rule_of(target, asked, method="OPTIONS") == "preflight"
    assert rule_of(target, method="OPTIONS") == "preflight"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "CROSS-SITE", "", "unknown"])
@pytest.mark.parametrize("target", [PAGE, ASSET, DATA, API, "/.strongroom/health"])
def test_pages_of_other_sites_are_refused(site: str, target: str) -> None:
    assert rule_of(target, [("Sec-Fetch-Site", site)]) == "site"
    for own in ("same-origin", "none"):
        assert rule_of(target, [("Sec-Fetch-Site", own)]) is None


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_leads_to_a_page_and_to_nothing_else(site: str) -> None:
    link = [("Sec-Fetch-Site", site), *LINK[1:]]
    assert rule_of("/", link) is None
    assert rule_of(PAGE, link) is None
    for target in (ASSET, DATA, "/queue/shop/q", API, "/.strongroom/metrics"):
        assert rule_of(target, link) == "site"
    assert rule_of(PAGE, link, method="POST") == "site"
    assert rule_of(PAGE, link, method="HEAD") == "site"
    for field, other in (("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "iframe")):
        changed = [pair for pair in link if pair[0] != field]
        assert rule_of(PAGE, [*changed, (field, other)]) == "site"
        assert rule_of(PAGE, changed) == "site"


@pytest.mark.parametrize("target", [PAGE, ASSET, DATA, API])
def test_nothing_is_a_service_worker(target: str) -> None:
    assert rule_of(target, [("Service-Worker", "script")]) == "service worker"


DANGEROUS = (
    "script",
    "style",
    "worker",
    "sharedworker",
    "serviceworker",
    "audioworklet",
    "paintworklet",
    "manifest",
    "frame",
    "iframe",
    "object",
    "embed",
    "fencedframe",
    "xslt",
    "report",
    "json",
    "IFRAME",
    "",
    "unknown",
)


@pytest.mark.parametrize("destination", DANGEROUS)
def test_data_is_never_what_runs_or_is_framed(destination: str) -> None:
    fields = [("Sec-Fetch-Dest", destination), ("Sec-Fetch-Site", "same-origin")]
    for service in ("blob", "queue", "table", "file"):
        assert rule_of(f"/{service}/shop/c", fields) == "destination"
        assert rule_of(f"/{service}/shop/c?sig=x", fields, method="PUT") == "destination"
    if destination not in ("script", "style"):
        assert rule_of(ASSET, fields) == "destination"
    assert rule_of(PAGE, fields) == "destination"
    assert rule_of(API, fields) == "destination"


@pytest.mark.parametrize("destination", ["document", "empty", "image", "audio", "video"])
def test_data_may_be_opened_and_shown(destination: str) -> None:
    assert rule_of(DATA, [("Sec-Fetch-Dest", destination)]) is None


@pytest.mark.parametrize(
    "name",
    ["Host", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Service-Worker"],
)
def test_a_judged_header_has_one_value(name: str) -> None:
    twice = [(name, HOST), (name.lower(), HOST)]
    assert rule_of(PAGE, twice, host=None if name == "Host" else HOST) == "one value"


def test_every_rule_refuses_something() -> None:
    examples: dict[str, str | None] = {
        "one value": rule_of(PAGE, [("Origin", "a"), ("Origin", "a")]),
        "host": rule_of(PAGE, host="evil.example"),
        "origin": rule_of(PAGE, [("Origin", "null")]),
        "preflight": rule_of(PAGE, method="OPTIONS"),
        "site": rule_of(DATA, LINK),
        "service worker": rule_of(PAGE, [("Service-Worker", "script")]),
        "destination": rule_of(DATA, [("Sec-Fetch-Dest", "iframe")]),
    }
    assert [*examples] == [rule.name for rule in RULES]
    assert all(name == refused for name, refused in examples.items())
