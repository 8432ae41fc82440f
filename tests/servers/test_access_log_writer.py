"""The thread that writes the access log: files that come and go, and disks that take nothing."""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.servers.access_log.writer import AccessLogUnusable, LogTarget, LogWriter

PATIENCE_S = 30.0


@pytest.fixture
def log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> pytest.LogCaptureFixture:
    """The records that the test has written."""
    monkeypatch.setattr(logging.getLogger("strongroom"), "propagate", True)
    return caplog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.005)


def started(target: LogTarget, **more: Any) -> LogWriter:
    target.check()
    writer = LogWriter(target, **more)
    writer.start()
    return writer


@pytest.fixture
def writer(path: Path) -> Iterator[LogWriter]:
    made = started(LogTarget(str(path)))
    yield made
    made.stop(PATIENCE_S)


def test_lines_arrive_in_order_and_all_at_the_end(path: Path) -> None:
    writer = started(LogTarget(str(path)))
    for number in range(5000):
        writer.put(b"%d\n" % number)
    assert writer.stop(PATIENCE_S)
    assert [int(line) for line in path.read_text().splitlines()] == list(range(5000))
    assert writer.written == 5000
    assert writer.dropped == writer.failures == 0


def test_a_new_file_is_for_its_owner_only(path: Path, writer: LogWriter) -> None:
    before = os.umask(0)
    os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 & ~before


def test_an_existing_file_is_continued_and_keeps_its_mode(path: Path) -> None:
    path.write_text("before\n")
    path.chmod(0o640)
    writer = started(LogTarget(str(path)))
    writer.put(b"after\n")
    writer.stop(PATIENCE_S)
    assert path.read_text() == "before\nafter\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_renamed_file_is_followed_by_a_new_one(path: Path, writer: LogWriter) -> None:
    writer.put(b"one\n")
    until(lambda: writer.written == 1)
    path.rename(path.with_suffix(".1"))
    writer.put(b"two\n")
    until(lambda: writer.written == 2)
    assert path.with_suffix(".1").read_text() == "one\n"
    assert path.read_text() == "two\n"
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_a_deleted_file_comes_back(path: Path, writer: LogWriter) -> None:
    writer.put(b"one\n")
    until(lambda: writer.written == 1)
    path.unlink()
    writer.put(b"two\n")
    until(lambda: writer.written == 2)
    assert path.read_text() == "two\n"


class Disk(LogTarget):
    """A file whose disk takes nothing while `is_full`, and `at_once` bytes in one write."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.is_full = False
        self.at_once = 1 << 20
        self.tries = 0
        self.opened = 0

    def write(self, data: bytes) -> int:
        self.tries += 1
        if self.is_full:
            raise OSError(28, "No space left on device")
        return super().write(data[: self.at_once])

    def _open(self) -> None:
        self.opened += 1
        super()._open()


def test_the_file_is_opened_anew_when_that_is_asked_for(path: Path) -> None:
    disk = Disk(path)
    writer = started(disk)
    writer.put(b"one\n")
    until(lambda: writer.written == 1)
    assert disk.opened == 1
    writer.reopen()
    writer.put(b"two\n")
    writer.stop(PATIENCE_S)
    assert disk.opened == 2
    assert path.read_text() == "one\ntwo\n"


def test_a_full_disk_is_said_once_and_nothing_that_fits_the_queue_is_lost(
    path: Path, log: pytest.LogCaptureFixture
) -> None:
    disk = Disk(path)
    writer = started(disk, retry_s=0.01)
    disk.is_full = True
    for number in range(100):
        writer.put(json.dumps({"number": number}).encode() + b"\n")
    until(lambda: writer.failures >= 3)
    assert len(log.records) == 1
    assert "cannot be written" in log.records[0].getMessage()
    disk.is_full, disk.at_once = False, 7
    assert writer.stop(PATIENCE_S)
    assert [json.loads(line)["number"] for line in path.read_text().splitlines()] == [*range(100)]
    assert [one.getMessage().endswith("is written again") for one in log.records] == [False, True]


def test_a_queue_that_is_full_leaves_lines_out_and_that_is_said_when_writing_resumes(
    path: Path, log: pytest.LogCaptureFixture
) -> None:
    disk = Disk(path)
    disk.is_full = True
    writer = started(disk, queue_bytes_max=100, retry_s=0.01)
    for _ in range(50):
        writer.put(b"123456789\n")
    until(lambda: writer.failures > 0)
    taken = 50 - writer.dropped
    assert 10 <= taken < 50
    disk.is_full = False
    until(lambda: any("lacks" in one.getMessage() for one in log.records))
    assert log.records[-1].getMessage().endswith(f"lacks {writer.dropped} lines")
    assert writer.stop(PATIENCE_S)
    assert path.read_text() == "123456789\n" * taken
    assert [one for one in log.records if "lacks" in one.getMessage()] == log.records[-1:]


def test_lines_that_are_left_out_together_are_all_counted(path: Path) -> None:
    disk = Disk(path)
    disk.is_full = True
    writer = started(disk, queue_bytes_max=100)
    writer.put(b"123456789\n" * 11)
    assert writer.dropped == 11
    disk.is_full = False
    assert writer.stop(PATIENCE_S)
    assert path.read_text() == ""


def test_lines_are_written_early_when_much_of_the_queue_is_full(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strongroom.servers.access_log.writer._GATHER_S", 2 * PATIENCE_S)
    writer = started(LogTarget(str(path)), queue_bytes_max=100)
    for _ in range(3):
        writer.put(b"123456789\n")
    until(lambda: writer.written == 3)
    assert writer.stop(PATIENCE_S)


def test_a_target_that_hangs_delays_the_end_by_the_given_time_only(
    path: Path, log: pytest.LogCaptureFixture
) -> None:
    hangs, entered = threading.Event(), threading.Event()

    class Hanging(LogTarget):
        def write(self, data: bytes) -> int:
            entered.set()
            hangs.wait(PATIENCE_S)
            return len(data)

    writer = started(Hanging(str(path)))
    writer.put(b"one\n")
    assert entered.wait(PATIENCE_S)
    writer.put(b"two\n")
    assert not writer.stop(0.01)
    assert "ends early" in log.records[-1].getMessage()
    hangs.set()


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.mkdir(),
        lambda path: os.mkfifo(path),
        lambda path: path.symlink_to(path.parent / "missing" / "file"),
    ],
)
def test_what_cannot_be_a_log_is_refused_at_the_start(
    path: Path, make: Callable[[Path], None]
) -> None:
    make(path)
    with pytest.raises(AccessLogUnusable, match=r"access\.log"):
        LogTarget(str(path)).check()


def test_a_missing_folder_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(AccessLogUnusable, match="No such file or directory"):
        LogTarget(str(tmp_path / "missing" / "access.log")).check()
