"""The check distinguishes damage in a log from the effects of power cuts, kills and full disks.
More in tests/proof."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from strongroom.engines.embedded.log.wal_format import FRAME_HEAD_BYTES, HEADER_BYTES
from tests.engines.logs import (
    SMALL_PAGE_BYTES,
    Log,
    flipped,
    frame_at,
    judged,
    kept_by_sqlite,
    log_in,
)
from tests.engines.torn_logs import LEFTOVERS, tear

_ROWS = (1, 1, 3, 1, 7, 2, 1, 1, 5, 1, 9, 1, 1, 4, 12, 1, 6, 1, 1, 8, 1, 1, 15, 3)
_FIELDS = {
    "page number": range(4),
    "size after the commit": range(4, 8),
    "salts": range(8, 16),
    "checksum": range(16, 24),
    "page": range(24, 24 + SMALL_PAGE_BYTES),
}


def _commits(log: Log, rows: tuple[int, ...] = _ROWS) -> list[int]:
    """Commit. Return the number of the last frame of each commit."""
    ends = []
    for count in rows:
        log.commit(count)
        ends.append(log.frames())
    return ends


def test_a_whole_log_is_whole(tmp_path: Path) -> None:
    with log_in(tmp_path) as log:
        ends = _commits(log)
        verdict = judged(log.bytes())
    assert (verdict.frames, verdict.cut_frames, verdict.refused_frame) == (ends[-1], 0, None)
    assert verdict.kept_bytes == frame_at(ends[-1] + 1)
    assert not verdict.is_lost


@pytest.mark.parametrize("field", _FIELDS)
def test_one_flipped_bit_before_the_last_commit_is_found_in_every_frame(
    field: str, tmp_path: Path
) -> None:
    chance = random.Random(field)
    with log_in(tmp_path) as log:
        ends = _commits(log)
        data = log.bytes()
    assert ends[-2] > 64, "every way in which a sector's boundary can cut a header is there"
    for number in range(1, ends[-2] + 1):
        places = {(chance.choice(_FIELDS[field]), chance.randrange(8)) for _ in range(4)}
        for at, bit in places:
            verdict = judged(flipped(data, frame_at(number) + at, bit))
            assert verdict.is_lost, (number, at, bit)
            assert verdict.refused_frame == number
            # A size that appeared in a frame may look like the end of one more commit.
            surplus = verdict.cut_commits - sum(end >= number for end in ends)
            assert 0 <= surplus <= (field == "size after the commit"), (number, at, bit)
            assert verdict.frames == ends[-1]


def test_every_bit_of_a_commit_that_one_other_follows_is_found(tmp_path: Path) -> None:
    with log_in(tmp_path) as log:
        ends = _commits(log, (1, 1))
        data = log.bytes()
    assert ends == [1, 2]
    for at in range(HEADER_BYTES, frame_at(2)):
        for bit in {at % 8, (at + 5) % 8}:
            assert judged(flipped(data, at, bit)).cut_commits == 2, (at, bit)


def test_damage_of_the_last_commit_looks_like_a_torn_one(tmp_path: Path) -> None:
    with log_in(tmp_path) as log:
        ends = _commits(log)
        data = log.bytes()
    for number in range(ends[-2] + 1, ends[-1] + 1):
        verdict = judged(flipped(data, frame_at(number) + 100, 3))
        assert not verdict.is_lost
        assert verdict.refused_frame == number
        assert verdict.kept_bytes == frame_at(ends[-2] + 1)
        assert verdict.cut_frames == ends[-1] - ends[-2]


@pytest.mark.parametrize("harm", ["a sector is zeros", "a sector is noise", "many bits"])
def test_larger_damage_before_the_last_two_commits_is_found(harm: str, tmp_path: Path) -> None:
    chance = random.Random(harm)
    with log_in(tmp_path) as log:
        ends = _commits(log)
        data = log.bytes()
    for start in range(512, frame_at(ends[-3]), 512):
        harmed = bytearray(data)
        if harm == "many bits":
            for _ in range(20):
                harmed[start + chance.randrange(512)] ^= 1 << chance.randrange(8)
        else:
            harmed[start : start + 512] = (
                bytes(512) if harm == "a sector is zeros" else chance.randbytes(512)
            )
        assert judged(bytes(harmed)).is_lost, start


def test_a_page_that_is_lost_below_its_own_header_still_counts_as_a_commit(tmp_path: Path) -> None:
    with log_in(tmp_path) as log:
        ends = _commits(log, (1, 1, 1, 1))
        data = log.bytes()
    start = frame_at(ends[-2]) + FRAME_HEAD_BYTES
    verdict = judged(data[:start] + bytes(SMALL_PAGE_BYTES) + data[start + SMALL_PAGE_BYTES :])
    assert verdict.is_lost
    assert verdict.cut_commits == 2


@pytest.mark.parametrize("leftovers", LEFTOVERS)
def test_a_torn_last_commit_is_never_taken_for_damage(leftovers: str, tmp_path: Path) -> None:
    cut = tear(tmp_path, leftovers, random.Random(leftovers), rounds=30)
    assert cut > 50, "few of them were torn at all"


def test_frames_of_a_rollback_and_of_an_older_log_do_not_count(tmp_path: Path) -> None:
    with log_in(tmp_path) as log:
        _commits(log)
        log.restart()
        log.commit(1)
        verdict = judged(log.bytes())
        assert (verdict.frames, verdict.cut_frames) == (log.frames(), 0)
        log.roll_back_spilled(30)
        verdict = judged(log.bytes())
        assert verdict.cut_frames == verdict.frames - log.frames() > 0
        assert (verdict.cut_commits, verdict.is_lost) == (0, False)
        log.commit(1)
        verdict = judged(log.bytes())
        assert verdict.cut_frames > 0
        assert (verdict.cut_commits, verdict.is_lost) == (0, False)


@pytest.mark.parametrize("page_bytes", [512, 8192])
def test_a_copy_that_fills_a_sector_counts_once(page_bytes: int, tmp_path: Path) -> None:
    with log_in(tmp_path, page_bytes, pads=True) as log:
        ends = _commits(log, (1, 2, 1, 1))
        data = log.bytes()
    frames = [judged(data[: frame_at(number + 1, page_bytes)]).frames for number in ends]
    assert frames == ends
    padded = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    assert sum(padded) > 5, "SQLite has filled sectors"
    commit = ends[-2] + 1  # the last one changed one page; its copies follow
    harmed = flipped(data, frame_at(commit, page_bytes) + 200, 1)
    verdict = judged(harmed)
    assert (verdict.cut_commits, verdict.is_lost) == (1, False)
    lost_page = frame_at(commit, page_bytes) + FRAME_HEAD_BYTES
    verdict = judged(data[:lost_page] + bytes(300) + data[lost_page + 300 :])
    assert (verdict.cut_commits, verdict.is_lost) == (1, False)
    commit = ends[-3] + 1
    verdict = judged(flipped(data, frame_at(commit, page_bytes) + 200, 1))
    assert (verdict.cut_commits, verdict.is_lost) == (2, True)


def test_a_bad_header_over_frames_that_agree_is_damage(tmp_path: Path) -> None:
    with log_in(tmp_path) as log:
        ends = _commits(log)
        data = log.bytes()
    for at in range(HEADER_BYTES):
        verdict = judged(flipped(data, at, 5))
        assert verdict.is_lost, at
        assert (verdict.refused_frame, verdict.kept_bytes) == (0, 0)
        assert verdict.cut_commits >= len(ends) - 1
    assert judged(bytes(512) + data[512:]).is_lost


def test_a_bad_header_over_one_commit_is_damage(tmp_path: Path) -> None:
    with log_in(tmp_path) as log:
        log.empty()
        log.commit(1)
        data = log.bytes()
    assert len(data) == frame_at(2)
    assert judged(flipped(data, 20, 5)).is_lost


@pytest.mark.parametrize(
    "data", [b"", b"\0", bytes(32), bytes(31), bytes(100_000), b"noise" * 10_000]
)
def test_what_is_no_log_is_not_damage(data: bytes) -> None:
    verdict = judged(data)
    assert not verdict.is_lost
    assert (verdict.cut_frames, verdict.refused_frame) == (0, None)


def test_any_bytes_get_a_verdict(tmp_path: Path) -> None:
    chance = random.Random(1)
    with log_in(tmp_path) as log:
        _commits(log)
        data = log.bytes()
    for _ in range(100):
        harmed = bytearray(data[: chance.randrange(len(data))])
        for _ in range(chance.randrange(1, 200)):
            if harmed:
                harmed[chance.randrange(len(harmed))] = chance.randrange(256)
        verdict = judged(bytes(harmed))
        assert verdict.cut_frames <= verdict.frames
        assert verdict.kept_bytes <= len(harmed)


def test_the_verdict_keeps_what_sqlite_keeps(tmp_path: Path) -> None:
    """The verdicts are compared with how far SQLite itself reads damaged logs."""
    chance = random.Random(2)
    with log_in(tmp_path) as log:
        _commits(log)
        data, database = log.bytes(), (tmp_path / "records").read_bytes()
    kept = set()
    for number in range(40):
        harmed = flipped(data, chance.randrange(len(data)), chance.randrange(8))
        directory = tmp_path / str(number)
        directory.mkdir()
        frames = kept_by_sqlite(database, harmed, directory)
        kept.add(frames)
        assert judged(harmed).kept_bytes in {frame_at(frames + 1), 0}
    assert len(kept) > 5
