"""Containers: creation, change, deletion, their lease towards others, waiting for a change."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.auth.request import Service
from strongroom.engines.base import CommitUnknown, Position
from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core.conditions import Conditions
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.blob import leasing
from strongroom.services.blob.containers import containers
from strongroom.services.blob.containers.containers import (
    ContainerView,
    CreateContainer,
    SetContainerAcl,
)
from strongroom.services.core.calls import ConditionUse, Place, Rule
from strongroom.services.core.leasing import AcquireLease, BreakLease
from strongroom.services.core.place_records import SetPlaceMetadata
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, records
from strongroom.store.core.records import JobKind
from strongroom.values import TICKS_PER_S, AccessPolicy, PublicAccess, etag_text
from tests.services import container_calls as given
from tests.services.service_engine import ServiceEngine, settle

READS = Rule(LeaseUse.READ_CONTAINER, ConditionUse.REFUSED)
DELETES = Rule(LeaseUse.DELETE_CONTAINER, ConditionUse.DATES)
START = Position(b"", b"")
A, B = "aaaaaaaa-0000-0000-0000-000000000000", "bbbbbbbb-0000-0000-0000-000000000000"
ACTIONS: dict[str, Any] = {
    "get": (READS, None, containers.get_container),
    "set metadata": (
        Rule(LeaseUse.READ_CONTAINER, ConditionUse.MODIFIED_SINCE),
        SetPlaceMetadata((("colour", "red"),)),
        containers.set_metadata,
    ),
    "set acl": (
        Rule(LeaseUse.READ_CONTAINER, ConditionUse.DATES),
        SetContainerAcl(PublicAccess.BLOB, (AccessPolicy("p", permission="r"),)),
        containers.set_acl,
    ),
    "delete": (DELETES, None, containers.delete_container),
}


async def act(on: Services, name: str, **more: Any) -> Any:
    rule, input_, function = ACTIONS[name]
    return await function(on, await given.placed(on, input_, rule=rule, **more))


async def view(on: Services, **more: Any) -> ContainerView:
    found: ContainerView = await act(on, "get", **more)
    return found


async def lease_as(on: Services, state: str) -> None:
    """Bring the container's lease into a state; its id is A."""
    if state == "available":
        return
    acquire = AcquireLease(15, A)
    await leasing.lease_container(on, await given.placed(on, acquire))
    if state in ("breaking", "broken"):
        broken = BreakLease(10 if state == "breaking" else 0)
        await leasing.lease_container(on, await given.placed(on, broken))
    if state == "expired":
        on.store.advance(20)


def test_create_stores_what_was_given_under_a_new_stamp() -> None:
    """B-CON-01, B-ETG-04."""

    async def scenario() -> None:
        on = given.services()
        made = await containers.create_container(
            on, given.call(CreateContainer((("Owner", "ann"),), PublicAccess.CONTAINER))
        )
        record = (await view(on)).record
        assert made.etag == made.modified == record.etag == record.generation
        assert record.metadata == (("Owner", "ann"),)
        assert record.public_access is PublicAccess.CONTAINER
        assert record.policies == () and record.lease is None

    given.run(scenario)


def test_of_many_creators_one_wins_and_the_others_change_nothing() -> None:
    """B-CON-01."""

    async def scenario() -> None:
        on = given.services()
        tries = [
            containers.create_container(on, given.call(CreateContainer((("by", str(n)),))))
            for n in range(8)
        ]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        lost = [one for one in outcomes if isinstance(one, StorageError)]
        assert [one.row for one in lost] == [blob_errors.CONTAINER_ALREADY_EXISTS] * 7
        (winner,) = (n for n, one in enumerate(outcomes) if not isinstance(one, StorageError))
        assert (await view(on)).record.metadata == (("by", str(winner)),)

    given.run(scenario)


@pytest.mark.parametrize("name", list(ACTIONS))
def test_a_missing_container_is_not_found(name: str) -> None:
    """B-CON-11."""

    async def scenario() -> None:
        on = given.services()
        assert await given.refused(act(on, name)) == (404, "ContainerNotFound")

    given.run(scenario)


