"""The versions of a store's tables that this program serves, and its statements for each.

Lives here: the rule "its own version and the one before", and statements for a store of the version
before, where they differ. Must not live here: how a store is migrated (making.py, migrating.py).

A statement that names what only version 2 has needs another form in `_VERSION_1`, with the same
name, parameters and columns. A gateway that needs version 2 says so by
PostgresOptions.least_version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from strongroom.engines.postgres.sql import wire
from strongroom.engines.postgres.sql.schema import (
    COMMIT,
    DISCARD_APART,
    DROPPED,
    DROPPED_APART,
    FINISH_CONTENT,
    KNOWS_TURN,
    NEXT_TURN,
    OPEN,
    UNOWNED,
    WRITE_APART,
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
_ONLY_VERSION_2: Final = frozenset(
    one.name for one in (WRITE_APART, DISCARD_APART, DROPPED_APART, UNOWNED, KNOWS_TURN, NEXT_TURN)
)
"""No gateway to a store of version 1 executes them."""
_VERSION_1: Final = (
    Statement(OPEN.name, OPEN.sql.replace("is_apart", "false"), OPEN.types),
    Statement(DROPPED.name, DROPPED.sql.replace("WHERE NOT is_apart", "")),
    Statement(
        "commit",
        COMMIT.sql.replace("grown, epoch", "grown, $4"),
        COMMIT.types,
    ),
    Statement(
        "membership",
        """SELECT m.version, m.body, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
            t.highest, t.bytes, s.shift, s.salt, s.version, ''::bytea,
            s.allows_reset, s.test_clock, s.transfer IS NOT NULL,
            current_setting('fsync'),
            current_setting('full_page_writes'), current_setting('synchronous_standby_names')
        FROM membership m, store s, (
            SELECT coalesce((SELECT max(highest) FROM outcomes), 0) AS highest,
                coalesce((SELECT sum(bytes) FROM outcomes), 0)::bigint AS bytes) t""",
    ),
    Statement(
        "write_contents",
        """WITH new AS (
            INSERT INTO contents AS c (id, size, crc, data, gateway, incarnation)
            SELECT n.id, n.size, n.crc, n.data, $5::integer, $6
            FROM unnest($1, $2, $3, $4) AS n(id, size, crc, data)
            ON CONFLICT (id) DO UPDATE SET size = EXCLUDED.size
            RETURNING c.size, xmax = 0 AS is_new)
        UPDATE outcomes
        SET bytes = bytes + (SELECT coalesce(sum(size) FILTER (WHERE is_new), 0) FROM new)
        WHERE gateway = $5 AND slot = $7""",
        WRITE_CONTENTS.types,
    ),
    Statement(
        "finish_content",
        """WITH done AS (
            UPDATE contents SET size = $2, crc = $3 WHERE id = $1 AND size = 0 RETURNING id)
        UPDATE outcomes SET bytes = bytes + $2 * (SELECT count(*) FROM done)
        WHERE gateway = $4 AND slot = $5""",
        FINISH_CONTENT.types,
    ),
    Statement("transfer_is_apart", "SELECT false FROM contents WHERE id = $1", (wire.INT8,)),
    Statement(
        "transfer_look",
        """SELECT m.version, m.body, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
            t.highest, s.shift, s.version, s.allows_reset, s.foreign_etags, s.transfer, s.id::text
        FROM membership m, store s, (
            SELECT coalesce((SELECT max(highest) FROM outcomes), 0) AS highest,
                coalesce((SELECT sum(bytes) FROM outcomes), 0)::bigint AS bytes) t""",
    ),
)
"""By name."""


def of_version(statements: Sequence[Statement], version: int) -> list[Statement]:
    """The statements in the form that a store of this version needs."""
    before = {one.name: one for one in _VERSION_1} if version == 1 else {}
    left_out = _ONLY_VERSION_2 if version == 1 else frozenset()
    return [before.get(one.name, one) for one in statements if one.name not in left_out]
