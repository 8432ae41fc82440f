"""The accounts and roles in a data directory, beside the data itself.

Lives here: whether these files can be read, which accounts with data have no keys, whether an
account has data, and whether a container exists. Must not live here: the files' formats (auth/),
how a store names the accounts that have data (store/core/held_accounts.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.config import ACCOUNTS_FILE_NAME, ROLES_FILE_NAME
from strongroom.engines.findings import Finding
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
    """A sentence about the accounts that have data in a directory, but are not in its accounts
    file.

    None if there are none. Another source may serve them.
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


def may_exist(directory: Path, account: str, container: str) -> bool:
    """Return whether a container exists, as far as its data directory can be read."""
    import apsw

    from strongroom.engines.base import EngineError
    from strongroom.engines.embedded.upkeep.check import Inspection
    from strongroom.store.core import keys

    try:
        with Inspection(directory) as inspection:
            return inspection.has(keys.container(account, container))
    except (EngineError, OSError, apsw.Error):
        # Without FORMAT there is no data yet, and so no container.
        return (directory / "FORMAT").exists()


def held_data_problem(directory: Path, name: str, is_own_file: bool) -> str | None:
    """Return why an account may have data in a directory; None if it has none.

    The directory is read as a backup reads it, so a running server does not matter. It may create
    something for the account while this reads.

    Arguments:
        is_own_file: whether the accounts file is that of the directory. Then a directory that no
            server has opened yet holds no data.
    """
    import apsw

    from strongroom.engines.base import EngineError
    from strongroom.engines.embedded.disk.directory import DirectoryLayout
    from strongroom.engines.embedded.upkeep.check import Inspection
    from strongroom.store.core.held_accounts import PLACE_RANGES, held_accounts

    layout = DirectoryLayout(str(directory))
    marks = (layout.format, layout.unfinished, layout.unfinished_copy, layout.records)
    if is_own_file and not any(map(os.path.lexists, marks)):
        return None
    try:
        with Inspection(directory) as inspection:
            keyspaces = [one for bounds in PLACE_RANGES for one in inspection.keyspaces(*bounds)]
    except (EngineError, OSError, apsw.Error) as error:
        return f"whether account {name!r} has data cannot be told: {error}"
    if name not in held_accounts(keyspaces):
        return None
    return (
        f"account {name!r} has data in {directory}: containers, queues, tables or shares, or "
        "deleted ones that are kept"
    )
