"""`strongroom import-azurite`: a new data directory from a folder of Azurite.

Lives here: flags and the printed report. Must not live here: the import (strongroom/importing/).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.backup import exit_on_data_errors
from strongroom.cli.backups.directories_only import IMPORTS, told
from strongroom.cli.counted import counted
from strongroom.cli.exits import Exit, fail
from strongroom.cli.flags.url_as_directory import refuse_urls
from strongroom.cli.plain import plain
from strongroom.cli.progress import progress_bar

if TYPE_CHECKING:
    from strongroom.importing import ImportReport, Remark

HELP = """
Make a new data directory from a folder that Azurite wrote.

Stop Azurite first. The folder stays as it is. Containers, blobs with their snapshots,
queues with their messages, tables with their entities, and the properties of the
services are imported. Dates and ETags are kept, and leases that still run.

What is not imported is listed with the reason. The command ends with 1 if anything
that could be read at Azurite is missing here. Azurite does not store account keys,
so give them to strongroom serve as you gave them to Azurite.

The new directory cannot be opened before everything in it is durable and checked. If
the command is stopped, run it again: it begins anew.

Examples

  strongroom import-azurite ./azurite --data ./strongroom-data
  strongroom import-azurite ./azurite --data ./strongroom-data --json
"""


def import_azurite(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder that Azurite used (--location).")
    ],
    data: Annotated[
        Path,
        typer.Option("--data", help="The new data directory: absent, empty, or FOLDER itself."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no report.")] = False,
    store: Annotated[str | None, told(IMPORTS)] = None,
) -> None:
    refuse_urls(IMPORTS, data)
    from strongroom.importing import ImportRefused, import_folder

    try:
        hidden = as_json or quiet
        with exit_on_data_errors(data), progress_bar("Importing", hidden) as progress:
            report = import_folder(folder, data, progress=progress)
    except ImportRefused as error:
        fail(Exit.DATA, str(error))
    if as_json:
        typer.echo(_json(report))
    elif not quiet:
        _print(report)
    if not report.is_complete:
        raise typer.Exit(Exit.REFUSED.value)


def _json(report: ImportReport) -> str:
    import msgspec

    document = {"complete": report.is_complete, **msgspec.to_builtins(report)}
    return json.dumps(document, indent=2)


def _print(report: ImportReport) -> None:
    counts = report.counts
    _print_remarks("Not imported:", report.lost, report.lost_count)
    _print_remarks(
        "Left out, because it has no meaning here:", report.skipped, report.skipped_count
    )
    numbers = (counts.containers, counts.blobs, counts.snapshots, counts.queues, counts.messages)
    names = ("containers", "blobs", "snapshots", "queues", "messages")
    texts = [counted(count, name) for count, name in zip(numbers, names, strict=True)]
    texts += [counted(counts.tables, "tables"), f"{counts.entities:,} entities"]
    typer.echo(f"{report.target} has {', '.join(texts)} ({counts.bytes:,} bytes).")
    if report.accounts:
        typer.echo(
            f"Accounts: {', '.join(report.accounts)}. Their keys are not in the folder: give them "
            "to strongroom serve with --account or AZURITE_ACCOUNTS, as you gave them to Azurite."
        )
    typer.echo(f"Start: strongroom serve --data {report.target}")


def _print_remarks(title: str, remarks: Sequence[Remark], count: int) -> None:
    if not remarks:
        return
    typer.echo(title)
    for one in remarks:
        typer.echo(f"  {one.kind} {plain(one.place)}: {plain(one.reason)}")
    if count > len(remarks):
        typer.echo(f"  and {count - len(remarks):,} more")
