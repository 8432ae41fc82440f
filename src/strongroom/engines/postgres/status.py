"""What an operator sees of a store: its gateways, standbys and tables, and what holds vacuum back.

Lives here: the question and its answer as values. Must not live here: what of it needs an operator
(cli/). Source: PostgreSQL's manual, "The Cumulative Statistics System" and "Routine Vacuuming".
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.clock import SystemClock
from strongroom.engines.base import EngineError
from strongroom.engines.bodies.places import open_place
from strongroom.engines.postgres.assembly import DEFAULTS, PostgresOptions
from strongroom.engines.postgres.gateways.clock import DatabaseClock
from strongroom.engines.postgres.gateways.members import SharedTable, TableSeen
from strongroom.engines.postgres.gateways.notices import Notices
from strongroom.engines.postgres.sessions.address import address_of
from strongroom.engines.postgres.sessions.openers import SessionOpener, unavailable
from strongroom.engines.postgres.sessions.session import (
    DatabaseSession,
    SessionLost,
    StatementRefused,
)
from strongroom.engines.postgres.sql.versions import APART_VERSION, VERSION
from strongroom.values import TICKS_PER_S

_TABLES: Final = """
SELECT c.relname, pg_total_relation_size(c.oid), coalesce(s.n_live_tup, 0),
    coalesce(s.n_dead_tup, 0),
    coalesce(extract(epoch FROM now() - greatest(s.last_vacuum, s.last_autovacuum)), -1)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE n.nspname = $1 AND c.relkind = 'r' ORDER BY 2 DESC, 1"""
_STANDBYS: Final = """
SELECT application_name, coalesce(state, ''), coalesce(sync_state, ''),
    coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn), -1)
FROM pg_stat_replication ORDER BY 1"""
_HORIZONS: Final = """
SELECT 'process', pid::text, age(backend_xmin)::text, coalesce(state, ''),
    coalesce(extract(epoch FROM now() - xact_start), 0)
FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
UNION ALL SELECT 'slot', slot_name, age(coalesce(xmin, catalog_xmin))::text,
    CASE WHEN active THEN 'active' ELSE 'inactive' END, 0
FROM pg_replication_slots WHERE coalesce(xmin, catalog_xmin) IS NOT NULL
UNION ALL SELECT 'standby', application_name, age(backend_xmin)::text, coalesce(state, ''), 0
FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
UNION ALL SELECT 'prepared transaction', gid, age(transaction)::text, '',
    extract(epoch FROM now() - prepared)
FROM pg_prepared_xacts"""
_COUNTS: Final = """
SELECT (SELECT count(*) FROM dropped), (SELECT count(*) FROM contents WHERE NOT is_adopted),
    (SELECT version FROM store)"""
_APART: Final = """
SELECT s.bodies, kept.count, kept.bytes, gone.count, gone.bytes FROM store s,
    (SELECT count(*), coalesce(sum(size), 0) AS bytes FROM contents WHERE is_apart) AS kept,
    (SELECT count(*), coalesce(sum(size), 0) AS bytes FROM dropped WHERE is_apart) AS gone
