"""Commits that come late, that are inside the database when it matters, or that hold many locks."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from typing import Any

import pytest

from strongroom.engines.base import Commit, Key, Partition, Record, Step, StorageEngine, Write
from strongroom.testing.contract.subject import Refused, commit, face, put, value, writes
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.breaking import CommitsLockedOut
from tests.engines.postgres.mutants import INPUT_MUTANT, LATE_MUTANT, REMOVAL_MUTANTS, without_line
from tests.engines.postgres.patience import soon
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.subject import PostgresSubject
from tests.engines.subjects import Held

_SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'strongroom'"


def run(trial: Any, *subjects: PostgresSubject) -> Any:
    """Run a trial with stores that are stopped afterwards."""

    async def whole() -> Any:
        for subject in subjects:
            await subject.start()
        try:
            return await trial
        finally:
            for subject in subjects:
                await subject.stop()

    return asyncio.run(whole())


class Severed:
    """The network between a gateway and the server is slow, and the gateway gives up its sessions.

    The server's processes are stopped. What was sent to them arrives when they go on.
    """

    def __init__(self, administrator: Administrator, server: PostgresServer) -> None:
        self._administrator = administrator
        self._port = int(server.address.rpartition(":")[2])
        self._stopped: list[int] = []

    def stop(self) -> None:
        self._stopped = [process for (process,) in self._administrator.run(_SESSIONS)]
        for process in self._stopped:
            os.kill(process, signal.SIGSTOP)

    def hang_up(self) -> None:
        """End the present connections of this process, after all that was sent."""
        for entry in os.listdir("/proc/self/fd"):
            try:
                is_socket = os.readlink(f"/proc/self/fd/{entry}").startswith("socket:")
            except OSError:
                continue
            if is_socket:
                with socket.socket(fileno=os.dup(int(entry))) as connection:
                    self._hang_up(connection)

    def _hang_up(self, connection: socket.socket) -> None:
        if connection.family != socket.AF_INET or self._is_administrator(connection):
            return
        try:
            if connection.getpeername()[1] == self._port:
                connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is not connected

    def _is_administrator(self, connection: socket.socket) -> bool:
        own = self._administrator.run("SELECT inet_client_port()")
        return bool(connection.getsockname()[1] == own[0][0])

    async def go_on(self) -> None:
        """Let what was sent arrive, and return once it has been dealt with."""
        for process in self._stopped:
            os.kill(process, signal.SIGCONT)
        gone = set(self._stopped)
        sessions = self._administrator
        await soon(lambda: not gone & {one for (one,) in sessions.run(_SESSIONS)}, "it stays")


async def _late_after_a_refusal(
    subject: PostgresSubject, administrator: Administrator, server: PostgresServer
) -> bytes | None:
    """Refuse a decision whose first commit has not arrived yet; return what is there in the end."""
    store = subject.store
    severed = Severed(administrator, server)
    deadline: list[int] = []

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[None]:
        deadline.append(stamp)
        if stamp > deadline[0]:
            raise Refused("it is too late")
        return Commit(None, writes((face(), b"late")))

    async def stop_the_server() -> None:
        subject.gateway.before_commit = None
        severed.stop()

    subject.gateway.before_commit = stop_the_server
    updating = asyncio.ensure_future(store.update(face().partition, [face()], decide))
    await soon(lambda: bool(deadline), "it was not decided")
    await asyncio.sleep(0.3)  # it was sent
    severed.hang_up()
    try:
        with pytest.raises(Refused):
            await updating
    finally:
        await severed.go_on()
    return await value(store, face())


def test_a_commit_that_arrives_after_its_session_was_given_up_does_nothing(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    subject = PostgresSubject(postgres.url, administrator)
    assert run(_late_after_a_refusal(subject, administrator, postgres), subject) is None


def test_without_the_epoch_of_its_session_it_would_happen(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    subject = PostgresSubject(postgres.url, administrator, mutate=LATE_MUTANT)
    assert run(_late_after_a_refusal(subject, administrator, postgres), subject) == b"late"


async def _inside_while_it_is_declared_dead(
    subject: PostgresSubject, administrator: Administrator
) -> bool:
    """Declare a gateway dead whose commit is inside the database. Return whether the other one
    waits for it."""
    dead, other = subject.store, await subject.second()
    await put(dead, (face(b"first"), b""))
    locked_out = CommitsLockedOut(administrator, subject.schema)
    locked_out.begin()
    committing = asyncio.create_task(put(dead, (face(), b"inside")))
    try:
        await asyncio.to_thread(locked_out.waiting)
        subject.stop_heartbeats(dead)
        subject.clock.advance(11.0)
        quiet = asyncio.create_task(_quiet(other))
        await asyncio.sleep(0.5)
        waits = not quiet.done()
    finally:
        locked_out.end()
    await quiet
    seen = await value(other, face())
    await asyncio.gather(committing, return_exceptions=True)
    assert await value(other, face()) == seen or not waits, "an older commit happened later"
    return waits


async def _quiet(store: StorageEngine) -> None:
    await store.gateways.hold(b"lane")  # this declares the other one dead
    await store.gateways.wait_for_earlier_commits(await store.now())


def test_a_gateway_is_declared_dead_after_its_commits_under_way(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    subject = PostgresSubject(postgres.url, administrator)
    assert run(_inside_while_it_is_declared_dead(subject, administrator), subject)


@pytest.mark.parametrize("mutant", REMOVAL_MUTANTS)
def test_otherwise_its_commit_would_happen_after_its_death(
    postgres: PostgresServer, administrator: Administrator, mutant: str
) -> None:
    subject = PostgresSubject(postgres.url, administrator, mutate=REMOVAL_MUTANTS[mutant])
    assert not run(_inside_while_it_is_declared_dead(subject, administrator), subject)


async def _gate_shut_meanwhile(subject: PostgresSubject, administrator: Administrator) -> bool:
    """Delete a record while a commit that has compared it is under way. Return whether the deletion
    waits for that commit."""
    one, two = subject.store, await subject.second()
    gate, ref = face(b"", b"gate"), face(b"", b"blob")
    await put(two, (gate, b"open"))

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[None]:
        if records[0] is None:
            raise Refused("the gate is shut")
        return Commit(None, writes((ref, b"")))

    locked_out = CommitsLockedOut(administrator, subject.schema, one.gateways.number)
    locked_out.begin()
    creating = asyncio.ensure_future(one.update(ref.partition, [gate], decide))
    try:
        await asyncio.to_thread(locked_out.waiting)
        shutting = asyncio.create_task(put(two, (gate, None)))
        await asyncio.sleep(0.5)
        waits = not shutting.done()
    finally:
        locked_out.end()
    await asyncio.gather(creating, shutting)
    return waits


def test_what_a_commit_has_compared_does_not_change_before_it_happens(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    subject = PostgresSubject(postgres.url, administrator)
    assert run(_gate_shut_meanwhile(subject, administrator), subject)


def test_without_its_lock_it_would_change(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    subject = PostgresSubject(postgres.url, administrator, mutate=INPUT_MUTANT)
    assert not run(_gate_shut_meanwhile(subject, administrator), subject)


async def _read_while_written(subject: PostgresSubject) -> bool:
    """Decide on a record while a commit that writes it is under way. Return whether the decision
    saw that commit, or has the smaller stamp."""
    store, held = subject.store, Held()

    async def only_the_first() -> None:
        if not held.is_reached:
            await held()

    subject.gateway.before_commit = only_the_first
    writing = asyncio.create_task(put(store, (face(), b"a")))
    await held.reached()

    def decide(records: Sequence[Record | None], stamp: int) -> Commit[tuple[bool, int]]:
        saw = records[0] is not None
        return Commit((saw, stamp), writes((face(partition=b"q"), b"b")))

    reading = asyncio.ensure_future(store.update(Partition(b"k", b"q"), [face()], decide))
    await asyncio.sleep(0.3)
    held.release()
    written_at, (saw, read_at) = await asyncio.gather(writing, reading)
    return saw or read_at < written_at


def test_a_decision_on_what_is_being_written_comes_after_it_or_has_the_smaller_stamp(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    """Snapshots of shares rely on it: the stamps of one gateway only rise."""
    subject = PostgresSubject(postgres.url, administrator)
    assert run(_read_while_written(subject), subject)


def test_otherwise_a_greater_stamp_would_not_have_seen_the_smaller_one(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    subject = PostgresSubject(postgres.url, administrator)
    with without_line():
        assert not run(_read_while_written(subject), subject)


async def _first_commits_of_runs(subject: PostgresSubject) -> None:
    await put(subject.store, (face(), b"before"))
    for number in range(4):
        await subject.restart()
        subject.break_next_commit()
        await put(subject.store, (face(), b"%d" % number))
        assert await value(subject.store, face()) == b"%d" % number


def test_the_outcome_of_an_earlier_run_is_not_taken_for_that_of_this_one(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    """Each run makes one commit, whose session ends inside; the first has not happened then."""
    subject = PostgresSubject(postgres.url, administrator, connections=2)
    run(_first_commits_of_runs(subject), subject)


async def _many_partitions(subject: PostgresSubject) -> None:
    stores = (subject.store, await subject.second())

    async def wide(number: int) -> int:
        steps = [
            Step(Partition(b"k", b"%d/%d" % (number, at)), (Write(Key(False, b""), b""),))
            for at in range(2000)
        ]
        return await commit(stores[number % 2], *steps)

    async with asyncio.timeout(90):
        stamps = await asyncio.gather(*(wide(number) for number in range(8)))
    for number, stamp in enumerate(stamps):
        for at in (0, 1999):
            (record,) = await stores[0].read([face(b"", b"%d/%d" % (number, at))])
            assert record is not None and record.version == stamp


def test_commits_in_thousands_of_partitions_at_once_find_room_for_their_locks(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    """A server has a few thousand locks for all sessions together."""
    subject = PostgresSubject(postgres.url, administrator)
    run(_many_partitions(subject), subject)
