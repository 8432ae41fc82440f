"""`strongroom store copy`: a whole store from one place to another, also of another kind.

Lives here: flags and messages, and which engine is at which place. Must not live here: the copying
(engines/store_copy.py). No text has a URL, since it may have a password.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from strongroom.cli.counted import counted
from strongroom.cli.exits import Exit, fail
from strongroom.cli.progress import Progress, progress_bar

if TYPE_CHECKING:
    from strongroom.engines.store_copy import CopyReport
    from strongroom.engines.transfer import TransferSource, TransferTarget

HELP = """
Copy a whole store between data directories and PostgreSQL, in any direction.

--from is a data directory that no server has open, a backup of one, or the URL of
a PostgreSQL that no gateway serves. --to is a new directory, or a PostgreSQL that has
no store yet or an empty one.

Everything is kept: ETags, leases, messages and their receipts, snapshots, policies.
Every body is verified while it is copied. At the end, source and copy are read again
and compared. Only then can the copy be served.

If the command is stopped, or a disk is full, run the same command again: it goes on
where it was cut. A directory has accounts and roles in files, which are not copied;
strongroom account import and export move them. A database keeps them itself.

A URL has no password here, since every user of the machine could see it. libpq
reads it from the file of PGPASSFILE, or from ~/.pgpass.

Examples

  strongroom store copy --from ./data --to postgresql://strongroom@db1/data
  strongroom store copy --from ./backups/monday --to postgresql:///data
  strongroom store copy --from postgresql:///data --to ./data --json
  strongroom store copy --from ./data --to postgresql:///data \\
      --to-bodies file:///shared
"""

_SCHEMA = "strongroom"
_MIB = 1024 * 1024


def copy(
    start: Annotated[str, typer.Option("--from", metavar="DIR|URL", help="What is copied.")],
    goal: Annotated[str, typer.Option("--to", metavar="DIR|URL", help="Where it is copied to.")],
    from_schema: Annotated[
        str, typer.Option(metavar="NAME", help="The schema of the store of --from.")
    ] = _SCHEMA,
    to_schema: Annotated[
        str, typer.Option(metavar="NAME", help="The schema of the store of --to.")
    ] = _SCHEMA,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    *,
    to_bodies: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="An empty folder for bodies above 1 MiB of --to: file:///shared; or an empty "
            "pool of Ceph: rados://POOL. The database has them by default.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Copy a store; say what was copied."""
    from strongroom.cli.event_loop import run
    from strongroom.clock import elapsed_s

    places = (
        _place(start, from_schema, "--from"),
        replace(_place(goal, to_schema, "--to"), bodies=_bodies(to_bodies)),
    )
    if any(one.is_database for one in places):
        from strongroom.cli.flags.chosen_database import need_driver

        need_driver()
    began_s = elapsed_s()
    try:
        with progress_bar("Copying", quiet or as_json) as progress:
            report = run(_copied(*places, progress))
    except Exception as error:
        _fail(error, *places)
    if as_json:
        typer.echo(_json(report, elapsed_s() - began_s))
    elif not quiet:
        for line in _lines(report, places, elapsed_s() - began_s):
            typer.echo(line)


@dataclass(frozen=True, slots=True)
class _Place:
    """A directory; or a database, by its URL, with a schema in it."""

    text: str
    schema: str
    bodies: str | None = None

    @property
    def is_database(self) -> bool:
        from strongroom.database import is_postgres

        return is_postgres(self.text)


async def _copied(start: _Place, goal: _Place, progress: Progress | None) -> CopyReport:
    from strongroom.engines.store_copy import copy_store

    async with AsyncExitStack() as opened:
        source = await _source(start)
        opened.push_async_callback(source.close)
        target = await _target(goal)
        opened.push_async_callback(target.close)
        return await copy_store(_kept(source, goal), target, progress)


def _kept(source: TransferSource, goal: _Place) -> TransferSource:
    """Return what is copied of a store: to a directory, all but accounts and roles."""
    from strongroom.cli.backups.without_identities import WithoutIdentities

    return source if goal.is_database else WithoutIdentities(source)


async def _source(place: _Place) -> TransferSource:
    if place.is_database:
        from strongroom.engines.postgres.transfer import PostgresSource

        with _named(place):
            return await PostgresSource.open(place.text, place.schema)
    from strongroom.engines.embedded.upkeep.transfer_source import EmbeddedSource

    return EmbeddedSource(place.text)


async def _target(place: _Place) -> TransferTarget:
    if place.is_database:
        from strongroom.engines.postgres.transfer_target import PostgresTarget

        with _named(place):
            return await PostgresTarget.open(place.text, place.schema, place.bodies)
    if place.bodies is not None:
        fail(
            Exit.USAGE, "--to-bodies goes with a PostgreSQL; a data directory has bodies of its own"
        )
    from strongroom.engines.embedded.upkeep.transfer_target import EmbeddedTarget

    return EmbeddedTarget(place.text)


