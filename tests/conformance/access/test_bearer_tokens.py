"""Bearer tokens on the wire: the accepted requests, and the exact refusals."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest

from strongroom.auth.roles import Assignment
from strongroom.config import OAuth
from tests.auth import tokens
from tests.conformance.answer import Answer, expect
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.trusting import NAME, OWNER, Trusting

LIST = "/?comp=list"
AUTH, INFO = "AuthenticationFailed", "InvalidAuthenticationInfo"
MISMATCH = "AuthorizationPermissionMismatch"
CHALLENGE = (
    f"Bearer authorization_uri=https://login.microsoftonline.com/{tokens.TENANT}/oauth2/authorize "
    "resource_id=https://storage.azure.com"
)
LISTS = {"blob": LIST, "queue": LIST, "table": "/Tables"}
READERS = {
    "blob": "Storage Blob Data Reader",
    "queue": "Storage Queue Data Reader",
    "table": "Storage Table Data Reader",
}


@pytest.fixture
def box(trusting: Trusting, new_name: Callable[[], str]) -> str:
    """A new container with the blob `b`, whose content is `text`."""
    name, owner = new_name(), trusting.user(OWNER)
    expect(trusting.send("PUT", f"/{name}?restype=container", owner), 201)
    expect(trusting.send("PUT", f"/{name}/b", owner, PUT_BLOB, b"text"), 201)
    return name


def detail(answer: Answer) -> str:
    return answer.error["AuthenticationErrorDetail"]


@pytest.mark.parametrize("service", LISTS)
@pytest.mark.parametrize("algorithm", tokens.ALGORITHMS)
def test_a_token_of_the_issuer_is_served(trusting: Trusting, service: str, algorithm: str) -> None:
    """B-BRR-01, Q-BRR-01, T-BRR-01."""
    user = trusting.user(READERS[service])
    token = tokens.token(algorithm, oid=user)
    expect(trusting.send("GET", LISTS[service], token=token, service=service), 200)
    lower = {"Authorization": f"bearer {token}"}
    expect(trusting.send("GET", LISTS[service], headers=lower, service=service), 200)


def test_a_server_without_an_issuer_accepts_no_token(client: Client) -> None:
    """B-BRR-02."""
    headers = {"Authorization": f"Bearer {tokens.token()}"}
    answer = expect(client.get(LIST, headers, auth=None), 403, AUTH)
    assert "not accepted by this server" in detail(answer)


@pytest.mark.parametrize("text", ["", "x", "a.b", "a.b.c", "e30.e30.e30", "A" * 17_000])
def test_what_is_no_token(trusting: Trusting, text: str) -> None:
    """B-BRR-03."""
    expect(trusting.send("GET", LIST, token=text), 400, INFO)


def _signed_by_another() -> str:
    key = tokens.private_key("RSA", 7)
    return jwt.encode(tokens.claims(), key, "RS256", headers={"kid": "RSA"})


def _confused() -> str:
    body = tokens.unsigned({"alg": "HS256", "typ": "JWT", "kid": "RSA"})[:-1]
    library: Any = jwt.get_algorithm_by_name("HS256")
    secret = tokens.public_pem(tokens.key_for("RS256"))
    return f"{body}.{tokens.part(library.sign(body.encode(), secret))}"


def _embedded() -> str:
    key = tokens.private_key("RSA", 7)
    more = {"kid": "mine", "jwk": tokens.jwk(key, "mine"), "jku": "https://localhost:1/keys"}
    return jwt.encode(tokens.claims(), key, "RS256", headers=more)


HOSTILE: dict[str, Callable[[], str]] = {
    "alg none": lambda: tokens.unsigned({"alg": "none", "kid": "RSA"}),
    "alg None": lambda: tokens.unsigned({"alg": "None", "kid": "RSA"}),
    "no signature": lambda: tokens.unsigned({"alg": "RS256", "kid": "RSA"}),
    "the public key as a secret": _confused,
    "another key": _signed_by_another,
    "a key in the token": _embedded,
    "a path as kid": lambda: tokens.unsigned(
        {"alg": "RS256", "kid": "../../keys.json"}, None, "AA"
    ),
    "no kid": lambda: jwt.encode(tokens.claims(), tokens.key_for("RS256"), "RS256"),
    "another algorithm of the same key": lambda: tokens.token("RS256").replace(
        tokens.token("RS256").split(".")[0],
        tokens.part({"alg": "PS256", "kid": "RSA"}),
    ),
    "expired": lambda: tokens.token(exp=int(time.time()) - 3600),
    "not yet valid": lambda: tokens.token(nbf=int(time.time()) + 3600),
    "no expiry": lambda: tokens.token(exp=None),
    "endless": lambda: tokens.token(exp=10**30),
    "another issuer": lambda: tokens.token(iss="https://sts.windows.net/other/"),
    "another audience": lambda: tokens.token(aud="https://vault.azure.net"),
    "another account": lambda: tokens.token(aud="https://other.blob.core.windows.net"),
    "another tenant": lambda: tokens.token(tid=tokens.OTHER),
    "nobody": lambda: tokens.token(oid=None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_token_that_is_not_believed(trusting: Trusting, name: str) -> None:
    """B-BRR-04."""
    answer = expect(trusting.send("GET", LIST, token=HOSTILE[name]()), 401, INFO)
    assert answer["WWW-Authenticate"] == CHALLENGE
    assert "validation failed" in detail(answer) or "token" in detail(answer)


def test_times_may_be_a_minute_off(trusting: Trusting) -> None:
    """B-BRR-05."""
    user, now = trusting.user(OWNER), int(time.time())
    off: list[dict[str, Any]] = [{"exp": now - 20}, {"nbf": now + 20}]
    for more in off:
        expect(trusting.send("GET", LIST, token=tokens.token(oid=user, **more)), 200)


def test_plain_http_carries_no_token(trusting: Trusting) -> None:
    """B-BRR-06."""
    answer = expect(trusting.send("GET", LIST, trusting.user(OWNER), plain=True), 403, AUTH)
    assert detail(answer) == "Authentication scheme Bearer is not allowed with HTTP."


@pytest.mark.parametrize("version", [None, "2017-07-29", "2009-09-19"])
def test_old_versions_know_no_tokens(trusting: Trusting, version: str | None) -> None:
    """B-BRR-07."""
    user = trusting.user(OWNER)
    answer = trusting.send("GET", LIST, user, {"x-ms-version": version})
    # So old that answers had no header x-ms-error-code yet.
    assert answer.status == 403 and answer.error["Code"] == AUTH
    assert "Bearer is not supported in this version" in detail(answer)
    expect(trusting.send("GET", LIST, user, {"x-ms-version": "2017-11-09"}), 200)


def test_without_keys_nobody_is_believed(tmp_path: Path) -> None:
    """B-BRR-08."""
    trusting = Trusting(tmp_path)
    try:
        user = trusting.user(OWNER)
        expect(trusting.send("GET", LIST, user), 200)
        trusting.keys.write_bytes(tokens.key_set(tokens.jwk(tokens.private_key("RSA", 3), "RSA")))
        expect(trusting.send("GET", LIST, user), 401, INFO)
        trusting.keys.unlink()
        expect(trusting.send("GET", LIST, user), 503, "ServerBusy")
    finally:
        trusting.stop()


def test_a_request_without_credentials_is_told_where_to_get_some(trusting: Trusting) -> None:
    """B-BRR-09."""
    answer = expect(trusting.send("GET", "/c/b"), 401, "NoAuthenticationInformation")
    assert answer["WWW-Authenticate"] == CHALLENGE


def test_the_development_mode_checks_all_but_the_signature(tmp_path: Path) -> None:
    """B-BRR-06, B-BRR-10."""
    trusting = Trusting(tmp_path, OAuth(issuer=tokens.ISSUER))
    try:
        forged = tokens.unsigned({"alg": "HS256"}, tokens.claims(oid="anybody"), "AA")
        for service, target in LISTS.items():
            expect(trusting.send("GET", target, token=forged, service=service, plain=True), 200)
        for more in ({"exp": 1}, {"aud": "https://x"}, {"iss": "https://x/"}):
            token = tokens.unsigned({"alg": "none"}, tokens.claims(**more))
            expect(trusting.send("GET", LIST, token=token), 401, INFO)
        expect(trusting.send("GET", LIST, token="x"), 400, INFO)
        # With a roles file, roles count here too.
        reader = trusting.user(READERS["blob"])
        expect(trusting.send("GET", LIST, token=forged), 403, MISMATCH)
        expect(trusting.send("GET", LIST, reader), 200)
        expect(trusting.send("PUT", "/new-one?restype=container", reader), 403, MISMATCH)
    finally:
        trusting.stop()


def test_a_copy_reads_what_its_caller_may_read(trusting: Trusting, box: str) -> None:
    """B-BRR-11."""
    other = f"{box}-copies"
    owner = trusting.user(OWNER)
    expect(trusting.send("PUT", f"/{other}?restype=container", owner), 201)
    source = {"x-ms-copy-source": f"{trusting.url()}/{box}/b"}
    expect(trusting.send("PUT", f"/{other}/copied", owner, source), 202)
    here = trusting.user("Storage Blob Data Contributor", resource=other)
    refused = trusting.send("PUT", f"/{other}/stolen", here, source)
    expect(refused, 403, "CannotVerifyCopySource")
    trusting.assign(Assignment(here, READERS["blob"], NAME, box))
    expect(trusting.send("PUT", f"/{other}/stolen", here, source), 202)


def test_a_role_reaches_what_it_was_given_for(trusting: Trusting, box: str) -> None:
    """B-ROL-02."""
    user = trusting.user(READERS["blob"], resource=box)
    expect(trusting.send("GET", f"/{box}/b", user), 200)
    expect(trusting.send("GET", f"/{box}?restype=container&comp=list", user), 200)
    answer = expect(trusting.send("GET", LIST, user), 403, MISMATCH)
    assert "Storage Blob Data Reader" in answer.error["Message"] and user in answer.error["Message"]
    expect(trusting.send("PUT", f"/{box}/b", user, PUT_BLOB, b"x"), 403, MISMATCH)
    expect(trusting.send("GET", "/elsewhere/b", user), 403, MISMATCH)
    everyone = trusting.user("Storage Queue Data Reader", "Storage Table Data Contributor")
    expect(trusting.send("GET", f"/{box}/b", everyone), 403, MISMATCH)


def test_a_change_of_roles_holds_for_the_next_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B-ROL-03."""
    trusting = Trusting(tmp_path)
    try:
        user = trusting.user(READERS["blob"])
        expect(trusting.send("GET", LIST, user), 200)
        trusting.dismiss(user)
        expect(trusting.send("GET", LIST, user), 403, MISMATCH)
        trusting.assign(Assignment(user, OWNER, NAME))
        expect(trusting.send("GET", LIST, user), 200)
        good = trusting.roles.read_bytes()
        trusting.roles.write_bytes(good[:-9])
        expect(trusting.send("GET", LIST, user), 200)
        expect(trusting.send("GET", LIST, user), 200)
        assert caplog.text.count("what it said before stays") == 1
        trusting.roles.unlink()
        expect(trusting.send("GET", LIST, user), 403, MISMATCH)
        trusting.roles.write_bytes(good)
        expect(trusting.send("GET", LIST, user), 200)
    finally:
        trusting.stop()