def test_metadata_and_acl_replace_and_change_the_etag_only_there() -> None:
    """B-MET-01, B-CON-08, B-ETG-04, B-CON-07."""

    async def scenario() -> None:
        on = given.services()
        made = await given.create(on)
        first = await act(on, "set metadata")
        second = await act(on, "set acl")
        assert made.etag < first.etag < second.etag
        record = (await view(on)).record
        assert (record.etag, record.modified) == (second.etag, second.modified)
        assert record.metadata == (("colour", "red"),)
        assert record.policies == (AccessPolicy("p", permission="r"),)
        assert record.public_access is PublicAccess.BLOB
        assert record.generation == made.etag
        await containers.set_acl(on, await given.placed(on, SetContainerAcl()))
        await containers.set_metadata(on, await given.placed(on, SetPlaceMetadata()))
        record = (await view(on)).record
        assert record.policies == () and record.metadata == ()
        assert record.public_access is PublicAccess.NONE

    given.run(scenario)


def test_delete_leaves_a_job_and_the_name_is_free_at_once() -> None:
    """B-CON-04, B-CON-05."""

    async def scenario() -> None:
        on = given.services()
        old = await given.create(on)
        await given.put_blob(on, old.etag, "kept.txt")
        old_call = await given.placed(on)
        await act(on, "delete")
        assert await on.place(Service.BLOB, given.ACCOUNT, "photos") is None
        (face,) = (await on.store.scan(keys.JOBS, START, None, 10)).faces()
        job = records.JOB.decode(face.value)
        assert (job.kind, job.generation) == (JobKind.SWEEP_CONTAINER, old.etag)
        assert on.work.is_set()
        new = await given.create(on)
        assert new.etag > old.etag
        assert await given.head_of(on, new.etag, "kept.txt") is None
        refusal = await given.refused(containers.get_container(on, old_call))
        assert refusal == (404, "ContainerNotFound")

    given.run(scenario)


def test_cut_off_inside_the_deletion_the_container_is_whole() -> None:
    async def scenario() -> None:
        on = given.services()
        await given.create(on)
        store = on.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(1)
        with pytest.raises(CommitUnknown):
            await act(on, "delete")
        after = given.services(store.restarted())
        assert (await view(after)).record.metadata == ()
        assert len((await after.store.scan(keys.JOBS, START, None, 10)).faces()) == 1

    given.run(scenario)


NOT_PRESENT = "LeaseNotPresentWithContainerOperation"
GUARDED = {
    # action: column of answers for (no id, A, B) in each state; B-LCO-01 to B-LCO-06
    "delete": {
        "available": ("", NOT_PRESENT, NOT_PRESENT),
        "leased": ("LeaseIdMissing", "", "LeaseIdMismatchWithContainerOperation"),
        "breaking": ("LeaseIdMissing", "", "LeaseIdMismatchWithContainerOperation"),
        "broken": ("", "LeaseLost", "LeaseLost"),
        "expired": ("", "LeaseLost", "LeaseLost"),
    },
    "other": {
        "available": ("", NOT_PRESENT, NOT_PRESENT),
        "leased": ("", "", "LeaseIdMismatchWithContainerOperation"),
        "breaking": ("", "", "LeaseIdMismatchWithContainerOperation"),
        "broken": ("", "LeaseLost", "LeaseLost"),
        "expired": ("", "LeaseLost", "LeaseLost"),
    },
}


@pytest.mark.parametrize("name", list(ACTIONS))
@pytest.mark.parametrize("state", ["available", "leased", "breaking", "broken", "expired"])
@pytest.mark.parametrize("which", [0, 1, 2], ids=["no id", "A", "B"])
def test_the_lease_guards_as_the_table_says(name: str, state: str, which: int) -> None:
    """B-LCO-01, B-LCO-02, B-LCO-03, B-LCO-04, B-LCO-05, B-LCO-06."""
    expected = GUARDED["delete" if name == "delete" else "other"][state][which]

    async def scenario() -> None:
        on = given.services()
        await given.create(on)
        await lease_as(on, state)
        before = await on.place(Service.BLOB, given.ACCOUNT, "photos")
        held = (await view(on)).record.lease
        attempt = act(on, name, lease_id=(None, A, B)[which])
        if not expected:
            await attempt
        else:
            assert await given.refused(attempt) == (412, expected)
            assert await on.place(Service.BLOB, given.ACCOUNT, "photos") == before
        if not expected and name.startswith("set"):
            # A write does not clear a container's lease: its id may still renew it.
            assert (await view(on)).record.lease == held

    given.run(scenario)


