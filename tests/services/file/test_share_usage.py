"""The share of a quota that files use, and the times of directories."""

from __future__ import annotations

import contextlib

import pytest

from strongroom.engines.base import CommitUnknown
from strongroom.operations.file import file, rename, share
from strongroom.services.core.runner import Services
from strongroom.services.file.rest.files import SetFileProperties
from strongroom.services.file.rest.renaming import RenameNode, RenameSource
from strongroom.services.file.shares.shares import SetShareProperties
from strongroom.store.core import share_keys
from tests.services import container_calls as given
from tests.services import file_calls as do
from tests.services.queue_calls import overwrite
from tests.services.service_engine import ServiceEngine


async def usage(on: Services) -> int:
    found: int = await do.run(on, share.GET_SHARE_STATS, "")
    return found


def test_the_usage_of_a_share_is_that_of_its_files() -> None:
    """F-SHR-11: after any creation, resize, replacement or removal of files."""

    async def scenario() -> None:
        on = await do.services()
        assert await usage(on) == 0
        await do.mkdir(on, "d")
        await do.create(on, "d/f", 1000)
        await do.create(on, "g", 24)
        assert await usage(on) == 1024
        await do.put(on, "g", 0, b"x" * 24)
        await do.run(on, file.SET_FILE_PROPERTIES, "g", SetFileProperties(size_bytes=30))
        assert await usage(on) == 1030
        await do.create(on, "g", 5)
        assert await usage(on) == 1005
        await do.run(on, file.SET_FILE_PROPERTIES, "g", SetFileProperties(size_bytes=0))
        await do.delete(on, "d/f")
        assert await usage(on) == 0
        await do.rmdir(on, "d")
        assert do.problems(on) == []
        # If the share's record misses it, the doctor finds it.
        await do.create(on, "h", 7)
        await overwrite(on, share_keys.share_usage((await do.look(on, "h")).where.generation), None)
        assert any("usage" in one for one in do.problems(on))

    given.run(scenario)


def test_a_quota_bounds_the_lengths_of_files() -> None:
    """F-QUO-01, F-QUO-02."""
    gib = 1 << 30
    full = (403, "ShareSizeLimitReached")

    async def scenario() -> None:
        on = await do.services()

        async def resize(path: str, size_bytes: int) -> None:
            asked = SetFileProperties(size_bytes=size_bytes)
            await do.run(on, file.SET_FILE_PROPERTIES, path, asked)

        async def quota(gib: int) -> None:
            await do.run(on, share.SET_SHARE_PROPERTIES, "", SetShareProperties(quota_gib=gib))

        await quota(1)
        assert await given.refused(do.create(on, "f", gib + 1)) == full
        assert await do.names(on) == []
        await do.create(on, "f", gib - 10)
        await do.create(on, "g", 10)
        assert await given.refused(do.create(on, "h", 1)) == full
        await do.create(on, "empty", 0)
        assert await given.refused(resize("g", 11)) == full
        assert await given.refused(do.create(on, "g", 11)) == full
        assert await do.read(on, "g") == bytes(10)
        await do.put(on, "g", 0, b"0123456789")
        await quota(2)
        await resize("g", gib)
        # A quota below the present usage is accepted; changes that make nothing larger still work.
        await quota(1)
        assert await given.refused(resize("g", gib + 1)) == full
        await do.put(on, "g", 0, b"x")
        await resize("g", gib - 1)
        assert await given.refused(do.create(on, "h", 1)) == full
        await do.delete(on, "f")
        await do.create(on, "h", 1)
        assert await usage(on) == gib
        assert do.problems(on) == []

    given.run(scenario)


@pytest.mark.parametrize("cut", range(4))
def test_cut_off_inside_a_resize_the_usage_is_that_of_what_is_counted(cut: int) -> None:
    """F-SHR-11, F-CRA-01: the next change of the length counts it again."""

    async def scenario() -> None:
        before = await do.services()
        await do.write(before, "f", b"x" * 100)
        store = before.store
        assert isinstance(store, ServiceEngine)
        store.cut_after_steps(cut)
        asked = SetFileProperties(size_bytes=50)
        with contextlib.suppress(CommitUnknown):
            await do.run(before, file.SET_FILE_PROPERTIES, "f", asked)
        on = Services(store.restarted(), before.clock)
        assert do.problems(on) == []
        assert await usage(on) in (50, 100)
        asked = SetFileProperties(size_bytes=70)
        await do.run(on, file.SET_FILE_PROPERTIES, "f", asked)
        assert await usage(on) == 70
        assert do.problems(on) == []

    given.run(scenario)


def test_a_directory_tells_when_names_below_it_came_and_went() -> None:
    """F-DIR-04: its times change, its ETag and Last-Modified do not."""

    async def scenario() -> None:
        on = await do.services()
        await do.mkdir(on, "d")
        await do.mkdir(on, "e")

        async def times(path: str) -> tuple[int, int, int]:
            record = (await do.look_at_directory(on, path)).record
            assert record.write == record.change == record.access
            return record.write, record.etag, record.modified

        first, *rest = await times("d")
        root = (await times(""))[0]
        made = await do.create(on, "d/f", 1)
        assert await times("d") == (made.record.etag, *rest)
        assert (await times(""))[0] == root
        await do.put(on, "d/f", 0, b"x")
        assert await times("d") == (made.record.etag, *rest)
        other = await times("e")
        moved = await do.run(
            on,
            rename.RENAME_FILE,
            "e/f",
            RenameNode(source=RenameSource("", f"/{do.SHARE}/d/f", f"/{do.SHARE}/e/f")),
        )
        assert (await times("d"))[0] == (await times("e"))[0] == moved.record.etag > other[0]
        await do.delete(on, "e/f")
        assert (await times("e"))[0] > moved.record.etag
        made = await do.mkdir(on, "e/sub")
        assert (await times("e"))[0] == made.record.etag
        await do.rmdir(on, "e/sub")
        assert (await times("e"))[0] > made.record.etag
        assert (await times("d"))[1:] == tuple(rest) and first < moved.record.etag

    given.run(scenario)