WHERE s.bodies IS NOT NULL"""


class GatewayStatus(msgspec.Struct, frozen=True):
    """One gateway. `heartbeat_age_s` is counted by the database's clock.

    Attributes:
        knows: the newest version of the store's tables that its program knows.
    """

    number: int
    incarnation: int
    heartbeat_age_s: float
    holds: tuple[str, ...]
    knows: int = VERSION


class StandbyStatus(msgspec.Struct, frozen=True):
    """One standby. `sync_state` is PostgreSQL's: sync, quorum, potential or async.

    Attributes:
        behind_bytes: of the log that it has not flushed; -1 = this role may not know.
    """

    name: str
    state: str
    sync_state: str
    behind_bytes: int


class TableStatus(msgspec.Struct, frozen=True):
    """One table. Numbers of rows are PostgreSQL's estimates.

    Attributes:
        size_bytes: with its indexes.
        vacuumed_s: how long ago it was vacuumed; None = never.
    """

    name: str
    size_bytes: int
    live_rows: int
    dead_rows: int
    vacuumed_s: float | None


class OldSnapshot(msgspec.Struct, frozen=True):
    """Something that keeps vacuum from removing dead rows.

    Attributes:
        kind: process, slot, standby (hot_standby_feedback) or prepared transaction.
        age: in transactions.
        open_s: for how long a transaction has been open.
    """

    kind: str
    name: str
    age: int
    state: str
    open_s: float


class ApartStatus(msgspec.Struct, frozen=True):
    """The bodies apart, as the database has them.

    Attributes:
        dropped, dropped_bytes: of those that nothing refers to, and that stay for some days.
        away: why this machine cannot use the place; empty = it can.
    """

    place: str
    bodies: int
    size_bytes: int
    dropped: int
    dropped_bytes: int
    away: str = ""


class StoreStatus(msgspec.Struct, frozen=True):
    """A store at one time.

    Attributes:
        version: of its tables; `program_version` is the one of this program.
        floor: no commit with a smaller stamp can happen any more.
        used_bytes: of keys, values and bodies.
        dropped: contents that are deleted once nobody reads them.
        unadopted: contents that are being uploaded, or were left by a dead gateway.
        old_snapshots: the oldest first.
        apart: None = all bodies lie in the database.
    """

    server_version: str
    version: int
    program_version: int
    synchronous_commit: str
    synchronous_standby_names: str
    standbys: tuple[StandbyStatus, ...]
    gateways: tuple[GatewayStatus, ...]
    floor: int
    used_bytes: int
    dropped: int
    unadopted: int
    tables: tuple[TableStatus, ...]
    old_snapshots: tuple[OldSnapshot, ...]
    apart: ApartStatus | None = None


async def store_status(url: str, options: PostgresOptions = DEFAULTS) -> StoreStatus:
    """Look at a store without joining it. Raises: Unavailable, DatabaseUnfit."""
    address = address_of(url)
    opener, notices = SessionOpener(address, options.schema), Notices()
    clock = DatabaseClock(SystemClock())
    members = SharedTable(opener, clock, None, notices.notified, notices.session_opened)
    try:
        session = await opener.open()  # it says why, if it cannot
        try:
            return await _status(session, opener, await members.look())
        finally:
            session.close()
    except StatementRefused as error:
        raise error.as_engine_error() from None
    except SessionLost as error:
        raise unavailable(error) from None
    finally:
        await members.close()


async def _status(session: DatabaseSession, opener: SessionOpener, seen: TableSeen) -> StoreStatus:
    settings = opener.settings
    ((dropped, unadopted, version),) = await session.simple(_COUNTS)
    tables = await session.simple(_TABLES, opener.schema)
    apart = None
    if int(version) >= APART_VERSION and (rows := await session.simple(_APART)):
        place = rows[0][0]
        bodies, size_bytes, gone, gone_bytes = map(int, rows[0][1:])
        away = await _why_away(place)
        apart = ApartStatus(place, bodies, size_bytes, gone, gone_bytes, away)
    horizons = await session.simple(_HORIZONS)
    return StoreStatus(
        server_version=(await session.simple("SHOW server_version"))[0][0],
        version=int(version),
        program_version=VERSION,
        synchronous_commit=settings["synchronous_commit"],
        synchronous_standby_names=settings["synchronous_standby_names"],
        standbys=tuple(
            StandbyStatus(name, state, sync, int(float(behind)))
            for name, state, sync, behind in await session.simple(_STANDBYS)
        ),
        gateways=_gateways(seen),
        floor=seen.table.floor,
        used_bytes=seen.used_bytes,
        dropped=int(dropped) - (0 if apart is None else apart.dropped),
        unadopted=int(unadopted),
        tables=tuple(
            TableStatus(name, int(size), int(live), int(dead), None if ago == "-1" else float(ago))
            for name, size, live, dead, ago in tables
        ),
        old_snapshots=tuple(
            sorted(
                (
                    OldSnapshot(kind, name, int(age), state, float(open_s))
                    for kind, name, age, state, open_s in horizons
                ),
                key=lambda one: -one.age,
            )
        ),
        apart=apart,
    )


async def _why_away(place: str) -> str:
    try:
        bodies = await open_place(place)
    except EngineError as error:
        return str(error)
    await bodies.close()
    return ""


def _gateways(seen: TableSeen) -> tuple[GatewayStatus, ...]:
    table = seen.table
    return tuple(
        GatewayStatus(
            number,
            row.incarnation,
            max(0.0, (seen.now - row.received_at) / TICKS_PER_S),
            tuple(
                sorted(
                    name.decode("utf-8", "replace")
                    for name, holder in table.holds.items()
                    if holder.number == number
                )
            ),
            row.knows,
        )
        for number, row in sorted(table.rows.items())
    )
