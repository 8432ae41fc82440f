"""Commands of `strongroom` that change accounts and roles, to be copied.

The console changes no key and no role itself. What the commands do is in cli/.
"""

from __future__ import annotations

import shlex
from typing import Final

from strongroom.auth.accounts import Account
from strongroom.auth.request import Service
from strongroom.auth.roles import ROLES, Assignment
from strongroom.servers.identities.accounts_file import AccountSource

PLACE_OPTIONS: Final = {
    Service.BLOB: "--container",
    Service.QUEUE: "--queue",
    Service.TABLE: "--table",
    Service.FILE: "--share",
}
_CHANGED_BY_COMMANDS: Final = ("file", "store")


def rotate_account(account: Account, source: AccountSource, has_file: bool) -> str:
    """Return the command that gives an account a new key; "" if no command can.

    Arguments:
        has_file: whether the server reads an accounts file, even if there is none yet; or the
            accounts in its store.
    """
    if source in _CHANGED_BY_COMMANDS:
        return shlex.join(("strongroom", "account", "rotate", account.name))
    return "strongroom account add NAME" if source == "development" and has_file else ""


def remove_old_key(account: Account, source: AccountSource) -> str:
    """Return the command that ends the second key; "" if there is none, or no command can."""
    if source not in _CHANGED_BY_COMMANDS or len(account.keys) < 2:
        return ""
    return shlex.join(("strongroom", "account", "remove-old-key", account.name))


def add_role(account: str) -> str:
    """Return the command that gives a role, with an example's role and a placeholder."""
    words = ("strongroom", "role", "add", "Storage Blob Data Reader", "OBJECT_ID")
    return shlex.join((*words, "--account", account))


def remove_role(one: Assignment) -> str:
    """Empty if the command line cannot name the role's resource."""
    words = ["strongroom", "role", "remove", one.role, one.principal, "--account", one.account]
    if one.resource:
        services = ROLES[one.role].services
        if len(services) != 1:
            return ""
        words += [PLACE_OPTIONS[next(iter(services))], one.resource]
    if one.principal.startswith("-"):
        return ""
    return shlex.join(words)
