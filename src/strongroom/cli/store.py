"""`strongroom store`: the PostgreSQL of `strongroom serve --store`, prepared and looked at.

Lives here: flags, and what is shown. Must not live here: the tables (engines/postgres/sql/),
what needs an operator (watching/store_report.py). Nothing printed has a URL, which may be secret.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from strongroom.cli.backups import store_copy
from strongroom.cli.exits import Exit, fail
from strongroom.cli.plain import plain

if TYPE_CHECKING:
    from strongroom.cli.flags.chosen_database import DatabaseChoice
    from strongroom.database import DatabaseSettings
    from strongroom.engines.postgres.place_adoption import PlaceAdoption

T = TypeVar("T")

# Longer than any mark stays as it is while a gateway serves, also if one was just killed.
_WATCH_S: Final = 60.0
_ADOPTION = """{place} has the bodies of this store, in another state of it.
If you go on, it belongs to this database: {database}
- For {watch_s:.0f} s nothing is changed. If another database is served with that place, the
  command ends.
- The database and that place get a new generation. Every other database with this store, such as
  the one from which this one was copied, can then no longer be served with that place.
- No body is removed now. Gateways of this database remove bodies that no record of it names, when
  they are older than --keep-dropped.
- strongroom doctor URL lists bodies that are missing, if any are.
"""
_HELP = """
The PostgreSQL that keeps the data of strongroom serve --store.

Without a URL, init, migrate, status and adopt use --store-file,
STRONGROOM_STORE or STRONGROOM_STORE_FILE. A URL with a password is refused on
the command line, since every user of the machine could see it in ps. libpq
reads the password from the file of PGPASSFILE, or from ~/.pgpass.

Examples

  strongroom store init postgresql://strongroom@db1.example.net/strongroom
  strongroom store init --print-sql strongroom
  strongroom store migrate --store-file /etc/strongroom/store
  strongroom store init URL --bodies file:///shared
  strongroom store status --store-file /etc/strongroom/store
  strongroom store status --json
  strongroom store adopt URL
"""

app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode="rich")
app.command("copy", help=store_copy.HELP)(store_copy.copy)

Url = Annotated[
    str | None, typer.Argument(metavar="[URL]", help="postgresql://USER@HOST1,HOST2/DATABASE.")
]
UrlFile = Annotated[Path | None, typer.Option("--store-file", help="A file whose text is the URL.")]
Schema = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The schema that has the store's tables.",
        envvar="STRONGROOM_STORE_SCHEMA",
    ),
]
_SCHEMA = "strongroom"


@app.command("init")
def init(
    url: Url = None,
    store_file: UrlFile = None,
    schema: Schema = _SCHEMA,
    print_sql: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE",
            help="Print the SQL that makes the tables, and grants ROLE what serving needs. "
            "No database is needed.",
        ),
    ] = None,
    bodies: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Make an empty folder ready for bodies above 1 MiB: file:///shared; or a pool of "
            "Ceph: rados://POOL?conf=/etc/ceph/ceph.conf. All gateways reach it in the same way, "
            "and are given --bodies.",
            envvar="STRONGROOM_BODIES",
        ),
    ] = None,
) -> None:
    """Make the tables of a store that are missing, or print the SQL that makes them.

    With --bodies, a mark is made in the folder or pool, and the store remembers it. A folder gets
    256 folders, too. Run it as the user of the gateways, and restart all gateways with --bodies
    afterwards."""
    if print_sql is not None:
        _choice(url, store_file, schema).check_schema()
        if not print_sql:
            fail(Exit.USAGE, "--print-sql '': name the role of the gateways")
        _need_driver()
        from strongroom.engines.postgres.sql.making import init_sql

        typer.echo(init_sql(schema, print_sql), nl=False)
        return
    database = _database(url, store_file, schema)
    from strongroom.engines.bodies.urls import is_pool
    from strongroom.engines.postgres.assembly import init_bodies, init_store

    place = None if bodies is None else _place(bodies)
    _asked(database, init_store(database.url, schema))
    typer.echo(f"{database.shown}: the schema {schema} has the tables of a store.")
    if place is not None:
        _asked(database, init_bodies(database.url, schema, place))
        kind = "pool" if is_pool(place) else "folder"
        typer.echo(
            f"{place}: the {kind} is ready for this store. Serve it with --bodies "
            f"{shlex.quote(place)}."
        )


@app.command("migrate")
def migrate(url: Url = None, store_file: UrlFile = None, schema: Schema = _SCHEMA) -> None:
    """Bring the tables of a store from the version before to the present one, while it is served.

    It is refused while a gateway of an older program uses the store. It needs the role that made
    the tables. Stopping the command at any time loses nothing: run it again."""
    database = _database(url, store_file, schema)
    from strongroom.engines.postgres.migrating import migrate_store
    from strongroom.engines.postgres.sql.versions import VERSION

    def say(text: str) -> None:
        typer.echo(f"{database.shown}: {text}.")

    _asked(database, migrate_store(database.url, schema, say))
    say(f"the schema {schema} has tables of version {VERSION}")


@app.command("status")
def status(
    url: Url = None,
    store_file: UrlFile = None,
    schema: Schema = _SCHEMA,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show the gateways, standbys and sizes of a store, and what keeps vacuum from its work.

    It ends with 1 if something needs an operator, and with 69 if the database does not answer."""
    database = _database(url, store_file, schema)
    import msgspec

    from strongroom.cli.watching.store_report import StoreReport, findings, lines
    from strongroom.engines.postgres.assembly import PostgresOptions
    from strongroom.engines.postgres.status import store_status

    found = _asked(database, store_status(database.url, PostgresOptions(schema=schema)))
    report = StoreReport(database.shown, schema, found, tuple(findings(found)))
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        for line in lines(report):
            typer.echo(plain(line))
    if report.findings:
        raise typer.Exit(Exit.REFUSED.value)


