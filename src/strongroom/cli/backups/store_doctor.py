"""`strongroom doctor URL`: checks that a store in PostgreSQL is whole, with its bodies apart.

Lives here: how the database is inspected, and what is said of it. Must not live here: what is
checked (store/integrity.py, engines/postgres/inspection.py), the report (cli/doctor.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from strongroom.cli.counted import counted
from strongroom.cli.exits import Exit, fail

if TYPE_CHECKING:
    from strongroom.engines.findings import Finding
    from strongroom.store.integrity import Progress

ADVICE: Final = (
    "What is listed as missing or damaged is lost here; everything else can be read. A body that "
    "is missing from the folder may be in its backup: put the file back. Else recover database and "
    "folder to a moment at which both were whole"
)
_SCHEMES: Final = ("postgresql://", "postgres://")
_MIB: Final = 1024 * 1024


class Examined(msgspec.Struct, frozen=True):
    """What was found of a store. `notes` are no problems."""

    shown: str
    findings: list[Finding]
    counts: dict[str, int]
    notes: list[str]


def is_database(place: str) -> bool:
    return place.startswith(_SCHEMES)


def examine(url: str, schema: str, keep_s: float, progress: Progress | None) -> Examined:
    """Look at a store, or end the command if that is impossible."""
    _check(url)
    from strongroom.engines.postgres.inspection import StoreInspection
    from strongroom.store.found_names import named
    from strongroom.store.integrity import Integrity

    with _exit_on_errors(), StoreInspection(url, schema, keep_s) as inspection:
        bodies = list(inspection.body_findings())
        damaged = {one.content: one for one in bodies if one.content is not None}
        integrity = Integrity(inspection, damaged)
        others = [one for one in bodies if one.content is None]
        others += integrity.findings(progress)
        others += (damaged[content] for content in integrity.unnamed(damaged))
        findings = named(others, inspection.records)
        notes = list(_notes(inspection.place, *inspection.young))
        return Examined(inspection.shown, findings, integrity.counts(), notes)


def _notes(place: str, count: int, size_bytes: int) -> Iterator[str]:
    if count:
        yield (
            f"{counted(count, 'bodies')} in {place} ({size_bytes / _MIB:,.1f} MiB) have no owner. "
            "They are being uploaded, or were left by a gateway that ended; gateways remove them "
            "after --keep-dropped."
        )


def _check(url: str) -> None:
    from strongroom.cli.flags.chosen_database import need_driver
    from strongroom.cli.flags.database import checked_url
    from strongroom.cli.flags.given import ValueSource

    checked_url(url, "the URL", ValueSource.COMMAND_LINE)
    need_driver()


@contextmanager
def _exit_on_errors() -> Iterator[None]:
    import psycopg

    from strongroom.engines.base import Busy, EngineError

    try:
        yield
    except EngineError as error:
        fail(Exit.UNAVAILABLE if isinstance(error, Busy) else Exit.DATA, str(error))
    except psycopg.Error as error:
        fail(Exit.UNAVAILABLE, f"the database ended the inspection: {' '.join(str(error).split())}")
    except OSError as error:
        fail(Exit.UNAVAILABLE, f"the folder of the bodies cannot be read: {error}")
