"""Share snapshots: their state, the guards of their deletion, and crashes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.account_switches import Switches
from strongroom.operations.file import file, share
from strongroom.services.core.leasing import AcquireLease, BreakLease
from strongroom.services.core.place_records import SetPlaceMetadata
from strongroom.services.core.runner import Services
from strongroom.services.core.soft_deleted_places import RestorePlace, generation_version
from strongroom.services.file.handles import renaming
from strongroom.services.file.handles.model import RequestedRename
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.rest.files import SetFileProperties
from strongroom.services.file.rest.ranges import ListRanges
from strongroom.services.file.rest.reading import GetFile
from strongroom.services.file.shares.list_shares import ListShares, SharePage
from strongroom.services.file.shares.share_snapshots import (
    SNAPSHOTS_MAX,
    DeletedSnapshots,
    DeleteShare,
    ShareSnapshotTaken,
    SnapshotShare,
)
from strongroom.services.file.shares.shares import CreateShare
from strongroom.services.file.snapshots import past_states
from strongroom.services.sweeper import Sweeper
from strongroom.store.core import keys
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services import handle_calls as smb
from tests.services.file.test_file_renames import move
from tests.services.queue_calls import overwrite
from tests.services.service_engine import ServiceEngine
from tests.services.share_model import held

KIB = 1024
MIB = 1024 * KIB
A = "aaaaaaaa-0000-0000-0000-000000000000"
LEASE = {one.name: one for one in share.OPERATIONS if one.name.startswith("Lease")}
GONE = (404, "ShareSnapshotNotFound")


async def take(on: Services, **more: Any) -> ShareSnapshotTaken:
    taken: ShareSnapshotTaken = await do.run(on, share.SNAPSHOT_SHARE, "", SnapshotShare(**more))
    return taken


async def drop(on: Services, snapshot: int | None = None, **more: Any) -> None:
    which = more.pop("which", None)
    await do.run(on, share.DELETE_SHARE, "", DeleteShare(which), snapshot=snapshot, **more)


async def listed(on: Services, **more: Any) -> list[tuple[str, int | None]]:
    found = list[tuple[str, int | None]]()
    wanted = ListShares(include=frozenset(("snapshots",)), **more)
    while True:
        page: SharePage = await do.run(on, share.LIST_SHARES, "", wanted)
        found += [(row.name, row.snapshot) for row in page.items]
        if page.marker is None:
            return found
        wanted = ListShares(include=wanted.include, start=page.marker, **more)


async def sweep(on: Services, seconds: float = 1) -> None:
    on.store.advance(seconds)
    await Sweeper(on).run_once()


def test_a_snapshot_shows_what_the_share_was() -> None:
    """F-SNP-01, F-SNP-03, F-SNP-06."""

    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "Reports")
        await do.write(on, "Reports/f", b"first " * 30_000)
        first = await take(on)
        before = await held(on)
        await do.put(on, "reports/f", 100, b"x" * 100_000)
        await do.create(on, "reports/new", 5)
        await move(on, "reports", "archive", whole=True)
        second = await take(on)
        between = await held(on)
        await do.delete(on, "archive/f")
        await do.create(on, "archive/F", 3)
        assert await held(on, first.snapshot) == before
        assert await held(on, second.snapshot) == between
        # The deletion of one leaves the data of the other.
        await drop(on, second.snapshot)
        await sweep(on)
        assert await held(on, first.snapshot) == before
        assert await given.refused(held(on, second.snapshot)) == GONE
        await drop(on, first.snapshot)
        await sweep(on)
        store = on.store
        assert isinstance(store, ServiceEngine)
        assert list(store.content_ids()) == [] and do.problems(on) == []

    given.run(scenario)


def test_a_root_of_which_nothing_was_set_is_shown_in_a_snapshot() -> None:
    """F-SNP-03."""

    async def scenario() -> None:
        on = await do.services()
        taken = await take(on)
        before = (await do.look_at_directory(on, "")).record
        await do.create(on, "f", 1)
        view = await do.run(on, "directory_get_properties", "", OnPath(), snapshot=taken.snapshot)
        assert view.record == before and await held(on, taken.snapshot) == {}

    given.run(scenario)


def test_a_snapshot_has_properties_of_its_own() -> None:
    """F-SNP-01, F-SNP-02."""

    async def scenario() -> None:
        on = await do.services()
        await do.run(on, share.SET_SHARE_METADATA, "", SetPlaceMetadata((("of", "ann"),)))
        before = (await do.run(on, share.GET_SHARE_PROPERTIES, "")).record
        plain = await take(on)
        named = await take(on, metadata=(("of", "bob"),))
        await do.run(on, share.SET_SHARE_METADATA, "", SetPlaceMetadata())

        async def seen(snapshot: int) -> Any:
            found = await do.run(on, share.GET_SHARE_PROPERTIES, "", snapshot=snapshot)
            return found.record

        assert (plain.etag, plain.modified) == (before.etag, before.modified)
        record = await seen(plain.snapshot)
        assert (record.metadata, record.etag) == ((("of", "ann"),), before.etag)
        record = await seen(named.snapshot)
        assert (record.metadata, record.etag) == ((("of", "bob"),), named.snapshot)
        assert named.etag == named.modified == named.snapshot
        assert await given.refused(seen(1)) == GONE
        assert await given.refused(held(on, 1)) == GONE

    given.run(scenario)


def test_no_share_has_more_than_two_hundred() -> None:
    """F-SNP-02, F-SNP-05."""

    async def scenario() -> None:
        on = await do.services()
        await do.create(on, "f", 1)
        taken = []
        for number in range(SNAPSHOTS_MAX):
            taken.append(await take(on))
            if number % 40 == 0:
                await do.put(on, "f", 0, bytes((number,)))
        assert await given.refused(take(on)) == (409, "ShareSnapshotCountExceeded")
        stamps = [one.snapshot for one in taken]
        assert await listed(on, max_results=7) == [(do.SHARE, None)] + [
            (do.SHARE, stamp) for stamp in stamps
        ]
        for stamp, data in ((stamps[0], 0), (stamps[1], 0), (stamps[41], 40), (stamps[-1], 160)):
            found = await held(on, stamp)
            assert found["f"].data == bytes((data if stamp != stamps[0] else 0,))
        await drop(on, stamps[100])
        await take(on)
        await drop(on, which=DeletedSnapshots.INCLUDE)
        await sweep(on)
        assert do.stored(on) == [] and do.problems(on) == [] and await listed(on) == []

    given.run(scenario)


def test_a_share_with_snapshots_is_deleted_with_them_only() -> None:
    """F-SNP-07, F-SNP-08."""

    async def scenario() -> None:
        on = await do.services()
        taken = await take(on)
        assert await given.refused(drop(on)) == (409, "ShareHasSnapshots")
        included = drop(on, taken.snapshot, which=DeletedSnapshots.INCLUDE)
        assert await given.refused(included) == (400, "InvalidQueryParameterValue")
        lease = AcquireLease(duration_s=-1, proposed_id=A)
        acquire = LEASE["Lease Share (acquire)"]
        await do.run(on, acquire, "", lease, snapshot=taken.snapshot)
        assert (await do.run(on, share.GET_SHARE_PROPERTIES, "")).record.lease is None
        assert await given.refused(drop(on, taken.snapshot)) == (412, "LeaseIdMissing")
        leased = drop(on, which=DeletedSnapshots.INCLUDE)
        assert await given.refused(leased) == (409, "DeleteShareWhenSnapshotLeased")
        assert await listed(on) == [(do.SHARE, None), (do.SHARE, taken.snapshot)]
        other = await take(on)
        await drop(on, other.snapshot)
        broken = LEASE["Lease Share (break)"]
        assert await given.refused(do.run(on, broken, "", BreakLease(None))) == (
            409,
            "LeaseNotPresentWithLeaseOperation",
        )
        await drop(on, which=DeletedSnapshots.INCLUDE_LEASED)
        await sweep(on)
        assert do.stored(on) == [] and do.problems(on) == []

    given.run(scenario)


def test_snapshots_of_a_kept_share_come_back_with_it() -> None:
    """F-SNP-09."""

    async def scenario() -> None:
        on = await do.services()
        on.switches = lambda account: Switches(share_retention_days=7)
        await do.write(on, "f", b"old " * 20_000)
        taken = await take(on)
        await do.delete(on, "f")
        generation = (await do.look_at_directory(on, "")).where.generation
        await drop(on, which=DeletedSnapshots.INCLUDE)
        await sweep(on)
        assert await listed(on) == [] and do.problems(on) == []
        await do.run(on, share.CREATE_SHARE, "", CreateShare())
        assert await listed(on) == [(do.SHARE, None)]
        assert await given.refused(held(on, taken.snapshot)) == GONE
        on.switches = lambda account: Switches()
        await drop(on)
        wanted = RestorePlace(do.SHARE, generation_version(generation))
        await do.run(on, share.RESTORE_SHARE, "", wanted)
        await sweep(on)
        assert await listed(on) == [(do.SHARE, None), (do.SHARE, taken.snapshot)]
        found = await held(on, taken.snapshot)
        assert found["f"].data == b"old " * 20_000 and await do.names(on) == []
        on.switches = lambda account: Switches(share_retention_days=1)
        await drop(on, which=DeletedSnapshots.INCLUDE)
        await sweep(on, 2 * 24 * 3600)
        assert do.stored(on) == [] and do.problems(on) == []
        store = on.store
        assert isinstance(store, ServiceEngine) and list(store.content_ids()) == []

    given.run(scenario)


def test_what_changed_since_a_snapshot() -> None:
    """F-SNP-10."""

    async def scenario() -> None:
        on = await do.services()
        await do.create(on, "f", 100 * KIB)
        await do.put(on, "f", 0, b"a" * (8 * KIB))
        first = await take(on)
        await do.put(on, "f", 4 * KIB, b"b" * KIB)
        await do.clear(on, "f", 0, KIB)
        second = await take(on)
        await do.put(on, "f", 90 * KIB, b"c" * KIB)

        async def changed(previous: int, snapshot: int | None = None) -> list[Any]:
            wanted = ListRanges(previous=previous)
            found = await do.run(on, file.LIST_RANGES, "f", wanted, snapshot=snapshot)
            return [tuple(one) for one in found.ranges]

        early = [(0, KIB, True), (4 * KIB, 5 * KIB, False)]
        assert await changed(first.snapshot, second.snapshot) == early
        late = (90 * KIB, 91 * KIB, False)
        assert await changed(first.snapshot) == [*early, late]
        assert await changed(second.snapshot) == [late]
        assert await changed(second.snapshot, second.snapshot) == []
        backwards = changed(second.snapshot, first.snapshot)
        assert await given.refused(backwards) == (400, "InvalidQueryParameterValue")
        assert await given.refused(changed(5)) == GONE
        await do.delete(on, "f")
        await do.create(on, "f", 1)
        assert await given.refused(changed(second.snapshot)) == (409, "FileGenerationMismatch")
        await do.create(on, "g", 1)
        wanted = do.run(on, file.LIST_RANGES, "g", ListRanges(previous=second.snapshot))
        assert await given.refused(wanted) == (409, "FileGenerationMismatch")

    given.run(scenario)


@pytest.mark.parametrize("follows_renames", [False, True])
def test_nothing_has_changed_since_a_snapshot(follows_renames: bool) -> None:
    """F-SNP-10. An incremental backup asks this of each file."""

    async def scenario() -> None:
        on = await do.services()
        await do.write(on, "f", b"text")
        taken = await take(on)
        wanted = ListRanges(previous=taken.snapshot, follows_renames=follows_renames, max_results=5)
        found = await do.run(on, file.LIST_RANGES, "f", wanted)
        assert (found.ranges, found.next_marker) == ((), "")
        never = ListRanges(previous=taken.snapshot + 1, follows_renames=follows_renames)
        assert await given.refused(do.run(on, file.LIST_RANGES, "f", never)) == GONE

    given.run(scenario)


def test_what_was_written_and_cleared_since_a_snapshot() -> None:
    """F-SNP-10."""

    async def scenario() -> None:
        on = await do.services()
        await do.create(on, "f", 2048)
        first = await take(on)
        await do.put(on, "f", 0, b"a" * 1536)
        await do.clear(on, "f", 512, 512)

        async def changed() -> list[Any]:
            wanted = ListRanges(previous=first.snapshot)
            found = await do.run(on, file.LIST_RANGES, "f", wanted)
            return [tuple(one) for one in found.ranges]

        expected = [(0, 512, False), (512, 1024, True), (1024, 1536, False)]
        assert await changed() == expected
        await sweep(on)
        assert await changed() == expected
        # A clear over more than one commit's leaves is applied by the sweep.
        large = 20 * MIB
        await do.run(on, file.SET_FILE_PROPERTIES, "f", SetFileProperties(size_bytes=large))
        await do.put(on, "f", large - 1024, b"b" * 1024)
        await do.clear(on, "f", 0, large)
        cleared = [(0, 1536, True), (large - 1024, large, True)]
        assert await changed() == cleared
        await sweep(on)
        assert await changed() == cleared and do.problems(on) == []
        await drop(on, first.snapshot)
        await sweep(on)
        (where,) = {ref.partition for ref in do.of_files(on) if ref.key == keys.FILE_KEY}
        assert [ref.key for ref in do.of_files(on) if ref.partition == where] == [keys.FILE_KEY]
        assert do.problems(on) == []

    given.run(scenario)


def test_a_reader_of_a_snapshot_gets_all_of_it_though_it_is_deleted() -> None:
    """F-SNP-06."""

    async def scenario() -> None:
        on = await do.services()
        text = b"a" * (256 * KIB)
        await do.write(on, "f", text)
        taken = await take(on)
        began = await do.run(on, file.GET_FILE, "f", GetFile(), snapshot=taken.snapshot)
        await do.put(on, "f", 0, b"b" * (128 * KIB))
        await do.delete(on, "f")
        await drop(on, taken.snapshot)
        await sweep(on)
        assert await do.drain(began) == text
        await sweep(on)
        assert [ref for ref in do.of_files(on) if ref.key.name != b"s"] == []
        assert do.problems(on) == []

    given.run(scenario)


def test_a_listing_of_a_snapshot_reads_on_past_long_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F-SNP-03: with pages of a few records each."""
    monkeypatch.setattr(past_states, "_PAGE_RECORDS", 4)

    async def scenario() -> None:
        on = await do.services()
        for number in range(30):
            await do.create(on, f"n{number:02}", number)
        stamps, wanted = list[int](), list[Any]()
        for number in range(3):
            stamps.append((await take(on)).snapshot)
            wanted.append(await held(on))
            for name in await do.names(on):
                if int(name[1:]) % 3 == number:
                    await do.delete(on, name)
                else:
                    await do.put(on, name, 0, b"x") if name != "n00" else None
        for stamp, before in zip(stamps, wanted, strict=True):
            assert await held(on, stamp, page_names=5) == before

    given.run(scenario)


