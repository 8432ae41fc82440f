"""Lease Blob and Lease Container: one table, run on both; the queue of waiters."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.clock import SystemClock
from strongroom.engines.base import Ref
from strongroom.errors import core as errors
from strongroom.errors import leases as lease_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import copies
from strongroom.semantics.core import lease as leases
from strongroom.semantics.core.conditions import Conditions
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.blob import leasing
from strongroom.services.blob.containers import containers
from strongroom.services.core.calls import Call, ConditionUse, Existence, Place, Rule
from strongroom.services.core.leasing import (
    AcquireLease,
    BreakLease,
    ChangeLease,
    LeaseResult,
    ReleaseLease,
    RenewLease,
)
from strongroom.services.core.place_records import SetPlaceMetadata
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.core import keys, records
from strongroom.values import Lease, etag_text
from tests.services import container_calls as given
from tests.services.service_engine import ServiceEngine, settle

A = "aaaaaaaa-0000-0000-0000-000000000000"
B = "bbbbbbbb-0000-0000-0000-000000000000"
C = "cccccccc-0000-0000-0000-000000000000"
STATES = ("available", "leased", "breaking", "broken", "expired")
ON_BLOB = Rule(LeaseUse.NONE, ConditionUse.WRITE, Existence.ANY)
ON_CONTAINER = Rule(LeaseUse.NONE, ConditionUse.DATES)
PRESENT, ABSENT = "LeaseAlreadyPresent", "LeaseNotPresentWithLeaseOperation"
OTHER = "LeaseIdMismatchWithLeaseOperation"
NO_RENEW = "LeaseIsBrokenAndCannotBeRenewed"
NO_CHANGE = "LeaseIsBreakingAndCannotBeChanged"
NO_ACQUIRE = "LeaseIsBreakingAndCannotBeAcquired"
X = "a new id"

# rule: (action, x-ms-lease-id, results for STATES); a result is an error, or (state, id) after it.
TABLE: dict[str, tuple[Any, str | None, tuple[Any, ...]]] = {
    "B-LSE-01": (
        AcquireLease(15),
        None,
        (("leased", X), PRESENT, PRESENT, ("leased", X), ("leased", X)),
    ),
    "B-LSE-02": (
        AcquireLease(60, A),
        None,
        (("leased", A), ("leased", A), NO_ACQUIRE, ("leased", A), ("leased", A)),
    ),
    "B-LSE-03": (
        AcquireLease(15, B),
        None,
        (("leased", B), PRESENT, PRESENT, ("leased", B), ("leased", B)),
    ),
    "B-LSE-04": (BreakLease(0), None, (ABSENT, *(("broken", A),) * 4)),
    "B-LSE-05": (
        BreakLease(10),
        None,
        (ABSENT, ("breaking", A), ("breaking", A), ("broken", A), ("broken", A)),
    ),
    "B-LSE-06": (ChangeLease(B), A, (ABSENT, ("leased", B), NO_CHANGE, ABSENT, ABSENT)),
    "B-LSE-07": (ChangeLease(A), B, (ABSENT, ("leased", A), NO_CHANGE, ABSENT, ABSENT)),
    "B-LSE-08": (ChangeLease(C), B, (ABSENT, OTHER, OTHER, ABSENT, ABSENT)),
    "B-LSE-09": (RenewLease(), A, (OTHER, ("leased", A), NO_RENEW, NO_RENEW, ("leased", A))),
    "B-LSE-10": (RenewLease(), B, (OTHER,) * 5),
    "B-LSE-11": (ReleaseLease(), A, (OTHER, *(("available", None),) * 4)),
    "B-LSE-12": (ReleaseLease(), B, (OTHER,) * 5),
}


class Target:
    """A container, or a blob in it, whose lease is tested."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.on = given.services()
        self.generation = 0

    async def make(self, **more: Any) -> Target:
        self.generation = (await given.create(self.on)).etag
        if self.kind == "blob":
            await given.put_blob(self.on, self.generation, "b", **more)
        return self

    async def call(self, action: Any, **more: Any) -> Call[Any]:
        if self.kind == "blob":
            return await given.placed(self.on, action, blob="b", rule=ON_BLOB, **more)
        return await given.placed(self.on, action, rule=ON_CONTAINER, **more)

    async def act(self, action: Any, lease_id: str | None = None, **more: Any) -> LeaseResult:
        asked = await self.call(action, lease_id=lease_id, **more)
        if self.kind == "blob":
            return await leasing.lease_blob(self.on, asked)
        return await leasing.lease_container(self.on, asked)

    async def read(self) -> tuple[Any, int]:
        codec: Any = records.CONTAINER
        ref = keys.container(given.ACCOUNT, "photos")
        if self.kind == "blob":
            ref, codec = Ref(keys.blob(self.generation, "b"), keys.HEAD_KEY), blob_records.BLOB
        (found,) = await self.on.store.read([ref])
        assert found is not None
        return codec.decode(found.value), found.version

    async def record(self) -> Any:
        return (await self.read())[0]

    async def lease(self) -> Lease | None:
        found: Lease | None = (await self.record()).lease
        return found

    async def state(self) -> str:
        record, version = await self.read()
        # Stamps can be ahead of the clock.
        now = max(await self.on.store.now(), version)
        return leases.state(record.lease, now).value

    async def be(self, state: str) -> None:
        if state != "available":
            await self.act(AcquireLease(15, A))
        if state in ("breaking", "broken"):
            await self.act(BreakLease(10 if state == "breaking" else 0))
        if state == "expired":
            self.on.store.advance(20)
        assert await self.state() == state


