"""The statements of a store in PostgreSQL.

Lives here: what sessions prepare. The tables are in tables.sql, and the functions in functions.sql,
whose comments say what they keep to. Must not live here: the SQL that makes a store (making.py),
statements for a store of the version before (versions.py). Source of the design:
docs/decisions/postgresql.md. Nothing is newer than PostgreSQL 14.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.engines.postgres.sql import wire


class Statement(msgspec.Struct, frozen=True):
    """A statement that each session prepares once.

    Attributes:
        types: of its parameters, as numbers of `pg_type`.
        since: the first version of the tables with which it is executed.
    """

    name: str
    sql: str
    types: tuple[int, ...] = ()
    since: int = 1


_WITHIN: Final = """
    substr(place, 1, 2000) >= substr($1, 1, 2000) AND place >= $1
    AND substr(place, 1, 2000) <= substr($2, 1, 2000) AND place < $2
    ORDER BY substr(place, 1, 2000), place"""

READ: Final = Statement(
    "read",
    """SELECT asked.at, r.version, r.value FROM unnest($1) WITH ORDINALITY AS asked(place, at)
    JOIN records r ON substr(r.place, 1, 2000) = substr(asked.place, 1, 2000)
        AND (CASE WHEN length(r.place) > 2000 THEN sha256(r.place) ELSE ''::bytea END)
            = (CASE WHEN length(asked.place) > 2000 THEN sha256(asked.place) ELSE ''::bytea END)
        AND r.place = asked.place""",
    (wire.BYTEAS,),
)
"""Rows of the records that exist: the number in the array, counted from 1, version, value."""
VERSIONS: Final = Statement("versions", READ.sql.replace(", r.value", ""), READ.types)
SIZES: Final = Statement("sizes", READ.sql.replace("r.value", "length(r.value)"), READ.types)
RANGE: Final = Statement(
    "range",
    f"SELECT place, version, value FROM records WHERE {_WITHIN} LIMIT $3",
    (wire.BYTEA, wire.BYTEA, wire.INT8),
)
SCAN: Final = Statement(
    "scan",
    "SELECT place, version, value FROM scan_($1, $2, $3, $4)",
    (wire.BYTEA, wire.BYTEA, wire.INT8, wire.INT8),
)
SCAN_WHERE: Final = Statement(
    "scan_where",
    "SELECT place, version, value FROM scan_where($1, $2, $3, $4, $5, $6)",
    (wire.BYTEA, wire.BYTEA, wire.INT8, wire.INT8, wire.INT8, wire.TEXT),
)
NEXT_PLACE: Final = Statement(
    "next_place",
    f"SELECT place FROM records WHERE {_WITHIN} LIMIT 1",
    (wire.BYTEA, wire.BYTEA),
)
FOLLOW: Final = Statement(
    "follow",
    "SELECT place, version, value FROM follow_($1, $2, $3, $4, $5, $6)",
    (wire.BYTEA, wire.BYTEA, wire.BYTEAS, wire.BYTEA, wire.BYTEA, wire.INT4),
)
COMMIT: Final = Statement(
    "commit",
    "SELECT failed, newest, grown, epoch FROM commit_("
    + ", ".join(f"${number}" for number in range(1, 25))
    + ")",
    (
        *(wire.INT4, wire.INT8, wire.INT4, wire.INT8, wire.INT8, wire.INT4),
        *(wire.INT8S, wire.BOOLS),
        *(wire.INT8S, wire.INT8S, wire.INT8S, wire.INT8S),
        *(wire.INT8S, wire.BYTEAS, wire.INT8S),
        *(wire.INT8S, wire.BYTEAS, wire.INT8S, wire.BYTEAS),
        *(wire.INT8S, wire.INT8S),
        *(wire.INT8S, wire.INT8S, wire.INT8S),
    ),
)
"""One row: the units that failed, the newest stamp that was in the way, by how many bytes the store
has grown. Last comes the epoch of the slot from now on. The number of a unit is negative if a
content was not free to be adopted."""
CONFIRM: Final = Statement(
    "confirm", "SELECT epoch, batch, failed FROM confirm_($1, $2)", (wire.INT4, wire.INT4)
)
MEMBERSHIP: Final = Statement(
    "membership",
    """SELECT m.version, m.body, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
        t.highest, t.bytes, s.shift, s.salt, s.version, s.secret,
        s.allows_reset, s.test_clock, s.transfer IS NOT NULL,
        current_setting('fsync'),
        current_setting('full_page_writes'), current_setting('synchronous_standby_names')
    FROM membership m, store s, totals_() t""",
)
CHANGE_MEMBERSHIP: Final = Statement(
    "change_membership",
    "SELECT change_membership($1, $2, $3, $4, $5, $6)",
    (wire.INT8, wire.BYTEA, wire.INT4, wire.INT8S, wire.INT8S, wire.INT8S),
)
SHIFT: Final = Statement("shift", "UPDATE store SET shift = shift + $1", (wire.INT8,))
NOTIFY: Final = Statement(
    "notify",
    # A hint need not be durable, so it waits for no standby.
    "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)",
    (wire.TEXT, wire.TEXT),
)
"""Parameters: the channel and the payload."""
WRITE_CONTENTS: Final = Statement(
    "write_contents",
    """WITH new AS (
        INSERT INTO contents AS c (id, size, crc, data, gateway, incarnation)
        SELECT n.id, n.size, n.crc, n.data, $5::integer, $6
        FROM unnest($1, $2, $3, $4) AS n(id, size, crc, data)
        ON CONFLICT (id) DO UPDATE SET size = EXCLUDED.size
        RETURNING c.size, xmax = 0 AS is_new)
    SELECT add_bytes_($5, $7,
        (SELECT coalesce(sum(size) FILTER (WHERE is_new), 0)::bigint FROM new))""",
    (*(wire.INT8S, wire.INT8S, wire.INT8S, wire.BYTEAS), wire.INT4, wire.INT8, wire.INT4),
)
FINISH_CONTENT: Final = Statement(
    "finish_content",
    """WITH done AS (
        UPDATE contents SET size = $2, crc = $3 WHERE id = $1 AND size = 0 RETURNING id)
    SELECT add_bytes_($4, $5, $2 * (SELECT count(*) FROM done))""",
    (wire.INT8, wire.INT8, wire.INT8, wire.INT4, wire.INT4),
)
WRITE_CHUNK: Final = Statement(
    "write_chunk",
    # Whoever discards the content waits for this, and finds the chunk.
    """WITH owner AS (SELECT id FROM contents WHERE id = $1 AND NOT is_adopted FOR KEY SHARE)
    INSERT INTO chunks (id, at, data) SELECT id, $2::bigint, $3 FROM owner
    ON CONFLICT (id, at) DO UPDATE SET data = EXCLUDED.data""",
    (wire.INT8, wire.INT8, wire.BYTEA),
)
OPEN: Final = Statement(
    "open",
    "SELECT id, size, crc, data, is_apart FROM contents WHERE id = ANY ($1) AND is_adopted",
    (wire.INT8S,),
)
CHUNKS: Final = Statement(
    "chunks",
    "SELECT at, data FROM chunks WHERE id = $1 AND at >= $2 AND at < $3 ORDER BY at",
    (wire.INT8, wire.INT8, wire.INT8),
)
DISCARD: Final = Statement(
    "discard",
    "SELECT discard_($1, $2, $3, $4)",
    (wire.INT8S, wire.INT4, wire.INT8, wire.INT4),
)
DROPPED_MAX: Final = 1000
DROPPED: Final = Statement(
    "dropped",
    f"SELECT id, stamp, size FROM dropped WHERE NOT is_apart ORDER BY stamp LIMIT {DROPPED_MAX}",
)
REMOVE_DROPPED: Final = Statement(
    "remove_dropped",
    """WITH bodies AS (DELETE FROM chunks WHERE id = ANY ($1))
    DELETE FROM dropped WHERE id = ANY ($1)""",
    (wire.INT8S,),
)
REMOVE_ORPHANS: Final = Statement(
    "remove_orphans", "SELECT remove_orphans($1, $2)", (wire.INT4, wire.INT4)
)
WRITE_APART: Final = Statement(
    "write_apart",
    """WITH new AS (
        INSERT INTO contents AS c (id, size, crc, gateway, incarnation, is_apart)
        VALUES ($1, $2, $3, $4, $5, true)
        ON CONFLICT (id) DO UPDATE SET size = EXCLUDED.size
        RETURNING c.size, xmax = 0 AS is_new)
    SELECT add_bytes_($4, $6, coalesce(sum(size) FILTER (WHERE is_new), 0)::bigint) FROM new""",
    (*(wire.INT8, wire.INT8, wire.INT8), wire.INT4, wire.INT8, wire.INT4),
    since=2,
)
DISCARD_APART: Final = Statement(
    "discard_apart",
    """WITH gone AS (
        DELETE FROM contents WHERE id = ANY ($1) AND is_apart AND NOT is_adopted
            AND gateway = $2 AND incarnation = $3
        RETURNING id, size),
    counted AS MATERIALIZED (
        SELECT add_bytes_($2, $4, -coalesce(sum(size), 0)::bigint) FROM gone)
    SELECT gone.id FROM gone, counted""",
    (wire.INT8S, wire.INT4, wire.INT8, wire.INT4),
    since=2,
)
"""Rows of those that no commit will ever adopt."""
DROPPED_APART: Final = Statement(
    "dropped_apart",
    f"""SELECT id, stamp FROM dropped WHERE is_apart AND at <= now() - $1 * interval '1 second'
    ORDER BY at LIMIT {DROPPED_MAX}""",
    (wire.INT8,),
    since=2,
)
UNOWNED: Final = Statement(
    "unowned",
    """SELECT found.id FROM unnest($1) AS found(id)
    WHERE NOT EXISTS (SELECT FROM contents c WHERE c.id = found.id)
        AND NOT EXISTS (SELECT FROM dropped d WHERE d.id = found.id)""",
    (wire.INT8S,),
    since=2,
)
_DATABASE_ID: Final = """(SELECT s.system_identifier || '/' || d.oid
    FROM pg_control_system() s, pg_database d WHERE d.datname = current_database())"""
"""The cluster and the database. Standbys have those of their primary."""
PLACE: Final = f"""
SELECT id, to_jsonb(s) ->> 'bodies', to_jsonb(s) ->> 'generation', to_jsonb(s) ->> 'turns',
    {_DATABASE_ID}
