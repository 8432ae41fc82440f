"""The check whether SQLite's log has lost an acknowledged commit. Pure: bytes in, a verdict out.

Lives here: how damage is distinguished from a torn commit, which a power cut, a kill or a full disk
leaves. Must not live here: the format (wal_format.py), the reaction to damage (log/gate.py).

SQLite reads a log up to the first frame with a wrong checksum or wrong salts, and ignores the rest.
That is right for a torn commit. It is wrong for damage: whole commits after the frame are then lost
silently. The two differ, because every commit is synced before the next one writes its first frame:

- At most one commit is unacknowledged. It is the last, and no frame is chained to it.
- Frames that an older log left in the file have other salts.
- A commit that was rolled back, for example on a full disk, leaves frames with the salts of this
  log. Its last frame, which would have ended the commit, is incomplete, so that frame's checksum is
  wrong.
- After each recovery the log starts afresh, before the first commit (log/gate.py). So leftovers of
  two torn commits are never in one log.
- The header is synced before the first frame. A bad header before whole frames is damage.

So the log is damaged, not torn, in two cases. From the first refused frame on there are two
commits, or one commit with another frame chained to it. A commit counts if the checksum of its last
frame is right. It also counts if the checksum of the next frame is right and starts from it. The
latter requires that the disk writes the frame's header in one piece: at a sector boundary, parts of
two headers may be mixed.

A frame with one changed bit is recognised (wal_format.original_frame), and the chain continues from
it. So one flipped bit is found anywhere, except in the very last commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Final

import msgspec

from strongroom.engines.embedded.log.wal_format import (
    FRAME_HEAD_BYTES,
    HEADER_BYTES,
    Frame,
    LogHeader,
    frame_sum,
    frames,
    original_frame,
    parse_header,
    stored_sum,
)
from strongroom.engines.embedded.log.wal_sums import Order, Sum

SECTOR_BYTES: Final = 512
_HEADER: Final = 0  # the number that stands for the header among the frames
_COMMIT_PAGES_AT: Final = 4
_ORDERS: Final[tuple[Order, ...]] = ("<", ">")


class LogVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The frames of a log, and the part of it that SQLite would keep.

    Arguments:
        frames: how many frames of this log there are.
        kept_bytes: the length up to the last commit that SQLite accepts.
        refused_frame: the first frame that SQLite refuses, counted from 1; 0 is the header; None if
            SQLite keeps all of this log.
        cut_frames: frames of this log that SQLite would drop.
        cut_commits: commits that end among them, as far as that can be proved.
        is_lost: whether an acknowledged commit is among them.
    """

    frames: int = 0
    kept_bytes: int = 0
    refused_frame: int | None = None
    cut_frames: int = 0
    cut_commits: int = 0
    is_lost: bool = False


