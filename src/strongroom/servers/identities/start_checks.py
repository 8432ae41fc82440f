"""What a start compares: the accounts and roles that are served with those that the data needs.

Lives here: the refusal to serve the known key beside data of other accounts, or to leave a file
aside that nothing replaces; and warnings. Must not live here: which accounts are served
(accounts_file.py), where accounts are found in a store (store/core/held_accounts.py).
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path

from strongroom.auth.accounts import AccountsError
from strongroom.servers.identities.accounts_file import ServedAccounts
from strongroom.servers.identities.stored_rows import StoredRows

_log = logging.getLogger(__name__)


def warn_of_unused_roles(file: Path | None) -> None:
    """Warn of a roles file on a server that accepts no bearer tokens."""
    if file is not None and file.exists():
        _log.warning(
            "%s is not used: bearer tokens are refused without --oauth-issuer and --oauth-keys",
            file,
        )


def check_unused_file(flag: str, file: Path | None, rows: StoredRows, database: str) -> None:
    """Warn of a file of accounts or roles that is not read, since they lie in the store.

    Arguments:
        flag: names such a file.
        file: would be read without a database; None = there is none.
        database: the flags by which commands name the database.

    Raises: ValueError if nothing was ever put into the store. The file was then forgotten.
    """
    if file is None or not file.exists():
        return
    if rows.current.version is not None:
        _log.warning("%s is not used: with --store, accounts and roles lie in the store", file)
        return
    data = shlex.quote(str(file.parent))
    raise ValueError(
        f"with --store, accounts and roles lie in the store, and it has none: {file} would not be "
        f"used. Put it into the store: strongroom account import --data {data} {database}. Or let "
        f"the server read the file: {flag} {shlex.quote(str(file))}"
    )


def check_held_accounts(
    held: Sequence[str], accounts: ServedAccounts, data: Path, place: str
) -> None:
    """Warn of accounts that have data and are not served.

    Arguments:
        data: the folder with the accounts file.
        place: where their data is, as a text: that folder, or a database.

    Raises: AccountsError when other accounts have data, and the development account is served only
        because no account was given.
    """
    served = {account.name for account in accounts.all()}
    others = [name for name in held if name not in served]
    if others and accounts.is_fallback:
        if accounts.rows is not None:
            raise AccountsError(_without_stored_accounts(place, others))
        raise AccountsError(_without_accounts(data, place, accounts.file, others))
    if others:
        _log.warning(
            "%s has data of accounts that are not served: %s; strongroom account add NAME serves "
            "one again, with a new key",
            place,
            ", ".join(others),
        )


def _without_accounts(data: Path, place: str, file: Path | None, others: Sequence[str]) -> str:
    return (
        f"{place} has data of other accounts ({', '.join(others)}), and no account is given: there "
        f"is no {file or 'accounts file'}. The development account, whose key everybody knows, is "
        "not served there by default. Put your copy of the accounts file back; or make the account "
        f"again, with a new key: strongroom account add {others[0]} --data {data}. To serve the "
        "development account, name it by --account."
    )


def _without_stored_accounts(place: str, others: Sequence[str]) -> str:
    return (
        f"{place} has data of other accounts ({', '.join(others)}), and no account. The "
        "development account, whose key everybody knows, is not served there by default. Put your "
        "accounts file into the store: strongroom account import --accounts-file FILE --store URL; "
        "or make the account again, with a new key: strongroom account add "
        f"{others[0]} --store URL. To serve the development account, name it by --account."
    )
