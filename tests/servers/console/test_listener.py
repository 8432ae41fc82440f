"""The console's port as a client sees it: every answer with its headers, data refused to nobody."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.blob import BlobSasPermissions, generate_blob_sas

from strongroom.auth.accounts import Account, development_account
from strongroom.testing.ports import HOST
from tests.servers.console.served import API, SHOP, Answer, Port, ServedConsole, built, serving

DATA_POLICY = "sandbox; default-src 'none'"
HTML = b"<script>document.title='ran'</script>"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    folder = built(tmp_path_factory.mktemp("built"))
    with serving(folder=folder) as served:
        blob = served.own("blob")
        assert (
            blob.signed(
                "/shop/public?restype=container",
                method="PUT",
                body=b"",
                fields={"x-ms-blob-public-access": "blob"},
            ).status
            == 201
        )
        put = blob.signed(
            "/shop/public/page.html",
            method="PUT",
            body=HTML,
            fields={
                "x-ms-blob-type": "BlockBlob",
                "x-ms-blob-content-type": "text/html",
                "x-ms-blob-content-disposition": "inline",
                "x-ms-blob-cache-control": "public, max-age=31536000",
            },
        )
        assert put.status == 201
        yield served


def check_data_headers(answer: Answer, *, opened: bool) -> None:
    headers = answer.headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == DATA_POLICY
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert (headers.get("content-disposition") == "attachment") is opened
    assert not [name for name in headers if name.startswith("access-control-")]


@pytest.mark.parametrize("destination", ["document", "image", "empty", None])
def test_a_blob_is_data_and_never_a_page(console: ServedConsole, destination: str | None) -> None:
    fetched = {} if destination is None else {"Sec-Fetch-Dest": destination}
    answer = console.signed("/blob/shop/public/page.html", fields=fetched)
    assert (answer.status, answer.body) == (200, HTML)
    assert answer.headers["content-type"] == "text/html"
    opened = destination in ("document", "image")
    check_data_headers(answer, opened=opened)
    if not opened:
        assert answer.headers["content-disposition"] == "inline"
    assert answer.headers["cache-control"] == "no-store"


def test_head_tells_what_is_stored(console: ServedConsole) -> None:
    answer = console.signed("/blob/shop/public/page.html", method="HEAD")
    assert answer.headers["cache-control"] == "public, max-age=31536000"
    check_data_headers(answer, opened=False)


def test_every_refusal_of_data_has_the_headers(console: ServedConsole) -> None:
    opened = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
    answers = [
        console.signed("/blob/shop/public/missing", fields=opened),
        console.signed("/blob/shop/public/page.html", Account("shop", (b"wrong",)), fields=opened),
        console.signed("/queue/shop/none/messages", fields=opened),
        console.signed("/table/shop/none", fields=opened),
        console.signed("/file/shop/none/f", fields=opened),
        console.ask("/blob/shop/public/page.html", fields=opened),
        console.ask("/blob", fields=opened),
        console.ask("/blob/shop/public/page.html?sig=x&sv=2020-02-10&sp=r", fields=opened),
        console.ask("/table/shop/t", "PATCH", fields=opened),
        console.ask("/blob/shop/c", "BREW", fields=opened),
    ]
    assert [one.status for one in answers] == [404, 403, 404, 403, 404, 401, 401, 403, 401, 400]
    for answer in answers:
        check_data_headers(answer, opened=True)


def test_the_overrides_of_a_sas_do_not_win(console: ServedConsole) -> None:

    token = generate_blob_sas(
        "shop",
        "public",
        "page.html",
        account_key=base64.b64encode(SHOP.keys[0]).decode(),
        permission=BlobSasPermissions(read=True),
        expiry="2099-01-01T00:00:00Z",
        content_disposition="inline",
        content_type="image/svg+xml",
    )
    answer = console.ask(
        f"/blob/shop/public/page.html?{token}", fields={"Sec-Fetch-Dest": "document"}
    )
    assert (answer.status, answer.headers["content-type"]) == (200, "image/svg+xml")
    check_data_headers(answer, opened=True)


def test_what_is_public_is_so_on_the_services_port_only(console: ServedConsole) -> None:
    assert console.own("blob").ask("/shop/public/page.html").body == HTML
    known = console.ask("/blob/shop/public/page.html")
    unknown = console.ask("/blob/nobody/none/missing")
    assert known.status == unknown.status == 401
    assert known.headers["x-ms-error-code"] == "NoAuthenticationInformation"
    assert len(known.body) == len(unknown.body)


@pytest.mark.parametrize("destination", ["script", "style", "worker", "iframe", "object", "embed"])
def test_data_is_not_answered_to_what_would_run_it(
    console: ServedConsole, destination: str
) -> None:
    answer = console.signed(
        "/blob/shop/public/page.html",
        fields={"Sec-Fetch-Dest": destination, "Sec-Fetch-Site": "same-origin"},
    )
    assert answer.status == 403
    assert HTML not in answer.body
    check_data_headers(answer, opened=True)


def test_rules_of_cors_have_no_effect(console: ServedConsole) -> None:
    rules = (
        b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>"
        b"<AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>*</AllowedHeaders>"
        b"<ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds>"
        b"</CorsRule></Cors></StorageServiceProperties>"
    )
    blob = console.own("blob")
    target = "/shop?restype=service&comp=properties"
    assert blob.signed(target, method="PUT", body=rules).status == 202
    page = "http://page.example"
    preflight = {"Origin": page, "Access-Control-Request-Method": "GET"}
    assert blob.ask("/shop/public/page.html", "OPTIONS", fields=preflight).status == 200
    refused = console.ask("/blob/shop/public/page.html", "OPTIONS", fields=preflight)
    assert refused.status == 403
    check_data_headers(refused, opened=False)
    own = console.signed(
        "/blob/shop/public/page.html", fields={"Origin": f"http://{console.authority}"}
    )
    assert own.status == 200
    check_data_headers(own, opened=False)


def test_the_page_names_its_own_files(console: ServedConsole) -> None:
    for path in ("/", "/overview", "/blobs/shop/a%2Fb", "/coordination", "/access"):
        answer = console.ask(path)
        assert (answer.status, answer.body[:15]) == (200, b"<!DOCTYPE html>")
        policy = answer.headers["content-security-policy"]
        origin = f"http://{console.authority}"
        assert f"script-src {origin}/assets/console.js; " in policy
        assert f"style-src {origin}/assets/console.css; " in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "script-src 'self'" not in policy
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
    named = console.ask("/", fields={"Host": "localhost:9999"}).headers["content-security-policy"]
    assert "script-src http://localhost:9999/assets/console.js;" in named


def test_the_pages_files_have_their_types_and_nothing_else_is_served(
    console: ServedConsole,
) -> None:
    types = {
        "console.js": "text/javascript",
        "console.css": "text/css",
        "icon.svg": "image/svg+xml",
    }
    for name, media_type in types.items():
        answer = console.ask(f"/assets/{name}")
        assert answer.status == 200
        assert answer.headers["content-type"].startswith(media_type)
        assert answer.headers["x-content-type-options"] == "nosniff"
    for path in (
        "/sources.json",
        "/assets/../sources.json",
        "/assets/%2e%2e/sources.json",
        "/assets/",
        "/index.html",
        "/nothing",
        "/assets/console.js%00",
    ):
        assert console.ask(path).status == 404, path
    for method in ("PUT", "POST", "DELETE"):
        assert console.ask("/overview", method).status == 405


def test_a_bare_ipv6_address_gets_no_scripts(console: ServedConsole) -> None:
    answer = console.ask("/", fields={"Host": f"[::1]:{console.port}"})
    assert answer.status == 200
    assert f"http://localhost:{console.port}/".encode() in answer.body
    assert answer.headers["content-security-policy"] == DATA_POLICY


def test_a_page_that_is_not_built_says_how(tmp_path: Path) -> None:
    with serving(folder=tmp_path) as served:
        answer = served.ask("/overview")
        assert answer.status == 200
        assert b"make console" in answer.body
        assert "script-src 'none'" in answer.headers["content-security-policy"]
        assert served.ask("/assets/console.js").status == 404


def test_what_cannot_be_read_is_refused_with_the_headers(console: ServedConsole) -> None:
    for sent in (
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: " + b"x" * 200_000 + b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n",
    ):
        with socket.create_connection((HOST, console.port), timeout=30) as connection:
            connection.sendall(sent)
            head = connection.recv(65536).lower()
        assert head.startswith(b"http/1.1 4")
        assert b"x-content-type-options: nosniff" in head
        assert DATA_POLICY.encode() in head
        assert b"cross-origin-resource-policy: same-origin" in head


def test_the_own_endpoints_are_there_under_the_same_rules(console: ServedConsole) -> None:
    assert console.ask("/.strongroom/health").json()["status"] == "ready"
    assert (
        console.ask("/.strongroom/metrics", fields={"Origin": "http://127.0.0.1:1"}).status == 403
    )
    assert console.ask("/.strongroom/health", fields={"Host": "balancer.example"}).status == 421


def test_a_foreign_page_is_refused_before_anything_else(console: ServedConsole) -> None:
    for target in ("/", "/blob/shop/public/page.html", f"{API}session"):
        for answer in (
            console.signed(target, fields={"Origin": f"http://{HOST}:{console.ports['blob']}"}),
            console.signed(target, fields={"Host": "evil.example"}),
        ):
            assert answer.status in (403, 421)
            assert answer.headers["x-content-type-options"] == "nosniff"


def test_data_is_written_and_read_through_the_console(console: ServedConsole) -> None:
    origin = {"Origin": f"http://{console.authority}", "Sec-Fetch-Site": "same-origin"}
    made = console.signed("/queue/shop/jobs", method="PUT", body=b"", fields=origin)
    assert made.status == 201
    listed = console.signed("/queue/shop?comp=list", fields=origin)
    assert b"<Name>jobs</Name>" in listed.body
    assert console.own("queue").signed("/shop?comp=list").status == 200


@pytest.mark.parametrize("fault", ["busy", "error", "lost-reply"])
def test_an_ordered_fault_spares_the_read_api_and_keeps_the_headers_of_data(fault: str) -> None:
    with serving(SHOP, test_clock=True) as served:
        plan = {"rules": [{"operation": "*", "resource": "*", "fault": fault}]}
        ordered = served.ask("/.strongroom/faults", "PUT", json.dumps(plan).encode())
        assert ordered.status == 200
        for name in ("who", "overview", "requests", "access"):
            assert served.api(name).status == 200
        hit = served.signed("/blob/shop?comp=list", fields={"Sec-Fetch-Dest": "document"})
        assert hit.status in (500, 503)
        check_data_headers(hit, opened=True)


def test_other_ports_have_no_console(console: ServedConsole) -> None:
    blob: Port = console.own("blob")
    assert blob.ask(f"{API}session").status == 404
    assert "content-security-policy" not in blob.signed("/shop?comp=list").headers


def test_the_development_account_is_offered_on_loopback() -> None:
    with serving(development_account()) as served:
        offered = served.ask(f"{API}session").json()
        assert offered["development_account"]["name"] == "devstoreaccount1"
        assert [one["name"] for one in offered["services"]] == ["blob", "queue", "table", "file"]
        assert offered["services"][0]["url"] == f"http://127.0.0.1:{served.ports['blob']}"
    with serving(Account("devstoreaccount1", (b"own",))) as served:
        assert served.ask(f"{API}session").json()["development_account"] is None
