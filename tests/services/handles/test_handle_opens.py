"""Handles on services in memory: opening by every disposition and option, bytes, closing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from strongroom.engines.base import Record, Ref, Unavailable
from strongroom.errors import file as file_errors
from strongroom.operations.file import share
from strongroom.semantics.file import accesses
from strongroom.semantics.file.accesses import Disposition, Use
from strongroom.semantics.file.attributes import FREEZE, THAW, Attribute, filetime
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import information, opening, transfers
from strongroom.services.file.handles.model import CreateAction, RequestedAttributes
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.shares.shares import CreateShare, SetShareProperties
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.handle_calls import ALL, FULL, R, W, WaitingRequest, mounted

NOT_FOUND = file_errors.STATUS_OBJECT_NAME_NOT_FOUND
COLLISION = file_errors.STATUS_OBJECT_NAME_COLLISION
DENIED = file_errors.STATUS_ACCESS_DENIED
INVALID = file_errors.STATUS_INVALID_PARAMETER
VIOLATION = file_errors.STATUS_SHARING_VIOLATION
PENDING = file_errors.STATUS_DELETE_PENDING


def test_a_share_is_found_in_any_case_and_only_if_it_is_there() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        access = await opening.connect_share(on, given.ACCOUNT, "Documents")
        assert access.share == file_calls.SHARE
        for name in ("none", "ipc$", "no such share"):
            found = await do.status(opening.connect_share(on, given.ACCOUNT, name))
            assert found == file_errors.STATUS_BAD_NETWORK_NAME

    given.run(scenario)


@pytest.mark.parametrize(
    ("disposition", "there", "absent"),
    [
        (Disposition.SUPERSEDE, CreateAction.SUPERSEDED, CreateAction.CREATED),
        (Disposition.OPEN, CreateAction.OPENED, NOT_FOUND),
        (Disposition.CREATE, COLLISION, CreateAction.CREATED),
        (Disposition.OPEN_IF, CreateAction.OPENED, CreateAction.CREATED),
        (Disposition.OVERWRITE, CreateAction.OVERWRITTEN, NOT_FOUND),
        (Disposition.OVERWRITE_IF, CreateAction.OVERWRITTEN, CreateAction.CREATED),
    ],
)
def test_each_disposition_by_what_is_there(
    disposition: Disposition, there: CreateAction | int, absent: CreateAction | int
) -> None:
    """[MS-SMB2] 2.2.13, smb.md 2.4."""

    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "There", b"text")
        ann = await mounted(on)
        for path, expected in (("there", there), ("absent", absent)):
            if isinstance(expected, CreateAction):
                opened = await ann.open(path, disposition=disposition)
                assert opened.action is expected
                is_kept = expected is CreateAction.OPENED
                assert opened.info.size_bytes == (4 if is_kept else 0)
                assert opened.info.path == (("There",) if path == "there" else ("absent",))
                await ann.close(opened.handle)
            else:
                assert await do.status(ann.open(path, disposition=disposition)) == expected
        is_emptied = isinstance(there, CreateAction) and there is not CreateAction.OPENED
        assert await file_calls.read(on, "there") == (b"" if is_emptied else b"text")
        assert do.nothing_is_left(on) and file_calls.problems(on) == []

    given.run(scenario)


def test_directories_and_files_are_opened_as_what_they_are() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.mkdir(on, "dir")
        await file_calls.create(on, "file")
        ann = await mounted(on)
        as_directory, as_file = {"must_be_directory": True}, {"must_be_file": True}
        for path, options, disposition, expected in (
            ("dir", as_file, Disposition.OPEN, file_errors.STATUS_FILE_IS_A_DIRECTORY),
            ("file", as_directory, Disposition.OPEN, file_errors.STATUS_NOT_A_DIRECTORY),
            ("file", as_directory, Disposition.CREATE, COLLISION),
            ("dir", as_directory, Disposition.OVERWRITE_IF, INVALID),
            ("dir", {}, Disposition.OVERWRITE_IF, COLLISION),
            ("", {}, Disposition.OVERWRITE_IF, DENIED),
            ("dir", {**as_directory, **as_file}, Disposition.OPEN, INVALID),
            ("none/file", {}, Disposition.CREATE, file_errors.STATUS_OBJECT_PATH_NOT_FOUND),
            ("file/file", {}, Disposition.CREATE, file_errors.STATUS_OBJECT_PATH_NOT_FOUND),
            ("x*y", {}, Disposition.OPEN, file_errors.STATUS_OBJECT_NAME_INVALID),
            ("a/../b", {}, Disposition.OPEN, file_errors.STATUS_OBJECT_PATH_SYNTAX_BAD),
        ):
            # Keywords of a table.
            opened = ann.open(path, disposition=disposition, **options)  # type: ignore[arg-type]
            assert await do.status(opened) == expected, (path, disposition)
        root = await ann.open("", **as_directory)  # type: ignore[arg-type]  # keywords of a table
        assert root.info.is_directory and root.info.path == ()
        inner = await ann.mkdir("dir/inner")
        assert (await ann.info(inner)).parent_id == (await ann.open("dir")).info.node_id
        assert (await ann.info(inner)).record.attributes == Attribute.DIRECTORY

    given.run(scenario)


def test_access_is_granted_as_it_was_asked_for() -> None:
    """smb.md 2.4: order of CREATE checks."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        made = await ann.create("f", access=accesses.WRITE_DATA, attributes=Attribute.READ_ONLY)
        await ann.write(made, 0, b"abc")
        await ann.close(made)
        everything = await ann.open("f", accesses.MAXIMUM_ALLOWED)
        writes = accesses.WRITE_DATA | accesses.APPEND_DATA
        assert everything.handle.mask == FULL & ~writes == everything.maximal_access
        for access, expected in (
            (0, DENIED),
            (accesses.WRITE_DATA, DENIED),
            (accesses.APPEND_DATA, DENIED),
            (0x0400_0000, DENIED),
            (accesses.ACCESS_SYSTEM_SECURITY, file_errors.STATUS_PRIVILEGE_NOT_HELD),
            (0x4000_0000, DENIED),
            (0x8000_0000, 0),
        ):
            assert await do.status(ann.open("f", access)) == expected, hex(access)
        for disposition in (Disposition.OVERWRITE, Disposition.SUPERSEDE):
            refused = ann.open("f", accesses.READ_DATA, disposition=disposition)
            assert await do.status(refused) == DENIED
        on_close = ann.open("f", accesses.DELETE, deletes_on_close=True)
        assert await do.status(on_close) == file_errors.STATUS_CANNOT_DELETE
        assert await do.status(ann.open("f", R, deletes_on_close=True)) == INVALID
        hidden = await ann.create("h", attributes=Attribute.HIDDEN)
        await ann.close(hidden)
        assert await do.status(ann.open("h", disposition=Disposition.OVERWRITE)) == DENIED
        again = await ann.open(
            "h", disposition=Disposition.OVERWRITE, attributes=int(Attribute.HIDDEN)
        )
        assert again.info.record.attributes == Attribute.HIDDEN | Attribute.ARCHIVE

    given.run(scenario)


