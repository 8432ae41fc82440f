"""The versions of a store's tables that this program serves, and its statements for each.

Lives here: the rule "its own version and the one before", and statements for a store of the version
before, where they differ. Must not live here: how a store is migrated (making.py, migrating.py).

A statement that names what only version 2 has needs another form in `_VERSION_1`, with the same
name, parameters and columns, or `since=2`. A gateway that needs version 2 says so by
PostgresOptions.least_version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strongroom.engines.postgres.sql.schema import (
    COMMIT,
    DROPPED,
    FINISH_CONTENT,
    MEMBERSHIP,
    OPEN,
    TRANSFER_IS_APART,
    TRANSFER_LOOK,
    WRITE_CONTENTS,
    Statement,
)

VERSION: Final = 2
"""The version of the tables and functions that this program makes."""
MIGRATE: Final = "`strongroom store migrate URL`"


def unfit_version(found: int, newest: int = VERSION) -> str | None:
    """Why a program does not serve a store with tables of this version; None if it does.

    Arguments:
        newest: the version that the program makes.
    """
    if found > newest:
        return (
            f"the store has version {found} of its tables, and this program knows versions up to "
            f"{newest}; use a newer version of Strongroom"
        )
    if found < newest - 1:
        return (
            f"the store has version {found} of its tables, and this program knows versions "
            f"{newest - 1} and {newest}; {MIGRATE} of an older version of Strongroom brings it to "
            f"version {found + 1}"
        )
    return None


def lacking_version(found: int, least: int) -> str | None:
    """Why a gateway that needs a version at least does not serve a store; None if it does."""
    if found >= least:
        return None
    return (
        f"the store has version {found} of its tables, and what was asked for needs version "
        f"{least}; {MIGRATE} brings it there"
    )


APART_VERSION: Final = 2
"""Bodies may lie apart from it on."""
TOGETHER_VERSION: Final = 2
"""Gateways may serve beside each other from it on. A program that knows only version 1 knows no
shared right to serve. It also drops what such gateways write into records: who else waits, and the
shares of an upload's limits."""


def _changed(statement: Statement, text: str, other: str) -> Statement:
    """The statement with another text in one place. Raises: ValueError: it has no such place."""
    if statement.sql.count(text) != 1:
        raise ValueError(f"the statement {statement.name} has {text!r} not once")
    return Statement(statement.name, statement.sql.replace(text, other), statement.types)


def _with_totals(statement: Statement) -> Statement:
    return _changed(
        statement,
        "totals_() t",
        """(SELECT coalesce((SELECT max(highest) FROM outcomes), 0) AS highest,
            coalesce((SELECT sum(bytes) FROM outcomes), 0)::bigint AS bytes) t""",
    )


def _other(statement: Statement, sql: str) -> Statement:
    return Statement(statement.name, sql, statement.types)


_VERSION_1: Final = (
    _changed(OPEN, "is_apart", "false"),
    _changed(DROPPED, "WHERE NOT is_apart", ""),
    _changed(COMMIT, "grown, epoch", "grown, $4"),
    _changed(_with_totals(MEMBERSHIP), "s.secret", "''::bytea"),
    _other(
        WRITE_CONTENTS,
        """WITH new AS (
            INSERT INTO contents AS c (id, size, crc, data, gateway, incarnation)
            SELECT n.id, n.size, n.crc, n.data, $5::integer, $6
            FROM unnest($1, $2, $3, $4) AS n(id, size, crc, data)
            ON CONFLICT (id) DO UPDATE SET size = EXCLUDED.size
            RETURNING c.size, xmax = 0 AS is_new)
        UPDATE outcomes
        SET bytes = bytes + (SELECT coalesce(sum(size) FILTER (WHERE is_new), 0) FROM new)
        WHERE gateway = $5 AND slot = $7""",
    ),
    _other(
        FINISH_CONTENT,
        """WITH done AS (
            UPDATE contents SET size = $2, crc = $3 WHERE id = $1 AND size = 0 RETURNING id)
        UPDATE outcomes SET bytes = bytes + $2 * (SELECT count(*) FROM done)
        WHERE gateway = $4 AND slot = $5""",
    ),
    _changed(TRANSFER_IS_APART, "is_apart", "false"),
    _with_totals(TRANSFER_LOOK),
)


def of_version(statements: Sequence[Statement], version: int) -> list[Statement]:
    """The statements in the form that a store of this version needs. Those that it cannot have are
    left out: no gateway to it executes them."""
    before = {one.name: one for one in _VERSION_1} if version == 1 else {}
    return [before.get(one.name, one) for one in statements if one.since <= version]
