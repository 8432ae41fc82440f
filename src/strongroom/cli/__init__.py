"""The command `strongroom`: what it says of itself, and its start.

Lives here: its help and its own options. Must not live here: the list of commands (commands.py).
Each command imports the server's modules that it needs, so that `--help` and other commands start
quickly.
"""

from __future__ import annotations

from typing import Annotated

import typer

from strongroom import __version__
from strongroom.cli.commands import HEADINGS
from strongroom.cli.exits import EXIT_CODES_HELP
from strongroom.cli.layout import TopGroup

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


class _Strongroom(TopGroup):
    headings = HEADINGS


app = typer.Typer(
    name="strongroom",
    cls=_Strongroom,
    help=_HELP,
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    app()
