"""The readers of files in this process; the bytes that they read are not swept before they finish.

Lives here: held state. Must not live here: reading (reading.py), sweeping (sweep.py).
"""

from __future__ import annotations

from strongroom.engines.base import Partition
from strongroom.services.core.runner import Services
from strongroom.services.file.past_states import newest_of
from strongroom.store.core.extents import MapReaders, Pins
from strongroom.store.core.records import ShareRecord


def pins_of(services: Services, share: ShareRecord, file: Partition, stamp: int) -> Pins:
    """Return the snapshots and readers that may read earlier bytes of a file. Each decision on the
    bytes must call this again.

    Arguments:
        share: as the decision sees it.
        stamp: the decision's.
    """
    readers = stamp
    if services.store.gateways.is_alone:
        readers = services.held.of(FileReaders).maps.pins(file, 0).reader
    return Pins(newest_of(share), readers, share.lost)


class FileReaders:
    """The readers of all files. This state is lost when the process ends."""

    def __init__(self) -> None:
        self.maps = MapReaders()
