"""The flags of `strongroom serve` about a database that keeps the store, a section of the table.

Lives here: these flags. Must not live here: how their values are read (database.py).
"""

from __future__ import annotations

from typing import Final

from strongroom.cli.flags import database, kinds
from strongroom.cli.flags.flag import Flag, Section

_NEEDS_STORE: Final = ("store", "store-file")
DATABASE: Final = Section(
    "A database in place of the data directory",
    (
        Flag(
            "store",
            kinds.text("URL"),
            "Keep everything in a PostgreSQL: postgresql://USER@HOST1,HOST2/DATABASE. A password "
            "belongs into STRONGROOM_STORE, --store-file or the file of PGPASSFILE: every user of "
            "this machine can see flags in ps.",
            excludes=("store-file", "scrub-days"),
            because="keeps everything in a database",
        ),
        Flag(
            "store-file",
            kinds.FILE,
            "A file whose text is the URL of --store.",
            excludes=("scrub-days",),
            because="names a database",
        ),
        Flag(
            "store-connections",
            database.CONNECTIONS,
            "How many connections this gateway has to the database for requests; one more is for "
            "heartbeats and notifications.",
            default=8,
            needs=_NEEDS_STORE,
        ),
        Flag(
            "store-quota",
            database.SIZE,
            "Refuse new data (507) when the store takes so much, such as 200GiB, before the "
            "database's disk is full. Default: never.",
            needs=_NEEDS_STORE,
        ),
        Flag(
            "store-needs-standby",
            kinds.SWITCH,
            "Refuse a PostgreSQL without synchronous standbys, whose loss would lose what was "
            "acknowledged.",
            default=False,
            needs=_NEEDS_STORE,
        ),
        Flag(
            "store-schema",
            database.SCHEMA,
            "The schema in the database that has the store's tables.",
            default="strongroom",
            needs=_NEEDS_STORE,
        ),
    ),
)
