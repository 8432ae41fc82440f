"""SharedKey and SharedKeyLite: rules B-SKY-*."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from email.utils import formatdate

import pytest

from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.client import PUT_BLOB, VERSION, Client, Credential, Fields
from tests.conformance.running import Running
from tests.conformance.signing import authorization, string_to_sign

OTHER_KEY = base64.b64encode(b"another key of the account").decode()
CONTAINER_LIST = "?restype=container&comp=list"


@pytest.fixture
def own(account: Client) -> Client:
    """A client of an account with a container `con` that has a blob `b`."""
    expect(account.put("/con?restype=container"), 201)
    expect(account.put("/con/b", PUT_BLOB, b"text"), 201)
    return account


def detail(answer: Answer) -> str:
    """AuthenticationErrorDetail of a 403."""
    return expect(answer, 403, "AuthenticationFailed").error["AuthenticationErrorDetail"]


def signed(client: Client, target: str, headers: dict[str, str], **how: object) -> Answer:
    """A GET whose Authorization is made from exactly these headers."""
    full = client.prefix + target
    scheme = str(how.get("scheme", "SharedKey"))
    value = authorization(
        scheme,
        client.account,
        client.credential.key,
        "GET",
        full,
        list(headers.items()),
        bool(how.get("ignore_hyphens", False)),
    )
    absent: dict[str, str | None] = {"x-ms-version": None, "x-ms-date": None}
    return client.get(target, {**absent, **headers, "Authorization": value}, auth=None)


def dated(seconds: float = 0) -> dict[str, str]:
    """The date and version of a signed request."""
    return {"x-ms-date": formatdate(time.time() + seconds, usegmt=True), "x-ms-version": VERSION}


@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
def test_both_schemes(own: Client, scheme: str) -> None:
    """B-SKY-01."""
    assert expect(own.get("/con/b", auth=scheme), 200).body == b"text"
    expect(own.put("/con/b2", {**PUT_BLOB, "Content-Type": "text/a"}, b"2", auth=scheme), 201)
    expect(own.get(f"/con{CONTAINER_LIST}&prefix=a%20b&include=metadata", auth=scheme), 200)
    expect(own.delete("/con/b2", auth=scheme), 202)


@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
def test_keys_are_rotated_while_serving(server: Running, own: Client, scheme: str) -> None:
    """B-SKY-01: a key works from the moment it is there to the moment it is removed."""
    rotated = Client(own.port, Credential(own.account, OTHER_KEY), scheme)
    expect(rotated.get("/con/b"), 403, "AuthenticationFailed")
    server.set_keys(own.account, OTHER_KEY, own.credential.key)
    expect(rotated.get("/con/b"), 200)
    expect(own.get("/con/b", auth=scheme), 200)
    server.set_keys(own.account, OTHER_KEY)
    expect(rotated.get("/con/b"), 200)
    expect(own.get("/con/b", auth=scheme), 403, "AuthenticationFailed")
    rotated.close()


@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
def test_a_wrong_signature(own: Client, scheme: str) -> None:
    """B-SKY-02: the detail has what was received and what was signed, and no secret."""
    headers = [*dated().items(), ("Range", "bytes=0-1"), ("Content-Type", "text/x")]
    right = string_to_sign(scheme, own.account, "GET", own.prefix + "/con/b", headers, False)
    wrong = base64.b64encode(b"w" * 32).decode()
    value = f"{scheme} {own.account}:{wrong}"
    answer = own.get("/con/b", [*headers, ("Authorization", value)], auth=None)
    text = detail(answer)
    assert wrong in text and right in text
    key = base64.b64decode(own.credential.key)
    mac = hmac.new(key, right.encode(), hashlib.sha256).digest()
    for secret in (own.credential.key, base64.b64encode(mac).decode(), key.decode()):
        assert secret not in answer.body.decode()


def test_what_is_signed_cannot_be_changed(own: Client) -> None:
    """B-SKY-02."""
    expect(signed(own, "/con/b", dated()), 200)
    value = authorization(
        "SharedKey",
        own.account,
        own.credential.key,
        "GET",
        own.prefix + "/con/b",
        list(dated().items()),
    )
    given: Fields = {**dated(), "Authorization": value}
    expect(own.get("/con/b", given, auth=None), 200)
    detail(own.get("/con/b2", given, auth=None))
    detail(own.get("/con/b?timeout=1", given, auth=None))
    detail(own.delete("/con/b", given, auth=None))
    detail(own.get("/con/b", {**dict(given), "x-ms-meta-a": "1"}, auth=None))
    detail(own.get("/con/b", {**dict(given), "Range": "bytes=0-1"}, auth=None))


def test_another_account(server: Running, client: Client, own: Client) -> None:
    """B-SKY-03."""
    stranger = Client(server.port, Credential("nobodyknows", own.credential.key))
    assert "nobodyknows" in detail(stranger.get("/con/b"))
    beside = client.another(prefix=own.prefix)
    expect(beside.get("/con/b"), 403, "AuthenticationFailed")
    expect(beside.put("/con/b", PUT_BLOB, b"x"), 403, "AuthenticationFailed")
    assert expect(own.get("/con/b"), 200).body == b"text"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "SharedKey",
        "SharedKey nocolon",
        "SharedKey :AAAA",
        "SharedKey devstoreaccount1:",
        "Basic YTpi",
        "nonsense",
    ],
)
def test_an_authorization_that_cannot_be_read(client: Client, container: str, value: str) -> None:
    """B-SKY-04."""
    headers = {**dated(), "Authorization": value}
    answer = client.get(f"/{container}?restype=container", headers, auth=None)
    expect(answer, 400, "InvalidAuthenticationInfo")


def test_a_bearer_token(client: Client, container: str) -> None:
    """B-SKY-04."""
    headers = {**dated(), "Authorization": "Bearer eyJhbGciOiJub25lIn0.e30."}
    answer = client.get(f"/{container}?restype=container", headers, auth=None)
    assert "token" in detail(answer).lower()
    assert "eyJ" not in answer.body.decode()


@pytest.mark.parametrize("name", ["x-ms-date", "Date"])
@pytest.mark.parametrize(
    ("seconds", "served"), [(-840, True), (840, True), (-930, False), (930, False)]
)
def test_the_age_of_a_request(own: Client, name: str, seconds: float, served: bool) -> None:
    """B-SKY-05: fifteen minutes, either way."""
    date = formatdate(time.time() + seconds, usegmt=True)
    answer = signed(own, "/con/b", {name: date, "x-ms-version": VERSION})
    expect(answer, *((200,) if served else (403, "AuthenticationFailed")))


def test_x_ms_date_decides_over_date(own: Client) -> None:
    """B-SKY-05."""
    old = formatdate(time.time() - 86_400, usegmt=True)
    expect(signed(own, "/con/b", {**dated(), "Date": old}), 200)
    expect(signed(own, "/con/b", {**dated(-86_400), "Date": formatdate(usegmt=True)}), 403, AUTH)


AUTH = "AuthenticationFailed"


@pytest.mark.parametrize("date", [None, "now", "2026-01-02T03:04:05Z", ""])
def test_a_date_that_cannot_be_read(own: Client, date: str | None) -> None:
    """B-SKY-05."""
    headers = {"x-ms-version": VERSION} | ({} if date is None else {"x-ms-date": date})
    expect(signed(own, "/con/b", headers), 403, AUTH)


@pytest.mark.parametrize("version", ["2014-02-14", "2015-02-21", "2016-05-31"])
def test_what_an_empty_body_signs(own: Client, version: str) -> None:
    """B-SKY-06: a length of 0, and an empty header, by version."""
    headers = {"x-ms-version": version, "x-ms-meta-empty": "", "x-ms-meta-a": "1"}
    expect(own.put("/con?restype=container&comp=metadata", headers), 200)
    # Signed by the rule of the other versions it does not verify.
    wrong = "2016-05-31" if version != "2016-05-31" else "2014-02-14"
    target = own.prefix + "/con?restype=container&comp=metadata"
    fields = own.fields("PUT", target, headers, b"", None) + list(dated().items())[:1]
    text = string_to_sign(
        "SharedKey", own.account, "PUT", target, _with_version(fields, wrong), False
    ).replace(f"x-ms-version:{wrong}", f"x-ms-version:{version}")
    key = base64.b64decode(own.credential.key)
    mac = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
    answer = own.put(
        "/con?restype=container&comp=metadata",
        [*fields, ("Authorization", f"SharedKey {own.account}:{mac}")],
        auth=None,
    )
    assert answer.status == 403


def _with_version(fields: list[tuple[str, str]], version: str) -> list[tuple[str, str]]:
    return [(n, version if n == "x-ms-version" else v) for n, v in fields]


@pytest.mark.parametrize("ignore_hyphens", [True, False])
def test_both_orders_of_headers(own: Client, ignore_hyphens: bool) -> None:
    """B-SKY-07: the names below come in different orders."""
    headers = {**dated(), "x-ms-a-b": "1", "x-ms-aa": "2", "x-ms-a1": "3"}
    orders = [
        string_to_sign("SharedKey", own.account, "GET", "/", list(headers.items()), one)
        for one in (True, False)
    ]
    assert orders[0] != orders[1]
    expect(signed(own, "/con/b", headers, ignore_hyphens=ignore_hyphens), 200)


def test_the_resource_is_the_path_as_sent(own: Client) -> None:
    """B-SKY-08."""
    for name in ("a%20b", "%C3%A9", "%c3%a9", "a%2Fb", "a~b", "%7E", "x;y=1"):
        expect(own.put(f"/con/{name}", PUT_BLOB, b"x"), 201)
        expect(own.get(f"/con/{name}"), 200)
        expect(own.get(f"/con/{name}", auth="SharedKeyLite"), 200)


def test_host_style_signs_the_path_once(server: Running, own: Client) -> None:
    """B-SKY-08: and `-secondary` with the primary's name, in the path too."""
    hosted = own.another(prefix="")
    for label in (own.account, f"{own.account}-secondary"):
        host = {"Host": f"{label}.blob.localhost:{server.port}"}
        assert expect(hosted.get("/con/b", host), 200).body == b"text"
    # In the path the client signs the URL that it sends.
    assert expect(own.another(prefix=f"{own.prefix}-secondary").get("/con/b"), 200).body == b"text"


