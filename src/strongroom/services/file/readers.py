"""The readers of files in this process, or by snapshots: their bytes are not swept before they
finish.

Lives here: held state. Must not live here: reading (reading.py), sweeping (sweep.py).
"""

from __future__ import annotations

from strongroom.engines.base import Partition
from strongroom.services.core.runner import Services
from strongroom.services.file.past_states import newest_of
from strongroom.store.core.extents import MapReaders, Pins
from strongroom.store.core.records import ShareRecord


def pins_of(services: Services, share: ShareRecord, file: Partition, stamp: int) -> Pins:
    """The readers of a file's earlier bytes. Ask again in each decision on them.

    Arguments:
        share: as the decision sees it.
        stamp: the decision's.
    """
    readers = stamp
    if services.store.gateways.is_alone:
        readers = services.held.of(FileReaders).maps.pins(file, 0).reader
    return Pins(newest_of(share), readers, share.lost)


class FileReaders:
    """The readers of all files. It dies with the process."""

    def __init__(self) -> None:
        self.maps = MapReaders()
