"""A request body for tests: bytes in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError


class Bytes:
    """See wire.http.BodyReader."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size_bytes: int | None = len(data)
        self.is_held_back = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data

    async def read_all(self, max_bytes: int) -> bytes:
        if len(self._data) > max_bytes:
            raise StorageError(errors.REQUEST_BODY_TOO_LARGE)
        return self._data
