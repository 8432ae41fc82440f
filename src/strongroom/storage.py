"""The store that the settings name, opened: in memory, in a data directory, or in a database.

Lives here: which engine it is, errors of its opening, and the comparison of its accounts with those
that are served. Must not live here: waiting for another gateway (standby.py), what the server does
with the store (app.py). A driver of a database is imported only where a database is named.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from strongroom.auth.accounts import AccountsError
from strongroom.clock import Clock
from strongroom.config import (
    DEFAULT_DATA,
    ConfigError,
    Settings,
    accounts_in_store,
    roles_in_store,
)
from strongroom.database import DatabaseSettings, StoreMode
from strongroom.engines.base import EngineError
from strongroom.engines.bodies.base import BodiesUnfit
from strongroom.engines.embedded import EmbeddedEngine, open_store
from strongroom.engines.embedded.disk.directory import DirectoryLayout
from strongroom.engines.memory import MemoryEngine
from strongroom.servers.identities.accounts_file import ServedAccounts
from strongroom.servers.identities.start_checks import (
    check_held_accounts,
    check_unused_file,
    warn_of_unused_roles,
)
from strongroom.servers.identities.stored_rows import StoredIdentities
from strongroom.services.identities import DamagedRecord, StoreIdentities
from strongroom.store.core.held_accounts import PLACE_RANGES, held_accounts

if TYPE_CHECKING:
    from strongroom.engines.postgres.store import PostgresEngine

_ALL_IN_DATABASE = (
    "bodies of all sizes lie in the database, which writes each byte twice and vacuums it later. "
    "That is fine up to 1 MiB. If more than some 10 MiB of longer bodies arrive in a second for "
    "long, keep them in a folder or a pool of Ceph: --bodies file:///shared"
)
_log = logging.getLogger(__name__)


class DataUnusable(Exception):
    """The data directory or the database cannot be used; the text says why and what to do."""


class DatabaseAway(DataUnusable):
    """The database does not answer at present; a later start may succeed."""


def check_data(data: Path | None) -> None:
    """Refuse a file in place of a directory. Raises: DataUnusable."""
    if data is not None and data.exists() and not data.is_dir():
        raise DataUnusable(f"--data {data} is a file; name a directory, or a path for a new one")


async def opened_store(
    settings: Settings, clock: Clock
) -> MemoryEngine | EmbeddedEngine | PostgresEngine:
    """Raises: ConfigError, DataUnusable."""
    if settings.store is not None:
        if settings.data is not None:
            _make_own(settings.data)
        return await _opened_database(settings.store, clock, settings)
    if settings.data is None:
        return MemoryEngine(clock, settings.memory_max_bytes, allows_reset=settings.may_be_reset())
    return await _opened_directory(settings.data, clock, settings)


def are_bodies_away(store: MemoryEngine | EmbeddedEngine | PostgresEngine) -> bool:
    """Whether the folder or pool of long bodies cannot be used at present."""
    if isinstance(store, MemoryEngine | EmbeddedEngine):
        return False
    return store.facts().bodies_away is True


async def _opened_database(
    database: DatabaseSettings, clock: Clock, settings: Settings
) -> PostgresEngine:
    try:
        from strongroom.engines.postgres.assembly import PostgresOptions
        from strongroom.engines.postgres.assembly import open_store as open_database
        from strongroom.engines.postgres.sessions.session import DatabaseUnfit
        from strongroom.engines.postgres.sql.versions import TOGETHER_VERSION
    except ImportError as error:
        raise ConfigError(
            f"--store needs the extra: pip install strongroom[postgres] ({error})"
        ) from None
    options = PostgresOptions(
        connections=database.connections,
        quota_bytes=database.quota_bytes,
        needs_standby=database.needs_standby,
        schema=database.schema,
        least_version=TOGETHER_VERSION if database.mode is StoreMode.ACTIVE_ACTIVE else 1,
        allows_reset=settings.allow_reset,
        test_clock=settings.test_clock,
        bodies=database.bodies,
        keep_dropped_s=database.keep_dropped_s,
        begins_idle=True,  # until it has the right to serve
    )
    if database.bodies is None:
        _log.info(_ALL_IN_DATABASE)
    try:
        return await open_database(database.url, clock, options)
    except (DatabaseUnfit, BodiesUnfit) as error:
        raise DataUnusable(f"{database.shown}: {error}") from error
    except EngineError as error:
        raise DatabaseAway(f"{database.shown}: {error}") from error


async def _opened_directory(data: Path, clock: Clock, settings: Settings) -> EmbeddedEngine:
    try:
        return await open_store(
            data, clock, test_clock=settings.test_clock, allow_reset=settings.allow_reset
        )
    except EngineError as error:
        raise DataUnusable(str(error)) from error
    except OSError as error:
        raise DataUnusable(f"{data} cannot be opened: {error}") from error


def _make_own(data: Path) -> None:
    """Make the folder of a gateway's own files, such as its certificate. Raises: DataUnusable."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DataUnusable(f"--data {data} cannot be made: {error.strerror}") from error
    if os.path.lexists(DirectoryLayout(str(data)).format):
        _log.warning(
            "--store names a database, so the data in the directory %s is not served", data
        )


async def stored_identities(
    settings: Settings, store: MemoryEngine | EmbeddedEngine | PostgresEngine
) -> StoredIdentities | None:
    """Return the accounts and roles of a database, as they are now; None without a database.

    Raises: ConfigError: files of them would no longer be used, and the store has none;
        DataUnusable.
    """
    if settings.store is None:
        return None
    stored = StoredIdentities(StoreIdentities(store), settings.store.shown)
    try:
        await stored.read()
    except EngineError as error:
        raise DatabaseAway(f"{settings.store.shown}: {error}") from error
    except DamagedRecord as error:
        raise DataUnusable(f"{settings.store.shown}: accounts or roles: {error}") from error
    try:
        _check_files(settings, stored, settings.store.flags)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return stored


def _check_files(settings: Settings, stored: StoredIdentities, database: str) -> None:
    accounts = settings.accounts.file if accounts_in_store(settings) else None
    check_unused_file("--accounts-file", accounts, stored.accounts, database)
    roles = settings.roles.file if roles_in_store(settings) else None
    check_unused_file("--roles-file", roles, stored.roles, database)


async def check_identities(
    settings: Settings,
    store: MemoryEngine | EmbeddedEngine | PostgresEngine,
    accounts: ServedAccounts,
) -> None:
    """Compare the accounts that are served with those that the store has. Raises: ConfigError."""
    if settings.oauth is None and not roles_in_store(settings):
        warn_of_unused_roles(settings.roles.file)
    if isinstance(store, MemoryEngine):
        return
    data = DEFAULT_DATA if settings.data is None else settings.data
    place = str(data) if settings.store is None else settings.store.shown
    try:
        found = [one for bounds in PLACE_RANGES for one in await store.keyspaces(*bounds)]
        check_held_accounts(held_accounts(found), accounts, data, place)
    except EngineError as error:
        _log.error("which accounts have data cannot be told: %s", error)
    except AccountsError as error:
        raise ConfigError(str(error)) from None
