"""The accounts that are served: fixed ones, and those of a file or of the store, which may change.

Lives here: the union of both. Must not live here: the formats (auth/accounts.py), how changes are
found and made (identities/private_file.py, identities/stored_rows.py), which accounts may be served
(config.py). A key never appears in a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

from strongroom.account_switches import DEFAULT_SWITCHES, Switches
from strongroom.auth.accounts import (
    Account,
    AccountsError,
    parse_document,
    parse_row,
    serialise_document,
    serialise_row,
)
from strongroom.servers.identities import private_file
from strongroom.servers.identities.private_file import RowsFormat, WatchedFile
from strongroom.servers.identities.stored_rows import StoredRows, WatchedRows
from strongroom.services.identities import IdentityRows, StoreIdentities

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
_FORMAT: Final = RowsFormat(FILE_BYTES_MAX, parse_document, serialise_document, AccountsError)

Edit = Callable[[tuple[Account, ...]], tuple[Account, ...]]
Admit = Callable[[tuple[Account, ...]], None]
CallSoon = Callable[[Callable[[], None]], object]
AccountSource = Literal["file", "store", "start", "development"]
"""Where a served account comes from: the accounts file, the store, a setting of the start, or the
fallback."""


def read_accounts(path: Path) -> tuple[Account, ...]:
    """Raises: FileNotFoundError, OSError; AccountsError with the file's name."""
    return private_file.read(path, FILE_BYTES_MAX, parse_document, AccountsError)


def change_accounts(path: Path, edit: Edit) -> None:
    """Replace the accounts by those that `edit` returns. It gets none if there is no file."""
    private_file.change(path, _FORMAT, edit)


def accounts_of(rows: IdentityRows) -> tuple[Account, ...]:
    """Return the accounts in a store. Raises: AccountsError."""
    return tuple(parse_row(name, text) for name, text in rows.rows.items())


async def change_stored_accounts(store: StoreIdentities, edit: Edit) -> None:
    """Replace the accounts of a store by those that `edit` returns. `edit` is called again if
    another change comes between. Raises: AccountsError, and as NOT_KEPT says."""

    def edited(rows: Mapping[str, bytes]) -> dict[str, bytes]:
        accounts = edit(accounts_of(IdentityRows(rows=rows)))
        return {account.name: serialise_row(account) for account in accounts}

    await store.accounts.edit(edited)


class ServedAccounts:
    """The current accounts.

    A file that cannot be read, is invalid, or is deleted is logged once and changes nothing. The
    accounts of its last valid state are still served. The same holds for accounts in the store.

    Arguments:
        fixed: accounts that never change.
        file: the accounts file; it need not exist.
        fallback: the account that is served while there is no other account.
        admit: raises AccountsError for accounts that may not be served.
        call_soon: calls a function in the next turn of the loop, as a loop's `call_soon` does. The
            file is then checked once for all requests of one turn. None: each `get` checks the
            file.
        rows: the accounts in the store, in place of a file.

    Attributes:
        file: the accounts file; None = there is none.
        rows: as given; None = accounts are not in the store.

    Raises: OSError, AccountsError: the file exists, or there are rows, and cannot be used.
    """

    def __init__(
        self,
        fixed: Iterable[Account],
        file: Path | None,
        fallback: Account | None,
        admit: Admit,
        call_soon: CallSoon | None = None,
        *,
        rows: StoredRows | None = None,
    ) -> None:
        self._fixed = {account.name: account for account in fixed}
        self._admit = admit
        self._call_soon = call_soon
        self._is_checked_this_turn = False
        self.file = file
        self.rows = rows
        self._found = dict(self._fixed)
        self._is_fallback = False
        self._fallback = fallback
        if not self._found and fallback is not None:
            self._is_fallback = not _has_any(file, rows)
            self._found = {fallback.name: fallback}
        self._kept: WatchedFile[dict[str, Account]] | WatchedRows[dict[str, Account]] | None = None
        if rows is not None:
            self._kept = WatchedRows(rows, self._load_rows, self._found, outlives_rows=True)
        elif file is not None:
            self._kept = WatchedFile(file, self._load, self._found, outlives_file=True)
        admit(self.all())

    def get(self, name: str) -> Account | None:
        if not self._is_checked_this_turn:
            self._check()
        return self._found.get(name)

    def _check(self) -> None:
        if self._kept is None:
            return
        self._found = self._kept.get()
        if self._call_soon is not None:
            self._is_checked_this_turn = True
            self._call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._is_checked_this_turn = False

    def switches(self, name: str) -> Switches:
        """The defaults if there is no such account."""
        account = self.get(name)
        return DEFAULT_SWITCHES if account is None else account.switches

    @property
    def is_fallback(self) -> bool:
        """Whether no account was given anywhere at the start, so that the fallback is served."""
        return self._is_fallback

    def all(self) -> tuple[Account, ...]:
        if not self._is_checked_this_turn:
            self._check()
        return tuple(self._found.values())

    def source_of(self, name: str) -> AccountSource:
        if name in self._fixed:
            return "start"
        is_fallback = self._fallback is not None and self._found.get(name) is self._fallback
        if is_fallback:
            return "development"
        return "file" if self.rows is None else "store"

    def _load(self, file: Path) -> dict[str, Account]:
        return self._beside_fixed(read_accounts(file), str(file))

    def _load_rows(self, rows: IdentityRows) -> dict[str, Account]:
        assert self.rows is not None
        return self._beside_fixed(accounts_of(rows), self.rows.shown)

    def _beside_fixed(self, accounts: tuple[Account, ...], place: str) -> dict[str, Account]:
        self._admit(accounts)
        for account in accounts:
            if account.name in self._fixed:
                raise AccountsError(f"{place}: account {account.name!r} is given elsewhere too")
        return self._fixed | {account.name: account for account in accounts}


def _has_any(file: Path | None, rows: StoredRows | None) -> bool:
    """Whether accounts were given outside of the settings of the start."""
    if rows is not None:
        return bool(rows.current.rows)
    return file is not None and file.exists()
