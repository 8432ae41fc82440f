"""Every decision is run here, twice each time; conftest.py does so in all tests of the services."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.account_switches import Switches
from strongroom.auth.request import Service
from strongroom.clock import ManualClock
from strongroom.engines.base import Commit, EngineError, Key, Partition, Ref, Step, Write
from strongroom.errors.core import StorageError
from strongroom.limits import UNCOMMITTED_LIFETIME_S
from strongroom.operations.blob import blob
from strongroom.operations.file import share
from strongroom.semantics.table.entities import EntityChange
from strongroom.service_properties import ServiceProperties
from strongroom.services.blob import blobs
from strongroom.services.core import account
from strongroom.services.core.account import SetServiceProperties
from strongroom.services.core.decisions import UNDECODED, Decision, ReadOne, Reads
from strongroom.services.core.place_records import SetPlaceMetadata
from strongroom.services.core.runner import Services
from strongroom.services.file.names.permissions import CreatePermission
from strongroom.services.file.shares.shares import CreateShare
from strongroom.services.line_sweep import remove_ended_lines
from strongroom.services.queue import queues
from strongroom.services.queue.queues import SetQueueAcl
from strongroom.services.reset import reset
from strongroom.services.table import tables
from strongroom.services.table.tables import SetTableAcl
from strongroom.values import Purpose
from tests.services import (
    blob_calls,
    container_calls,
    file_calls,
    file_copy_calls,
    handle_calls,
    page_calls,
    queue_calls,
)
from tests.services.container_calls import call, run
from tests.services.containers import test_deleted_containers, test_immutability
from tests.services.core import test_reset
from tests.services.file import test_deleted_shares, test_file_renames, test_share_snapshots
from tests.services.gateway_histories import DEAD_S
from tests.services.gateways.test_two_gateways import pair
from tests.services.handles import test_handle_names
from tests.services.lines import HELD, Gateways, served
from tests.services.purity import (
    Impure,
    WatchedClock,
    check_handles,
    outside_of_decisions,
    twice,
)
from tests.services.service_engine import ServiceEngine
from tests.services.sweeps import drop_container
from tests.services.table import test_entities

PARTITION = Partition(b"x", b"y")


def kinds(kind: type[Decision[Any]]) -> set[type]:
    """Return all kinds of decisions. A base that does not decide is none."""
    below = kind.__subclasses__()
    own = [one for one in below if one.__module__.startswith("strongroom.")]
    return {one for one in own if one.decide is not Decision.decide}.union(*map(kinds, below))


async def everything() -> None:
    """Run operations that make decisions of all kinds."""
    on = container_calls.services()
    wanted = SetServiceProperties(ServiceProperties(default_service_version="2020-02-10"))
    await account.set_properties(on, call(wanted, container=""))
    await queue_calls.create(on)
    await queue_calls.put(on, "expires", ttl_s=5)
    await queue_calls.put(on, "x" * 50_000)
    (_, got) = await queue_calls.get(on, 2)
    await queue_calls.delete(on, await queue_calls.update(on, got, 5))
    await queues.set_acl(on, await queue_calls.placed(on, SetQueueAcl()))
    await queues.set_metadata(on, await queue_calls.placed(on, SetPlaceMetadata()))
    queue_calls.pass_time(on, 6)
    await queue_calls.sweep(on)
    await queue_calls.clear(on)
    await queue_calls.drop(on)
    await container_calls.create(on)
    await blob_calls.put(on, "a", b"x" * 10_000)
    await blob_calls.stage(on, "a", "00", b"x")
    queue_calls.pass_time(on, UNCOMMITTED_LIFETIME_S + 1)
    await queue_calls.sweep(on)
    await page_calls.create(on, "p", 512)
    await page_calls.write(on, "p", 0, b"x" * 512)
    ticks = await blob_calls.snapshot(on, "p")
    await page_calls.copy_incrementally(on, "p", ticks, "q")
    await queue_calls.sweep(on)
    await drop_container(on)
    with pytest.raises(StorageError):  # nothing was retained
        await test_deleted_containers.restore(on, 1)
    await test_entities.table(on)
    await test_entities.write(on, EntityChange.INSERT, A="1")
    await test_entities.write(on, EntityChange.MERGE, **test_entities.texts(["B", "C", "D"]))
    await test_entities.write(on, EntityChange.MERGE, E="5")
    await tables.set_acl(on, await test_entities.placed(on, SetTableAcl()))
    await tables.delete_table(on, await test_entities.placed(on))
    await queue_calls.sweep(on)
    await files(on)


async def files(on: Services) -> None:
    """Run operations on a share and its files."""
    await file_calls.run(on, share.CREATE_SHARE, "", CreateShare())
    await file_calls.run(on, share.SET_SHARE_METADATA, "", SetPlaceMetadata())
    await file_calls.run(on, share.CREATE_PERMISSION, "", CreatePermission("O:BAG:BA"))
    await test_file_renames.tree(on)
    await test_file_renames.move(on, "c/g", "a/g")
    await handles(on)
    await file_calls.delete(on, "a/g")
    await file_calls.write(on, "kept", b"x" * 20_000)
    taken = await test_share_snapshots.take(on)
    await file_calls.delete(on, "kept")
    await test_deleted_shares.swept(on)
    await test_share_snapshots.drop(on, taken.snapshot)
    test_deleted_shares.keep(on, 1)
    await test_deleted_shares.drop(on)
    await test_deleted_shares.swept(on, 2 * test_deleted_shares.DAY_S)


async def handles(on: Services) -> None:
    """Run operations of SMB on a handle."""
    ann = await handle_calls.mounted(on)
    opened = await ann.create("opened")
    await ann.write(opened, 0, b"x")
    await test_handle_names.rename(ann, opened, "renamed")
    await ann.dispose(opened)
    await ann.close(opened)


async def waited_in_line() -> None:
    """Wait for a lease at a gateway that dies, and at another one."""
    gateways, held = Gateways(), HELD["blob"]
    await held.make(gateways.all[0])
    got = await held.get(gateways.all[0], 0)
    lost = await gateways.arrive(held, 1)
    gateways.store(1).stop_heartbeats()
    gateways.store(0).advance(DEAD_S)
    with pytest.raises(EngineError):
        await lost
    await remove_ended_lines(gateways.all[0])
    await served([await gateways.arrive(held, 0)], held, gateways.all[0], got)


async def copied_file() -> None:
    """Copy a file."""
    on = await file_copy_calls.ready()
    await file_calls.write(on, "a", file_copy_calls.DATA)
    await file_copy_calls.copied(on, file_copy_calls.HERE + "file/a", "b")


async def reset_store() -> None:
    """Reset a store whose blobs may be protected."""
    on = test_reset.services(switches=Switches(immutability=True))
    await container_calls.create(on)
    await reset(on, test_reset.ALL)


async def protected_during_a_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Protect a blob while its container is being deleted."""
    on = await test_immutability.switched_on()

    async def protect() -> None:
        await blob_calls.run(
            on, blob.PUT_BLOB, "b", blobs.PutBlob(immutability=test_immutability.HELD), b"b"
        )

    await test_immutability.deletes_halfway(on, monkeypatch, protect)
    with pytest.raises(StorageError):
        await test_immutability.delete_container(on)


