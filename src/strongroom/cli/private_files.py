"""What `doctor` says of the accounts and roles in a data directory.

Lives here: whether these files can be read, and which accounts with data have no keys. Must not
live here: the files' formats (auth/), what accounts have data (store/core/held_accounts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.config import ACCOUNTS_FILE_NAME, ROLES_FILE_NAME
from strongroom.engines.embedded.check import Finding
from strongroom.servers.identities.accounts_file import read_accounts
from strongroom.servers.identities.roles_file import read_roles


def damaged_files(directory: Path) -> Iterator[Finding]:
    """Yield the files of accounts and roles that exist and cannot be used."""
    readers: tuple[tuple[str, Callable[[Path], object]], ...] = (
        (ACCOUNTS_FILE_NAME, read_accounts),
        (ROLES_FILE_NAME, read_roles),
    )
    for name, read in readers:
        try:
            read(directory / name)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            yield Finding(name, f"it cannot be used: {error}")


def accounts_without_keys(directory: Path, held: Sequence[str]) -> str | None:
    """Return a sentence about the accounts that have data in a directory, but are not in its
    accounts file; None if there are none. Another source may serve them.

    Arguments:
        held: the accounts with data.
    """
    try:
        known = {account.name for account in read_accounts(directory / ACCOUNTS_FILE_NAME)}
    except FileNotFoundError:
        known = {DEVELOPMENT_ACCOUNT_NAME}
    except (OSError, ValueError):
        return None  # a finding already
    missing = [name for name in held if name not in known]
    if not missing:
        return None
    return (
        f"{ACCOUNTS_FILE_NAME} does not have these accounts, which have data here: "
        f"{', '.join(missing)}. Put your copy of the file back, unless the server gets them by "
        "--account, --accounts-file or STRONGROOM_ACCOUNTS."
    )
