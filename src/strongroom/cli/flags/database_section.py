"""The flags of `strongroom serve` about a database that keeps the store, a section of the table.

Lives here: these flags. Must not live here: how their values are read (database.py).
"""

from __future__ import annotations

from typing import Final

from strongroom.cli.flags import database, kinds
from strongroom.cli.flags.flag import Flag, Section
from strongroom.database import StoreMode

_NEEDS_STORE: Final = ("store", "store-file")
DATABASE: Final = Section(
    "A database in place of the data directory",
    (
        Flag(
            "store",
            kinds.text("URL"),
            "Keep everything in a PostgreSQL: postgresql://USER@HOST1,HOST2/DATABASE. A password "
            "belongs in STRONGROOM_STORE, --store-file or the file of PGPASSFILE: every user of "
            "this machine can see flags in ps.",
            excludes=("store-file", "scrub-days"),
            because="keeps everything in a database",
        ),
        Flag(
            "store-file",
            kinds.FILE,
            "A file whose text is the URL of --store, which may have a password there.",
            excludes=("scrub-days",),
            because="names a database",
        ),
        Flag(
            "store-connections",
            database.CONNECTIONS,
            "How many connections this server has to the database for requests; one more is for "
            "heartbeats and notifications.",
            default=8,
            needs=_NEEDS_STORE,
        ),
        Flag(
            "store-mode",
            database.MODE,
            "Whether this server, a gateway of the store, serves it alone and waits while another "
            "one does (active-passive), or beside all others of the same mode (active-active).",
            default=StoreMode.ACTIVE_PASSIVE.value,
            needs=_NEEDS_STORE,
        ),
        Flag(
            "gateway-address",
            database.GATEWAY_ADDRESS,
            "Where the other gateways of --store-mode active-active reach this one: an address of "
            "this machine. Without a port, a free one is taken. Default: the first address of "
            "--host.",
            needs=_NEEDS_STORE,
        ),
        Flag(
            "store-quota",
            database.SIZE,
            "Refuse new data (507) when names, records and bodies have this size, such as 200GiB. "
            "Choose less than the database's disk has. Default: never.",
            needs=_NEEDS_STORE,
        ),
        Flag(
            "store-needs-standby",
            kinds.SWITCH,
            "Refuse a PostgreSQL whose synchronous_standby_names is empty: the loss of its disk "
            "would lose what was answered.",
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
        Flag(
            "bodies",
            database.BODIES,
            "Keep bodies above 1 MiB as files in a folder that all gateways mount (NFS, CephFS): "
            "file:///shared; or in a pool of Ceph: rados://POOL?conf=/etc/ceph/ceph.conf, with "
            "&ns=NAMESPACE and &user=client.NAME if needed. `strongroom store init` with the same "
            "--bodies makes an empty folder or pool ready.",
            needs=_NEEDS_STORE,
        ),
        Flag(
            "keep-dropped",
            database.KEEP,
            "For how long the folder or pool of --bodies keeps bodies that nothing refers to any "
            "more, such as 36h. Give all gateways the same time. A database that is recovered to a "
            "moment within this time finds all its bodies. Default: 7d.",
            needs=("bodies",),
        ),
    ),
)