FROM store s"""
"""One row: what the store says of the place of its bodies, whatever its version."""
KNOWS_TURN: Final = Statement(
    "knows_turn",
    f"SELECT generation = $1::uuid, $2::uuid = ANY (turns), {_DATABASE_ID} FROM store",
    (wire.TEXT, wire.TEXT),
    since=2,
)
NEXT_TURN: Final = Statement(
    "next_turn",
    """UPDATE store SET turns =
        (gen_random_uuid() || ($2::uuid || array_remove(turns, $2::uuid)))[1:16]
    WHERE generation = $1::uuid AND $2::uuid = ANY (turns)
        AND EXISTS (SELECT FROM gateways WHERE number = $3 AND incarnation = $4)
    RETURNING turns[1]::text""",
    (wire.TEXT, wire.TEXT, wire.INT4, wire.INT8),
    since=2,
)
"""No row: the gateway was declared dead, or another database has the place. The turn that the mark
has is not forgotten, however often a full folder refuses the next one."""
FORGET_PARTITIONS: Final = Statement(
    "forget_partitions",
    # It waits for no commit, and none for it for long.
    """DELETE FROM partitions WHERE id IN (
        SELECT id FROM partitions WHERE last < $1 FOR UPDATE SKIP LOCKED)""",
    (wire.INT8,),
)
TRANSFER_LOOK: Final = Statement(
    "transfer_look",
    """SELECT m.version, m.body, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
        t.highest, s.shift, s.version, s.allows_reset, s.foreign_etags, s.transfer, s.id::text
    FROM membership m, store s, totals_() t""",
)
"""Of a copy, as the next one. It is prepared only there."""
TRANSFER_IS_APART: Final = Statement(
    "transfer_is_apart", "SELECT is_apart FROM contents WHERE id = $1", (wire.INT8,)
)
STATEMENTS: Final = (
    *(READ, VERSIONS, SIZES, RANGE, SCAN, SCAN_WHERE, NEXT_PLACE, FOLLOW, COMMIT, CONFIRM),
    *(MEMBERSHIP, CHANGE_MEMBERSHIP, SHIFT, NOTIFY),
    *(WRITE_CONTENTS, FINISH_CONTENT, WRITE_CHUNK, OPEN, CHUNKS, DISCARD, DROPPED, REMOVE_DROPPED),
    *(REMOVE_ORPHANS, FORGET_PARTITIONS, WRITE_APART, DISCARD_APART, DROPPED_APART, UNOWNED),
    *(KNOWS_TURN, NEXT_TURN),
)
