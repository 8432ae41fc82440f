"""A store of the version before gets the present tables, in one transaction, while it is served.

Lives here: when that may be done, and how. Must not live here: the SQL (sql/making.py), which
versions a program serves (sql/versions.py).

A gateway of a program that knows only the version before would find tables that it does not know.
So none may be live. Each gateway's heartbeat says what its program knows. The row of the table of
gateways is locked until the end, so nobody joins meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from strongroom.clock import Clock, SystemClock
from strongroom.engines import membership
from strongroom.engines.base import Unavailable
from strongroom.engines.gateways import GatewayRun
from strongroom.engines.membership import LATE_TICKS, MembershipTable
from strongroom.engines.postgres.gateways.members import change_values
from strongroom.engines.postgres.gateways.watched import WatchedGateways
from strongroom.engines.postgres.sessions.address import address_of
from strongroom.engines.postgres.sessions.openers import SessionOpener, unavailable
from strongroom.engines.postgres.sessions.session import (
    DatabaseSession,
    DatabaseUnfit,
    SessionLost,
    StatementRefused,
)
from strongroom.engines.postgres.sql.making import migration_sql
from strongroom.engines.postgres.sql.schema import CHANGE_MEMBERSHIP
from strongroom.engines.postgres.sql.versions import VERSION
from strongroom.values import TICKS_PER_S, UNIX_EPOCH_TICKS

_PATIENCE_TICKS: Final = 60 * TICKS_PER_S
_PAUSE_S: Final = 0.25
_NO_OWNER: Final = "42501"
# Commits wait as long at most. It is shorter than the time after which PostgreSQL looks for a
# deadlock, so that no commit is given up for it.
_BEGIN: Final = "BEGIN; SET LOCAL lock_timeout = '400ms'"
_ROWS: Final = """SELECT m.version, encode(m.body, 'hex'),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, encode(s.salt, 'hex'), s.version
FROM membership m, store s FOR UPDATE"""


class _Locked(msgspec.Struct, frozen=True):
    """The table of gateways, locked.

    Attributes:
        changes: how often it was changed.
        now: the database's clock.
        version: of the store's tables.
    """

    table: MembershipTable
    changes: int
    now: int
    salt: bytes
    version: int


async def migrate_store(
    url: str, schema: str, say: Callable[[str], None], clock: Clock | None = None
) -> None:
    """Bring a store to VERSION. It may be repeated, and cut at any moment.

    Arguments:
        say: is told what will be done, and what is waited for.

    Raises: DatabaseUnfit: it is not done; Unavailable: whether it was done is unknown, or the
        tables are in use; the same call may succeed later.
    """
    migration = _Migration(SessionOpener(address_of(url), schema), say, clock or SystemClock())
    while not await migration.try_once():
        migration.check_patience()
        await asyncio.sleep(_PAUSE_S)


class _Migration:
    def __init__(self, opener: SessionOpener, say: Callable[[str], None], clock: Clock) -> None:
        self._opener = opener
        self._say = say
        self._clock = clock
        self._began = clock.boot_ticks()
        self._watched = WatchedGateways()
        # What each gateway's program knows. One of version 1 takes that out of all rows.
        self._known: dict[GatewayRun, int] = {}
        self._has_said = False

    async def try_once(self) -> bool:
        """Return whether the store has VERSION, and all standbys know."""
        try:
            session = await self._opener.open()
            try:
                return await self._tried(session)
            finally:
                session.close()
        except SessionLost as error:
            raise unavailable(error) from None
        except StatementRefused as error:
            if error.is_transient:
                return False
            if error.state == _NO_OWNER:
                raise DatabaseUnfit(
                    f"only the owner of the tables may migrate them ({error.text}); nothing was "
                    "changed. Use the role that made the store"
                ) from None
            raise error.as_engine_error() from None

    async def _tried(self, session: DatabaseSession) -> bool:
        if session.version < VERSION and not await self._migrated(session):
            return False
        # It lies in the log behind the migration: when it is confirmed, so is that.
        return not (await session.script("UPDATE store SET version = version")).warned

    def check_patience(self) -> None:
        """Raises: Unavailable."""
        if self._clock.boot_ticks() - self._began > _PATIENCE_TICKS:
            raise Unavailable(
                "the tables of the store are in use, by a transaction or a pg_dump that does not "
                "end; `strongroom store status` names old transactions. Run the same command again "
                "when they have ended"
            )

    async def _migrated(self, session: DatabaseSession) -> bool:
        at = self._clock.boot_ticks()
        await session.script(_BEGIN)
        locked = await self._locked(session)
        if locked.version == VERSION:  # another command was faster
            await session.script("COMMIT")  # what confirms it comes in a transaction of its own
            return True
        self._announce(locked.version)
        self._note(locked.table, at)
        dead = self._watched.silent(locked.table, locked.now)
        older = [run for run, known in self._known.items() if known < VERSION]
        if living := [run.number for run in older if run not in dead]:
            self._check_older(living, locked)
            return False
        await self._change_membership(session, locked, [run for run in older if run in dead])
        await session.script(migration_sql())
        await session.script("COMMIT")
        return True

    async def _locked(self, session: DatabaseSession) -> _Locked:
        ((changes, body, micros, salt, version),) = await session.simple(_ROWS)
        encoded = bytes.fromhex(body)
        return _Locked(
            msgspec.msgpack.decode(encoded, type=MembershipTable) if body else MembershipTable(),
            int(changes),
            int(micros) * 10 + UNIX_EPOCH_TICKS,
            bytes.fromhex(salt),
            int(version),
        )

    def _announce(self, version: int) -> None:
        if not self._has_said:
            self._has_said = True
            self._say(
                f"the tables have version {version}, and get version {VERSION} in one transaction; "
                "gateways go on, and their requests may wait for a second. Afterwards programs "
                f"that know version {version} only cannot use the store any more"
            )

    def _note(self, table: MembershipTable, at: int) -> None:
        self._watched.look(table, at)
        rows = {GatewayRun(number, row.incarnation): row for number, row in table.rows.items()}
        self._known = {
            run: max(row.knows, self._known.get(run, row.knows)) for run, row in rows.items()
        }

    def _check_older(self, numbers: Iterable[int], locked: _Locked) -> None:
        """Raise DatabaseUnfit once it is clear that gateways of an older program live."""
        if self._clock.boot_ticks() - self._began < LATE_TICKS:
            return  # their next heartbeats may say more
        ages = {one: locked.now - locked.table.rows[one].received_at for one in numbers}
        if live := [str(one) for one, age in ages.items() if age < LATE_TICKS]:
            raise DatabaseUnfit(
                f"gateways of an older program use the store: {', '.join(sorted(live))}. Nothing "
                "was changed. Update and restart them, then run the same command again"
            )

    async def _change_membership(
        self, session: DatabaseSession, locked: _Locked, dead: Iterable[GatewayRun]
    ) -> None:
        """Remove dead gateways; whoever has seen the table before has to look again."""
        table = locked.table
        for gateway in dead:
            table = membership.leave(table, gateway)
        values = change_values(locked.table, table, locked.changes, locked.salt)
        await session.run(CHANGE_MEMBERSHIP, *values)