def test_parameters_are_lowered_decoded_sorted_and_joined(own: Client) -> None:
    """B-SKY-08."""
    expect(own.get("/con?RESTYPE=container&Comp=list&prefix=%41%20b&zz=2&zz=1&aa"), 200)
    expect(own.get("/con?comp=list&restype=container&zz=2&aa=&zz=1,5", auth="SharedKeyLite"), 200)


def test_lite_signs_comp_alone(own: Client) -> None:
    """B-SKY-08: another parameter may be changed under a Lite signature, `comp` may not."""
    headers = dated()
    target = "/con?restype=container&comp=list"
    value = authorization(
        "SharedKeyLite",
        own.account,
        own.credential.key,
        "GET",
        own.prefix + target,
        list(headers.items()),
    )
    given = {**headers, "Authorization": value}
    expect(own.get(target + "&maxresults=1", given, auth=None), 200)
    expect(own.get("/con?restype=container&comp=acl", given, auth=None), 403, AUTH)


@pytest.mark.parametrize("name", ["x-ms-meta-a", "Content-Type", "x-ms-date", "Range"])
def test_a_signed_header_twice(own: Client, name: str) -> None:
    """B-SKY-09."""
    value = dated()["x-ms-date"] if name == "x-ms-date" else "bytes=0-1"
    answer = own.get("/con/b", [(name, value), (name, value)])
    expect_names(answer, 400, "InvalidHeaderValue", name)


