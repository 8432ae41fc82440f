"""A store in PostgreSQL that no gateway serves, as the source of a copy to any engine.

Lives here: the one session of a copy, and reading in the order of the contract
(engines/transfer.py). Must not live here: writing (transfer_target.py).

Each gateway that joins counts the version of `membership` up, and only then it commits. So a
version that stays the same proves that nothing has changed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Final

import msgspec

from strongroom.engines.base import Key, Partition, Ref, Unavailable
from strongroom.engines.bodies.base import BodyMissing, BodyStore
from strongroom.engines.membership import LATE_TICKS, MembershipTable, remove_dead
from strongroom.engines.postgres.apart.place import opened_known, place_row
from strongroom.engines.postgres.sessions.address import address_of
from strongroom.engines.postgres.sessions.openers import SessionOpener, unavailable
from strongroom.engines.postgres.sessions.session import (
    Away,
    DatabaseSession,
    DatabaseUnfit,
    SessionLost,
    StatementRefused,
    StatementResult,
)
from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.places import (
    keyspace_of,
    keyspace_prefix,
    place_of,
    position_of,
)
from strongroom.engines.postgres.sql.schema import (
    CHUNKS,
    OPEN,
    SCAN,
    TRANSFER_IS_APART,
    TRANSFER_LOOK,
    Statement,
)
from strongroom.engines.postgres.sql.versions import lacking_version, of_version
from strongroom.engines.transfer import (
    CONTENTS_MAX,
    PAGE_BYTES,
    ContentSum,
    CopyRefused,
    SourceState,
    StoredRecord,
    StoreTraits,
)
from strongroom.values import UNIX_EPOCH_TICKS

_RECORDS_MAX: Final = 4096
_AFTER_ALL: Final = b"\xff"
_FULL: Final = "53100"
_SUM_MODULUS: Final = 1 << 64

CONTENTS: Final = Statement(
    "transfer_contents",
    "SELECT id, size, crc FROM contents WHERE id > $1 AND is_adopted ORDER BY id LIMIT $2",
    (wire.INT8, wire.INT8),
)
SIZE: Final = Statement(
    "transfer_size",
    """SELECT (SELECT coalesce(sum(size), 0)::bigint FROM contents WHERE is_adopted),
        pg_table_size('records'::regclass)""",
)


class StoreSeen(msgspec.Struct, frozen=True):
    """The rows of a store about itself, at one moment.

    Attributes:
        version: how often the table of gateways was changed.
        now: the database's clock.
        highest: the greatest stamp that a commit had.
        transfer: the source, while the store is an unfinished copy.
    """

    table: MembershipTable
    version: int
    now: int
    highest: int
    shift: int
    allows_reset: bool
    foreign_etags: bool
    transfer: str | None
    store_id: str

    @property
    def gateways(self) -> tuple[int, ...]:
        """The numbers of those that are live."""
        return tuple(sorted(remove_dead(self.table, self.now).rows))

    @property
    def ceiling(self) -> int:
        """A gateway that did not leave may have told later times than it could publish."""
        highest = max(self.highest, self.table.highest)
        return highest + LATE_TICKS if self.table.rows else highest


class StoreLink:
    """The session of a copy; make it with `open`. It is not opened again: a copy goes on later.

    Attributes:
        shown: where the store is, without secrets.
    """

    def __init__(self, session: DatabaseSession, shown: str) -> None:
        self._session = session
        self.shown = shown

    @classmethod
    async def open(
        cls, url: str, schema: str, statements: Sequence[Statement], least_version: int = 1
    ) -> StoreLink:
        """Raises: Unavailable, DatabaseUnfit: StoreMissing if there is no store."""
        opener = SessionOpener(address_of(url), schema)
        try:
            session = await opener.open()
        except SessionLost as error:
            raise unavailable(error) from None
        link = cls(session, opener.address.shown)
        try:
            if (lacking := lacking_version(session.version, least_version)) is not None:
                raise DatabaseUnfit(lacking)
            prepared = of_version(statements, session.version)
            await link._asked(lambda: session.prepare(prepared))
        except BaseException:
            session.close()
            raise
        return link

    async def run(self, statement: Statement, *values: bytes | None) -> StatementResult:
        """Raises: CopyRefused: the disk is full; Unavailable."""
        answers: list[StatementResult] = []

        async def ask() -> None:
            answers.append(await self._session.run(statement, *values))

        await self._asked(ask)
        return answers[0]

    async def simple(self, sql: str, *values: str) -> list[list[str]]:
        """Execute SQL with text parameters. Raises as `run`."""
        rows: list[list[str]] = []

        async def ask() -> None:
            rows.extend(await self._session.simple(sql, *values))

        await self._asked(ask)
        return rows

    async def look(self) -> StoreSeen:
        answer = await self.run(TRANSFER_LOOK)
        if not answer.rows:
            raise CopyRefused(f"{self.shown} has tables, but no store; run strongroom store init")
        version, body, micros, highest, shift, _, *rest = answer.rows[0]
        resets, foreign, transfer, store_id = rest
        return StoreSeen(
            table=msgspec.msgpack.decode(body, type=MembershipTable) if body else MembershipTable(),
            version=wire.number_of(version or b""),
            now=wire.number_of(micros or b"") * 10 + UNIX_EPOCH_TICKS,
            highest=wire.number_of(highest or b""),
            shift=wire.number_of(shift or b""),
            allows_reset=resets == b"\1",
            foreign_etags=foreign == b"\1",
            transfer=None if transfer is None else transfer.decode(),
            store_id=(store_id or b"").decode(),
        )

    async def _asked(self, ask: Callable[[], Coroutine[object, object, None]]) -> None:
        try:
            await ask()
        except SessionLost as error:
            raise Away(
                f"the connection to {self.shown} was lost ({error}). Run the same command again: "
                "it goes on where it was cut"
            ) from None
        except StatementRefused as error:
            if error.state == _FULL:
                raise CopyRefused(
                    f"the disk of {self.shown} is full. Free some space there, and run the same "
                    "command again: it goes on where it was cut"
                ) from None
            raise Unavailable(f"{self.shown}: {error}") from None

    def close(self) -> None:
        self._session.close()


class PostgresSource:
    """See TransferSource; make it with `open`."""

    def __init__(self, link: StoreLink, seen: StoreSeen, place: BodyStore | None) -> None:
        self._link = link
        self._seen = seen
        self._place = place
        mark = f"postgresql {seen.store_id} {seen.version} {seen.ceiling}"
        self.state = SourceState(mark, link.shown)
        self.traits = StoreTraits(
            seen.ceiling,
            test_clock=seen.shift != 0,
            allows_reset=seen.allows_reset,
            foreign_etags=seen.foreign_etags,
        )

    @classmethod
    async def open(cls, url: str, schema: str) -> PostgresSource:
        """Raises: CopyRefused: the store is served, or not whole; Unavailable, DatabaseUnfit."""
        source = await cls.open_unfinished(url, schema)
        try:
            seen = source._seen
            if seen.transfer is not None:
                raise CopyRefused(
                    f"{source._link.shown} is the target of a copy that is not complete; complete "
                    "that one first"
                )
            refuse_gateways(source._link.shown, seen)
        except BaseException:
            await source.close()
            raise
        return source

    @classmethod
    async def open_unfinished(cls, url: str, schema: str) -> PostgresSource:
        """Open a store that is being written, to verify it."""
        link = await StoreLink.open(url, schema, (TRANSFER_LOOK, CONTENTS, SIZE, TRANSFER_IS_APART))
        try:
            known = (await place_row(link)).place
            place = await opened_known(link, known) if known else None
            return cls(link, await link.look(), place)
        except BaseException:
            link.close()
            raise

    async def size_bytes(self) -> tuple[int, int]:
        ((bodies, records),) = (await self._link.run(SIZE)).rows
        return wire.number_of(bodies or b""), wire.number_of(records or b"")

    async def records(self, after: Ref | None) -> AsyncIterator[Sequence[StoredRecord]]:
        first: bytes | None = b"" if after is None else place_of(after) + b"\0"
        limits = (wire.int8(_RECORDS_MAX), wire.int8(PAGE_BYTES))
        while first is not None:
            rows = (await self._link.run(SCAN, first, _AFTER_ALL, *limits)).rows
            # The last row, if it has no value, is where the next page begins.
            first = rows.pop()[0] if rows and rows[-1][2] is None else None
            if rows:
                yield [_record(place or b"", version, value) for place, version, value in rows]

    async def contents(self, after: int) -> AsyncIterator[Sequence[ContentSum]]:
        limit = wire.int8(CONTENTS_MAX)
        while rows := (await self._link.run(CONTENTS, wire.int8(after), limit)).rows:
            page = [_sum(*row) for row in rows]
            yield page
            after = page[-1].id

    async def bodies(self, contents: Sequence[ContentSum]) -> Sequence[bytes]:
        rows = (await self._link.run(OPEN, wire.int8s([one.id for one in contents]))).rows
        found = {wire.number_of(row[0] or b""): row[3] or b"" for row in rows}
        for row in rows:
            if row[4] == b"\1":
                body_id = wire.number_of(row[0] or b"")
                found[body_id] = b"".join([piece async for piece in self._apart(body_id)])
        return [found.get(one.id, b"") for one in contents]

    async def _apart(self, body_id: int) -> AsyncIterator[bytes]:
        if self._place is None:
            return
        try:
            body = await self._place.open(body_id)
        except BodyMissing:
            return  # the caller finds it too short
        try:
            for offset in range(0, body.size_bytes, PAGE_BYTES):
                yield await body.read(offset, PAGE_BYTES)
        finally:
            body.close()

    async def chunks(self, content: ContentSum) -> AsyncIterator[bytes]:
        """They end at the first one that does not follow on the last."""
        if self._place is not None:
            rows = (await self._link.run(TRANSFER_IS_APART, wire.int8(content.id))).rows
            if rows and rows[0][0] == b"\1":
                async for part in self._apart(content.id):
                    yield part
                return
        end = 0
        for offset in range(0, content.size_bytes, PAGE_BYTES):
            bounds = (wire.int8(offset), wire.int8(offset + PAGE_BYTES))
            for at, piece in (await self._link.run(CHUNKS, wire.int8(content.id), *bounds)).rows:
                if wire.number_of(at or b"") != end:
                    return
                yield piece or b""
                end += len(piece or b"")

    async def ensure_unchanged(self) -> None:
        seen = await self._link.look()
        if seen.version != self._seen.version:
            raise CopyRefused(
                f"a gateway has opened {self._link.shown} during the copy; stop it, and copy to a "
                "new target"
            )

    async def close(self) -> None:
        self._link.close()
        if self._place is not None:
            await self._place.close()


def refuse_gateways(shown: str, seen: StoreSeen) -> None:
    """Raise CopyRefused if a gateway is live."""
    if seen.gateways:
        numbers = ", ".join(map(str, seen.gateways))
        raise CopyRefused(
            f"{shown} is being served (by the gateways with the numbers {numbers}); stop all of "
            "them first. One that was killed counts for 10 s"
        )


def record_ref(place: bytes) -> Ref:
    """The address of a record, from its place."""
    keyspace = keyspace_of(place)
    partition, name = position_of(place, len(keyspace_prefix(keyspace)))
    return Ref(Partition(keyspace, partition), Key(place[:1] == b"h", name))


def _record(place: bytes, version: bytes | None, value: bytes | None) -> StoredRecord:
    return StoredRecord(record_ref(place), value or b"", wire.number_of(version or b""))


def _sum(content_id: bytes | None, size: bytes | None, checksum: bytes | None) -> ContentSum:
    return ContentSum(
        wire.number_of(content_id or b""),
        wire.number_of(size or b""),
        wire.number_of(checksum or b"") % _SUM_MODULUS,
    )
