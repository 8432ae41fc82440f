"""What an access checks again at the serial point: facts, leases, the file's length."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.operations.file import file, share
from strongroom.semantics.file.attributes import Touch
from strongroom.services.core.runner import Services
from strongroom.services.file.handles.operating import Touched
from strongroom.services.file.names.smb_properties import SmbProperties
from strongroom.services.file.node import changing, moving
from strongroom.services.file.node import reading as node_reading
from strongroom.services.file.node.access import by_handle
from strongroom.services.file.node.changing import (
    AdmittedAccess,
    BytesChange,
    Cleared,
    change_bytes,
)
from strongroom.services.file.opens.admission import enter
from strongroom.services.file.opens.open_handle import ShareAccess
from strongroom.services.file.rest import files, nodes, ranges, renaming
from strongroom.services.file.rest.files import SetFileMetadata, SetFileProperties
from strongroom.services.file.shares.share_snapshots import SnapshotShare
from strongroom.services.file.snapshots.past_sweep import sweep_bytes
from strongroom.store.core.extents import Draft
from strongroom.store.core.extents.model import CLEARS_MAX, WRITE_BYTES_MAX
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services.file.test_file_renames import move

READ_ONLY = SetFileProperties(smb=SmbProperties(attributes="ReadOnly"))
REFUSED = (412, "ReadOnlyAttribute")
KIB = 1024


async def set_metadata(on: Services) -> None:
    await do.run(on, file.SET_FILE_METADATA, "f", SetFileMetadata(metadata=(("a", "b"),)))


async def put(on: Services) -> None:
    await do.put(on, "f", 0, b"new")


async def resize(on: Services) -> None:
    await do.run(on, file.SET_FILE_PROPERTIES, "f", SetFileProperties(size_bytes=1))


async def delete(on: Services) -> None:
    await do.delete(on, "f")


@pytest.mark.parametrize(
    ("module", "attempt"),
    [(nodes, set_metadata), (ranges, put), (ranges, resize), (files, delete)],
    ids=["metadata", "put", "resize", "delete"],
)
def test_a_fact_that_changes_before_the_entry_is_seen(
    monkeypatch: pytest.MonkeyPatch, module: Any, attempt: Callable[[Services], Awaitable[None]]
) -> None:
    """The entry relies on what was read before it, so the decision checks that."""

    async def scenario() -> None:
        on = await do.services()
        await do.write(on, "f", b"old")
        is_changed = False

        async def enter_late(*values: Any, **more: Any) -> Any:
            nonlocal is_changed
            if not is_changed:
                is_changed = True
                await do.run(on, file.SET_FILE_PROPERTIES, "f", READ_ONLY)
            return await enter(*values, **more)

        monkeypatch.setattr(module, "enter", enter_late)
        assert await given.refused(attempt(on)) == REFUSED
        assert await do.read(on, "f") == b"old"

    given.run(scenario)


def test_a_reader_enters_again_when_a_fact_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        on = await do.services()
        await do.write(on, "f", b"old")
        entries = 0

        async def enter_late(*values: Any, **more: Any) -> Any:
            nonlocal entries
            entries += 1
            if entries == 1:
                await do.run(on, file.SET_FILE_PROPERTIES, "f", READ_ONLY)
            return await enter(*values, **more)

        monkeypatch.setattr(node_reading, "enter", enter_late)
        assert await do.read(on, "f") == b"old"
        assert entries == 2

    given.run(scenario)


def test_a_file_of_a_snapshot_has_no_lease() -> None:
    async def scenario() -> None:
        on = await do.services()
        await do.write(on, "f", b"old")
        taken = await do.run(on, share.SNAPSHOT_SHARE, "", SnapshotShare())
        lease_id = "aaaaaaaa-0000-0000-0000-000000000000"
        past = do.look(on, "f", snapshot=taken.snapshot, lease_id=lease_id)
        assert await given.refused(past) == (412, "LeaseNotPresentWithFileOperation")

    given.run(scenario)


def test_what_is_written_while_a_file_is_cut_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cut is prepared for the length that the file has; at another length, it is prepared
    again."""

    async def scenario() -> None:
        on = await do.services()
        await do.write(on, "f", b"x" * KIB)
        prepare, is_extended = Draft.prepare, False
        longer = SetFileProperties(size_bytes=KIB * 2)

        async def prepare_late(self: Draft, *values: Any) -> Any:
            nonlocal is_extended
            if not is_extended:
                is_extended = True
                await do.run(
                    on, file.SET_FILE_PROPERTIES, "f", SetFileProperties(size_bytes=KIB * 2)
                )
                await do.put(on, "f", KIB, b"y" * KIB)
            return await prepare(self, *values)

        monkeypatch.setattr(Draft, "prepare", prepare_late)
        await do.run(on, file.SET_FILE_PROPERTIES, "f", SetFileProperties(size_bytes=0))
        await do.run(on, file.SET_FILE_PROPERTIES, "f", longer)
        assert await do.read(on, "f") == bytes(KIB * 2)

    given.run(scenario)