KINDS = pytest.mark.parametrize("kind", ["blob", "container"])


@KINDS
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("rule", list(TABLE))
def test_the_table(kind: str, state: str, rule: str) -> None:
    """B-LSE-01 to B-LSE-12, cell by cell: B-LSE-02, B-LSE-03, B-LSE-04, B-LSE-05, B-LSE-06,
    B-LSE-07, B-LSE-08, B-LSE-09, B-LSE-10, B-LSE-11; B-LSE-19, B-ETG-03."""
    action, lease_id, cells = TABLE[rule]
    cell = cells[STATES.index(state)]

    async def scenario() -> None:
        target = await Target(kind).make()
        await target.be(state)
        before = await target.record()
        attempt = target.act(action, lease_id)
        if isinstance(cell, str):
            assert await given.refused(attempt) == (409, cell)
            assert await target.record() == before
            return
        result = await attempt
        after = await target.record()
        lease_state, expected_id = cell
        assert await target.state() == lease_state
        found_id = None if after.lease is None else after.lease.id
        if expected_id is X:
            assert found_id not in (None, A, B, C)
        else:
            assert found_id == expected_id
        named = not isinstance(action, BreakLease | ReleaseLease)
        assert result.lease_id == (found_id if named else None)
        assert (result.time_s is not None) == isinstance(action, BreakLease)
        assert (result.etag, result.modified) == (before.etag, before.modified)
        assert (after.etag, after.modified) == (before.etag, before.modified)

    given.run(scenario)


@KINDS
def test_time_ends_leases_and_breaks(kind: str) -> None:
    """B-LSE-13."""

    async def scenario() -> None:
        target = await Target(kind).make()
        await target.act(AcquireLease(15, A))
        target.on.store.advance(15.1)
        assert await target.state() == "expired"
        await target.act(AcquireLease(-1, B))
        target.on.store.advance(10**6)
        assert await target.state() == "leased"
        assert (await target.act(BreakLease(10))).time_s == 10
        target.on.store.advance(10.1)
        assert await target.state() == "broken"

    given.run(scenario)


@KINDS
def test_a_break_without_period_gives_what_remains(kind: str) -> None:
    """B-LSE-17, B-LSE-18."""

    async def scenario() -> None:
        target = await Target(kind).make()
        await target.act(AcquireLease(30, A))
        target.on.store.advance(9.5)
        assert (await target.act(BreakLease(), B)).time_s == 21
        assert await target.state() == "breaking"
        await target.act(ReleaseLease(), A)
        await target.act(AcquireLease(-1, A))
        assert (await target.act(BreakLease())).time_s == 0

    given.run(scenario)


@KINDS
@pytest.mark.parametrize("action", [RenewLease(), ChangeLease(B), ReleaseLease()])
def test_an_id_is_needed(kind: str, action: Any) -> None:
    """B-LSE-14."""

    async def scenario() -> None:
        target = await Target(kind).make()
        assert await given.refused(target.act(action)) == (400, "MissingRequiredHeader")

    given.run(scenario)


