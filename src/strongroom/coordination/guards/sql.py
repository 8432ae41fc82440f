"""Tables that refuse writes with an old fence: any SQL database as the resource.

    with held.guard.sql(connection) as cursor:      # one transaction
        cursor.execute("UPDATE accounts SET ...")

    held.guard.sql(connection).enter(cursor)        # or inside a transaction of the caller's own

A row per resource, in the same database as the data, keeps the highest fence seen. The guard writes
its own fence there inside the transaction that writes the data. The row stays locked until that
commits. So a later holder comes after it, and an older one is refused. No clock is involved. The
guard works with connections as Python's DB-API 2.0 (PEP 249) describes them. Its statements are
those that every SQL database knows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Protocol

from strongroom.coordination.errors import CorruptRecord, StoreUnavailable, Unsupported
from strongroom.coordination.guards.fencing import Fenced, FencedOut

TABLE: Final = """
CREATE TABLE IF NOT EXISTS strongroom_fences (
    resource VARCHAR(255) NOT NULL PRIMARY KEY,
    fence BIGINT NOT NULL
)"""
"""What must be in the database before a guard is entered; `create_table` makes it."""
_RAISE_FENCE: Final = """
UPDATE strongroom_fences SET fence = :fence WHERE resource = :resource AND fence <= :limit"""
_READ_FENCE: Final = "SELECT fence FROM strongroom_fences WHERE resource = :resource"
_INSERT_FENCE: Final = "INSERT INTO strongroom_fences (resource, fence) VALUES (:resource, :fence)"
_NAMED: Final = re.compile(r":(\w+)")
_RESOURCE_MAX: Final = 255
_FENCE_MAX: Final = 2**63 - 1
_IDLE_STATUS: Final = 0  # of libpq: no transaction is open


class Cursor(Protocol):
    """The methods that a guard needs of a DB-API 2.0 cursor."""

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed."""
        ...

    def execute(self, operation: Any, parameters: Any = ..., /) -> Any: ...

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...

    def close(self) -> Any: ...


class SqlConnection(Protocol):
    """The methods that a guard needs of a DB-API 2.0 connection."""

    def cursor(self) -> Any:
        """Return a `Cursor`."""
        ...

    def commit(self) -> Any: ...

    def rollback(self) -> Any: ...


