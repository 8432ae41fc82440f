"""PostgreSQL engines that break one rule each, and the cases of the contract that detect it.

Lives here: mutants. Those of the database change the text of a function in a store's schema; the
others replace a method while the engine runs. Must not live here: cases.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final
from unittest import mock

from strongroom.engines.gateways import STAMP_MAX, Horizon
from strongroom.engines.postgres.commits import line
from strongroom.engines.postgres.commits.batches import CommitBatch
from strongroom.engines.postgres.gateways.gateways import PostgresGateways
from strongroom.engines.postgres.sessions.lanes import Lane
from strongroom.engines.postgres.sessions.session import DatabaseSession, StatementResult
from strongroom.engines.postgres.sql.schema import Statement
from strongroom.testing.contract import membership, shared
from tests.engines.postgres.servers import Administrator

Case = Callable[[Any], Awaitable[None]]
Mutate = Callable[[Administrator, str], None]
_DEFINITION: Final = (
    "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
    "WHERE n.nspname = %s AND p.proname = %s"
)


def changed(function: str, old: str, new: str) -> Mutate:
    """Replace a text in a function of the schema."""

    def mutate(administrator: Administrator, schema: str) -> None:
        text = administrator.value(_DEFINITION, (schema, function))
        assert text.count(old) == 1, f"{function} does not have it once: {old}"
        administrator.run(text.replace(old, new))

    return mutate


SQL_MUTANTS: Final[dict[str, tuple[Mutate, Case]]] = {
    "a record that was read is not compared": (
        changed("commit_", "r.version IS DISTINCT FROM g.version", "false"),
        shared.a_put_decided_before_a_deletion_is_refused_after_it,
    ),
    "a record that was counted is not compared": (
        changed("commit_", "r.version IS DISTINCT FROM g.version", "false"),
        shared.a_commit_held_back_is_decided_again,
    ),
    "partitions are not locked": (
        changed("commit_", "FOR i IN 1 .. cardinality(locks) LOOP", "FOR i IN 1 .. 0 LOOP"),
        shared.counting_over_two_gateways_loses_nothing,
    ),
    "newer stamps of a partition are not compared": (
        changed("commit_", "o.last >= p.lowest", "false"),
        shared.a_commit_held_back_is_no_older_than_what_came_meanwhile,
    ),
    "a dead gateway commits": (
        changed("commit_", "AND incarnation = run", "OR true"),
        membership.a_dead_gateway_blocks_nothing_and_commits_nothing,
    ),
}
"""A change of the schema, and the case that detects it."""


LATE_MUTANT: Final = changed("commit_", " AND o.epoch = my_epoch", "")
"""A commit happens although its session was given up."""
REMOVAL_MUTANTS: Final = {
    "whoever declares it dead does not wait": changed(
        "change_membership", "PERFORM pg_advisory_xact_lock(salt, removed[i]::integer);", "NULL;"
    ),
    "its commits do not say that they are under way": changed(
        "commit_", "PERFORM pg_advisory_xact_lock_shared(salt, me);", "NULL;"
    ),
}
"""A gateway is declared dead while a commit of it is under way."""
INPUT_MUTANT: Final = changed("commit_", "PERFORM pg_advisory_xact_lock_shared(locks[i]);", "NULL;")
"""A record of another partition may change after it was compared, and before the commit."""


@contextlib.contextmanager
def without_inputs() -> Iterator[None]:
    """Records of other partitions than the commit's are not compared."""
    arguments = CommitBatch.arguments

    def fewer(batch: CommitBatch) -> tuple[bytes, ...]:
        for unit in batch.units:
            number_of = batch._number_of
            kept = [ref for ref in unit.guards if number_of(ref.partition) in unit.partitions]
            unit.guards = {ref: unit.guards[ref] for ref in kept}
        return arguments(batch)

    with mock.patch.object(CommitBatch, "arguments", fewer):
        yield


@contextlib.contextmanager
def without_line() -> Iterator[None]:
    """A decision does not wait for a commit of its gateway that writes what it reads."""
    with mock.patch.object(line, "_meets", return_value=False):
        yield


@contextlib.contextmanager
def without_confirmation() -> Iterator[None]:
    """What a new session finds is not confirmed by the standbys."""
    confirm = Lane.confirm

    async def hasty(lane: Lane, session: DatabaseSession) -> None:
        await session.script("SET synchronous_commit = local")
        await confirm(lane, session)
        await session.script("SET synchronous_commit = on")

    with mock.patch.object(Lane, "confirm", hasty):
        yield


@contextlib.contextmanager
def without_notifications() -> Iterator[None]:
    """No notification is sent. That is allowed: they are lost with their connection, too."""
    run = DatabaseSession.run

    async def silent(
        session: DatabaseSession, statement: Statement, *values: bytes | None
    ) -> StatementResult:
        if statement.name == "notify":
            return StatementResult([], False)
        return await run(session, statement, *values)

    with mock.patch.object(DatabaseSession, "run", silent):
        yield


@contextlib.contextmanager
def without_horizon() -> Iterator[None]:
    """Readers of other gateways are ignored."""

    async def everything(gateways: PostgresGateways) -> Horizon:
        return Horizon(STAMP_MAX)

    with mock.patch.object(PostgresGateways, "horizon", everything):
        yield


PYTHON_MUTANTS: Final[dict[str, tuple[Callable[[], AbstractContextManager[None]], Case]]] = {
    "inputs are not compared": (
        without_inputs,
        shared.a_put_decided_before_a_deletion_is_refused_after_it,
    ),
    "the horizon is ignored": (
        without_horizon,
        membership.a_reader_holds_back_the_horizon_of_the_other,
    ),
}
"""What is replaced, and the case that detects it."""