@contextmanager
def _named(place: _Place) -> Iterator[None]:
    """Let an error about a database say which of the two it is."""
    from strongroom.database import shown
    from strongroom.engines.postgres.sessions.session import Away, DatabaseUnfit

    try:
        yield
    except (Away, DatabaseUnfit) as error:
        code = Exit.UNAVAILABLE if isinstance(error, Away) else Exit.DATA
        fail(code, f"{shown(place.text)}: {error}")


def _place(text: str, schema: str, flag: str) -> _Place:
    from strongroom.database import UnusableUrl, check_url, has_password

    place = _Place(text, schema)
    if place.is_database:
        try:
            check_url(text)
        except UnusableUrl as error:
            fail(Exit.USAGE, f"{flag}: {error}")
        if has_password(text):
            fail(
                Exit.USAGE,
                f"{flag} has a password, which every user of this machine can see in ps. Put it "
                "into the file of PGPASSFILE, or into ~/.pgpass",
            )
        _check_schema(schema, flag)
    elif "://" in text or text.startswith(("postgresql:", "postgres:")):
        fail(Exit.USAGE, f"{flag}: name a directory, or a URL that begins with postgresql://")
    return place


def _check_schema(schema: str, flag: str) -> None:
    from strongroom.cli.flags.database import SCHEMA

    try:
        SCHEMA.read(schema)
    except ValueError as error:
        fail(Exit.USAGE, f"{flag}-schema {schema!r}: {error}")


def _bodies(url: str | None) -> str | None:
    from strongroom.cli.flags.database import BODIES

    try:
        return None if url is None else str(BODIES.read(url))
    except ValueError as error:
        fail(Exit.USAGE, f"--to-bodies {url!r}: {error}")


def _fail(error: Exception, start: _Place, goal: _Place) -> NoReturn:
    """End the command with what is wrong, if it is nothing of the program's own."""
    from strongroom.engines.base import Busy, DataDamaged, EngineError
    from strongroom.engines.transfer import SourceDamaged

    if not isinstance(error, (EngineError, OSError)):
        raise error
    text = _why(error, start, goal)
    if isinstance(error, (SourceDamaged, DataDamaged)):
        text += ". The copy is not complete"
        if not start.is_database:
            text += f". strongroom doctor {start.text} names what is damaged; copy a whole backup"
    is_away = isinstance(error, Busy) and (start.is_database or goal.is_database)
    fail(Exit.UNAVAILABLE if is_away else Exit.DATA, text)


def _why(error: Exception, start: _Place, goal: _Place) -> str:
    from strongroom.cli.import_advice import explained
    from strongroom.engines.base import Full

    if isinstance(error, Full):
        return (
            f"{goal.bodies or 'the place of the long bodies'} is full. Free some space there, and "
            "run the same command again: it goes on where it was cut"
        )
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be used: {error.strerror}"
    return str(error) if start.is_database else explained(error, Path(start.text))


def _json(report: CopyReport, duration_s: float) -> str:
    import msgspec

    document = {**msgspec.to_builtins(report), "duration_s": round(duration_s, 3)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _lines(report: CopyReport, places: tuple[_Place, _Place], duration_s: float) -> list[str]:
    size = f"{report.body_bytes / _MIB:,.1f} MiB"
    lines = [
        f"{report.target} is a copy of {report.source}, verified: "
        f"{counted(report.records, 'records')} and {counted(report.contents, 'contents')} "
        f"({size}) in {duration_s:.1f} s."
    ]
    if report.resumed:
        lines.append("It went on where an earlier run was cut.")
    start, goal = places
    lines += _accounts(start, goal)
    data = shlex.quote(goal.text)
    way = f"--store URL{_schema(goal)}" if goal.is_database else f"--data {data}"
    if goal.bodies is not None:
        way += f" --bodies {shlex.quote(goal.bodies)}"
    return [*lines, f"Start: strongroom serve {way}"]


def _accounts(start: _Place, goal: _Place) -> list[str]:
    """What is left to do for accounts and roles."""
    from strongroom.config import ACCOUNTS_FILE_NAME, ROLES_FILE_NAME

    if start.is_database:
        left = "Accounts and roles are not in it."
        return [] if goal.is_database else [f"{left} {_command('export', goal, start)}"]
    files = [Path(start.text) / name for name in (ACCOUNTS_FILE_NAME, ROLES_FILE_NAME)]
    found = [one for one in files if one.exists()]
    if goal.is_database:
        command = _command("import", start, goal)
        return [f"Not in it: {' and '.join(map(str, found))}. {command}"] if found else []
    return [
        f"{one} is not in it: copy it to {goal.text}."
        for one in found
        if not (Path(goal.text) / one.name).exists()
    ]


def _command(verb: str, directory: _Place, database: _Place) -> str:
    """Say how accounts and roles get from one place to the other."""
    data = shlex.quote(directory.text)
    return f"They follow by: strongroom account {verb} --data {data} --store URL{_schema(database)}"


def _schema(database: _Place) -> str:
    return "" if database.schema == _SCHEMA else f" --store-schema {database.schema}"
