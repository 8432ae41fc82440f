"""Encryption scopes of containers and blobs: rules B-ENC-*."""

from __future__ import annotations

import pytest

from strongroom.errors.core import StorageError
from strongroom.semantics.blob import encryption_scopes as rules
from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.blobs import block_list, block_target, put
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import SYNC, copy, readable, source_url
from tests.conformance.listing import blob, page, properties
from tests.conformance.pages import clear, create, send
from tests.conformance.sas import account_sas, service_sas

SCOPE, DEFAULT = "x-ms-encryption-scope", "x-ms-default-encryption-scope"
DENY = "x-ms-deny-encryption-scope-override"
FORBIDDEN = "RequestForbiddenByContainerEncryptionPolicy"
UNNAMED = "BlobUsesCustomerSpecifiedEncryption"
MISMATCH = "BlobCustomerSpecifiedEncryptionMismatch"
ACCOUNT = "$account-encryption-key"
BOX = "/box?restype=container"


def made(account: Client, headers: dict[str, str] | None = None) -> Client:
    """The account, with a container `box` created so."""
    expect(account.put(BOX, headers or {}), 201)
    return account


def scope(client: Client, target: str = "/box/b") -> str | None:
    """Return the scope that both reads report."""
    found = [expect(ask(target), 200).get(SCOPE) for ask in (client.get, client.head)]
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({}, (ACCOUNT, "false")),
        ({DEFAULT: ACCOUNT}, (ACCOUNT, "false")),
        ({DEFAULT: "mine"}, ("mine", "false")),
        ({DEFAULT: "mine", DENY: "false"}, ("mine", "false")),
        ({DEFAULT: "mine", DENY: "True"}, ("mine", "true")),
        ({DEFAULT: ACCOUNT, DENY: "true"}, (ACCOUNT, "true")),
    ],
)
def test_a_container_says_its_scope(
    account: Client, headers: dict[str, str], wanted: tuple[str, str]
) -> None:
    """B-ENC-01."""
    made(account, headers)
    for answer in (account.get(BOX), account.head(BOX)):
        assert (answer[DEFAULT], answer[DENY]) == wanted
    (row,) = expect(account.get("/?comp=list"), 200).xml.findall("Containers/Container/Properties")
    words = ("DefaultEncryptionScope", "DenyEncryptionScopeOverride")
    assert tuple(row.findtext(word) for word in words) == wanted
    expect(account.put(BOX + "&comp=metadata", {"x-ms-meta-a": "b"}), 200)
    assert account.head(BOX)[DEFAULT] == wanted[0]


@pytest.mark.parametrize("text", ["", "ab", "a" * 64, "a--b", "-abc", "abc-", "a b c", "ä-scope"])
def test_what_is_no_scope(text: str) -> None:
    """B-ENC-02."""
    with pytest.raises(StorageError) as refused:
        rules.read_scope(SCOPE, text)
    assert refused.value.row.code == "InvalidHeaderValue"


def test_headers_of_scopes_that_are_refused(account: Client) -> None:
    """B-ENC-02."""
    expect_names(account.put(BOX, {DENY: "true"}), 400, "MissingRequiredHeader", DEFAULT)
    wrong = account.put(BOX, {DEFAULT: "mine", DENY: "maybe"})
    expect_names(wrong, 400, "InvalidHeaderValue", DENY)
    expect_names(account.put(BOX, {DEFAULT: "a"}), 400, "InvalidHeaderValue", DEFAULT)
    made(account)
    wrong = account.put("/box/b", {**PUT_BLOB, SCOPE: "a--b"}, b"x")
    expect_names(wrong, 400, "InvalidHeaderValue", SCOPE)
    assert rules.read_scope(SCOPE, "A-1-" + "b" * 59) and rules.read_scope(SCOPE, ACCOUNT) == ""


