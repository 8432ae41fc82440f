"""The common rules of service and account SAS: rules B-SAS-*."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from tests.conformance.answer import Answer, expect
from tests.conformance.blobs import block_list, block_target
from tests.conformance.client import PUT_BLOB, VERSION, Client, Credential
from tests.conformance.running import Running
from tests.conformance.sas import account_sas, at, service_sas

OTHER_KEY = base64.b64encode(b"another key of the account").decode()
AUTH = "AuthenticationFailed"
Make = Callable[..., str]


@pytest.fixture(params=["service", "account"])
def make(request: pytest.FixtureRequest, client: Client, container: str) -> Make:
    """Makes tokens that allow to read and write the blobs of `container`."""
    expect(client.put(f"/{container}/b", PUT_BLOB, b"text"), 201)

    def service(sp: str = "rw", **fields: str) -> str:
        # Keywords of a table.
        return service_sas(client.credential, container, sp=sp, **fields)  # type: ignore[arg-type]

    def account(sp: str = "rw", **fields: str) -> str:
        # Keywords of a table.
        return account_sas(client.credential, sp=sp, **fields)  # type: ignore[arg-type]

    return service if request.param == "service" else account


def get(client: Client, container: str, token: str) -> Answer:
    """Get Blob by a token."""
    return client.get(f"/{container}/b?{token}", auth=None)


def detail(answer: Answer, code: str = AUTH) -> str:
    """AuthenticationErrorDetail of a 403."""
    return expect(answer, 403, code).error["AuthenticationErrorDetail"]


def test_time_of_a_token(client: Client, container: str, make: Make) -> None:
    """B-SAS-01."""
    expect(get(client, container, make(st=at(-60), se=at(60))), 200)
    expired = at(-60)
    assert expired[:-1] in detail(get(client, container, make(se=expired)))
    begins = at(3600)
    assert begins[:-1] in detail(get(client, container, make(st=begins, se=at(7200))))


def test_a_wrong_signature(client: Client, container: str, make: Make) -> None:
    """B-SAS-02."""
    until = at(3600)
    token = make(se=until, unsigned={"sig": base64.b64encode(b"w" * 32).decode()})
    answer = get(client, container, token)
    text = detail(answer)
    assert until in text and "rw" in text
    assert client.credential.key not in answer.body.decode()
    # Signed parameters cannot be changed.
    detail(get(client, container, make(sp="w", unsigned={"sp": "rw"})))
    detail(get(client, container, make(se=until, unsigned={"se": at(7200)})))


def test_either_key_verifies(server: Running, account: Client) -> None:
    """B-SAS-02."""
    expect(account.put("/con?restype=container"), 201)
    expect(account.put("/con/b", PUT_BLOB, b"text"), 201)
    server.set_keys(account.account, account.credential.key, OTHER_KEY)
    for key in (account.credential.key, OTHER_KEY):
        credential = Credential(account.account, key)
        for token in (service_sas(credential, "con"), account_sas(credential)):
            expect(account.get(f"/con/b?{token}", auth=None), 200)
    server.set_keys(account.account, account.credential.key)
    gone = Credential(account.account, OTHER_KEY)
    detail(account.get(f"/con/b?{service_sas(gone, 'con')}", auth=None))


@pytest.mark.parametrize(
    "until",
    ["2099-12-31", "2099-12-31T23:59Z", "2099-12-31T23:59:59Z", "2099-12-31T23:59:59.1234567Z"],
)
def test_forms_of_a_time(client: Client, container: str, make: Make, until: str) -> None:
    """B-SAS-03."""
    expect(get(client, container, make(se=until)), 200)
    expect(get(client, container, make(st="2020-01-02" + until[10:], se=until)), 200)
    detail(get(client, container, make(st=until, se=until)))


@pytest.mark.parametrize(
    "until", ["", "tomorrow", "2099-13-01", "2099-12-31 23:59:59", "4102444800"]
)
def test_a_time_that_is_none(client: Client, container: str, make: Make, until: str) -> None:
    """B-SAS-03."""
    said = f"se='{until}': it must be a UTC time" if until else "has no expiry"
    assert said in detail(get(client, container, make(se=until)))
    if until:
        said = f"st='{until}': it must be a UTC time"
        assert said in detail(get(client, container, make(st=until)))


@pytest.mark.parametrize(
    ("sip", "served"),
    [
        ("127.0.0.1", True),
        ("127.0.0.0-127.0.0.9", True),
        ("127.0.0.2", False),
        ("10.0.0.0-10.0.0.255", False),
        ("127.0.0.2-127.0.0.9", False),
    ],
)
def test_the_callers_address(
    client: Client, container: str, make: Make, sip: str, served: bool
) -> None:
    """B-SAS-04."""
    answer = get(client, container, make(sip=sip))
    expect(answer, *((200,) if served else (403, "AuthorizationSourceIPMismatch")))


def test_the_protocol(client: Client, container: str, make: Make) -> None:
    """B-SAS-05: the tests speak plain HTTP."""
    for both in ("https,http", "http,https"):
        expect(get(client, container, make(spr=both)), 200)
    expect(get(client, container, make(spr="https")), 403, "AuthorizationProtocolMismatch")
    for word in ("http", "https, http", "ftp", "HTTPS"):
        detail(get(client, container, make(spr=word)))


def test_letters(client: Client, container: str, make: Make) -> None:
    """B-SAS-06."""
    expect(get(client, container, make(sp="w")), 403, "AuthorizationPermissionMismatch")
    writing = f"/{container}/b?{make(sp='r')}"
    refused = client.put(writing, PUT_BLOB, b"x", auth=None)
    expect(refused, 403, "AuthorizationPermissionMismatch")
    assert expect(get(client, container, make(sp="r")), 200).body == b"text"
    for letters in ("rr", "rq", "R", "r,w", "rwr"):
        detail(get(client, container, make(sp=letters)))


def test_the_version_that_is_served(client: Client, container: str, make: Make) -> None:
    """B-SAS-07: the request also has no date header."""
    token = make(sv="2019-02-02")
    target = f"/{container}/b?{token}"
    bare: dict[str, str | None] = {"x-ms-version": None}
    assert expect(client.get(target, bare, auth=None), 200)["x-ms-version"] == "2019-02-02"
    by_query = client.get(f"{target}&api-version=2020-10-02", bare, auth=None)
    assert expect(by_query, 200)["x-ms-version"] == "2020-10-02"
    by_header = client.get(f"{target}&api-version=2020-10-02", auth=None)
    assert expect(by_header, 200)["x-ms-version"] == VERSION


@pytest.mark.parametrize("sv", ["", "newest", "2021-12", "20211202"])
def test_an_sv_that_cannot_be_read(client: Client, container: str, make: Make, sv: str) -> None:
    """B-SAS-07."""
    answer = get(client, container, make(unsigned={"sv": sv}))
    expect(answer, 403, AUTH)


def test_sv_decides_what_is_signed(client: Client, container: str, make: Make) -> None:
    """B-SAS-07: the same fields under another `sv` do not verify."""
    detail(get(client, container, make(sv="2019-02-02", unsigned={"sv": "2025-11-05"})))


def test_a_sas_beside_an_authorization(client: Client, container: str, make: Make) -> None:
    """B-SAS-08: the header decides, whatever the token says."""
    expect(client.get(f"/{container}/b?{make(se=at(-60))}"), 200)
    headers = {"Authorization": "SharedKey devstoreaccount1:AAAA"}
    target = f"/{container}/b?{make()}"
    expect(client.get(target, auth=None), 200)
    expect(client.get(target, headers, auth=None), 403, AUTH)


COPIES: tuple[dict[str, str], ...] = ({}, {"x-ms-requires-sync": "true"})


def test_create_is_not_overwrite(client: Client, container: str, make: Make) -> None:
    """B-SAS-09: Put Blob."""
    token = make(sp="c")
    again = client.put(f"/{container}/b?{token}", PUT_BLOB, b"new", auth=None)
    expect(again, 403, "UnauthorizedBlobOverwrite")
    assert expect(client.get(f"/{container}/b"), 200).body == b"text"
    expect(client.put(f"/{container}/new?{token}", PUT_BLOB, b"new", auth=None), 201)
    both = make(sp="cw")
    expect(client.put(f"/{container}/b?{both}", PUT_BLOB, b"new", auth=None), 201)


@pytest.mark.parametrize("from_url", [False, True])
def test_create_is_not_overwrite_by_blocks(
    client: Client, container: str, make: Make, from_url: bool
) -> None:
    """B-SAS-09: Put Block, Put Block From URL, Put Block List."""
    token, source = make(sp="c"), service_sas(client.credential, container)
    url = {"x-ms-copy-source": f"{client.url}/{container}/b?{source}"}

    def stage(name: str) -> Answer:
        target = f"{block_target(f'/{container}/{name}', '1')}&{token}"
        if from_url:
            return client.put(target, url, auth=None)
        return client.put(target, {}, b"text", auth=None)

    def commit(name: str) -> Answer:
        target = f"/{container}/{name}?comp=blocklist&{token}"
        return client.put(target, {}, block_list("1"), auth=None)

    expect(stage("new"), 201)
    expect(stage("taken"), 201)
    # Somebody else creates the blob between the blocks and their list.
    expect(client.put(f"/{container}/taken", PUT_BLOB, b"first"), 201)
    expect(commit("new"), 201)
    for refused in (stage("new"), commit("new"), commit("taken")):
        expect(refused, 403, "UnauthorizedBlobOverwrite")
    assert expect(client.get(f"/{container}/new"), 200).body == b"text"
    assert expect(client.get(f"/{container}/taken"), 200).body == b"first"


@pytest.mark.parametrize("sync", COPIES)
def test_create_is_not_overwrite_by_a_copy(
    client: Client, container: str, make: Make, sync: dict[str, str]
) -> None:
    """B-SAS-09: both copies."""
    source = f"{client.url}/{container}/b?{service_sas(client.credential, container)}"
    expect(client.put(f"/{container}/old", PUT_BLOB, b"old"), 201)
    headers = {"x-ms-copy-source": source, **sync}
    token = make(sp="c")
    refused = client.put(f"/{container}/old?{token}", headers, auth=None)
    expect(refused, 403, "UnauthorizedBlobOverwrite")
    assert expect(client.get(f"/{container}/old"), 200).body == b"old"
    expect(client.put(f"/{container}/new?{token}", headers, auth=None), 202)
    assert expect(client.get(f"/{container}/new"), 200).body == b"text"
