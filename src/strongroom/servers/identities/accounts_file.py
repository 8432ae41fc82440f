"""The accounts that are served: fixed ones, and those of a file that may change while we serve.

Lives here: reading an accounts file again when it has changed, and replacing it at once. Must not
live here: its format (auth/accounts.py), which accounts may be served (config.py). A key never
appears in a message.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from strongroom.account_switches import DEFAULT_SWITCHES, Switches
from strongroom.auth.accounts import Account, AccountsError, parse_document, serialise_document
from strongroom.servers.identities import private_file

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
_log = logging.getLogger(__name__)

Edit = Callable[[tuple[Account, ...]], tuple[Account, ...]]
Admit = Callable[[tuple[Account, ...]], None]
Soon = Callable[[Callable[[], None]], object]
_Seen = tuple[int, int, int, int]


def read_accounts(path: Path) -> tuple[Account, ...]:
    """The accounts of a file. Raises: FileNotFoundError, OSError, AccountsError naming the file."""
    return _parsed(path, private_file.read(path, FILE_BYTES_MAX))


def _parsed(path: Path, text: bytes | None) -> tuple[Account, ...]:
    if text is None:
        raise AccountsError(f"{path}: longer than {FILE_BYTES_MAX} bytes")
    try:
        return parse_document(text)
    except AccountsError as error:
        raise AccountsError(f"{path}: {error}") from None


def change_accounts(path: Path, edit: Edit) -> None:
    """Replace the file by what `edit` makes of its accounts (none when there is no file).

    Raises: OSError, AccountsError, whatever `edit` raises.
    """
    with private_file.changing(path) as replace:
        try:
            before = read_accounts(path)
        except FileNotFoundError:
            before = ()
        replace(serialise_document(edit(before)))


class ServedAccounts:
    """The accounts as they are now: `get` looks whether the file has changed, by a `stat`.

    A file that cannot be read, breaks a rule, or disappears is logged once and changes nothing:
    the accounts of its last good state are served on.

    Arguments:
        fixed: accounts that never change.
        file: the accounts file; it need not exist.
        fallback: served as long as there is no other account.
        admit: raises AccountsError for accounts that may not be served.
        soon: calls a function before what arrives from now on is handled (a loop's `call_soon`):
            one look then serves all the requests that are here. None: each `get` looks.

    Raises: OSError, AccountsError: the file is there and cannot be used.
    """

    def __init__(
        self,
        fixed: Iterable[Account],
        file: Path | None,
        fallback: Account | None,
        admit: Admit,
        soon: Soon | None = None,
    ) -> None:
        self._fixed = {account.name: account for account in fixed}
        self._file = file
        self._path = "" if file is None else os.fspath(file)
        self._admit = admit
        self._soon = soon
        self._looked = False
        self._seen: _Seen | None = None
        self._found: dict[str, Account] = dict(self._fixed)
        if file is not None:
            self._seen = self._stamp()
            if self._seen is not None:
                self._load(file)
        if not self._found and fallback is not None:
            self._found = {fallback.name: fallback}
        admit(self.all())

    def get(self, name: str) -> Account | None:
        """The account called `name`, or None."""
        if self._file is not None and not self._looked:
            self._look(self._file)
            if self._soon is not None:
                self._looked = True
                self._soon(self._look_again)
        return self._found.get(name)

    def switches(self, name: str) -> Switches:
        """What is switched for the account called `name`; the defaults for one that is not here."""
        account = self.get(name)
        return DEFAULT_SWITCHES if account is None else account.switches

    def _look_again(self) -> None:
        self._looked = False

    def all(self) -> tuple[Account, ...]:
        """Every account, as it was last seen."""
        return tuple(self._found.values())

    def _look(self, file: Path) -> None:
        # Most often there is none, as before; to be told so without an exception costs a third.
        if self._seen is None and not os.access(self._path, os.F_OK):
            return
        try:
            seen = self._stamp()
        except OSError:  # a directory above it was closed to us
            seen = None
        if seen == self._seen:
            return
        self._seen = seen
        if seen is None:
            _log.warning("%s is gone; the accounts that it named are served on", file)
            return
        try:
            self._load(file)
        except (OSError, AccountsError) as error:
            _log.error("the accounts stay as they were: %s", error)

    def _load(self, file: Path) -> None:
        accounts = read_accounts(file)
        self._admit(accounts)
        for account in accounts:
            if account.name in self._fixed:
                raise AccountsError(f"{file}: account {account.name!r} is given elsewhere too")
        self._found = self._fixed | {account.name: account for account in accounts}

    def _stamp(self) -> _Seen | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
