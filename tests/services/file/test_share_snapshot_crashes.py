"""A share's snapshots after a crash, and after crashed changes of data that they share."""

from __future__ import annotations

import contextlib

import pytest

from strongroom.engines.base import CommitUnknown
from strongroom.operations.file import file
from strongroom.services.core.runner import Services
from strongroom.services.file.rest.files import SetFileProperties
from strongroom.services.sweeper import Sweeper
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services.file.test_file_renames import move
from tests.services.file.test_share_snapshots import drop, listed, sweep, take
from tests.services.service_engine import ServiceEngine
from tests.services.share_model import held


@pytest.mark.parametrize("cut", range(3))
def test_cut_off_inside_taking_a_snapshot_it_is_there_or_not(cut: int) -> None:
    """F-CRA-01, F-SNP-02."""

    async def scenario() -> None:
        before = await do.services()
        await do.write(before, "f", b"text")
        store = before.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(cut)
        with contextlib.suppress(CommitUnknown):
            await take(before)
        on = Services(store.restarted(), before.clock)
        assert do.problems(on) == []
        rows = await listed(on)
        assert len(rows) == (2 if cut > 1 else 1)
        await do.put(on, "f", 0, b"next")
        for _, stamp in rows[1:]:
            assert (await held(on, stamp))["f"].data == b"text"

    given.run(scenario)


@pytest.mark.parametrize("cut", range(5))
@pytest.mark.parametrize("what", ["delete", "resize", "rename", "replace", "drop"])
def test_cut_off_inside_a_change_the_snapshot_is_whole(what: str, cut: int) -> None:
    """F-CRA-01, F-SNP-06: and the leftovers are swept."""

    async def change(on: Services, stamp: int) -> None:
        if what == "delete":
            await do.delete(on, "d/f")
        elif what == "resize":
            wanted = SetFileProperties(size_bytes=10)
            await do.run(on, file.SET_FILE_PROPERTIES, "d/f", wanted)
        elif what == "drop":
            await drop(on, stamp)
        else:
            await move(on, "d/f", "g" if what == "replace" else "e/f", replaces=what == "replace")

    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "d")
        await do.mkdir(on, "e")
        await do.write(on, "d/f", b"text " * 20_000)
        await do.write(on, "g", b"other " * 20_000)
        taken = await take(on)
        kept = await held(on)
        store = on.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(cut)
        with contextlib.suppress(CommitUnknown):
            await change(on, taken.snapshot)
        on = Services(store.restarted(), on.clock)
        assert do.problems(on) == []
        await sweep(on)
        assert do.problems(on) == []
        rows = await listed(on)
        for _, stamp in rows[1:]:
            assert stamp is not None and await held(on, stamp) == kept
            await drop(on, stamp)
        assert what == "drop" or len(rows) == 2
        await sweep(on)
        assert do.problems(on) == []
        left = 2 - (what in ("delete", "replace") and len(await do.names(on, "d")) == 0)
        # Only the memory engine lists its contents.
        contents = list(on.store.content_ids())  # type: ignore[attr-defined]
        assert len(contents) <= 4 * left

    given.run(scenario)


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_sweep_that_is_cut_off_is_finished_by_the_next(cut: int) -> None:
    """F-SNP-06."""

    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "d")
        await do.write(on, "d/f", b"text " * 20_000)
        kept = await take(on)
        before = await held(on)
        await do.put(on, "d/f", 0, b"x" * 70_000)
        taken = await take(on)
        await do.delete(on, "d/f")
        await do.rmdir(on, "d")
        await drop(on, taken.snapshot)
        store = on.store
        assert isinstance(store, ServiceEngine)
        store.advance(1)
        store.cut_after_steps(cut)
        with contextlib.suppress(CommitUnknown):
            await Sweeper(on).run_once()
        on = Services(store.restarted(), on.clock)
        assert do.problems(on) == []
        await sweep(on, 100)
        assert await held(on, kept.snapshot) == before
        await drop(on, kept.snapshot)
        await sweep(on)
        # Only the memory engine lists its contents.
        assert list(on.store.content_ids()) == []  # type: ignore[attr-defined]
        assert [ref for ref in do.of_files(on) if ref.key.name != b"s"] == []
        assert do.problems(on) == []

    given.run(scenario)
