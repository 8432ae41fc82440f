"""Copies to files on services: what they bring, what they forbid, and what becomes of cut ones."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from strongroom.account_switches import Switches
from strongroom.auth.request import Service
from strongroom.engines.memory import MemoryStore
from strongroom.errors import StorageError
from strongroom.operations.blob import blob
from strongroom.operations.blob import copy as blob_copy
from strongroom.operations.file import copy, file, rename, share
from strongroom.semantics.core.copies import CopyStatus
from strongroom.semantics.file.accesses import READ_DATA, Use
from strongroom.services.blob.blobs import PutBlob
from strongroom.services.blob.copies.copying import CopyBlob
from strongroom.services.copy_openers import OPENERS
from strongroom.services.core.copies.sources import (
    CopySources,
    LocalSource,
    OpenSource,
    SourceBroken,
)
from strongroom.services.core.kept_places import RestorePlace, generation_version
from strongroom.services.core.runner import Services
from strongroom.services.file import nodes
from strongroom.services.file.copies.copying import AbortCopyFile, CopyFile, FileCopied
from strongroom.services.file.files import SetFileMetadata, SetFileProperties
from strongroom.services.file.renaming import RenameNode, RenameSource
from strongroom.services.file.shares import SetShareProperties
from strongroom.values import ContentProperties
from tests.services import blob_calls
from tests.services import file_calls as do
from tests.services.alternating import sweeper_of
from tests.services.container_calls import ACCOUNT, create, refused, run
from tests.services.handle_calls import mounted
from tests.services.sweeps import swept
from tests.services.test_share_usage import usage

MIB = 1 << 20
HERE = "http://here/"
ELSEWHERE = "http://elsewhere/file"
DATA = random.Random(5).randbytes(20_000)


async def ready() -> Services:
    """Services with a share and a container, whose URLs are `http://here/SERVICE/NAME`."""
    on = await do.services()
    await create(on)

    async def locate(url: str, call: Any, wanted: Any) -> LocalSource | None:
        if not url.startswith(HERE):
            return None
        kind, _, name = url.removeprefix(HERE).partition("/")
        service = Service(kind)
        container = "photos" if service is Service.BLOB else do.SHARE
        place = await on.place(service, ACCOUNT, container)
        assert place is not None
        return LocalSource(ACCOUNT, container, place.generation, name, service=service)

    on.held.of(CopySources).locate = locate
    on.held.of(CopySources).openers = OPENERS
    return on


class Elsewhere:
    """Another server, whose source sends `pieces`, and breaks if one is None."""

    def __init__(self, on: Services, pieces: list[bytes | None], size_bytes: int | None) -> None:
        self.pieces = pieces
        self.size_bytes = size_bytes
        self.asked = 0
        on.held.of(CopySources).remote = self

    async def open(self, url: str, wanted: object) -> OpenSource:
        self.asked += 1
        return OpenSource(
            self.size_bytes, self._chunks(), lambda: None, ContentProperties("text/plain")
        )

    async def _chunks(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if piece is None:
                raise SourceBroken("the wire was cut")
            yield piece


async def begin(on: Services, source: str, path: str, **more: Any) -> FileCopied:
    """Copy File, which does not wait."""
    wanted = CopyFile(source=source, **more)
    begun: FileCopied = await do.run(on, copy.COPY_FILE, path, wanted)
    return begun


async def done(on: Services) -> int:
    """Every job is done; how many there were."""
    return await swept(on, sweeper_of(on))  # type: ignore[arg-type]


def resized(size_bytes: int) -> SetFileProperties:
    return SetFileProperties(size_bytes=size_bytes)


async def copied(on: Services, source: str, path: str, **more: Any) -> Any:
    """Copy File to its end; what the file is like then."""
    await begin(on, source, path, **more)
    await done(on)
    return (await do.look(on, path)).record


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

        elsewhere.open = second  # type: ignore[method-assign]
        assert sources.remote is elsewhere
        await done(on)
        assert await do.read(on, "b") == bytes(5 * MIB) + b"y"
        assert do.problems(on) == []

    run(scenario)


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
    """One change of the file `b`."""
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
        assert isinstance(before.store, MemoryStore)
        on = Services(before.store.restarted(), before.clock)
        await done(on)
        assert await do.read(on, "b") == await do.read(on, "a")
        assert do.problems(on) == []

    run(scenario)


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
        # The room goes while the copy is pending.
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
    """F-CPY-01: what keeps a copy from reading is told as the source's own answer."""

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
@pytest.mark.parametrize("look", [1, 2])
def test_a_target_that_is_deleted_meanwhile_is_created(
    monkeypatch: pytest.MonkeyPatch, source: str, look: int
) -> None:
    """F-CPY-03: whether it goes before the source is opened, or after that."""

    async def scenario() -> None:
        on = await ready()
        await do.write(on, "a", DATA)
        await do.write(on, "b", DATA)
        looks, real = 0, nodes.view

        async def view(services: Services, call: Any, *, is_directory: bool) -> Any:
            nonlocal looks
            looks += isinstance(call.input, CopyFile)
            if looks == look and isinstance(call.input, CopyFile):
                await do.delete(on, "b")
            return await real(services, call, is_directory=is_directory)

        monkeypatch.setattr(nodes, "view", view)
        if (source, look) == ("b", 1):
            expected = (404, "CannotVerifyCopySource")
            assert await refused(begin(on, HERE + "file/b", "b")) == expected
            return
        await begin(on, HERE + "file/" + source, "b")
        await done(on)
        assert await do.read(on, "b") == DATA
        assert do.problems(on) == []

    run(scenario)
