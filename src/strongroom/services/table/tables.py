"""Tables: create, delete, list, and their access control lists.

Lives here: the operations on a table's own record. Source: "Create Table", "Delete Table", "Query
Tables", "Get/Set Table ACL"; reference sections 1, 5 and 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.engines.base import Commit, Position
from strongroom.errors import core as errors
from strongroom.errors import table as table_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import names
from strongroom.semantics.table.table_filter import Expression
from strongroom.semantics.table.table_predicate import Candidates, Predicate
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.place_records import (
    PlaceRecordKind,
    change_fields,
    create_place,
    name_of,
    removed,
)
from strongroom.services.core.places import check_place, place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import JobKind, TableRecord
from strongroom.values import AccessPolicy

# With a filter, at least this many records are read at once.
_FILTERED_RECORDS: Final = 500
TABLES: Final = PlaceRecordKind(
    place=records.TABLE,
    exists=table_errors.TABLE_ALREADY_EXISTS,
    sweep_job=JobKind.SWEEP_TABLE,
)


class CreateTable(msgspec.Struct, frozen=True):
    """`echo`: the answer contains the table."""

    name: str
    echo: bool = True

    def record(self, stamp: int) -> TableRecord:
        return TableRecord(stamp, self.name)


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
    name = call.input.name
    names.check_table(name)
    ref = keys.table(call.target.account, name)
    await create_place(services, call, ref, TABLES, call.input)
    return TableNamed(name, call.input.echo)


async def delete_table(services: Services, call: Call[Any]) -> None:
    """Remove its record, which hides all entities; a job sweeps them."""
    reads = Reads()
    table = reads.add(place_ref(call), records.TABLE)
    purpose, call = call.rule.purpose, call.with_pure_authorization()
    await services.commit(_Delete(table.ref.partition, reads.refs, purpose, call, table))
    services.work.set()


class _Delete(Decision[None], frozen=True):
    """Unlike other changes of a table, it is refused with ResourceNotFound if there is none."""

    call: Call[Any]
    table: ReadOne[TableRecord]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        call, table = self.call, found[self.table]
        if table is None or call.place is None:
            raise StorageError(errors.RESOURCE_NOT_FOUND)
        check_place(call, found.record(self.table))
        return Commit(None, removed(self.table.ref, TABLES.sweep(name_of(call), table), stamp))


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
    """It takes effect with its answer; see commit_place."""
    await change_fields(services, call, records.TABLE, policies=call.input.policies)


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
