"""Inspection of a store in PostgreSQL from outside: is it whole, and what does it hold?

Lives here: one snapshot of the database with its contents, and the place of the bodies apart. It
may be taken while gateways serve: they keep for days what they drop. The layer above judges whether
a content is referenced, with `content_ids`, `records` and `read_content`. Must not live here: the
same for a data directory (engines/embedded/upkeep/check.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final

import psycopg
from psycopg import sql

from strongroom.engines.base import ContentMissing, Record, Ref
from strongroom.engines.bodies.base import BodiesUnfit, InspectedBodies
from strongroom.engines.bodies.places import inspect_place
from strongroom.engines.checksum import crc64
from strongroom.engines.findings import Finding
from strongroom.engines.postgres.apart.sweep import ORPHANS_KEEP_S
from strongroom.engines.postgres.sessions.address import address_of
from strongroom.engines.postgres.sessions.session import Away, DatabaseUnfit, one_line
from strongroom.engines.postgres.sql.versions import APART_VERSION, unfit_version
from strongroom.engines.postgres.transfer import record_ref

_SUM_MODULUS: Final = 1 << 64
_BEGIN: Final = """
SET default_transaction_isolation = 'repeatable read';
SET default_transaction_read_only = on;
SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0"""
# A store of version 1 has no bodies apart.
_STORE: Final = """
SELECT id::text, coalesce(to_jsonb(s) ->> 'bodies', ''), transfer IS NOT NULL, version
FROM store s"""
_CONTENTS: Final = "SELECT id, size, crc, {apart} FROM contents WHERE is_adopted ORDER BY id"
_ONE: Final = "SELECT id, size, crc, {apart} FROM contents WHERE id = %s AND is_adopted"
_STRAY_CHUNKS: Final = """
SELECT DISTINCT id FROM chunks k WHERE NOT EXISTS (SELECT FROM contents c WHERE c.id = k.id)
    AND NOT EXISTS (SELECT FROM dropped d WHERE d.id = k.id) ORDER BY id"""
_OWNED: Final = """
SELECT id FROM contents WHERE id = ANY (%s) UNION SELECT id FROM dropped WHERE id = ANY (%s)"""

Row = tuple[int, int, int, bool]
"""Of a content: id, size, checksum, whether it lies apart."""


class StoreInspection:
    """A snapshot of a store, for reading. Use it in a `with` statement.

    Arguments:
        keep_s: how old a body without an owner may be before it is found; a day at least.

    Attributes:
        shown: where the database is.
        young: how many bodies without an owner are younger, and their bytes.

    Raises: Unavailable; DatabaseUnfit and BodiesUnfit: it cannot be inspected.
    """

    def __init__(self, url: str, schema: str, keep_s: float) -> None:
        self._url = url
        self._keep_s = max(keep_s, ORPHANS_KEEP_S)
        self.shown = address_of(url).shown
        self._numbers = itertools.count()
        self.young = (0, 0)
        try:
            self._session = psycopg.connect(url, autocommit=True, application_name="strongroom")
            try:
                self._begin(schema)
            except BaseException:
                self._session.close()
                raise
        except psycopg.OperationalError as error:
            raise Away(f"the database cannot be reached: {one_line(str(error))}") from None
        except psycopg.Error as error:
            raise DatabaseUnfit(f"this is no store: {one_line(str(error))}") from None

    def _begin(self, schema: str) -> None:
        path = sql.SQL("SET search_path = {}").format(sql.Identifier(schema))
        self._session.execute(path)
        for one in _BEGIN.split(";"):
            self._session.execute(one.encode())
        self._session.autocommit = False
        rows = self._session.execute(_STORE).fetchall()
        if not rows or rows[0][2]:
            raise DatabaseUnfit("it has no store, or the unfinished copy of one")
        if (unfit := unfit_version(rows[0][3])) is not None:
            raise DatabaseUnfit(unfit)
        self._apart_column = "is_apart" if rows[0][3] >= APART_VERSION else "false"
        self.place = str(rows[0][1])
        self._bodies = None if not self.place else inspect_place(self.place)
        if self._bodies is not None and str(self._bodies.mark.store) != rows[0][0]:
            raise BodiesUnfit(f"{self.place} has the bodies of another store")

    def __enter__(self) -> StoreInspection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.close()

    def records(self) -> Iterator[tuple[Ref, Record | None]]:
        """In order, face keys first."""
        order = "SELECT place, version, value FROM records ORDER BY substr(place, 1, 2000), place"
        for place, version, value in self._rows(order):
            yield record_ref(bytes(place)), Record(bytes(value), version)

    def content_ids(self) -> Iterator[int]:
        """Of all contents, ascending."""
        for content_id, *_ in self._rows(_CONTENTS.format(apart=self._apart_column)):
            yield content_id

    def read_content(self, content_id: int) -> Iterator[bytes]:
        """In pieces. Raises ContentMissing, OSError."""
        one = _ONE.format(apart=self._apart_column).encode()
        row = self._session.execute(one, (content_id,)).fetchone()
        if row is None:
            raise ContentMissing(f"no partition owns content {content_id}")
        yield from self._pieces(content_id, is_apart=row[3])

    def body_findings(self) -> Iterator[Finding]:
        """Read all bodies, and look for those that nobody owns. Raises OSError."""
        for row in self._rows(_CONTENTS.format(apart=self._apart_column)):
            if (problem := self._problem(row)) is not None:
                yield Finding(f"content {row[0]}", problem, content=row[0])
        for (content_id,) in self._rows(_STRAY_CHUNKS):
            yield Finding(f"chunks of content {content_id}", "nobody owns them")
        if self._bodies is not None:
            yield from self._unowned(self._bodies)

    def _problem(self, row: Row) -> str | None:
        content_id, size_bytes, checksum, is_apart = row
        found_bytes = found = 0
        try:
            for piece in self._pieces(content_id, is_apart=is_apart):
                found_bytes += len(piece)
                found = crc64(piece, found)
        except FileNotFoundError:
            return f"its body in {self.place} is missing"
        if found_bytes != size_bytes:
            return f"it has {found_bytes} of {size_bytes} bytes"
        return None if found == checksum % _SUM_MODULUS else "its checksum differs"

    def _pieces(self, content_id: int, *, is_apart: bool) -> Iterator[bytes]:
        if is_apart:
            yield from self._apart(content_id)
            return
        whole = self._session.execute("SELECT data FROM contents WHERE id = %s", (content_id,))
        ((data,),) = whole.fetchall()
        if data is not None:
            yield bytes(data)
            return
        chunks = "SELECT at, data FROM chunks WHERE id = %s ORDER BY at"
        end = 0
        for at, chunk in self._rows(chunks, (content_id,), 4):
            if at != end:
                return
            end += len(chunk)
            yield bytes(chunk)

    def _apart(self, content_id: int) -> Iterator[bytes]:
        if self._bodies is None:
            raise FileNotFoundError(content_id)
        yield from self._bodies.pieces(content_id)

    def _unowned(self, bodies: InspectedBodies) -> Iterator[Finding]:
        """The rows are asked in a later snapshot than the bodies: a row comes after its body."""
        with psycopg.connect(self._url, autocommit=True) as later:
            later.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(self._schema())))
            for ids in map(list, bodies.pages()):
                owned = {one for (one,) in later.execute(_OWNED, (ids, ids)).fetchall()}
                for body in bodies.states([one for one in ids if one not in owned]):
                    if body.age_s > self._keep_s:
                        days = f"{body.age_s / 86400:.0f} days"
                        yield Finding(
                            f"body {body.id} in {self.place}", f"nobody owns it, for {days}"
                        )
                    else:
                        count, size_bytes = self.young
                        self.young = count + 1, size_bytes + body.size_bytes

    def _schema(self) -> str:
        ((schema,),) = self._session.execute("SELECT current_schema()").fetchall()
        return str(schema)

    def _rows(
        self, query: str, values: Sequence[Any] = (), at_once: int = 1000
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of a query in the snapshot, a part of them at once."""
        with self._session.cursor(f"strongroom_{next(self._numbers)}") as cursor:
            cursor.itersize = at_once
            cursor.execute(query.encode(), values or None)
            yield from cursor
