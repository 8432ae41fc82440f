"""How a gateway of a store in PostgreSQL is opened: its sessions, its place among the gateways.

Lives here: the options, and the construction of all parts in order. Must not live here: what any
part does.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from strongroom.clock import Clock
from strongroom.engines.bodies.base import BodyStore
from strongroom.engines.measured import CommitTimes
from strongroom.engines.membership import GatewayState
from strongroom.engines.postgres.apart.place import make_place, opened_place
from strongroom.engines.postgres.apart.sweep import KEEP_DROPPED_S, ApartSweep
from strongroom.engines.postgres.apart.turns import OBSERVE_S, Turns
from strongroom.engines.postgres.commits.commits import Commits
from strongroom.engines.postgres.commits.committing import (
    CommitContext,
    CommitHook,
    CommittingGateway,
    Flights,
)
from strongroom.engines.postgres.commits.line import UpdateLine
from strongroom.engines.postgres.commits.space import Space
from strongroom.engines.postgres.contents.contents import PostgresContents
from strongroom.engines.postgres.contents.rows import APART_BYTES, ApartBodies, ContentWriter
from strongroom.engines.postgres.gateways.clock import DatabaseClock
from strongroom.engines.postgres.gateways.gateways import PostgresGateways
from strongroom.engines.postgres.gateways.heartbeats import Heartbeats, JoinedGateway
from strongroom.engines.postgres.gateways.joining import Joined, joined
from strongroom.engines.postgres.gateways.members import SharedTable, TableSeen
from strongroom.engines.postgres.gateways.notices import Notices
from strongroom.engines.postgres.gateways.shared_time import SharedTime
from strongroom.engines.postgres.gateways.watched import WatchedGateways
from strongroom.engines.postgres.life import Life
from strongroom.engines.postgres.records import Records
from strongroom.engines.postgres.sessions.address import (
    DatabaseAddress,
    address_of,
    addresses_of,
)
from strongroom.engines.postgres.sessions.lanes import Lane, Pool
from strongroom.engines.postgres.sessions.openers import (
    MISSING,
    POOLED,
    Opening,
    SessionOpener,
    unavailable,
)
from strongroom.engines.postgres.sessions.session import (
    DatabaseSession,
    DatabaseUnfit,
    SessionLost,
    StatementRefused,
    StoreMissing,
)
from strongroom.engines.postgres.sql.making import (
    DEFAULT_SCHEMA,
    RIGHTS,
    StoreMarks,
    init_sql,
)
from strongroom.engines.postgres.sql.places import LockNumbers
from strongroom.engines.postgres.sql.versions import APART_VERSION, VERSION, lacking_version
from strongroom.engines.postgres.store import GatewayParts, PostgresEngine
from strongroom.engines.postgres.upkeep import Upkeep
from strongroom.engines.postgres.waiting import Waits
from strongroom.engines.watchers import Watchers

CONNECTIONS_MIN: Final = 2
_RESERVED: Final = 3  # what PostgreSQL keeps for its administrators
_START_PATIENCE_S: Final = 5.0


class PostgresOptions(msgspec.Struct, frozen=True):
    """How a gateway uses its database.

    Attributes:
        connections: for statements; heartbeats and notifications have one more of their own.
        allows_reset: whether the store must allow resets; see Engine.allows_reset.
        test_clock: whether its time must be one that may be moved. A store has both from its
            creation on, or never.
        needs_standby: whether a server without a synchronous standby is refused.
        quota_bytes: of keys, values and bodies; None = there is no quota.
        schema: the schema of the store's tables.
        least_version: of the tables; a store with less is refused until it is migrated.
        table_clock: the clock of the membership table, and of nothing else, in tests; None = that
            of the database, which the gateway then follows, too.
        beats: whether heartbeats are sent by themselves; False in tests that move the clock.
        makes: whether a store that is missing is made.
        bodies: the URL of the folder that keeps long bodies; None = the database keeps them.
        apart_bytes: longer bodies lie in that folder.
        keep_dropped_s: for how long bodies stay there that no record names.
        observe_s: see Turns.
        serves: whether this is the gateway of a server, which also does the store's upkeep. A
            command that reads and changes records for a moment leaves that to others, and all
            works.
        begins_idle: whether it has no works until it says that it takes some, since it may have to
            wait for the right to serve.
    """

    connections: int = 8
    allows_reset: bool = False
    test_clock: bool = False
    needs_standby: bool = False
    quota_bytes: int | None = None
    schema: str = DEFAULT_SCHEMA
    least_version: int = 1
    table_clock: Clock | None = None
    beats: bool = True
    makes: bool = True
    bodies: str | None = None
    apart_bytes: int = APART_BYTES
    keep_dropped_s: int = KEEP_DROPPED_S
    observe_s: float = OBSERVE_S
    serves: bool = True
    begins_idle: bool = False


DEFAULTS: Final = PostgresOptions()


async def init_store(url: str, schema: str = DEFAULT_SCHEMA) -> None:
    """Make the tables of a store, where they are missing. Raises: Unavailable, DatabaseUnfit."""
    await _run_script(address_of(url), init_sql(schema))


async def init_bodies(url: str, schema: str, bodies: str) -> None:
    """Make a folder ready for the long bodies of a store that exists.

    Raises: Unavailable; DatabaseUnfit and BodiesUnfit: they do not go together.
    """
    opener = SessionOpener(address_of(url), schema)
    try:
        session = await opener.open()
        try:
            await make_place(session, bodies)
        finally:
            session.close()
    except StatementRefused as error:
        raise error.as_engine_error() from None
    except SessionLost as error:
        raise unavailable(error) from None


async def _run_script(address: DatabaseAddress, sql: str) -> None:
    session = await _writable(address)
    try:
        await session.script(sql)
    except StatementRefused as error:
        if error.state == "42501":
            raise StoreMissing(MISSING) from None
        raise DatabaseUnfit(f"the store cannot be made: {error}") from None
    except SessionLost as error:
        raise unavailable(error) from None
    finally:
        session.close()


async def _writable(address: DatabaseAddress) -> DatabaseSession:
    """A session at the first host that may be written to. Raises: Unavailable, DatabaseUnfit."""
    failure: Exception | None = None
    for parameters in address.hosts:
        for conninfo in await addresses_of(parameters, address.timeout_s):
            try:
                return await DatabaseSession.connect(conninfo, address.timeout_s)
            except SessionLost as error:
                failure = error
    raise unavailable(failure)


async def open_store(url: str, clock: Clock, options: PostgresOptions = DEFAULTS) -> PostgresEngine:
    """Join a store as a gateway. The store is made if the role may, unless the options say no.

    Raises: Unavailable: no database answers; DatabaseUnfit: it cannot carry the store.
    """
    address = address_of(url)
    if options.connections < CONNECTIONS_MIN:
        raise DatabaseUnfit(f"a store needs at least {CONNECTIONS_MIN} connections")
    opener = SessionOpener(address, options.schema, needs_standby=options.needs_standby)
    marks = StoreMarks(options.allows_reset, options.test_clock)
    await (_make_if_missing(opener, marks) if options.makes else _try(opener))
    least = options.least_version if options.bodies is None else APART_VERSION
    if (lacking := lacking_version(opener.version, least)) is not None:
        raise DatabaseUnfit(lacking)
    # A command that changes a few records has no need of bodies.
    bodies = await _opened_bodies(opener, options.bodies) if options.serves else None
    try:
        return await _joined(opener, clock, options, marks, bodies)
    except BaseException:
        if bodies is not None:
            await bodies.close()
        raise


async def _opened_bodies(opener: SessionOpener, url: str | None) -> BodyStore | None:
    try:
        session = await opener.open()
        try:
            return await opened_place(session, url)
        finally:
            session.close()
    except SessionLost as error:
        raise unavailable(error) from None


async def _joined(
    opener: SessionOpener,
    clock: Clock,
    options: PostgresOptions,
    marks: StoreMarks,
    bodies: BodyStore | None,
) -> PostgresEngine:
    database_clock, notices = DatabaseClock(clock), Notices()
    members = SharedTable(
        opener, database_clock, options.table_clock, notices.notified, notices.session_opened
    )
    used = clock if options.table_clock is not None else database_clock
    asked = used.boot_ticks()
    try:
        is_idle = options.begins_idle or not options.serves
        found = await joined(members, _watched(options), is_idle=is_idle)
        clocks = _Clocks(database_clock, used, asked)
        parts = _parts(opener, members, clocks, found, options, bodies)
    except BaseException:
        await members.close()
        raise
    engine = PostgresEngine(parts, allows_reset=found.seen.marks.allows_reset)
    try:
        _check_marks(marks, found.seen.marks)
        await _check_sessions(engine, opener, options.connections)
    except BaseException:
        await engine.close()
        raise
    notices.connect(parts.upkeep)
    parts.upkeep.start(beats=options.beats, maintains=options.serves)
    return engine


async def _make_if_missing(opener: SessionOpener, marks: StoreMarks) -> None:
    """Open a session; if there is no store, try to make one, and let the next session judge."""
    try:
        await _try(opener)
    except StoreMissing:
        sql = init_sql(opener.schema, None, marks)
        await _run_script(opener.address, sql)
        await _try(opener)


async def _try(opener: SessionOpener) -> None:
    opening = Opening(opener.open, accepts_refusal=True)
    try:
        (await opening.session(_START_PATIENCE_S)).close()
    finally:
        opening.cancel()


class _Clocks(msgspec.Struct, frozen=True):
    """The clocks of a gateway.

    Attributes:
        used: that of store time.
        asked: the boot clock before the gateway asked to join.
    """

    database: DatabaseClock
    used: Clock
    asked: int


def _watched(options: PostgresOptions) -> WatchedGateways:
    return WatchedGateways() if options.table_clock is None else WatchedGateways(None)


def _parts(
    opener: SessionOpener,
    members: SharedTable,
    clocks: _Clocks,
    found: Joined,
    options: PostgresOptions,
    bodies: BodyStore | None,
) -> GatewayParts:
    """Make everything that a gateway consists of, once it has joined."""
    assert members.seen is not None
    seen, life, watchers, flights = members.seen, Life(), Watchers(), Flights()
    space = Space(options.quota_bytes)
    space.used_bytes = seen.used_bytes
    # If the database's clock fell, time goes on from the last heartbeat. So no lease ends early.
    time = SharedTime(clocks.used, seen.table.highest, seen.shift, watchers, found.behind)
    gateway = _gateway(found, seen, clocks, _Told(life, time, space, flights))
    gateways = PostgresGateways(members, gateway, Heartbeats(members, gateway))
    reading, updating = _pools(opener, found.run.number, options.connections)
    records = Records(reading, gateway.state.observe)
    apart = None if bodies is None else ApartBodies(bodies, options.apart_bytes)
    contents = PostgresContents(reading, _content_writer(gateways, gateway), space, apart)
    waits = Waits(watchers, records.versions, members.send, gateways.must_tell)
    context = CommitContext(
        gateway=_committing(gateways, gateway, seen, waits),
        line=UpdateLine(),
        adoptions=contents.adoptions,
        space=space,
        flights=flights,
        times=CommitTimes(),
        hook=CommitHook(),
    )
    commits = Commits(updating, context)
    tending = None
    if bodies is not None:
        bodies.on_broken(life.failed)
        turns = Turns(bodies, gateways, reading, life.failed, options.observe_s)
        pins, keep_s = contents.reads.pins, options.keep_dropped_s
        tending = turns, ApartSweep(bodies, turns, reading, pins, keep_s)
    return GatewayParts(
        shown=opener.address.shown,
        opener=opener,
        clock=clocks.database,
        life=life,
        time=time,
        watchers=watchers,
        members=members,
        gateways=gateways,
        updating=updating,
        reading=reading,
        records=records,
        commits=commits,
        contents=contents,
        waits=waits,
        bodies=bodies,
        space=space,
        upkeep=Upkeep(gateways, members, time, (commits, contents, waits), reading, tending),
    )


class _Told(msgspec.Struct, frozen=True):
    """The parts that a gateway tells, or asks, with each heartbeat."""

    life: Life
    time: SharedTime
    space: Space
    flights: Flights

    def learned(self, seen: TableSeen) -> None:
        self.space.used_bytes = seen.used_bytes
        self.time.learn(seen.shift)


def _gateway(found: Joined, seen: TableSeen, clocks: _Clocks, told: _Told) -> JoinedGateway:
    return JoinedGateway(
        run=found.run,
        state=GatewayState(found.run, seen.table, clocks.asked, VERSION),
        time=told.time,
        in_flight=told.flights.stamps,
        boot_ticks=clocks.used.boot_ticks,
        doubt_s=lambda: clocks.database.doubt_s,
        life=told.life,
        watched=found.watched,
        learned=told.learned,
    )


def _content_writer(gateways: PostgresGateways, gateway: JoinedGateway) -> ContentWriter:
    return ContentWriter(
        number=gateway.run.number,
        incarnation=gateway.run.incarnation,
        new_id=lambda: gateway.state.stamp(gateway.time.now()),
        ensure_serving=gateways.ensure_serving,
        begin_reading=gateways.begin_reading,
    )


def _committing(
    gateways: PostgresGateways, gateway: JoinedGateway, seen: TableSeen, waits: Waits
) -> CommittingGateway:
    return CommittingGateway(
        number=gateway.run.number,
        incarnation=gateway.run.incarnation,
        salt=seen.lock_space,
        stamp=lambda: gateway.state.stamp(gateway.time.now()),
        observe=gateway.state.observe,
        ensure_live=gateways.heartbeats.ensure_live,
        died=gateways.heartbeats.died,
        committed=waits.committed,
        numbers=LockNumbers(seen.salt),
    )


def _pools(opener: SessionOpener, gateway: int, connections: int) -> tuple[Pool, Pool]:
    """Half of the lanes for what may be repeated, half for updates."""
    lanes = [Lane(opener, gateway, slot) for slot in range(connections)]
    half = (connections + 1) // 2
    return Pool(lanes[:half]), Pool(lanes[half:])


def _check_marks(wanted: StoreMarks, found: StoreMarks) -> None:
    """Raises: DatabaseUnfit: the store was made without what is asked of it."""
    if wanted.test_clock and not found.test_clock:
        raise DatabaseUnfit(
            "this store was made without a test clock; serve it without --test-clock, or make "
            "another store"
        )
    if wanted.allows_reset and not found.allows_reset:
        raise DatabaseUnfit(
            "this store was made without --allow-reset; serve it without, or make another store"
        )


async def _check_sessions(engine: PostgresEngine, opener: SessionOpener, connections: int) -> None:
    """Open all sessions. Raises: DatabaseUnfit: too few are left, or a pooler shares them."""
    allowed = int(opener.settings["max_connections"]) - _RESERVED
    if connections + 1 > allowed:
        raise DatabaseUnfit(
            f"the server allows {allowed} connections, and this gateway needs {connections} and "
            "one for its heartbeats; raise max_connections, or lower --store-connections"
        )
    first = await engine.lanes()[0].session(_START_PATIENCE_S)
    if rows := await first.simple(RIGHTS, opener.schema):
        names = ", ".join(name for (name,) in rows)
        raise DatabaseUnfit(
            f"the role may not read and change these tables of the store: {names}; `strongroom "
            "store init URL --print-sql ROLE` shows what it must be granted"
        )
    lanes = engine.lanes()
    sessions = await asyncio.gather(*(lane.session(_START_PATIENCE_S) for lane in lanes))
    processes = [(await one.simple("SELECT pg_backend_pid()"))[0][0] for one in sessions]
    if len(set(processes)) < len(processes):
        raise DatabaseUnfit(POOLED)