async def message_at_another_gateway() -> None:
    """Put a message at a gateway that has not counted any in its queue."""
    first, second = pair()
    await queue_calls.create(first)
    await queue_calls.put(second)


def test_every_kind_of_decision_decides_the_same_when_it_runs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: set[type] = set()

    def note(decide: Any) -> None:
        ran.add(type(decide.__self__))

    counting = twice(ServiceEngine.update, note)
    monkeypatch.setattr(ServiceEngine, "update", counting)
    run(everything)
    run(lambda: protected_during_a_deletion(monkeypatch))
    run(copied_file)
    run(message_at_another_gateway)
    run(waited_in_line)
    run(reset_store)
    assert kinds(Decision) - ran == set()


def test_one_that_counts_is_found_out() -> None:
    seen: list[int] = []

    def count(found: object, stamp: int) -> Commit[int]:
        seen.append(stamp)
        return Commit(len(seen))

    assert _is_found_out(count)


def test_one_that_writes_something_else_is_found_out() -> None:
    values = iter((b"1", b"2"))

    def write(found: object, stamp: int) -> Commit[None]:
        key = Key(False, b"z")
        return Commit(None, (Step(PARTITION, (Write(key, next(values)),)),))

    assert _is_found_out(write)


def test_one_that_refuses_only_once_is_found_out() -> None:
    left = [ValueError("once")]

    def refuse(found: object, stamp: int) -> Commit[None]:
        if left:
            raise left.pop()
        return Commit(None)

    assert _is_found_out(refuse)


def test_one_that_reads_the_clock_or_the_accounts_is_found_out() -> None:
    clock = WatchedClock()
    assert _is_found_out(lambda found, stamp: Commit(clock.wall_ticks()))
    assert _is_found_out(lambda found, stamp: Commit(clock.random_bytes(1)))
    assert _is_found_out(lambda found, stamp: outside_of_decisions("accounts"))


def _is_found_out(decide: Any) -> bool:
    async def test() -> None:
        await ServiceEngine(ManualClock()).update(PARTITION, [], decide)

    try:
        run(test)
    except Impure:
        return True
    return False


def test_a_request_is_judged_by_what_was_true_before_its_decision() -> None:
    """This holds even if its queue has changed since it was authorized."""
    judged: list[object] = []

    async def test() -> None:
        on = container_calls.services()
        await queue_calls.create(on)
        late = await queue_calls.placed(on, SetPlaceMetadata(), authorize=judged.append)
        await queues.set_acl(on, await queue_calls.placed(on, SetQueueAcl()))
        await queues.set_metadata(on, late)
        place = await on.place(Service.QUEUE, container_calls.ACCOUNT, queue_calls.QUEUE)
        assert place is not None and judged

    run(test)


class Misled(Decision[None], frozen=True):
    named: ReadOne[bytes]


def test_a_read_of_other_reads_is_noticed() -> None:
    ours, others = Reads(), Reads()
    first, second = (Ref(PARTITION, Key(False, name)) for name in (b"a", b"b"))
    ours.add(first, UNDECODED)
    stray = others.add(second, UNDECODED)
    with pytest.raises(Impure, match="named"):
        check_handles(Misled(PARTITION, ours.refs, Purpose.GROWTH, stray).run)
    own = ours.add(second, UNDECODED)
    check_handles(Misled(PARTITION, ours.refs, Purpose.GROWTH, own).run)