def test_bytes_by_handle_are_those_over_rest() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        one = await ann.create("f")
        assert await do.status(ann.read(one)) == file_errors.STATUS_END_OF_FILE
        assert await ann.read(one, 0, 0) == b""
        await ann.write(one, 0, b"begin")
        await ann.write(one, 1 << 20, b"x" * 100_000)
        await ann.write(one, 3, b"")
        assert await file_calls.read(on, "f") == b"begin".ljust(1 << 20, b"\0") + b"x" * 100_000
        assert await ann.read(one, (1 << 20) - 2, 5) == b"\0\0xxx"
        assert await ann.read(one, 0, 8 << 20) == await file_calls.read(on, "f")
        found, is_all = await transfers.allocated_ranges(on, one, 0, 1 << 40, 10)
        assert is_all and [start for start, _ in found] == [0, 1 << 20]
        await transfers.zero_data(on, one, 0, 4, WaitingRequest())
        assert await ann.read(one, 0, 5) == b"\0\0\0\0n"
        await information.set_end_of_file(on, one, 5, WaitingRequest())
        await information.set_end_of_file(on, one, 7, WaitingRequest())
        assert await file_calls.read(on, "f") == b"\0\0\0\0n\0\0"
        info = await ann.info(one)
        assert (info.size_bytes, info.allocation_bytes) == (7, 4096)
        await information.set_allocation(on, one, 10_000, WaitingRequest())
        assert (await ann.info(one)).allocation_bytes == 12288
        await information.set_allocation(on, one, 2, WaitingRequest())
        closed = await ann.close(one, wants_attributes=True)
        assert closed is not None and closed.size_bytes == 2
        for refused in (ann.read(one), ann.write(one, 0, b"x"), ann.close(one), ann.info(one)):
            assert await do.status(refused) == file_errors.STATUS_FILE_CLOSED
        again = await ann.handle("f")
        assert (await ann.info(again)).allocation_bytes == 4096
        assert file_calls.problems(on) == []

    given.run(scenario)


