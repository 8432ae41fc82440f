"""Block lists as XML: the body of Put Block List, the answer of Get Block List.

Whether the blocks exist: semantics/blob/blocks.py. Sources: "Put Block List", "Get Block List".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, cast, get_args

from strongroom import limits
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError
from strongroom.slices import Steps
from strongroom.values import BlockListKind
from strongroom.wire.core import xml

_KINDS: Final = frozenset(get_args(BlockListKind))


def read_block_list(body: bytes) -> Steps[list[tuple[BlockListKind, str]]]:
    """Kind and base64 id of every entry, in order; the ids are not decoded yet."""
    entries: list[tuple[BlockListKind, str]] = []
    reader = _Reader(entries)
    handlers = xml.Handlers(reader.start, reader.end, reader.text)
    yield from xml.parse_long(body, limits.BLOCK_LIST_BODY_BYTES_MAX, handlers)
    return entries


class _Reader:
    """The handlers of one parse: `_depth` counts open elements, `_pieces` is the text of an
    entry."""

    __slots__ = ("_depth", "_entries", "_pieces")

    def __init__(self, entries: list[tuple[BlockListKind, str]]) -> None:
        self._entries = entries
        self._depth = 0
        self._pieces = ""

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        self._depth += 1
        known = name in _KINDS if self._depth == 2 else self._depth == 1 and name == "BlockList"
        if not known:
            raise xml.UnexpectedXml(f"The element {name[:64]} is not expected.")
        self._pieces = ""

    def end(self, name: str) -> None:
        if self._depth == 2:
            if len(self._entries) == limits.COMMITTED_BLOCKS_MAX:
                raise StorageError(blob_errors.BLOCK_LIST_TOO_LONG)
            self._entries.append((cast(BlockListKind, name), self._pieces.strip()))
        self._depth -= 1

    def text(self, data: str) -> None:
        if self._depth == 2:
            self._pieces += data


def write_block_list(
    committed: Iterable[tuple[str, int]] | None,
    uncommitted: Iterable[tuple[str, int]] | None,
) -> Iterator[bytes]:
    """The answer of Get Block List, piece by piece.

    Arguments:
        committed, uncommitted: (base64 id, size in bytes) of each block; None = section not
            requested.
    """
    both = (("CommittedBlocks", committed), ("UncommittedBlocks", uncommitted))
    rows = (
        row
        for name, blocks in both
        if blocks is not None
        for row in xml.rows_in(name, map(_row, blocks))
    )
    return xml.pieces(f"{xml.DECLARATION}<BlockList>", rows, "</BlockList>", 1000)


def _row(block: tuple[str, int]) -> str:
    id_, size_bytes = block
    return f"<Block><Name>{id_}</Name><Size>{size_bytes}</Size></Block>"
