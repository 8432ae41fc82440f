"""Accounts: their text forms, their refusals, and that no key appears in a message."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.account_switches import Switches
from strongroom.auth.accounts import (
    DEVELOPMENT_ACCOUNT_KEY,
    Account,
    AccountsError,
    Signer,
    development_account,
    named_account,
    parse_account,
    parse_accounts,
    parse_document,
    serialise_document,
)

K1, K2 = (base64.b64encode(text).decode() for text in (b"first key", b"second key"))
LONG = base64.b64encode(bytes(64)).decode()


def test_the_form_of_azurite() -> None:
    found = parse_accounts(f"account1:{K1}:{K2};account2:{K2};")
    assert found == (
        Account("account1", (b"first key", b"second key")),
        Account("account2", (b"second key",)),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no account"),
        (" ; ", "no account"),
        (f"ab:{K1}", "'ab'"),
        (f"{'a' * 25}:{K1}", "3 to 24"),
        (f"Account:{K1}", "lower-case"),
        (f"acc-ount:{K1}", "lower-case"),
        (f"acc\u0663:{K1}", "lower-case"),
        ("account1", "one or two keys"),
        (f"account1:{K1}:{K2}:{K1}", "one or two keys"),
        ("account1:", "empty"),
        (f"account1:{K1}:not base64!", "key 2 is not base64"),
        (f"account1:{K1};account1:{K2}", "twice"),
    ],
)
def test_bad_accounts_are_refused_without_their_keys(text: str, says: str) -> None:
    with pytest.raises(AccountsError) as caught:
        parse_accounts(text)
    assert says in str(caught.value)
    assert K1 not in str(caught.value)
    assert "not base64!" not in str(caught.value)


@pytest.mark.parametrize("text", [f"orders={LONG}", LONG, f"{LONG}:orders", f"{LONG}:{K1}"])
def test_a_key_in_the_place_of_the_name_is_not_told(text: str) -> None:
    with pytest.raises(AccountsError) as caught:
        parse_accounts(text)
    assert LONG not in str(caught.value)


def test_the_development_account() -> None:
    account = development_account()
    assert account.name == "devstoreaccount1"
    assert account.keys == (base64.b64decode(DEVELOPMENT_ACCOUNT_KEY),)
    assert len(account.keys[0]) == 64


def test_no_key_in_a_repr() -> None:
    account = parse_account(f"account1:{K1}")
    assert "first" not in repr(account)
    assert "account1" in repr(account)


def test_the_document_keeps_what_it_is_given() -> None:
    accounts = parse_accounts(f"account1:{K1}:{K2};account2:{K2}")
    assert parse_document(serialise_document(accounts)) == accounts


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"accounts": []}',
        b'{"accounts": [{"name": "account1"}]}',
        b'{"accounts": [{"name": "account1", "keys": []}]}',
        b'{"accounts": [{"name": "account1", "keys": ["*"]}]}',
        b'{"accounts": [{"name": "account1", "keys": ["a2V5"], "key": "a2V5"}]}',
        b'{"accounts": [{"name": "account1", "keys": ["a2V5"]}], "more": 1}',
        b'{"accounts": [{"name": "\xff", "keys": ["a2V5"]}]}',
    ],
)
def test_bad_documents_are_refused(text: bytes) -> None:
    with pytest.raises(AccountsError):
        parse_document(text)


def test_rotation_keeps_the_key_that_was_first() -> None:
    account = parse_account(f"account1:{K1}:{K2}")
    rotated = account.rotated(b"new")
    assert rotated.keys == (b"new", b"first key")
    assert rotated.without_old_key().keys == (b"new",)


@given(key=st.binary(min_size=1, max_size=200), message=st.binary(max_size=300))
def test_the_signer_is_hmac_sha256(key: bytes, message: bytes) -> None:
    signer = Signer(key)
    for _ in range(2):
        assert base64.b64decode(signer.sign(message)) == hmac.digest(key, message, hashlib.sha256)


def test_switches_are_kept_and_bad_ones_refused() -> None:
    account = Account("account1", (b"key",)).switched(Switches("BlobStorage", 7))
    assert parse_document(serialise_document([account])) == (account,)
    assert account.rotated(b"new").without_old_key().switches == account.switches
    row = '{"accounts": [{"name": "account1", "keys": ["a2V5"], "switches": %s}]}'
    for wrong in (
        '{"kind": "Tape"}',
        '{"container_retention_days": 366}',
        '{"container_retention_days": -1}',
        '{"share_retention_days": 366}',
        '{"container_retention_days": "7"}',
        '{"versioning": "on"}',
        '{"versions": true}',
    ):
        with pytest.raises(AccountsError):
            parse_document((row % wrong).encode())


@pytest.mark.parametrize("name", ["x", "my-account", "My.Account_1", "a" * 63])
def test_an_account_may_have_a_name_that_azure_refuses_but_no_text_gives_it(name: str) -> None:
    assert Account(name, (b"key",)).name == name
    with pytest.raises(AccountsError, match="3 to 24 lower-case letters or digits"):
        named_account(name, (b"key",))
    with pytest.raises(AccountsError, match="3 to 24 lower-case letters or digits"):
        parse_account(f"{name}:a2V5")
    document = serialise_document([Account(name, (b"key",))])
    with pytest.raises(AccountsError, match="3 to 24 lower-case letters or digits"):
        parse_document(document)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "-a", "a" * 64, "\x00", "é", "a\n", "a:b"])
def test_a_name_that_urls_and_records_cannot_hold_is_no_account(name: str) -> None:
    with pytest.raises(AccountsError, match="1 to 63 letters"):
        Account(name, (b"key",))