def test_without_a_version(own: Client) -> None:
    """B-SKY-10: 2021-12-02, or DefaultServiceVersion."""
    unversioned: Fields = {"x-ms-version": None}
    assert expect(own.get("/con/b", unversioned), 200)["x-ms-version"] == "2021-12-02"
    body = (
        b"<StorageServiceProperties><DefaultServiceVersion>2019-07-07</DefaultServiceVersion>"
        b"</StorageServiceProperties>"
    )
    expect(own.put("/?restype=service&comp=properties", (), body), 202)
    assert expect(own.get("/con/b", unversioned), 200)["x-ms-version"] == "2019-07-07"
    expect(own.get("/con/b", {"x-ms-version": "2020-10-02"}), 200)


@pytest.mark.parametrize("version", ["2009-09-19", "2013-08-15", "2021-12-02", "2099-12-31"])
def test_versions_that_are_echoed(own: Client, version: str) -> None:
    """B-SKY-10."""
    assert expect(own.head("/con/b", {"x-ms-version": version}), 200)["x-ms-version"] == version


@pytest.mark.parametrize("version", ["2009-09-18", "latest", "2021-12-2", "2021/12/02", ""])
def test_versions_that_are_none(own: Client, version: str) -> None:
    """B-SKY-10."""
    answer = own.get("/con/b", {"x-ms-version": version})
    if version < "2017-07-29":
        # The version is too old for an error header.
        assert (answer.status, answer.error["Code"]) == (400, "InvalidHeaderValue")
    else:
        expect(answer, 400, "InvalidHeaderValue")
    assert answer.error["HeaderName"].lower() == "x-ms-version"
