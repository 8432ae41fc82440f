"""The bytes of an open source as the body of a request.

Lives here: that body, and the call that contains it. Source: "Put Block From URL", "Put Range from
URL".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from strongroom.errors import copies as copy_errors
from strongroom.errors.core import StorageError
from strongroom.services.core.calls import BodySource, Call, RequestClient
from strongroom.services.core.copies.sources import OpenSource, SourceBroken, cannot_read

S = TypeVar("S", bound=OpenSource)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SourceUpload(Generic[S]):
    """An open source that replaces the request's body. It can be read once."""

    source: S
    request: Call[Any]

    def call(self, given: T) -> Call[T]:
        """The call of the same operation without a URL."""
        return uploading(self.request, SourceBody(self.source), given)


def uploading(request: Call[Any], body: BodySource, given: T) -> Call[T]:
    """Return the call of another operation, with this input and this body."""
    client = _Uploading(request.client, body)
    changed: Call[T] = msgspec.structs.replace(request, client=client, input=given)
    return changed


class BytesBody:
    is_held_back = False

    def __init__(self, data: bytes) -> None:
        self.size_bytes: int | None = len(data)
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


class SourceBody:
    """Reading it raises StorageError CannotVerifyCopySource when the source fails."""

    is_held_back = False

    def __init__(self, source: OpenSource) -> None:
        self.size_bytes = source.size_bytes
        self._source = source

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        try:
            async for chunk in self._source:
                count += len(chunk)
                _require_within(count, self.size_bytes)
                yield chunk
                del chunk
        except SourceBroken as broken:
            raise _failed(str(broken)) from None
        if self.size_bytes is not None and count != self.size_bytes:
            raise _failed("The copy source ended early.")


def _require_within(count: int, size_bytes: int | None) -> None:
    if size_bytes is not None and count > size_bytes:
        raise SourceBroken("The copy source sent more than it announced.")


def _failed(text: str) -> StorageError:
    return cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, text)


class _Uploading:
    """The client of a request, with the body replaced."""

    def __init__(self, client: RequestClient, body: BodySource) -> None:
        self.peer = client.peer
        self.is_disconnected = client.is_disconnected
        self.body = body
        self._client = client

    @property
    def host(self) -> str:
        return self._client.host

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        self._client.on_disconnect(callback)
