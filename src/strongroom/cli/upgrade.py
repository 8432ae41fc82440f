"""`strongroom upgrade`: brings a data directory or a backup to the present format.

Lives here: flags and messages. Must not live here: the steps (engines/embedded/upkeep/upgrade/).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from strongroom.cli.backup import exit_on_data_errors
from strongroom.cli.backups.directories_only import UPGRADES, told
from strongroom.cli.flags.url_as_directory import refuse_urls
from strongroom.cli.progress import Progress, progress_bar

HELP = """
Convert a data directory or a backup from the previous format to the present one.

strongroom serve does the same when it starts. The new records are written beside the
old ones, so as much free space is needed. Stopping the command at any time loses
nothing: run it again. If anything is damaged, the command names it and converts
nothing. Older versions cannot open the directory afterwards.

Examples

  strongroom upgrade ./strongroom-data
  strongroom upgrade ./backups/monday
"""


def upgrade(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Data directory or backup.", envvar="STRONGROOM_DATA"),
    ],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
    store: Annotated[str | None, told(UPGRADES)] = None,
) -> None:
    """Convert a directory, unless it has the present format already."""
    refuse_urls(UPGRADES, directory)
    from strongroom.engines.embedded.disk.directory import FORMAT_VERSION
    from strongroom.engines.embedded.upkeep.upgrade.steps import upgrade as convert

    with exit_on_data_errors(directory), progress_bar("Upgrading", quiet) as progress:
        was_old = convert(directory, _Printed(quiet, progress))
    if not was_old and not quiet:
        typer.echo(f"{directory} has format {FORMAT_VERSION} already.")


class _Printed:
    """Prints what an upgrade says."""

    def __init__(self, quiet: bool, progress: Progress | None) -> None:
        self._quiet, self._progress = quiet, progress

    def begins(self, path: str, needed_bytes: int, free_bytes: int) -> None:
        from strongroom.engines.embedded.upkeep.upgrade.report import begin_text

        self._say(begin_text(path, needed_bytes, free_bytes))

    def copied(self, done_bytes: int, total_bytes: int) -> None:
        if self._progress is not None:
            self._progress(done_bytes, total_bytes)

    def ended(self, path: str, duration_s: float) -> None:
        from strongroom.engines.embedded.upkeep.upgrade.report import end_text

        self._say(end_text(path, duration_s))

    def _say(self, text: str) -> None:
        if not self._quiet:
            typer.echo(text)