def test_a_token_names_the_scope_of_its_writes(account: Client) -> None:
    """B-ENC-07: of service and account tokens; reads ignore it."""
    made(account, {DEFAULT: "mine"})
    anyone = account.anonymous
    for token in (
        service_sas(account.credential, "box", sp="rcw", ses="signed"),
        account_sas(account.credential, sp="rcw", srt="o", ses="signed"),
    ):
        written = expect(anyone.put(f"/box/b?{token}", PUT_BLOB, b"x"), 201)
        assert (written[SCOPE], scope(account)) == ("signed", "signed")
        expect(anyone.put(f"/box/b?comp=metadata&{token}"), 200)
        expect(anyone.put(f"/box/b?{token}", {**PUT_BLOB, SCOPE: "signed"}, b"x"), 201)
        for other in ("other", ACCOUNT):
            refused = anyone.put(f"/box/b?{token}", {**PUT_BLOB, SCOPE: other}, b"x")
            expect_names(refused, 400, "InvalidHeaderValue", SCOPE)
        assert expect(anyone.get(f"/box/b?{token}"), 200).body == b"x"
        put(account, "/box/other", headers={SCOPE: "other"})
        expect(anyone.put(f"/box/other?comp=metadata&{token}"), 409, MISMATCH)
        assert expect(anyone.get(f"/box/other?{token}"), 200)[SCOPE] == "other"
    plain = service_sas(account.credential, "box", sp="rcw", ses=ACCOUNT)
    expect(anyone.put(f"/box/b?{plain}", PUT_BLOB, b"x"), 201)
    assert scope(account) is None


def test_a_token_and_a_container_that_denies_other_scopes(account: Client) -> None:
    """B-ENC-07, B-ENC-05."""
    made(account, {DEFAULT: "mine", DENY: "true"})
    for name, status in (("other", 403), ("mine", 201)):
        token = service_sas(account.credential, "box", sp="cw", ses=name)
        answer = account.anonymous.put(f"/box/b?{token}", PUT_BLOB, b"x")
        expect(answer, status, FORBIDDEN if status == 403 else None)


def test_a_scope_of_a_token_that_has_no_effect_or_cannot_be(account: Client) -> None:
    """B-ENC-07: a value that no signature covers is ignored."""
    made(account, {DEFAULT: "mine"})
    anyone = account.anonymous
    old = service_sas(
        account.credential, "box", sp="cw", sv="2020-10-02", unsigned={"ses": "other"}
    )
    expect(anyone.put(f"/box/b?{old}", PUT_BLOB, b"x"), 201)
    assert scope(account) == "mine"
    forged = service_sas(account.credential, "box", sp="cw", unsigned={"ses": "other"})
    expect(anyone.put(f"/box/b?{forged}", PUT_BLOB, b"x"), 403, "AuthenticationFailed")
    wrong = service_sas(account.credential, "box", sp="cw", ses="a--b")
    expect(anyone.put(f"/box/b?{wrong}", PUT_BLOB, b"x"), 403, "AuthenticationFailed")
    expect(account.put("/box/b?ses=other", PUT_BLOB, b"x"), 201)
    assert scope(account) == "mine"


def write(client: Client, kind: str, headers: dict[str, str]) -> Answer:
    """A write that creates `b`."""
    put(client, "/box/source", headers={SCOPE: "the-source"} if kind != "denied" else {})
    source = source_url(client, "/box/source")
    if kind == "list":
        return client.put("/box/b?comp=blocklist", headers, block_list())
    if kind in ("copy", "sync"):
        return copy(client, source, "/box/b", {**headers, **(SYNC if kind == "sync" else {})})
    types = {"append": "AppendBlob", "page": "PageBlob"}
    sent = {"x-ms-blob-type": types.get(kind, "BlockBlob"), **headers}
    if kind == "page":
        sent["x-ms-blob-content-length"] = "512"
    if kind == "url":
        sent["x-ms-copy-source"] = readable(client, source)
    return client.put("/box/b", sent)


@pytest.mark.parametrize("kind", ["put", "append", "page", "list", "url", "copy", "sync"])
def test_a_write_has_its_own_scope_or_the_default(account: Client, kind: str) -> None:
    """B-ENC-03, B-ENC-04."""
    made(account, {DEFAULT: "mine"})
    assert write(account, kind, {})[SCOPE] == "mine"
    assert scope(account) == "mine"
    answer = write(account, kind, {SCOPE: "other"})
    assert (answer.status in (201, 202), answer[SCOPE]) == (True, "other")
    assert scope(account) == "other"
    assert properties(blob(page(account, "box"), "b"))["EncryptionScope"] == "other"
    assert write(account, kind, {SCOPE: ACCOUNT}).status in (201, 202)
    assert scope(account) is None
    assert "EncryptionScope" not in properties(blob(page(account, "box"), "b"))


