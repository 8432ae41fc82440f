"""Accounts and roles in files, beside the data directory or elsewhere.

Lives here: reading and changing them for commands. Must not live here: the files' formats (auth/)
and replacement (servers/identities/), whether an account has data (private_files.py).
"""

from __future__ import annotations

from pathlib import Path

from strongroom.auth.accounts import Account, AccountsError
from strongroom.auth.roles import Assignments, RolesError
from strongroom.cli.exits import Exit, fail
from strongroom.cli.private_files import held_data_problem, may_exist
from strongroom.config import ACCOUNTS_FILE_NAME, ROLES_FILE_NAME
from strongroom.servers.identities import accounts_file, roles_file


class FilesPlace:
    """See IdentityPlace.

    Arguments:
        data: the data directory, in which the files are that are not named.
    """

    seen = ""

    def __init__(
        self, data: Path, accounts_file: Path | None = None, roles_file: Path | None = None
    ) -> None:
        self._data = data
        self._is_own_file = accounts_file is None
        self.accounts_file = accounts_file or data / ACCOUNTS_FILE_NAME
        self.roles_file = roles_file or data / ROLES_FILE_NAME
        self.accounts_at = str(self.accounts_file)
        self.roles_at = str(self.roles_file)
        self.data_at = str(data)

    def accounts(self) -> tuple[Account, ...]:
        try:
            return accounts_file.read_accounts(self.accounts_file)
        except FileNotFoundError:
            return ()
        except (OSError, AccountsError) as error:
            fail(Exit.SETTINGS, str(error))

    def change_accounts(self, edit: accounts_file.Edit) -> None:
        try:
            accounts_file.change_accounts(self.accounts_file, edit)
        except (OSError, AccountsError) as error:
            fail(Exit.SETTINGS, str(error))

    def roles(self) -> Assignments:
        try:
            return roles_file.read_roles(self.roles_file)
        except FileNotFoundError:
            return ()
        except (OSError, RolesError) as error:
            fail(Exit.SETTINGS, str(error))

    def change_roles(self, edit: roles_file.Edit) -> None:
        try:
            roles_file.change_roles(self.roles_file, edit)
        except (OSError, RolesError) as error:
            fail(Exit.SETTINGS, str(error))

    def held_data_problem(self, name: str) -> str | None:
        return held_data_problem(self._data, name, self._is_own_file)

    def may_exist(self, account: str, container: str) -> bool:
        return may_exist(self._data, account, container)