def test_a_snapshot_taken_among_writers_is_one_state_of_each_file() -> None:
    """F-SNP-02, F-SNP-03: writes acknowledged before are in it, writes begun after are not."""

    async def scenario() -> None:
        on = await do.services()
        await do.create(on, "f", 64)
        done = 0

        async def write() -> None:
            nonlocal done
            for number in range(1, 30):
                await do.put(on, "f", 0, bytes((number,)) * 64)
                done = number

        writing = asyncio.create_task(write())
        seen = []
        while not writing.done():
            least = done
            stamp = (await take(on)).snapshot
            seen.append((stamp, least, done))
            await asyncio.sleep(0)
        await writing
        for stamp, least, most in seen:
            data = (await held(on, stamp))["f"].data
            assert data is not None and len(set(data)) == 1
            assert least <= data[0] <= most + 1

    given.run(scenario)


def test_damage_in_what_is_kept_is_found() -> None:
    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "d")
        await do.write(on, "d/f", b"x" * 100_000)
        made = await do.look(on, "d/f")
        await take(on)
        await do.delete(on, "d/f")
        await sweep(on)
        assert do.problems(on) == []
        store = on.store
        assert isinstance(store, ServiceEngine)
        past = [
            (ref, record)
            for ref, record in store.records()
            if ref.partition.keyspace[:1] in (b"a", b"f") and ref.key.name[:1] in b"pgh"
            if ref.partition.keyspace[:1] == b"f"
            or (ref.partition == made.where.partition and not ref.key.hidden)
        ]
        assert len(past) >= 2
        for ref, record in past:
            await overwrite(on, ref, None)
            assert do.problems(on) != [], ref
            await overwrite(on, ref, record.value)
        assert do.problems(on) == []

    given.run(scenario)


def test_what_smb_changes_is_kept_for_snapshots_too() -> None:
    """F-SNP-06: by handles that were open before it was taken, and after."""

    async def scenario() -> None:
        on = await do.services()
        mount = await smb.mounted(on)
        text = b"before " * 20_000
        await do.write(on, "f", text)
        await do.write(on, "g", b"other")
        opened = await mount.handle("f")
        taken = await take(on)
        before = await held(on)
        await mount.write(opened, 10, b"x" * 100_000)
        renamed = await mount.handle("g")
        await renaming.rename(on, renamed, RequestedRename(("h",)), smb.WaitingRequest())
        await mount.close(renamed)
        await mount.create("new")
        assert await held(on, taken.snapshot) == before
        second = await take(on)
        between = await held(on)
        await mount.dispose(opened)
        await mount.close(opened)
        await sweep(on)
        assert sorted(await do.names(on)) == ["h", "new"]
        assert await held(on, taken.snapshot) == before
        assert await held(on, second.snapshot) == between
        assert do.problems(on) == []

    given.run(scenario)
