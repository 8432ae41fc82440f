"""What a gateway asks the one that serves a share, beside the requests of clients.

Lives here: the questions and their answers as bytes. A file that is copied elsewhere is opened and
read where its share is served. A share is given up to a gateway with a client of SMB. Must not live
here: who may read the file. The gateway that asks has authorized the caller, as for a file of its
own shares.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from strongroom.errors import core as errors
from strongroom.errors.core import ErrorCode, Extras, StorageError
from strongroom.services.core.copies.sources import LocalSource, SourceBroken, SourceRequest
from strongroom.services.file.copies.reading import FileSource, OpenFile
from strongroom.values import ContentProperties, Metadata
from strongroom.wire.core.http import Response

HEADER: Final = "x-strongroom-answer"


class ReadSource(msgspec.Struct, frozen=True, array_like=True, tag=True):
    source: LocalSource
    wanted: SourceRequest


class GiveUp(msgspec.Struct, frozen=True, array_like=True, tag=True):
    generation: int


class _Opened(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a file that was opened, but for its bytes."""

    size_bytes: int | None
    properties: ContentProperties
    metadata: Metadata
    etag: str | None
    file: FileSource | None


class _Refused(msgspec.Struct, frozen=True, array_like=True, tag=True):
    row: ErrorCode
    message: str
    extras: Extras
    headers: Extras


class _Found(msgspec.Struct, frozen=True, array_like=True, tag=True):
    opened: _Opened


class _Yes(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The share is given up, or its gateway needs it."""

    is_given_up: bool


def encoded(question: ReadSource | GiveUp) -> bytes:
    return msgspec.msgpack.encode(question)


def decoded(text: bytes) -> ReadSource | GiveUp:
    return msgspec.msgpack.decode(text, type=ReadSource | GiveUp)


def for_source(source: LocalSource, wanted: SourceRequest) -> ReadSource:
    """Without the token, which was for the check of the source."""
    return ReadSource(source, msgspec.structs.replace(wanted, authorization=None))


def given_up(is_given_up: bool) -> Response:
    return _response(_Yes(is_given_up))


def is_given_up(response: Response) -> bool:
    """Read the answer of `given_up`."""
    (response.finished or _nothing_to_release)()
    return msgspec.msgpack.decode(_content(response), type=_Yes).is_given_up


def answer_of(source: OpenFile) -> Response:
    """The answer has the bytes, and gives the source back at its end. It does not announce their
    number, since they end at damage (see open_for_another)."""
    file = source.file
    if file is not None:
        # Its records are read only where its share is served.
        where = msgspec.structs.replace(file.where, refs=(), records=())
        file = msgspec.structs.replace(file, where=where, is_elsewhere=True)
    opened = _Opened(source.size_bytes, source.properties, source.metadata, source.etag, file)
    response = _response(_Found(opened))
    response.body = source.chunks
    response.finished = source.release
    return response


def refusal_of(error: StorageError) -> Response:
    return _response(_Refused(error.row, error.message, error.extras, error.headers))


def opened_by(response: Response) -> OpenFile:
    """Return the source of an answer. Raises: StorageError, as it was raised there."""
    found = msgspec.msgpack.decode(_content(response), type=_Found | _Refused)
    release = response.finished or _nothing_to_release
    if isinstance(found, _Refused):
        release()
        raise StorageError(found.row, found.message, found.extras, found.headers)
    opened = found.opened
    return OpenFile(
        opened.size_bytes,
        _pieces(response),
        release,
        opened.properties,
        opened.metadata,
        opened.etag,
        file=opened.file,
    )


def _response(content: _Found | _Refused | _Yes) -> Response:
    text = base64.b64encode(msgspec.msgpack.encode(content)).decode("ascii")
    return Response(200, [(HEADER, text)])


def _content(response: Response) -> bytes:
    text = next((text for name, text in response.headers if name.lower() == HEADER), "")
    return base64.b64decode(text)


async def _pieces(response: Response) -> AsyncIterator[bytes]:
    if isinstance(response.body, bytes):
        yield response.body
        return
    try:
        async for piece in response.body:
            assert isinstance(piece, bytes), "what comes from a connection is no file"
            yield piece
    except StorageError as error:
        if error.row is errors.SERVER_BUSY:
            raise  # the gateway was lost, and another one may serve the share soon
        raise SourceBroken(f"The copy source cannot be read: {error.message}") from None


def _nothing_to_release() -> None:
    pass
