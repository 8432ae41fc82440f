"""The membership table in the database: looked at, and changed by comparing and swapping it.

Lives here: one session for it, apart from all others, and the statements. Must not live here: the
rules of the table (membership.py), what this gateway makes of it (gateways.py).

The table is one row, so its rules stay pure functions of the whole. Beside it, `gateways` has who
is live: each commit checks that. A gateway is removed only after its commits under way have ended.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

import msgspec

from strongroom.clock import Clock
from strongroom.engines.membership import MembershipTable
from strongroom.engines.postgres.gateways.clock import DatabaseClock
from strongroom.engines.postgres.sessions.checks import unsafe_server
from strongroom.engines.postgres.sessions.lanes import AGAIN_S
from strongroom.engines.postgres.sessions.openers import (
    Opening,
    SessionOpener,
    refusal,
    unavailable,
)
from strongroom.engines.postgres.sessions.session import (
    DatabaseSession,
    DatabaseUnfit,
    SessionLost,
    StatementRefused,
    StatementResult,
    StoreReplaced,
)
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.making import StoreMarks
from strongroom.engines.postgres.sql.schema import CHANGE_MEMBERSHIP, MEMBERSHIP, NOTIFY
from strongroom.engines.postgres.sql.versions import unfit_version
from strongroom.values import UNIX_EPOCH_TICKS

T = TypeVar("T")

_PATIENCE_S: Final = 4.0
"""Shorter than a gateway may be without a heartbeat."""
_START_S: Final = 5.0
_REPLACED: Final = (
    "the store was deleted, and another one was made in its place, while this server used it"
)


class TableSeen(msgspec.Struct, frozen=True):
    """The table at one moment, and what is read with it.

    Attributes:
        version: how often the table was changed.
        now: the table's clock, without the shift.
        highest: the greatest stamp that was ever committed.
        used_bytes: see Space.
        asked: the gateway's own boot clock before it asked.
        shift: by how many ticks a test has moved store time.
        salt: of the store.
        secret: what all gateways know, and nobody else; a store of version 1 has none.
    """

    table: MembershipTable
    version: int
    now: int
    highest: int
    used_bytes: int
    asked: int
    shift: int
    salt: bytes
    secret: bytes
    marks: StoreMarks

    @property
    def lock_space(self) -> int:
        """The first of the two numbers of the locks of gateways."""
        return lock_space(self.salt)


class SharedTable:
    """The membership table.

    Arguments:
        clock: learns the time of the database, unless `table_clock` is given.
        table_clock: the table's clock in tests; None = the database's.
        notified: is told each notification of another gateway.
        opened: is told when a session was opened, since notifications before it are lost.

    Attributes:
        seen: the table at the last look.
        awaits_standby: whether the server waited for a standby with each commit then.
    """

    def __init__(
        self,
        opener: SessionOpener,
        clock: DatabaseClock,
        table_clock: Clock | None,
        notified: Callable[[str], None],
        opened: Callable[[], None],
    ) -> None:
        self._opener = opener
        self._clock = clock
        self._table_clock = table_clock
        self._notified = notified
        self._opened = opened
        self._turn = asyncio.Lock()
        self._session: DatabaseSession | None = None
        self._opening: Opening | None = None
        self._probing: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.seen: TableSeen | None = None
        self.awaits_standby = False

    async def look(self) -> TableSeen:
        """Raises: Unavailable."""
        return await self._limited(self._in_turn(self._look))

    async def change(
        self, rule: Callable[[TableSeen], tuple[MembershipTable, T] | None]
    ) -> tuple[TableSeen, T] | None:
        """Change the table by a pure rule, which may run more than once. Return the table after
        the change with the rule's result, None if the rule refuses.

        Raises: Unavailable: whether it was changed is unknown, and it may yet be changed.
        """
        return await self._limited(self._change(rule))

    async def _change(
        self, rule: Callable[[TableSeen], tuple[MembershipTable, T] | None]
    ) -> tuple[TableSeen, T] | None:
        while True:
            seen = await self._in_turn(self._look)
            ruled = rule(seen)
            if ruled is None:
                return None
            table, result = ruled
            if table == seen.table:
                return seen, result
            if await self._in_turn(functools.partial(self._swap, seen, table)):
                self.seen = msgspec.structs.replace(seen, table=table, version=seen.version + 1)
                return self.seen, result

    def send(self, payload: str) -> None:
        """Tell all other gateways soon. It is a hint, which may be lost."""
        self._do(self._in_turn(functools.partial(self._send, payload)))

    async def tell(self, payload: str) -> None:
        """Like `send`, and return when it was sent. Raises: Unavailable."""
        await self._limited(self._in_turn(functools.partial(self._send, payload)))

    async def _send(self, payload: str, session: DatabaseSession) -> None:
        assert self.seen is not None
        channel = channel_of(self.seen.salt)
        await session.run(NOTIFY, channel.encode(), payload.encode())

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._opening is not None:
            self._opening.cancel()
        if self._session is not None:
            self._session.close()

    def _do(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have gone

    async def _limited(self, work: Coroutine[object, object, T]) -> T:
        """A statement that waits for a standby is not given up with its caller: see
        `openers.Opening`."""
        task = self._do(work)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await asyncio.shield(task)
        except TimeoutError:
            if self._probing is None or self._probing.done():
                self._probing = self._do(self._opener.probe())
            raise unavailable(None) from None

    async def _in_turn(self, ask: Callable[[DatabaseSession], Awaitable[T]]) -> T:
        """Ask in the session, one after the other; again in a new session if it is lost.

        Raises: Unavailable.
        """
        async with self._turn:
            while True:
                session = await self._opened_session()
                try:
                    return await ask(session)
                except StatementRefused as error:
                    if not error.is_transient:
                        raise error.as_engine_error() from None
                    await asyncio.sleep(AGAIN_S)
                except SessionLost:
                    session.close()

    async def _opened_session(self) -> DatabaseSession:
        if self._session is None or self._session.is_lost:
            if self._opening is None or self._opening.has_failed:
                self._opening = Opening(self._open, accepts_refusal=self.seen is None)
            self._session = await self._opening.session(_START_S)
            self._opening = None
            self._opened()
        return self._session

    async def _open(self) -> DatabaseSession:
        session = await self._opener.open(self._notified)
        try:
            if self.seen is None:
                self.seen = await self._look(session)
            await session.simple(f'LISTEN "{channel_of(self.seen.salt)}"')
        except StatementRefused as error:
            session.close()
            raise refusal(error) from None
        except BaseException:
            session.close()
            raise
        return session

    async def _look(self, session: DatabaseSession) -> TableSeen:
        sent = self._clock.boot_ticks()
        answer = await session.run(MEMBERSHIP)
        received = self._clock.boot_ticks()
        if not answer.rows:
            raise DatabaseUnfit("this database has no store; make one with `strongroom store init`")
        seen = self._seen(answer, sent, received)
        self.seen = seen
        return seen

    def _seen(self, answer: StatementResult, sent: int, received: int) -> TableSeen:
        row = answer.rows[0]
        version, body, micros, highest, used, shift, salt, schema = row[:8]
        secret, resets, test_clock, partial = row[8:12]
        self._check_server(row[12:])
        if self.seen is not None and self.seen.salt != salt:
            raise StoreReplaced(_REPLACED)
        if (unfit := unfit_version(wire.number_of(schema or b""))) is not None:
            raise DatabaseUnfit(unfit)
        if partial == b"\1":
            raise DatabaseUnfit(
                "this store is the target of a copy that is not complete; the same `strongroom "
                "store copy` goes on where it was cut"
            )
        database = wire.number_of(micros or b"") * 10 + UNIX_EPOCH_TICKS
        if self._table_clock is None:
            self._clock.learn(sent, received, database)
        else:
            database = self._table_clock.wall_ticks()
        return TableSeen(
            table=msgspec.msgpack.decode(body, type=MembershipTable) if body else MembershipTable(),
            version=wire.number_of(version or b""),
            now=database,
            highest=wire.number_of(highest or b""),
            used_bytes=wire.number_of(used or b""),
            asked=sent,
            shift=wire.number_of(shift or b""),
            salt=salt or b"",
            secret=secret or b"",
            marks=StoreMarks(resets == b"\1", test_clock == b"\1"),
        )

    def _check_server(self, values: Sequence[bytes | None]) -> None:
        """An administrator may have changed settings that all sessions follow at once."""
        names = ("fsync", "full_page_writes", "synchronous_standby_names")
        found = {name: (value or b"").decode() for name, value in zip(names, values, strict=True)}
        self.awaits_standby = bool(found["synchronous_standby_names"])
        if (unsafe := unsafe_server(found, self._opener.demands)) is not None:
            raise DatabaseUnfit(unsafe)

    async def _swap(
        self, seen: TableSeen, table: MembershipTable, session: DatabaseSession
    ) -> bool:
        values = change_values(seen.table, table, seen.version, seen.salt)
        answer = await session.run(CHANGE_MEMBERSHIP, *values)
        # A change that no standby has confirmed counts as none: the next one confirms both.
        return answer.rows[0][0] == b"\1" and not answer.warned


def change_values(
    before: MembershipTable, after: MembershipTable, version: int, salt: bytes
) -> tuple[bytes, ...]:
    """The parameters of CHANGE_MEMBERSHIP.

    Arguments:
        version: how often the table was changed before.
    """
    live = sorted(after.rows)
    removed = sorted(
        number
        for number, row in before.rows.items()
        if number not in after.rows or after.rows[number].incarnation != row.incarnation
    )
    return (
        wire.int8(version),
        msgspec.msgpack.encode(after),
        wire.int4(lock_space(salt)),
        wire.int8s(live),
        wire.int8s([after.rows[number].incarnation for number in live]),
        wire.int8s(removed),
    )


def lock_space(salt: bytes) -> int:
    """The first of the two numbers of the locks of gateways, of a store with this salt."""
    return int.from_bytes(salt[:4], "big", signed=True)


def channel_of(salt: bytes) -> str:
    return f"strongroom_{salt[:8].hex()}"


def payloads(hashes: Sequence[str], size_max: int = 7000) -> list[str]:
    """Notifications of at most 8,000 bytes each, for the numbers of changed records."""
    each = size_max // 17
    return ["changed:" + ",".join(hashes[at : at + each]) for at in range(0, len(hashes), each)]
