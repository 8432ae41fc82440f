"""The accounts and roles that lie in the store: read in the background, and kept current.

Lives here: when they are read again, and what is served while they cannot be read. Must not live
here: how they are stored and changed (services/identities.py), what a row says (auth/).

Each gateway asks once in POLL_S whether they have changed. It does not rely on notifications, which
may be lost. So a change is used at each gateway within that time and the time of a read. A gateway
that cannot read the store for long serves nothing anyway.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from strongroom.servers.rationed_log import Ration, more
from strongroom.services.identities import (
    IdentityRows,
    IdentityTable,
    StoreIdentities,
)

T = TypeVar("T")

POLL_S: Final = 0.7
_LINES_EVERY_S: Final = 600.0
_log = logging.getLogger(__name__)


class StoredRows:
    """All accounts, or all role assignments, as they were last read.

    Arguments:
        shown: what and where they are, for messages.
    """

    def __init__(self, table: IdentityTable, shown: str) -> None:
        self._table = table
        self.shown: Final = shown
        self.current = IdentityRows()

    async def read(self) -> None:
        """Raises: as NOT_KEPT says."""
        self.current = await self._table.read()


class StoredIdentities:
    """The accounts and roles of a store. `place` is where they are, as people may see it."""

    def __init__(self, store: StoreIdentities, place: str) -> None:
        self.store: Final = store
        self._ration = Ration(_LINES_EVERY_S)
        self.place: Final = place
        self.accounts: Final = StoredRows(store.accounts, f"the accounts in {place}")
        self.roles: Final = StoredRows(store.roles, f"the roles in {place}")

    async def read(self) -> None:
        """Read what has changed. Raises: as NOT_KEPT says."""
        versions = await self.store.versions()
        for rows, version in zip((self.accounts, self.roles), versions, strict=True):
            if rows.current.version != version:
                await rows.read()

    async def follow(self) -> None:
        """Read what changes, until this is cancelled. Without an answer, what was read stays."""
        while True:
            await asyncio.sleep(POLL_S)
            try:
                await self.read()
            except Exception as error:  # whatever it is, later changes must be seen
                self._say(str(error) or type(error).__name__)

    def _say(self, reason: str) -> None:
        left_out = self._ration.left_out("read", asyncio.get_running_loop().time())
        if left_out is not None:
            text = "accounts and roles in %s cannot be read, what they said before stays: %s%s"
            _log.error(text, self.place, reason, more(left_out))


class WatchedRows(Generic[T]):
    """The value of rows in the store, kept current as WatchedFile keeps that of a file.

    Rows that are invalid are logged once for each change, and the last valid value stays.

    Arguments:
        rows: has been read.
        load: returns the value of rows, of which there is one at least. It raises ValueError.
        absent: the value without rows.
        outlives_rows: whether the last valid value stays when all rows go.

    Raises: ValueError: the rows cannot be used.
    """

    def __init__(
        self,
        rows: StoredRows,
        load: Callable[[IdentityRows], T],
        absent: T,
        *,
        outlives_rows: bool = False,
    ) -> None:
        self._rows = rows
        self._load = load
        self._absent = absent
        self._outlives_rows = outlives_rows
        self._seen = rows.current
        self._value = load(self._seen) if self._seen.rows else absent

    @property
    def exists(self) -> bool:
        """Whether anything was ever kept there."""
        return self._seen.version is not None

    def get(self) -> T:
        current = self._rows.current
        if current is not self._seen:
            self._seen = current
            self._reload(current)
        return self._value

    def _reload(self, rows: IdentityRows) -> None:
        if not rows.rows and self._outlives_rows:
            _log.warning("%s are gone; what they said before stays", self._rows.shown)
            return
        try:
            self._value = self._load(rows) if rows.rows else self._absent
        except ValueError as error:
            text = "%s are not used, what they said before stays: %s"
            _log.error(text, self._rows.shown, error)
        else:
            _log.info("%s have changed, and are used from now on", self._rows.shown)