def test_a_group_has_roles(trusting: Trusting, box: str) -> None:
    """B-ROL-04."""
    group = trusting.user(READERS["blob"])
    member = tokens.token(oid="member", groups=["x", group])
    expect(trusting.send("GET", f"/{box}/b", token=member), 200)
    expect(trusting.send("GET", f"/{box}/b", token=tokens.token(oid="member")), 403, MISMATCH)
    key = "/?restype=service&comp=userdelegationkey"
    expect(trusting.send("POST", key, token=member, body=b"<KeyInfo/>"), 403, MISMATCH)


def test_access_policies_are_open_to_a_role(trusting: Trusting, box: str) -> None:
    """B-ROL-05: on the account and on the container, but not to a SAS of one who has the role."""
    target = f"/{box}?restype=container&comp=acl"
    here = trusting.user(OWNER, resource=box)
    for user in (trusting.user(OWNER), here, trusting.user("Storage Account Contributor")):
        expect(trusting.send("PUT", target, user, {"x-ms-blob-public-access": "blob"}), 200)
        for method in ("GET", "HEAD"):
            assert expect(trusting.send(method, target, user), 200)["x-ms-blob-public-access"]
        expect(trusting.send("PUT", target, user), 200)
    elsewhere = trusting.user(OWNER, resource=f"{box}-elsewhere")
    for user in (trusting.user("Storage Blob Data Contributor"), elsewhere):
        for method in ("GET", "PUT"):
            expect(trusting.send(method, target, user), 403, MISMATCH)