def test_a_container_that_denies_other_scopes(account: Client) -> None:
    """B-ENC-05."""
    made(account, {DEFAULT: "mine", DENY: "true"})
    for other in ("other", ACCOUNT):
        headers = {SCOPE: other}
        expect(account.put("/box/b", {**PUT_BLOB, **headers}, b"x"), 403, FORBIDDEN)
        expect(account.put(block_target("/box/b", "1"), headers, b"x"), 403, FORBIDDEN)
        expect(account.put("/box/b?comp=blocklist", headers, block_list()), 403, FORBIDDEN)
    expect(account.head("/box/b"), 404, "BlobNotFound")
    for headers in ({}, {SCOPE: "mine"}):
        expect(account.put("/box/b", {**PUT_BLOB, **headers}, b"x"), 201)
        assert scope(account) == "mine"
    metadata = account.put("/box/b?comp=metadata", {SCOPE: "other"})
    expect(metadata, 403, FORBIDDEN)
    expect(account.put("/box/b?comp=metadata", {SCOPE: "mine"}), 200)


def test_a_change_with_another_scope(account: Client) -> None:
    """B-ENC-06."""
    made(account)
    put(account, "/box/b", headers={SCOPE: "mine"})
    create(account, "/box/p", 512, {SCOPE: "mine"})
    expect(account.put("/box/a", {"x-ms-blob-type": "AppendBlob", SCOPE: "mine"}), 201)

    def changes(headers: dict[str, str]) -> list[Answer]:
        return [
            account.put("/box/b?comp=metadata", {"x-ms-meta-a": "b", **headers}),
            account.put("/box/b?comp=snapshot", headers),
            account.put("/box/a?comp=appendblock", headers, b"x"),
            send(account, "/box/p", 0, bytes(512), headers),
            account.put("/box/p?comp=properties", {"x-ms-blob-content-length": "512", **headers}),
        ]

    for other in ("other", ACCOUNT):
        for answer in changes({SCOPE: other}):
            expect(answer, 409, MISMATCH)
    for answer in changes({}):
        expect(answer, 409, UNNAMED)
    expect(clear(account, "/box/p", 0, 512), 409, UNNAMED)
    expect(account.put("/box/b?comp=blocklist", {}, block_list()), 409, UNNAMED)
    assert [answer.status for answer in changes({SCOPE: "mine"})] == [200, 201, 201, 201, 200]
    for headers in ({"x-ms-sequence-number-action": "increment"}, {"x-ms-blob-content-type": "a"}):
        expect(account.put("/box/p?comp=properties", headers), 200)
    expect(account.put("/box/a?comp=seal"), 200)
    assert [scope(account, f"/box/{name}") for name in "bpa"] == ["mine"] * 3
    expect(account.put(block_target("/box/b", "1"), {SCOPE: "other"}, b"x"), 201)
    listed = account.put("/box/b?comp=blocklist", {SCOPE: "other"}, block_list())
    assert expect(listed, 201)[SCOPE] == "other" == scope(account)


def test_a_change_where_the_container_has_a_default_scope(account: Client) -> None:
    """B-ENC-04, B-ENC-06."""
    made(account, {DEFAULT: "mine"})
    assert put(account, "/box/b")[SCOPE] == "mine"
    assert expect(account.put(block_target("/box/c", "1"), {}, b"x"), 201)[SCOPE] == "mine"
    metadata = account.put("/box/b?comp=metadata", {"x-ms-meta-a": "b"})
    assert expect(metadata, 200)[SCOPE] == "mine"
    plain = account.put("/box/b?comp=properties", {"x-ms-blob-content-type": "a"})
    assert expect(plain, 200).get(SCOPE) is None
    put(account, "/box/other", headers={SCOPE: "other"})
    expect(account.put("/box/other?comp=metadata", {"x-ms-meta-a": "b"}), 409, UNNAMED)
    assert put(account, "/box/plain", headers={SCOPE: ACCOUNT}).get(SCOPE) is None
    expect(account.put("/box/plain?comp=metadata", {"x-ms-meta-a": "b"}), 200)
