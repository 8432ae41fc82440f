"""Damage in the database file: no read returns a wrong record, and all other records are served."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from io import FileIO
from pathlib import Path

import apsw
import apsw.sqlite_extra
import pytest

from strongroom.clock import ManualClock
from strongroom.engines.base import (
    Commit,
    DataDamaged,
    EngineError,
    Position,
    Record,
    Ref,
    Step,
    Unavailable,
)
from strongroom.engines.embedded.records import bound_pages
from strongroom.engines.embedded.records.bound_pages import PAGE_BYTES
from strongroom.engines.embedded.records.checksummed_pages import (
    CHECKSUM_VFS,
)
from strongroom.engines.embedded.records.face_scan import ScanRequest
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.engines.embedded.store import EmbeddedEngine, EmbeddedOptions, open_store
from strongroom.engines.embedded.upkeep.check import Inspection, check
from strongroom.slices import run_to_completion
from strongroom.testing.contract.subject import (
    commit,
    content,
    face,
    hidden,
    increment,
    pieces,
    put,
    scan_all,
    value,
    writes,
)

_OPTIONS = EmbeddedOptions(ballast_bytes=4096, segment_bytes=64 * 1024, compact=False)
_HEADER_BYTES = 100


def _face(number: int) -> Ref:
    return face(b"", b"%04d" % number)


def _marker(number: int) -> bytes:
    return b"<marker %04d>" % number


async def _fill(path: Path, count: int) -> None:
    """Store records of 400 bytes, each with its number; a large hidden one; a few contents."""
    store = await open_store(path, ManualClock(), options=_OPTIONS)
    for number in range(count):
        await put(store, (_face(number), _marker(number) * 30))
    await put(store, (hidden(b"large"), bytes(range(256)) * 24))
    for number in range(3):
        written = await store.contents.write(pieces(b"%d" % number * 100), 100)
        await commit(store, Step(_face(0).partition, adopt=(written.id,)))
    await store.close()


def _flip(path: Path, offset: int, bit: int = 1) -> None:
    with path.open("r+b", buffering=0) as file:
        byte = os.pread(file.fileno(), 1, offset)[0]
        os.pwrite(file.fileno(), bytes([byte ^ bit]), offset)


def _flip_record(path: Path, number: int) -> None:
    data = (path / "records.sqlite").read_bytes()
    offset = data.find(_marker(number))
    assert offset > 0
    _flip(path / "records.sqlite", offset + 2)


def test_no_flipped_byte_makes_a_wrong_record(tmp_path: Path) -> None:
    """Flip each byte of every page but the first: reads of that page raise DataDamaged, and all
    others return the right records."""
    asyncio.run(_fill(tmp_path / "data", 12))
    path = tmp_path / "data" / "records.sqlite"
    with Inspection(tmp_path / "data") as inspection:
        ids = list(inspection.content_ids())
    reader = Reader(str(path), None, scanning=True)
    first = Position(b"", b"")
    ways: list[Callable[[], object]] = [
        lambda: reader.get(_face(7)),
        lambda: run_to_completion(
            reader.scan(ScanRequest(b"k", first, None, 100, 1 << 20))
        ).faces(),
        lambda: reader.get(hidden(b"large")),
        lambda: [reader.locate(one) for one in ids],
    ]
    right = [way() for way in ways]
    needed = 0
    with closing(reader), path.open("r+b", buffering=0) as file:
        for page in range(1, path.stat().st_size // PAGE_BYTES):
            readers = [way for way in ways if _is_damaged_by(file, page * PAGE_BYTES, reader, way)]
            needed += bool(readers)
            for offset in range(page * PAGE_BYTES, (page + 1) * PAGE_BYTES):
                assert all(_is_damaged_by(file, offset, reader, way) for way in readers), offset
            reader._connection.pragma("shrink_memory")
            assert [way() for way in ways] == right
    assert needed >= 4  # a leaf of each table, and an overflow page of the large record


def _is_damaged_by(file: FileIO, offset: int, reader: Reader, way: Callable[[], object]) -> bool:
    """Return whether a read detects a flipped bit at this offset."""
    byte = os.pread(file.fileno(), 1, offset)[0]
    os.pwrite(file.fileno(), bytes([byte ^ 1 << offset % 8]), offset)
    reader._connection.pragma("shrink_memory")  # else the page would not be read again
    try:
        way()
    except DataDamaged:
        return True
    finally:
        os.pwrite(file.fileno(), bytes([byte]), offset)
    return False


@pytest.mark.parametrize("bit", [1, 128])
def test_a_flipped_header_is_refused_or_harms_nothing(bit: int, tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "data", 12))
    path = tmp_path / "data" / "records.sqlite"

    async def opened() -> list[bytes | None]:
        store = await open_store(tmp_path / "data", ManualClock(), options=_OPTIONS)
        try:
            return [await value(store, _face(number)) for number in range(12)]
        finally:
            await store.close()

    right = [_marker(number) * 30 for number in range(12)]
    refused = 0
    whole = path.read_bytes()
    for offset in range(_HEADER_BYTES):
        _flip(path, offset, bit)
        try:
            assert asyncio.run(opened()) == right, offset
        except EngineError:
            refused += 1
        path.write_bytes(whole)
    assert refused > _HEADER_BYTES // 2


def test_others_are_served_and_the_damaged_one_is_named(tmp_path: Path) -> None:
    async def prove() -> None:
        await _fill(tmp_path / "data", 200)
        _flip_record(tmp_path / "data", 100)
        store = await open_store(tmp_path / "data", ManualClock(), options=_OPTIONS)
        name = r"b'k' b'0100' b''.*checksum"
        with pytest.raises(DataDamaged, match=name):
            await store.read([_face(100)])
        with pytest.raises(DataDamaged, match=name):
            await store.read([_face(5), _face(100)])
        with pytest.raises(DataDamaged, match=name):
            await store.read([_face(5), _face(100), _face(6)])
        with pytest.raises(DataDamaged, match="follows the record b'k'"):
            await scan_all(store, b"k", 1000)
        with pytest.raises(DataDamaged, match="follows the record b'k'"):
            await scan_all(store, b"k", 10)
        with pytest.raises(DataDamaged, match="b'0100'"):
            await store.read_range(_face(100).partition, False, b"", None, 10)
        await _others_are_served(store)
        await store.close()

    asyncio.run(prove())


async def _others_are_served(store: EmbeddedEngine) -> None:
    for number in (5, 190):
        assert await value(store, _face(number)) == _marker(number) * 30
    page = await store.scan(b"k", Position(b"0000", b""), Position(b"0010", b""), 100)
    assert len(page.faces()) == 10
    assert await value(store, hidden(b"large")) == bytes(range(256)) * 24


def test_a_write_that_needs_a_damaged_page_is_refused_and_the_others_happen(
    tmp_path: Path,
) -> None:
    async def prove() -> None:
        await _fill(tmp_path / "data", 200)
        _flip_record(tmp_path / "data", 100)
        store = await open_store(tmp_path / "data", ManualClock(), options=_OPTIONS)

        async def look(number: int) -> bool:
            """Read the record in a decision that leaves it unchanged."""

            def decide(records: Sequence[Record | None], stamp: int) -> Commit[bool]:
                return Commit(records[0] is not None)

            return await store.update(_face(number).partition, [_face(number)], decide)

        for _ in range(3):
            answers = await asyncio.gather(
                increment(store, face(b"", b"new")),
                look(100),
                put(store, (_face(5), b"five")),
                put(store, (face(b"next", b"0100"), b"beside the damage")),
                look(6),
                increment(store, face(b"", b"new")),
                return_exceptions=True,
            )
            assert [isinstance(one, DataDamaged) for one in answers] == [0, 1, 0, 1, 0, 0], answers
            assert "b'0100'" in str(answers[1])
            assert "b'0100'" in str(answers[3])
        assert await value(store, face(b"", b"new")) == b"6"
        assert await value(store, _face(5)) == b"five"
        assert await store.now() > 0
        await _others_still(store)
        await store.close()
        store = await open_store(tmp_path / "data", ManualClock(), options=_OPTIONS)
        assert await value(store, face(b"", b"new")) == b"6"
        await store.close()

    asyncio.run(prove())


async def _others_still(store: EmbeddedEngine) -> None:
    written = await store.contents.write(pieces(b"body"), 4)
    steps = (
        *writes((_face(190), b"%d" % written.id)),
        Step(_face(190).partition, (), (written.id,)),
    )
    await commit(store, *steps)
    assert await content(store, written.id) == b"body"


def test_the_check_ends_where_the_last_page_is_damaged(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "data", 100))
    _flip_record(tmp_path / "data", 99)
    with Inspection(tmp_path / "data") as inspection:
        walked = list(inspection.records())
    assert [ref for ref, _ in walked[:100]] == [_face(number) for number in range(100)]
    assert walked[0][1] is not None
    assert walked[99][1] is None
    assert len(walked) == 101


def test_the_check_names_each_damaged_record_and_walks_on(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "data", 200))
    assert list(check(tmp_path / "data")) == []
    for number in (30, 100, 101):
        _flip_record(tmp_path / "data", number)
    findings = [finding.problem for finding in check(tmp_path / "data")]
    assert any("checksum differs" in problem for problem in findings), findings
    with Inspection(tmp_path / "data") as inspection:
        walked = list(inspection.records())
    damaged = [ref for ref, record in walked if record is None]
    names = {ref.partition.name for ref in damaged}
    assert {b"0030", b"0100", b"0101"} <= names
    assert len(walked) == 201
    assert [ref for ref, _ in walked[:200]] == [_face(number) for number in range(200)]
    whole = {ref: record.value for ref, record in walked if record is not None}
    assert len(whole) == 201 - len(damaged)
    assert len(damaged) <= 60  # those on two or three pages, and no more
    assert all(whole[_face(n)] == _marker(n) * 30 for n in range(200) if _face(n) in whole)


@pytest.mark.parametrize("name", [b"contents_of_segment", b"segments"])
def test_compaction_goes_on_beside_what_it_cannot_read(name: bytes, tmp_path: Path) -> None:
    """The damaged page is in the index with a segment's contents, or has the row that compaction
    deletes."""

    async def prove() -> None:
        store = await open_store(tmp_path / "data", ManualClock(), options=_OPTIONS)
        ids = []
        for number in range(12):
            written = await store.contents.write(pieces(b"%x" % number * 30_000), 30_000)
            await commit(store, Step(_face(0).partition, adopt=(written.id,)))
            ids.append(written.id)
        await commit(store, Step(_face(0).partition, drop=tuple(ids[1::2] + ids[2:8])))
        store._writer.truncate_log(timeout_ms=1000)
        _flip_page_of(tmp_path / "data" / "records.sqlite", name, store)
        for _ in range(20):
            if not await store.compact_once():
                break
        else:
            raise AssertionError("compaction begins again and again")
        assert await content(store, ids[0]) == b"0" * 30_000
        await put(store, (_face(1), b"still served"))
        await store.close()

    asyncio.run(prove())


def _flip_page_of(path: Path, name: bytes, store: EmbeddedEngine) -> None:
    connection = store._reader._connection
    query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
    root = connection.execute(query, (name.decode(),)).get
    _flip(path, (root - 1) * PAGE_BYTES + 4000)
    for one in (connection, store._writer.connection):
        one.pragma("shrink_memory")


def test_the_pages_of_a_backup_have_their_checksums(tmp_path: Path) -> None:
    """The store has more pages than SQLite keeps in memory, many of them still in the log of a
    running store."""

    async def prove() -> None:
        store = await open_store(tmp_path / "data", ManualClock(), options=_OPTIONS)
        for start in range(0, 3000, 500):
            pairs = [(face(b"%d" % one), bytes(2000)) for one in range(start, start + 500)]
            await put(store, *pairs)
        store._writer.truncate_log(timeout_ms=1000)
        await put(store, *((face(b"%d" % one), b"x" * 2000) for one in range(0, 3000, 7)))
        await store.backup(tmp_path / "backup")
        assert list(check(tmp_path / "backup")) == []
        with Inspection(tmp_path / "backup") as inspection:
            found = {ref.key.name: record for ref, record in inspection.records()}
        assert len(found) == 3000
        for one in range(3000):
            record = found[b"%d" % one]
            assert record is not None
            assert record.value == (bytes(2000) if one % 7 else b"x" * 2000)
        await store.close()

    asyncio.run(prove())


def test_the_default_vfs_of_the_process_stays(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path / "data", 1))
    assert CHECKSUM_VFS in apsw.vfs_names()
    assert apsw.vfs_names()[0] != CHECKSUM_VFS


def test_a_build_of_apsw_without_checksums_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(connection: apsw.Connection, name: str) -> None:
        raise apsw.sqlite_extra.NotAvailable(f"{name} is not included")

    monkeypatch.setattr(apsw, "vfs_names", lambda: ["unix"])
    monkeypatch.setattr(apsw.sqlite_extra, "load", load)
    with pytest.raises(Unavailable, match=r"no checksums .* Install apsw from its wheel"):
        asyncio.run(open_store(tmp_path / "data", ManualClock(), options=_OPTIONS))


def test_a_page_that_the_disk_cannot_read_is_no_malformed_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own VFS answers EIO with SQLITE_IOERR_CORRUPTFS, which its statements would call
    malformed. The VFS of bound pages passes the error on as it is."""
    asyncio.run(_fill(tmp_path / "data", 200))
    reader = Reader(str(tmp_path / "data" / "records.sqlite"), None, scanning=True)
    whole = bound_pages._read

    def read(file: apsw.VFSFile, amount: int, offset: int) -> bytes:
        if offset < 4 * PAGE_BYTES:
            return whole(file, amount, offset)
        error = apsw.IOError("disk I/O error")
        error.extendedresult = apsw.SQLITE_IOERR_CORRUPTFS  # type: ignore[attr-defined]
        raise error

    with closing(reader):
        reader._connection.pragma("shrink_memory")
        monkeypatch.setattr(bound_pages, "_read", read)
        with pytest.raises(apsw.IOError, match="disk I/O error"):
            reader.get(_face(199))
