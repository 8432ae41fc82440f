"""The command `strongroom`: one module per noun, put together here.

Lives here: the list of commands. Must not live here: the commands' behaviour. Each command imports
the server's modules that it needs, so that `--help` and other commands start quickly.
"""

from __future__ import annotations

from typing import Annotated

import typer

from strongroom import __version__
from strongroom.cli import account, backup, container, doctor, files, role, serve, upgrade
from strongroom.cli.coordination import coordinate, lock, locks, members, sim, slots
from strongroom.cli.exits import EXIT_CODES_HELP
from strongroom.cli.flags.command import FlagsCommand
from strongroom.cli.layout import lay_out

_HELP = """
A strongly consistent storage server that speaks the Azure Storage protocol, and
tools for nodes that must agree on who does what.

First steps

  strongroom serve
  strongroom account add orders
  strongroom backup ./strongroom-data ./backup-of-today
  strongroom lock nightly-report --ttl 30 -- ./report.sh

Each command has --help with examples.
"""
# In the order in which people need them; a command that is in none comes last.
_SECTIONS = (
    ("The server and its data", ("serve", "backup", "restore", "doctor", "upgrade")),
    ("Who may do what", ("account", "role", "container", "files")),
    (
        "Nodes that agree",
        ("lock", "elect", "sem", "rwlock", "gate", "barrier", "members", "ids", "locks"),
    ),
    ("Stores where nodes meet", ("check-store", "sim")),
)

app = typer.Typer(
    name="strongroom",
    help=_HELP,
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve", help=serve.HELP, cls=FlagsCommand)(serve.serve)
app.add_typer(account.app, name="account")
app.add_typer(container.app, name="container")
app.add_typer(files.app, name="files")
app.add_typer(role.app, name="role")
app.command("backup", help=backup.BACKUP_HELP)(backup.backup)
app.command("restore", help=backup.RESTORE_HELP)(backup.restore)
app.command("doctor", help=doctor.HELP)(doctor.doctor)
app.command("upgrade", help=upgrade.HELP)(upgrade.upgrade)
app.command("lock", help=lock.LOCK_HELP)(lock.lock)
app.command("elect", help=lock.ELECT_HELP)(lock.elect)
app.command("sem", help=slots.SEM_HELP)(slots.sem)
app.command("rwlock", help=slots.RWLOCK_HELP)(slots.rwlock)
app.command("barrier", help=slots.BARRIER_HELP)(slots.barrier)
app.add_typer(members.members_app, name="members")
app.add_typer(coordinate.ids_app, name="ids")
app.add_typer(coordinate.gate_app, name="gate")
app.add_typer(locks.locks_app, name="locks")
app.command("check-store", help=coordinate.CHECK_HELP)(coordinate.check_store)
app.command("sim", help=sim.HELP)(sim.sim)
lay_out(app, _SECTIONS)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"strongroom {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Run the command with this process's arguments."""
    app()
