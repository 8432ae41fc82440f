"""The bodies of answers: the `content` functions of the declarations.

Also statuses that depend on the result. Source: response bodies of the operations' pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from strongroom.operations.core.answers import document, long_document
from strongroom.operations.core.spec import Content, Origin
from strongroom.semantics.blob import tag_queries
from strongroom.services.blob.blobs import Download
from strongroom.services.blob.bodies import structured
from strongroom.services.blob.decisions.views import BlobView
from strongroom.services.blob.tags.find_blobs import FindBlobs, FoundPage
from strongroom.services.blob.types.blocks import BlockItem, BlockList
from strongroom.services.blob.types.pages.ranges import PageList
from strongroom.services.core.calls import Call
from strongroom.wire.blob.block_list import write_block_list
from strongroom.wire.blob.page_list import write_page_list
from strongroom.wire.blob.tags import FoundItem, write_found, write_tags


def download_status(result: Download) -> int:
    return 206 if result.partial else 200


def download(result: Download, call: Call[Any], origin: Origin) -> Content:
    """The body of Get Blob, as a structured message if the request asks for one."""
    if not call.input.structured:
        return Content(result.pieces, result.length, result.finished)
    pieces, size_bytes = structured.structured_message(result.pieces, result.length)
    return Content(pieces, size_bytes, result.finished)


def block_list(result: BlockList, call: Call[Any], origin: Origin) -> Content:
    lists = (result.committed, result.uncommitted)
    return long_document(write_block_list(*map(_block_rows, lists)))


def _block_rows(items: tuple[BlockItem, ...] | None) -> Iterator[tuple[str, int]] | None:
    return None if items is None else ((item.id, item.size_bytes) for item in items)


def page_list(result: PageList, call: Call[Any], origin: Origin) -> Content:
    rows = ((one.start, one.end - 1, one.is_clear) for one in result.ranges)
    return long_document(write_page_list(rows, result.next_marker))


def head_only(result: BlobView, call: Call[Any], origin: Origin) -> Content:
    """No bytes for Get Blob Properties, but the length that Get Blob would announce."""
    return Content(b"", result.blob.size_bytes)


def tags(result: BlobView, call: Call[Any], origin: Origin) -> Content:
    return document(write_tags(result.blob.tags))


def found_blobs(page: FoundPage, call: Call[FindBlobs], origin: Origin) -> Content:
    items = (
        FoundItem(item.container, item.name, item.tags, item.version, item.is_current)
        for item in page.items
    )
    where = origin.query.get(tag_queries.PARAMETER) or ""
    marker = tag_queries.encode_marker(page.marker)
    return long_document(write_found(origin.endpoint, where, items, marker))
