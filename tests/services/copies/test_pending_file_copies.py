"""Pending copies to files: the requests that they refuse, their end, and concurrent work."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

import msgspec
import pytest

from strongroom.account_switches import Switches
from strongroom.engines.base import Unavailable
from strongroom.errors.core import StorageError
from strongroom.operations.blob import copy as blob_copy
from strongroom.operations.file import copy, file, rename, share
from strongroom.semantics.core.copies import CopyStatus
from strongroom.semantics.file.accesses import READ_DATA, Use
from strongroom.services.blob.copies.copying import CopyBlob
from strongroom.services.core.copies import opening
from strongroom.services.core.copies.sources import CopySources, LocalSource, SourceRequest
from strongroom.services.core.runner import Services
from strongroom.services.core.soft_deleted_places import RestorePlace, generation_version
from strongroom.services.file.copies import copying, jobs
from strongroom.services.file.copies.copying import AbortCopyFile
from strongroom.services.file.copies.reading import OpenFile, OtherGateways, open_here
from strongroom.services.file.node import access
from strongroom.services.file.rest.files import SetFileMetadata
from strongroom.services.file.rest.renaming import RenameNode, RenameSource
from tests.services import blob_calls
from tests.services import file_calls as do
from tests.services.container_calls import ACCOUNT, refused, run
from tests.services.file_copy_calls import (
    DATA,
    ELSEWHERE,
    HERE,
    MIB,
    Elsewhere,
    begin,
    done,
    ready,
    resized,
)
from tests.services.handle_calls import mounted
from tests.services.service_engine import ServiceEngine


@pytest.mark.parametrize(
    "what", ["create", "put", "metadata", "resize", "delete", "copy", "rename", "replace"]
)
def test_a_pending_copy_refuses_what_would_change_the_file(what: str) -> None:
    """F-CPY-04."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        await do.write(on, "b", DATA)
        await begin(on, HERE + "file/a", "b")
        assert await refused(attempt(on, what)) == (409, "PendingCopyOperation")
        await done(on)
        assert await do.read(on, "b") == DATA
        await attempt(on, what)

    run(scenario)


async def attempt(on: Services, what: str) -> None:
    """Make one change of the file `b`."""
    prefix = f"/{ACCOUNT}/{do.SHARE}/"
    if what == "create":
        await do.create(on, "b", 3)
    elif what == "put":
        await do.put(on, "b", 0, b"data")
    elif what == "metadata":
        await do.run(on, file.SET_FILE_METADATA, "b", SetFileMetadata(metadata=()))
    elif what == "resize":
        await do.run(on, file.SET_FILE_PROPERTIES, "b", resized(5))
    elif what == "delete":
        await do.delete(on, "b")
    elif what == "copy":
        await begin(on, HERE + "file/a", "b")
    elif what == "rename":
        moved = RenameNode(source=RenameSource("", prefix + "b", prefix + "c"))
        await do.run(on, rename.RENAME_FILE, "c", moved)
    else:
        await do.write(on, "other", b"1")
        moved = RenameNode(source=RenameSource("", prefix + "other", prefix + "b"), replaces=True)
        await do.run(on, rename.RENAME_FILE, "b", moved)


