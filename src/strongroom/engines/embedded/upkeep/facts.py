"""The facts of an embedded store that an operator watches.

Lives here: where each is found. Must not live here: their form as metrics (servers/telemetry.py).
"""

from __future__ import annotations

import os

from strongroom.engines.base import COMMIT_BYTES_MAX, DataDamaged
from strongroom.engines.embedded.bodies.segments import SegmentStore
from strongroom.engines.embedded.disk.directory import DataDirectory, DirectoryLayout
from strongroom.engines.embedded.space.reserve import Reserve
from strongroom.engines.measured import CommitTimes
from strongroom.values import StoreFacts


def store_facts(
    directory: DataDirectory, segments: SegmentStore, reserve: Reserve, times: CommitTimes
) -> StoreFacts:
    """Return the present facts. Raises OSError."""
    layout = directory.layout
    segments_bytes, live_bytes = segments.sizes()
    free_bytes = directory.free_bytes()
    return StoreFacts(
        free_bytes=free_bytes,
        is_full=is_full(reserve, free_bytes),
        ballast_bytes=reserve.held_bytes,
        ballast_whole_bytes=reserve.whole_bytes,
        records_bytes=_length(layout.records),
        log_bytes=_length(layout.log),
        segments_bytes=segments_bytes,
        live_bytes=live_bytes,
        commits=times.by_bound(),
        commits_s=times.sum_s,
        segment_syncs=segments.sync_times.by_bound(),
        segment_syncs_s=segments.sync_times.sum_s,
        damaged_reads=DataDamaged.found,
        backup_ended_s=_backup_ended_s(layout),
        decisions=times.decisions,
    )


def is_full(reserve: Reserve, free_bytes: int) -> bool:
    """Return whether new data may be refused: one commit may not fit, or the reserve is in use."""
    return not reserve.is_whole or free_bytes < COMMIT_BYTES_MAX


def _length(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def _backup_ended_s(layout: DirectoryLayout) -> float | None:
    """When a backup last wrote its mark into BACKUP."""
    try:
        mark = os.stat(layout.backup_lock)
    except FileNotFoundError:
        return None
    return mark.st_mtime if mark.st_size else None