async def many_clears(on: Services) -> int:
    """Leave as many long clears of a file as may be pending. Returns its length."""
    await do.create(on, "f", 1 << 40)
    size_bytes = 1 << 40
    for _ in range(CLEARS_MAX):
        size_bytes -= 2 * WRITE_BYTES_MAX
        await do.run(on, file.SET_FILE_PROPERTIES, "f", SetFileProperties(size_bytes=size_bytes))
    return size_bytes


def test_a_change_waits_until_sweeps_have_made_room() -> None:
    async def scenario() -> None:
        on = await do.services()
        size_bytes = await many_clears(on)
        await do.clear(on, "f", 0, 4 * WRITE_BYTES_MAX)
        assert (await do.look(on, "f")).record.size_bytes == size_bytes
        assert do.problems(on) == []

    given.run(scenario)


@pytest.mark.parametrize("is_patient", [False, True])
def test_a_change_waits_for_few_sweeps_unless_it_is_patient(
    monkeypatch: pytest.MonkeyPatch, is_patient: bool
) -> None:
    async def scenario() -> None:
        on = await do.services()
        await many_clears(on)
        seen = await do.look(on, "f")
        waits = 0

        async def sweep_late(*values: Any) -> bool:
            nonlocal waits
            waits += 1
            return waits < 30 or await sweep_bytes(*values)

        monkeypatch.setattr(changing, "sweep_bytes", sweep_late)
        access = by_handle(
            ShareAccess(given.ACCOUNT, do.SHARE, seen.where.generation), seen.where.id
        )
        edit = Touched(Touch.WRITE, frozenset())
        change = BytesChange(Cleared(0, 4 * WRITE_BYTES_MAX), edit, is_patient=is_patient)
        attempt = change_bytes(on, AdmittedAccess(access), change)
        if is_patient:
            await attempt
            assert waits == 30
        else:
            assert await given.refused(attempt) == (503, "ServerBusy")

    given.run(scenario)


def test_no_lease_is_named_for_a_name_that_is_free() -> None:
    async def scenario() -> None:
        on = await do.services()
        lease_id = "aaaaaaaa-0000-0000-0000-000000000000"
        expected = (412, "LeaseNotPresentWithFileOperation")
        assert await given.refused(do.create(on, "f", lease_id=lease_id)) == expected
        assert await do.names(on) == []

    given.run(scenario)


@pytest.mark.parametrize(
    ("new", "meanwhile", "expected"),
    [
        ("d/new", lambda on: do.write(on, "d/new", b"other"), (409, "ResourceAlreadyExists")),
        ("new", lambda on: move(on, "d", "e", whole=True), (404, "ResourceNotFound")),
    ],
    ids=["target", "source"],
)
def test_a_move_sees_a_path_that_changes_before_its_commit(
    monkeypatch: pytest.MonkeyPatch,
    new: str,
    meanwhile: Callable[[Services], Awaitable[Any]],
    expected: tuple[int, str],
) -> None:
    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "d")
        await do.write(on, "d/old", b"old")
        is_changed = False

        async def block_late(*values: Any) -> Any:
            nonlocal is_changed
            if not is_changed:
                is_changed = True
                await meanwhile(on)
            return await moving.block_opens(*values)

        monkeypatch.setattr(renaming, "block_opens", block_late)
        assert await given.refused(move(on, "d/old", new)) == expected
        assert do.problems(on) == []

    given.run(scenario)
