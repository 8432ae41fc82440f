"""What an import did: how much was imported, and what was not, with the reasons.

Lives here: the report as a value, and the draft that collects it. Must not live here: how it is
printed (cli/imports/azurite.py).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

REMARKS_MAX: Final = 10_000
"""How many remarks of a kind a report lists; further ones are only counted."""
_TEXT_CHARS_MAX: Final = 2048


class Remark(msgspec.Struct, frozen=True):
    """One thing that was not imported, or not as it was.

    Attributes:
        kind: what it is: `blob`, `snapshot`, `container`, `queue`, `message`, `table`, `entity`,
            `properties`, `lease`, `etag`, `blocks` or `database`.
        place: ACCOUNT/CONTAINER/BLOB and the like, or a file with the number of the record.
        reason: why.
    """

    kind: str
    place: str
    reason: str


class Counts(msgspec.Struct, frozen=True):
    """How much was imported. `bytes` are those of bodies: a snapshot's count again."""

    accounts: int = 0
    containers: int = 0
    blobs: int = 0
    snapshots: int = 0
    queues: int = 0
    messages: int = 0
    tables: int = 0
    entities: int = 0
    properties: int = 0
    bytes: int = 0


class ImportReport(msgspec.Struct, frozen=True):
    """The result of an import.

    Attributes:
        source, target: the folder, and the data directory.
        accounts: the accounts that have data. The folder does not hold their keys.
        lost: what the folder holds and the data directory does not: it cannot be read, or this
            server would refuse it.
        skipped: what was left out because it has no meaning here, such as expired messages.
        lost_count, skipped_count: how many there are; the lists end after REMARKS_MAX.
        duration_s: how long the import took.
    """

    source: str
    target: str
    counts: Counts
    accounts: tuple[str, ...]
    lost: tuple[Remark, ...]
    skipped: tuple[Remark, ...]
    lost_count: int
    skipped_count: int
    duration_s: float

    @property
    def is_complete(self) -> bool:
        """Whether nothing was lost."""
        return not self.lost_count


class ReportDraft:
    """Collects a report.

    Attributes:
        counts: how much was imported, by the fields of Counts.
        accounts: the accounts seen.
    """

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.accounts = set[str]()
        self._lost: list[Remark] = []
        self._skipped: list[Remark] = []
        self._lost_count = self._skipped_count = 0

    def lose(self, kind: str, place: str, reason: object) -> None:
        """Note what is in the folder and will not be in the data directory."""
        self._lost_count += 1
        _add(self._lost, kind, place, str(reason))

    def skip(self, kind: str, place: str, reason: str) -> None:
        """Note what has no meaning here."""
        self._skipped_count += 1
        _add(self._skipped, kind, place, reason)

    def finish(self, source: str, target: str, duration_s: float) -> ImportReport:
        counts = {name: self.counts[name] for name in Counts.__struct_fields__}
        counts["accounts"] = len(self.accounts)
        return ImportReport(
            source,
            target,
            Counts(**counts),
            accounts=tuple(sorted(self.accounts)),
            lost=tuple(self._lost),
            skipped=tuple(self._skipped),
            lost_count=self._lost_count,
            skipped_count=self._skipped_count,
            duration_s=duration_s,
        )


def _add(remarks: list[Remark], kind: str, place: str, reason: str) -> None:
    if len(remarks) < REMARKS_MAX:
        remarks.append(Remark(kind, place[:_TEXT_CHARS_MAX], reason[:_TEXT_CHARS_MAX]))
