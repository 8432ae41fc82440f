"""What commands do with accounts and roles, wherever these are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from strongroom.auth.accounts import Account
    from strongroom.auth.roles import Assignments
    from strongroom.servers.identities import accounts_file, roles_file


class IdentityPlace(Protocol):
    """A place of accounts and roles. What cannot be used ends the command."""

    @property
    def accounts_at(self) -> str:
        """Where the accounts are, for people."""
        ...

    @property
    def roles_at(self) -> str:
        """Where the roles are, for people."""
        ...

    @property
    def data_at(self) -> str:
        """Where the data of the accounts is, for people."""
        ...

    @property
    def seen(self) -> str:
        """A sentence about who sees a change, after a blank; "" = there is nothing to say."""
        ...

    def accounts(self) -> tuple[Account, ...]:
        """There are none if nobody has added one."""
        ...

    def change_accounts(self, edit: accounts_file.Edit) -> None:
        """Replace all accounts by those that `edit` returns. It may be called again if another
        command changes them at the same time."""
        ...

    def roles(self) -> Assignments: ...

    def change_roles(self, edit: roles_file.Edit) -> None:
        """As `change_accounts`."""
        ...

    def held_data_problem(self, name: str) -> str | None:
        """Return why an account may have data; None if it has none."""
        ...

    def may_exist(self, account: str, container: str) -> bool:
        """Return whether a container exists, as far as that can be told."""
        ...
