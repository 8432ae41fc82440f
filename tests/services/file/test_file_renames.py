"""Rename File and Rename Directory on services in memory: one commit, and the cases that it
refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strongroom.engines.base import CommitUnknown
from strongroom.operations.file import file, rename
from strongroom.services.core.leasing import AcquireLease
from strongroom.services.core.runner import Services
from strongroom.services.file.names.smb_properties import SmbProperties
from strongroom.services.file.rest.files import SetFileProperties
from strongroom.services.file.rest.nodes import NodeWritten
from strongroom.services.file.rest.renaming import RenameNode, RenameSource
from strongroom.services.sweeper import Sweeper
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services.service_engine import ServiceEngine

A, B = "aaaaaaaa-0000-0000-0000-000000000000", "bbbbbbbb-0000-0000-0000-000000000000"
READ_ONLY = SetFileProperties(smb=SmbProperties(attributes="ReadOnly"))


async def move(
    on: Services, old: str, new: str, *, whole: bool = False, **more: Any
) -> NodeWritten:
    base = f"/{given.ACCOUNT}/{do.SHARE}/"
    source = RenameSource(f"http://host{base}{old}", base + old, base + new)
    operation = rename.RENAME_DIRECTORY if whole else rename.RENAME_FILE
    moved: NodeWritten = await do.run(on, operation, new, RenameNode(source=source, **more))
    return moved


async def tree(on: Services) -> None:
    await do.mkdir(on, "a")
    await do.mkdir(on, "a/b")
    await do.mkdir(on, "c")
    await do.write(on, "a/b/f", b"text")
    await do.write(on, "c/g", b"other")


def test_a_file_keeps_its_bytes_under_its_new_name() -> None:
    """F-REN-01, F-REN-04."""

    async def scenario() -> None:
        on = await do.services()
        await tree(on)
        before = await do.look(on, "a/b/f")
        moved = await move(on, "a/b/f", "c/New", metadata=(("n", "1"),), content_type="text/css")
        after = await do.look(on, "c/new")
        assert (moved.where.id, moved.where.parent) == (before.where.id, after.where.parent)
        assert after.record.metadata == (("n", "1"),)
        assert after.record.properties.content_type == "text/css"
        assert after.record.etag > before.record.etag
        assert after.record.creation == before.record.creation
        assert await do.read(on, "C/NEW") == b"text"
        assert await do.names(on, "a/b") == [] and await do.names(on, "c") == ["g", "New"]
        await do.rmdir(on, "a/b")
        assert await given.refused(do.rmdir(on, "c")) == (409, "DirectoryNotEmpty")
        await move(on, "c/New", "c/NEW")
        assert await do.names(on, "c") == ["g", "NEW"]
        etag = (await do.look(on, "c/new")).record.etag
        await move(on, "c/NEW", "c/NEW")
        assert (await do.look(on, "c/new")).record.etag == etag
        assert do.problems(on) == []

    given.run(scenario)


def test_a_directory_takes_along_what_lies_below_it() -> None:
    """F-REN-02."""

    async def scenario() -> None:
        on = await do.services()
        await tree(on)
        await move(on, "a", "c/deep", whole=True)
        assert await do.read(on, "c/deep/b/f") == b"text"
        assert await do.names(on) == ["c"]
        for new, code in (
            ("c/deep/b/x", (409, "SharingViolation")),
            ("c/deep/x", (409, "SharingViolation")),
            ("missing/x", (404, "ParentNotFound")),
            ("c/g", (409, "ResourceAlreadyExists")),
        ):
            assert await given.refused(move(on, "c/deep", new, whole=True)) == code
        assert await given.refused(move(on, "", "x", whole=True)) == (
            409,
            "CannotDeleteFileOrDirectory",
        )
        assert await given.refused(move(on, "c/g", "x", whole=True)) == (404, "ResourceNotFound")
        assert await given.refused(move(on, "c/deep", "x")) == (404, "ResourceNotFound")
        assert await given.refused(move(on, "gone/f", "x")) == (404, "ResourceNotFound")
        assert do.problems(on) == []

    given.run(scenario)


def test_a_target_is_replaced_only_when_asked_for() -> None:
    """F-REN-03, F-REN-05."""

    async def scenario() -> None:
        on = await do.services()
        await tree(on)
        old, new = "a/b/f", "c/g"
        assert await given.refused(move(on, old, new)) == (409, "ResourceAlreadyExists")
        over = move(on, old, "c", replaces=True)
        assert await given.refused(over) == (409, "ResourceTypeMismatch")
        await do.run(on, file.SET_FILE_PROPERTIES, new, READ_ONLY)
        attempt = move(on, old, new, replaces=True)
        assert await given.refused(attempt) == (412, "ReadOnlyAttribute")
        acquire = file.OPERATIONS[10]
        assert acquire.name == "Lease File (acquire)"
        for path, lease_id in ((old, A), (new, B)):
            await do.run(on, acquire, path, AcquireLease(-1, lease_id))
        flags: dict[str, Any] = {"replaces": True, "ignores_read_only": True}
        refusals: tuple[tuple[dict[str, Any], str], ...] = (
            ({}, "LeaseIdMissing"),
            ({"source_lease_id": A}, "LeaseIdMissing"),
            ({"source_lease_id": B}, "LeaseIdMismatchWithFileOperation"),
        )
        for ids, code in refusals:
            assert await given.refused(move(on, old, new, **flags, **ids)) == (412, code)
        await move(on, old, new, **flags, source_lease_id=A, destination_lease_id=B)
        assert await do.read(on, new) == b"text"
        assert await do.names(on, "c") == ["g"] and await do.names(on, "a/b") == []
        assert do.problems(on) == []
        before = len(do.stored(on))
        on.store.advance(1)
        await Sweeper(on).run_once()
        assert len(do.stored(on)) < before and do.problems(on) == []

    given.run(scenario)


def test_the_source_is_in_the_same_share() -> None:
    """F-REN-06."""

    async def scenario() -> None:
        on = await do.services()
        await do.create(on, "f")
        for url in ("/account/other/f", "/account", "/elsewhere/documents/f", ""):
            source = RenameSource(url, url, f"/{given.ACCOUNT}/{do.SHARE}/x")
            attempt = do.run(on, rename.RENAME_FILE, "x", RenameNode(source=source))
            assert await given.refused(attempt) == (400, "InvalidHeaderValue"), url

    given.run(scenario)


def test_of_two_renames_to_one_name_one_succeeds() -> None:
    """F-REN-01."""

    async def scenario() -> None:
        on = await do.services()
        for number in range(8):
            await do.create(on, f"f{number}")
        outcomes = await asyncio.gather(
            *(move(on, f"f{number}", "target") for number in range(8)), return_exceptions=True
        )
        assert sum(isinstance(one, NodeWritten) for one in outcomes) == 1
        assert len(await do.names(on)) == 8 and do.problems(on) == []
        # Directories move into one another at once: one of the two renames must fail.
        for number in range(6):
            await do.mkdir(on, f"x{number}")
            await do.mkdir(on, f"y{number}")
            pair = await asyncio.gather(
                move(on, f"x{number}", f"y{number}/x", whole=True),
                move(on, f"y{number}", f"x{number}/y", whole=True),
                return_exceptions=True,
            )
            assert sum(isinstance(one, NodeWritten) for one in pair) == 1, pair
        assert do.problems(on) == []

    given.run(scenario)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_cut_off_inside_a_rename_one_name_leads_to_the_file(steps: int) -> None:
    """F-CRA-01, F-REN-03."""

    async def scenario() -> None:
        on = await do.services()
        await tree(on)
        store = on.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(steps)
        with pytest.raises(CommitUnknown):
            await move(on, "a/b/f", "c/g", replaces=True)
        after = given.services(store.restarted())
        is_moved = steps > 1
        assert await do.names(after, "a/b") == ([] if is_moved else ["f"])
        assert await do.read(after, "c/g") == (b"text" if is_moved else b"other")
        assert do.problems(after) == []
        after.store.advance(1)
        await Sweeper(after).run_once()
        assert await do.read(after, "c/g") == (b"text" if is_moved else b"other")
        assert do.problems(after) == []

    given.run(scenario)
