"""Copies to files on services: the content and properties copied, and sources that fail."""

from __future__ import annotations

import pytest

from strongroom.operations.blob import blob
from strongroom.operations.blob import copy as blob_copy
from strongroom.operations.file import file, share
from strongroom.semantics.core.copies import CopyStatus
from strongroom.services.blob.blobs import PutBlob
from strongroom.services.blob.copies.copying import CopyBlob
from strongroom.services.core.copies.sources import (
    CopySources,
    OpenSource,
)
from strongroom.services.file.shares.shares import SetShareProperties
from strongroom.values import ContentProperties
from tests.services import blob_calls
from tests.services import file_calls as do
from tests.services.container_calls import refused, run
from tests.services.file.test_share_snapshots import drop, take
from tests.services.file.test_share_usage import usage
from tests.services.file_copy_calls import (
    DATA,
    ELSEWHERE,
    HERE,
    MIB,
    Elsewhere,
    begin,
    copied,
    done,
    ready,
    resized,
)


def test_a_file_is_copied_with_its_properties_and_its_holes() -> None:
    """F-CPY-01, F-CPY-02."""

    async def scenario() -> None:
        on = await ready()
        size_bytes = 40 * MIB
        given = {"metadata": (("of", "ann"),), "properties": ContentProperties("text/css")}
        await do.create(on, "a", size_bytes, given=given)
        await do.put(on, "a", 5, DATA)
        await do.put(on, "a", 30 * MIB, DATA)
        begun = await begin(on, HERE + "file/a", "b")
        assert begun.copy.status is CopyStatus.PENDING and begun.record.size_bytes == 0
        await done(on)
        found = (await do.look(on, "b")).record
        assert found.copy is not None and found.copy.status is CopyStatus.SUCCESS
        assert found.copy.copied_bytes == found.copy.total_bytes == size_bytes
        assert (found.metadata, found.properties.content_type) == ((("of", "ann"),), "text/css")
        assert await do.read(on, "b") == await do.read(on, "a")
        assert await do.ranges(on, "b") == await do.ranges(on, "a")
        assert do.problems(on) == []

    run(scenario)


def test_a_copy_replaces_what_a_file_had() -> None:
    """F-CPY-03."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA[:100])
        await do.write(on, "b", DATA)
        before = await do.look(on, "b")
        found = await copied(on, HERE + "file/a", "b")
        assert (found.size_bytes, await do.read(on, "b")) == (100, DATA[:100])
        assert found.creation == before.record.creation
        assert (await do.look(on, "b")).where.id == before.where.id
        await do.run(on, file.SET_FILE_PROPERTIES, "b", resized(30_000))
        assert (await do.read(on, "b"))[100:] == bytes(29_900), "nothing of what it had comes back"
        assert do.problems(on) == []

    run(scenario)


def test_a_blob_becomes_a_file_and_a_file_a_blob() -> None:
    """F-CPY-01."""

    async def scenario() -> None:
        on = await ready()
        await blob_calls.run(
            on, blob.PUT_BLOB, "x", PutBlob(ContentProperties("text/css"), (("v", "1"),)), DATA
        )
        found = await copied(on, HERE + "blob/x", "b")
        assert (found.metadata, found.properties.content_type) == ((("v", "1"),), "text/css")
        assert await do.read(on, "b") == DATA
        given = CopyBlob(HERE + "file/b")
        await blob_calls.run(on, blob_copy.COPY_BLOB, "y", given)
        await done(on)
        assert await blob_calls.read(on, "y") == DATA
        assert do.problems(on) == []

    run(scenario)


@pytest.mark.parametrize("size_bytes", [None, 9 * MIB + 1])
def test_a_source_elsewhere_is_copied_in_pieces(size_bytes: int | None) -> None:
    """F-CPY-01."""

    async def scenario() -> None:
        on = await ready()
        data = DATA[:1000] + bytes(9 * MIB - 1000) + b"x"
        pieces: list[bytes | None] = [
            data[at : at + 700_000] for at in range(0, len(data), 700_000)
        ]
        Elsewhere(on, pieces, size_bytes)
        found = await copied(on, ELSEWHERE + "?sig=secret&sharesnapshot=1", "b")
        assert found.copy.source == ELSEWHERE + "?sharesnapshot=1"
        assert (found.size_bytes, found.properties.content_type) == (len(data), "text/plain")
        assert await do.read(on, "b") == data
        assert await do.ranges(on, "b") == [(0, 4 * MIB), (8 * MIB, 9 * MIB + 1)], (
            "zeros are a hole"
        )
        assert do.problems(on) == []

    run(scenario)


def test_a_source_that_breaks_twice_leaves_an_empty_file() -> None:
    """F-CPY-07."""

    async def scenario() -> None:
        on = await ready()
        elsewhere = Elsewhere(on, [DATA * 300, None], None)
        found = await copied(on, ELSEWHERE, "b")
        assert elsewhere.asked == 2, "the request's own, and one in the copy's turn"
        assert (found.copy.status, found.copy.description) == (
            CopyStatus.FAILED,
            "the wire was cut",
        )
        assert (found.size_bytes, await do.read(on, "b")) == (0, b"")
        await do.run(on, file.SET_FILE_PROPERTIES, "b", resized(100_000))
        assert await do.read(on, "b") == bytes(100_000)
        await done(on)
        assert do.problems(on) == []

    run(scenario)


def test_what_came_of_a_source_elsewhere_before_it_broke_is_not_mixed_with_the_next() -> None:
    """F-CPY-07."""

    async def scenario() -> None:
        on = await ready()
        elsewhere = Elsewhere(on, [b"x" * (8 * MIB), None], None)
        await begin(on, ELSEWHERE, "b")
        sources = on.held.of(CopySources)
        first = elsewhere.open

        async def second(url: str, wanted: object) -> OpenSource:
            elsewhere.pieces = [bytes(5 * MIB), b"y"]
            return await first(url, wanted)

        elsewhere.open = second  # type: ignore[method-assign]  # a double
        assert sources.remote is elsewhere
        await done(on)
        assert await do.read(on, "b") == bytes(5 * MIB) + b"y"
        assert do.problems(on) == []

    run(scenario)


def test_a_copy_reads_the_source_as_it_was_when_it_began() -> None:
    """F-CPY-02."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        await begin(on, HERE + "file/a", "b")
        await do.put(on, "a", 0, b"new")
        await do.delete(on, "a")
        await done(on)
        assert await do.read(on, "b") == DATA
        await done(on)
        assert do.problems(on) == []

    run(scenario)