def test_an_aborted_copy_leaves_an_empty_file_and_moves_no_more() -> None:
    """F-CPY-06."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        await do.write(on, "b", DATA)
        begun = await begin(on, HERE + "file/a", "b", metadata=(("k", "v"),))

        async def abort(copy_id: str) -> None:
            await do.run(on, copy.ABORT_COPY_FILE, "b", AbortCopyFile(copy_id=copy_id))

        assert await refused(abort("another")) == (409, "CopyIdMismatch")
        await abort(begun.copy.id)
        assert await refused(abort(begun.copy.id)) == (409, "NoPendingCopyOperation")
        await done(on)
        found = (await do.look(on, "b")).record
        assert (found.size_bytes, found.metadata) == (0, (("k", "v"),))
        assert found.copy is not None and found.copy.status is CopyStatus.ABORTED
        assert found.copy.completed
        await do.run(on, file.SET_FILE_PROPERTIES, "b", resized(30_000))
        assert await do.read(on, "b") == bytes(30_000)
        await done(on)
        assert do.problems(on) == []
        assert not on.held.of(CopySources)._open, "its source was given up"

    run(scenario)


def test_a_copy_goes_on_after_a_restart_where_it_was() -> None:
    """F-CPY-05."""

    async def scenario() -> None:
        before = await ready()
        size_bytes = 13 * MIB
        await do.create(before, "a", size_bytes)
        for at in range(0, size_bytes, MIB):
            await do.put(before, "a", at, random.Random(at).randbytes(MIB))
        await begin(before, HERE + "file/a", "b")
        assert isinstance(before.store, ServiceEngine)
        on = Services(before.store.restarted(), before.clock)
        await done(on)
        assert await do.read(on, "b") == await do.read(on, "a")
        assert do.problems(on) == []

    run(scenario)


@pytest.mark.parametrize("begins", [MIB, 5 * MIB])
def test_a_copy_goes_on_where_it_was_when_its_source_has_come_to_be_elsewhere(
    begins: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was copied here ends where allocated bytes end, and a stream comes in other pieces."""

    async def scenario() -> None:
        on = await ready()
        await do.create(on, "a", 9 * MIB)
        for at in (begins, begins + 2 * MIB):
            await do.put(on, "a", at, DATA)
        await begin(on, HERE + "file/a", "b")
        put, puts = jobs._PendingFile._put, 0

        async def put_once(self: Any, offset: int, data: bytes) -> None:
            nonlocal puts
            puts += 1
            if puts == 2:
                raise Unavailable("this gateway stops")
            await put(self, offset, data)

        monkeypatch.setattr(jobs._PendingFile, "_put", put_once)
        await done(on)
        assert puts == 2
        for gateway in getattr(on, "both", (on,)):
            gateway.held.of(OtherGateways).open = partial(opened_elsewhere, on)
        await done(on)
        found = (await do.look(on, "b")).record
        assert found.copy is not None and found.copy.status is CopyStatus.SUCCESS
        assert await do.read(on, "b") == await do.read(on, "a")
        assert do.problems(on) == []

    run(scenario)


async def opened_elsewhere(on: Services, source: LocalSource, wanted: SourceRequest) -> OpenFile:
    """Open a file as another gateway does for this one: its bytes come as a stream."""
    opened = await open_here(on, source, wanted)
    assert opened.file is not None
    opened.file = msgspec.structs.replace(opened.file, is_elsewhere=True)
    return opened


@pytest.mark.parametrize("deed", ["changed", "deleted"])
def test_a_source_that_is_another_one_when_it_is_opened_again_fails_the_copy(deed: str) -> None:
    """F-CPY-07."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        await begin(on, HERE + "file/a", "b")
        for gateway in getattr(on, "both", (on,)):
            await gateway.held.of(CopySources).close()  # so that the source is opened again
        if deed == "changed":
            await do.put(on, "a", 0, b"new")
        else:
            await do.delete(on, "a")
        await done(on)
        found = (await do.look(on, "b")).record
        assert found.copy is not None and found.copy.status is CopyStatus.FAILED
        expected = {"changed": "412 SourceConditionNotMet", "deleted": "404 CannotVerifyCopySource"}
        assert found.copy.description == expected[deed]
        assert do.problems(on) == []

    run(scenario)


def test_a_copy_in_a_deleted_share_that_is_kept_ends_too() -> None:
    """F-CPY-05, F-RST-01."""

    async def scenario() -> None:
        on = await ready()
        on.switches = lambda account: Switches(share_retention_days=7)
        await do.write(on, "a", DATA)
        begun = await begin(on, HERE + "file/a", "b")
        generation = (await do.look(on, "a")).where.generation
        await do.run(on, share.DELETE_SHARE, "")
        await done(on)
        assert do.problems(on) == []
        version = generation_version(generation)
        await do.run(on, share.RESTORE_SHARE, "", RestorePlace(do.SHARE, version))
        found = (await do.look(on, "b")).record
        assert found.copy is not None and found.copy.id == begun.copy.id
        assert (found.copy.status, await do.read(on, "b")) == (CopyStatus.SUCCESS, DATA)
        assert do.problems(on) == []

    run(scenario)


def test_a_share_that_is_gone_takes_its_pending_copies_along() -> None:
    """F-CPY-05."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        await begin(on, HERE + "file/a", "b")
        await do.run(on, share.DELETE_SHARE, "")
        await done(on)
        await done(on)
        assert (do.stored(on), do.problems(on)) == ([], [])

    run(scenario)


