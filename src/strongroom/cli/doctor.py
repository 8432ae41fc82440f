"""`strongroom doctor`: checks that a data directory, a backup or a store in PostgreSQL is whole.

Lives here: flags and the report. Must not live here: what is checked (store/integrity.py,
engines/embedded/upkeep/check.py), looking at a database (backups/store_doctor.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.backup import exit_on_data_errors
from strongroom.cli.counted import counted
from strongroom.cli.exits import Exit, fail
from strongroom.cli.progress import progress_bar

if TYPE_CHECKING:
    from strongroom.database import DatabaseSettings
    from strongroom.engines.embedded.upkeep.check import Inspection
    from strongroom.engines.findings import Finding
    from strongroom.store.integrity import Progress

HELP = """
Check that a data directory, a backup or a store in PostgreSQL is whole.

It reads the records, the checksums of all contents, and whether everything refers
to what is there. It changes nothing, and may run while a server has the directory
open. It ends with 1 when something is wrong, and names what is damaged as users know
it: ACCOUNT/CONTAINER/BLOB. accounts.json and roles.json are checked too.

For a store in PostgreSQL, all bodies are read, also those in the folder or pool of
--bodies. Run the command where that can be reached, as the user of the gateways. It
lists bodies that are missing, and those that nothing has owned for longer than
--keep-dropped. The database keeps a snapshot open meanwhile.

Without DIR|URL, the store is that of --store-file, STRONGROOM_STORE or
STRONGROOM_STORE_FILE, else the directory of STRONGROOM_DATA. A URL that is typed has no
password: libpq reads it from the file of PGPASSFILE, or from ~/.pgpass.

If the log of the records is damaged, neither a server nor this command opens the
directory, because the commits after the damage would be lost. --cut-log gives those
commits up. The damaged log is kept beside the new one.

Examples

  strongroom doctor ./strongroom-data
  strongroom doctor ./backups/monday --json
  strongroom doctor ./strongroom-data --cut-log
  strongroom doctor postgresql://strongroom@db1/strongroom
  strongroom doctor --store-file /etc/strongroom/store
"""
_ADVICE = (
    "What is listed is lost here; everything else can be read. Restore the last backup that doctor "
    "calls whole: strongroom restore BACKUP NEW_DIRECTORY"
)
_ADVICE_BACKUP = (
    "Restore another backup. If there is none, strongroom restore --accept-damage restores what "
    "there is of this one."
)
_NOTHING = (
    "what is to be checked? Give a directory, the URL of a PostgreSQL, or --store-file; or name it "
    "by STRONGROOM_DATA or STRONGROOM_STORE"
)
_ROUND_S = 6 * 3600.0
_CUT_LOG = "Give up the commits after the damage in the log of the records, then check."


def doctor(
    context: typer.Context,
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="[DIR|URL]",
            help="Data directory, backup, or the URL of a PostgreSQL.",
            envvar="STRONGROOM_DATA",
        ),
    ] = None,
    store_file: Annotated[
        Path | None, typer.Option("--store-file", help="A file whose text is the URL.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    cut_log: Annotated[bool, typer.Option("--cut-log", help=_CUT_LOG)] = False,
    *,
    schema: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The schema of a store in PostgreSQL.",
            envvar="STRONGROOM_STORE_SCHEMA",
        ),
    ] = "strongroom",
    keep_dropped: Annotated[
        str, typer.Option(metavar="TIME", help="The --keep-dropped of the store's gateways.")
    ] = "7d",
) -> None:
    """Check a directory or a store; end with 1 if something is wrong."""
    from strongroom.cli.backups import store_doctor

    source = context.get_parameter_source("place")
    is_typed = source is not None and source.name == "COMMANDLINE"
    database = store_doctor.chosen(place, is_typed, store_file, schema)
    if database is not None:
        if cut_log:
            fail(Exit.USAGE, "--cut-log goes with a directory; PostgreSQL has a log of its own")
        _check_store(database, _keep_s(keep_dropped), as_json)
    elif place is not None:
        _check_directory(Path(place), as_json, cut_log)
    else:
        fail(Exit.USAGE, _NOTHING)


def _check_store(database: DatabaseSettings, keep_s: float, as_json: bool) -> None:
    from strongroom.cli.backups import store_doctor

    with progress_bar("Checking", as_json) as progress:
        found = store_doctor.examine(database, keep_s, progress)
    _report(found.shown, "store", found.findings, found.counts, found.notes, as_json)
    if found.findings:
        if not as_json:
            typer.echo(store_doctor.ADVICE)
        raise typer.Exit(Exit.REFUSED.value)


def _keep_s(text: str) -> float:
    from strongroom.cli.flags.database import KEEP

    try:
        # Gateways look for them every six hours.
        return float(str(KEEP.read(text))) + _ROUND_S
    except ValueError as error:
        fail(Exit.USAGE, f"--keep-dropped {text!r}: {error}")


def _check_directory(directory: Path, as_json: bool, cut_log: bool) -> None:
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
    notes = [] if note is None else [note]
    _report(str(directory), "directory", findings, counts, notes, as_json)
    if findings:
        if not as_json:
            typer.echo(_ADVICE_BACKUP if is_backup else _ADVICE)
        raise typer.Exit(Exit.REFUSED.value)


def _report(
    place: str,
    kind: str,
    findings: list[Finding],
    counts: dict[str, int],
    notes: list[str],
    as_json: bool,
) -> None:
    """Say what was found. `kind` is the name of the place in JSON."""
    if as_json:
        report = {
            kind: place,
            "whole": not findings,
            "counts": counts,
            "findings": [{"place": f.place, "problem": f.problem} for f in findings],
            "notes": notes,
        }
        typer.echo(json.dumps(report, indent=2))
        return
    for finding in findings:
        typer.echo(f"{finding.place}: {finding.problem}")
    for note in notes:
        typer.echo(f"Note: {note}")
    contents = ", ".join(counted(count, name) for name, count in counts.items())
    verdict = counted(len(findings), "problems") if findings else "whole"
    typer.echo(f"{place}: {verdict} ({contents})")


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
    from strongroom.engines.findings import Finding
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
