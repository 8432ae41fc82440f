"""Deleted containers and shares that are kept for a while: their deletion, way back, and end.

Lives here: what both have in common. Must not live here: what lies in them, and how it is swept
(the wings). Source: "Soft delete for containers", "Prevent accidental deletion of Azure file
shares".

The record of a deleted place moves to a key beside it, and a job is due when its retention ends. A
restored place makes that job void, since its deletion is no longer on record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from strongroom.engines.base import Commit, Record, Step, Write
from strongroom.errors import ErrorCode, StorageError, invalid_header
from strongroom.semantics.core.retention import retention_end
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision
from strongroom.services.core.places import place_ref
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import Codec, Job, JobKind

_VERSION: Final = re.compile(r"[0-9A-Fa-f]{16}")


class KeptRecord(Protocol):
    """The record of a deleted place: as it was, when it was deleted, and until when it is kept."""

    @property
    def record(self) -> Any: ...

    @property
    def deleted(self) -> int: ...

    @property
    def until(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptKind:
    """One kind of place that can be kept.

    Attributes:
        noun: what it is called.
        place: the codec of its record.
        kept: the codec of the record of a deleted one.
        sweeps: the job that removes what lay in it at once.
        expires: the job that does so when its retention ends.
        missing, exists: what Restore answers where it is not kept, or where the name is taken.
        name_header: the header of Restore that has its name.
    """

    noun: str
    place: Codec[Any]
    kept: Codec[Any]
    sweeps: JobKind
    expires: JobKind
    missing: ErrorCode
    exists: ErrorCode
    name_header: str


@dataclass(frozen=True, slots=True)
class RestorePlace:
    """Input of Restore Container and Restore Share: the name of the deleted one, and its version
    as listed."""

    name: str
    version: str


class PlaceDeletion:
    """The writes of a deletion.

    Arguments:
        days: how long the deleted place is kept; 0 = it is not.
    """

    def __init__(self, kind: KeptKind, call: Call[Any], days: int) -> None:
        self._kind = kind
        self._ref = place_ref(call)
        self._name = f"{call.target.account}/{call.target.container}"
        self._days = days

    def steps(
        self, generation: int, kept: Callable[[int], KeptRecord], stamp: int, *more: Write
    ) -> tuple[Step, ...]:
        """The steps of the deletion.

        Arguments:
            kept: until when it is kept -> the record of the deleted place.
            stamp: the commit's.
            more: what else is written in the place's partition.
        """
        kind, days = self._kind, self._days
        until = retention_end(stamp, days)
        job = keys.job(until, stamp, kind.expires if days else kind.sweeps)
        order = Job(kind.expires if days else kind.sweeps, generation, token=self._name)
        writes = [Write(self._ref.key, None), *more]
        if days:
            key = keys.deleted_place(self._ref, generation).key
            writes.append(Write(key, kind.kept.encode(kept(until))))
        return (
            # The job first: cut off in between, it finds the place alive and does nothing.
            Step(job.partition, (Write(job.key, records.JOB.encode(order)),)),
            Step(self._ref.partition, tuple(writes)),
        )


async def restore_place(services: Services, call: Call[RestorePlace], kind: KeptKind) -> Any:
    """Bring a deleted place back as it was when it was deleted, but for its lease.

    Returns: its record.
    Raises: StorageError InvalidHeaderValue (another name than that of the request); the kind's
        `missing` (there is none, or its retention has ended) and `exists`.
    """
    given = call.input
    if given.name != call.target.container:
        reason = f"A {kind.noun} can be restored under its own name only."
        raise invalid_header(kind.name_header, given.name, reason)
    generation = version_generation(given.version)
    if generation is None:
        raise StorageError(kind.missing)
    ref = place_ref(call)
    reads = [ref, keys.deleted_place(ref, generation)]
    return await services.commit(_Restore(ref.partition, reads, call.rule.purpose, kind))


class _Restore(Decision[Any], frozen=True):
    """Restore Container, Restore Share."""

    kind: KeptKind

    def decide(self, found: Sequence[Record | None], stamp: int) -> Commit[Any]:
        """See Decision.decide. Raises: StorageError."""
        kept = self.kind.kept.of(found[1])
        if kept is None or kept.until <= stamp:
            raise StorageError(self.kind.missing)
        if found[0] is not None:
            raise StorageError(self.kind.exists)
        back = Write(self.reads[0].key, self.kind.place.encode(kept.record))
        step = Step(self.partition, (back, Write(self.reads[1].key, None)))
        return Commit(kept.record, (step,))


def generation_version(generation: int) -> str:
    """The version of a deleted container or share as it is listed."""
    return f"{generation:016X}"


def version_generation(version: str) -> int | None:
    """The generation of a listed version; None for a text that is none."""
    return int(version, 16) if _VERSION.fullmatch(version) else None