@KINDS
def test_of_many_acquisitions_one_wins(kind: str) -> None:
    """B-LSE-22."""

    async def scenario() -> None:
        target = await Target(kind).make()
        tries = [target.act(AcquireLease(15)) for _ in range(10)]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        won = [one for one in outcomes if isinstance(one, LeaseResult)]
        lost = [one.row for one in outcomes if isinstance(one, StorageError)]
        assert len(won) == 1 and lost == [lease_errors.LEASE_ALREADY_PRESENT] * 9
        lease = await target.lease()
        assert lease is not None and lease.id == won[0].lease_id

    given.run(scenario)


def test_a_blob_must_exist_but_uncommitted_blocks_are_enough() -> None:
    """B-LSE-21."""

    async def scenario() -> None:
        target = await Target("blob").make(committed=False)
        taken = await target.act(AcquireLease(15, A))
        assert (taken.etag, taken.modified, taken.lease_id) == (0, 0, A)
        missing = await given.placed(target.on, AcquireLease(15), blob="no", rule=ON_BLOB)
        refusal = await given.refused(leasing.lease_blob(target.on, missing))
        assert refusal == (404, "BlobNotFound")
        await containers.delete_container(target.on, await given.placed(target.on))
        gone = await given.refused(target.act(AcquireLease(15)))
        assert gone == (404, "ContainerNotFound")

    given.run(scenario)


def test_snapshots_and_destinations_of_copies_cannot_be_leased() -> None:
    """B-SNP-05, B-CPY-06."""

    async def scenario() -> None:
        target = await Target("blob").make(copy=copies.started(A, "http://source.example/", 9))
        await given.put_blob(target.on, target.generation, "free")
        attempt = target.act(AcquireLease(15))
        assert await given.refused(attempt) == (409, "PendingCopyOperation")
        asked = await given.placed(
            target.on, AcquireLease(15), blob="free", rule=ON_BLOB, snapshot=5
        )
        refusal = await given.refused(leasing.lease_blob(target.on, asked))
        assert refusal == (400, "InvalidQueryParameterValue")

    given.run(scenario)


def test_conditions_are_judged_before_the_lease() -> None:
    """B-CWR-01, B-CWR-14."""

    async def scenario() -> None:
        target = await Target("blob").make()
        etag = etag_text((await target.record()).etag)
        wrong = Conditions(if_match=('"0x1"',))
        refusal = await given.refused(target.act(AcquireLease(15), conditions=wrong))
        assert refusal == (412, "ConditionNotMet")
        await target.act(AcquireLease(15, A), conditions=Conditions(if_match=(etag,)))
        assert await target.state() == "leased"

    given.run(scenario)


async def waiting(target: Target, action: Any, **more: Any) -> asyncio.Task[LeaseResult]:
    """Start an acquisition that waits, and return when it is in the queue."""
    task = asyncio.create_task(target.act(action, wait_s=30, **more))
    await settle()
    return task


@KINDS
def test_waiters_are_served_in_order_of_arrival(kind: str) -> None:
    """B-WAI-07, B-WAI-08."""

    async def scenario() -> None:
        target = await Target(kind).make()
        await target.act(AcquireLease(-1, A))
        tasks = [await waiting(target, AcquireLease(-1)) for _ in range(3)]
        assert not any(task.done() for task in tasks)
        holder = A
        for task in tasks:
            await target.act(ReleaseLease(), holder)
            won = await task
            assert won.lease_id is not None
            holder = won.lease_id
            await settle()
            assert sum(other.done() for other in tasks) == tasks.index(task) + 1

    given.run(scenario)


@KINDS
@pytest.mark.parametrize("action", [AcquireLease(15, A), AcquireLease(-1, B)], ids=["A", "B"])
def test_an_expiry_and_a_break_wake_the_first(kind: str, action: AcquireLease) -> None:
    """B-WAI-08, B-WAI-09."""

    async def scenario() -> None:
        target = await Target(kind).make()
        await target.be("breaking")
        task = await waiting(target, action)
        target.on.store.advance(5)
        await settle()
        assert not task.done()
        target.on.store.advance(5)
        assert (await task).lease_id == action.proposed_id

    given.run(scenario)


