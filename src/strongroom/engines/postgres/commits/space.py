"""The quota of a store: how many bytes of records and bodies it may hold.

Lives here: the count of one gateway, and what each purpose may use. A quota is well below the size
of the disk, since the database keeps its log and old versions there too. A disk that is really full
stops deletes as well.
"""

from __future__ import annotations

from typing import Final

from strongroom.engines.base import Full
from strongroom.values import Purpose

RESERVE_BYTES: Final = 64 * 1024 * 1024
_NEAR_BYTES: Final = 64 * 1024 * 1024


class Space:
    """The bytes of keys, values and bodies of a store, as one gateway knows them.

    Attributes:
        quota_bytes: None = there is none.
        used_bytes: as of the last heartbeat, with what this gateway has added since.
        under_way_bytes: of uploads to this gateway that are not complete.
    """

    def __init__(self, quota_bytes: int | None) -> None:
        self.quota_bytes = quota_bytes
        self.used_bytes = 0
        self.under_way_bytes = 0

    @property
    def is_full(self) -> bool:
        return self.quota_bytes is not None and self.used_bytes >= self.quota_bytes

    @property
    def is_tight(self) -> bool:
        """Whether each update must be judged by itself."""
        return self.quota_bytes is not None and self.used_bytes + _NEAR_BYTES >= self.quota_bytes

    def add(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes

    def has_room(self, growth_bytes: int, purpose: Purpose) -> bool:
        if self.quota_bytes is None:
            return True
        limit_bytes = self.quota_bytes + RESERVE_BYTES * purpose // Purpose.FREEING
        return self.used_bytes + self.under_way_bytes + growth_bytes <= limit_bytes

    def check_body(self, size_bytes: int) -> None:
        """Raises: Full."""
        if not self.has_room(size_bytes, Purpose.GROWTH):
            raise Full