class SqlGuard:
    """The guard of one database, for one hold. As thread-safe as the connection is.

    Arguments:
        held: a handle, or a `Token`.
        connection: a DB-API 2.0 connection, not in autocommit mode.
        resource: names the protected data, at most 255 characters; the name of the hold by default.
            All data that is written under one lock may be one resource.
        paramstyle: "qmark", "format", "pyformat", "named" or "numeric". By default it is the
            `paramstyle` of the package that the connection's class belongs to.

    Raises:
        Unsupported: the parameter style is none of those or unknown, or the resource's name is too
            long.
    """

    def __init__(
        self,
        held: Fenced,
        connection: SqlConnection,
        *,
        resource: str | None = None,
        paramstyle: str | None = None,
    ) -> None:
        self._held, self._connection = held, connection
        self._resource = held.name if resource is None else resource
        if len(self._resource) > _RESOURCE_MAX:
            raise Unsupported(f"a resource's name has at most {_RESOURCE_MAX} characters")
        self._style = paramstyle or _style_of(connection)
        _with_parameters(_READ_FENCE, {"resource": ""}, self._style)
        self._cursor: Cursor | None = None

    def create_table(self) -> None:
        """Create the table of fences if there is none, in a transaction of its own.

        Raises: the driver's errors, among them one if two processes create the table at once.
        """
        cursor = self._connection.cursor()
        try:
            cursor.execute(TABLE)
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        finally:
            cursor.close()

    def enter(self, cursor: Cursor) -> None:
        """Check the fence inside the transaction of the cursor, and leave the transaction open.

        Call it first; then write, and commit. When it raises, the transaction must be rolled back.

        Arguments:
            cursor: of the connection.

        Raises:
            LockLost: the hold is known to be over.
            FencedOut: the database has seen a later holder.
            StoreUnavailable: another holder's first write came at the same time; roll back, and try
                again.
            Unsupported: no transaction is open, so that the check would protect nothing.
            CorruptRecord: the row of the resource does not contain a fence.
        """
        self._held.check()
        fence = self._held.fence
        if not 0 <= fence <= _FENCE_MAX:
            raise Unsupported(f"the fence {fence} is no BIGINT")
        parameters = {"resource": self._resource, "fence": fence, "limit": fence}
        self._raise(cursor, parameters)
        if _is_idle(self._connection):
            raise Unsupported(
                "the connection commits every statement by itself, so that nothing is guarded:"
                " turn its autocommit mode off, or begin a transaction first"
            )

    def __enter__(self) -> Cursor:
        """Begin: check the fence and return a cursor of the same transaction.

        Raises: as `enter`; the transaction is rolled back then.
        """
        cursor: Cursor = self._connection.cursor()
        try:
            self.enter(cursor)
        except BaseException:
            cursor.close()
            self._connection.rollback()
            raise
        self._cursor = cursor
        return cursor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit; roll back if the body failed."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()
        if kind is None:
            self._connection.commit()
        else:
            self._connection.rollback()

    def _raise(self, cursor: Cursor, parameters: dict[str, object]) -> None:
        """Write the fence into its row, which stays locked until the transaction ends."""
        for tried in (False, True):
            self._run(cursor, _RAISE_FENCE, parameters)
            if cursor.rowcount == 1:
                return
            seen = self._seen(cursor)
            if seen is None:
                self._first(cursor, parameters)
                return
            if seen > self._held.fence:
                raise FencedOut(self._held.name, self._held.fence, seen, self._resource)
            if tried and seen == self._held.fence:
                return  # the row is locked; some drivers do not count an unchanged row
        raise StoreUnavailable(f"{self._resource}: its fence changes all the time; try again")

    def _seen(self, cursor: Cursor) -> int | None:
        self._run(cursor, _READ_FENCE, {"resource": self._resource})
        row = cursor.fetchone()
        if row is None:
            return None
        seen = next(iter(row.values())) if isinstance(row, Mapping) else row[0]
        if not isinstance(seen, int):
            raise CorruptRecord(self._resource, repr(seen).encode(), "a fence")
        return seen

    def _first(self, cursor: Cursor, parameters: dict[str, object]) -> None:
        try:
            self._run(cursor, _INSERT_FENCE, parameters)
        except Exception as error:
            # Each driver has an error class of its own for that, with a name from PEP 249.
            if not any(kind.__name__ == "IntegrityError" for kind in type(error).__mro__):
                raise
            raise StoreUnavailable(
                f"{self._resource}: another holder entered at this moment; roll back, and try again"
            ) from error

    def _run(self, cursor: Cursor, statement: str, parameters: dict[str, object]) -> None:
        cursor.execute(*_with_parameters(statement, parameters, self._style))


def _style_of(connection: SqlConnection) -> str:
    for kind in type(connection).__mro__:
        driver = sys.modules.get(kind.__module__.partition(".")[0])
        style = getattr(driver, "paramstyle", None)
        if isinstance(style, str):
            return style
    raise Unsupported(
        "the connection's driver does not say how parameters are written: paramstyle="
    )


def _with_parameters(
    statement: str, parameters: dict[str, object], style: str
) -> tuple[str, object]:
    """Return a statement and its parameters in the driver's parameter style."""
    names = _NAMED.findall(statement)
    values = tuple(parameters[name] for name in names)
    match style:
        case "qmark":
            return _NAMED.sub("?", statement), values
        case "format":
            return _NAMED.sub("%s", statement), values
        case "pyformat":
            return _NAMED.sub(r"%(\1)s", statement), dict(zip(names, values, strict=True))
        case "named":
            return statement, dict(zip(names, values, strict=True))
        case "numeric":
            return _NAMED.sub(lambda found: f":{names.index(found[1]) + 1}", statement), values
    raise Unsupported(f"no parameter style is called {style!r}")


def _is_idle(connection: SqlConnection) -> bool:
    """Return whether certainly no transaction is open; each driver shows it in its own way."""
    open_now = getattr(connection, "in_transaction", None)
    if isinstance(open_now, bool):
        return not open_now
    status = getattr(getattr(connection, "info", None), "transaction_status", None)
    if isinstance(status, int):
        return status == _IDLE_STATUS
    return getattr(connection, "autocommit", None) is True