def examine_log(file: BinaryIO, page_bytes: int) -> LogVerdict:
    """Return the verdict on a log, which is read from its first byte to its last.

    Takes about a tenth of a millisecond for a page of 8 KiB, and a few MiB of memory.

    Arguments:
        file: the log; it must not be written during the call.
        page_bytes: the size of a page, for a log whose header is unreadable.

    Raises: OSError.
    """
    file.seek(0)
    head = file.read(HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        return LogVerdict()
    header = parse_header(head)
    if header is None:
        return _examine_without_header(file, head, page_bytes)
    reading = _LogReader(header)
    for frame in frames(file, header.page_bytes):
        reading.take(frame)
    return reading.verdict()


def _examine_without_header(file: BinaryIO, head: bytes, page_bytes: int) -> LogVerdict:
    """Return the verdict on a log whose header is bad. SQLite treats such a log as empty, so search
    for frames that form a chain."""
    verdict = LogVerdict()
    for order in _ORDERS:
        evidence = _Evidence(order, None)
        seed = stored_sum(head)
        for frame in frames(file, page_bytes):
            evidence.take(frame, seed)
            seed = frame.sum
        if evidence.commits > verdict.cut_commits:
            verdict = LogVerdict(
                frames=evidence.frames,
                refused_frame=_HEADER,
                cut_frames=evidence.frames,
                cut_commits=evidence.commits,
                is_lost=True,
            )
    return verdict


@dataclass(slots=True)
class _ExaminedFrame:
    """An examined frame. Its checksum starts from `seed`; `counted`: it ends a commit that was
    counted."""

    frame: Frame
    seed: Sum
    counted: bool


class _Evidence:
    """The evidence of damage, from the first refused frame on.

    Arguments:
        salts: those of the log. None if its header is unreadable: each frame is then compared with
            the salts of the frame before it.
    """

    def __init__(self, order: Order, salts: bytes | None) -> None:
        self._order = order
        self._salts = salts
        self._last: _ExaminedFrame | None = None
        self.frames = 0
        self.commits = 0
        self.is_followed = False  # a frame of a later commit follows a commit

    def take(self, frame: Frame, seed: Sum) -> None:
        """Examine the next frame of the file, and whether it is chained."""
        salts = self._salts
        if salts is None and self._last is not None:
            salts = self._last.frame.salts
        is_of_this_log = salts in (None, frame.salts) and frame.page_number > 0
        is_chained = is_of_this_log and frame_sum(self._order, seed, frame.data) == frame.sum
        self.add(frame, seed, is_of_this_log=is_of_this_log, is_chained=is_chained)

    def add(self, frame: Frame, seed: Sum, *, is_of_this_log: bool, is_chained: bool) -> None:
        """`seed`: the checksum of the frame before it."""
        self.frames += is_of_this_log
        counted = False
        if is_chained:
            counted = self._is_copy(frame)
            self._note_followed(counted)
            if frame.commit_pages and not counted:
                self.commits += 1
                counted = True
        self._last = _ExaminedFrame(frame, seed, counted)

    def _note_followed(self, by_a_copy: bool) -> None:
        """Count the last frame's commit, because the next frame is chained to it. So the stored
        checksum of the last frame is the one that SQLite wrote."""
        last = self._last
        if last is None or not last.frame.commit_pages:
            return
        if not last.counted and not _lies_in_one_sector(last.frame):
            return
        self.commits += not last.counted
        self.is_followed = self.is_followed or not by_a_copy

    def _is_copy(self, frame: Frame) -> bool:
        """Return whether the frame repeats the one before it, to fill the sector after a commit.
        The frame before may be torn; its checksum shows its original content."""
        last = self._last
        if last is None or not frame.commit_pages:
            return False
        theirs, ours = last.frame.data, frame.data
        if theirs[:8] != ours[:8]:
            return False
        return (
            theirs[FRAME_HEAD_BYTES:] == ours[FRAME_HEAD_BYTES:]
            or frame_sum(self._order, last.seed, ours) == last.frame.sum
        )


class _LogReader:
    """The evaluation of a log from its first frame on: first as SQLite reads it, then beyond
    that."""

    def __init__(self, header: LogHeader) -> None:
        self._header = header
        self._seeds: tuple[Sum, ...] = (header.sum,)  # possible checksums of the last frame
        self._is_sure = True  # whether the last frame's checksum was one of `_seeds`
        self._valid_frames = 0
        self._kept_frames = 0
        self._commit_pages: int | None = None  # as the last commit left them
        self._refused: int | None = None
        self._evidence = _Evidence(header.order, header.salts)

    def take(self, frame: Frame) -> None:
        if not self._is_sure:
            self._evidence.take(frame, self._seeds[0])
            self._seeds = (frame.sum,)
        elif not self._is_valid(frame):
            self._refuse(frame)
        elif self._refused is not None:
            self._continue(frame, (frame.sum,))
        else:
            self._seeds = (frame.sum,)
            self._valid_frames = frame.number
            if frame.commit_pages:
                self._kept_frames = frame.number
                self._commit_pages = frame.commit_pages

    def _is_of_this_log(self, frame: Frame) -> bool:
        return frame.salts == self._header.salts and frame.page_number > 0

    def _is_valid(self, frame: Frame) -> bool:
        return self._is_of_this_log(frame) and any(
            frame_sum(self._header.order, seed, frame.data) == frame.sum for seed in self._seeds
        )

    def _refuse(self, frame: Frame) -> None:
        """Read a frame that SQLite refuses, or would refuse."""
        if self._refused is None:
            self._refused = frame.number
        written = original_frame(self._header.order, self._seeds[0], frame)
        if written is not None:
            pages = self._likely_size(written.commit_pages, frame.number)
            self._continue(msgspec.structs.replace(frame, commit_pages=pages), written.sums)
            return
        self._is_sure = False
        is_of_this_log = self._is_of_this_log(frame)
        self._evidence.add(frame, self._seeds[0], is_of_this_log=is_of_this_log, is_chained=False)
        self._seeds = (frame.sum,)

    def _continue(self, frame: Frame, sums: tuple[Sum, ...]) -> None:
        """Continue after the first refused frame, as long as SQLite's original frames are known."""
        self._evidence.add(frame, self._seeds[0], is_of_this_log=True, is_chained=True)
        self._seeds = sums
        self._commit_pages = frame.commit_pages or self._commit_pages

    def _likely_size(self, sizes: tuple[int, ...], number: int) -> int:
        """Return the most likely size of the database after a commit. A database does not shrink,
        and each page by which it grows is in the log. Return 0 (the frame ends no commit) if no
        size fits and 0 is possible."""
        least = self._commit_pages
        for pages in sizes:
            if pages and (least is None or least <= pages <= least + number):
                return pages
        return 0 if 0 in sizes else sizes[0]

    def verdict(self) -> LogVerdict:
        evidence = self._evidence
        frames = self._valid_frames + evidence.frames
        cut_frames = frames - self._kept_frames
        frame_bytes = FRAME_HEAD_BYTES + self._header.page_bytes
        return LogVerdict(
            frames=frames,
            kept_bytes=HEADER_BYTES + self._kept_frames * frame_bytes,
            refused_frame=(self._refused or self._valid_frames + 1) if cut_frames else None,
            cut_frames=cut_frames,
            cut_commits=evidence.commits,
            is_lost=evidence.commits > 1 or evidence.is_followed,
        )


def _lies_in_one_sector(frame: Frame) -> bool:
    """Return whether the disk writes a frame's header, from its size on, in one piece."""
    start = frame.offset + _COMMIT_PAGES_AT
    end = frame.offset + FRAME_HEAD_BYTES - 1
    return start // SECTOR_BYTES == end // SECTOR_BYTES
