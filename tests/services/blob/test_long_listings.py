"""Long listings of versions and of directories pause, so that other work can run in between."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import pytest

from strongroom.operations.file import share
from strongroom.semantics.file.accesses import Disposition
from strongroom.services.core.runner import Services
from strongroom.services.file.shares.share_snapshots import SnapshotShare
from strongroom.services.file.snapshots import past_states
from strongroom.store.core import keys
from tests.services import container_calls as given
from tests.services import file_calls, handle_calls
from tests.services import version_calls as ver
from tests.services.counted_turns import counted_turns

T = TypeVar("T")
FILES, VERSIONS = 400, 450
# The most rows that may be made between two pauses.
TOGETHER = 110


async def _turns_of(on: Services, work: Awaitable[T]) -> tuple[int, T]:
    """Return in how many turns of the loop this work is done, and its result."""
    async with counted_turns(on) as turns:
        result = await work
        return turns.number, result


async def _directory() -> Services:
    on = await file_calls.services()
    await file_calls.mkdir(on, "d")
    for number in range(FILES):
        await file_calls.create(on, f"d/{number:04}")
    return on


def test_a_listing_of_a_directory_over_smb_pauses() -> None:
    async def scenario() -> None:
        on = await _directory()
        ann = await handle_calls.mounted(on)
        handle = await ann.handle("d", disposition=Disposition.OPEN)
        turns, (names, _) = await _turns_of(on, handle_calls.listed(on, handle))
        assert names == [".", "..", *(f"{number:04}" for number in range(FILES))]
        assert turns >= FILES // TOGETHER
        # Names that do not match are looked at too.
        looked = handle_calls.listed(on, handle, "*x", restarts=True)
        turns, (names, _) = await _turns_of(on, looked)
        assert not names and turns >= FILES // TOGETHER

    given.run(scenario)


def test_a_listing_of_a_snapshot_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both reads of names: present ones, and those that were kept for the snapshot."""
    monkeypatch.setattr(past_states, "_PAGE_RECORDS", TOGETHER // 2)

    async def scenario() -> None:
        on = await _directory()
        at = (await file_calls.run(on, share.SNAPSHOT_SHARE, "", SnapshotShare())).snapshot
        for number in range(0, FILES, 2):
            await file_calls.delete(on, f"d/{number:04}")
        base, until = (b"", b"\xff" * 9)
        generation = (await file_calls.look_at_directory(on, "d")).where.generation
        found = past_states.names_at(
            on.store, keys.file_names(generation), (base, until), at, 2 * FILES
        )
        turns, items = await _turns_of(on, found)
        assert len(items) == FILES + 1  # the directory itself too
        assert turns >= FILES // TOGETHER

    given.run(scenario)


def test_a_listing_of_versions_pauses() -> None:
    """Within the versions of one blob too."""

    async def scenario() -> None:
        on, _ = await ver.versioned()
        for _ in range(VERSIONS):
            await ver.put(on, "one", b"x")
        turns, rows = await _turns_of(on, ver.listed(on, "versions"))
        assert len(rows) == VERSIONS
        assert turns >= VERSIONS // TOGETHER

    given.run(scenario)