def test_a_copy_onto_itself_keeps_the_bytes_and_is_complete_at_once() -> None:
    """F-CPY-08."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        made = await begin(on, HERE + "file/A", "a", metadata=(("k", "v"),))
        assert (made.copy.status, made.record.size_bytes) == (CopyStatus.SUCCESS, len(DATA))
        assert made.record.metadata == (("k", "v"),)
        assert await do.read(on, "a") == DATA
        assert not on.held.of(CopySources)._open
        assert await done(on) == 0, "there is no job"

    run(scenario)


def test_copies_count_towards_the_quota_of_the_share() -> None:
    """F-CPY-05, F-QUO-01."""

    async def scenario() -> None:
        on = await ready()
        await do.create(on, "a", 3 << 30)
        await copied(on, HERE + "file/a", "b")
        assert await usage(on) == 6 << 30
        await do.run(on, share.SET_SHARE_PROPERTIES, "", SetShareProperties(7))
        full = (403, "ShareSizeLimitReached")
        assert await refused(begin(on, HERE + "file/a", "c")) == full
        found = await copied(on, HERE + "file/a", "b")
        assert (found.copy.status, await usage(on)) == (CopyStatus.SUCCESS, 6 << 30)
        # The quota is used up while the copy is pending.
        await do.delete(on, "b")
        begun = await begin(on, HERE + "file/a", "b")
        await do.create(on, "d", 3 << 30)
        await done(on)
        found = (await do.look(on, "b")).record
        assert found.copy is not None and found.copy.id == begun.copy.id
        assert found.copy.description == "403 ShareSizeLimitReached"
        assert await usage(on) == 6 << 30
        assert do.problems(on) == []

    run(scenario)


def test_a_file_is_restored_from_a_snapshot_over_itself() -> None:
    """F-SNP-11."""

    async def scenario() -> None:
        on = await ready()
        await do.create(on, "a", 9 * MIB)
        for offset in range(0, 9 * MIB, MIB):
            await do.put(on, "a", offset, DATA)
        stamp = (await take(on)).snapshot
        await do.put(on, "a", MIB, bytes(range(1, 251)))
        await do.run(on, file.SET_FILE_PROPERTIES, "a", resized(2 * MIB))
        await copied(on, f"{HERE}file/a?{stamp}", "a")
        now = await do.read(on, "a")
        assert (len(now), now[:20_000], now[8 * MIB : 8 * MIB + 20_000]) == (9 * MIB, DATA, DATA)
        assert now[MIB : MIB + 20_000] == DATA
        assert do.problems(on) == []

    run(scenario)


def test_a_copy_goes_on_from_a_snapshot_that_is_deleted_meanwhile() -> None:
    """F-SNP-11, F-SNP-06."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        stamp = (await take(on)).snapshot
        await do.delete(on, "a")
        await begin(on, f"{HERE}file/a?{stamp}", "b")
        await drop(on, stamp)
        await done(on)
        assert await do.read(on, "b") == DATA
        assert do.problems(on) == []

    run(scenario)


def test_a_copy_whose_snapshot_is_gone_when_it_is_opened_again_fails() -> None:
    """F-SNP-11, F-CPY-07."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        stamp = (await take(on)).snapshot
        await begin(on, f"{HERE}file/a?{stamp}", "b")
        for gateway in getattr(on, "both", (on,)):
            await gateway.held.of(CopySources).close()
        await drop(on, stamp)
        await done(on)
        ended = (await do.look(on, "b")).record.copy
        assert ended is not None and ended.status is CopyStatus.FAILED
        assert ended.description == "404 CannotVerifyCopySource"

    run(scenario)
