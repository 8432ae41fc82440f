"""Last access times of blobs, for accounts that track them.

Lives here: the accesses that are not written yet, and the commits that write them. Source:
"Optimize costs by automatically managing the data lifecycle", last access time tracking: a time is
at most a day old.

A read never waits for such a commit. Accesses that a process has not written when it ends are lost;
the next read notes them again.
"""

from __future__ import annotations

import functools
from typing import Final

import msgspec

from strongroom.engines.base import Ref
from strongroom.services.blob.decisions.background_changes import change_in_background
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.services.blob.decisions.changing import BlobState
from strongroom.services.core.decisions import ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord, shown
from strongroom.store.core import keys
from strongroom.store.core.keys import Past
from strongroom.values import TICKS_PER_S, Purpose

_DAY_TICKS: Final = 24 * 60 * 60 * TICKS_PER_S
_NOTED_MAX: Final = 10_000


class Accesses:
    """The accesses that are still to be written.

    A key is the container's generation, the blob's name, and the snapshot or version (None = the
    blob itself).
    """

    def __init__(self) -> None:
        self._noted: dict[tuple[int, str, Past | None], None] = {}

    def note(self, generation: int, name: str, past: Past | None) -> None:
        """Note an access. Above a limit nothing is noted; a later read does it."""
        if len(self._noted) < _NOTED_MAX:
            self._noted[generation, name, past] = None

    def take(self) -> list[tuple[int, str, Past | None]]:
        noted, self._noted = list(self._noted), {}
        return noted


def is_due(blob: BlobRecord, now: int) -> bool:
    """Return whether a read at `now` changes the last access time."""
    return blob.committed and blob.accessed + _DAY_TICKS <= now


async def write_accesses(services: Services) -> None:
    """ETag, Last-Modified and lease do not change."""
    for generation, name, past in services.disposable.of(Accesses).take():
        reads, read = Reads(), None
        if past is not None:
            ref = Ref(keys.blob(generation, name), keys.past(past))
            read = reads.add(ref, blob_records.BLOB)
        decide = functools.partial(_accessed, past, read)
        await change_in_background(
            services, generation, name, decide, purpose=Purpose.UPKEEP, further=reads
        )


def _accessed(
    past: Past | None, read: ReadOne[BlobRecord] | None, state: BlobState, change: BlobChange
) -> None:
    blob = state.head if read is None else shown(state.found[read])
    if blob is not None and is_due(blob, state.now):
        change.put_state(past, blob, msgspec.structs.replace(blob, accessed=state.now))
