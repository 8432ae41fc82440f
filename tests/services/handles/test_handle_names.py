"""Handles on services in memory: dispositions and renames, by SMB and REST at once."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.errors import file as file_errors
from strongroom.semantics.file import accesses
from strongroom.semantics.file.accesses import Disposition, Use
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import renaming
from strongroom.services.file.handles.model import Handle, RequestedRename
from tests.services import container_calls as given
from tests.services import file_calls
from tests.services import handle_calls as do
from tests.services.file.test_file_renames import move
from tests.services.handle_calls import ALL, STAT, D, Mount, R, W, WaitingRequest, mounted

DENIED = file_errors.STATUS_ACCESS_DENIED
COLLISION = file_errors.STATUS_OBJECT_NAME_COLLISION
VIOLATION = file_errors.STATUS_SHARING_VIOLATION
PENDING = file_errors.STATUS_DELETE_PENDING


async def rename(mount: Mount, handle: Handle, path: str, *, replaces: bool = False) -> None:
    wanted = RequestedRename(do.parts(path), replaces)
    await renaming.rename(mount.on, handle, wanted, WaitingRequest())


def test_a_disposition_deletes_with_the_last_handle_and_can_be_taken_back() -> None:
    """smb.md 3.4."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        one, other = await ann.create("f"), await bob.handle("f")
        await ann.dispose(one)
        assert await do.status(bob.open("f")) == PENDING
        assert await given.refused(file_calls.read(on, "f")) == (409, "SMBDeletePending")
        assert await given.refused(file_calls.mkdir(on, "f")) == (409, "SMBDeletePending")
        await bob.dispose(other, delete=False)
        await bob.close(await bob.handle("f"))
        await ann.dispose(one)
        await ann.close(one)
        assert (await bob.info(other)).is_delete_pending
        await bob.write(other, 0, b"still open")
        await bob.close(other)
        assert await file_calls.names(on) == []
        looks = await ann.handle("f", STAT, disposition=Disposition.CREATE)
        assert await do.status(ann.dispose(looks)) == DENIED
        assert file_calls.problems(on) == []

    given.run(scenario)


def test_only_what_is_empty_and_not_read_only_is_disposed_of() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        folder = await ann.mkdir("d")
        inner = await ann.create("d/f", attributes=1)
        assert await do.status(ann.dispose(inner)) == file_errors.STATUS_CANNOT_DELETE
        assert await do.status(ann.dispose(folder)) == file_errors.STATUS_DIRECTORY_NOT_EMPTY
        root = await ann.handle("")
        assert await do.status(ann.dispose(root)) == file_errors.STATUS_CANNOT_DELETE
        empty = await ann.mkdir("e")
        await ann.dispose(empty)
        assert await do.status(ann.create("e/f")) == PENDING
        assert await given.refused(file_calls.create(on, "e/f")) == (409, "SMBDeletePending")
        assert await given.refused(file_calls.mkdir(on, "e/f")) == (409, "SMBDeletePending")
        looked = file_calls.look_at_directory(on, "e")
        assert await given.refused(looked) == (409, "SMBDeletePending")
        await ann.close(empty)
        assert await file_calls.names(on) == ["d"]

    given.run(scenario)


