"""What an access checks again at the serial point: facts, leases, the file's length."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strongroom.operations.file import file, share
from strongroom.services.core.runner import Services
from strongroom.services.file.names.smb_properties import SmbProperties
from strongroom.services.file.node import reading as node_reading
from strongroom.services.file.opens.admission import enter
from strongroom.services.file.rest import files, nodes, ranges
from strongroom.services.file.rest.files import SetFileMetadata, SetFileProperties
from strongroom.services.file.shares.share_snapshots import SnapshotShare
from strongroom.store.core.extents import Draft
from tests.services import container_calls as given
from tests.services import file_calls as do

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
