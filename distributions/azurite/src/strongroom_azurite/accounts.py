"""AZURITE_ACCOUNTS, read as leniently as Azurite reads it.

Lives here: the form `NAME:KEY[:KEY2];NAME:KEY...`, and the fallback to the development account.
Must not live here: the environment itself (main.py). No value and no key appears in a text. Source:
Azurite's README, "Customized Storage Accounts & Keys"; Node.js, `Buffer.from(text, "base64")`, for
what a lenient reader of base64 leaves out.
"""

from __future__ import annotations

import base64
import string
from dataclasses import dataclass
from typing import Final

from strongroom.auth.accounts import Account, AccountsError, development_account

VARIABLE: Final = "AZURITE_ACCOUNTS"
_ALPHABET: Final = frozenset(string.ascii_letters + string.digits + "+/")
_NAME_SHOWN_CHARS: Final = 24


@dataclass(frozen=True, slots=True)
class ReadAccounts:
    """The accounts to serve, and a warning if the value could not be read; "" = it could."""

    accounts: tuple[Account, ...]
    warning: str = ""


def read_accounts(value: str) -> ReadAccounts:
    """Return the accounts of the variable's value; the development account if it has none, or if it
    cannot be read."""
    found: dict[str, Account] = {}
    for number, entry in enumerate(filter(None, value.strip().split(";")), 1):
        name, *keys = entry.split(":")
        try:
            found[name] = _account(name, keys)
        except AccountsError as error:
            return _fallback(f"{error} (entry {number})")
    if value and not found:
        return _fallback("it has no account")
    return ReadAccounts(tuple(found.values()) or (development_account(),))


def _fallback(why: str) -> ReadAccounts:
    account = development_account()
    warning = f"{VARIABLE} cannot be read: {why}. Only account {account.name!r} is served."
    return ReadAccounts((account,), warning)


def _account(name: str, keys: list[str]) -> Account:
    if not 1 <= len(keys) <= 2:
        # A text by itself, or a long one, may be a key in the wrong place.
        is_shown = keys and len(name) <= _NAME_SHOWN_CHARS
        shown = f"account {name!r}" if is_shown else "an entry that is no NAME:KEY"
        raise AccountsError(f"{shown}: write NAME:KEY or NAME:KEY1:KEY2")
    # An empty second key is none. The first is refused: everybody can sign with an empty key.
    first, *others = map(lenient_base64, keys)
    return Account(name, (first, *filter(None, others)))


def lenient_base64(text: str) -> bytes:
    """Return the bytes of base64 text, of either alphabet, padded or not.

    Characters outside of the alphabet are left out, as is a last character that is less than a
    byte. The text ends at the first `=`.
    """
    plain = text.partition("=")[0].replace("-", "+").replace("_", "/")
    digits = "".join(char for char in plain if char in _ALPHABET)
    if len(digits) % 4 == 1:
        digits = digits[:-1]
    return base64.b64decode(digits + "=" * (-len(digits) % 4))