def test_a_rename_takes_its_handles_along() -> None:
    """smb.md 3.7."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann = await mounted(on)
        await ann.close(await ann.mkdir("d"))
        one, other = await ann.create("f"), await ann.handle("F")
        await ann.write(one, 0, b"text")
        await rename(ann, one, "D/New")
        for handle in (one, other):
            assert (await ann.info(handle)).path == ("d", "New")
        assert await file_calls.read(on, "d/new") == b"text"
        assert await file_calls.names(on) == ["d"]
        await rename(ann, other, "d/NEW")
        assert await file_calls.names(on, "d") == ["NEW"]
        await rename(ann, other, "d/NEW")
        moved = await move(on, "d/new", "g")
        assert (await ann.info(one)).path == ("g",)
        assert (await ann.info(one)).parent_id == moved.where.parent
        await ann.dispose(one)
        assert await do.status(rename(ann, other, "h")) == DENIED
        refused = move(on, "g", "h")
        assert await given.refused(refused) == (409, "SMBDeletePending")
        await ann.leave()
        assert await file_calls.names(on) == ["d"]
        assert do.nothing_is_left(on) and file_calls.problems(on) == []

    given.run(scenario)


def test_what_a_rename_by_handle_is_refused_for() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        for name in ("d", "d/e"):
            await ann.close(await ann.mkdir(name))
        one = await ann.create("f")
        await file_calls.write(on, "there", b"old")
        read_only = await ann.create("read-only", attributes=1)
        await ann.close(read_only)
        looks = await ann.handle("f", STAT)
        assert await do.status(rename(ann, looks, "g")) == DENIED
        for path, replaces, expected in (
            ("none/g", False, file_errors.STATUS_OBJECT_PATH_NOT_FOUND),
            ("there/g", False, file_errors.STATUS_OBJECT_PATH_NOT_FOUND),
            ("a:b", False, file_errors.STATUS_OBJECT_NAME_INVALID),
            ("@GMT-2026.01.01-00.00.00", False, file_errors.STATUS_MEDIA_WRITE_PROTECTED),
            ("@GMT-2026.01.01-00.00.00/g", True, file_errors.STATUS_MEDIA_WRITE_PROTECTED),
            ("", True, file_errors.STATUS_INVALID_PARAMETER),
            ("there", False, COLLISION),
            ("d", True, DENIED),
            ("read-only", True, DENIED),
        ):
            assert await do.status(rename(ann, one, path, replaces=replaces)) == expected, path
        held = await bob.handle("there", STAT)
        assert await do.status(rename(ann, one, "there", replaces=True)) == DENIED
        await bob.close(held)
        folder = await ann.handle("d")
        assert await do.status(rename(ann, one, "d/f")) == VIOLATION
        inner = await bob.handle("d/e", STAT)
        assert await do.status(rename(ann, folder, "x")) == DENIED
        assert await given.refused(move(on, "d", "x", whole=True)) == (409, "SharingViolation")
        await bob.close(inner)
        assert await do.status(rename(ann, folder, "d/e/x")) == VIOLATION
        await rename(ann, folder, "x")
        await rename(ann, one, "there", replaces=True)
        assert await file_calls.names(on) == ["read-only", "there", "x"]
        assert await file_calls.read(on, "there") == b""
        assert file_calls.problems(on) == []

    given.run(scenario)


def test_rest_replaces_no_file_that_a_handle_has_open() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "a", b"new")
        await file_calls.write(on, "b", b"old")
        ann = await mounted(on)
        one = await ann.handle("b", STAT)
        refused = move(on, "a", "b", replaces=True)
        assert await given.refused(refused) == (409, "SharingViolation")
        assert await given.refused(file_calls.delete(on, "b")) == (409, "SharingViolation")
        unshared = await ann.handle("a", accesses.READ_DATA, R | W)
        assert await given.refused(move(on, "a", "c")) == (409, "SharingViolation")
        await ann.close(unshared)
        await ann.close(one)
        await move(on, "a", "b", replaces=True)
        assert await file_calls.names(on) == ["b"]

    given.run(scenario)


async def racing(on: Services, seed: int) -> None:
    """Run renames of a directory, opens below it and deletions, in many orders."""
    ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
    await ann.close(await ann.mkdir("d"))
    await ann.close(await ann.create("d/f"))

    async def rename_it() -> None:
        for _ in range(seed % 7):
            await asyncio.sleep(0)
        await move(on, "d", "x", whole=True)

    async def open_it() -> Handle:
        for _ in range(seed // 7):
            await asyncio.sleep(0)
        return await bob.handle("d/f")

    renamed, opened = await asyncio.gather(
        do.status(rename_it()), open_it(), return_exceptions=True
    )
    if isinstance(opened, Handle):
        expected = ("d", "f") if renamed else ("x", "f")
        assert (await bob.info(opened)).path == expected
        found = await ann.handle("/".join(expected))
        assert found.node_id == opened.node_id
        await ann.close(found)
        await bob.close(opened)
    else:
        assert renamed == 0
    assert do.nothing_is_left(on)


@pytest.mark.parametrize("seed", range(0, 49, 3))
def test_a_handle_knows_its_path_however_renames_and_opens_meet(seed: int) -> None:
    async def scenario() -> None:
        await racing(await file_calls.services(), seed)

    given.run(scenario)


def test_a_name_is_free_once_what_had_it_was_deleted_on_close() -> None:
    async def scenario() -> None:
        on = await file_calls.services()
        await file_calls.write(on, "f", b"x")
        ann = await mounted(on)
        one = await ann.handle("f", accesses.DELETE, Use.NONE, deletes_on_close=True)
        await ann.close(one)
        made = await ann.handle("f", share=ALL, disposition=Disposition.CREATE)
        await ann.close(made)
        assert await file_calls.read(on, "f") == b""

    given.run(scenario)


@pytest.mark.parametrize(
    ("mask", "share", "passes"),
    [
        (accesses.WRITE_DATA, Use.NONE, False),
        (accesses.WRITE_DATA, R, False),
        (accesses.READ_DATA, R | D, False),
        (accesses.WRITE_DATA, R | W, True),
        (STAT, Use.NONE, True),
        (accesses.DELETE, ALL, False),
    ],
)
def test_a_rename_opens_the_new_parent_for_writing(mask: int, share: Use, passes: bool) -> None:
    """smb.md 3.7: the rename shares the directory with readers and writers, not with DELETE."""

    async def scenario() -> None:
        on = await file_calls.services()
        ann, bob = await mounted(on, "ann"), await mounted(on, "bob")
        await file_calls.mkdir(on, "d")
        parent = await bob.handle("d", mask, share)
        one = await ann.create("d/f")
        renamed = rename(ann, one, "d/g")
        assert await do.status(renamed) == (0 if passes else VIOLATION)
        await bob.close(parent)
        await rename(ann, one, "d/h")

    given.run(scenario)
