"""User delegation keys and the tokens that are signed with them, by the SDKs and by hand."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    generate_blob_sas,
    generate_container_sas,
)
from azure.storage.fileshare import ShareFileClient, ShareServiceClient, generate_share_sas
from azure.storage.queue import QueueClient, QueueServiceClient, generate_queue_sas

from strongroom.auth.accounts import Account
from strongroom.auth.roles import Assignment
from strongroom.servers.identities.accounts_file import change_accounts
from tests.auth import tokens
from tests.conformance.answer import Answer, expect
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.sas import query
from tests.conformance.signing import mac
from tests.conformance.trusting import NAME, OWNER, Token, Trusting

KEY = "/?restype=service&comp=userdelegationkey"
AUTH = "AuthenticationFailed"
BAD_TENANT = "<DelegatedUserTid>a b</DelegatedUserTid>"
GENERATIONS = ("2018-11-09", "2020-02-10", "2020-12-06", "2025-07-05", "2026-04-06")
READER, DELEGATOR = "Storage Blob Data Reader", "Storage Blob Delegator"


def moment(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def text(seconds: float) -> str:
    return moment(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def info(start: str | None, expiry: str | None, more: str = "") -> bytes:
    first = "" if start is None else f"<Start>{start}</Start>"
    last = "" if expiry is None else f"<Expiry>{expiry}</Expiry>"
    return f"<KeyInfo>{first}{last}{more}</KeyInfo>".encode()


def key_of(trusting: Trusting, user: str, seconds: float = 3600, **more: Any) -> Any:
    with BlobServiceClient(trusting.url(), **trusting.sdk(user)) as service:
        return service.get_user_delegation_key(moment(-60), moment(seconds), **more)


def container_sas(key: Any, container: str, permission: str = "rcwdl", **more: Any) -> str:
    more.setdefault("expiry", moment(3600))
    return generate_container_sas(
        NAME, container, user_delegation_key=key, permission=permission, **more
    )


@pytest.fixture
def box(trusting: Trusting, new_name: Callable[[], str]) -> str:
    """A new container with the blob `b`, whose content is `text`."""
    name, owner = new_name(), trusting.user(OWNER)
    expect(trusting.send("PUT", f"/{name}?restype=container", owner), 201)
    expect(trusting.send("PUT", f"/{name}/b", owner, PUT_BLOB, b"text"), 201)
    return name


def detail(answer: Answer) -> str:
    return answer.error["AuthenticationErrorDetail"]


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("If-Match", "*", "ConditionHeadersNotSupported"),
        ("If-None-Match", "*", "ConditionHeadersNotSupported"),
        ("If-Modified-Since", "Fri, 26 Jun 2015 23:39:12 GMT", "ConditionHeadersNotSupported"),
        ("If-Unmodified-Since", "Fri, 26 Jun 2099 23:39:12 GMT", "ConditionHeadersNotSupported"),
        ("x-ms-if-tags", "\"a\" = '1'", "ConditionHeadersNotSupported"),
        ("x-strongroom-wait", "5", "UnsupportedHeader"),
    ],
)
def test_a_key_has_no_conditions(trusting: Trusting, name: str, value: str, code: str) -> None:
    """B-CWR-11, B-WAI-01: refused, not ignored."""
    user = trusting.user(DELEGATOR)
    expect(trusting.send("POST", KEY, user, {name: value}, info(None, text(60))), 400, code)


def test_a_key_is_issued(trusting: Trusting) -> None:
    """B-UDK-01."""
    user, start, expiry = trusting.user(DELEGATOR), text(10), text(7200)
    more = "<DelegatedUserTid>some-tenant</DelegatedUserTid>"
    answer = expect(trusting.send("POST", KEY, user, body=info(start, expiry, more)), 200)
    assert answer["Content-Type"] == "application/xml"
    found = {child.tag: child.text for child in ET.fromstring(answer.body)}
    value = found.pop("Value") or ""
    assert len(base64.b64decode(value, validate=True)) == 32
    assert found == {
        "SignedOid": user,
        "SignedTid": tokens.TENANT,
        "SignedStart": start,
        "SignedExpiry": expiry,
        "SignedService": "b",
        "SignedVersion": "2025-11-05",
        "SignedDelegatedUserTid": "some-tenant",
    }
    again = trusting.send("POST", KEY, user, body=info(start, expiry, more))
    assert again.body == answer.body
    at_once = ET.fromstring(trusting.send("POST", KEY, user, body=info(None, expiry)).body)
    assert at_once.findtext("SignedStart") or text(1) >= ""
    assert at_once.find("SignedDelegatedUserTid") is None


def test_only_a_bearer_with_the_right_gets_a_key(trusting: Trusting, client: Client) -> None:
    """B-UDK-02, Q-ADR-06."""
    body = info(None, text(60))
    refused = expect(client.send("POST", KEY, (), body), 403, AUTH)
    assert detail(refused) == "Only authentication scheme Bearer is supported"
    expect(trusting.send("POST", KEY, body=body), 401, "NoAuthenticationInformation")
    for user in (trusting.user("Storage Queue Data Contributor"), trusting.user()):
        refused = trusting.send("POST", KEY, user, body=body)
        expect(refused, 403, "AuthorizationPermissionMismatch")
    scoped = trusting.user(OWNER, resource="only-one")
    refused = trusting.send("POST", KEY, scoped, body=body)
    expect(refused, 403, "AuthorizationPermissionMismatch")


@pytest.mark.parametrize(
    ("start", "expiry", "more", "code", "node"),
    [
        (None, None, "", "MissingRequiredXmlNode", "Expiry"),
        (None, "", "", "InvalidXmlNodeValue", "Expiry"),
        (None, "soon", "", "InvalidXmlNodeValue", "Expiry"),
        ("now", "60", "", "InvalidXmlNodeValue", "Start"),
        (None, "-60", "", "InvalidXmlNodeValue", "Expiry"),
        ("60", "60", "", "InvalidXmlNodeValue", "Expiry"),
        (None, str(7 * 86400 + 60), "", "InvalidXmlNodeValue", "Expiry"),
        ("-60", str(7 * 86400 - 10), "", "InvalidXmlNodeValue", "Expiry"),
        (
            None,
            "60",
            BAD_TENANT,
            "InvalidXmlNodeValue",
            "DelegatedUserTid",
        ),
        (None, "60", "<Other/>", "UnsupportedXmlNode", "Other"),
        (None, "60", "<Expiry/>", "InvalidXmlDocument", ""),
    ],
)
def test_a_key_for_an_impossible_time(
    trusting: Trusting, start: str | None, expiry: str | None, more: str, code: str, node: str
) -> None:
    """B-UDK-03."""

    def at(given: str | None) -> str | None:
        is_number = given is not None and given.lstrip("-").isdigit()
        return text(float(given)) if given is not None and is_number else given

    body = info(at(start), at(expiry), more)
    answer = expect(trusting.send("POST", KEY, trusting.user(DELEGATOR), body=body), 400, code)
    assert answer.error.get("XmlNodeName", "").startswith(node)


@pytest.mark.parametrize("body", [b"", b"<", b"<Key/>", b"<!DOCTYPE a><KeyInfo/>", b"x" * 70_000])
def test_a_body_that_asks_for_no_key(trusting: Trusting, body: bytes) -> None:
    """B-UDK-03."""
    answer = trusting.send("POST", KEY, trusting.user(DELEGATOR), body=body)
    assert answer.status in (400, 413), answer


def test_a_token_permits_what_it_says_and_its_delegator_may(trusting: Trusting, box: str) -> None:
    """B-UDK-04, B-SSA-09."""
    user = trusting.user("Storage Blob Data Contributor")
    sas = container_sas(key_of(trusting, user), box)
    with ContainerClient(
        trusting.url(), box, credential=sas, connection_verify=str(trusting.certificate)
    ) as container:
        assert container.download_blob("b").readall() == b"text"
        container.upload_blob("new", b"more")
        assert sorted(container.list_blob_names()) == ["b", "new"]
        container.delete_blob("new")
    target = f"/{box}/b?{sas}"
    expect(trusting.send("GET", target), 200)
    refused = "AuthorizationPermissionMismatch"
    # The delegator loses some of the rights, then all, and gets them back: each counts at once.
    trusting.dismiss(user)
    answer = expect(trusting.send("GET", target), 403, refused)
    assert user in answer.error["Message"]
    trusting.assign(Assignment(user, READER, NAME, box))
    expect(trusting.send("GET", target), 200)
    expect(trusting.send("PUT", target, None, PUT_BLOB, b"x"), 403, refused)
    only_read = container_sas(key_of(trusting, trusting.user(OWNER)), box, "r")
    expect(trusting.send("PUT", f"/{box}/b?{only_read}", None, PUT_BLOB), 403, refused)


def test_a_token_for_one_blob_by_the_sdk(trusting: Trusting, box: str) -> None:
    """B-SSA-09."""
    key = key_of(trusting, trusting.user(OWNER))
    sas = generate_blob_sas(
        NAME, box, "b", user_delegation_key=key, permission="r", expiry=moment(600),
        content_type="text/special",
    )  # fmt: skip
    verify = str(trusting.certificate)
    with BlobClient(trusting.url(), box, "b", credential=sas, connection_verify=verify) as blob:
        found = blob.download_blob()
        assert found.readall() == b"text"
        assert found.properties.content_settings.content_type == "text/special"
    expect(trusting.send("GET", f"/{box}/c?{sas}"), 403, AUTH)


def by_hand(key: Any, box: str, sv: str, **users: str) -> dict[str, str]:
    """A token for reading a container, signed by the standard library alone."""
    udk = {
        "skoid": key.signed_oid,
        "sktid": key.signed_tid,
        "skt": key.signed_start,
        "ske": key.signed_expiry,
        "sks": key.signed_service,
        "skv": key.signed_version,
    }
    se = text(600)
    lines = ["r", "", se, f"/blob/{NAME}/{box}", *udk.values()]
    if sv >= "2020-02-10":
        lines += [users.get(name, "") for name in ("saoid", "suoid", "scid")]
    lines += [""] * 2 if sv >= "2025-07-05" else []
    lines += ["", "", sv, "c", ""]
    lines += [""] if sv >= "2020-12-06" else []
    lines += [""] * 2 if sv >= "2026-04-06" else []
    lines += [""] * 5
    signature = mac(key.value, "\n".join(lines))
    return {"sv": sv, "sr": "c", "sp": "r", "se": se, **udk, **users, "sig": signature}


@pytest.mark.parametrize("sv", GENERATIONS)
def test_every_generation_is_verified(trusting: Trusting, box: str, sv: str) -> None:
    """B-SSA-09."""
    fields = by_hand(key_of(trusting, trusting.user(READER)), box, sv)
    expect(trusting.send("GET", f"/{box}/b?{query(fields)}"), 200)
    fields["skoid"] = trusting.user(OWNER)
    answer = expect(trusting.send("GET", f"/{box}/b?{query(fields)}"), 403, AUTH)
    assert "Signature did not match" in detail(answer)


def test_a_key_holds_for_its_time_and_service(trusting: Trusting, box: str) -> None:
    """B-UDK-05."""
    user = trusting.user(OWNER, "Storage Queue Data Contributor")
    with BlobServiceClient(trusting.url(), **trusting.sdk(user)) as service:
        later = service.get_user_delegation_key(moment(600), moment(1200))
    answer = trusting.send("GET", f"/{box}/b?{container_sas(later, box)}")
    assert "key is not valid at this time" in detail(expect(answer, 403, AUTH))
    with QueueServiceClient(trusting.url("queue"), **trusting.sdk(user)) as queues:
        other: Any = queues.get_user_delegation_key(start=moment(-60), expiry=moment(600))
    answer = trusting.send("GET", f"/{box}/b?{container_sas(other, box)}")
    assert "another service" in detail(expect(answer, 403, AUTH))
    # A key is derived from its times too, so they cannot be extended.
    fields = by_hand(key_of(trusting, user), box, "2025-11-05")
    fields["ske"] = text(7200)
    answer = trusting.send("GET", f"/{box}/b?{query(fields)}")
    assert "Signature did not match" in detail(expect(answer, 403, AUTH))


def test_a_key_outlives_the_server_and_ends_with_its_account_key(tmp_path: Path) -> None:
    """B-UDK-06."""
    trusting = Trusting(tmp_path)
    try:
        user = trusting.user(OWNER)
        expect(trusting.send("PUT", "/box?restype=container", user), 201)
        expect(trusting.send("PUT", "/box/b", user, PUT_BLOB, b"text"), 201)
        target = f"/box/b?{container_sas(key_of(trusting, user), 'box')}"
        trusting.stop()
        trusting = Trusting(tmp_path)
        expect(trusting.send("GET", target), 200)

        def change(edit: Callable[[Account], Account]) -> None:
            change_accounts(trusting.accounts, lambda all_: tuple(map(edit, all_)))

        change(lambda account: account.rotated(b"another key"))
        expect(trusting.send("GET", target), 200)
        change(lambda account: account.without_old_key())
        expect(trusting.send("GET", target), 403, AUTH)
    finally:
        trusting.stop()


def test_a_token_for_one_user_needs_a_bearer_token_of_that_user(
    trusting: Trusting, box: str
) -> None:
    """B-UDK-07."""
    friend, stranger = trusting.user(), trusting.user(OWNER)
    key = key_of(trusting, trusting.user(OWNER))
    sas = container_sas(key, box, "r", user_delegation_oid=friend)
    target = f"/{box}/b?{sas}"
    assert "sduoid" in detail(expect(trusting.send("GET", target), 403, AUTH))
    assert "another user" in detail(expect(trusting.send("GET", target, stranger), 403, AUTH))
    expect(trusting.send("GET", target, friend), 200)
    expect(trusting.send("PUT", target, friend, PUT_BLOB), 403, "AuthorizationPermissionMismatch")
    with BlobClient.from_blob_url(
        f"{trusting.url()}/{box}/b?{sas}",
        credential=Token(tokens.token(oid=friend)),
        connection_verify=str(trusting.certificate),
    ) as blob:
        assert blob.download_blob().readall() == b"text"
    # A key for the users of another tenant: they are not users of the issuer's.
    abroad = key_of(trusting, trusting.user(OWNER), delegated_user_tid="another-tenant")
    sas = container_sas(abroad, box, "r", user_delegation_oid=friend)
    expect(trusting.send("GET", f"/{box}/b?{sas}", friend), 403, AUTH)
    unnamed = container_sas(abroad, box, "r")
    assert "names no user" in detail(trusting.send("GET", f"/{box}/b?{unnamed}"))


def test_what_needs_a_hierarchical_namespace(trusting: Trusting, box: str) -> None:
    """B-UDK-08."""
    key = key_of(trusting, trusting.user(OWNER))
    agent = by_hand(key, box, "2020-12-06", saoid="agent", scid="correlation")
    expect(trusting.send("GET", f"/{box}/b?{query(agent)}"), 200)
    acting = by_hand(key, box, "2020-12-06", suoid="somebody")
    answer = trusting.send("GET", f"/{box}/b?{query(acting)}")
    assert "hierarchical namespace" in detail(expect(answer, 403, AUTH))


def test_a_queue_has_delegation_keys_too(trusting: Trusting, new_name: Callable[[], str]) -> None:
    """Q-ADR-06, Q-UDK-01."""
    name, user = new_name(), trusting.user("Storage Queue Data Contributor")
    verify = str(trusting.certificate)
    with QueueServiceClient(trusting.url("queue"), **trusting.sdk(user)) as service:
        service.create_queue(name)
        key: Any = service.get_user_delegation_key(start=moment(-60), expiry=moment(600))
    assert key.signed_service == "q"
    sas = generate_queue_sas(
        NAME, name, user_delegation_key=key, permission="raup", expiry=moment(600)
    )
    with QueueClient(
        trusting.url("queue"), name, credential=sas, connection_verify=verify
    ) as queue:
        queue.send_message("hello")
        (message,) = queue.receive_messages()
        assert message.content == "hello"
        queue.delete_message(message)
    trusting.dismiss(user)
    target = f"/{name}/messages?peekonly=true&{sas}"
    answer = trusting.send("GET", target, service="queue")
    expect(answer, 403, "AuthorizationPermissionMismatch")


def test_a_share_has_delegation_keys_too(trusting: Trusting, new_name: Callable[[], str]) -> None:
    """F-SVC-05."""
    share, verify = new_name(), str(trusting.certificate)
    user = trusting.user(
        "Storage File Delegator",
        "Storage File Data Privileged Contributor",
        "Storage Account Contributor",
    )
    with ShareServiceClient(
        trusting.url("file"), token_intent="backup", **trusting.sdk(user)
    ) as service:
        service.create_share(share)
        key: Any = service.get_user_delegation_key(start=moment(-60), expiry=moment(600))
    assert key.signed_service == "f"
    sas = generate_share_sas(
        NAME, share, user_delegation_key=key, permission="rcwd", expiry=moment(600)
    )
    with ShareFileClient(
        trusting.url("file"), share, "f", credential=sas, connection_verify=verify
    ) as file:
        file.upload_file(b"hello")
        assert file.download_file().readall() == b"hello"
    trusting.dismiss(user)
    with (
        ShareFileClient(
            trusting.url("file"),
            share,
            "f",
            credential=sas,
            connection_verify=verify,
            retry_total=0,
        ) as file,
        pytest.raises(HttpResponseError) as refused,
    ):
        file.download_file()
    assert vars(refused.value)["error_code"] == "AuthorizationPermissionMismatch"
    by_key = trusting.send("POST", "/?restype=service&comp=userdelegationkey", service="file")
    assert by_key.status in (401, 403)


def test_a_bearer_token_reaches_files_with_the_intent_of_a_backup_only(
    trusting: Trusting, new_name: Callable[[], str]
) -> None:
    """F-SVC-04."""
    user, intent = trusting.user("Storage Account Contributor"), "x-ms-file-request-intent"
    target = "/?comp=list"
    expect(trusting.send("GET", target, user, service="file"), 200)
    missing = trusting.send("GET", target, user, {intent: None}, service="file")
    assert expect(missing, 400, "MissingRequiredHeader").error["HeaderName"] == intent
    wrong = trusting.send("GET", target, user, {intent: "read"}, service="file")
    expect(wrong, 400, "InvalidHeaderValue")
    old = trusting.send("GET", target, user, {"x-ms-version": "2022-08-04"}, service="file")
    assert "2022-11-02" in detail(expect(old, 403, AUTH))
