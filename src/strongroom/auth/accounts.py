"""Accounts and their keys: the value, its text forms, and the HMAC that a key makes.

A key never appears in an error or a repr. Source: "Manage storage account access keys" (two keys,
so that one can be replaced while the other stays valid) and "Authorize with Shared Key"
(HMAC-SHA256).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from strongroom.account_switches import DEFAULT_SWITCHES, Switches

DEVELOPMENT_ACCOUNT_NAME: Final = "devstoreaccount1"
# Published for every emulator of this protocol (UseDevelopmentStorage=true): no secret.
DEVELOPMENT_ACCOUNT_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
GENERATED_KEY_BYTES: Final = 64
KEYS_MAX: Final = 2

_NAME: Final = re.compile(r"[a-z0-9]{3,24}")
# What a URL and a record can hold. Programs that serve emulators' users take such names.
_USABLE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_NAME_CHARS_MAX: Final = 24
_BLOCK_BYTES: Final = hashlib.sha256().block_size
# RFC 2104's two pads, as tables for bytes.translate.
_INNER_PAD: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER_PAD: Final = bytes(byte ^ 0x5C for byte in range(256))


class AccountsError(ValueError):
    """The text says what is wrong and where, without keys."""


class Signer:
    """HMAC-SHA256 under one decoded key, with the key's two pads absorbed once (RFC 2104)."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        short = hashlib.sha256(key).digest() if len(key) > _BLOCK_BYTES else key
        block = short.ljust(_BLOCK_BYTES, b"\0")
        self._inner = hashlib.sha256(block.translate(_INNER_PAD))
        self._outer = hashlib.sha256(block.translate(_OUTER_PAD))

    def sign(self, message: bytes) -> bytes:
        """The signature as sent on the wire: base64, 44 characters."""
        inner = self._inner.copy()
        inner.update(message)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return binascii.b2a_base64(outer.digest(), newline=False)


def signing_key(signers: Sequence[Signer], message: bytes, given: bytes) -> int:
    """The number, from 1 on, of the key whose signature of `message` is `given`; 0 if none is.

    The texts are compared, not the decoded values, since base64 has several texts for one value.
    """
    for number, signer in enumerate(signers, 1):
        if hmac.compare_digest(signer.sign(message), given):
            return number
    return 0


@dataclass(frozen=True, slots=True)
class Account:
    """A storage account. It has one or two decoded `keys`, each of which signs.

    The name has up to 63 letters, digits, dots, hyphens and underscores. `named_account` makes
    accounts with the names that Azure permits.
    """

    name: str
    # Caches look accounts up by hash; the name is enough for that.
    keys: tuple[bytes, ...] = field(repr=False, hash=False)
    switches: Switches = field(default=DEFAULT_SWITCHES, hash=False)
    signers: tuple[Signer, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not _USABLE_NAME.fullmatch(self.name):
            raise AccountsError(
                f"account name {_quoted_name(self.name)}: it must have 1 to 63 letters, digits, "
                "dots, hyphens or underscores"
            )
        if not 1 <= len(self.keys) <= KEYS_MAX:
            raise AccountsError(f"account {self.name!r}: it must have one or two keys")
        if not all(self.keys):
            raise AccountsError(f"account {self.name!r}: a key is empty")
        problem = self.switches.problem()
        if problem is not None:
            raise AccountsError(f"account {self.name!r}: {problem}")
        object.__setattr__(self, "signers", tuple(Signer(key) for key in self.keys))

    def rotated(self, key: bytes) -> Account:
        """`key` comes first; the previous first key stays valid as the second."""
        return Account(self.name, (key, self.keys[0]), self.switches)

    def without_old_key(self) -> Account:
        return Account(self.name, self.keys[:1], self.switches)

    def switched(self, switches: Switches) -> Account:
        return Account(self.name, self.keys, switches)


class Accounts(Protocol):
    """An implementation may reload the accounts between two calls."""

    def get(self, name: str) -> Account | None: ...


def named_account(name: str, keys: tuple[bytes, ...]) -> Account:
    """Refuse what Azure does not permit as a name, unlike `Account`."""
    if not _NAME.fullmatch(name):
        raise AccountsError(
            f"account name {_quoted_name(name)}: it must have 3 to 24 lower-case letters or digits"
        )
    return Account(name, keys)


def development_account() -> Account:
    """The well-known account of emulators. Its key is public, so it protects nothing."""
    return Account(DEVELOPMENT_ACCOUNT_NAME, (base64.b64decode(DEVELOPMENT_ACCOUNT_KEY),))


def parse_account(text: str) -> Account:
    """Parse `NAME:KEY[:KEY2]`, with keys in base64."""
    name, *keys = text.strip().split(":")
    return _account(name, keys)


def parse_accounts(text: str) -> tuple[Account, ...]:
    """Parse `NAME:KEY[:KEY2];NAME:KEY...`, the form of Azurite's AZURITE_ACCOUNTS."""
    return _distinct(parse_account(entry) for entry in text.split(";") if entry.strip())


class _AccountRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    keys: tuple[str, ...]
    switches: Switches = DEFAULT_SWITCHES


class _AccountsDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    accounts: tuple[_AccountRow, ...]


def parse_document(text: bytes) -> tuple[Account, ...]:
    """Parse an accounts file: `{"accounts": [{"name": ..., "keys": [base64, ...]}]}`.

    A row may have `switches` too: the fields of `Switches` that differ from their defaults.
    """
    try:
        document = msgspec.json.decode(text, type=_AccountsDocument)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AccountsError(f"the accounts document cannot be read: {error}") from None
    return _distinct(map(_account_of, document.accounts))


def serialise_document(accounts: Iterable[Account]) -> bytes:
    rows = tuple(map(_row, accounts))
    return msgspec.json.format(msgspec.json.encode(_AccountsDocument(rows)), indent=2) + b"\n"


def parse_row(name: str, text: bytes) -> Account:
    """Parse one row of an accounts document. `name` is where it was found, and must be its name."""
    try:
        account = _account_of(msgspec.json.decode(text, type=_AccountRow))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AccountsError(f"account {_quoted_name(name)} cannot be read: {error}") from None
    if account.name != name:
        raise AccountsError(f"account {_quoted_name(account.name)}: it is kept as another one")
    return account


def serialise_row(account: Account) -> bytes:
    return msgspec.json.encode(_row(account))


def _row(account: Account) -> _AccountRow:
    keys = tuple(base64.b64encode(key).decode() for key in account.keys)
    return _AccountRow(account.name, keys, account.switches)


def _account_of(row: _AccountRow) -> Account:
    return _account(row.name, list(row.keys)).switched(row.switches)


def _account(name: str, keys: list[str]) -> Account:
    return named_account(name, tuple(_key(name, number, key) for number, key in enumerate(keys, 1)))


def _key(name: str, number: int, text: str) -> bytes:
    try:
        return base64.b64decode(text.strip(), validate=True)
    except ValueError:
        raise AccountsError(f"account {_quoted_name(name)}: key {number} is not base64") from None


def _quoted_name(name: str) -> str:
    """A name that is too long may be a key in the wrong place, so it is not shown."""
    return repr(name) if len(name) <= _NAME_CHARS_MAX else f"of {len(name)} characters"


def _distinct(accounts: Iterable[Account]) -> tuple[Account, ...]:
    by_name: dict[str, Account] = {}
    for account in accounts:
        if account.name in by_name:
            raise AccountsError(f"account {account.name!r} is given twice")
        by_name[account.name] = account
    if not by_name:
        raise AccountsError("no account is given")
    return tuple(by_name.values())
