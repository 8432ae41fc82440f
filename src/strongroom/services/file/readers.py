"""Who reads files in this process: what they read is not swept before they finish.

Lives here: held state. Must not live here: reading (reading.py), sweeping (sweep.py).
"""

from __future__ import annotations

from strongroom.store.core.extents import MapReaders


class FileReaders:
    """The readers of all files. It dies with the process."""

    def __init__(self) -> None:
        self.maps = MapReaders()