def test_a_handle_changes_nothing_while_a_copy_is_pending() -> None:
    """F-CPY-04."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        await do.write(on, "b", DATA)
        ann = await mounted(on)
        before = await ann.handle("b")
        await begin(on, HERE + "file/a", "b")
        assert await refused(ann.write(before, 0, b"x")) == (409, "SharingViolation")
        assert await refused(ann.handle("b")) == (409, "SharingViolation")
        reader = await ann.handle("b", READ_DATA)
        assert (await ann.info(reader)).size_bytes == 0
        await done(on)
        assert await ann.read(reader) == DATA
        await ann.write(before, 0, b"x")
        await ann.leave()
        assert await do.read(on, "b") == b"x" + DATA[1:]

    run(scenario)


def test_a_file_that_is_open_for_one_alone_does_not_become_a_blob() -> None:
    """F-CPY-01: an error that prevents the read is reported as the source's own answer."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        ann = await mounted(on)
        await ann.handle("a", READ_DATA, Use.NONE)
        assert await refused(begin(on, HERE + "file/a", "b")) == (409, "SharingViolation")
        given = CopyBlob(HERE + "file/a")
        with pytest.raises(StorageError) as caught:
            await blob_calls.run(on, blob_copy.COPY_BLOB, "y", given)
        assert caught.value.row.code == "CannotVerifyCopySource"
        assert ("x-ms-copy-source-error-code", "SharingViolation") in caught.value.headers
        await ann.leave()

    run(scenario)


@pytest.mark.parametrize("source", ["a", "b"])
@pytest.mark.parametrize("is_before", [True, False])
def test_a_target_that_is_deleted_meanwhile_is_created(
    monkeypatch: pytest.MonkeyPatch, source: str, is_before: bool
) -> None:
    """F-CPY-03: whether it is deleted before the source is opened, or after that."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        await do.write(on, "b", DATA)
        look, open_named = access.look, opening.open_named
        deletions = 0

        async def look_late(*given: Any) -> Any:
            nonlocal deletions
            if is_before and not deletions:
                deletions += 1
                await do.delete(on, "b")
            return await look(*given)

        async def open_early(*given: Any) -> Any:
            nonlocal deletions
            opened = await open_named(*given)
            if not is_before:
                deletions += 1
                await do.delete(on, "b")
            return opened

        monkeypatch.setattr(copying, "look", look_late)
        monkeypatch.setattr(copying, "open_named", open_early)
        if source == "b" and is_before:
            expected = (404, "CannotVerifyCopySource")
            assert await refused(begin(on, HERE + "file/b", "b")) == expected
            return
        await begin(on, HERE + "file/" + source, "b")
        assert deletions == 1
        await done(on)
        assert await do.read(on, "b") == DATA
        assert do.problems(on) == []

    run(scenario)


def test_the_answer_waits_for_the_end_of_the_copy() -> None:
    """F-CPY-05."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        answer = asyncio.ensure_future(begin(on, HERE + "file/a", "b", wait_s=50.0))
        while not answer.done():
            await done(on)
            await asyncio.sleep(0)
        made = await answer
        assert (made.copy.status, made.record.size_bytes) == (CopyStatus.SUCCESS, len(DATA))
        Elsewhere(on, [DATA], None)
        endless = await begin(on, ELSEWHERE, "c", wait_s=50.0)
        assert endless.copy.status is CopyStatus.PENDING, "nobody knows how long it will take"

    run(scenario)
