"""`POST access/explain`: what is said of a shared access signature, and to whom."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableSasPermissions, generate_table_sas
from azure.storage.blob import (
    AccountSasPermissions,
    BlobSasPermissions,
    ContainerSasPermissions,
    ResourceTypes,
    UserDelegationKey,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)
from azure.storage.fileshare import FileSasPermissions, generate_file_sas
from azure.storage.queue import QueueSasPermissions, generate_queue_sas

from strongroom.auth import delegation
from strongroom.auth.accounts import Account
from strongroom.auth.claims import SasKind
from strongroom.auth.request import Service
from strongroom.auth.sas import ACCOUNT_LETTERS, PARAMETERS, PERMISSION_LETTERS
from strongroom.servers.console.access import sas_words
from strongroom.servers.console.access.sas_text import Addresses, read_pasted
from strongroom.times import parse_iso8601
from tests.servers.console.served import (
    API,
    BANK,
    SHOP,
    VERSION,
    ServedConsole,
)
from tests.servers.console.two_accounts import OPERATING, READER, by_token, key_of, two_accounts

NOW = datetime.now(UTC)
LATER, EARLIER = NOW + timedelta(hours=1), NOW - timedelta(hours=1)
OTHERS_KEY = Account("nobody", (b"third",))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    with two_accounts(tmp_path_factory.mktemp("roles")) as found:
        yield found


def asked(text: str, policies: list[Mapping[str, str]] | None = None) -> bytes:
    document = {"sas": text} if policies is None else {"sas": text, "policies": policies}
    return json.dumps(document).encode()


def explained(
    served: ServedConsole,
    text: str,
    account: Account = SHOP,
    policies: list[Mapping[str, str]] | None = None,
) -> Any:
    answer = served.signed(f"{API}access/explain", account, "POST", asked(text, policies))
    assert answer.status == 200, answer.body
    return answer.json()


def blob_token(account: Account = SHOP, **more: Any) -> str:
    permission = more.pop("permission", BlobSasPermissions(read=True, write=True))
    expiry = more.pop("expiry", LATER)
    return generate_blob_sas(
        account.name,
        "photos",
        "a b/c.jpg",
        account_key=key_of(account),
        permission=permission,
        expiry=expiry,
        **more,
    )


def blob_url(served: ServedConsole, token: str, account: str = "shop") -> str:
    return f"http://127.0.0.1:{served.ports['blob']}/{account}/photos/a%20b/c.jpg?{token}"


def every_kind() -> list[tuple[str, str, str, str]]:
    """Service, path, token, kind of each kind of signature that a key of `shop` makes."""
    shop, key = SHOP.name, key_of(SHOP)
    named = AzureNamedKeyCredential(shop, key)
    table = generate_table_sas(
        named, "Orders", permission=TableSasPermissions(read=True), expiry=LATER
    )
    return [
        ("blob", "/shop/photos/a%20b/c.jpg", blob_token(), "service SAS"),
        (
            "blob",
            "/shop/photos",
            generate_container_sas(
                shop, "photos", key, permission=ContainerSasPermissions(list=True), expiry=LATER
            ),
            "service SAS",
        ),
        (
            "queue",
            "/shop/jobs",
            generate_queue_sas(shop, "jobs", key, QueueSasPermissions(read=True), LATER),
            "service SAS",
        ),
        ("table", "/shop/Orders()", table, "service SAS"),
        (
            "file",
            "/shop/docs/a/b.txt",
            generate_file_sas(
                shop,
                "docs",
                ["a", "b.txt"],
                key,
                permission=FileSasPermissions(read=True),
                expiry=LATER,
            ),
            "service SAS",
        ),
        (
            "blob",
            "/shop",
            generate_account_sas(
                shop,
                key,
                ResourceTypes(service=True, object=True),
                AccountSasPermissions(read=True),
                LATER,
            ),
            "account SAS",
        ),
        ("blob", "/shop/photos/a%20b/c.jpg", delegated(), "user delegation SAS"),
    ]


def delegated() -> str:
    """A user delegation SAS, by a key that the first key of `shop` made."""
    start, end = f"{EARLIER:%Y-%m-%dT%H:%M:%SZ}", f"{LATER:%Y-%m-%dT%H:%M:%SZ}"
    ticks = [parse_iso8601(one) for one in (start, end)]
    assert ticks[0] is not None and ticks[1] is not None
    fields = delegation.DelegationKey("alice", "tenant", ticks[0], ticks[1], "b", VERSION)
    key = UserDelegationKey()  # type: ignore[no-untyped-call]
    key.signed_oid, key.signed_tid = "alice", "tenant"
    key.signed_start, key.signed_expiry = start, end
    key.signed_service, key.signed_version = "b", VERSION
    key.value = base64.b64encode(delegation.value_of(fields, "shop", SHOP.signers[0])).decode()
    return generate_blob_sas(
        "shop",
        "photos",
        "a b/c.jpg",
        user_delegation_key=key,
        permission=BlobSasPermissions(read=True),
        expiry=LATER,
    )


KINDS = [f"{service} {kind}" for service, _, _, kind in every_kind()]


@pytest.mark.parametrize("number", range(len(KINDS)), ids=KINDS)
def test_each_kind_is_named_and_its_signature_is_right_or_wrong(
    served: ServedConsole, number: int
) -> None:
    service, path, token, kind = every_kind()[number]
    url = f"http://127.0.0.1:{served.ports[service]}{path}?{token}"
    found = explained(served, url)
    assert (found["kind"], found["account"], found["service"]) == (kind, "shop", service)
    assert (found["signature"], found["signing_key"]) == ("right", 1), found
    assert (found["string_to_sign"], found["problems"], found["unchecked"]) == (None, [], "")
    assert found["state"] == "valid"
    assert found["permits"] and found["reaches"]
    assert {one["name"] for one in found["fields"]} >= {"sv", "sig", "se"}
    wrong = explained(served, f"{url}&spr=https")
    assert wrong["signature"] == "wrong"
    assert "https" in wrong["string_to_sign"]
    assert wrong["mistakes"] == ["The field spr was added after it was signed."]


def test_the_address_may_be_of_any_style(served: ServedConsole) -> None:
    token, path = blob_token(), "photos/a%20b/c.jpg"
    for url in (
        f"http://127.0.0.1:{served.port}/blob/shop/{path}?{token}",
        f"http://shop.blob.localhost:{served.ports['blob']}/{path}?{token}",
        f"https://shop.blob.core.windows.net/{path}?{token}",
        f"  http://localhost:{served.ports['blob']}/shop/{path}?{token}\n",
    ):
        assert explained(served, url)["signature"] == "right", url


def test_of_another_account_only_what_was_written_is_said(served: ServedConsole) -> None:
    texts = []
    for account, key in (("bank", BANK), ("nobody", OTHERS_KEY)):
        for signer in (key, Account(account, (b"guessed",))):
            url = blob_url(served, blob_token(Account(account, signer.keys)), account)
            found = explained(served, url)
            assert (found["signature"], found["string_to_sign"]) == (None, None)
            assert found["unchecked"] and not found["mistakes"]
            texts.append(
                {name: value for name, value in found.items() if name not in ("account", "fields")}
            )
    assert all(one == texts[0] for one in texts)


def test_a_token_learns_only_what_was_written(served: ServedConsole) -> None:
    body = asked(blob_url(served, blob_token()))
    for principal in (READER, OPERATING):
        found = by_token(served, principal, "access/explain", "POST", body).json()
        assert (found["signature"], found["string_to_sign"]) == (None, None)
        assert "account key" in found["unchecked"]
    stranger = by_token(served, "stranger", "access/explain", "POST", body)
    assert stranger.status == 403
    assert b"photos" not in stranger.body


def test_without_an_address_only_an_account_sas_is_checked(served: ServedConsole) -> None:
    token = every_kind()[5][2]
    for text in (token, f"?{token}", f"BlobEndpoint=http://a;SharedAccessSignature={token}"):
        assert explained(served, text)["signature"] == "right"
    assert explained(served, token, BANK)["signature"] == "wrong"
    found = explained(served, blob_token())
    assert found["signature"] is None
    assert "paste the whole URL" in found["unchecked"]
    assert (found["account"], found["service"], found["state"]) == ("", "", "valid")


@pytest.mark.parametrize(
    ("more", "state", "text"),
    [
        ({"expiry": EARLIER}, "expired", "has expired"),
        ({"start": LATER, "expiry": LATER + timedelta(1)}, "not yet", "not valid yet"),
        ({"start": EARLIER}, "valid", ""),
    ],
)
def test_times_are_judged_by_the_servers_clock(
    served: ServedConsole, more: dict[str, Any], state: str, text: str
) -> None:
    found = explained(served, blob_url(served, blob_token(**more)))
    assert (found["state"], found["signature"]) == (state, "right")
    assert text in " ".join(found["problems"])
    assert bool(found["problems"]) is bool(text)


def test_a_stored_policy_completes_it(served: ServedConsole) -> None:
    token = blob_token(permission=None, expiry=None, policy_id="p")
    url = blob_url(served, token)
    found = explained(served, url)
    assert (found["policy"], found["state"], found["problems"]) == ("p", "unknown", [])
    assert (found["container"], found["permits"]) == ("photos", [])
    rule = {"id": "p", "expiry": f"{LATER:%Y-%m-%dT%H:%M:%SZ}", "permission": "rl"}
    found = explained(served, url, policies=[rule])
    assert [one["letter"] for one in found["permits"]] == ["r", "l"]
    assert (found["state"], found["problems"], found["signature"]) == ("valid", [], "right")
    found = explained(served, url, policies=[])
    assert "no stored access policy 'p'" in found["problems"][0]


def test_the_right_signature_is_nowhere_and_the_given_one_is_masked(
    served: ServedConsole, capfd: pytest.CaptureFixture[str]
) -> None:
    right = blob_token()
    signature = dict(part.split("=", 1) for part in right.split("&"))["sig"]
    for text in (right, right.replace(signature, "QUJDREVG%0a"), f"{right}&sig=QUJDREVG"):
        answer = served.signed(f"{API}access/explain", SHOP, "POST", asked(blob_url(served, text)))
        for secret in (signature, signature.replace("%3D", "="), "QUJDREVG", key_of(SHOP)):
            assert secret.encode() not in answer.body
    wrong = explained(served, blob_url(served, right.replace(signature, "QUJDREVG")))
    assert wrong["signature"] == "wrong"
    assert signature not in json.dumps(wrong)
    tail = served.api("requests").body
    assert b"explain" not in tail
    assert b"QUJDREVG" not in tail
    assert "QUJDREVG" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{}", "InvalidBody"),
        (b"[]", "InvalidBody"),
        (b'{"sas": 7}', "InvalidBody"),
        (b'{"sas": "sv=1&sig=A", "more": 1}', "InvalidBody"),
        (asked("sv=1&sig=A", [{"id": "p"}] * 6), "InvalidBody"),
        (asked("hello"), "NoSas"),
        (asked(""), "NoSas"),
        (asked("http://[::1/a?sv=1&sig=A"), "InvalidSas"),
        (asked("http://host:port/a?sv=1&sig=A"), "InvalidSas"),
        (asked("a=" + "x" * 9000 + "&sig=A"), "RequestBodyTooLarge"),
    ],
)
def test_what_cannot_be_explained_is_refused(served: ServedConsole, body: bytes, code: str) -> None:
    answer = served.signed(f"{API}access/explain", SHOP, "POST", body)
    assert answer.status in (400, 413)
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize(
    "text",
    [
        "sv=2021-12-02&sig=A",
        "sig=A",
        "sv=x&sr=b&sp=r&se=never&sig=A",
        "sv=2021-12-02&ss=z&srt=z&sp=z&se=2030-01-01&sig=A",
        "sv=2021-12-02&sr=d&sdd=%C2%B2&sp=r&se=2030-01-01&sig=A",
        pytest.param(f"sv=2021-12-02&sr=d&sdd={'9' * 5000}&sp=r&sig=A", id="long-depth"),
        "sv=2021-12-02&skoid=a&sr=b&sp=r&se=2030-01-01&sig=A",
        "sv=2021-12-02&sr=b&sp=r&sp=w&se=2030-01-01&sig=A",
        "%73v=2021-12-02&sr=b&sp=rz\u00e9&se=2030-01-01&sig=A%00B",
    ],
)
@pytest.mark.parametrize("address", ["", "http://shop.blob.localhost/c/b", "http://h/%zz/%ff"])
def test_what_is_malformed_is_explained_as_far_as_it_goes(
    served: ServedConsole, text: str, address: str
) -> None:
    found = explained(served, f"{address}?{text}")
    assert found["fields"]
    assert found["signature"] in (None, "wrong")
    assert found["problems"] or found["unchecked"] or found["signature"] == "wrong"


def test_every_parameter_and_letter_has_words() -> None:
    assert sas_words.MEANINGS.keys() == PARAMETERS
    for service in Service:
        for letter in PERMISSION_LETTERS[service]:
            assert sas_words.right(letter, SasKind.SERVICE, service)
    for letter in ACCOUNT_LETTERS:
        assert sas_words.right(letter, SasKind.ACCOUNT, Service.BLOB)


def test_a_general_host_suffix_leaves_the_service_to_port_or_path() -> None:
    suffixes = {one: (f"{one.value}.localhost", "example.net") for one in Service}
    addresses = Addresses({"blob": 10000, "queue": 10001}, suffixes)
    for url, service in (
        ("http://shop.example.net:10001/jobs?sig=A", Service.QUEUE),
        ("http://shop.example.net/queue/jobs?sig=A", Service.QUEUE),
        ("http://shop.queue.localhost/jobs?sig=A", Service.QUEUE),
    ):
        pasted = read_pasted(url, addresses)
        assert (pasted.service, pasted.account) == (service, "shop"), url
        assert pasted.url is not None and pasted.url.container == "jobs"
