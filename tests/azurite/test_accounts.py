"""AZURITE_ACCOUNTS is read as leniently as Azurite reads it, and no value is ever shown."""

from __future__ import annotations

import base64

import pytest

from strongroom.auth.accounts import development_account
from strongroom_azurite.accounts import lenient_base64, read_accounts

KEY = base64.b64encode(b"a key that nobody knows").decode()


# What Node's Buffer.from(text, "base64") returns, tried with Node 20.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("YWJj", "616263"),
        ("abc", "69b7"),
        ("a", ""),
        ("YQ==YQ==", "61"),
        ("YW Jj", "616263"),
        ("YW!Jj", "616263"),
        ("-_-_", "fbffbf"),
        ("==YQ", ""),
        ("YWJjZ", "616263"),
        ("é", ""),
    ],
)
def test_base64_is_read_as_node_reads_it(text: str, expected: str) -> None:
    assert lenient_base64(text).hex() == expected


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("", ["devstoreaccount1"]),
        (f"one:{KEY}", ["one"]),
        (f"one:{KEY};two:{KEY}:{KEY};", ["one", "two"]),
        ("x:abc", ["x"]),
        (f"my-account:{KEY}", ["my-account"]),
        (f"My.Account_2:{KEY}", ["My.Account_2"]),
        (f"  one:{KEY}:  ", ["one"]),
        (f"one:abcd;one:{KEY}", ["one"]),
    ],
)
def test_names_that_azure_refuses_are_served(value: str, names: list[str]) -> None:
    read = read_accounts(value)
    assert [account.name for account in read.accounts] == names
    assert read.warning == ""


def test_both_keys_sign_and_an_empty_second_one_is_none() -> None:
    [account] = read_accounts("one:YWJj:ZGVm").accounts
    assert account.keys == (b"abc", b"def")
    [account] = read_accounts("one:YWJj:").accounts
    assert account.keys == (b"abc",)


def test_the_last_entry_of_a_name_counts() -> None:
    [account] = read_accounts("one:YWJj;one:ZGVm").accounts
    assert account.keys == (b"def",)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("secret", "an entry that is no NAME:KEY: write NAME:KEY"),
        (f"one:{KEY}:{KEY}:{KEY}", "account 'one': write NAME:KEY"),
        (f"good:{KEY};two:", "account 'two': a key is empty (entry 2)"),
        (f":{KEY}", "account name ''"),
        (f"a/b:{KEY}", "account name 'a/b'"),
        (";;", "it has no account"),
        (KEY, "an entry that is no NAME:KEY"),
        (f"{KEY}:one:two:three", "an entry that is no NAME:KEY"),
    ],
)
def test_what_cannot_be_read_falls_back_with_a_warning(value: str, words: str) -> None:
    read = read_accounts(value)
    assert read.accounts == (development_account(),)
    assert "AZURITE_ACCOUNTS cannot be read: " in read.warning and words in read.warning
    assert "Only account 'devstoreaccount1' is served" in read.warning
    assert KEY[:-2] not in read.warning and "secret" not in read.warning
