"""The accounts and roles of a setup, in the files that the server reads them from.

Lives here: what is added to these files, and what is compared. Must not live here: the files'
formats (auth/), their replacement (servers/identities/), where they lie (app.py). Keys never change
here, and are never printed.
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
from strongroom.servers.identities.roles_file import change_roles, read_roles
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


def make_roles(document: SetupDocument, path: Path, report: SetupReport) -> None:
    """Add the roles that are missing to the file, which need not exist. Raises: SetupError.

    With `--setup-overwrite`, an account of which the file speaks has those of the file and no
    others.
    """
    spoken_of = {one.name for one in document.accounts if one.roles is not None}
    if not spoken_of:
        return
    wanted = [role.assignment(one.name) for one in document.accounts for role in one.roles or ()]
    try:
        before = read_roles(path) if path.exists() else ()
        after = _after(before, wanted, spoken_of, report.overwrites)
        if after != before:
            change_roles(path, lambda found: _after(found, wanted, spoken_of, report.overwrites))
    except (OSError, RolesError) as error:
        raise SetupError(f"{path}: the roles cannot be changed: {error}") from None
    _report_roles(before, wanted, spoken_of, report)


def _after(
    before: Assignments, wanted: list[Assignment], spoken_of: set[str], overwrites: bool
) -> Assignments:
    kept = tuple(
        one for one in before if not overwrites or one.account not in spoken_of or one in wanted
    )
    return (*kept, *(one for one in wanted if one not in kept))


def _report_roles(
    before: Assignments, wanted: list[Assignment], spoken_of: set[str], report: SetupReport
) -> None:
    for one in wanted:
        (report.left if one in before else report.created)(_text(one))
    for one in before:
        if one.account in spoken_of and one not in wanted:
            if report.overwrites:
                report.set(f"{_text(one)} is taken back, since it is not in the file")
            else:
                report.differs(f"{_text(one)} is not in the file")


def _text(one: Assignment) -> str:
    where = f"{one.account}/{one.resource}" if one.resource else one.account
    return f"role {one.role} of {one.principal} in {where}"
