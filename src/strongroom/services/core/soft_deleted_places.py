"""Soft-deleted containers and shares: their deletion, restore, and expiry.

Lives here: the part that containers and shares have in common. Source: "Soft delete for
containers", "Prevent accidental deletion of Azure file shares".

A deletion moves the record to a key beside the original, and schedules a job for the end of the
retention. A restore makes that job void, since the deleted record is no longer there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from strongroom.engines.base import Commit, Step, Write
from strongroom.errors.core import ErrorCode, StorageError, invalid_header
from strongroom.semantics.core.retention import retention_end
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import UNDECODED, Decision, Found, ReadOne, Reads
from strongroom.services.core.place_records import PlaceRecordKind, name_of, removed
from strongroom.services.core.places import place_ref
from strongroom.services.core.runner import Services
from strongroom.store.core import keys
from strongroom.store.core.records import Codec, DeletedContainer, DeletedShare, Job, JobKind

_VERSION: Final = re.compile(r"[0-9A-Fa-f]{16}")


class SoftDeleteKind(PlaceRecordKind, frozen=True, kw_only=True):
    """One kind of place that can be soft-deleted.

    Attributes:
        noun: its name in messages.
        kept: the codec of the record of a deleted one.
        expiry_job: the job that removes the contents when the retention ends.
        missing: the error of Restore when it is not kept.
        name_header: the header of Restore that has its name.
    """

    noun: str
    kept: Codec[Any]
    expiry_job: JobKind
    missing: ErrorCode
    name_header: str


class RestorePlace(msgspec.Struct, frozen=True):
    """The name of the deleted one, and its version as listings show it."""

    name: str
    version: str


class PlaceDeletion:
    """The writes of a deletion. `days` is the retention of the deleted place; 0 = it is not
    kept."""

    def __init__(self, kind: SoftDeleteKind, call: Call[Any], days: int) -> None:
        self._kind = kind
        self._ref = place_ref(call)
        self._name = name_of(call)
        self._days = days

    def steps(
        self,
        generation: int,
        kept: Callable[[int], DeletedContainer | DeletedShare],
        stamp: int,
        *more: Write,
    ) -> tuple[Step, ...]:
        """Return the steps of the deletion.

        Arguments:
            kept: takes the end of the retention and returns the record of the deleted place.
            stamp: the commit's stamp.
            more: further writes in the place's partition.
        """
        kind, days = self._kind, self._days
        until = retention_end(stamp, days)
        if days:
            key = keys.deleted_place(self._ref, generation).key
            more = (*more, Write(key, kind.kept.encode(kept(until))))
        order = Job(kind.expiry_job if days else kind.sweep_job, generation, token=self._name)
        return removed(self._ref, order, stamp, until if days else None, more)


async def restore_place(services: Services, call: Call[RestorePlace], kind: SoftDeleteKind) -> Any:
    """As it was, but without its lease. Returns its record."""
    name = call.input.name
    if name != call.target.container:
        reason = f"A {kind.noun} can be restored under its own name only."
        raise invalid_header(kind.name_header, name, reason)
    generation = version_generation(call.input.version)
    if generation is None:
        raise StorageError(kind.missing)
    ref, reads = place_ref(call), Reads()
    place = reads.add(ref, UNDECODED)
    kept = reads.add(keys.deleted_place(ref, generation), kind.kept)
    return await services.commit(
        _Restore(ref.partition, reads.refs, call.rule.purpose, kind, place, kept)
    )


class _Restore(Decision[Any], frozen=True):
    kind: SoftDeleteKind
    place: ReadOne[bytes]
    kept: ReadOne[Any]

    def decide(self, found: Found, stamp: int) -> Commit[Any]:
        kept = found[self.kept]
        if kept is None or kept.until <= stamp:
            raise StorageError(self.kind.missing)
        if found[self.place] is not None:
            raise StorageError(self.kind.exists)
        back = Write(self.place.ref.key, self.kind.place.encode(kept.record))
        step = Step(self.partition, (back, Write(self.kept.ref.key, None)))
        return Commit(kept.record, (step,))


def generation_version(generation: int) -> str:
    """Return the version of a deleted container or share as listings show it."""
    return f"{generation:016X}"


def version_generation(version: str) -> int | None:
    """Return the generation of a listed version; None for a malformed text."""
    return int(version, 16) if _VERSION.fullmatch(version) else None
