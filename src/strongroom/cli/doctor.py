"""`strongroom doctor`: checks that a data directory or a backup is whole.

Lives here: flags and the report. Must not live here: what is checked (store/integrity.py,
engines/embedded/upkeep/check.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.backup import exit_on_data_errors
from strongroom.cli.counted import counted
from strongroom.cli.exits import Exit
from strongroom.cli.progress import progress_bar

if TYPE_CHECKING:
    from strongroom.engines.embedded.upkeep.check import Finding, Inspection
    from strongroom.store.integrity import Progress

HELP = """
Check that a data directory or a backup is whole.

It reads the records, the checksums of all contents, and whether everything refers
to what is there. It changes nothing, and may run while a server has the directory
open. It ends with 1 when something is wrong, and names what is damaged as users know
it: ACCOUNT/CONTAINER/BLOB. accounts.json and roles.json are checked too.

If the log of the records is damaged, neither a server nor this command opens the
directory, because the commits after the damage would be lost. --cut-log gives those
commits up. The damaged log is kept beside the new one.

Examples

  strongroom doctor ./strongroom-data
  strongroom doctor ./backups/monday --json
  strongroom doctor ./strongroom-data --cut-log
"""
_ADVICE = (
    "What is listed is lost here; everything else can be read. Restore the last backup that doctor "
    "calls whole: strongroom restore BACKUP NEW_DIRECTORY"
)
_ADVICE_BACKUP = (
    "Restore another backup. If there is none, strongroom restore --accept-damage restores what "
    "there is of this one."
)
_CUT_LOG = "Give up the commits after the damage in the log of the records, then check."


def doctor(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Data directory or backup.", envvar="STRONGROOM_DATA"),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    cut_log: Annotated[bool, typer.Option("--cut-log", help=_CUT_LOG)] = False,
) -> None:
    """Check a directory; end with 1 if something is wrong."""
    from strongroom.cli.private_files import damaged_files
    from strongroom.engines.embedded.upkeep.check import Inspection

    if cut_log:
        _cut_log(directory)
    with exit_on_data_errors(directory), Inspection(directory) as inspection:
        with progress_bar("Checking", as_json) as progress:
            findings, counts = _examine(inspection, progress)
            findings += damaged_files(directory)
        is_backup = inspection.format.backup
        note = None if is_backup else _note(inspection, directory)
    if as_json:
        report = {
            "directory": str(directory),
            "whole": not findings,
            "counts": counts,
            "findings": [{"place": f.place, "problem": f.problem} for f in findings],
            "notes": [] if note is None else [note],
        }
        typer.echo(json.dumps(report, indent=2))
    else:
        for finding in findings:
            typer.echo(f"{finding.place}: {finding.problem}")
        if note is not None:
            typer.echo(f"Note: {note}")
        contents = ", ".join(counted(count, name) for name, count in counts.items())
        verdict = counted(len(findings), "problems") if findings else "whole"
        typer.echo(f"{directory}: {verdict} ({contents})")
        if findings:
            typer.echo(_ADVICE_BACKUP if is_backup else _ADVICE)
    if findings:
        raise typer.Exit(Exit.REFUSED.value)


def _cut_log(directory: Path) -> None:
    from strongroom.engines.embedded.log.gate import cut_damaged_log

    with exit_on_data_errors(directory):
        lost = cut_damaged_log(directory)
    # On standard error, since standard output may be JSON.
    typer.echo(lost or f"{directory}: the log is not damaged, so nothing was cut.", err=True)


def _note(inspection: Inspection, directory: Path) -> str | None:
    """Return what an operator should know of accounts without keys; None if nothing, or if the
    records cannot be read."""
    import apsw

    from strongroom.cli.private_files import accounts_without_keys
    from strongroom.store.core.held_accounts import PLACE_RANGES, held_accounts

    try:
        keyspaces = [one for bounds in PLACE_RANGES for one in inspection.keyspaces(*bounds)]
    except apsw.Error:
        return None  # a finding already
    return accounts_without_keys(directory, held_accounts(keyspaces))


def _examine(
    inspection: Inspection, progress: Progress | None
) -> tuple[list[Finding], dict[str, int]]:
    """Return everything that is wrong, by its name, as far as the directory can be read; and what
    there is."""
    import apsw

    from strongroom.engines.embedded.disk.directory import RECORDS_NAME
    from strongroom.engines.embedded.upkeep.check import Finding
    from strongroom.store.found_names import named
    from strongroom.store.integrity import Integrity

    integrity = Integrity(inspection)
    pages: list[Finding] = []
    others: list[Finding] = []
    try:
        pages += inspection.record_findings()
        bodies = list(inspection.body_findings())
        damaged = {one.content: one for one in bodies if one.content is not None}
        integrity = Integrity(inspection, damaged)
        others += (one for one in bodies if one.content is None)
        others += integrity.findings(progress)
        others += (damaged[content] for content in integrity.unnamed(damaged))
        if any(one.subject for one in others):
            pages = []  # what is on them has been named
        return named([*pages, *others], inspection.records), integrity.counts()
    except apsw.Error as error:
        last = Finding(RECORDS_NAME, f"it cannot be read any further: {error}")
        return [*pages, *others, last], integrity.counts()
