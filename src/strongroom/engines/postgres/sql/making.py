"""The SQL that makes a store, and that brings one of the version before to the present version.

Lives here: what is executed once for a store. The tables are in tables.sql, and the functions in
functions.sql. Must not live here: when a store is migrated (migrating.py), statements (schema.py).
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import msgspec

from strongroom.engines.postgres.sql.versions import VERSION

DEFAULT_SCHEMA: Final = "strongroom"


_FIRST_ROWS: Final = """
INSERT INTO store (version, allows_reset, test_clock)
VALUES ({version}, {allows_reset}, {test_clock}) ON CONFLICT DO NOTHING;
INSERT INTO membership (version, body) VALUES (0, '') ON CONFLICT DO NOTHING;
"""


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


RIGHTS: Final = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind = 'r' AND NOT (
    has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
    AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
ORDER BY 1"""
"""Names of the tables that the role may not use in every way."""
_NO_FOREIGN_TABLES: Final = """
DO $$ BEGIN
    IF to_regclass('store') IS NULL AND EXISTS (
        SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm', 'f'))
    THEN
        RAISE EXCEPTION 'the schema has tables that are none of a store; name another schema';
    END IF;
END $$;
"""
# A program must not replace the functions of another version: gateways may serve the store.
_NO_OTHER_VERSION: Final = """
DO $$ BEGIN
    IF to_regclass('store') IS NULL THEN
        RETURN;
    END IF;
    IF (SELECT version FROM store) > {version} THEN
        RAISE EXCEPTION 'the store has a newer version of its tables; use a newer Strongroom';
    END IF;
    IF (SELECT version FROM store) < {version} THEN
        RAISE EXCEPTION 'the store has an older version of its tables; %',
            '`strongroom store migrate URL` brings it to version {version}';
    END IF;
END $$;
"""
_MIGRATED: Final = """
UPDATE store SET version = {version};
DO $$ DECLARE
    owner text := (SELECT relowner::regrole FROM pg_class WHERE oid = 'store'::regclass);
    one regprocedure;
    grantee text;
BEGIN
    FOR one IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO %s', one, owner);
        FOR grantee IN SELECT a.grantee::regrole
            FROM pg_proc p, aclexplode(p.proacl) a
            WHERE p.oid = 'change_membership'::regproc AND a.grantee <> 0
        LOOP
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', one, grantee);
        END LOOP;
    END LOOP;
END $$;
"""


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


class StoreMarks(msgspec.Struct, frozen=True):
    """What a store says of itself from its creation on.

    Attributes:
        allows_reset: see Engine.allows_reset.
        test_clock: whether its time may be moved.
    """

    allows_reset: bool = False
    test_clock: bool = False


PLAIN: Final = StoreMarks()


def init_sql(schema: str, role: str | None = None, marks: StoreMarks = PLAIN) -> str:
    """The SQL that makes an empty store; it changes nothing of a store that is there.

    Arguments:
        role: a role without the right to change tables, which shall be able to serve the store.
        marks: of a store that is made.
    """
    name = quoted(schema)
    parts = [
        "BEGIN;",
        "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;",
        # Two gateways may begin at the same time.
        "SELECT pg_advisory_xact_lock(hashtext('strongroom store init'));",
        f"CREATE SCHEMA IF NOT EXISTS {name};",
        f"SET LOCAL search_path = {name};",
        "SET LOCAL client_min_messages = warning;",
        _NO_FOREIGN_TABLES,
        _NO_OTHER_VERSION.format(version=VERSION),
        _text("tables.sql"),
        _FIRST_ROWS.format(
            version=VERSION, allows_reset=marks.allows_reset, test_clock=marks.test_clock
        ),
        _text("functions.sql"),
    ]
    if role is not None:
        to = quoted(role)
        parts += [
            f"GRANT USAGE ON SCHEMA {name} TO {to};",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {to};",
            f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {name} TO {to};",
        ]
    return "\n".join((*parts, "COMMIT;", ""))


def migration_sql() -> str:
    """The SQL that makes version 2 of a store of version 1, within a transaction. What roles were
    granted, they keep."""
    return "\n".join(
        (_text("migration.sql"), _text("functions.sql"), _MIGRATED.format(version=VERSION))
    )