@app.command("adopt")
def adopt(
    url: Url = None,
    store_file: UrlFile = None,
    schema: Schema = _SCHEMA,
    bodies: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where the bodies are now, if they were moved."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Let a database that was copied or recovered take over the folder or pool of its bodies.

    Stop all gateways of this database first. Its copies, and the database of which it is a copy,
    can then no longer be served with that folder or pool. No body is removed."""
    database = _database(url, store_file, schema)
    place = None if bodies is None else _place(bodies)
    _asked(database, _adopt(database, schema, place, lambda text: _agreed(text, yes)))


def _agreed(text: str, yes: bool) -> bool:
    typer.echo(text)
    try:
        return yes or typer.confirm("Go on?")
    except typer.Abort:
        typer.echo(err=True)  # the line of the question
        fail(Exit.REFUSED, "nothing was changed, since nobody answered; --yes does not ask")


async def _adopt(
    database: DatabaseSettings, schema: str, place: str | None, agreed: Callable[[str], bool]
) -> None:
    from strongroom.engines.postgres.place_adoption import PlaceAdoption

    adoption = await PlaceAdoption.prepared(database.url, schema, place)
    try:
        if not adoption.is_needed:
            typer.echo(f"{adoption.place} belongs to this database already: nothing was changed.")
        elif agreed(
            _ADOPTION.format(place=adoption.place, database=adoption.shown, watch_s=_WATCH_S)
        ):
            await adoption.adopt(_WATCH_S)
            typer.echo(f"{adoption.place} belongs to {adoption.shown} now.")
        else:
            fail(Exit.REFUSED, "nothing was changed")
    finally:
        await adoption.close()


def _adoption_text(adoption: PlaceAdoption) -> str:
    shown = {"place": adoption.place, "database": adoption.shown}
    return _ADOPTION.format(**shown, watch_s=_WATCH_S)


def _place(bodies: str) -> str:
    """Return the URL of a place for bodies, or end the command."""
    from strongroom.cli.flags.database import BODIES

    try:
        return str(BODIES.read(bodies))
    except ValueError as error:
        fail(Exit.USAGE, f"--bodies {bodies!r}: {error}")


def _database(url: str | None, file: Path | None, schema: str) -> DatabaseSettings:
    """Return the database that the arguments name, or the environment. Its driver is there."""
    database = _choice(url, file, schema).database()
    _need_driver()
    return database


def _choice(url: str | None, file: Path | None, schema: str) -> DatabaseChoice:
    from strongroom.cli.flags.chosen_database import DatabaseChoice

    return DatabaseChoice(url, file, schema, "the URL", "--schema")


def _need_driver() -> None:
    from strongroom.cli.flags.chosen_database import need_driver

    need_driver()


def _asked(database: DatabaseSettings, question: Coroutine[object, object, T]) -> T:
    """Return what the database answers, or end the command."""
    from strongroom.cli.event_loop import run
    from strongroom.engines.base import EngineError
    from strongroom.engines.bodies.base import BodiesUnfit
    from strongroom.engines.postgres.sessions.session import DatabaseUnfit
    from strongroom.engines.transfer import CopyRefused

    try:
        return run(question)
    except (DatabaseUnfit, BodiesUnfit, CopyRefused) as error:
        fail(Exit.DATA, f"{database.shown}: {error}")
    except EngineError as error:
        fail(Exit.UNAVAILABLE, f"{database.shown}: {error}")