@pytest.mark.parametrize("service", ["queue", "table"])
def test_access_policies_of_queues_and_tables_are_open_to_a_role(
    trusting: Trusting, service: str
) -> None:
    """B-ROL-05, Q-ROL-01, T-ROL-01."""
    contributor = trusting.user(f"Storage {service.title()} Data Contributor")
    if service == "queue":
        made = trusting.send("PUT", "/policies", contributor, service=service)
    else:
        kind, document = {"Content-Type": "application/json"}, b'{"TableName": "policies"}'
        made = trusting.send("POST", "/Tables", contributor, kind, document, service=service)
    expect(made, 201)
    manager, target = trusting.user("Storage Account Contributor"), "/policies?comp=acl"
    expect(trusting.send("PUT", target, manager, service=service), 204)
    expect(trusting.send("GET", target, manager, service=service), 200)
    for method in ("GET", "PUT"):
        expect(trusting.send(method, target, contributor, service=service), 403, MISMATCH)


def test_an_unknown_account_and_two_credentials(trusting: Trusting) -> None:
    user = trusting.user(OWNER, account="nobody")
    expect(trusting.send("GET", LIST, user), 403, MISMATCH)
    token = tokens.token(oid=user)
    headers = {"Authorization": f"Bearer {token}, Bearer {token}"}
    expect(trusting.send("GET", LIST, headers=headers), 400, INFO)