def test_rights_are_asked_for_by_each_operation() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"text")
        ann = await mounted(on)
        reads = await ann.handle("f", accesses.READ_DATA)
        executes = await ann.handle("f", accesses.EXECUTE)
        appends = await ann.handle("f", accesses.APPEND_DATA)
        writes = await ann.handle("f", accesses.WRITE_DATA)
        assert await ann.read(reads) == await ann.read(executes) == b"text"
        for refused in (
            ann.write(reads, 0, b"x"),
            ann.read(appends),
            ann.write(appends, 3, b"x"),
            transfers.flush(on, reads, WaitingRequest()),
            information.set_end_of_file(on, appends, 1, WaitingRequest()),
            information.set_basic(on, reads, RequestedAttributes(attributes=2)),
            information.set_security(on, reads, lambda _: "O:BAG:BAD:", WaitingRequest()),
        ):
            assert await do.status(refused) == DENIED
        await ann.write(appends, 4, b"!")
        await ann.write(writes, 0, b"T")
        await transfers.flush(on, appends, WaitingRequest())
        assert await ann.read(reads) == b"Text!"
        root = await ann.handle("")
        assert await do.status(ann.read(root)) == file_errors.STATUS_INVALID_DEVICE_REQUEST
        assert await do.status(ann.write(writes, 1 << 43, b"x")) == file_errors.STATUS_DISK_FULL
        last = (1 << 44) - (1 << 16) - 1
        assert await do.status(ann.write(writes, last, b"x")) == file_errors.STATUS_DISK_FULL
        assert await do.status(ann.write(writes, last, b"xy")) == INVALID
        assert await do.status(ann.write(writes, last + 1, b"")) == 0
        assert await do.status(ann.write(writes, (1 << 63) - 1, b"x")) == INVALID

    given.run(scenario)


def test_what_handles_write_counts_for_the_quota_of_the_share() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        wanted = SetShareProperties(quota_gib=1)
        await file_calls.run(on, share.SET_SHARE_PROPERTIES, "", wanted)
        ann, gib = await mounted(on), 1 << 30
        one, other = await ann.create("f"), await ann.create("g", deletes_on_close=True)
        await information.set_end_of_file(on, other, gib - 10, WaitingRequest())
        await ann.write(one, 0, b"0123456789")
        for refused in (
            ann.write(one, 9, b"xx"),
            information.set_end_of_file(on, one, 11, WaitingRequest()),
            information.set_allocation(on, one, gib + 1, WaitingRequest()),
            ann.create("h", allocation_bytes=gib + 1),
        ):
            assert await do.status(refused) == file_errors.STATUS_DISK_FULL
        await ann.close(other)
        await ann.write(one, 9, b"xx")
        assert await ann.read(one) == b"012345678xx"
        assert await file_calls.run(on, share.GET_SHARE_STATS, "", None) == 11
        assert file_calls.problems(on) == []

    given.run(scenario)


def test_a_share_that_is_deleted_ends_what_its_handles_do() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        one = await ann.create("f", deletes_on_close=True)
        await file_calls.run(on, share.DELETE_SHARE, "", None)
        await file_calls.run(on, share.CREATE_SHARE, "", CreateShare())
        gone = file_errors.STATUS_NETWORK_NAME_DELETED
        for refused in (ann.write(one, 0, b"x"), ann.read(one), ann.info(one), ann.create("g")):
            assert await do.status(refused) == gone
        assert await do.status(ann.open("f")) == gone
        await ann.close(one)
        assert do.nothing_is_left(on) and await file_calls.names(on) == []

    given.run(scenario)


