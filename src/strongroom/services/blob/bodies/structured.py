"""Structured bodies: decoding of uploads and encoding of downloads.

Lives here: the streaming of bytes through the codec. Source: "Structured body format" of the Azure
Storage REST reference.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from strongroom.engines.checksum import crc64
from strongroom.errors import core as errors
from strongroom.services.core.calls import BodySource, Piece
from strongroom.wire.blob.structured_message import Decoder, Encoder, message_bytes


class StructuredContent:
    """The content of a body that is a structured message; its checksums are verified while it is
    read.

    Arguments:
        body: as it was sent; its `size_bytes` includes the framing.
        content_bytes: the content's length as the request declares it.

    Raises (while it is read): StorageError InvalidInput, Crc64Mismatch.
    """

    def __init__(self, body: BodySource, content_bytes: int) -> None:
        self.size_bytes: int | None = content_bytes
        self.is_held_back = body.is_held_back
        self._body = body
        self._content_bytes = content_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = Decoder(self._content_bytes, self._body.size_bytes, crc64)
        async for chunk in self._body:
            for piece in decoder.feed(chunk):
                yield piece
                del piece  # freed while waiting for the client
            del chunk
        decoder.finish()

    async def read_all(self, max_bytes: int) -> bytes:
        if self._content_bytes > max_bytes:
            raise errors.body_too_large(max_bytes)
        return b"".join([piece async for piece in self])


def structured_message(
    pieces: bytes | AsyncIterable[Piece], content_bytes: int
) -> tuple[bytes | AsyncIterable[bytes], int]:
    """Encode a body, which is in memory piece by piece. Return the message and its length."""
    encoder = Encoder(content_bytes, crc64)
    if isinstance(pieces, bytes):
        message = b"".join([*encoder.encode(pieces), encoder.finish()])
        return message, len(message)
    return _structured_pieces(pieces, encoder), message_bytes(content_bytes)


async def _structured_pieces(
    pieces: AsyncIterable[Piece], encoder: Encoder
) -> AsyncIterator[bytes]:
    async for data in pieces:
        assert isinstance(data, bytes)  # Get Blob reads such bodies into memory
        for part in encoder.encode(data):
            yield part
    yield encoder.finish()