@pytest.mark.parametrize(
    ("name", "conditions", "expected"),
    [
        ("delete", "since now", (412, "ConditionNotMet")),
        ("delete", "unmodified since before", (412, "ConditionNotMet")),
        ("set acl", "since now", (412, "ConditionNotMet")),
        ("set acl", "unmodified since before", (412, "ConditionNotMet")),
        ("set metadata", "since now", (412, "ConditionNotMet")),
        ("set metadata", "unmodified since before", (400, "ConditionHeadersNotSupported")),
        ("set acl", "match", (400, "ConditionHeadersNotSupported")),
        ("get", "match", (400, "ConditionHeadersNotSupported")),
        ("get", "since now", (400, "ConditionHeadersNotSupported")),
        ("delete", "match", (400, "ConditionHeadersNotSupported")),
    ],
)
def test_conditions(name: str, conditions: str, expected: tuple[int, str]) -> None:
    """B-CWR-12, B-CWR-13."""

    async def scenario() -> None:
        on = given.services()
        made = await given.create(on)
        asked = {
            "since now": Conditions(if_modified_since=made.modified + TICKS_PER_S),
            "unmodified since before": Conditions(
                if_unmodified_since=made.modified - 10 * TICKS_PER_S
            ),
            "match": Conditions(if_match=(etag_text(made.etag),)),
        }[conditions]
        assert await given.refused(act(on, name, conditions=asked)) == expected
        assert (await view(on)).record.etag == made.etag

    given.run(scenario)


def test_dates_that_hold_let_through() -> None:
    async def scenario() -> None:
        on = given.services()
        made = await given.create(on)
        earlier = made.modified - 10 * TICKS_PER_S
        await act(on, "set metadata", conditions=Conditions(if_modified_since=earlier))
        await act(on, "delete", conditions=Conditions(if_unmodified_since=made.modified + 10**9))
        assert await on.place(Service.BLOB, given.ACCOUNT, "photos") is None

    given.run(scenario)


def test_a_changed_acl_is_asked_again_at_the_serial_point() -> None:
    """B-CON-10, B-SSA-07."""

    async def scenario() -> None:
        on = given.services()
        await given.create(on)
        seen: list[Place | None] = []

        def judge(place: Place | None) -> None:
            seen.append(place)
            raise StorageError(errors.AUTHENTICATION_FAILED)

        rule, input_, _ = ACTIONS["set metadata"]
        late = await given.placed(on, input_, rule=rule, authorize=judge)
        await act(on, "set acl")
        refusal = await given.refused(containers.set_metadata(on, late))
        assert refusal == (403, "AuthenticationFailed")
        assert seen[0] is not None and seen[0].public_access is PublicAccess.BLOB
        assert (await view(on)).record.metadata == ()

    given.run(scenario)


def test_a_read_waits_for_a_change_and_sees_it() -> None:
    """B-WAI-06, B-WAI-02."""

    async def scenario() -> None:
        on = given.services()
        made = await given.create(on)
        same = Conditions(if_none_match=(etag_text(made.etag),))
        waiter = asyncio.create_task(view(on, conditions=same, wait_s=30))
        await settle()
        assert not waiter.done()
        changed = await act(on, "set metadata")
        assert (await waiter).record.etag == changed.etag
        other = Conditions(if_none_match=('"0x1"',))
        assert (await view(on, conditions=other, wait_s=30)).record.etag == changed.etag

    given.run(scenario)


def test_a_wait_ends_as_304_and_a_deletion_ends_it_at_once() -> None:
    """B-WAI-04, B-WAI-06."""

    async def scenario() -> None:
        on = given.services()
        made = await given.create(on)
        same = Conditions(if_none_match=(etag_text(made.etag),))
        refusal = await given.refused(view(on, conditions=same, wait_s=1))
        assert refusal == (304, "ConditionNotMet")
        waiter = asyncio.create_task(given.refused(view(on, conditions=same, wait_s=30)))
        await settle()
        await act(on, "delete")
        assert await waiter == (404, "ContainerNotFound")

    given.run(scenario)


def test_a_holder_that_waits_hears_that_its_lease_is_gone() -> None:
    """B-WAI-05."""

    async def scenario() -> None:
        on = given.services()
        made = await given.create(on)
        await lease_as(on, "leased")
        same = Conditions(if_none_match=(etag_text(made.etag),))
        waiter = asyncio.create_task(
            given.refused(view(on, conditions=same, wait_s=30, lease_id=A))
        )
        await settle()
        assert not waiter.done()
        on.store.advance(20)
        assert await waiter == (412, "LeaseLost")

    given.run(scenario)
