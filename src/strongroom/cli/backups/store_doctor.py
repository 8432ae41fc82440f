"""`strongroom doctor URL`: checks that a store in PostgreSQL is whole, with its bodies apart.

Lives here: which database is meant, how it is inspected, and what is said of it. Must not live
here: what is checked (store/integrity.py, engines/postgres/inspection.py), the report
(cli/doctor.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from strongroom.cli.counted import counted
from strongroom.cli.exits import Exit, fail

if TYPE_CHECKING:
    from pathlib import Path

    from strongroom.database import DatabaseSettings
    from strongroom.engines.findings import Finding
    from strongroom.store.integrity import Progress

ADVICE: Final = (
    "What is listed as missing or damaged is lost here; everything else can be read. A body that "
    "is missing from the folder or pool may be in its backup: put it back. Else recover database "
    "and bodies to a moment at which both were whole"
)
_UNFIT: Final = "`strongroom store status` for the same database says what to do"
_NO_LIMITS: Final = ("application_name", "target_session_attrs")
_MIB: Final = 1024 * 1024


class Examined(msgspec.Struct, frozen=True):
    """What was found of a store. `notes` are no problems."""

    shown: str
    findings: list[Finding]
    counts: dict[str, int]
    notes: list[str]


def chosen(
    place: str | None, is_typed: bool, file: Path | None, schema: str
) -> DatabaseSettings | None:
    """Return the database that a command is told to check; None = `place`, if there is one.

    As with `serve`, a database that a variable names is stronger than a directory that another one
    names. A place that was typed is stronger than both.

    Arguments:
        is_typed: whether `place` is of the command line.
    """
    from strongroom.cli.flags.chosen_database import DatabaseChoice
    from strongroom.database import is_postgres

    url = place if place is not None and is_postgres(place) else None
    if is_typed and url is None:
        if file is not None:
            fail(Exit.USAGE, f"{place} is a directory; it does not go with --store-file")
        return None
    return DatabaseChoice(url, file, schema, "the URL", "--schema").database_if_any()


def examine(database: DatabaseSettings, keep_s: float, progress: Progress | None) -> Examined:
    """Look at a store, or end the command if that is impossible."""
    from strongroom.cli.flags.chosen_database import need_driver

    need_driver()
    from strongroom.engines.postgres.inspection import StoreInspection
    from strongroom.store.found_names import named
    from strongroom.store.integrity import Integrity

    url, schema = _within_time(database.url), database.schema
    with _exit_on_errors(database.shown), StoreInspection(url, schema, keep_s) as inspection:
        bodies = list(inspection.body_findings())
        damaged = {one.content: one for one in bodies if one.content is not None}
        integrity = Integrity(inspection, damaged)
        others = [one for one in bodies if one.content is None]
        others += integrity.findings(progress)
        others += (damaged[content] for content in integrity.unnamed(damaged))
        findings = named(others, inspection.records)
        notes = list(_notes(inspection.place, *inspection.young))
        return Examined(inspection.shown, findings, integrity.counts(), notes)


def _within_time(url: str) -> str:
    """Return the URL with the time limits of a gateway, where it has none. Without them, the driver
    waits for minutes for a host that does not answer, and for hours for one that was cut off."""
    from strongroom.engines.postgres.sessions.session import DEFAULTS

    given = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
    known = (*_NO_LIMITS, *given)
    added = urlencode({name: text for name, text in DEFAULTS.items() if name not in known})
    return f"{url}{'&' if '?' in url else '?'}{added}" if added else url


def _notes(place: str, count: int, size_bytes: int) -> Iterator[str]:
    if count:
        yield (
            f"{counted(count, 'bodies')} in {place} ({size_bytes / _MIB:,.1f} MiB) have no owner. "
            "They are being uploaded, or were left by a gateway that ended; gateways remove them "
            "after --keep-dropped."
        )


@contextmanager
def _exit_on_errors(shown: str) -> Iterator[None]:
    import psycopg

    from strongroom.engines.base import Busy, EngineError
    from strongroom.engines.postgres.sessions.session import DatabaseUnfit

    try:
        yield
    except DatabaseUnfit as error:
        fail(Exit.DATA, f"{shown}: {error}. {_UNFIT}")
    except EngineError as error:
        fail(Exit.UNAVAILABLE if isinstance(error, Busy) else Exit.DATA, f"{shown}: {error}")
    except psycopg.Error as error:
        why = " ".join(str(error).split())
        fail(Exit.UNAVAILABLE, f"{shown}: the database ended the inspection: {why}")
    except OSError as error:
        fail(Exit.UNAVAILABLE, f"{shown}: the place of the bodies cannot be read: {error}")
