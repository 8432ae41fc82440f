"""Directories and files on services in memory: names, bytes, attributes, deletion, crashes."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.engines.base import CommitUnknown
from strongroom.operations.file import directory, file, share
from strongroom.semantics.core.listing import START, Position
from strongroom.semantics.file.attributes import Attribute
from strongroom.services.core.leasing import AcquireLease, BreakLease, ChangeLease, ReleaseLease
from strongroom.services.core.runner import Services
from strongroom.services.file.names.permissions import DEFAULT_KEY, GetPermission, PermissionGiven
from strongroom.services.file.names.smb_properties import SmbProperties
from strongroom.services.file.rest.files import SetFileMetadata, SetFileProperties
from strongroom.services.file.shares.share_snapshots import DeleteShare
from strongroom.services.file.shares.shares import CreateShare
from strongroom.services.sweeper import Sweeper
from strongroom.values import ByteRange
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services.queue_calls import overwrite
from tests.services.service_engine import ServiceEngine

KIB = 1024
A, B = "aaaaaaaa-0000-0000-0000-000000000000", "bbbbbbbb-0000-0000-0000-000000000000"
LEASE = {one.name: one for one in file.OPERATIONS if one.name.startswith("Lease")}


async def sweep(on: Services) -> None:
    on.store.advance(1)
    await Sweeper(on).run_once()


def test_names_lead_down_the_tree_in_any_case() -> None:
    """F-DIR-01, F-DIR-02, F-NAM-01."""

    async def scenario() -> None:
        on = await do.services()
        made = await do.mkdir(on, "Reports")
        inner = await do.mkdir(on, "reports/2026", metadata=(("of", "ann"),))
        assert made.where.parent == made.where.generation
        assert inner.where.parent == made.where.id
        seen = await do.look_at_directory(on, "REPORTS/2026")
        assert seen.where.id == inner.where.id and seen.record.metadata == (("of", "ann"),)
        assert await do.names(on) == ["Reports"]
        for path, code in (
            ("reports", (409, "ResourceAlreadyExists")),
            ("", (409, "ResourceAlreadyExists")),
            ("missing/x", (404, "ParentNotFound")),
        ):
            assert await given.refused(do.mkdir(on, path)) == code
        await do.create(on, "reports/file")
        assert await given.refused(do.mkdir(on, "reports/FILE")) == (409, "ResourceAlreadyExists")
        assert await given.refused(do.mkdir(on, "reports/file/x")) == (404, "ParentNotFound")
        assert await given.refused(do.create(on, "reports/2026")) == (409, "ResourceTypeMismatch")
        assert await given.refused(do.look(on, "reports/2026")) == (404, "ResourceNotFound")
        assert await given.refused(do.look_at_directory(on, "none")) == (404, "ResourceNotFound")
        assert do.problems(on) == []

    given.run(scenario)


def test_dots_at_the_end_of_a_name_count_only_when_asked() -> None:
    """F-NAM-02."""

    async def scenario() -> None:
        on = await do.services()
        await do.create(on, "plain...")
        assert await do.names(on) == ["plain"]
        await do.create(on, "plain.", given={"trailing_dots": True})
        assert await do.names(on) == ["plain", "plain."]
        assert await given.refused(do.create(on, "....")) == (400, "InvalidResourceName")

    given.run(scenario)


def test_bytes_of_any_alignment() -> None:
    """F-FIL-01, F-RNG-01, F-RNG-02, F-RNG-03, F-RNG-04, F-GET-01."""

    async def scenario() -> None:
        on = await do.services()
        size = 300 * KIB
        await do.create(on, "f", size)
        image = bytearray(size)
        assert await do.read(on, "f") == bytes(size)
        for offset, data in (
            (1, b"abc"),
            (65_530, b"x" * 20),
            (100_001, bytes(range(256)) * 300),
            (size - 3, b"end"),
        ):
            await do.put(on, "f", offset, data)
            image[offset : offset + len(data)] = data
        await do.clear(on, "f", 65_535, 70_001)
        image[65_535 : 65_535 + 70_001] = bytes(70_001)
        assert await do.read(on, "f") == bytes(image)
        assert await do.read(on, "f", ByteRange(65_530, 65_540)) == bytes(image[65_530:65_541])
        assert await do.read(on, "f", ByteRange(size - 5, size + 5)) == bytes(image[-5:])
        listed = await do.ranges(on, "f")
        assert listed[0] == (0, 512) and listed[-1][1] == size
        assert all(one % 512 == 0 for pair in listed for one in pair)
        assert await given.refused(do.put(on, "f", size - 1, b"ab")) == (416, "InvalidRange")
        assert await given.refused(do.clear(on, "f", size, 1)) == (416, "InvalidRange")
        past = do.begin(on, "f", ByteRange(size, None))
        assert await given.refused(past) == (416, "InvalidRange")
        await sweep(on)
        assert await do.read(on, "f") == bytes(image)
        assert do.problems(on) == []

    given.run(scenario)


def test_a_new_length_and_a_new_beginning_leave_zeros() -> None:
    """F-FIL-02, F-PRP-02."""

    async def scenario() -> None:
        on = await do.services()
        await do.write(on, "f", b"0123456789" * 20_000)
        set_size = file.SET_FILE_PROPERTIES
        await do.run(on, set_size, "f", SetFileProperties(size_bytes=5))
        await do.run(on, set_size, "f", SetFileProperties(size_bytes=20))
        assert await do.read(on, "f") == b"01234" + bytes(15)
        before = await do.look(on, "f")
        await do.create(on, "F", 8, given={"metadata": (("n", "1"),)})
        after = await do.look(on, "f")
        assert (after.where.id, after.record.creation) == (before.where.id, before.record.creation)
        assert after.record.metadata == (("n", "1"),)
        assert await do.read(on, "f") == bytes(8)
        assert await do.names(on) == ["f"]
        await sweep(on)
        assert do.problems(on) == []

    given.run(scenario)


def test_a_reader_sees_one_state_while_others_write_and_delete() -> None:
    """F-GET-02, F-DEL-01."""

    async def scenario() -> None:
        on = await do.services()
        text = b"a" * (256 * KIB)
        await do.write(on, "f", text)
        began = await do.begin(on, "f")
        await do.put(on, "f", 0, b"b" * (128 * KIB))
        await do.delete(on, "f")
        await sweep(on)
        assert await given.refused(do.look(on, "f")) == (404, "ResourceNotFound")
        assert await do.drain(began) == text
        await sweep(on)
        assert do.of_files(on) == [] and do.problems(on) == []

    given.run(scenario)


def test_of_many_creators_one_makes_the_file_and_all_writes_arrive() -> None:
    """F-FIL-01, F-RNG-01."""

    async def scenario() -> None:
        on = await do.services()
        made = await asyncio.gather(*(do.create(on, "f", 80) for _ in range(8)))
        assert len({one.where.id for one in made}) == 1
        await asyncio.gather(*(do.put(on, "f", 10 * n, b"%d" % n * 10) for n in range(8)))
        assert await do.read(on, "f") == b"".join(b"%d" % n * 10 for n in range(8))
        tries = await asyncio.gather(*(do.mkdir(on, "d") for _ in range(4)), return_exceptions=True)
        assert sum(isinstance(one, Exception) for one in tries) == 3
        assert do.problems(on) == []

    given.run(scenario)


def test_a_directory_goes_when_it_is_empty() -> None:
    """F-DIR-03, F-DEL-01."""

    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "d")
        await do.write(on, "d/f", b"text")
        assert await given.refused(do.rmdir(on, "d")) == (409, "DirectoryNotEmpty")
        assert await given.refused(do.rmdir(on, "")) == (409, "CannotDeleteFileOrDirectory")
        await do.delete(on, "d/f")
        assert await given.refused(do.delete(on, "d/f")) == (404, "ResourceNotFound")
        await do.rmdir(on, "D")
        assert await do.names(on) == []
        assert await given.refused(do.create(on, "d/f")) == (404, "ParentNotFound")
        await sweep(on)
        assert do.of_files(on) == [] and do.problems(on) == []

    given.run(scenario)


def test_a_child_and_the_deletion_of_its_parent_never_both_succeed() -> None:
    """F-DIR-03."""

    async def scenario() -> None:
        on = await do.services()
        for number in range(12):
            await do.mkdir(on, f"d{number}")
            outcomes = await asyncio.gather(
                *(do.create(on, f"d{number}/f"), do.rmdir(on, f"d{number}")),
                return_exceptions=True,
            )
            assert sum(isinstance(one, Exception) for one in outcomes) == 1, outcomes
        assert do.problems(on) == []

    given.run(scenario)


@pytest.mark.parametrize("steps", [1, 2])
def test_cut_off_inside_a_creation_no_name_leads_to_nothing(steps: int) -> None:
    """F-CRA-01."""

    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "d")
        store = on.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(steps)
        with pytest.raises(CommitUnknown):
            await do.create(on, "d/f", 10)
        after = given.services(store.restarted())
        assert await do.names(after, "d") == (["f"] if steps == 2 else [])
        assert do.problems(after) == []
        await do.write(after, "d/f", b"text")
        assert await do.read(after, "d/f") == b"text"
        assert do.problems(after) == []

    given.run(scenario)


@pytest.mark.parametrize("steps", [1, 2])
def test_cut_off_inside_a_deletion_a_job_removes_what_is_left(steps: int) -> None:
    """F-CRA-01."""

    async def scenario() -> None:
        on = await do.services()
        await do.write(on, "f", b"x" * 100_000)
        store = on.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(steps)
        with pytest.raises(CommitUnknown):
            await do.delete(on, "f")
        after = given.services(store.restarted())
        assert do.problems(after) == []
        is_there = steps == 1
        assert await do.names(after) == (["f"] if is_there else [])
        await sweep(after)
        if is_there:
            assert await do.read(after, "f") == b"x" * 100_000
        else:
            assert do.of_files(after) == []
        assert do.problems(after) == []

    given.run(scenario)


def test_a_deleted_share_is_swept_and_begins_anew() -> None:
    """F-SHR-09."""

    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "d")
        await do.write(on, "d/f", b"x" * 100_000)
        await do.run(on, share.DELETE_SHARE, "", DeleteShare())
        await do.run(on, share.CREATE_SHARE, "", CreateShare())
        assert await do.names(on) == []
        await do.write(on, "f", b"new")
        await sweep(on)
        assert do.problems(on) == []
        assert await do.read(on, "f") == b"new"
        assert len(do.of_files(on)) == 5  # a name, its node, its attributes, a leaf and its bytes

    given.run(scenario)


def test_pages_of_a_directory_hold_every_name_once() -> None:
    """F-LST-01, F-LST-02."""

    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "d")
        wanted = ["Alpha", "beta", "Bravo", "charlie", "delta", "Échelle"]
        for name in reversed(wanted):
            await do.create(on, f"d/{name}", len(name))
        await do.create(on, "elsewhere")
        assert await do.names(on, "d") == wanted
        assert await do.names(on, "d", prefix="b") == ["beta", "Bravo"]
        assert await do.names(on, "d", prefix="é") == ["Échelle"]
        found = list[str]()
        start: Position = START
        while True:
            one = await do.page(on, "d", max_results=2, start=start)
            found += [row.name.name for row in one.rows]
            if one.marker is None:
                break
            start = one.marker
        assert found == wanted
        assert [row.record.size_bytes for row in (await do.page(on, "d")).rows] == [
            *map(len, wanted)
        ]

    given.run(scenario)


def test_a_lease_guards_a_file() -> None:
    """F-LSF-01, F-LSF-02, F-LSF-03."""

    async def scenario() -> None:
        on = await do.services()
        await do.write(on, "f", b"text")
        acquire, change = LEASE["Lease File (acquire)"], LEASE["Lease File (change)"]
        release, break_ = LEASE["Lease File (release)"], LEASE["Lease File (break)"]
        absent = (412, "LeaseNotPresentWithFileOperation")
        assert await given.refused(do.put(on, "f", 0, b"x", lease_id=A)) == absent
        etag = (await do.look(on, "f")).record.etag
        leased = await do.run(on, acquire, "f", AcquireLease(-1, A))
        assert (leased.lease_id, leased.etag) == (A, etag)
        other = do.run(on, acquire, "f", AcquireLease(-1, B))
        assert await given.refused(other) == (409, "LeaseAlreadyPresent")
        for attempt in (
            lambda **more: do.put(on, "f", 0, b"x", **more),
            lambda **more: do.create(on, "f", 4, **more),
            lambda **more: do.run(on, file.SET_FILE_METADATA, "f", SetFileMetadata(), **more),
            lambda **more: do.run(on, file.SET_FILE_PROPERTIES, "f", SetFileProperties(), **more),
        ):
            assert await given.refused(attempt()) == (412, "LeaseIdMissing")
            mismatch = (412, "LeaseIdMismatchWithFileOperation")
            assert await given.refused(attempt(lease_id=B)) == mismatch
            await attempt(lease_id=A)
        assert (await do.look(on, "f")).record.lease is not None
        assert await given.refused(do.delete(on, "f")) == (412, "LeaseIdMissing")
        changed = await do.run(on, change, "f", ChangeLease(B), lease_id=A)
        assert changed.lease_id == B
        broken = await do.run(on, break_, "f", BreakLease())
        assert broken.time_s == 0
        await do.put(on, "f", 0, b"y")
        await do.run(on, release, "f", ReleaseLease(), lease_id=B)
        await do.delete(on, "f")

    given.run(scenario)


def test_a_read_only_file_is_left_alone_until_the_attribute_is_taken_away() -> None:
    """F-ATT-02."""

    async def scenario() -> None:
        on = await do.services()
        await do.write(on, "f", b"text")
        set_properties = file.SET_FILE_PROPERTIES

        async def set_to(text: str) -> None:
            smb = SmbProperties(attributes=text)
            await do.run(on, set_properties, "f", SetFileProperties(smb=smb))

        await set_to("ReadOnly | Archive")
        for attempt in (
            do.put(on, "f", 0, b"x"),
            do.create(on, "f"),
            do.delete(on, "f"),
            do.run(on, file.SET_FILE_METADATA, "f", SetFileMetadata()),
            do.run(on, set_properties, "f", SetFileProperties(size_bytes=1)),
        ):
            assert await given.refused(attempt) == (412, "ReadOnlyAttribute")
        assert await do.read(on, "f") == b"text"
        await set_to("None")
        await do.delete(on, "f")

    given.run(scenario)


def test_attributes_times_and_permissions() -> None:
    """F-ATT-01, F-ATT-03, F-PRM-01."""

    async def scenario() -> None:
        on = await do.services()
        made = await do.create(on, "f", 4)
        record = made.record
        assert record.attributes == Attribute.ARCHIVE and record.permission == DEFAULT_KEY
        assert record.creation == record.write == record.change == made.where.id
        early = "2001-02-03T04:05:06.7890000Z"
        smb = SmbProperties("Hidden", creation=early, last_write="preserve", change="now")
        changed = await do.run(on, file.SET_FILE_PROPERTIES, "f", SetFileProperties(smb=smb))
        assert changed.record.attributes == Attribute.HIDDEN
        assert changed.record.creation < record.creation and changed.record.write == record.write
        assert changed.record.change > record.change
        written = await do.put(on, "f", 0, b"x")
        assert written.record.write > record.write
        assert written.record.attributes == Attribute.HIDDEN | Attribute.ARCHIVE
        bad = SetFileProperties(smb=SmbProperties("Shiny"))
        refused = do.run(on, file.SET_FILE_PROPERTIES, "f", bad)
        assert await given.refused(refused) == (400, "InvalidHeaderValue")
        text = "O:SYG:SYD:(A;;FA;;;SY)"
        smb = SmbProperties(permission=PermissionGiven(text=text))
        changed = await do.run(on, file.SET_FILE_PROPERTIES, "f", SetFileProperties(smb=smb))
        key = changed.record.permission
        shown = await do.run(on, share.GET_PERMISSION, "", GetPermission(key))
        assert (shown.key, shown.text) == (key, text)
        again = {"smb": SmbProperties(permission=PermissionGiven(key=key))}
        assert (await do.mkdir(on, "d", **again)).record.permission == key
        unknown = {"smb": SmbProperties(permission=PermissionGiven(key="1*2"))}
        refusal = await given.refused(do.mkdir(on, "e", **unknown))
        assert refusal == (400, "FileInvalidPermissionKey")
        root = await do.look_at_directory(on, "")
        assert root.record.attributes == Attribute.DIRECTORY and root.where.parent == 0
        pairs = SetFileMetadata(metadata=(("a", "b"),))
        await do.run(on, directory.SET_DIRECTORY_METADATA, "", pairs)
        assert (await do.look_at_directory(on, "")).record.metadata == (("a", "b"),)
        assert do.problems(on) == []

    given.run(scenario)


def test_damage_is_found() -> None:
    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "d")
        await do.write(on, "d/f", b"x" * 100_000)
        store = on.store
        assert isinstance(store, ServiceEngine)
        whole = [(ref, record) for ref, record in store.records() if ref in do.of_files(on)]
        assert len(whole) > 6
        for ref, record in whole:
            await overwrite(on, ref, None)
            assert do.problems(on) != [], ref
            await overwrite(on, ref, record.value)
        assert do.problems(on) == []

    given.run(scenario)
