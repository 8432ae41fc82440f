"""Get File: a consistent range of a file's bytes, while others write.

Lives here: a registered read of a file, and the stream of its bytes. Source: "Get File"; reference
file.md 5.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import msgspec

from strongroom import limits
from strongroom.auth.authorize import Overrides
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file.accesses import FileOperation
from strongroom.semantics.file.byte_ranges import OFFSETS, WHOLE_FILE
from strongroom.services.core.calls import Call, Piece
from strongroom.services.core.runner import Services
from strongroom.services.file.names import paths
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.node.access import ByPath
from strongroom.services.file.node.origins import RequestOrigin
from strongroom.services.file.node.reading import entered_for_reading
from strongroom.services.file.rest.nodes import NodeView, view_of
from strongroom.services.tree.paths import PathChanged
from strongroom.store.core import extents
from strongroom.values import ByteRange


class GetFile(OnPath, frozen=True, kw_only=True):
    """`range_md5`: whether the MD5 of the range is returned."""

    range: ByteRange | None = None
    range_md5: bool = False


class FileDownload(msgspec.Struct, frozen=True):
    """The bytes [offset, offset + length). `is_partial` distinguishes a 206 from a 200. `finished`
    must be called when the body was sent or abandoned."""

    view: NodeView
    overrides: Overrides
    offset: int
    length: int
    is_partial: bool
    pieces: bytes | AsyncIterable[Piece]
    finished: Callable[[], None] | None = None
    range_md5: bytes | None = None


async def get_file(services: Services, call: Call[GetFile]) -> FileDownload:
    """InvalidRange is a 416 with Content-Range. An MD5 needs a range, of at most 4 MiB."""
    request = call.input
    if request.range_md5 and request.range is None:
        raise errors.invalid_header("x-ms-range-get-content-md5", "true")
    stack = ExitStack()
    try:
        view = await _enter_and_read(
            services, call, FileOperation.GET_FILE, stack, _concerned(request.range)
        )
        offset, length = _within(request, view.record.size_bytes)
        pieces: Any = b""
        if length:
            pieces = extents.read(services.store, view.map, view.version, offset, length)
        md5 = None
        if request.range_md5:
            pieces = b"".join([piece async for piece in pieces]) if length else b""
            md5 = hashlib.md5(pieces, usedforsecurity=False).digest()
        return FileDownload(
            view,
            call.caller.grant.overrides,
            offset,
            length,
            is_partial=request.range is not None,
            pieces=pieces,
            finished=stack.pop_all().close,
            range_md5=md5,
        )
    finally:
        stack.close()


def _concerned(byte_range: ByteRange | None) -> tuple[int, int]:
    """The (offset, length) of the requested bytes, for the check of locks."""
    if byte_range is None or byte_range.last is None:
        start = 0 if byte_range is None else byte_range.first
        return start, OFFSETS - start
    return byte_range.first, byte_range.last - byte_range.first + 1


def _within(request: GetFile, size_bytes: int) -> tuple[int, int]:
    if request.range is None:
        return 0, size_bytes
    within = request.range.within(size_bytes)
    if within is None:
        headers = (("Content-Range", f"bytes */{size_bytes}"),)
        raise StorageError(errors.INVALID_RANGE, None, (), headers)
    if request.range_md5 and within[1] > limits.RANGE_DIGEST_BYTES_MAX:
        raise StorageError(errors.OUT_OF_RANGE_INPUT)
    return within


@asynccontextmanager
async def registered(
    services: Services, call: Call[Any], operation: FileOperation
) -> AsyncIterator[tuple[ExitStack, NodeView]]:
    """Enter the file that a request names, and register a reader of its bytes."""
    with ExitStack() as stack:
        yield stack, await _enter_and_read(services, call, operation, stack)


async def _enter_and_read(
    services: Services,
    call: Call[Any],
    operation: FileOperation,
    stack: ExitStack,
    byte_range: tuple[int, int] = WHOLE_FILE,
) -> NodeView:
    """The registered reader ends with `stack`."""
    origin = RequestOrigin(call)
    while True:
        where = await paths.find(services, call, is_directory=False)
        access = ByPath(origin, where)
        try:
            seen = await entered_for_reading(services, access, operation, stack, byte_range)
        except PathChanged:
            continue
        return view_of(where, seen)
