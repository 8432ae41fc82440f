"""Tables: create, delete, list, and their access control lists.

Lives here: the operations on a table's own record. Source: "Create Table", "Delete Table", "Query
Tables", "Get/Set Table ACL"; reference sections 1, 5 and 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Position, Ref, Step, Write
from strongroom.errors import core as errors
from strongroom.errors import table as table_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import names
from strongroom.semantics.table.table_filter import Expression
from strongroom.semantics.table.table_predicate import Candidates, Predicate
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.places import check_place, place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import Job, JobKind, TableRecord
from strongroom.values import AccessPolicy

# With a filter, at least this many records are read at once.
_FILTERED_RECORDS: Final = 500


class CreateTable(msgspec.Struct, frozen=True):
    """`echo`: the answer contains the table."""

    name: str
    echo: bool = True


class QueryTables(msgspec.Struct, frozen=True):
    """At most `top` that match, from the name `first` on (lower case)."""

    filter: Expression | None = None
    top: int = limits.TABLE_RESULTS_MAX
    first: str = ""


class SetTableAcl(msgspec.Struct, frozen=True):
    policies: tuple[AccessPolicy, ...] = ()


class TableNamed(msgspec.Struct, frozen=True):
    """The name of a table, in the case in which it was created."""

    name: str
    echo: bool = True


class TablePage(msgspec.Struct, frozen=True):
    """`resume` is the name at which the next page begins, or None."""

    names: list[str]
    resume: str | None


async def create_table(services: Services, call: Call[CreateTable]) -> TableNamed:
    """The commit's stamp becomes the table's generation.

    Entities of a deleted table of the same name belong to another generation, so they are not
    visible.
    """
    request = call.input
    names.check_table(request.name)
    ref, reads = keys.table(call.target.account, request.name), Reads()
    table = reads.add(ref, records.TABLE)
    return await services.commit(
        _Create(ref.partition, reads.refs, call.rule.purpose, table, request)
    )


class _Create(Decision[TableNamed], frozen=True):
    table: ReadOne[TableRecord]
    given: CreateTable

    def decide(self, found: Found, stamp: int) -> Commit[TableNamed]:
        given = self.given
        if found.record(self.table) is not None:
            raise StorageError(table_errors.TABLE_ALREADY_EXISTS)
        created = _written(self.table.ref, TableRecord(stamp, given.name))
        return Commit(TableNamed(given.name, given.echo), (created,))


async def delete_table(services: Services, call: Call[Any]) -> None:
    """Remove its record, which hides all entities; a job sweeps them."""
    await _commit(services, call, _Delete)
    services.work.set()


class _OfTable(Decision[None], frozen=True):
    """A change of the table's own record, and of what belongs to it."""

    call: Call[Any]
    table: ReadOne[TableRecord]


async def _commit(services: Services, call: Call[Any], kind: type[_OfTable]) -> None:
    reads = Reads()
    table = reads.add(place_ref(call), records.TABLE)
    call = call.with_pure_authorization()
    await services.commit(kind(table.ref.partition, reads.refs, call.rule.purpose, call, table))


class _Delete(_OfTable, frozen=True):
    def decide(self, found: Found, stamp: int) -> Commit[None]:
        call, table = self.call, found[self.table]
        if table is None or call.place is None:
            raise StorageError(errors.RESOURCE_NOT_FOUND)
        check_place(call, found.record(self.table))
        name = f"{call.target.account}/{call.target.container}"
        return Commit(None, deletion_steps(self.table.ref, name, table, stamp))


def deletion_steps(ref: Ref, name: str, table: TableRecord, stamp: int) -> tuple[Step, ...]:
    """`name` is account/table."""
    job = keys.job(stamp, stamp, JobKind.SWEEP_TABLE)
    sweep = Job(JobKind.SWEEP_TABLE, table.generation, token=name)
    # The job is written first: after a crash in between, it finds the table alive and does nothing.
    return (
        Step(job.partition, (Write(job.key, records.JOB.encode(sweep)),)),
        Step(ref.partition, (Write(ref.key, None),)),
    )


async def get_table(services: Services, call: Call[Any]) -> TableNamed:
    (record,) = await services.store.read([place_ref(call)])
    table = records.TABLE.of(record)
    if table is None:
        raise StorageError(errors.RESOURCE_NOT_FOUND)
    return TableNamed(table.name)


async def get_acl(services: Services, call: Call[Any]) -> tuple[AccessPolicy, ...]:
    reads = Reads()
    table = reads.add(place_ref(call), records.TABLE)
    return place_in(call, await services.read(reads), table).policies


async def set_acl(services: Services, call: Call[SetTableAcl]) -> None:
    """It takes effect with its answer."""
    await _commit(services, call, _SetAcl)


class _SetAcl(_OfTable, frozen=True):
    def decide(self, found: Found, stamp: int) -> Commit[None]:
        table, policies = place_in(self.call, found, self.table), self.call.input.policies
        changed = msgspec.structs.replace(table, policies=policies)
        return Commit(None, (_written(self.table.ref, changed),))


def _written(ref: Ref, table: TableRecord) -> Step:
    return Step(ref.partition, (Write(ref.key, records.TABLE.encode(table)),))


async def is_alive(services: Services, job: Job) -> bool:
    """Return whether the table still exists because the commit of its deletion never happened.

    That commit cannot happen later: see rule 2 of sweeper.py.
    """
    place = await services.place(Service.TABLE, *job.token.split("/"))
    return place is not None and place.generation == job.generation


async def query_tables(services: Services, call: Call[QueryTables]) -> TablePage:
    """In the order of their names, ignoring case. A page may be short and still have a next
    page."""
    request = call.input
    predicate = None if request.filter is None else Predicate(request.filter)
    matches: list[str] = []
    # With `$top=0` there is no continuation: a client that follows it would never reach the end.
    position = Position(request.first.encode(), b"") if request.top else None
    scanned = 0
    while position is not None and len(matches) < request.top:
        if scanned >= limits.LIST_SCANNED_RECORDS_MAX:
            break
        missing = request.top - len(matches)
        want = missing if predicate is None else max(missing, _FILTERED_RECORDS)
        page = await services.store.scan(keys.tables(call.target.account), position, None, want)
        position = page.resume
        scanned += len(page.values)
        matching = _matching(page.values, predicate)
        matches.extend(matching[:missing])
        if len(matching) > missing:
            return TablePage(matches, matching[missing].lower())
    resume = None if position is None else position.partition.decode("utf-8", "replace")
    return TablePage(matches, resume)


def _matching(values: Sequence[bytes], predicate: Predicate | None) -> list[str]:
    names_here = [records.TABLE.decode(value).name for value in values]
    if predicate is None:
        return names_here
    # A table has no property except its name.
    nothing, never = [b""] * len(names_here), [0] * len(names_here)
    fragments = [b'"TableName":"%b"' % name.encode() for name in names_here]
    chosen = predicate.select(Candidates(nothing, nothing, never, fragments))
    return [name for name, holds in zip(names_here, chosen, strict=True) if holds]
