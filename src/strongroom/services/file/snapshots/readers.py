"""The readers of files in this process; the bytes that they read are not swept before they finish.

Must not live here: reading (node/reading.py), sweeping (sweep.py).
"""

from __future__ import annotations

import msgspec

from strongroom.engines.base import Partition
from strongroom.engines.gateways import Gateways
from strongroom.services.core.runner import Services
from strongroom.services.file.snapshots.past_states import newest_of
from strongroom.store.core.extents import MapReaders, Pins
from strongroom.store.core.records import ShareRecord


class FileReaders(MapReaders):
    """The readers of all files. This state is lost when the process ends."""


class Pinning(msgspec.Struct, frozen=True):
    """Finds the snapshots and readers that may read earlier bytes of a file, for decisions."""

    maps: MapReaders
    gateways: Gateways

    @classmethod
    def of(cls, services: Services) -> Pinning:
        return cls(services.held.of(FileReaders), services.store.gateways)

    def pins(self, share: ShareRecord, file: Partition, stamp: int) -> Pins:
        """Each decision on the bytes must call this again, with the share as it sees it and its own
        stamp."""
        readers = self.maps.pins(file, 0).reader if self.gateways.is_alone else stamp
        return Pins(newest_of(share), readers, share.lost)