def test_a_token_for_each_part_of_a_transaction(trusting: Trusting) -> None:
    """T-ROL-01: the parts are judged, not the batch."""
    owner = trusting.user("Storage Table Data Contributor")
    made = trusting.send(
        "POST",
        "/Tables",
        owner,
        {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"},
        b'{"TableName": "Parts"}',
        service="table",
    )
    assert made.status == 201, made
    for role, status in (("Contributor", 204), ("Reader", 403)):
        user = trusting.user(f"Storage Table Data {role}", resource="Parts")
        answer = _transaction(trusting, user)
        assert answer.status == 202 and f"HTTP/1.1 {status} ".encode() in answer.body, answer


def _transaction(trusting: Trusting, user: str) -> Answer:
    entity = b'{"PartitionKey": "p", "RowKey": "r"}'
    lines = (
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
        "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"PUT {trusting.url('table')}/Parts(PartitionKey='p',RowKey='r') HTTP/1.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(entity)}\r\n\r\n"
    )
    body = lines.encode() + entity + b"\r\n--c--\r\n--b--\r\n"
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    return trusting.send("POST", "/$batch", user, headers, body, service="table")


def test_no_token_is_logged(trusting: Trusting, caplog: pytest.LogCaptureFixture) -> None:
    """B-BRR-12."""
    user = trusting.user(OWNER)
    sent = [tokens.token(oid=user), tokens.token(oid=user, exp=1), HOSTILE["alg none"]()]
    with caplog.at_level(logging.DEBUG, logger="strongroom"):
        for token in sent:
            answer = trusting.send("GET", LIST, token=token)
            assert not any(part.encode() in answer.body for part in token.split(".") if part)
    assert caplog.records
    for token in sent:
        assert not any(part in caplog.text for part in token.split(".") if part)


def test_tags_need_a_role_that_may_use_them(trusting: Trusting, box: str) -> None:
    """B-ROL-01, B-TAG-16: tags beside contents are judged as tags by themselves are."""
    listing = f"/{box}?restype=container&comp=list&include=tags"
    tagged = {**PUT_BLOB, "x-ms-tags": "a=b"}
    owner = trusting.user(OWNER)
    expect(trusting.send("PUT", f"/{box}/tagged", owner, tagged, b"x"), 201)
    expect(trusting.send("GET", listing, owner), 200)
    writer = trusting.user("Storage Blob Data Contributor")
    expect(trusting.send("PUT", f"/{box}/plain", writer, PUT_BLOB, b"x"), 201)
    assert trusting.send("PUT", f"/{box}/other", writer, tagged, b"x").status == 403
    for user in (writer, trusting.user(READERS["blob"])):
        assert trusting.send("GET", listing, user).status == 403


def test_a_token_of_its_own_for_the_source(trusting: Trusting, box: str) -> None:
    """B-URL-15: the source's token permits a read that the caller's own does not."""
    reader = tokens.token(oid=trusting.user(READERS["blob"], resource=box))
    source = {**PUT_BLOB, "x-ms-copy-source": f"{trusting.url()}/{box}/b"}
    caller = trusting.user("Storage Blob Data Contributor", resource="elsewhere-box")
    expect(trusting.send("PUT", "/elsewhere-box?restype=container", trusting.user(OWNER)), 201)
    refused = trusting.send("PUT", "/elsewhere-box/copy", caller, source)
    expect(refused, 401, "CannotVerifyCopySource")
    given = {**source, "x-ms-copy-source-authorization": f"Bearer {reader}"}
    expect(trusting.send("PUT", "/elsewhere-box/copy", caller, given), 201)