def test_an_expiry_wakes_though_nobody_writes_and_no_clock_is_moved() -> None:
    """B-WAI-08: by the real clock, for the shortest lease in units of the wire."""

    async def scenario() -> None:
        clock = SystemClock()
        target = Target("container")
        target.on = Services(ServiceEngine(clock), clock)
        await target.make()
        await target.act(AcquireLease(15, A))
        target.on.store.advance(14.7)
        assert (await target.act(AcquireLease(15, B), wait_s=20)).lease_id == B

    given.run(scenario)


@KINDS
def test_the_end_of_the_time_answers_409(kind: str) -> None:
    """B-WAI-07."""

    async def scenario() -> None:
        target = await Target(kind).make()
        await target.act(AcquireLease(-1, A))
        tries = [given.refused(target.act(AcquireLease(15), wait_s=1)) for _ in range(2)]
        assert await asyncio.gather(*tries) == [(409, PRESENT)] * 2

    given.run(scenario)


@KINDS
def test_one_that_has_gone_is_passed_over(kind: str) -> None:
    """B-WAI-08."""

    async def scenario() -> None:
        target = await Target(kind).make()
        await target.act(AcquireLease(-1, A))
        first, second = [await waiting(target, AcquireLease(-1)) for _ in range(2)]
        first.cancel()
        await settle()
        assert first.cancelled() and not second.done()
        await target.act(ReleaseLease(), A)
        won = await second
        lease = await target.lease()
        assert lease is not None and lease.id == won.lease_id

    given.run(scenario)


@KINDS
def test_a_holder_that_prolongs_does_not_queue_behind_the_others(kind: str) -> None:
    async def scenario() -> None:
        target = await Target(kind).make()
        await target.act(AcquireLease(15, A))
        other = await waiting(target, AcquireLease(-1, B))
        assert (await target.act(AcquireLease(60, A), wait_s=30)).lease_id == A
        target.on.store.advance(30)
        await settle()
        assert not other.done()
        target.on.store.advance(30)
        assert (await other).lease_id == B
        # Its id does not give it precedence either, once the lease has ended.
        assert await given.refused(target.act(AcquireLease(15, A), wait_s=1)) == (409, PRESENT)

    given.run(scenario)


@KINDS
def test_a_waiter_hears_of_the_deletion_and_of_a_changed_acl(kind: str) -> None:
    """B-WAI-04, B-WAI-10, B-CON-10."""

    async def scenario() -> None:
        target = await Target(kind).make()
        await target.act(AcquireLease(-1, A))
        before = await target.on.place(Service.BLOB, given.ACCOUNT, "photos")
        assert before is not None
        version = before.version

        def judge(place: Place | None) -> None:
            if place is not None and place.version > version:
                raise StorageError(errors.AUTHENTICATION_FAILED)

        barred = await waiting(target, AcquireLease(15), authorize=judge)
        queued = await waiting(target, AcquireLease(15))
        changed = SetPlaceMetadata((("x", "y"),))
        await containers.set_metadata(target.on, await given.placed(target.on, changed))
        assert await given.refused(barred) == (403, "AuthenticationFailed")
        assert not queued.done()
        await containers.delete_container(target.on, await given.placed(target.on))
        assert await given.refused(queued) == (404, "ContainerNotFound")

    given.run(scenario)


def test_one_whose_time_ends_in_the_queue_is_authorized_again() -> None:
    """B-WAI-10."""

    async def scenario() -> None:
        target = await Target("container").make()
        await target.act(AcquireLease(-1, A))
        first = await waiting(target, AcquireLease(15))

        def judge(place: Place | None) -> None:
            raise StorageError(errors.AUTHENTICATION_FAILED)

        late = asyncio.create_task(
            given.refused(target.act(AcquireLease(15), wait_s=1, authorize=judge))
        )
        await settle()
        changed = SetPlaceMetadata((("x", "y"),))
        await containers.set_metadata(target.on, await given.placed(target.on, changed))
        assert await late == (403, "AuthenticationFailed")
        first.cancel()

    given.run(scenario)


@KINDS
def test_a_server_that_stops_sends_waiters_home(kind: str) -> None:
    """B-WAI-09."""

    async def scenario() -> None:
        target = await Target(kind).make()
        await target.act(AcquireLease(-1, A))
        tasks = [await waiting(target, AcquireLease(15)) for _ in range(3)]
        target.on.waiting.stop()
        target.on.store.advance(0)
        outcomes = [await given.refused(task) for task in tasks]
        assert outcomes == [(409, PRESENT)] * 3

    given.run(scenario)
