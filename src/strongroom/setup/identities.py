"""The accounts and roles of a setup, in the files or the database that the server reads them from.

Lives here: what is added there, and what is compared. Must not live here: the formats (auth/), how
they are changed (servers/identities/), where they lie (app.py). Keys never change here, and are
never printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from strongroom.auth.accounts import (
    DEVELOPMENT_ACCOUNT_NAME,
    Account,
    AccountsError,
    development_account,
    parse_account,
)
from strongroom.auth.roles import Assignment, Assignments, RolesError
from strongroom.servers.identities.roles_file import (
    change_roles,
    change_stored_roles,
    read_roles,
    roles_of,
)
from strongroom.servers.identities.stored_rows import StoredIdentities
from strongroom.services.identities import NOT_KEPT
from strongroom.setup.document import AccountSetup, Located, SetupDocument, SetupError
from strongroom.setup.files import read_key
from strongroom.setup.report import SetupReport


def missing_accounts(
    document: SetupDocument,
    located: Located,
    known: Mapping[str, Account],
    folder: Path,
    environment: Mapping[str, str],
) -> list[Account]:
    """The accounts of the file that are not known, with their keys. Raises: SetupError.

    `known` are those that are given elsewhere, or are in the accounts file. The file's paths are
    seen from `folder`.
    """
    return [
        _account(number, one, located, folder, environment)
        for number, one in enumerate(document.accounts)
        if one.name not in known
    ]


def _account(
    number: int,
    wanted: AccountSetup,
    located: Located,
    folder: Path,
    environment: Mapping[str, str],
) -> Account:
    at: list[str | int] = ["accounts", number]
    if not wanted.keys and wanted.name == DEVELOPMENT_ACCOUNT_NAME:
        return development_account()
    if not wanted.keys:
        raise located.error(at, f"there is no account {wanted.name!r} yet, so it needs keys")
    keys = []
    for index, given in enumerate(wanted.keys):
        try:
            keys.append(read_key(given, folder, environment))
        except SetupError as error:
            raise located.error([*at, "keys", index], str(error)) from None
    try:
        return parse_account(":".join([wanted.name, *keys]))
    except AccountsError as error:
        raise located.error(at, str(error)) from None


def report_accounts(document: SetupDocument, created: list[Account], report: SetupReport) -> None:
    """Say which accounts were created, and which were left."""
    names = {one.name for one in created}
    for one in document.accounts:
        if one.name in names:
            report.created(f"account {one.name}")
        else:
            report.left(f"account {one.name}: it keeps its keys")


class _WantedRoles:
    """The roles of a setup, beside those that there are.

    With `--setup-overwrite`, an account of which the setup speaks has those of the setup and no
    others.
    """

    def __init__(self, document: SetupDocument, report: SetupReport) -> None:
        self.spoken_of = {one.name for one in document.accounts if one.roles is not None}
        self._wanted = [
            role.assignment(one.name) for one in document.accounts for role in one.roles or ()
        ]
        self._report = report

    def after(self, before: Assignments) -> Assignments:
        overwrites = self._report.overwrites
        wanted = self._wanted
        kept = tuple(
            one
            for one in before
            if not overwrites or one.account not in self.spoken_of or one in wanted
        )
        return (*kept, *(one for one in wanted if one not in kept))

    def tell(self, before: Assignments) -> None:
        """Say what was made, what was left, and what differs."""
        report = self._report
        for one in self._wanted:
            (report.left if one in before else report.created)(_text(one))
        for one in before:
            if one.account in self.spoken_of and one not in self._wanted:
                if report.overwrites:
                    report.set(f"{_text(one)} is taken back, since it is not in the file")
                else:
                    report.differs(f"{_text(one)} is not in the file")


def make_roles(document: SetupDocument, path: Path, report: SetupReport) -> None:
    """Add the roles that are missing to the file, which need not exist. Raises: SetupError."""
    wanted = _WantedRoles(document, report)
    if not wanted.spoken_of:
        return
    try:
        before = read_roles(path) if path.exists() else ()
        if wanted.after(before) != before:
            change_roles(path, wanted.after)
    except (OSError, RolesError) as error:
        raise SetupError(f"{path}: the roles cannot be changed: {error}") from None
    wanted.tell(before)


async def make_stored_roles(
    document: SetupDocument, stored: StoredIdentities, report: SetupReport
) -> None:
    """Add the roles that are missing to the database. Raises: SetupError."""
    wanted = _WantedRoles(document, report)
    if not wanted.spoken_of:
        return
    try:
        before = roles_of(stored.roles.current)
        if wanted.after(before) != before:
            await change_stored_roles(stored.store, wanted.after)
            await stored.read()
    except (RolesError, *NOT_KEPT) as error:
        raise SetupError(f"{stored.place}: the roles cannot be changed: {error}") from None
    wanted.tell(before)


def _text(one: Assignment) -> str:
    where = f"{one.account}/{one.resource}" if one.resource else one.account
    return f"role {one.role} of {one.principal} in {where}"