def test_times_stay_that_the_handle_has_frozen_or_set() -> None:
    """smb.md 3.8."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        one, other = await ann.create("f"), await ann.handle("f")
        made = (await ann.info(one)).record
        set_basic = information.set_basic
        await set_basic(on, one, RequestedAttributes(write=FREEZE))
        on.store.advance(1)
        await ann.write(one, 0, b"a")
        assert (await ann.info(one)).record.write == made.write
        await set_basic(on, one, RequestedAttributes(write=THAW))
        await ann.write(one, 0, b"b")
        assert (await ann.info(one)).record.write > made.write
        earlier = filetime(made.write) - 10_000_000
        await set_basic(
            on, one, RequestedAttributes(write=earlier, attributes=int(Attribute.HIDDEN))
        )
        await ann.write(one, 0, b"c")
        seen = (await ann.info(one)).record
        assert filetime(seen.write) == earlier and seen.attributes & Attribute.HIDDEN
        on.store.advance(1)
        await ann.write(other, 0, b"d")
        assert filetime((await ann.info(one)).record.write) > earlier
        await set_basic(on, one, RequestedAttributes(access=earlier, change=earlier))
        on.store.advance(1)
        await set_basic(on, one, RequestedAttributes(attributes=int(Attribute.ARCHIVE)))
        await ann.write(one, 0, b"e")
        seen = (await ann.info(one)).record
        assert (filetime(seen.access), filetime(seen.change)) == (earlier, earlier)
        assert (await ann.info(one)).record.creation == made.creation
        assert await do.status(set_basic(on, one, RequestedAttributes(access=-3))) == INVALID
        assert await do.status(set_basic(on, one, RequestedAttributes(attributes=0x10))) == INVALID

    given.run(scenario)


def test_security_descriptors_are_those_of_rest() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        text = "O:BAG:BAD:(A;;FA;;;BA)"
        one = await ann.create("f", permission=text)
        assert await information.security(on, one) == text
        other = "O:BAG:BAD:(A;;FR;;;BA)"
        await information.set_security(on, one, lambda _: other, WaitingRequest())
        assert await information.security(on, one) == other
        key = (await file_calls.look(on, "f")).record.permission
        assert key == (await ann.info(one)).record.permission
        refused = information.set_security(on, one, lambda _: "nonsense", WaitingRequest())
        assert await do.status(refused) == file_errors.STATUS_INVALID_SECURITY_DESCR

    given.run(scenario)


def test_a_scan_gives_each_unchanged_name_once_whatever_else_happens() -> None:
    """smb.md 2.8."""

    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.mkdir(on, "d")
        for number in range(40):
            await file_calls.create(on, f"d/{number:02}")
        ann = await mounted(on)
        one = await ann.handle("d")
        seen, is_first = await do.listed(on, one, room=5)
        assert seen == [".", "..", "00", "01", "02"] and is_first
        await file_calls.delete(on, "d/02")
        await file_calls.delete(on, "d/03")
        await file_calls.create(on, "d/011")
        await file_calls.create(on, "d/205")
        while True:
            more, is_first = await do.listed(on, one, "ignored", room=7)
            assert not is_first
            if not more:
                break
            seen += more
        expected = [f"{number:02}" for number in range(40) if number != 3]
        assert seen[2:] == sorted([*expected, "205"])
        again, _ = await do.listed(on, one, "3?", restarts=True)
        assert again == [f"{number}" for number in range(30, 40)]
        single, _ = await do.listed(on, one, "<", reopens=True, is_single=True)
        assert single == ["."]
        other = await ann.handle("d")
        assert await do.listed(on, other, "none") == ([], True)
        assert await do.listed(on, other, "*", restarts=True, room=1) == (["."], False)
        file = await ann.handle("d/01")
        assert await do.status(do.listed(on, file)) == INVALID

    given.run(scenario)


def test_share_modes_of_handles() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        one = await ann.create("f", access=accesses.READ_DATA, share=R)
        assert await do.status(bob.open("f", accesses.WRITE_DATA)) == VIOLATION
        assert await do.status(bob.open("f", accesses.READ_DATA, W)) == VIOLATION
        looks = await bob.handle("f", do.STAT, share=Use.NONE)
        reads = await bob.handle("f", accesses.READ_DATA, R)
        await ann.close(one)
        await bob.close(reads)
        writes = await ann.handle("f", accesses.WRITE_DATA, share=Use.NONE)
        assert await do.status(bob.open("f", accesses.READ_DATA, ALL)) == VIOLATION
        await ann.leave()
        assert writes.is_closed
        await bob.close(await bob.handle("f", accesses.READ_DATA, Use.NONE))
        await bob.close(looks)
        assert do.nothing_is_left(on)

    given.run(scenario)


def test_of_many_creators_at_once_one_has_the_file_to_itself() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        clients = [await mounted(on, f"c{number}") for number in range(8)]
        opens = [
            do.status(one.open("f", share=Use.NONE, disposition=Disposition.OPEN_IF))
            for one in clients
        ]
        found = await asyncio.gather(*opens)
        assert sorted(found) == [0, *[VIOLATION] * 7]
        more = [do.status(one.open("g", disposition=Disposition.CREATE)) for one in clients]
        assert sorted(await asyncio.gather(*more)) == [0, *[COLLISION] * 7]
        assert file_calls.problems(on) == []

    given.run(scenario)


def test_what_is_created_is_opened_by_nobody_else_before() -> None:
    """Its name can be found before the creator is registered: the result of its commit is late."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        committed, goes_on = asyncio.Event(), asyncio.Event()
        update = on.store.update

        async def late(*args: Any, **more: Any) -> Any:
            result = await update(*args, **more)
            committed.set()
            await goes_on.wait()
            return result

        on.store.update = late  # type: ignore[method-assign]  # a double
        creating = asyncio.ensure_future(ann.create("f", share=Use.NONE))
        await committed.wait()
        request = WaitingRequest()
        opening_it = asyncio.ensure_future(do.status(bob.open("f", request=request)))
        await request.has_waited.wait()
        goes_on.set()
        await creating
        assert await opening_it == VIOLATION

    given.run(scenario)


