"""Accounts and roles in the database of `serve --store`.

Lives here: joining the store for a moment, as a gateway that serves nothing. Must not live here:
the changes (servers/identities/), where rows are kept (services/identities.py).

Such a gateway takes no right. So it works beside gateways that serve, in both of their modes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from strongroom.auth.accounts import Account, AccountsError
from strongroom.auth.roles import Assignments, RolesError
from strongroom.cli.event_loop import run
from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.chosen_database import need_driver
from strongroom.clock import SystemClock
from strongroom.database import DatabaseSettings
from strongroom.engines.base import CommitUnknown, EngineError
from strongroom.servers.identities import accounts_file, roles_file
from strongroom.services.identities import NOT_KEPT, IdentityRows, StoreIdentities
from strongroom.store.core import keys
from strongroom.store.core.held_accounts import PLACE_RANGES, held_accounts

if TYPE_CHECKING:
    from strongroom.engines.postgres.store import PostgresEngine

T = TypeVar("T")

_CONNECTIONS = 2


class DatabasePlace:
    """See IdentityPlace."""

    def __init__(self, database: DatabaseSettings) -> None:
        self._database = database
        self.accounts_at = self.roles_at = self.data_at = database.shown
        self.seen = f" Gateways of {database.shown} see it within a second."

    def accounts(self) -> tuple[Account, ...]:
        return accounts_file.accounts_of(self._rows(lambda found: found.accounts.read()))

    def change_accounts(self, edit: accounts_file.Edit) -> None:
        self._ask(lambda store: accounts_file.change_stored_accounts(StoreIdentities(store), edit))

    def roles(self) -> Assignments:
        return roles_file.roles_of(self._rows(lambda found: found.roles.read()))

    def change_roles(self, edit: roles_file.Edit) -> None:
        self._ask(lambda store: roles_file.change_stored_roles(StoreIdentities(store), edit))

    def held_data_problem(self, name: str) -> str | None:
        async def held(store: PostgresEngine) -> tuple[str, ...]:
            return held_accounts(
                [one for bounds in PLACE_RANGES for one in await store.keyspaces(*bounds)]
            )

        if name not in self._ask(held):
            return None
        return (
            f"account {name!r} has data in {self.data_at}: containers, queues, tables or shares, "
            "or deleted ones that are kept"
        )

    def may_exist(self, account: str, container: str) -> bool:
        async def found(store: PostgresEngine) -> bool:
            (record,) = await store.read((keys.container(account, container),))
            return record is not None

        return self._ask(found)

    def _rows(self, read: Callable[[StoreIdentities], Awaitable[IdentityRows]]) -> IdentityRows:
        return self._ask(lambda store: read(StoreIdentities(store)))

    def _ask(self, act: Callable[[PostgresEngine], Awaitable[T]]) -> T:
        """Return what `act` returns of the store, or end the command."""
        need_driver()
        from strongroom.engines.postgres.sessions.session import DatabaseUnfit

        place = self._database.shown
        try:
            return run(_joined(self._database, act))
        except DatabaseUnfit as error:
            fail(Exit.DATA, f"{place}: {error}")
        except CommitUnknown as error:
            text = f"{place}: {error}. It may be changed or not: look before you try again"
            fail(Exit.UNAVAILABLE, text)
        except EngineError as error:
            fail(Exit.UNAVAILABLE, f"{place}: {error}")
        except (AccountsError, RolesError, *NOT_KEPT) as error:
            fail(Exit.SETTINGS, f"{place}: {error}")


async def _joined(database: DatabaseSettings, act: Callable[[PostgresEngine], Awaitable[T]]) -> T:
    """Join a store that is there already, act, and leave it."""
    from strongroom.engines.postgres.assembly import PostgresOptions, open_store

    options = PostgresOptions(
        connections=_CONNECTIONS, schema=database.schema, makes=False, serves=False
    )
    store = await open_store(database.url, SystemClock(), options)
    try:
        return await act(store)
    finally:
        await store.close()
