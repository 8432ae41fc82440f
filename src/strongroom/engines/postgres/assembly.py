"""How a gateway of a store in PostgreSQL is opened: its sessions, its place among the gateways.

Lives here: the options, and the construction of all parts in order. Must not live here: what any
part does.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from strongroom.clock import Clock
from strongroom.engines.membership import GatewayRun, GatewayState
from strongroom.engines.postgres.address import Address, address_of, conninfos
from strongroom.engines.postgres.clock import DatabaseClock
from strongroom.engines.postgres.commits import Commits, Flights, Gate
from strongroom.engines.postgres.contents import PostgresContents, Writer
from strongroom.engines.postgres.gateways import PostgresGateways, joined
from strongroom.engines.postgres.lanes import Lane, Pool
from strongroom.engines.postgres.life import Life
from strongroom.engines.postgres.members import Members, Seen
from strongroom.engines.postgres.notices import Notices
from strongroom.engines.postgres.openers import MISSING, POOLED, Opener, Opening, unavailable
from strongroom.engines.postgres.places import LockNumbers
from strongroom.engines.postgres.records import Records
from strongroom.engines.postgres.schema import DEFAULT_SCHEMA, init_sql
from strongroom.engines.postgres.session import (
    Session,
    SessionLost,
    SqlError,
    StoreMissing,
    StoreRefused,
)
from strongroom.engines.postgres.shared_time import SharedTime
from strongroom.engines.postgres.space import Space
from strongroom.engines.postgres.store import Parts, PostgresEngine
from strongroom.engines.postgres.waiting import Waits
from strongroom.engines.watchers import Watchers
from strongroom.values import TICKS_PER_S

CONNECTIONS_MIN: Final = 2
_RESERVED: Final = 3  # what PostgreSQL keeps for its administrators
_START_PATIENCE_S: Final = 5.0
_SKEW: Final = TICKS_PER_S // 2  # between clocks that are set by NTP there is far less
_UNPUBLISHED: Final = 2 * TICKS_PER_S
"""So much time a gateway may have told since its last heartbeat."""


class PostgresOptions(msgspec.Struct, frozen=True):
    """How a gateway uses its database.

    Attributes:
        connections: for statements; heartbeats and notifications have one more of their own.
        allows_reset: of a store that is made; see Engine.allows_reset.
        quota_bytes: of keys, values and bodies; None = there is no quota.
        schema: the schema of the store's tables.
        table_clock: the clock of the membership table, and of nothing else, in tests; None = that
            of the database, which the gateway then follows, too.
        beats: whether heartbeats are sent by themselves; False in tests that move the clock.
    """

    connections: int = 8
    allows_reset: bool = False
    quota_bytes: int | None = None
    schema: str = DEFAULT_SCHEMA
    table_clock: Clock | None = None
    beats: bool = True


DEFAULTS: Final = PostgresOptions()


async def init_store(url: str, schema: str = DEFAULT_SCHEMA) -> None:
    """Make the tables of a store, where they are missing. Raises: Unavailable, StoreRefused."""
    await _run_script(address_of(url), init_sql(schema))


async def _run_script(address: Address, sql: str) -> None:
    session = await _writable(address)
    try:
        await session.script(sql)
    except SqlError as error:
        if error.state == "42501":
            raise StoreMissing(MISSING) from None
        raise StoreRefused(f"the store cannot be made: {error}") from None
    except SessionLost as error:
        raise unavailable(error) from None
    finally:
        session.close()


async def _writable(address: Address) -> Session:
    """A session at the first host that may be written to. Raises: Unavailable, StoreRefused."""
    failure: Exception | None = None
    for parameters in address.hosts:
        try:
            for conninfo in await conninfos(parameters):
                return await Session.connect(conninfo, address.timeout_s)
        except (SessionLost, OSError) as error:
            failure = error
    raise unavailable(failure)


async def open_store(url: str, clock: Clock, options: PostgresOptions = DEFAULTS) -> PostgresEngine:
    """Join a store as a gateway. The store is made if the role may.

    Raises: Unavailable: no database answers; StoreRefused: it cannot carry the store.
    """
    address = address_of(url)
    if options.connections < CONNECTIONS_MIN:
        raise StoreRefused(f"a store needs at least {CONNECTIONS_MIN} connections")
    opener = Opener(address, options.schema)
    await _make_if_missing(opener, allows_reset=options.allows_reset)
    own_clock = DatabaseClock(clock)
    notices = Notices()
    members = Members(
        opener, own_clock, options.table_clock, notices.notified, notices.session_opened
    )
    sent = clock.boot_ticks()
    try:
        run, seen = await joined(members)
    except BaseException:
        await members.close()
        raise
    used = clock if options.table_clock is not None else own_clock
    engine = _assembled(opener, members, run, seen, own_clock, used, sent, options)
    try:
        await _check_sessions(engine, opener, options.connections)
    except BaseException:
        await engine.close()
        raise
    notices.connect(engine)
    return engine


async def _make_if_missing(opener: Opener, *, allows_reset: bool) -> None:
    """Open a session; if there is no store, try to make one, and let the next session judge."""
    try:
        await _try(opener)
    except StoreMissing:
        sql = init_sql(opener.schema, allows_reset=allows_reset)
        await _run_script(opener.address, sql)
        await _try(opener)


async def _try(opener: Opener) -> None:
    opening = Opening(opener.open, accepts_refusal=True)
    try:
        (await opening.session(_START_PATIENCE_S)).close()
    finally:
        opening.cancel()


def _assembled(
    opener: Opener,
    members: Members,
    run: GatewayRun,
    seen: Seen,
    database_clock: DatabaseClock,
    clock: Clock,
    sent_boot: int,
    options: PostgresOptions,
) -> PostgresEngine:
    life, watchers, flights = Life(), Watchers(), Flights()
    space = Space(options.quota_bytes)
    space.used_bytes = seen.used_bytes
    # If the database's clock fell, what was told since the last heartbeat may lie ahead of it.
    fell = seen.table.highest > seen.now + seen.shift + _SKEW
    floor = seen.table.highest + (_UNPUBLISHED if fell else 0)
    time = SharedTime(clock, floor, seen.shift, watchers)
    state = GatewayState(run, seen.table, sent_boot)

    def learned(now_seen: Seen) -> None:
        space.used_bytes = now_seen.used_bytes
        time.learn(now_seen.shift)

    gateways = PostgresGateways(
        members, run, state, time, flights.stamps, clock.boot_ticks, life, learned
    )
    numbers = LockNumbers(seen.salt)
    reading, updating = _pools(opener, run.number, options.connections)
    records = Records(reading, state.observe)

    def new_stamp() -> int:
        return state.stamp(time.now())

    writer = Writer(
        run.number,
        run.incarnation,
        new_stamp,
        gateways.ensure_serving,
        gateways.begin_reading,
    )
    contents = PostgresContents(reading, writer, space)
    waits = Waits(watchers, records.versions, members.send, gateways.must_tell)
    gate = Gate(
        run.number,
        run.incarnation,
        seen.lock_space,
        new_stamp,
        state.observe,
        gateways.ensure_live,
        gateways.died,
        waits.committed,
        numbers,
    )
    commits = Commits(updating, gate, contents.adoptions, space, flights)
    parts = Parts(
        *(
            opener.address.shown,
            opener,
            database_clock,
            life,
            time,
            watchers,
            members,
            gateways,
            updating,
            reading,
        ),
        *(records, commits, contents, waits, space),
    )
    return PostgresEngine(parts, allows_reset=seen.allows_reset, beats=options.beats)


def _pools(opener: Opener, gateway: int, connections: int) -> tuple[Pool, Pool]:
    """Half of the lanes for what may be repeated, half for updates."""
    lanes = [Lane(opener, gateway, slot) for slot in range(connections)]
    half = (connections + 1) // 2
    return Pool(lanes[:half]), Pool(lanes[half:])


async def _check_sessions(engine: PostgresEngine, opener: Opener, connections: int) -> None:
    """Open all sessions. Raises: StoreRefused: too few are left, or a pooler shares them."""
    allowed = int(opener.settings["max_connections"]) - _RESERVED
    if connections + 1 > allowed:
        raise StoreRefused(
            f"the server allows {allowed} connections, and this gateway needs {connections} and "
            "one for its heartbeats; raise max_connections, or lower --store-connections"
        )
    lanes = engine.lanes()
    sessions = await asyncio.gather(*(lane.session(_START_PATIENCE_S) for lane in lanes))
    processes = [(await one.simple("SELECT pg_backend_pid()"))[0][0] for one in sessions]
    if len(set(processes)) < len(processes):
        raise StoreRefused(POOLED)
