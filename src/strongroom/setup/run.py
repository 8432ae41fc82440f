"""One run of a setup, in the steps of a server's start.

Lives here: what happens before the accounts are read, before the store is used, and before the
server can be reached.

    read the file   ->   add its accounts and roles   ->   make what is missing in the store

See docs/setup.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from strongroom.auth.accounts import Account, Accounts, AccountsError
from strongroom.clock import Clock
from strongroom.config import (
    ROLES_FILE_NAME,
    RolesSource,
    Settings,
    SetupSource,
    accounts_in_store,
    check_exposure,
    roles_in_store,
)
from strongroom.servers.identities.accounts_file import (
    Edit,
    ServedAccounts,
    accounts_of,
    change_accounts,
    change_stored_accounts,
    read_accounts,
)
from strongroom.servers.identities.stored_rows import StoredIdentities
from strongroom.servers.service_listeners import Contexts, contexts
from strongroom.services.core.outcomes import BROKEN
from strongroom.services.core.runner import Services
from strongroom.services.identities import NOT_KEPT
from strongroom.setup.blobs import BlobsSetup
from strongroom.setup.cors import make_cors
from strongroom.setup.document import Located, SetupDocument, SetupError, parse
from strongroom.setup.files import read_setup
from strongroom.setup.identities import (
    make_roles,
    make_stored_roles,
    missing_accounts,
    report_accounts,
)
from strongroom.setup.places import PlacesSetup
from strongroom.setup.report import SetupReport, Tell
from strongroom.setup.requests import OwnRequests


@dataclass(frozen=True, slots=True)
class ReadSetup:
    """A setup that was read and checked.

    Attributes:
        folder: the folder from which its paths are seen.
    """

    document: SetupDocument
    located: Located
    folder: Path


def read(path: Path) -> ReadSetup:
    """Read and check a setup file, and the folders that it names. Raises: SetupError."""
    document, located = parse(str(path), read_setup(path))
    folder = path.resolve().parent
    for number, account in enumerate(document.accounts):
        for index, container in enumerate(account.containers):
            if container.folder is not None and not os.path.isdir(folder / container.folder):
                at: list[str | int] = ["accounts", number, "containers", index, "folder"]
                raise located.error(at, f"{folder / container.folder} is not a folder")
    return ReadSetup(document, located, folder)


async def apply(
    setup: ReadSetup,
    services: Services,
    paths: Contexts,
    accounts: Accounts,
    clock: Clock,
    report: SetupReport,
) -> None:
    """Make what is missing in the store. The accounts exist already. Raises: SetupError."""
    requests = OwnRequests(paths, accounts, clock)
    places = PlacesSetup(services, requests, report)
    blobs = BlobsSetup(requests, report, setup.folder)
    for account in setup.document.accounts:
        await make_cors(services, requests, report, account)
        await places.make_all(account)
        await blobs.make_all(account)


class SetupRun:
    """A setup file that is being applied. `tell` prints a line.

    Raises: SetupError when the file cannot be read or is wrong. Nothing has changed then.
    """

    def __init__(self, source: SetupSource, tell: Tell) -> None:
        self._variables = source.variables
        self._report = SetupReport(tell, source.overwrites)
        self._setup = read(source.file)

    def completed(self, settings: Settings, own_directory: Callable[[], Path]) -> Settings:
        """The settings with what has no file of its own: on a server in memory, the accounts, and
        the place of the roles file. What lies in a database is seen later.

        `own_directory` returns a folder that ends with the server. Raises: SetupError, ConfigError.
        """
        if not accounts_in_store(settings):
            # A key that cannot be read is told before a change.
            missing = self._missing(settings.accounts.fixed, self._in_file(settings))
            check_exposure(settings, missing)
            if settings.accounts.file is None:
                fixed = (*settings.accounts.fixed, *missing)
                settings = replace(settings, accounts=replace(settings.accounts, fixed=fixed))
        has_roles = any(one.roles is not None for one in self._setup.document.accounts)
        if has_roles and settings.roles.file is None and not roles_in_store(settings):
            file = own_directory() / ROLES_FILE_NAME
            settings = replace(settings, roles=RolesSource(file, must_exist=False))
        return settings

    async def add_identities(
        self, before: Settings, settings: Settings, stored: StoredIdentities | None
    ) -> None:
        """Add the accounts and roles that are missing to their files or to the database, and say
        so. Raises: SetupError, ConfigError.

        `before` are the settings as they were before `completed`; `stored` has what lies in the
        database.
        """
        document = self._setup.document
        if stored is not None and accounts_in_store(settings):
            added = await self._add_to_store(settings, stored)
        else:
            added = self._missing(before.accounts.fixed, self._in_file(before))
            if added and settings.accounts.file is not None:
                added = _added_to_file(settings.accounts.file, added)
        report_accounts(document, added, self._report)
        if stored is not None and roles_in_store(settings):
            await make_stored_roles(document, stored, self._report)
        elif settings.roles.file is not None:
            make_roles(document, settings.roles.file, self._report)

    async def _add_to_store(self, settings: Settings, stored: StoredIdentities) -> list[Account]:
        """Return the accounts that were added."""
        added: list[Account] = []
        try:
            known = accounts_of(stored.accounts.current)
            missing = self._missing(settings.accounts.fixed, known)
            check_exposure(settings, missing)
            if missing:
                await change_stored_accounts(stored.store, _adding(missing, added))
                await stored.read()
        except (AccountsError, *NOT_KEPT) as error:
            raise SetupError(f"{stored.place}: accounts cannot be added: {error}") from None
        return added

    def _in_file(self, settings: Settings) -> tuple[Account, ...]:
        """Return the accounts of the accounts file, which need not exist. Raises: SetupError."""
        file = settings.accounts.file
        if file is None or not file.exists():
            return ()
        try:
            return read_accounts(file)
        except (OSError, AccountsError) as error:
            raise SetupError(str(error)) from None

    def _missing(self, *known: Iterable[Account]) -> list[Account]:
        setup = self._setup
        names = {one.name: one for some in known for one in some}
        return missing_accounts(setup.document, setup.located, names, setup.folder, self._variables)

    async def apply(self, services: Services, accounts: ServedAccounts, clock: Clock) -> None:
        """Make what is missing in the store, as requests of the accounts would. Raises:
        SetupError."""
        own = contexts(services, accounts, clock)
        try:
            await apply(self._setup, services, own, accounts, clock, self._report)
        except BROKEN as error:
            raise SetupError(f"the setup cannot be completed: {error}") from None


def _added_to_file(file: Path, missing: list[Account]) -> list[Account]:
    """Return the accounts that were added. Raises: SetupError."""
    added: list[Account] = []
    try:
        change_accounts(file, _adding(missing, added))
    except (OSError, AccountsError) as error:
        raise SetupError(f"{file}: accounts cannot be added: {error}") from None
    return added


def _adding(missing: list[Account], added: list[Account]) -> Edit:
    """Return an edit that adds the accounts that are missing, and notes them in `added`. One that
    was added meanwhile keeps its keys."""

    def edit(found: tuple[Account, ...]) -> tuple[Account, ...]:
        there = {one.name for one in found}
        added[:] = [one for one in missing if one.name not in there]
        return (*found, *added)

    return edit
