"""Chains of records, from the cache as far as possible, and from SQLite.

Lives here: which record comes from where, so that all are from one snapshot. Must not live here:
SQL (sqlite.py), what is cached and why it agrees with SQLite (record_cache.py), the loop over a
chain (engines/chains.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from strongroom.clock import elapsed_s
from strongroom.engines.base import Partition, Record, Ref
from strongroom.engines.chains import follow_chain
from strongroom.engines.embedded.records.checksummed_pages import unreadable
from strongroom.engines.embedded.records.record_cache import UNKNOWN, RecordCache
from strongroom.engines.embedded.records.sqlite import Reader
from strongroom.engines.links import Links
from strongroom.engines.measured import add_s


class ChainReads:
    """The reads of one chain. Directories are usually cached, and the name of a file is not.

    Arguments:
        hold: lets the reader keep a snapshot for later reads, if it may.
    """

    def __init__(self, reader: Reader, cache: RecordCache, hold: Callable[[], None]) -> None:
        self._reader = reader
        self._cache = cache
        self._hold = hold
        self._left = 0
        self._began_s = 0.0
        self._has_begun_snapshot = False

    def follow(
        self, partition: Partition, links: Links, first: bytes, names: Sequence[bytes]
    ) -> list[tuple[Ref, Record | None]]:
        """What is read from SQLite is measured."""
        self._left = len(names)
        try:
            chain = follow_chain(partition, links, first, names, self._get)
        except apsw.Error as error:
            raise unreadable(error) from error
        finally:
            if self._has_begun_snapshot:
                self._reader.end_snapshot()
            if self._began_s:
                add_s(elapsed_s() - self._began_s)
        if self._began_s:
            self._cache.keep(*zip(*chain, strict=True))
        return chain

    def _get(self, ref: Ref) -> Record | None:
        self._left -= 1
        record = self._cache.get_one(ref)
        if record is not UNKNOWN:
            return record
        if not self._began_s:
            self._began_s = elapsed_s()
            self._hold()
        # The last record alone needs no snapshot.
        if self._left and not self._reader.has_snapshot:
            self._has_begun_snapshot = True
            self._reader.begin_snapshot()
        return self._reader.get(ref)