class Between:
    """Something happens after the n-th read of the store, before its result is used."""

    def __init__(self, on: Services, at: int, what: Callable[[], Awaitable[object]]) -> None:
        self.calls = 0
        self._at, self._what = at, what
        self._read, self._follow = on.store.read, on.store.follow
        on.store.read = self.read  # type: ignore[method-assign]  # a double
        on.store.follow = self.follow  # type: ignore[method-assign, assignment]  # a double

    async def read(self, reads: Sequence[Ref]) -> list[Record | None]:
        found = await self._read(reads)
        await self._happened()
        return found

    async def follow(self, *given: Any) -> list[tuple[Ref, Record | None]]:
        found = await self._follow(*given)
        await self._happened()
        return found

    async def _happened(self) -> None:
        self.calls += 1
        if self.calls == self._at:
            await self._what()


@pytest.mark.parametrize("at", range(1, 4))
def test_what_is_deleted_while_it_is_opened_is_opened_or_not_found(at: int) -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.create(on, "f")
        ann = await mounted(on)
        refused: list[bool] = []

        async def delete() -> None:
            refused.append(await do.status_over_rest(file_calls.delete(on, "f")) == 409)

        Between(on, at, delete)
        found = await do.status(ann.open("f"))
        assert found == (0 if refused[0] else NOT_FOUND)
        assert len(on.held.of(Opens).handles) == refused[0]

    given.run(scenario)


@pytest.mark.parametrize("disposition", [Disposition.OPEN, Disposition.OVERWRITE])
def test_an_open_that_fails_at_any_read_has_no_entry(disposition: Disposition) -> None:
    async def scenario() -> None:
        for at in range(1, 8):
            on = await file_calls.services()
            await file_calls.write(on, "f", b"text")
            ann = await mounted(on)

            async def fail() -> None:
                raise Unavailable("cut off")

            reads = Between(on, at, fail)
            try:
                await ann.open("f", disposition=disposition, deletes_on_close=True)
            except Unavailable:
                assert do.nothing_is_left(on), at
                assert await file_calls.names(on) == ["f"]
            else:
                assert reads.calls < at > 3
                return

    given.run(scenario)
