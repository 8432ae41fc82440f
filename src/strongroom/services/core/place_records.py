"""The changes of a place's own record, for containers, queues, tables and shares alike.

Lives here: the commits that create, change and remove the record. Its contents belong to the
record's generation, the stamp of its creation. So a removal hides them at once, and a job sweeps
them. A place of the same name that is created later has another generation: writes in flight to the
old one do not reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Ref, Step, Write
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import UNDECODED, Decision, Found, ReadOne, Reads
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import Codec, Job, JobKind
from strongroom.values import Metadata

R = TypeVar("R")
T = TypeVar("T")


class PlaceRecordKind(msgspec.Struct, frozen=True, kw_only=True):
    """The records of one kind of place.

    Attributes:
        place: the codec of its record.
        exists: the error when the name is taken.
        sweep_job: the job that removes the contents at once.
        epoch_of: the epoch of a record that the job names; 0 = the kind has none.
    """

    place: Codec[Any]
    exists: ErrorCode
    sweep_job: JobKind
    epoch_of: Callable[[Any], int] = lambda record: 0

    def sweep(self, name: str, record: Any) -> Job:
        """`name` is account/name."""
        return Job(self.sweep_job, record.generation, token=name, epoch=self.epoch_of(record))


def name_of(call: Call[Any]) -> str:
    """The place that the request names, as jobs name it: account/name."""
    return f"{call.target.account}/{call.target.container}"


def written(ref: Ref, codec: Codec[R], record: R) -> Step:
    return Step(ref.partition, (Write(ref.key, codec.encode(record)),))


def removed(
    ref: Ref, order: Job, stamp: int, due: int | None = None, more: Iterable[Write] = ()
) -> tuple[Step, ...]:
    """The steps that remove a place's record, and order a job; `due` None = at once.

    The job is written first: after a crash in between, it finds the place alive and does nothing.
    """
    job = keys.job(stamp if due is None else due, stamp, order.kind)
    return (
        written(job, records.JOB, order),
        Step(ref.partition, (Write(ref.key, None), *more)),
    )


class SetPlaceMetadata(msgspec.Struct, frozen=True):
    """Pairs that are not given are removed. A table has no metadata."""

    metadata: Metadata = ()


class NewPlace(Protocol):
    """The input of an operation that creates a place. It is a value."""

    def record(self, stamp: int) -> Any:
        """Return the record of the place that is created at this stamp."""
        ...


async def create_place(
    services: Services, call: Call[Any], ref: Ref, kind: PlaceRecordKind, new: NewPlace
) -> int:
    """Return the stamp of the creation."""
    reads = Reads()
    place = reads.add(ref, UNDECODED)
    return await services.commit(
        _Create(ref.partition, reads.refs, call.rule.purpose, place, kind, new)
    )


class _Create(Decision[int], frozen=True):
    place: ReadOne[bytes]
    kind: PlaceRecordKind
    new: NewPlace

    def decide(self, found: Found, stamp: int) -> Commit[int]:
        if found[self.place] is not None:
            raise StorageError(self.kind.exists)
        return Commit(stamp, (written(self.place.ref, self.kind.place, self.new.record(stamp)),))


class PlaceRule(msgspec.Struct, Generic[R, T], frozen=True):
    """What an operation does to the record of the place that it names. It is a value."""

    def decide(self, call: Call[Any], ref: Ref, record: R, stamp: int) -> Commit[T]:
        """Return the commit. `call` is authorized, and `ref` is the place of the record."""
        raise NotImplementedError


async def commit_place(
    services: Services, call: Call[Any], codec: Codec[R], rule: PlaceRule[R, T]
) -> T:
    """Decide on the record of the place that the request names.

    Every later decision sees another version of a changed record, so its request is authorized
    again.
    """
    reads = Reads()
    place = reads.add(place_ref(call), codec)
    purpose, call = call.rule.purpose, call.with_pure_authorization()
    decision = _OnPlace(place.ref.partition, reads.refs, purpose, call, place, rule)
    return await services.commit(decision, call.turn)


class _OnPlace(Decision[T], Generic[R, T], frozen=True):
    """A decision on behalf of a caller, who is authorized first."""

    call: Call[Any]
    place: ReadOne[R]
    rule: PlaceRule[R, T]

    def decide(self, found: Found, stamp: int) -> Commit[T]:
        record = place_in(self.call, found, self.place)
        return self.rule.decide(self.call, self.place.ref, record, stamp)


async def change_fields(
    services: Services, call: Call[Any], codec: Codec[Any], **fields: object
) -> None:
    """Change these fields of the record of the place that the request names."""
    await commit_place(services, call, codec, _SetFields(codec, tuple(fields.items())))


class _SetFields(PlaceRule[Any, None], frozen=True):
    codec: Codec[Any]
    fields: tuple[tuple[str, object], ...]

    def decide(self, call: Call[Any], ref: Ref, record: Any, stamp: int) -> Commit[None]:
        changed = msgspec.structs.replace(record, **dict(self.fields))
        return Commit(None, (written(ref, self.codec, changed),))


async def is_alive(services: Services, service: Service, job: Job) -> bool:
    """Return whether the place still exists because the commit of its deletion never happened.

    That commit cannot happen later: see rule 2 of sweeper.py.
    """
    place = await services.place(service, *job.token.split("/"))
    return place is not None and place.generation == job.generation
